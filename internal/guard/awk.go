package guard

import "strings"

// awkCommand finds awk's program among its words and looks at it.
func (l *look) awkCommand(args []token, in dirs) {
	var programs []token
	given := false
	i := 0
	for ; i < len(args); i++ {
		t := args[i]
		if t.option || t.shift {
			if !given {
				l.opaque("the program of awk is made at run time", "write the program out")
				l.notInspection("the program of awk is made at run time")
				return
			}
			break
		}
		if t.text == "--" {
			i++
			break
		}
		if len(t.text) < 2 || t.text[0] != '-' {
			break
		}
		if t.text == "--version" || t.text == "--help" || t.text == "--posix" || t.text == "--re-interval" || t.text == "--csv" {
			continue
		}
		if long, ok := strings.CutPrefix(t.text, "--"); ok {
			word, _, eq := strings.Cut(long, "=")
			if eq && (word == "field-separator" || word == "assign") {
				continue
			}
			l.unsure("awk with the option " + show(t.text))
			return
		}
		val := t.from(2)
		switch t.text[1] {
		case 'F', 'v', 'f', 'e':
			if val.text == "" {
				if i++; i >= len(args) {
					return
				}
				val = args[i]
			}
			switch t.text[1] {
			case 'v', 'F':
				if val.shift {
					l.unsure("awk runs a program that is made at run time")
				}
			case 'e':
				given, programs = true, append(programs, val)
			case 'f':
				given = true
				l.path(val, in)
				if strings.HasPrefix(val.text, "/dev/") || val.text == "-" {
					l.opaque("awk reads its program from its input", "")
				}
				l.notInspection("awk -f runs a program that is not in the text")
			}
		default:
			l.unsure("awk with the option " + show(t.text))
			return
		}
	}
	operands := args[min(i, len(args)):]
	if !given && len(operands) > 0 {
		programs, operands = operands[:1], operands[1:]
	}
	for _, p := range programs {
		if !p.exact() {
			l.opaque("the program of awk is made at run time", "pass values with -v NAME=VALUE")
			l.notInspection("the program of awk is made at run time")
			return
		}
		l.awkProgram(p.text, in)
	}
	l.generic(operands, in)
}

// awkProgram looks for what opens a file or runs a command: system(), pipes,
// redirections, getline with a source, ARGV, gawk's @load, @include and
// indirect calls.
func (l *look) awkProgram(src string, in dirs) {
	for i := 0; i < len(src) && !l.done; {
		j := strings.Index(src[i:], "system")
		if j < 0 {
			break
		}
		i += j + len("system")
		rest := strings.TrimLeft(src[i:], " \t\n\\")
		if strings.HasPrefix(rest, "(") {
			l.unsure("awk's system() runs a command")
			return
		}
	}
	const (
		operator = iota // a slash after it begins a regular expression
		operand         // a slash after it divides
	)
	prev, printing, depth, getline := operator, -1, 0, false
	var control []bool // by open parenthesis: it belongs to if, while, for
	keyword := false
	for i := 0; i < len(src) && !l.done; {
		c := src[i]
		switch {
		case c == ' ' || c == '\t':
			i++
			continue
		case c == '\\' && i+1 < len(src) && src[i+1] == '\n':
			i += 2
			continue
		case c == '#':
			n := strings.IndexByte(src[i:], '\n')
			if n < 0 {
				return
			}
			i += n
			continue
		case c == '"':
			n := closingQuote(src[i:], '"')
			if n < 0 {
				l.unsure("an awk program that the guard cannot read")
				return
			}
			i += n
			prev = operand
		case c == '/' && prev == operator:
			n := closingSlash(src[i:])
			if n < 0 {
				l.unsure("an awk program that the guard cannot read")
				return
			}
			i += n
			prev = operand
		case strings.IndexByte(nameChars, c) >= 0:
			n := span(src[i:], nameChars+".", len(src))
			word := src[i : i+n]
			i += n
			prev = operand
			keyword = word == "if" || word == "while" || word == "for" || word == "switch"
			switch word {
			case "print", "printf":
				printing, prev = depth, operator
			case "in", "return", "else", "do", "case", "delete", "exit":
				prev = operator
			case "getline":
				getline = true
				if strings.HasPrefix(strings.TrimLeft(src[i:], " \t"), "/") {
					l.unsure("an awk program that the guard cannot read")
					return
				}
			case "ARGV", "ARGC", "PROCINFO", "FUNCTAB", "SYMTAB":
				l.unsure("an awk program that uses " + word)
				return
			}
		case c == '|' && strings.HasPrefix(src[i:], "||"):
			i += 2
			prev = operator
		case c == '|':
			l.unsure("a pipe in an awk program runs a command")
			return
		case c == '@':
			l.unsure("an awk program that includes or calls what is not in the text")
			return
		case c == '<' && getline:
			l.unsure("an awk program that reads another file")
			return
		case c == '>' && printing >= 0 && depth <= printing:
			i++
			if i < len(src) && src[i] == '>' {
				i++
			}
			rest := strings.TrimLeft(src[i:], " \t")
			n := -1
			if strings.HasPrefix(rest, `"`) {
				n = closingQuote(rest, '"')
			}
			after := ""
			if n > 0 {
				after = strings.TrimLeft(rest[n:], " \t")
			}
			if n < 0 || after != "" && strings.IndexByte(";}\n", after[0]) < 0 || strings.IndexByte(rest[:n], '\\') >= 0 {
				l.unsure("an awk program that writes to a file whose name is made at run time")
				return
			}
			l.path(quoted(rest[1:n-1]), in)
			if !harmlessOut(rest[1 : n-1]) {
				l.notInspection("an awk program that writes a file")
			}
			printing, prev = -1, operator
		case c == ')' || c == ']':
			depth--
			i++
			prev = operand
			if n := len(control) - 1; n >= 0 && c == ')' {
				if control[n] {
					prev = operator // if (x) /re/
				}
				control = control[:n]
			}
		case c == '(' || c == '[':
			depth++
			i++
			prev = operator
			if c == '(' {
				control = append(control, keyword)
				keyword = false
			}
		case c == ';' || c == '}' || c == '\n' || c == '{':
			i++
			printing, prev = -1, operator
			if c == '{' || c == '}' {
				depth = 0
			}
		case (c == '+' || c == '-') && i+1 < len(src) && src[i+1] == c:
			i += 2 // after an operand it stays one; before one it stays none
		case c >= 0x80:
			i++
			prev = operand
		default:
			i++
			prev = operator
		}
	}
}

// closingQuote returns the length of the string that s begins with.
func closingQuote(s string, q byte) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case q:
			return i + 1
		case '\n':
			return -1
		}
	}
	return -1
}

// closingSlash returns the length of the regular expression that s begins
// with, and gives up where awks disagree: a slash in brackets.
func closingSlash(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '/':
			return i + 1
		case '\n':
			return -1
		case '[':
			j := i + 1
			if j < len(s) && s[j] == '^' {
				j++
			}
			if j < len(s) && s[j] == ']' {
				j++
			}
			for j < len(s) && s[j] != ']' && s[j] != '\n' {
				if s[j] == '\\' {
					j++
				}
				j++
			}
			if j < len(s) && s[j] == ']' && strings.IndexByte(s[i:j], '/') >= 0 {
				return -1
			}
		}
	}
	return -1
}
