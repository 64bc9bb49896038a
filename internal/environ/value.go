package environ

import (
	"path"
	"strings"
)

// Longest values that pass. The kernel takes 128 KiB for one NAME=VALUE.
const (
	maxWord  = 256
	maxText  = 8 << 10
	maxValue = 128<<10 - 1
)

// clean applies a rule to a value. It returns what passes and whether
// something was taken away; ok is false when nothing passes.
func clean(r rule, v string) (out string, cut, ok bool) {
	switch r {
	case word:
		return v, false, len(v) <= maxWord && printable(v) && !strings.Contains(v, " ")
	case text:
		return v, false, len(v) <= maxText && printable(v)
	case number:
		return v, false, len(v) <= 6 && v != "" && strings.Trim(v, "0123456789") == ""
	case file, caFile:
		return v, false, plainPath(v)
	case shell:
		return v, false, plainPath(v) && knownShell(path.Base(v))
	case files, caFiles, pyfiles:
		return cleanEach(v, ":", ":", func(s string) (string, bool) {
			return s, plainPath(s) || r == pyfiles && len(s) <= maxText && printable(s)
		})
	case url:
		return cleanURL(v)
	case urls:
		return cleanEach(strings.Join(strings.Fields(v), " "), " ", " ", cleanNamedURL)
	case goproxy:
		return cleanProxyList(v)
	case sumdb:
		return cleanSumDB(v)
	case goflags:
		return cleanEach(strings.Join(strings.Fields(v), " "), " ", " ", func(s string) (string, bool) {
			return s, describesBuild(s)
		})
	}
	return "", false, false
}

// cleanEach cleans the elements of a list and joins those that pass.
func cleanEach(v, sep, join string, one func(string) (string, bool)) (string, bool, bool) {
	if len(v) > maxText*4 {
		return "", true, false
	}
	var out []string
	for s := range strings.SplitSeq(v, sep) {
		if c, ok := one(s); ok {
			out = append(out, c)
		}
	}
	res := strings.Join(out, join)
	return res, res != v, len(out) > 0
}

// printable reports whether s is one line without control characters. Bytes
// above ASCII pass: names of people and folders hold them.
func printable(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] == 0x7f {
			return false
		}
	}
	return true
}

// plainPath reports whether s is one absolute path without control characters
// or parent references.
func plainPath(s string) bool { return len(s) <= maxText && printable(s) && realPath(s) }

// realPath reports whether s can be a canonical path. Those that are, of the
// workspace for one, hold whatever the file system allows.
func realPath(s string) bool {
	if !strings.HasPrefix(s, "/") || strings.IndexByte(s, 0) >= 0 {
		return false
	}
	for e := range strings.SplitSeq(s, "/") {
		if e == ".." {
			return false
		}
	}
	return true
}

func knownShell(name string) bool {
	switch name {
	case "sh", "bash", "dash", "ash", "zsh", "ksh", "ksh93", "mksh", "fish", "nu", "elvish", "tcsh", "csh":
		return true
	}
	return false
}

// describesBuild admits the go flags that name neither programs nor files nor
// free text: -toolexec and -overlay redirect a build, -ldflags may hold a
// secret.
func describesBuild(flag string) bool {
	name, value, _ := strings.Cut(strings.TrimLeft(flag, "-"), "=")
	if !strings.HasPrefix(flag, "-") || !printable(flag) || len(value) > maxWord {
		return false
	}
	switch name {
	case "mod", "tags", "buildvcs", "trimpath", "race", "v", "p", "count", "short", "modcacherw", "buildmode", "cover":
		return true
	}
	return false
}

// cleanURL takes the credentials out of a URL: user information, query and
// fragment. Programs read odd URLs in different ways, so one that is not
// plain does not pass at all.
//
// A secret in the path cannot be told from a path.
func cleanURL(v string) (out string, cut, ok bool) {
	scheme, rest, found := strings.Cut(v, "://")
	if len(v) > maxText || !found || !schemeChars(scheme) || !urlChars(rest) {
		return "", false, false
	}
	if i := strings.IndexAny(rest, "?#"); i >= 0 {
		rest = rest[:i]
	}
	host, tail := rest, ""
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		host, tail = rest[:i], rest[i:]
	}
	if i := strings.LastIndexByte(host, '@'); i >= 0 {
		host = host[i+1:]
	}
	if !hostPort(host) && !(host == "" && localScheme(scheme)) {
		return "", false, false
	}
	// An @ in the path is a scope (/@scope/pkg) or the rest of a password
	// that held a slash.
	for i := range len(tail) {
		if tail[i] == '@' && tail[i-1] != '/' {
			return "", false, false
		}
	}
	out = scheme + "://" + host + tail
	return out, out != v, true
}

