package seatbelt

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tether-sandbox/tether/fault"
)

// writer writes a profile. Its first error stays.
type writer struct {
	b   strings.Builder
	err error
}

// filter is a finished expression of the language.
type filter struct {
	text string
	err  error
}

func (w *writer) text(s string) { w.b.WriteString(s) }

// note writes a comment of one line; its text is ours alone.
func (w *writer) note(s string) { w.b.WriteString("\n; " + s + "\n") }

// rule writes one rule; several filters mean any of them.
func (w *writer) rule(verdict, operations string, filters ...filter) {
	w.b.WriteString("(" + verdict + " " + operations)
	for _, f := range filters {
		if f.err != nil && w.err == nil {
			w.err = f.err
		}
		w.b.WriteString(" " + f.text)
	}
	w.b.WriteString(")\n")
}

func literal(path string) filter { return quoted("literal", path) }
func subpath(path string) filter { return quoted("subpath", path) }

// below is all that lies in a folder, but not the folder itself.
func below(path string) filter {
	in := subpath(path)
	in.text = "(require-all " + in.text + " (require-not " + literal(path).text + "))"
	return in
}

// socket is a local socket whose file satisfies f.
func socket(end string, f filter) filter {
	f.text = "(" + end + " unix-socket " + f.text + ")"
	return f
}

func port(end, number string) filter {
	return filter{text: "(" + end + ` ip "localhost:` + number + `")`}
}

func quoted(kind, path string) filter {
	s, err := quote(path)
	return filter{text: "(" + kind + " " + s + ")", err: err}
}

// quote writes a path as a string of the language, in which a backslash takes
// the meaning from what follows it. Paths that are not absolute, not clean, not
// UTF-8 or that hold a control character are refused: what the language makes
// of those is nowhere promised, and what it does not read as we meant it would
// be a hole.
func quote(path string) (string, error) {
	bad := func(why string) (string, error) {
		return `""`, fault.New(fault.SandboxUnavailable, "seatbelt: the path "+strconv.Quote(path)+" "+why).
			WithHint("rename what lies there, or work in another folder")
	}
	switch {
	case path == "" || path[0] != '/':
		return bad("is not absolute")
	case path != "/" && path[len(path)-1] == '/', strings.Contains(path+"/", "//"),
		strings.Contains(path+"/", "/./"), strings.Contains(path+"/", "/../"):
		if path != "/" {
			return bad("is not canonical")
		}
	case !utf8.ValidString(path):
		return bad("is not UTF-8")
	}
	var b strings.Builder
	b.Grow(len(path) + 2)
	b.WriteByte('"')
	for _, c := range path {
		if c < ' ' || c >= 0x7f && c < 0xa0 {
			return bad("holds a control character")
		}
		if c == '"' || c == '\\' {
			b.WriteByte('\\')
		}
		b.WriteRune(c)
	}
	b.WriteByte('"')
	return b.String(), nil
}
