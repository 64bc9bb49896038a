package policy

import (
	"strings"
	"unicode/utf8"
)

// compile turns one pattern into its components, or says why it cannot.
func compile(p string) (path []glob, why, hint string) {
	switch {
	case p == "":
		return nil, "it is empty", "leave it out"
	case len(p) > patternMax:
		return nil, "it is too long", "use at most 1024 bytes"
	case strings.IndexByte(p, 0) >= 0:
		return nil, "it holds a NUL byte", "no file name can hold one"
	case p[0] == '!':
		return nil, "a pattern cannot be negated", `write \! for a name that begins with !`
	case strings.HasPrefix(p, "~/"):
		return nil, "it is relative to a root, not to a home", "write the path from the root of the workspace"
	case p == "**":
		return nil, "** alone would match everything", "write * to match every name"
	case strings.HasSuffix(p, "/") && p != "/":
		return nil, "it ends in a slash", "write " + strings.TrimRight(p, "/") + " for the folder, or " + strings.TrimRight(p, "/") + "/** for what is in it"
	}
	for _, part := range components(strings.TrimPrefix(p, "/")) {
		switch {
		case part == "" || part == "." || part == "..":
			return nil, "it has an empty, . or .. component", "write the path from the root without them"
		case part == "**":
			// A second ** in a row says nothing new and costs time.
			if len(path) == 0 || path[len(path)-1] != nil {
				path = append(path, nil)
			}
			continue
		}
		g, why := compileName(part)
		if why != "" {
			return nil, why, `quote a literal character with a backslash, as in \[`
		}
		path = append(path, g)
	}
	if path[len(path)-1] == nil {
		path = append(path, glob{{kind: star}})
	}
	return path, "", ""
}

// components splits at slashes. A slash is never literal, so neither a class
// nor a backslash hides one.
func components(p string) []string { return strings.Split(p, "/") }

func compileName(s string) (glob, string) {
	g := glob{}
	for s != "" {
		switch s[0] {
		case '*':
			if strings.HasPrefix(s, "**") {
				return nil, "** must be a whole component"
			}
			g = append(g, token{kind: star})
			s = s[1:]
		case '?':
			g = append(g, token{kind: any1})
			s = s[1:]
		case '[':
			t, rest, why := compileClass(s[1:])
			if why != "" {
				return nil, why
			}
			g = append(g, t)
			s = rest
		case '\\':
			if s = s[1:]; s == "" {
				return nil, "it ends in a backslash"
			}
			fallthrough
		default:
			_, size := utf8.DecodeRuneInString(s)
			g = appendLiteral(g, s[:size])
			s = s[size:]
		}
	}
	if len(g) == 0 {
		return nil, "nothing of it is left when case is folded"
	}
	return g, ""
}

// appendLiteral appends the folded form of one character, which may be none
// or several.
func appendLiteral(g glob, char string) glob {
	for f := fold(nil, []byte(char)); len(f) > 0; {
		r, size := nextRune(f)
		g = append(g, token{kind: one, r: r})
		f = f[size:]
	}
	return g
}

// compileClass reads a class after its opening bracket.
func compileClass(s string) (t token, rest, why string) {
	t.kind = class
	if s != "" && (s[0] == '!' || s[0] == '^') {
		t.negate = true
		s = s[1:]
	}
	for first := true; ; first = false {
		if s == "" {
			return t, "", "it opens a class that is not closed"
		}
		if s[0] == ']' && !first {
			return t, s[1:], ""
		}
		if strings.HasPrefix(s, "[:") {
			return t, "", "named classes such as [:alpha:] are not known"
		}
		var lo, hi rune
		if lo, s, why = classRune(s); why != "" {
			return t, "", why
		}
		hi = lo
		if len(s) >= 2 && s[0] == '-' && s[1] != ']' {
			if hi, s, why = classRune(s[1:]); why != "" {
				return t, "", why
			}
		}
		if hi < lo {
			return t, "", "a class has a range that runs backwards"
		}
		t.ranges = append(t.ranges, lo, hi)
	}
}

func classRune(s string) (r rune, rest, why string) {
	if s[0] == '\\' {
		if s = s[1:]; s == "" {
			return 0, "", "it opens a class that is not closed"
		}
	}
	r, size := nextRune([]byte(s))
	return r, s[size:], ""
}
