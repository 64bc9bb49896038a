package guard

import "strings"

// perl looks at a perl filter: -n, -p or -e with a program of plain text
// operations. Everything else that runs code from the command line is not
// told from here.
func (l *look) perl(name string, args []token, in dirs) {
	l.notInspection(show(name) + " is not on the inspection list")
	code := ""
	seen := false
	i := 0
	for ; i < len(args); i++ {
		t := args[i]
		if t.option || t.shift || !t.known() {
			l.unsure(name + " runs a program that is made at run time")
			return
		}
		if t.text == "--" {
			i++
			break
		}
		if len(t.text) < 2 || t.text[0] != '-' {
			break
		}
		if t.text == "--version" || t.text == "--help" || t.text == "-v" || t.text == "-V" {
			return
		}
	cluster:
		for j := 1; j < len(t.text); j++ {
			switch c := t.text[j]; c {
			case 'e', 'E':
				v := t.from(j + 1)
				if v.text == "" {
					if i++; i >= len(args) {
						return
					}
					v = args[i]
				}
				if !v.exact() {
					l.unsure(name + " runs a program that is made at run time")
					return
				}
				code += v.text + "\n"
				seen = true
				break cluster
			case 'i':
				l.path(t.from(j+1), in)
				l.notInspection("perl -i writes files")
				break cluster
			case 'F':
				code += strings.ReplaceAll(t.text[j+1:], "/", " ") + "\n"
				break cluster
			case 'n', 'p', 'l', 'a', 'w', 'W', 'c', 'T', 't', 's', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
			default:
				l.unsure(name + " with the option " + show(t.text))
				return
			}
		}
	}
	rest := args[min(i, len(args)):]
	if !seen {
		if len(rest) == 0 {
			l.unsure(name + " runs what it reads from its input")
			return
		}
		l.script(name, rest[0], in)
		l.generic(rest[1:], in)
		return
	}
	if why := perlProgram(code); why != "" {
		l.unsure("a perl program with " + why)
		return
	}
	for _, t := range rest {
		// Old perl opens "cmd|" as a pipe.
		if strings.ContainsAny(t.text, "|<>") {
			l.unsure("a perl operand that runs a command")
		}
		l.path(t, in)
	}
}

// perlProgram names the first thing in code by which a perl program could
// reach a file, a process or other code. It looks at words wherever they are,
// strings and patterns included, and so refuses more than it must.
func perlProgram(code string) string {
	for i := 0; i < len(code); i++ {
		c := code[i]
		switch {
		case c == '`':
			return "a backtick"
		case c == '&' && !strings.HasPrefix(code[i:], "&&") && (i == 0 || code[i-1] != '&'):
			return "a call by &"
		case c == ':' && strings.HasPrefix(code[i:], "::"):
			return "a package"
		case c == '-' && strings.HasPrefix(code[i:], "->"):
			return "a reference"
		case c == '(' && (strings.HasPrefix(code[i:], "(?{") || strings.HasPrefix(code[i:], "(??")):
			return "code in a pattern"
		case c == '*' && i+1 < len(code) && code[i+1] == '{':
			return "a glob"
		case c == '@' && strings.HasPrefix(code[i:], "@{"), c == '$' && strings.HasPrefix(code[i:], "${"):
			return "a reference"
		case c == '<' && i+1 < len(code):
			if strings.HasPrefix(code[i:], "<>") || strings.HasPrefix(code[i:], "<STDIN>") {
				continue
			}
			if n := code[i+1]; n == '/' || n == '.' || n == '~' || n == '<' || isLetter(n) || n == '"' || n == '\'' {
				return "an input by <...>"
			}
		case strings.IndexByte(nameChars, c) >= 0:
			n := span(code[i:], nameChars, len(code))
			word := code[i : i+n]
			if perlWord(word) {
				return "the word " + show(word)
			}
			i += n - 1
		}
	}
	return ""
}

func perlWord(w string) bool {
	switch w {
	case "open", "opendir", "sysopen", "system", "exec", "fork", "qx", "eval", "evalbytes", "require", "use", "no", "do",
		"glob", "unlink", "rename", "link", "symlink", "mkdir", "rmdir", "chdir", "chmod", "chown", "utime", "truncate",
		"readlink", "stat", "lstat", "socket", "connect", "bind", "syscall", "ioctl", "fcntl", "dbmopen", "tie", "ARGV",
		"STDOUT", "STDERR", "DATA", "INC", "ENV", "SIG", "BEGIN", "END", "INIT", "CHECK", "UNITCHECK", "AUTOLOAD", "kill",
		"umask", "chroot", "dump", "import", "local", "sub", "package", "CORE", "main", "readline", "readpipe", "format", "select",
		"pipe", "wait", "waitpid", "exit", "goto", "__FILE__", "__DATA__", "__END__", "getpwnam", "getpwuid", "getpwent",
		"ee", "eeg", "gee", "ege", "eer", "ree", "bless", "ref", "can", "isa", "write", "sysread", "syswrite",
		"fileno", "File", "IO", "POSIX", "Fcntl":
		return true
	}
	// Flags of s///: two e's evaluate the result.
	return strings.Count(w, "e") >= 2 && strings.Trim(w, "msixpodualngcer") == ""
}
