package guard

import "strings"

// sedCommand finds sed's programs among its words and looks at each.
func (l *look) sedCommand(args []token, in dirs) {
	var scripts []token
	given, inPlace := false, false
	var operands []token
	for i := 0; i < len(args); i++ {
		t := args[i]
		if t.shift || t.option {
			if len(scripts) == 0 && !given || optionAfter(args[i:]) && t.option {
				l.opaque("the program of sed is made at run time", "write the program out, or ./* for *")
				l.notInspection("the program of sed is made at run time")
				return
			}
			operands = append(operands, t)
			continue
		}
		if t.text == "--" {
			operands = append(operands, args[i+1:]...)
			break
		}
		if len(t.text) < 2 || t.text[0] != '-' {
			operands = append(operands, t)
			continue
		}
		if long, ok := strings.CutPrefix(t.text, "--"); ok {
			word, _, eq := strings.Cut(long, "=")
			switch {
			case strings.HasPrefix("expression", word) && eq:
				given, scripts = true, append(scripts, t.from(len(word)+3))
			case strings.HasPrefix("expression", word):
				if i++; i < len(args) {
					given, scripts = true, append(scripts, args[i])
				}
			case word == "in-place" || strings.HasPrefix("in-place", word):
				inPlace = true
				l.path(t, in)
			case word == "quiet", word == "silent", word == "null-data", word == "regexp-extended", word == "separate",
				word == "unbuffered", word == "posix", word == "debug", word == "sandbox", word == "follow-symlinks",
				word == "version", word == "help":
			default:
				l.unsure("sed with the option " + show(t.text))
				return
			}
			continue
		}
	cluster:
		for j := 1; j < len(t.text); j++ {
			val := t.from(j + 1)
			switch t.text[j] {
			case 'e', 'f', 'l':
				if val.text == "" {
					if i++; i >= len(args) {
						return
					}
					val = args[i]
				}
				switch t.text[j] {
				case 'e':
					given, scripts = true, append(scripts, val)
				case 'f':
					given = true
					l.path(val, in)
					if strings.HasPrefix(val.text, "/dev/") || val.text == "-" {
						l.opaque("sed reads its program from its input", "")
					}
					l.notInspection("sed -f runs a program that is not in the text")
				}
				break cluster
			case 'i', 'I':
				inPlace = true
				l.path(val, in)
				break cluster
			case 'n', 'E', 'r', 's', 'u', 'z', 'a', 'b':
			default:
				l.unsure("sed with the option " + show(t.text))
				return
			}
		}
	}
	if inPlace {
		l.notInspection("sed -i writes files")
	}
	if !given && len(operands) > 0 {
		scripts, operands = operands[:1], operands[1:]
	}
	var all strings.Builder
	for i, s := range scripts {
		if !s.known() || strings.IndexByte(s.kind, number) >= 0 && strings.ContainsAny(s.text, "we") {
			l.opaque("the program of sed is made at run time", "write the program out")
			l.notInspection("the program of sed is made at run time")
			continue
		}
		if i > 0 {
			all.WriteByte('\n')
		}
		all.WriteString(s.text)
	}
	l.sedProgram(all.String(), in)
	l.generic(operands, in)
}

// sedProgram reads a program as GNU sed does and stops at what it does not
// know. It looks for commands that run something or open a file: e, r, R, w,
// W and the flags e and w of s.
func (l *look) sedProgram(src string, in dirs) {
	p := sedReader{s: src}
	for !l.done {
		p.skip(" \t\n;")
		if p.eof() {
			return
		}
		if !p.address() {
			l.unsure("a sed program that the guard cannot read")
			return
		}
		p.skip(" \t!")
		if p.eof() {
			l.unsure("a sed program that the guard cannot read")
			return
		}
		c := p.s[p.i]
		p.i++
		switch c {
		case '{', '}', '=', 'd', 'D', 'F', 'g', 'G', 'h', 'H', 'n', 'N', 'p', 'P', 'x', 'z':
		case '#':
			p.line()
		case ':', 'b', 't', 'T', 'v':
			// A label ends at a blank or a semicolon; some seds read on to
			// the end of the line, and find less.
			p.skip(" \t")
			for !p.eof() && strings.IndexByte(" \t\n;}", p.s[p.i]) < 0 {
				p.i++
			}
		case 'l', 'L', 'q', 'Q':
			p.skip(" \t0123456789")
		case 'a', 'i', 'c':
			p.text()
		case 'r', 'R', 'w', 'W':
			l.sedFile(c, p.line(), in)
		case 'e':
			l.unsure("the command e of sed runs a command")
			return
		case 'y':
			if _, ok := p.delimited(2); !ok {
				l.unsure("a sed program that the guard cannot read")
				return
			}
		case 's':
			if _, ok := p.delimited(2); !ok {
				l.unsure("a sed program that the guard cannot read")
				return
			}
			for !p.eof() && strings.IndexByte("gpiImM0123456789", p.s[p.i]) >= 0 {
				p.i++
			}
			if p.eof() {
				return
			}
			switch p.s[p.i] {
			case 'e':
				l.unsure("the flag e of sed's s runs a command")
				return
			case 'w':
				p.i++
				l.sedFile('w', p.line(), in)
			}
		default:
			l.unsure("a sed program that the guard cannot read")
			return
		}
		p.skip(" \t")
		if p.eof() || strings.IndexByte(";\n}#", p.s[p.i]) >= 0 || c == '{' || c == '}' {
			continue
		}
		l.unsure("a sed program that the guard cannot read")
		return
	}
}

