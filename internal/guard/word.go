package guard

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Every byte of a token has a kind, which says where it comes from and with
// that what the shell may still do to it.
const (
	plain   = 'l' // bare text: globs, braces and a tilde are alive
	literal = 'q' // quoted or escaped: stands for itself
	value   = 'v' // from an unquoted variable: globs are alive, braces are not
	number  = 'n' // a number or a bare name, not known which: no slash, no dot
	unknown = 'u' // any text, one word
	spread  = 'U' // any text, any number of words
)

// token is one word of a command after expansion, as far as that is known.
type token struct {
	text, kind string
	// shift: it may become no word or several, so that what follows may
	// stand elsewhere. option: it may begin with a dash.
	shift, option bool
}

// quoted is the token of text that stands for itself.
func quoted(s string) token { return token{text: s, kind: strings.Repeat(string(literal), len(s))} }

// known says that the whole text is known, globs apart.
func (t token) known() bool {
	return strings.IndexByte(t.kind, unknown) < 0 && strings.IndexByte(t.kind, spread) < 0
}

// exact says that the text is what the command gets.
func (t token) exact() bool {
	return t.known() && !t.glob() && strings.IndexByte(t.kind, number) < 0 && !t.shift
}

// glob says that the shell may replace it by names of files.
func (t token) glob() bool {
	for i := range len(t.text) {
		if t.globAt(i) {
			return true
		}
	}
	return false
}

func (t token) globAt(i int) bool {
	if k := t.kind[i]; k != plain && k != value {
		return false
	}
	switch t.text[i] {
	case '*', '?':
		return true
	case '[':
		return len(t.text) > 1
	}
	return false
}

// hidesOption says that the token may be an option for another reason than
// that it is a glob: whoever can make a file of such a name can make a script
// just as well.
func (t token) hidesOption() bool { return t.option && !(t.known() && t.glob()) }

// from cuts the first n bytes off.
func (t token) from(n int) token {
	t.text, t.kind = t.text[n:], t.kind[n:]
	return t
}

func (t token) cut(i, j int) token {
	t.text, t.kind = t.text[i:j], t.kind[i:j]
	return t
}

// mark finds out whether the token may shift or be an option.
func (t *token) mark() {
	if t.text == "" {
		return
	}
	k := t.kind[0]
	t.option = k == unknown || k == spread || t.globAt(0)
	if strings.IndexByte(t.kind, spread) >= 0 {
		t.shift = true
	}
	if t.glob() {
		// --include=*.go can match nothing but words that begin likewise.
		eq := strings.IndexByte(t.text, '=')
		if eq < 0 || !strings.HasPrefix(t.text, "--") || t.cut(0, eq).glob() {
			t.shift = true
		}
	}
}

const (
	maxAlternatives = 32   // values of variables in one word
	maxBraces       = 1024 // words out of one word
	maxBraceBytes   = 1 << 16
	maxOpenBraces   = 64 // in one word; more would make it quadratic
)

// chars is a word being put together.
type chars struct{ b, k []byte }

func (c *chars) add(s string, k byte) {
	c.b = append(c.b, s...)
	for range len(s) {
		c.k = append(c.k, k)
	}
}

func (c *chars) token() token { return token{text: string(c.b), kind: string(c.k)} }

// whole is the token of a word of which nothing is known.
func whole(k byte) token {
	t := token{text: "?", kind: string(k)}
	t.mark()
	return t
}

// words expands w as the shell does for the words of a command: variables as
// far as their values are known, braces, quotes. It runs nothing.
func (s *scope) words(w *syntax.Word) []token {
	if w == nil {
		return nil
	}
	if len(w.Parts) == 1 {
		if pe, ok := w.Parts[0].(*syntax.ParamExp); ok {
			if vals, ok := s.values(pe); ok {
				return fields(vals)
			}
		}
	}
	var out []token
	alts := s.build(w.Parts)
	total := 0
	for _, c := range alts {
		for _, t := range braces(c.token(), &total) {
			t.mark()
			if len(alts) > 1 || t.text == "" && vanishes(w.Parts) {
				t.shift, t.option = true, true
			}
			out = append(out, t)
		}
	}
	return out
}

// vanishes says that a word of these parts is no word when it is empty.
func vanishes(parts []syntax.WordPart) bool {
	for _, p := range parts {
		switch p.(type) {
		case *syntax.SglQuoted, *syntax.DblQuoted:
			return false
		}
	}
	return true
}

// one expands w where the shell makes one word of it whatever it holds: the
// right side of an assignment, a here-string, a case word.
func (s *scope) one(w *syntax.Word) []token {
	if w == nil {
		return nil
	}
	var out []token
	for _, c := range s.build(w.Parts) {
		t := c.token()
		t.mark()
		out = append(out, t)
	}
	return out
}

