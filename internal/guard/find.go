package guard

import "strings"

// findCommand: patterns are text, -exec is a command of its own.
func (l *look) findCommand(args []token, in dirs) {
	for i := 0; i < len(args) && !l.done; i++ {
		t := args[i]
		if t.shift && t.option || !t.known() && t.option {
			l.opaque("a word of find may become an option that runs a program", "write the word out, or ./* for *")
			l.notInspection("a word of find may become an action")
			continue
		}
		switch t.text {
		case "-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-regex", "-iregex", "-lname",
			"-ilname", "-printf", "-type", "-size", "-mtime", "-mmin", "-atime", "-ctime", "-perm", "-user", "-group",
			"-maxdepth", "-mindepth", "-regextype", "-newermt", "-fstype", "-xtype", "-links", "-inum", "-uid", "-gid",
			"-amin", "-cmin", "-used":
			i++
			if i < len(args) && args[i].shift && !args[i].glob() {
				l.unsure("a word of find is made at run time")
			}
		case "-exec", "-execdir", "-ok", "-okdir":
			n := i + 1
			for n < len(args) && args[n].text != ";" && (args[n].text != "+" || args[n-1].text != "{}") {
				n++
			}
			l.notInspection("find " + t.text + " runs a command")
			l.findExec(args[i+1:n], in)
			i = n
		case "-delete":
			l.notInspection("find -delete removes files")
		case "-fprint", "-fprint0", "-fls", "-fprintf":
			l.notInspection("find " + t.text + " writes a file")
			if i++; i < len(args) {
				l.path(args[i], in)
			}
			if t.text == "-fprintf" {
				i++
			}
		case "-files0-from":
			l.unsure("find -files0-from reads names from a file")
		default:
			l.path(t, in)
		}
	}
}

func (l *look) findExec(cmd []token, in dirs) {
	if len(cmd) == 0 {
		return
	}
	out := make([]token, len(cmd))
	for i, t := range cmd {
		if strings.Contains(t.text, "{}") {
			if i == 0 || t.text != "{}" && l.mayBeText(cmd[0].text) {
				// The name of a file within the text of a program.
				t = whole(unknown)
			} else {
				t = quoted(strings.ReplaceAll(t.text, "{}", "./x"))
			}
		}
		out[i] = t
	}
	argv, calls, find0 := l.argv, l.calls, l.find0
	l.argv, l.calls, l.find0 = true, nil, false
	l.command(out, in)
	l.argv, l.calls, l.find0 = argv, calls, find0
}

// mayBeText: a name pasted into an argument of these becomes part of a program.
func (l *look) mayBeText(name string) bool {
	if base, ok := systemProgram(name); ok {
		name = base
	}
	_, interp := interpreter(name)
	_, wraps := wrappers(name)
	return interp || wraps || isShell(name)
}

// jqCommand: the first operand is a program, and jq's programs open files
// only by import and include.
func (l *look) jqCommand(args []token, in dirs) {
	program := false
	for i := 0; i < len(args) && !l.done; i++ {
		t := args[i]
		switch t.text {
		case "-f", "--from-file":
			program = true
			continue
		case "--arg", "--argjson":
			i += 2
			continue
		case "--slurpfile", "--rawfile":
			if i += 2; i < len(args) {
				l.path(args[i], in)
			}
			continue
		case "--indent":
			i++
			continue
		case "-L", "--library-path":
			l.unsure("jq reads modules from a folder")
			continue
		}
		if len(t.text) > 1 && t.text[0] == '-' && t.text[1] != '-' && strings.IndexByte(t.text, 'f') > 0 {
			program = true
		}
		if strings.HasPrefix(t.text, "--from") {
			program = true
		}
		if strings.HasPrefix(t.text, "-") || program || t.shift || t.option {
			if t.option && !program {
				l.opaque("the program of jq is made at run time", "write the program out")
			}
			l.path(t, in)
			continue
		}
		program = true
		if optionAfter(args[i+1:]) {
			l.path(t, in)
		}
		if hasWord(t.text, "import") || hasWord(t.text, "include") {
			l.unsure("a jq program that imports files")
		}
	}
}

// hasWord says that s holds word between characters that are no part of one.
func hasWord(s, word string) bool {
	for at := 0; ; {
		i := strings.Index(s[at:], word)
		if i < 0 {
			return false
		}
		i += at
		end := i + len(word)
		if (i == 0 || strings.IndexByte(nameChars, s[i-1]) < 0) && (end == len(s) || strings.IndexByte(nameChars, s[end]) < 0) {
			return true
		}
		at = i + 1
	}
}