func (l *look) sedFile(c byte, name string, in dirs) {
	name = strings.TrimLeft(name, " \t")
	l.path(quoted(name), in)
	if (c == 'w' || c == 'W') && !harmlessOut(name) {
		l.notInspection("the command " + string(rune(c)) + " of sed writes a file")
	}
}

type sedReader struct {
	s string
	i int
}

func (p *sedReader) eof() bool { return p.i >= len(p.s) }

func (p *sedReader) skip(set string) { p.i += span(p.s[p.i:], set, len(p.s)) }

// line takes the rest of the line.
func (p *sedReader) line() string {
	n := strings.IndexByte(p.s[p.i:], '\n')
	if n < 0 {
		n = len(p.s) - p.i
	}
	s := p.s[p.i : p.i+n]
	p.i += n
	return s
}

// text takes the text of a, i and c: to the first line end that no backslash
// precedes. In GNU's one-line form the same rule holds.
func (p *sedReader) text() {
	for !p.eof() && p.s[p.i] != '\n' {
		if p.s[p.i] == '\\' {
			p.i++
		}
		p.i++
	}
	p.i = min(p.i, len(p.s))
}

// address skips up to two addresses.
func (p *sedReader) address() bool {
	for n := 0; n < 2; n++ {
		switch c := p.s[p.i]; {
		case c >= '0' && c <= '9':
			p.skip("0123456789")
			if !p.eof() && p.s[p.i] == '~' {
				p.i++
				p.skip("0123456789")
			}
		case c == '$':
			p.i++
		case (c == '+' || c == '~') && n == 1:
			p.i++
			p.skip("0123456789")
		case c == '/' || c == '\\':
			if c == '\\' {
				p.i++
			}
			if _, ok := p.delimited(1); !ok {
				return false
			}
			p.skip("IM")
		default:
			return n == 0
		}
		p.skip(" \t")
		if p.eof() {
			return false
		}
		if p.s[p.i] != ',' {
			return true
		}
		if n == 1 {
			return false
		}
		p.i++
		p.skip(" \t")
		if p.eof() {
			return false
		}
	}
	return true
}

// delimited skips n parts that end at the delimiter, which is the next byte.
// Where a bracket expression holds the delimiter, seds disagree on the end:
// that is not ok.
func (p *sedReader) delimited(n int) (end int, ok bool) {
	if p.eof() {
		return 0, false
	}
	d := p.s[p.i]
	if d == '\n' || d == '\\' || d >= 0x80 {
		return 0, false
	}
	p.i++
	bracket := false
	for part := 0; part < n; {
		if p.eof() {
			return 0, false
		}
		c := p.s[p.i]
		switch {
		case c == '\\':
			p.i++
			if p.eof() {
				return 0, false
			}
		case c == d:
			if bracket {
				return 0, false
			}
			part++
			bracket = false
		case c == '[' && part == 0 && n > 0:
			bracket = p.bracketHolds(d)
		}
		p.i++
	}
	return p.i, true
}

// bracketHolds says that the bracket expression at i holds d.
func (p *sedReader) bracketHolds(d byte) bool {
	j := p.i + 1
	if j < len(p.s) && p.s[j] == '^' {
		j++
	}
	if j < len(p.s) && p.s[j] == ']' {
		j++
	}
	for ; j < len(p.s) && p.s[j] != '\n'; j++ {
		if p.s[j] == ']' {
			return strings.IndexByte(p.s[p.i:j], d) >= 0
		}
		if p.s[j] == '[' && j+1 < len(p.s) && strings.IndexByte(":.=", p.s[j+1]) >= 0 {
			if e := strings.Index(p.s[j+2:], p.s[j+1:j+2]+"]"); e >= 0 {
				j += e + 3
			}
		}
	}
	return false
}