// cleanNamedURL is cleanURL for elements that may be NAME=URL or, in lists of
// places to look, an absolute path.
func cleanNamedURL(s string) (string, bool) {
	if plainPath(s) {
		return s, !strings.Contains(s, "@")
	}
	name := ""
	if i := strings.IndexByte(s, '='); i >= 0 && !strings.ContainsAny(s[:i], ":/@?#") {
		name, s = s[:i+1], s[i+1:]
	}
	out, _, ok := cleanURL(s)
	return name + out, ok && printable(name)
}

// cleanProxyList cleans GOPROXY. When nothing of it passes the answer is
// "off": a company's proxy must not turn into the public one, which would
// learn the names of private modules.
func cleanProxyList(v string) (string, bool, bool) {
	if v == "" || len(v) > maxText {
		return "", false, false
	}
	var b strings.Builder
	for rest, sep := v, ""; ; {
		i := strings.IndexAny(rest, ",|")
		one := rest
		if i >= 0 {
			one = rest[:i]
		}
		one = strings.TrimSpace(one)
		ok := one == "direct" || one == "off"
		if !ok {
			one, _, ok = cleanURL(one)
		}
		if ok {
			if b.Len() > 0 {
				b.WriteString(sep)
			}
			b.WriteString(one)
		}
		if i < 0 {
			break
		}
		sep, rest = rest[i:i+1], rest[i+1:]
	}
	if b.Len() == 0 {
		return "off", true, true
	}
	return b.String(), b.String() != v, true
}

// cleanSumDB cleans GOSUMDB: a name, or name+key, and perhaps a URL.
func cleanSumDB(v string) (string, bool, bool) {
	f := strings.Fields(v)
	if len(f) == 0 || len(f) > 2 || len(f[0]) > maxWord || !printable(f[0]) ||
		strings.ContainsAny(f[0], "@:") {
		return "", false, false
	}
	if len(f) == 1 {
		return f[0], f[0] != v, true
	}
	u, cut, ok := cleanURL(f[1])
	return f[0] + " " + u, cut, ok
}

func schemeChars(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !letter(c) && (i == 0 || !digit(c) && c != '+' && c != '-' && c != '.') {
			return false
		}
	}
	return s != ""
}

// urlChars admits what a URL may hold, besides the backslash that some parsers
// take for a slash and the quotes and spaces that end one.
func urlChars(s string) bool {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || strings.IndexByte("\\\"'<>`{}|^$", c) >= 0 {
			return false
		}
	}
	return true
}

func localScheme(s string) bool { return s == "file" || strings.HasSuffix(s, "+file") }

// hostPort reports whether s is a host name or address and maybe a port.
func hostPort(s string) bool {
	host, port := s, ""
	if strings.HasPrefix(s, "[") {
		i := strings.IndexByte(s, ']')
		if i < 0 {
			return false
		}
		host, port = s[1:i], s[i+1:]
		if port != "" && port[0] != ':' {
			return false
		}
		port = strings.TrimPrefix(port, ":")
		return host != "" && strings.Trim(host, "0123456789abcdefABCDEF:.") == "" && allDigits(port)
	}
	if i := strings.IndexByte(s, ':'); i >= 0 {
		host, port = s[:i], s[i+1:]
	}
	for i := range len(host) {
		if c := host[i]; !letter(c) && !digit(c) && c != '.' && c != '-' && c != '_' {
			return false
		}
	}
	return host != "" && allDigits(port)
}

func allDigits(s string) bool { return len(s) <= 5 && strings.Trim(s, "0123456789") == "" }
func letter(c byte) bool      { return c|0x20 >= 'a' && c|0x20 <= 'z' }
func digit(c byte) bool       { return c >= '0' && c <= '9' }

// fileURL is the file URL of an absolute path.
func fileURL(p string) string {
	var b strings.Builder
	b.WriteString("file://")
	for i := range len(p) {
		c := p[i]
		if letter(c) || digit(c) || strings.IndexByte("/-_.~@!+", c) >= 0 {
			b.WriteByte(c)
			continue
		}
		const hex = "0123456789ABCDEF"
		b.WriteByte('%')
		b.WriteByte(hex[c>>4])
		b.WriteByte(hex[c&15])
	}
	return b.String()
}
