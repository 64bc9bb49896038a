package guard

import (
	"path"
	"strings"
)

// path checks a token that names a file.
func (l *look) path(t token, in dirs) {
	if l.o.Mode == Advise && len(l.notes) >= maxNotes {
		return
	}
	l.reach(t, in, false)
}

// reach checks every place in t where a path may begin: the token itself, and
// what follows an equals sign, a colon, a quote, a blank and the like, because
// options, assignments and shell text within an argument carry paths there.
// With lenient, a part that is made at run time is no finding by itself.
func (l *look) reach(t token, in dirs, lenient bool) {
	if l.done || t.text == "" {
		return
	}
	if !t.known() && !lenient {
		l.opaque("the path "+show(t.text)+" is made at run time", "write the path out")
		return
	}
	l.piece(t, in)
	start := 0
	for i := 0; i <= len(t.text) && !l.done; i++ {
		if i < len(t.text) && !separates(t.text[i]) {
			continue
		}
		if i > start {
			if n := l.url(t, start, in); n > 0 {
				start += n
				i = start
				for i < len(t.text) && !endsURL(t.text[i]) {
					i++
				}
				start = i + 1
				continue
			}
			if start > 0 || i < len(t.text) {
				l.piece(t.cut(start, i), in)
			}
		}
		start = i + 1
	}
	if len(t.text) > 1 && t.text[0] == '-' && t.text[1] != '-' {
		l.glued(t, in)
	}
}

func separates(b byte) bool { return strings.IndexByte("=@:,;<>()|&\"'` \t\n{}[", b) >= 0 }

func endsURL(b byte) bool { return strings.IndexByte(",;<>|\"'` \t\n{}[)", b) >= 0 }

// glued checks what is glued to a short option: -I../x, -C/, -xf/etc/x. Where
// the value begins is not known, so only what could lead out is tried.
func (l *look) glued(t token, in dirs) {
	l.piece(t.from(2), in)
	j := span(t.text[1:], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", len(t.text)) + 1
	if j == len(t.text) {
		return
	}
	rest := t.from(j)
	switch {
	case rest.text == "/" || rest.text[0] == '~':
		l.piece(rest, in)
	case rest.text[0] == '/':
		first, _, _ := strings.Cut(rest.text[1:], "/")
		if topLevel(first) || rest.cut(0, 1+len(first)).glob() {
			l.piece(rest, in)
		}
	case strings.HasPrefix(rest.text, ".."):
		l.piece(rest, in)
	}
}

func topLevel(name string) bool {
	switch name {
	case "", ".", "..", "bin", "boot", "data", "dev", "etc", "gnu", "home", "lib", "lib32", "lib64", "media", "mnt",
		"nix", "opt", "proc", "root", "run", "sbin", "snap", "srv", "sys", "tmp", "usr", "var",
		"Applications", "Library", "System", "Users", "Volumes", "private":
		return true
	}
	return false
}

// url returns how many bytes the scheme at start takes when a URL of another
// machine begins there. file: is a path.
func (l *look) url(t token, start int, in dirs) int {
	s := t.text[start:]
	n := span(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.", len(s))
	if n == 0 || !strings.HasPrefix(s[n:], "://") {
		return 0
	}
	switch strings.ToLower(s[:n]) {
	case "http", "https", "ftp", "ftps", "ssh", "git", "git+https", "git+ssh", "git+http", "ws", "wss", "s3", "gs",
		"oci", "sftp", "svn", "redis", "postgres", "postgresql", "mysql", "mongodb", "amqp", "tcp", "udp", "grpc":
		return n + 3
	}
	return 0
}

// piece checks one path.
func (l *look) piece(t token, in dirs) {
	p := t.text
	if p == "" || l.done {
		return
	}
	switch {
	case p[0] == '~':
		if t.kind[0] == plain || len(p) > 1 && strings.IndexByte(p, '/') > 0 {
			l.outside("the path " + show(p))
		}
	case p[0] == '/':
		if !l.insideGlob(t, p) {
			l.outside("the path " + show(p))
		}
	case climbs(t):
		if t.glob() || !t.known() {
			l.outside("the path " + show(p))
			return
		}
		for _, d := range in {
			if !l.inside(path.Join(d, p)) {
				l.outside("the path " + show(p))
				return
			}
		}
	}
}

// climbs says that a component is .. or may become it.
func climbs(t token) bool {
	start := 0
	for i := 0; i <= len(t.text); i++ {
		if i < len(t.text) && t.text[i] != '/' {
			continue
		}
		if dotdot(t.cut(start, i)) {
			return true
		}
		start = i + 1
	}
	return false
}

// dotdot says that a component is .. or a pattern that matches it. A pattern
// does so only when its first dot is written out.
func dotdot(c token) bool {
	if c.text == ".." {
		return true
	}
	if !strings.HasPrefix(c.text, ".") || !c.glob() {
		return false
	}
	rest := c.from(1)
	if strings.HasPrefix(rest.text, "[!.]") || strings.HasPrefix(rest.text, "[^.]") {
		return false
	}
	for i := range len(rest.text) {
		if rest.globAt(i) {
			if rest.text[i] == '[' {
				return true
			}
			continue
		}
		if rest.text[i] != '.' {
			return false
		}
	}
	return true
}

// insideGlob says that the absolute path p of t stays inside: with a glob or
// something unknown in it, the part before must already be in a root.
func (l *look) insideGlob(t token, p string) bool {
	if harmless(p) {
		return true
	}
	first := len(p)
	for i := range len(p) {
		if t.globAt(i) || t.kind[i] == unknown || t.kind[i] == spread {
			first = i
			break
		}
	}
	if first == len(p) {
		return l.inside(p)
	}
	if climbs(t) {
		return false
	}
	return l.inside(p[:strings.LastIndexByte(p[:first], '/')+1])
}

// inside says that an absolute path lies in the workspace or a root, by its
// text alone.
func (l *look) inside(p string) bool {
	p = path.Clean(p)
	for _, r := range l.roots {
		if p == r || r == "/" || len(p) > len(r) && p[len(r)] == '/' && p[:len(r)] == r {
			return true
		}
	}
	return false
}

// harmless are device files that hold nothing and lead nowhere.
func harmless(p string) bool {
	switch p {
	case "/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/zero", "/dev/urandom", "/dev/random":
		return true
	}
	n, ok := strings.CutPrefix(p, "/dev/fd/")
	return ok && n != "" && span(n, "0123456789", len(n)) == len(n)
}

// systemProgram returns the bare name of a program in a folder that the
// system owns.
func systemProgram(p string) (string, bool) {
	switch dir, base := path.Split(p); dir {
	case "/usr/bin/", "/bin/", "/usr/local/bin/", "/sbin/", "/usr/sbin/", "/usr/local/sbin/":
		return base, base != "" && base != "." && base != ".."
	}
	return "", false
}
