package guard

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// ansi decodes the text of $'...'. It gives up (false) on what Bash's own
// versions disagree on: a NUL, \x{...}, code points that are none.
func ansi(s string) (string, bool) {
	if strings.IndexByte(s, '\\') < 0 {
		return s, true
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b = append(b, s[i])
			continue
		}
		i++
		switch c := s[i]; c {
		case 'a':
			b = append(b, 7)
		case 'b':
			b = append(b, 8)
		case 'e', 'E':
			b = append(b, 27)
		case 'f':
			b = append(b, 12)
		case 'n':
			b = append(b, '\n')
		case 'r':
			b = append(b, '\r')
		case 't':
			b = append(b, '\t')
		case 'v':
			b = append(b, 11)
		case '\\', '\'', '"', '?':
			b = append(b, c)
		case '0', '1', '2', '3', '4', '5', '6', '7':
			n := span(s[i:], "01234567", 3)
			v, _ := strconv.ParseUint(s[i:i+n], 8, 16)
			if byte(v) == 0 {
				return "", false
			}
			b = append(b, byte(v))
			i += n - 1
		case 'x', 'u', 'U':
			most := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
			n := span(s[i+1:], "0123456789abcdefABCDEF", most)
			if n == 0 {
				if c == 'x' && strings.HasPrefix(s[i+1:], "{") {
					return "", false
				}
				b = append(b, '\\', c)
				continue
			}
			v, _ := strconv.ParseUint(s[i+1:i+1+n], 16, 64)
			if v == 0 {
				return "", false
			}
			if c == 'x' {
				b = append(b, byte(v))
			} else if v > utf8.MaxRune || !utf8.ValidRune(rune(v)) {
				return "", false
			} else {
				b = utf8.AppendRune(b, rune(v))
			}
			i += n
		case 'c':
			return "", false
		default:
			b = append(b, '\\', c)
		}
	}
	return string(b), true
}

// span counts the leading bytes of s that are in set, at most most.
func span(s, set string, most int) int {
	n := 0
	for n < len(s) && n < most && strings.IndexByte(set, s[n]) >= 0 {
		n++
	}
	return n
}

// braces expands {a,b} and {1..3} as Bash does: only bare braces count, and
// what does not close or holds neither comma nor range stands for itself. Of
// too many words nothing is known.
func braces(t token, total *int) []token {
	if strings.IndexByte(t.text, '{') < 0 {
		return []token{t}
	}
	out, ok := []token(nil), strings.Count(t.text, "{") <= maxOpenBraces
	if ok {
		out, ok = appendBraces(nil, t, total, 0)
	}
	if !ok {
		return []token{whole(spread)}
	}
	if len(out) > 1 {
		for i := range out {
			// An empty word vanishes unless it was quoted, which is no
			// longer known.
			out[i].shift = out[i].text == ""
			out[i].option = out[i].shift
		}
	}
	return out
}

func appendBraces(out []token, t token, total *int, depth int) ([]token, bool) {
	if depth > 32 {
		return nil, false
	}
	for i := 0; i < len(t.text); i++ {
		if !t.bare(i, '{') || i > 0 && t.bare(i-1, '$') {
			continue
		}
		end, commas := t.closing(i)
		if end < 0 {
			continue
		}
		pre, post := t.cut(0, i), t.from(end+1)
		var items []token
		if len(commas) > 0 {
			at := i + 1
			for _, c := range append(commas, end) {
				sub, ok := appendBraces(nil, t.cut(at, c), total, depth+1)
				if !ok {
					return nil, false
				}
				items = append(items, sub...)
				at = c + 1
			}
		} else {
			if in := t.cut(i+1, end); strings.Contains(in.text, "{") && strings.Contains(in.text, "..") {
				return nil, false // braces within a range: Bash has its own ways
			}
			seq, is, ok := sequence(t.cut(i+1, end))
			if !ok {
				return nil, false
			}
			if !is {
				if strings.Contains(post.text, ",") {
					return nil, false // Bash may pair the braces otherwise
				}
				continue // the braces stand for themselves; look inside them
			}
			items = seq
		}
		rest, ok := appendBraces(nil, post, total, depth+1)
		if !ok {
			return nil, false
		}
		for _, it := range items {
			for _, r := range rest {
				j := token{text: pre.text + it.text + r.text, kind: pre.kind + it.kind + r.kind}
				*total += len(j.text) + 1
				if len(out) >= maxBraces || *total > maxBraceBytes {
					return nil, false
				}
				out = append(out, j)
			}
		}
		return out, true
	}
	return append(out, t), true
}

func (t token) bare(i int, c byte) bool { return t.text[i] == c && t.kind[i] == plain }

// closing finds the brace that closes the one at i, and the commas between.
func (t token) closing(i int) (end int, commas []int) {
	depth := 0
	for j := i + 1; j < len(t.text); j++ {
		switch {
		case t.bare(j, '{'):
			depth++
		case t.bare(j, '}'):
			if depth == 0 {
				return j, commas
			}
			depth--
		case t.bare(j, ',') && depth == 0:
			commas = append(commas, j)
		}
	}
	return -1, nil
}

// sequence expands the inside of {x..y} or {x..y..step}. ok is false when it
// has too many words.
func sequence(t token) (items []token, is, ok bool) {
	if strings.Trim(t.kind, string(rune(plain))) != "" && strings.Contains(t.text, "..") {
		return nil, true, false // Bash's view of quotes in here varies
	}
	p := strings.Split(t.text, "..")
	if len(p) != 2 && len(p) != 3 {
		return nil, false, true
	}
	step := 1
	if len(p) == 3 {
		n, err := strconv.Atoi(p[2])
		if err != nil {
			return nil, false, true
		}
		step = max(n, -n, 1)
	}
	from, err1 := strconv.Atoi(p[0])
	to, err2 := strconv.Atoi(p[1])
	letters := false
	if err1 != nil || err2 != nil {
		if len(p[0]) != 1 || len(p[1]) != 1 || !isLetter(p[0][0]) || !isLetter(p[1][0]) {
			return nil, false, true
		}
		from, to, letters = int(p[0][0]), int(p[1][0]), true
	}
	if n := max(from-to, to-from); n < 0 || n/step > maxBraces {
		return nil, true, false
	}
	if from > to {
		step = -step
	}
	width := 0
	if zeroed(p[0]) || zeroed(p[1]) {
		width = max(len(p[0]), len(p[1]))
	}
	for v := from; ; v += step {
		if step > 0 && v > to || step < 0 && v < to {
			return items, true, true
		}
		var s string
		if letters {
			s = string(rune(v))
		} else {
			s = padded(v, width)
		}
		items = append(items, quoted(s))
	}
}

func isLetter(b byte) bool { return b|0x20 >= 'a' && b|0x20 <= 'z' }

func zeroed(s string) bool {
	s = strings.TrimPrefix(s, "-")
	return len(s) > 1 && s[0] == '0'
}

func padded(v, width int) string {
	s := strconv.Itoa(v)
	neg := v < 0
	s = strings.TrimPrefix(s, "-")
	if neg {
		width--
	}
	if n := width - len(s); n > 0 {
		s = strings.Repeat("0", n) + s
	}
	if neg {
		return "-" + s
	}
	return s
}
