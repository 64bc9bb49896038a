package policy

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Patterns is a compiled list of a user's patterns. The zero value holds none
// and matches nothing. It is safe for concurrent use.
type Patterns struct {
	names []glob
	paths [][]glob
}

// glob matches one path component; a nil glob in a path stands for "**".
type glob []token

type token struct {
	kind   tokenKind
	r      rune   // one
	ranges []rune // class: pairs of first and last
	negate bool   // class
}

type tokenKind uint8

const (
	one   tokenKind = iota // exactly r
	any1                   // any one rune
	star                   // any number of runes
	class                  // one rune of, or out of, ranges
)

// patternMax keeps the cost of a match, which grows with the length of the
// pattern times that of the name, within bounds.
const patternMax = 1024

// CompilePatterns reads the patterns of [Protect]. A pattern without a slash
// matches a base name anywhere; one with a slash matches a path from the root
// (a leading slash only says so).
//
// Within one component * matches any text, also a leading dot, ? one
// character, [a-z] one of a class, [!a-z] or [^a-z] one outside it; a
// backslash takes the next character literally. ** as a whole component
// matches any number of components, at the end at least one: a/** matches
// what is in a, not a. Case is ignored as in [HiddenName], also in classes;
// a class sees what folding leaves, so [ß] never matches. Accents are not
// normalised: é as one character and as two differ.
//
// Refused with POLICY_INVALID: an empty pattern or component, . and .., a
// final slash, a leading ~/ or !, ** beside other text or alone, a class that
// is open, empty or backwards, a final backslash, NUL, and more than 1024
// bytes.
func CompilePatterns(patterns []string) (Patterns, error) {
	var ps Patterns
	for _, p := range patterns {
		path, why, hint := compile(p)
		switch {
		case why != "":
			return Patterns{}, invalid("bad pattern "+quote(p)+": "+why, hint)
		case strings.Contains(p, "/"):
			ps.paths = append(ps.paths, path)
		default:
			ps.names = append(ps.names, path[0])
		}
	}
	return ps, nil
}

// HasPaths tells whether a pattern needs more than the base name, so that a
// walk can leave paths unbuilt.
func (ps Patterns) HasPaths() bool { return len(ps.paths) > 0 }

// MatchName tells whether a pattern without a slash matches the base name.
func (ps Patterns) MatchName(base []byte) bool {
	if len(ps.names) == 0 {
		return false
	}
	var buf [nameMax]byte
	return ps.matchName(fold(buf[:0], base))
}

// MatchPath tells whether any pattern matches the file at rel, a clean path
// from the root with slashes: one without a slash its base name, one with a
// slash all of it. A match of a directory above rel is not looked for: a walk
// that meets the directory first has its answer.
func (ps Patterns) MatchPath(rel []byte) bool {
	var buf [4 * nameMax]byte
	rel = fold(buf[:0], rel)
	for _, p := range ps.paths {
		if matchPath(p, rel) {
			return true
		}
	}
	return ps.matchName(rel[bytes.LastIndexByte(rel, '/')+1:])
}

func (ps Patterns) matchName(folded []byte) bool {
	for _, g := range ps.names {
		if g.match(folded) {
			return true
		}
	}
	return false
}

// matchPath is glob.match one level up: it walks components instead of runes,
// and ** is its star. Going back only to the last star is enough, because
// whatever an earlier star could give, the last one can take.
func matchPath(pattern []glob, rel []byte) bool {
	pi, si := 0, 0
	starAt, mark := -1, 0
	for {
		if pi < len(pattern) && pattern[pi] == nil {
			starAt, mark = pi, si
			pi++
			continue
		}
		if si > len(rel) { // one past the end: the last component is used up
			if pi == len(pattern) {
				return true
			}
			return false
		}
		end := componentEnd(rel, si)
		if pi < len(pattern) && pattern[pi].match(rel[si:end]) {
			pi++
			si = end + 1
			continue
		}
		if starAt < 0 {
			return false
		}
		mark = componentEnd(rel, mark) + 1
		pi, si = starAt+1, mark
	}
}

func componentEnd(rel []byte, from int) int {
	if i := bytes.IndexByte(rel[from:], '/'); i >= 0 {
		return from + i
	}
	return len(rel)
}

// match tells whether g matches all of the folded name. It keeps one place to
// go back to, so the time is at most len(g) * len(name).
func (g glob) match(name []byte) bool {
	gi, si := 0, 0
	starAt, mark := -1, 0
	for {
		if gi < len(g) && g[gi].kind == star {
			starAt, mark = gi, si+g.skip(gi, name[si:])
			gi, si = gi+1, mark
			continue
		}
		if si == len(name) {
			return gi == len(g)
		}
		if gi < len(g) {
			r, size := nextRune(name[si:])
			if g[gi].takes(r) {
				gi++
				si += size
				continue
			}
		} else if starAt == len(g)-1 && starAt >= 0 {
			return true // a final star takes the rest
		}
		if starAt < 0 {
			return false
		}
		_, size := nextRune(name[mark:])
		mark += size
		mark += g.skip(starAt, name[mark:])
		gi, si = starAt+1, mark
	}
}

// skip returns how much of rest the star at g[at] takes for sure, because what
// comes next is an ASCII character that is not there before. It is all of
// rest if that never comes.
func (g glob) skip(at int, rest []byte) int {
	if at+1 == len(g) || g[at+1].kind != one || g[at+1].r >= utf8.RuneSelf {
		return 0
	}
	if i := bytes.IndexByte(rest, byte(g[at+1].r)); i >= 0 {
		return i
	}
	return len(rest)
}

// nextRune decodes one rune; a byte that is not UTF-8 gets a number of its
// own, outside Unicode.
func nextRune(s []byte) (rune, int) {
	if s[0] < utf8.RuneSelf {
		return rune(s[0]), 1
	}
	r, size := utf8.DecodeRune(s)
	if r == utf8.RuneError && size == 1 {
		return unicode.MaxRune + 1 + rune(s[0]), 1
	}
	return r, size
}

func (t token) takes(r rune) bool {
	switch t.kind {
	case any1:
		return true
	case class:
		return t.holds(r) != t.negate
	}
	return t.r == r
}

// holds asks for every case of r, so that [A-Z] takes a folded letter.
func (t token) holds(r rune) bool {
	for o := r; ; {
		for i := 0; i < len(t.ranges); i += 2 {
			if t.ranges[i] <= o && o <= t.ranges[i+1] {
				return true
			}
		}
		if o > unicode.MaxRune {
			return false
		}
		if o = unicode.SimpleFold(o); o == r {
			return false
		}
	}
}