// fields splits the values of a bare $x.
func fields(vals []token) []token {
	var out []token
	for _, v := range vals {
		for i := 0; i < len(v.text); {
			if isBlank(v.text[i]) {
				i++
				continue
			}
			j := i
			slash := false
			for j < len(v.text) && !isBlank(v.text[j]) {
				slash = slash || v.text[j] == '/'
				j++
			}
			t := v.cut(i, j)
			kinds := []byte(t.kind)
			for n, k := range kinds {
				if k == literal {
					kinds[n] = value
				}
			}
			t.kind = string(kinds)
			t.mark()
			if slash && t.glob() {
				t = whole(spread) // a matching name may hold blanks
			}
			t.shift = t.shift || len(vals) > 1 || i > 0 || j < len(v.text)
			t.option = t.option || len(vals) > 1
			out = append(out, t)
			i = j
		}
	}
	if len(out) == 0 { // it vanishes
		out = append(out, token{shift: true})
	}
	return out
}

func isBlank(b byte) bool { return b == ' ' || b == '\t' || b == '\n' }

func (s *scope) build(parts []syntax.WordPart) []chars {
	alts := []chars{{}}
	add := func(text string, k byte) {
		for i := range alts {
			alts[i].add(text, k)
		}
	}
	for _, part := range parts {
		switch part := part.(type) {
		case *syntax.Lit:
			b, k := unescape(part.Value)
			for j := range alts {
				alts[j].b, alts[j].k = append(alts[j].b, b...), append(alts[j].k, k...)
			}
		case *syntax.SglQuoted:
			if !part.Dollar {
				add(part.Value, literal)
			} else if text, ok := ansi(part.Value); ok {
				add(text, literal)
			} else {
				add("?", unknown)
			}
		case *syntax.DblQuoted:
			for _, in := range part.Parts {
				if lit, ok := in.(*syntax.Lit); ok {
					add(unescapeQuoted(lit.Value), literal)
					continue
				}
				alts = s.expansion(alts, in, true)
			}
		default:
			alts = s.expansion(alts, part, false)
		}
	}
	return alts
}

// expansion appends what a part that is no text may become.
func (s *scope) expansion(alts []chars, part syntax.WordPart, inQuotes bool) []chars {
	k := byte(spread)
	if inQuotes {
		k = unknown
	}
	var vals []token
	switch part := part.(type) {
	case *syntax.ParamExp:
		v, ok := s.values(part)
		if !ok {
			if part.Param != nil && (part.Param.Value == "@" || part.Index != nil || part.Names != 0) {
				k = spread
			}
			vals = []token{{text: "?", kind: string(k)}}
			break
		}
		vals = v
	case *syntax.ArithmExp:
		vals = []token{{text: "0", kind: string(number)}}
	case *syntax.CmdSubst:
		if s.numeric(part) {
			vals = []token{{text: "0", kind: string(number)}}
			break
		}
		vals = []token{{text: "?", kind: string(k)}}
	default: // process substitution, extended globs
		vals = []token{{text: "?", kind: string(k)}}
	}
	if len(alts)*len(vals) > maxAlternatives {
		vals = []token{{text: "?", kind: string(k)}}
	}
	if len(vals) == 1 { // in place: copying would make a long word quadratic
		for i := range alts {
			alts[i].addValue(vals[0], inQuotes)
		}
		return alts
	}
	out := make([]chars, 0, len(alts)*len(vals))
	for _, a := range alts {
		for _, v := range vals {
			c := chars{append([]byte(nil), a.b...), append([]byte(nil), a.k...)}
			c.addValue(v, inQuotes)
			out = append(out, c)
		}
	}
	return out
}

// addValue appends what an expansion gives.
func (c *chars) addValue(v token, inQuotes bool) {
	switch {
	case inQuotes:
		c.b, c.k = append(c.b, v.text...), append(c.k, v.kind...)
	case strings.ContainsAny(v.text, " \t\n"):
		c.add("?", spread)
	default:
		for i := range len(v.text) {
			kind := v.kind[i]
			if kind == literal {
				kind = value
			}
			c.add(v.text[i:i+1], kind)
		}
	}
}

// unescape removes the backslashes of bare text.
func unescape(s string) (b, k []byte) {
	b, k = make([]byte, 0, len(s)), make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
			if s[i] != '\n' {
				b, k = append(b, s[i]), append(k, literal)
			}
			continue
		}
		b, k = append(b, s[i]), append(k, plain)
	}
	return b, k
}

// unescapeQuoted removes the backslashes of text in double quotes.
func unescapeQuoted(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			switch s[i+1] {
			case '$', '`', '"', '\\':
				i++
			case '\n':
				i++
				continue
			}
		}
		b = append(b, s[i])
	}
	return string(b)
}
