package guard

import "strings"

func isShell(name string) bool {
	switch strings.TrimPrefix(name, "r") {
	case "sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "ksh93", "yash", "posh", "pdksh", "lksh":
		return true
	}
	return false
}

// runShell looks at a shell: its -c text as shell text, a script of the
// workspace as any other program there. What it reads from a pipe, a here-
// document or a terminal is not in sight.
func (l *look) runShell(name string, args []token, in dirs) {
	command, i := false, 0
	for ; i < len(args); i++ {
		t := args[i]
		if !t.exact() || t.option {
			l.unsure(name + " runs a text that is made at run time")
			return
		}
		if t.text == "--version" || t.text == "--help" {
			return
		}
		if t.text == "--" || t.text == "-" {
			i++
			break
		}
		if len(t.text) < 2 || t.text[0] != '-' && t.text[0] != '+' {
			break
		}
		if strings.HasPrefix(t.text, "--") {
			switch t.text {
			case "--norc", "--noprofile", "--posix":
				continue
			}
			l.unsure(name + " with the option " + show(t.text))
			return
		}
		for _, c := range t.text[1:] {
			switch c {
			case 'c':
				command = command || t.text[0] == '-'
			case 'o':
				i++
				if i < len(args) && !args[i].exact() {
					l.unsure(name + " with an option that is made at run time")
					return
				}
			case 'a', 'b', 'e', 'f', 'h', 'm', 'n', 'p', 't', 'u', 'v', 'x', 'B', 'C', 'E', 'H', 'T':
			default:
				l.unsure(name + " with the option " + show(t.text))
				return
			}
		}
	}
	rest := args[min(i, len(args)):]
	if len(rest) == 0 {
		l.unsure(name + " runs what it reads from its input")
		return
	}
	if command {
		l.textArgument(name, rest[0], in)
	} else {
		l.script(name, rest[0], in)
	}
	l.generic(rest[1:], in)
}

// script is a program in a file: of the workspace, that is anybody's guess
// and no reason to refuse, for `make` is no different.
func (l *look) script(name string, t token, in dirs) {
	if t.option || t.shift || strings.HasPrefix(t.text, "/dev/") || t.text == "-" {
		l.unsure(name + " runs what it reads from its input")
		return
	}
	l.path(t, in)
	l.notInspection(name + " runs a script")
}

// interp is how an interpreter of something else reads its options.
type interp struct {
	inline     string // short options with code as their value
	flags      string
	valued     string
	longFlags  string
	longInline string
}

func interpreter(name string) (interp, bool) {
	base := strings.TrimRight(name, "0123456789.-")
	switch base {
	case "python", "pypy", "pythonw":
		return interp{inline: "cm", flags: "bBdEhIOPqRsStuvVx", valued: "WX", longFlags: "version help"}, true
	case "perl":
		return interp{inline: "eE", flags: "nplawWctTuUXsvlh0123456789"}, true
	case "ruby", "jruby":
		return interp{inline: "er", flags: "wWvcUTanplsSdhy", valued: "IE", longFlags: "version help enable-frozen-string-literal yjit jit"}, true
	case "node", "nodejs":
		return interp{inline: "ep", flags: "vhc", valued: "r", longInline: "eval print",
			longFlags: "version help test check watch no-warnings trace-warnings harmony enable-source-maps experimental-strip-types"}, true
	case "php":
		return interp{inline: "rBREFS", flags: "vimnlqh", valued: "dcfz", longFlags: "version help"}, true
	case "lua", "luajit":
		return interp{inline: "e", flags: "vEW", valued: "l"}, true
	case "Rscript":
		return interp{inline: "e", longFlags: "vanilla version verbose"}, true
	case "tclsh", "guile", "ocaml", "groovy", "racket", "elixir", "erl", "ghci", "runghc", "irb", "R", "octave",
		"osascript", "swipl", "sbcl", "clisp", "scheme", "csh", "tcsh", "fish", "nu", "pwsh", "xonsh", "elvish", "julia",
		"rlwrap", "ts-node", "tsx":
		return interp{longFlags: "version help"}, true
	}
	return interp{}, false
}

// interpret looks at an interpreter. Code on its command line or on its input
// cannot be told from here, Perl filters of plain operations apart.
func (l *look) interpret(name string, it interp, args []token, in dirs) {
	if strings.HasPrefix(name, "perl") {
		l.perl(name, args, in)
		return
	}
	for i := 0; i < len(args); i++ {
		t := args[i]
		if t.option || t.shift {
			l.unsure(name + " runs a program that is made at run time")
			return
		}
		if t.text == "--" {
			args = args[i+1:]
			if len(args) > 0 {
				l.script(name, args[0], in)
				l.generic(args[1:], in)
				return
			}
			break
		}
		if len(t.text) < 2 || t.text[0] != '-' {
			l.script(name, t, in)
			l.generic(args[i+1:], in)
			return
		}
		if long, ok := strings.CutPrefix(t.text, "--"); ok {
			word, _, eq := strings.Cut(long, "=")
			switch {
			case listed(it.longInline, word):
				l.unsure(name + " runs code from the command line")
				return
			case listed(it.longFlags, word):
				if word == "version" || word == "help" {
					return
				}
				if word == "test" {
					l.notInspection(name + " runs tests")
					l.generic(args[i+1:], in)
					return
				}
			case eq && word == "require":
				l.path(t, in)
			default:
				l.unsure(name + " with the option " + show(t.text) + ", which the guard does not know")
				return
			}
			continue
		}
		next := false
	cluster:
		for j := 1; j < len(t.text); j++ {
			c := t.text[j]
			switch {
			case c == 'm' && strings.HasPrefix(name, "py"):
				l.module(name, t.from(j+1), args[i+1:], in)
				return
			case c == 'V', c == 'v' && len(args) == 1, c == 'h':
				return
			case strings.IndexByte(it.inline, c) >= 0:
				l.unsure(name + " runs code from the command line")
				return
			case strings.IndexByte(it.valued, c) >= 0:
				if next = j+1 == len(t.text); !next {
					l.path(t.from(j+1), in)
				}
				break cluster
			case strings.IndexByte(it.flags, c) >= 0:
			default:
				l.unsure(name + " with the option " + show(t.text) + ", which the guard does not know")
				return
			}
		}
		if next && i+1 < len(args) {
			i++
			l.path(args[i], in)
		}
	}
	l.unsure(name + " runs what it reads from its input")
}

