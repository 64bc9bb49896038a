package gitmeta

import (
	"bytes"
	"fmt"
	"strings"
)

// MaxConfig is the largest configuration file that is read. A larger one is
// hostile: nobody writes a mebibyte of git configuration by hand.
const MaxConfig = 1 << 20

// Entry is one key of a git configuration file.
type Entry struct {
	// Name is the whole name as git compares it: section and key in lower
	// case, the subsection as written ("remote.Origin.url").
	Name string
	// Section, Subsection and Key are Name cut at its first and its last dot,
	// which is how git cuts it whatever brackets and quotes were used. A key
	// before any section has an empty Section.
	Section, Subsection, Key string
	// Value is the value with quotes and escapes resolved.
	Value string
	// NoValue: the key stands alone, which git reads as true.
	NoValue bool
	// Line is where the key starts, from 1.
	Line int
	// Start and End delimit the key and its value in the file, with a comment
	// that follows but without the line's end. Deleting these bytes deletes
	// the entry and nothing else.
	Start, End int

	valueStart int // the byte after '='; 0 when NoValue
}

// SyntaxError says where a file stops being a git configuration.
type SyntaxError struct {
	Line int
	What string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("git config line %d: %s", e.Line, e.What) }

// Parse returns the entries of a git configuration file in file order.
//
// It accepts what git accepts, with one exception: a NUL byte is an error
// (git's C strings end there, so names and values would not be what they
// seem). Everything else that git rejects is a *[SyntaxError]. Includes are
// not followed and the size is not limited: see [MaxConfig].
func Parse(raw []byte) ([]Entry, error) {
	f, err := parse(raw)
	return f.entries, err
}

// file is all that the filter needs: every byte of a file that can carry text
// belongs to an entry, a header or a comment.
type file struct {
	entries  []Entry
	headers  []header
	comments []span // without the '#' or ';'
}

type header struct {
	span
	name string // "section" or "section.subsection"
}

type span struct{ start, end int }

type scanner struct {
	b    []byte
	pos  int
	line int
	nl   int // where the last line end began
	eof  bool
}

// next returns the next character as git sees it: CRLF is one line end, and
// the end of the file is one too.
func (s *scanner) next() byte {
	if s.pos >= len(s.b) {
		s.eof, s.nl = true, len(s.b)
		return '\n'
	}
	c := s.b[s.pos]
	if c == '\r' && s.pos+1 < len(s.b) && s.b[s.pos+1] == '\n' {
		s.nl = s.pos
		s.pos += 2
		s.line++
		return '\n'
	}
	if c == '\n' {
		s.nl = s.pos
		s.line++
	}
	s.pos++
	return c
}

func (s *scanner) fail(what string) error { return &SyntaxError{Line: s.line, What: what} }

func space(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

func alpha(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func keyChar(c byte) bool { return alpha(c) || '0' <= c && c <= '9' || c == '-' }

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c | 0x20
	}
	return c
}

func parse(raw []byte) (file, error) {
	var f file
	s := &scanner{b: raw, line: 1}
	if i := bytes.IndexByte(raw, 0); i >= 0 {
		return f, &SyntaxError{Line: 1 + bytes.Count(raw[:i], []byte("\n")), What: "NUL byte"}
	}
	const bom = "\xef\xbb\xbf"
	if len(raw) > 0 && raw[0] == bom[0] {
		if !bytes.HasPrefix(raw, []byte(bom)) {
			return f, s.fail("partial byte order mark")
		}
		s.pos = len(bom)
	}
	prefix := "" // the section with its final dot
	for {
		start := s.pos
		c := s.next()
		switch {
		case c == '\n' && s.eof:
			return f, nil
		case space(c):
		case c == '#' || c == ';':
			s.skipLine()
			f.comments = append(f.comments, span{start + 1, s.nl})
			if s.eof {
				return f, nil
			}
		case c == '[':
			name, err := s.sectionName()
			if err != nil {
				return f, err
			}
			f.headers = append(f.headers, header{span{start, s.pos}, name})
			prefix = name + "."
		case alpha(c):
			e, comment, err := s.entry(prefix, start)
			if err != nil {
				return f, err
			}
			f.entries = append(f.entries, e)
			if comment >= 0 {
				f.comments = append(f.comments, span{comment + 1, e.End})
			}
			if s.eof {
				return f, nil
			}
		default:
			return f, s.fail("not a section, key or comment")
		}
	}
}

func (s *scanner) skipLine() {
	for s.next() != '\n' {
	}
}

