package gitmeta

import "strings"

// Filtered returns a copy of a configuration file for showing inside, without
// the credentials in it, and whether any had to be taken out.
//
// Taken out are: the user and password of URLs wherever they stand (of ssh
// addresses the password only), query strings that carry a token, proxies'
// users, whole keys that hold a secret (credential.*, extraheader, cookiefile,
// sslkey, anything called token, password, secret ...), and comments that
// mention one. All other bytes stay as they are, and filtering twice is
// filtering once. A file that does not parse is an error: show nothing of it.
//
// Not found: a secret under an ordinary name (a token as the value of
// user.name); package redact looks for the shapes of tokens.
func Filtered(raw []byte) (out []byte, changed bool, err error) {
	f, err := parse(raw)
	if err != nil {
		return nil, false, err
	}
	edits := make([]edit, 0, 4)
	h, c := 0, 0
	// Headers, entries and comments are each in file order: merge them.
	for i := 0; i <= len(f.entries); i++ {
		upTo := len(raw)
		if i < len(f.entries) {
			upTo = f.entries[i].Start
		}
		for ; h < len(f.headers) && f.headers[h].start < upTo; h++ {
			edits = filterHeader(edits, f.headers[h])
		}
		for ; c < len(f.comments) && f.comments[c].start < upTo; c++ {
			edits = filterComment(edits, raw, f.comments[c])
		}
		if i == len(f.entries) {
			break
		}
		e := f.entries[i]
		v, keep := withoutSecrets(e)
		switch {
		case !keep:
			edits = append(edits, edit{span{e.Start, e.End}, ""})
		case v != e.Value:
			edits = append(edits, edit{span{e.valueStart, e.End}, string(appendValue([]byte{' '}, v))})
		default:
			continue
		}
		for c < len(f.comments) && f.comments[c].start < e.End {
			c++ // the comment behind the value went with it
		}
	}
	if len(edits) == 0 {
		return raw, false, nil
	}
	return apply(raw, edits), true, nil
}

type edit struct {
	span
	text string
}

// apply makes edits, which are in order and do not overlap.
func apply(raw []byte, edits []edit) []byte {
	out := make([]byte, 0, len(raw))
	at := 0
	for _, e := range edits {
		out = append(out, raw[at:e.start]...)
		out = append(out, e.text...)
		at = e.end
	}
	return append(out, raw[at:]...)
}

func filterHeader(edits []edit, h header) []edit {
	section, subsection, _ := strings.Cut(h.name, ".")
	clean := withoutUserinfo(subsection)
	if clean == subsection {
		return edits
	}
	return append(edits, edit{h.span, headerText(section, clean, true)})
}

func filterComment(edits []edit, raw []byte, c span) []edit {
	text := string(raw[c.start:c.end])
	if withoutUserinfo(text) == text && !secretWord(strings.ToLower(text)) {
		return edits
	}
	return append(edits, edit{c, ""})
}

// withoutSecrets returns e's value as it may be seen, or that e has to go.
func withoutSecrets(e Entry) (value string, keep bool) {
	if e.Section == "credential" || secretWord(e.Key) {
		return "", false
	}
	low := strings.ToLower(e.Value)
	if strings.Contains(low, "authorization:") || strings.Contains(low, "extraheader") {
		return "", false
	}
	v := withoutUserinfo(e.Value)
	if strings.HasSuffix(e.Key, "proxy") && !strings.Contains(v, "://") {
		v = v[strings.LastIndexByte(v, '@')+1:]
	}
	return v, true
}

// secretWord says whether a key or a comment, in lower case, names a secret.
func secretWord(s string) bool {
	for _, w := range [...]string{
		"password", "passwd", "passphrase", "token", "secret", "apikey", "api-key", "api_key", "authorization",
		"extraheader", "cookiefile", "sslkey", "sslcertpasswordprotected",
	} {
		if strings.Contains(s, w) {
			return true
		}
	}
	return strings.HasSuffix(s, "pass")
}

// withoutUserinfo takes the users out of every URL in s. It ends at a fixed
// point, so that doing it again changes nothing.
func withoutUserinfo(s string) string {
	for {
		next := stripOnce(s)
		if next == s {
			return s
		}
		s = next
	}
}

func stripOnce(s string) string {
	from := 0
	for {
		i := strings.Index(s[from:], "://")
		if i < 0 {
			return s
		}
		at := from + i
		scheme := schemeBefore(s[:at])
		begin := at + len("://")
		end := begin + cutAt(s[begin:], authorityEnd)
		if j := strings.LastIndexByte(s[begin:end], '@'); j >= 0 {
			user := ""
			if scheme == "ssh" || scheme == "git+ssh" || scheme == "ssh+git" {
				// The name is part of the address there and no secret.
				if user, _, _ = strings.Cut(s[begin:begin+j], ":"); user != "" {
					user += "@"
				}
			}
			s = s[:begin] + user + s[begin+j+1:]
			end = begin + cutAt(s[begin:], authorityEnd)
		}
		stop := end + cutAt(s[end:], blanks+"\"'`<>|;")
		if q := strings.IndexByte(s[end:stop], '?'); q >= 0 && secretQuery(s[end+q:stop]) {
			s = s[:end+q] + s[stop:]
		}
		from = begin
	}
}

const blanks = " \t\r\n"

// authorityEnd are the characters that no user, password or host has. Quotes
// and the like are not among them: git takes them as part of a password.
const authorityEnd = blanks + "/?#"

// cutAt returns where the first of chars stands in s, or its length.
func cutAt(s, chars string) int {
	if i := strings.IndexAny(s, chars); i >= 0 {
		return i
	}
	return len(s)
}

func schemeBefore(s string) string {
	i := len(s)
	for i > 0 && (keyChar(s[i-1]) || s[i-1] == '+' || s[i-1] == '.') {
		i--
	}
	return strings.ToLower(s[i:])
}

func secretQuery(q string) bool {
	q = strings.ToLower(q)
	return secretWord(q) || strings.Contains(q, "auth=") || strings.Contains(q, "sig=") ||
		strings.Contains(q, "signature=") || strings.Contains(q, "access_key") || strings.Contains(q, "key=")
}
