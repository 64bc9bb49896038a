package guard

import "strings"

// wrapping is how a command that runs another one reads its own options.
type wrapping struct {
	flags, valued         string // short options without and with a value
	longFlags, longValued string // the same, space-separated, without dashes
	operands              int    // words of its own before the command
}

// wrappers: what is not written here is not understood, and refused.
func wrappers(name string) (wrapping, bool) {
	switch name {
	case "nice":
		return wrapping{flags: "0123456789", valued: "n", longValued: "adjustment"}, true
	case "nohup", "builtin", "setsid", "nocorrect", "noglob", "unbuffer", "chronic", "caffeinate":
		return wrapping{flags: "cfw"}, true
	case "timeout", "gtimeout":
		return wrapping{flags: "v", valued: "ks", longFlags: "foreground preserve-status verbose",
			longValued: "kill-after signal", operands: 1}, true
	case "stdbuf", "gstdbuf":
		return wrapping{valued: "ioe", longValued: "input output error"}, true
	case "time", "gtime":
		return wrapping{flags: "paqvV", valued: "fo", longFlags: "portability append quiet verbose",
			longValued: "format output"}, true
	case "ionice":
		return wrapping{flags: "t", valued: "cn", longFlags: "ignore", longValued: "class classdata"}, true
	case "taskset":
		return wrapping{flags: "ac", longFlags: "all-tasks cpu-list", operands: 1}, true
	case "exec":
		return wrapping{flags: "cl", valued: "a"}, true
	case "command":
		return wrapping{flags: "p"}, true
	case "busybox", "toybox":
		return wrapping{}, true
	case "xargs", "gxargs":
		return wrapping{flags: "0rtpxo", valued: "dEILnPs", longFlags: "null no-run-if-empty verbose exit open-tty",
			longValued: "delimiter replace max-lines max-args max-procs max-chars"}, true
	case "flock":
		return wrapping{flags: "sxenuoF", valued: "wE",
			longFlags:  "shared exclusive nonblock unlock close no-fork nb",
			longValued: "timeout wait conflict-exit-code", operands: 1}, true
	case "watch":
		return wrapping{flags: "tbegcpxdw", valued: "n", longFlags: "no-title beep errexit chgexit color precise exec differences no-wrap",
			longValued: "interval"}, true
	case "env", "genv":
		return wrapping{flags: "i0v", valued: "uC", longFlags: "ignore-environment null debug", longValued: "unset chdir"}, true
	}
	return wrapping{}, false
}

// wrapper looks at the command that name runs.
func (l *look) wrapper(name string, args []token, in dirs) (outcome, bool) {
	w, ok := wrappers(name)
	if !ok {
		return outcome{}, false
	}
	if name == "command" && len(args) > 0 && (args[0].text == "-v" || args[0].text == "-V") {
		return stay(in), true
	}
	shellText, replace, bare := false, false, name == "builtin" || name == "command" || name == "exec"
	i := 0
	for ; i < len(args); i++ {
		t := args[i]
		if t.shift || t.option || !t.known() {
			l.unsure(name + " runs a command that is made at run time")
			return stay(in), true
		}
		if t.text == "--" {
			i++
			break
		}
		if len(t.text) < 2 || t.text[0] != '-' {
			break
		}
		opt, val, has, good := w.option(t)
		if !good {
			l.unsure(name + " with the option " + show(t.text) + ", which the guard does not know")
			return stay(in), true
		}
		if opt != "" && !has {
			i++
			if i >= len(args) {
				break
			}
			val = args[i]
		}
		switch {
		case name == "watch" && opt == "":
			shellText = shellText || !strings.Contains(t.text, "x") && t.text != "--exec"
		case (name == "env" || name == "genv") && (opt == "C" || opt == "chdir"):
			in = l.cd([]token{val}, in).ok
		case name == "xargs" && (opt == "I" || opt == "replace"):
			replace = true
		}
		l.path(val, in)
	}
	rest := args[min(i, len(args)):]
	for n := w.operands; n > 0 && len(rest) > 0; n-- {
		if rest[0].shift || rest[0].option {
			l.unsure(name + " runs a command that is made at run time")
			return stay(in), true
		}
		l.path(rest[0], in)
		rest = rest[1:]
	}
	switch name {
	case "env", "genv":
		for len(rest) > 0 && (rest[0].text == "-" || strings.IndexByte(rest[0].text, '=') > 0) {
			if rest[0].text == "-" {
				rest = rest[1:]
				continue
			}
			n := strings.IndexByte(rest[0].text, '=')
			l.assigned(rest[0].text[:n], rest[0].from(n+1), in)
			if rest[0].shift {
				l.unsure("env runs a command that is made at run time")
			}
			rest = rest[1:]
		}
	case "watch":
		l.watch(args, rest, in)
		return stay(in), true
	case "flock":
		if len(rest) > 1 && (rest[0].text == "-c" || rest[0].text == "--command") {
			l.textArgument("flock", rest[1], in)
			return stay(in), true
		}
	case "busybox", "toybox":
		if len(rest) == 0 {
			return stay(in), true
		}
	case "xargs", "gxargs":
		l.find0 = l.find0 && hasFlag(args[:len(args)-len(rest)], "-0", "--null")
		l.xargs(rest, replace, in)
		return stay(in), true
	}
	if len(rest) == 0 {
		return stay(in), true
	}
	if !bare {
		// Another program: a builtin or a function of the shell it is not.
		argv, calls := l.argv, l.calls
		l.argv, l.calls = true, nil
		l.command(rest, in)
		l.argv, l.calls = argv, calls
		return stay(in), true
	}
	calls := l.calls
	l.calls = nil
	out := l.command(rest, in)
	l.calls = calls
	return out, true
}