// sectionName reads from behind '[' to ']'.
func (s *scanner) sectionName() (string, error) {
	var name []byte
	for {
		c := s.next()
		switch {
		case s.eof || c == '\n':
			return "", s.fail("section header does not end")
		case c == ']' && len(name) == 0:
			return "", s.fail("empty section name")
		case c == ']':
			return string(name), nil
		case space(c):
			return s.subsection(name)
		case !keyChar(c) && c != '.':
			return "", s.fail("character not allowed in a section name")
		}
		name = append(name, lower(c))
	}
}

func (s *scanner) subsection(name []byte) (string, error) {
	c := s.next()
	for ; space(c); c = s.next() {
		if c == '\n' {
			return "", s.fail("section header does not end")
		}
	}
	if c != '"' {
		return "", s.fail("subsection is not quoted")
	}
	name = append(name, '.')
	for {
		c = s.next()
		if c == '"' {
			break
		}
		if c == '\\' {
			c = s.next()
		}
		if c == '\n' {
			return "", s.fail("section header does not end")
		}
		name = append(name, c)
	}
	if s.next() != ']' {
		return "", s.fail("section header does not end")
	}
	return string(name), nil
}

// entry reads a key whose first character, at start, is already consumed. It
// also returns where a comment behind the value starts, or -1.
func (s *scanner) entry(prefix string, start int) (e Entry, comment int, err error) {
	e.Line, e.Start = s.line, start
	end := s.pos
	c := s.next()
	for !s.eof && keyChar(c) {
		end = s.pos
		c = s.next()
	}
	key := strings.ToLower(string(s.b[start:end]))
	for c == ' ' || c == '\t' {
		c = s.next()
	}
	comment = -1
	switch c {
	case '\n':
		e.NoValue = true
	case '=':
		e.valueStart = s.pos
		if e.Value, comment, err = s.value(); err != nil {
			return e, -1, err
		}
	default:
		return e, -1, s.fail("character not allowed in a key")
	}
	e.End = s.nl
	e.setName(prefix + key)
	return e, comment, nil
}

func (s *scanner) value() (string, int, error) {
	var v []byte
	quoted, keep := false, 0 // keep: the length without trailing white space
	for {
		at := s.pos
		c := s.next()
		switch {
		case c == '\n':
			if quoted {
				return "", -1, s.fail("quote does not end")
			}
			return string(v[:keep]), -1, nil
		case space(c) && !quoted:
			if len(v) > 0 {
				v = append(v, c)
			}
			continue
		case (c == '#' || c == ';') && !quoted:
			s.skipLine()
			return string(v[:keep]), at, nil
		case c == '"':
			quoted = !quoted
		case c == '\\':
			switch c = s.next(); c {
			case '\n': // the line goes on
			case 't':
				v = append(v, '\t')
			case 'b':
				v = append(v, '\b')
			case 'n':
				v = append(v, '\n')
			case '\\', '"':
				v = append(v, c)
			default:
				return "", -1, s.fail("unknown escape")
			}
		default:
			v = append(v, c)
		}
		keep = len(v)
	}
}

// setName fills Name and the three parts of it.
func (e *Entry) setName(name string) {
	e.Name, e.Section, e.Subsection, e.Key = name, "", "", name
	first, last := strings.IndexByte(name, '.'), strings.LastIndexByte(name, '.')
	if first < 0 {
		return
	}
	e.Section, e.Key = name[:first], name[last+1:]
	if first < last {
		e.Subsection = name[first+1 : last]
	}
}

// hasSubsection tells a.key from a..key, the one with an empty subsection.
func (e Entry) hasSubsection() bool {
	return strings.IndexByte(e.Name, '.') != strings.LastIndexByte(e.Name, '.')
}

// Encode writes entries as a configuration file that parses back to the same
// names and values. Entries without a section are left out: git gives them no
// meaning.
func Encode(entries []Entry) []byte {
	var b []byte
	open := "" // the header that is in force
	for _, e := range entries {
		if e.Section == "" {
			continue
		}
		if head := headerText(e.Section, e.Subsection, e.hasSubsection()); head != open {
			b = append(append(b, head...), '\n')
			open = head
		}
		b = append(append(b, '\t'), e.Key...)
		if !e.NoValue {
			b = appendValue(append(b, " = "...), e.Value)
		}
		b = append(b, '\n')
	}
	return b
}

func headerText(section, sub string, has bool) string {
	if !has {
		return "[" + section + "]"
	}
	sub = strings.ReplaceAll(sub, `\`, `\\`)
	return "[" + section + ` "` + strings.ReplaceAll(sub, `"`, `\"`) + `"]`
}

func appendValue(b []byte, v string) []byte {
	b = append(b, '"')
	for i := range len(v) {
		switch c := v[i]; c {
		case '\n':
			b = append(b, `\n`...)
		case '\t':
			b = append(b, `\t`...)
		case '\b':
			b = append(b, `\b`...)
		case '"', '\\':
			b = append(b, '\\', c)
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}
