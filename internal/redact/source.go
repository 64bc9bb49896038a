package redact

import (
	"bytes"
	"net/url"
	"path"
	"strings"
)

// Environ returns the secrets among those variables of an environment (in the
// form of os.Environ) that look says may hold one: what is credible by name and
// value, and the credentials in URLs.
//
// Variables that named names are secrets whatever they look like; those of them
// that are too short to be looked for come back in short.
func Environ(environ []string, look func(name string) bool, named []string) (values []Value, short []string) {
	for _, kv := range environ {
		name, value, ok := strings.Cut(kv, "=")
		if !ok {
			continue
		}
		byName := false
		for _, n := range named {
			byName = byName || n == name
		}
		switch {
		case byName && len(value) < MinLength:
			if value != "" {
				short = append(short, name)
			}
		case byName:
			values = append(values, Value{name, value})
		case look(name):
			values = consider(values, name, name, value)
		}
	}
	return values, short
}

// consider adds what of a value is a secret: all of it, or the credentials in a
// URL. label names the mark, name is what the value was found under.
func consider(to []Value, label, name, value string) []Value {
	if len(value) < MinLength {
		return to
	}
	if strings.Contains(value, "-----BEGIN ") {
		return append(to, File(label, []byte(strings.ReplaceAll(value, `\n`, "\n")))...)
	}
	if credible(name, value) {
		return append(to, Value{label, value})
	}
	return fromURL(to, label, name, value)
}

// fromURL adds the credentials that a URL holds: the password, together with
// what is around it where it is short by itself; parameters with a name that
// says so; and the path of a webhook.
func fromURL(to []Value, label, name, value string) []Value {
	scheme, rest, ok := strings.Cut(value, "://")
	if !ok || strings.ContainsAny(value, " \t\r\n") {
		return to
	}
	authority := rest
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority = rest[:i]
	}
	if i := strings.LastIndexByte(rest, '@'); i > len(authority) && strings.Contains(rest[:i], ":") {
		authority = rest // a password that holds a slash
	}
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		user, password, _ := strings.Cut(authority[:i], ":")
		if password == "" {
			password = user // https://TOKEN@host
		}
		around := authority[:i+1]
		if len(around) < MinLength {
			around = scheme + "://" + around
		}
		switch {
		case reference(password):
		case len(password) >= MinLength:
			to = append(to, Value{label, password})
			if plain, err := url.PathUnescape(password); err == nil && plain != password {
				to = append(to, Value{label, plain})
			}
		case password != user && len(around) >= MinLength:
			to = append(to, Value{label, around})
		}
	}
	if _, query, ok := strings.Cut(rest, "?"); ok {
		for pair := range strings.FieldsFuncSeq(query, func(r rune) bool { return r == '&' || r == '#' }) {
			key, v, _ := strings.Cut(pair, "=")
			if credible(key, v) {
				to = append(to, Value{label, v})
			}
		}
	}
	if i := strings.IndexByte(rest, '/'); i >= 0 && strings.Contains(words(name), "WEBHOOK") && len(rest)-i > MinLength {
		to = append(to, Value{label, rest[i:]})
	}
	return to
}

// File returns the secrets in the content of a protected file: the values of
// settings and other words that are credible, and the lines of blocks between
// BEGIN and END that are not public. A setting's value is called like the
// setting, all else like the file. A file that holds a NUL byte has none.
func File(file string, content []byte) []Value {
	if bytes.IndexByte(content, 0) >= 0 {
		return nil
	}
	label := path.Base(file)
	var out []Value
	block, public := false, false
	for s := range strings.Lines(string(content)) {
		s = strings.TrimSpace(s)
		switch {
		case strings.Contains(s, "-----BEGIN ") && strings.Contains(s, `\n`): // a string with its line ends escaped
			name, _, ok := assignment(s)
			if !ok {
				name = label
			}
			out = append(out, File(name, []byte(strings.ReplaceAll(s, `\n`, "\n")))...)
		case strings.Contains(s, "-----BEGIN "):
			block, public = true, publicBlock(s)
		case strings.Contains(s, "-----END "):
			block = false
		case block:
			if !public && len(s) >= MinLength && !strings.Contains(s, ": ") && varied(s, 2.3) {
				out = append(out, Value{label, s})
			}
		case len(s) >= MinLength:
			out = setting(out, label, s)
		}
	}
	return out
}

func publicBlock(begin string) bool {
	if strings.Contains(begin, "PRIVATE") || strings.Contains(begin, "SECRET") {
		return false
	}
	for _, word := range []string{"CERTIFICATE", "PUBLIC", "X509 CRL", "PARAMETERS", "PGP MESSAGE", "PGP SIGNATURE"} {
		if strings.Contains(begin, word) {
			return true
		}
	}
	return false
}

// setting adds the secrets of one line.
func setting(to []Value, label, line string) []Value {
	have := len(to)
	if name, value, ok := assignment(line); ok {
		if to = consider(to, name, name, value); len(to) > have || strings.IndexFunc(value, parts) < 0 {
			return to
		}
	}
	// Not a setting, or one with a value of several parts.
	last := ""
	for word := range strings.FieldsFuncSeq(line, parts) {
		if strings.HasPrefix(word, "AAAA") { // a public key of ssh
			last = word
			continue
		}
		name := last
		last = word
		have := len(to)
		if i := strings.LastIndexAny(word, "=:"); i > 0 && i < len(word)-1 && !strings.Contains(word, "://") {
			key := strings.TrimRight(word[:i], "=:")
			key = key[strings.LastIndexAny(key, "=:/?&")+1:]
			to = consider(to, label, key, word[i+1:])
		}
		if len(to) == have {
			to = consider(to, label, name, word)
		}
	}
	return to
}

func parts(r rune) bool {
	switch r {
	case ' ', '\t', '"', '\'', '`', ',', ';', '<', '>', '(', ')', '[', ']', '{', '}', '|':
		return true
	}
	return false
}

// assignment splits NAME=VALUE, NAME: VALUE and "NAME": "VALUE".
func assignment(line string) (name, value string, ok bool) {
	i := strings.IndexAny(line, "=:")
	if i <= 0 {
		return "", "", false
	}
	name = strings.Trim(strings.TrimPrefix(strings.TrimSpace(line[:i]), "export "), " \t\"'-")
	if name == "" || !tokenLike(name, "_-.") {
		return "", "", false
	}
	value = strings.TrimSpace(strings.TrimLeft(line[i:], "=:"))
	if value == "" {
		return "", "", false
	}
	if q := value[0]; q == '"' || q == '\'' || q == '`' {
		if end := strings.LastIndexByte(value[1:], q); end >= 0 {
			return name, value[1 : 1+end], true
		}
		return name, value[1:], true // goes on in the next line
	}
	if i := strings.Index(value, " #"); i >= 0 {
		value = value[:i]
	}
	return name, strings.TrimRight(strings.TrimSpace(value), ",;"), true
}
