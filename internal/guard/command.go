package guard

import (
	"path"
	"strings"
)

const maxWrapped = 32 // commands that run commands, in one command

// command looks at one simple command: its name and its arguments.
func (l *look) command(args []token, in dirs) outcome {
	if l.done {
		return stay(in)
	}
	if len(args) == 0 {
		return stay(in)
	}
	if l.wrapped >= maxWrapped {
		l.unsure("too many commands that run commands")
		return stay(in)
	}
	l.wrapped++
	defer func() { l.wrapped-- }()

	t := args[0]
	if t.text == "" && !t.shift {
		l.notInspection("a command without a name")
		return stay(in)
	}
	if !t.exact() || strings.IndexByte(t.kind, value) >= 0 {
		l.opaque("the name of a command is made at run time", "write the command out")
		l.notInspection("the name of a command is made at run time")
		return stay(in)
	}
	name, rest := t.text, args[1:]
	if strings.IndexByte("=-+~", name[0]) >= 0 {
		l.unsure("a command named " + show(name))
		return stay(in)
	}
	system := true
	if strings.IndexByte(name, '/') >= 0 {
		base, ok := systemProgram(name)
		if system = ok; ok {
			name = base
		} else {
			l.piece(t, in)
		}
	}
	if why := denied(path.Base(name), rest); why != "" {
		l.deny(path.Base(name) + ": " + why)
	}
	l.removesWorkspace(name, rest, in)
	if l.done {
		return stay(in)
	}
	if !system {
		// A program of the workspace: anything, with arguments.
		if _, ok := interpreter(path.Base(name)); ok || isShell(path.Base(name)) {
			l.unsure("a shell or interpreter from " + show(path.Dir(name)))
		}
		l.notInspection(show(name) + " is not on the inspection list")
		l.generic(rest, in)
		return stay(in)
	}
	if l.function(name) && !specialBuiltin(name) {
		l.invoke(name, in)
		l.generic(rest, in)
		if l.set[name+"()"] {
			return stay(in)
		}
	}
	if out, ok := l.wrapper(name, rest, in); ok {
		return out
	}
	if out, ok := l.special(name, rest, in); ok {
		return out
	}
	l.inspectAllowed(name, rest)
	l.operands(name, rest, in)
	return stay(in)
}

func specialBuiltin(name string) bool {
	switch name {
	case ".", "eval", "exec", "exit", "export", "readonly", "return", "set", "shift", "source", "trap", "unset",
		"break", "continue", ":", "command", "builtin", "env", "sh", "bash":
		return true
	}
	return false
}

// removesWorkspace refuses rm -r of the workspace itself, however it is named.
func (l *look) removesWorkspace(name string, args []token, in dirs) {
	if name != "rm" || !hasFlag(args, "-r", "-R", "--recursive") {
		return
	}
	for _, t := range args {
		p := strings.TrimSuffix(t.text, "/*")
		if strings.HasPrefix(p, "-") || p == "" || !t.known() {
			continue
		}
		if p == "*" {
			p = "."
		}
		for _, d := range in {
			full := p
			if !path.IsAbs(full) {
				full = path.Join(d, p)
			}
			if full = path.Clean(full); full == l.o.Workspace || strings.HasPrefix(l.o.Workspace, full+"/") {
				l.deny("rm: it removes the whole workspace")
				return
			}
		}
	}
}

// generic checks every argument as if it were a path.
func (l *look) generic(args []token, in dirs) {
	for _, t := range args {
		l.path(t, in)
	}
}

// special looks at commands with a language or a memory of their own.
func (l *look) special(name string, args []token, in dirs) (outcome, bool) {
	switch {
	case isShell(name):
		l.runShell(name, args, in)
		return stay(in), true
	case !l.argv && (name == "cd" || name == "pushd" || name == "chdir"):
		return l.cd(args, in), true
	}
	if it, ok := interpreter(name); ok {
		l.interpret(name, it, args, in)
		return stay(in), true
	}
	switch name {
	case "popd":
		l.unsure("popd goes to a folder that is not in the text")
	case "eval":
		l.unsure("eval runs text as a command")
	case ".", "source":
		l.unsure("source runs a file as part of the shell")
	case "trap":
		l.trap(args, in)
	case "alias", "bind", "complete", "compgen", "enable", "fc", "history":
		l.unsure(name + " changes what later commands mean")
	case "hash":
		if len(args) > 0 && args[0].text != "-r" {
			l.unsure("hash changes what later commands mean")
		}
	case "set":
		for _, t := range args {
			if t.text == "--" {
				break
			}
			if flagHit(t.text, "-k") || t.text == "keyword" || t.option && !t.glob() {
				l.unsure("set changes how the shell reads what follows")
			}
		}
	case "shopt":
		l.shopt(args)
	case "mapfile", "readarray", "read", "getopts", "unset", "wait", "printf", "test", "[", "export", "declare",
		"local", "typeset", "readonly", "let":
		l.builtin(name, args, in)
	case "find":
		l.findCommand(args, in)
	case "git":
		l.git(args, in)
	case "sed", "gsed":
		l.sedCommand(args, in)
	case "awk", "gawk", "mawk", "nawk":
		l.awkCommand(args, in)
	case "jq":
		l.jqCommand(args, in)
	default:
		if why := runner(name); why != "" {
			l.unsure(name + ": " + why)
			return stay(in), true
		}
		return stay(in), false
	}
	return stay(in), true
}