// module is python -m: the modules that take code or files to run are code.
func (l *look) module(name string, glued token, rest []token, in dirs) {
	mod := glued
	if glued.text == "" {
		if len(rest) == 0 {
			return
		}
		mod, rest = rest[0], rest[1:]
	}
	switch mod.text {
	case "timeit", "code", "pdb", "trace", "profile", "cProfile", "idlelib", "asyncio", "runpy", "doctest", "http.server":
		l.unsure(name + " -m " + mod.text + " runs code or shows files")
	}
	if !mod.exact() {
		l.unsure(name + " runs a module whose name is made at run time")
	}
	l.notInspection(name + " runs a module")
	l.generic(rest, in)
}

func listed(list, word string) bool {
	for len(list) > 0 {
		var w string
		w, list, _ = strings.Cut(list, " ")
		if w == word {
			return true
		}
	}
	return false
}

// runner says why a command can run others in ways that the guard does not
// follow.
func runner(name string) string {
	switch name {
	case "parallel", "sem", "entr", "tmux", "screen", "script", "expect", "unbuffer", "dtach", "setarch", "linux32",
		"linux64", "strace", "ltrace", "gdb", "lldb", "valgrind", "perf", "rr", "ld.so", "ld-linux.so.2",
		"ld-linux-x86-64.so.2", "run-parts", "start-stop-daemon", "daemonize", "dbus-run-session", "xvfb-run", "fakeroot",
		"faketime", "sshpass", "hyperfine", "ssh", "scp", "sftp", "rsh", "mosh", "telnet", "socat", "ncat", "prlimit",
		"chrt", "numactl", "cgexec", "systemd-inhibit", "systemd-cat", "nix-shell", "devbox", "direnv", "find2perl", "psexec":
		return "it runs commands that the guard does not follow"
	case "ed", "red", "ex", "vi", "vim", "nvim", "view", "vimdiff", "emacs", "emacsclient", "nano", "pico", "joe", "mc",
		"ranger", "m4", "bc", "dc", "gnuplot", "sqlite3", "psql", "mysql", "mariadb", "ftp", "lftp", "mutt", "mail", "mailx",
		"info", "dialog", "whiptail", "pager", "sensible-pager", "editor", "sensible-editor", "xdg-open", "open", "w3m",
		"lynx", "links", "elinks":
		return "it has commands of its own that open files or run programs"
	}
	return ""
}

// dangerousVariable says why nobody may set a variable.
func dangerousVariable(name string) string {
	const program, meaning, lib = "names a program to run", "changes what later words mean", "is read by every program at its start"
	switch name {
	case "PAGER", "MANPAGER", "EDITOR", "VISUAL", "BROWSER", "LESSOPEN", "LESSCLOSE", "SHELL", "SSH_ASKPASS",
		"SUDO_ASKPASS", "RSYNC_RSH", "CVS_RSH", "RUSTC_WRAPPER", "RUSTC", "FZF_DEFAULT_COMMAND", "PERL5DB", "MANOPT",
		"DELTA_PAGER", "BAT_PAGER", "SYSTEMD_PAGER", "AWS_PAGER", "PSQL_PAGER", "MANROFFOPT", "MORE", "LESS", "FCEDIT",
		"CARGO_BUILD_RUSTC_WRAPPER", "TAR_OPTIONS", "RIPGREP_CONFIG_PATH", "PKG_CONFIG", "XARGS", "GZIP_BIN":
		return program
	case "PATH", "IFS", "CDPATH", "ENV", "PS0", "PS1", "PS2", "PS4", "PROMPT_COMMAND", "SHELLOPTS", "BASHOPTS",
		"GLOBIGNORE", "EXECIGNORE", "HOME", "OLDPWD", "PWD", "POSIXLY_CORRECT", "FPATH", "ZDOTDIR", "MAILCHECK",
		"INPUTRC", "HISTFILE", "path", "fpath", "cdpath", "module_path":
		return meaning
	case "PERL5OPT", "PERL5LIB", "PERLLIB", "RUBYOPT", "RUBYLIB", "NODE_OPTIONS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS",
		"JDK_JAVA_OPTIONS", "PYTHONSTARTUP", "PYTHONHOME", "PYTHONINSPECT", "GCONV_PATH", "MAKEFLAGS", "GNUMAKEFLAGS",
		"MFLAGS", "MAKEFILES", "GREP_OPTIONS", "AWKPATH", "GOFLAGS", "AWKLIBPATH", "EXINIT", "VIMINIT", "GLIBC_TUNABLES",
		"HOSTALIASES", "LOCPATH", "NLSPATH", "OPENSSL_CONF", "OPENSSL_MODULES", "MALLOC_CHECK_", "TERMINFO", "TERMCAP":
		return lib
	}
	for _, p := range [...]string{"GIT_", "LD_", "DYLD_", "BASH_", "XDG_", "LESS", "npm_config_", "NPM_CONFIG_", "_RLD"} {
		if strings.HasPrefix(name, p) {
			return lib
		}
	}
	return ""
}