// option reads one option: its name when it takes a value, the value when it
// is in the same word, and whether it is known at all.
func (w wrapping) option(t token) (opt string, val token, has, ok bool) {
	if long, is := strings.CutPrefix(t.text, "--"); is {
		name, _, eq := strings.Cut(long, "=")
		for _, f := range strings.Fields(w.longValued) {
			if f == name {
				if eq {
					return name, t.from(len(name) + 3), true, true
				}
				return name, token{}, false, true
			}
		}
		for _, f := range strings.Fields(w.longFlags) {
			if f == name && !eq {
				return "", token{}, true, true
			}
		}
		return "", token{}, false, false
	}
	for i := 1; i < len(t.text); i++ {
		c := t.text[i]
		if strings.IndexByte(w.valued, c) >= 0 {
			if i+1 < len(t.text) {
				return string(rune(c)), t.from(i + 1), true, true
			}
			return string(rune(c)), token{}, false, true
		}
		if strings.IndexByte(w.flags, c) < 0 {
			return "", token{}, false, false
		}
	}
	return "", token{}, true, true
}

// xargs adds words from its input to the command: they may be anything,
// unless find wrote them.
func (l *look) xargs(rest []token, replace bool, in dirs) {
	if len(rest) == 0 {
		rest = []token{quoted("echo")}
	}
	more := whole(spread)
	if l.find0 {
		more = quoted("./x")
	}
	cmd := append([]token(nil), rest...)
	if replace {
		for i := range cmd {
			if cmd[i].text == "{}" && i > 0 {
				cmd[i] = more
			} else if strings.Contains(cmd[i].text, "{}") {
				cmd[i] = whole(spread)
			}
		}
	}
	cmd = append(cmd, more)
	argv, calls, find0 := l.argv, l.calls, l.find0
	l.argv, l.calls, l.find0 = true, nil, false
	l.command(cmd, in)
	l.argv, l.calls, l.find0 = argv, calls, find0
}

// watch joins its arguments to a text for sh -c, unless -x is given.
func (l *look) watch(args, rest []token, in dirs) {
	if len(rest) == 0 {
		return
	}
	own := args[:len(args)-len(rest)]
	if hasFlag(own, "-x", "--exec") {
		argv := l.argv
		l.argv = true
		l.command(rest, in)
		l.argv = argv
		return
	}
	words := make([]string, 0, len(rest))
	for _, t := range rest {
		if !t.exact() {
			l.unsure("watch runs a text that is made at run time")
			return
		}
		words = append(words, t.text)
	}
	l.shell(strings.Join(words, " "), in)
}

// textArgument looks at an argument that is run as shell text.
func (l *look) textArgument(who string, t token, in dirs) {
	if !t.exact() || t.option {
		l.unsure(who + " runs a text that is made at run time")
		return
	}
	l.shell(t.text, in)
}