// cd follows a change of the current folder.
func (l *look) cd(args []token, in dirs) outcome {
	var to []token
	for i, t := range args {
		if t.text == "--" && t.exact() {
			to = args[i+1:]
			break
		}
		switch t.text {
		case "-L", "-P", "-e", "-LP", "-PL", "-n":
			continue
		}
		to = args[i:]
		break
	}
	if len(to) == 0 {
		l.outside("the folder that cd goes to without an argument")
		return stay(in)
	}
	if len(to) > 1 || !to[0].exact() && !to[0].glob() || to[0].option {
		l.opaque("the folder that cd goes to is made at run time", "write the folder out")
		return stay(in)
	}
	t := to[0]
	if t.text != "" && (t.text[0] == '-' || t.text[0] == '+') {
		l.opaque("cd goes to a folder that is not in the text", "write the folder out")
		return stay(in)
	}
	if t.glob() {
		l.opaque("the folder that cd goes to is a pattern", "write the folder out")
		return stay(in)
	}
	l.piece(t, in)
	if l.lost {
		return stay(in)
	}
	var next dirs
	for _, d := range in {
		if len(d)+len(t.text) > maxPath {
			l.lose(in)
			return stay(in)
		}
		p := t.text
		if !path.IsAbs(p) {
			p = path.Join(d, p)
		}
		if p = path.Clean(p); l.inside(p) {
			next = next.with(dirs{p})
		} else {
			l.outside("the folder " + show(p))
		}
	}
	if len(next) == 0 {
		next = in
	}
	return outcome{next, in}
}

func (l *look) trap(args []token, in dirs) {
	for len(args) > 0 && (args[0].text == "--" || args[0].text == "-p" || args[0].text == "-l") {
		args = args[1:]
	}
	if len(args) == 0 {
		return
	}
	if !args[0].exact() {
		l.unsure("trap runs a text that is made at run time")
		return
	}
	if len(args) > 1 && args[0].text != "-" {
		// It may run at any later point, wherever the shell then is.
		if strings.Contains(args[0].text, "..") {
			l.opaque("a trap that names a parent folder", "")
		}
		l.shell(args[0].text, in)
	}
}

func (l *look) shopt(args []token) {
	for _, t := range args {
		switch t.text {
		case "-s", "-u", "-q", "-p", "nullglob", "globstar", "failglob", "dotglob", "nocaseglob", "inherit_errexit",
			"nocasematch", "checkwinsize":
		default:
			l.unsure("shopt changes how the shell reads what follows")
			return
		}
	}
}

// builtin looks at builtins that take names of variables, whose subscripts
// the shell evaluates.
func (l *look) builtin(name string, args []token, in dirs) {
	switch name {
	case "printf":
		if len(args) == 0 || !args[0].option && !strings.HasPrefix(args[0].text, "-v") {
			return
		}
		if args[0].text == "-v" {
			args = args[1:]
		} else {
			args = args[:1]
			args[0] = args[0].from(min(2, len(args[0].text)))
		}
		if len(args) > 0 {
			l.variableName(args[0], in)
		}
	case "test", "[":
		for i, t := range args {
			if len(t.text) != 2 && len(t.text) != 3 || t.text[0] != '-' || !t.exact() {
				continue
			}
			switch t.text {
			case "-v", "-R":
				if i+1 < len(args) {
					l.variableName(args[i+1], in)
				}
			case "-n", "-z", "-o", "-a", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-t":
			case "-nt", "-ot", "-ef":
				if i > 0 {
					l.path(args[i-1], in)
				}
				fallthrough
			default:
				if i+1 < len(args) {
					l.path(args[i+1], in)
				}
			}
		}
	case "export", "declare", "local", "typeset", "readonly":
		for _, t := range args {
			l.declWord(t, in)
		}
	case "let":
		l.unsure("let evaluates a text")
	case "mapfile", "readarray":
		if hasFlag(args, "-C") {
			l.unsure(name + " -C runs text as a command")
		}
		l.names(args, "dnOsutc", in)
	case "read":
		l.names(args, "adinNptu", in)
	case "getopts":
		if len(args) > 1 {
			l.variableName(args[1], in)
		}
	case "wait":
		if len(args) > 0 && strings.HasPrefix(args[0].text, "-") {
			l.names(args, "p", in)
		}
	case "unset":
		for _, t := range args {
			if hasFlag(args, "-f") || l.function(t.text) {
				l.unsure("unset takes a function away")
			}
		}
		l.names(args, "", in)
	}
}

// names checks the operands, and what -a and -p name, as names of variables.
func (l *look) names(args []token, valued string, in dirs) {
	for i := 0; i < len(args); i++ {
		t := args[i]
		if len(t.text) > 1 && t.text[0] == '-' && !t.option {
			last := t.text[len(t.text)-1]
			if strings.IndexByte(valued, last) >= 0 {
				i++
				if last == 'a' && i < len(args) {
					l.variableName(args[i], in)
				}
			}
			continue
		}
		l.variableName(t, in)
	}
}

func (l *look) variableName(t token, in dirs) {
	n := span(t.text, nameChars, len(t.text))
	if t.text == "" {
		return
	}
	if !t.exact() || n == 0 || t.text[n:] != "" && strings.Trim(t.text[n:], "[]0123456789") != "" {
		l.unsure("the name of a variable is made at run time")
		return
	}
	if why := dangerousVariable(t.text[:n]); why != "" {
		l.unsure("the variable " + t.text[:n] + " " + why)
	}
}
