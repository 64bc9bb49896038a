package guard

import "strings"

// inspection is the read-only allowlist: the commands that only look, with
// the options that make them write or run something. A space-separated option
// is refused alone, in a cluster, with a value glued on, and abbreviated.
// operands, when not zero, is how many operands are fine: a further one is a
// file to write.
func inspection(name string) (refuse string, operands int, ok bool) {
	switch name {
	case "ls", "dir", "vdir", "cat", "grep", "egrep", "fgrep", "head", "tail", "cut", "tr", "stat", "df", "pwd", "echo",
		"printf", "id", "whoami", "uname", "ps", "free", "uptime", "nproc", "tty", "which", "type", "test", "[", "true",
		"false", ":", "basename", "dirname", "realpath", "readlink", "cmp", "comm", "jq", "od", "hexdump", "hd",
		"md5sum", "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum", "b2sum", "cksum", "sum", "md5",
		"shasum", "nl", "tac", "rev", "column", "paste", "fold", "fmt", "expand", "unexpand", "seq", "sleep", "cd",
		"pushd", "popd", "dirs", "join", "expr", "strings", "readelf", "groups", "logname", "users", "who", "w",
		"arch", "lscpu", "getconf", "locale", "printenv", "base64", "base32", "tsort", "pathchk",
		"exit", "return", "break", "continue", "shift", "wait", "umask", "ulimit", "jobs", "times", "getopts", "read",
		"mapfile", "readarray", "unset", "export", "declare", "local", "typeset", "readonly", "set", "shopt", "hash",
		"trap", "help", "cal":
		return "", 0, true
	case "wc", "du":
		return "--files0-from", 0, true
	case "rg":
		return "--pre --hostname-bin --search-zip -z", 0, true
	case "sort":
		return "-o --output --compress-program --files0-from -T --temporary-directory", 0, true
	case "uniq":
		return "", 1, true
	case "nm":
		return "--plugin", 0, true
	case "file":
		return "-C --compile", 0, true
	case "date":
		return "-s --set", 0, true
	case "hostname":
		return "-F --file -b --boot", -1, true
	case "top":
		return "", 0, true
	case "diff":
		return "-l --paginate", 0, true
	case "xxd":
		return "-r -revert", 1, true
	case "tree":
		return "-o", 0, true
	case "less", "more":
		return "-k --lesskey-file --lesskey-src --lesskey-content -o -O --log-file --LOG-FILE", 0, true
	case "fd", "fdfind":
		return "-x -X --exec --exec-batch", 0, true
	}
	return "", 0, false
}

// inspectAllowed holds an ordinary command to the inspection allowlist.
func (l *look) inspectAllowed(name string, args []token) {
	refuse, most, ok := inspection(name)
	if !ok {
		l.notInspection(show(name) + " is not on the inspection list")
		return
	}
	flags := strings.Fields(refuse)
	operands, ended := 0, false
	for i := 0; i < len(args); i++ {
		t := args[i]
		switch {
		case !ended && t.text == "--" && t.exact():
			ended = true
		case !ended && (t.hidesOption() || t.shift && !t.glob()) && (len(flags) > 0 || most != 0):
			l.notInspection("a word of " + name + " may become an option that writes")
			return
		case !ended && len(t.text) > 1 && (t.text[0] == '-' || t.text[0] == '+' && (name == "less" || name == "more")):
			if t.text[0] == '+' {
				l.notInspection(name + " " + show(t.text) + " runs commands")
				return
			}
			for _, f := range flags {
				if flagHit(t.text, f) {
					l.notInspection(name + " " + f + " does more than look")
					return
				}
			}
			// -l 16: the number is no file.
			if most != 0 && len(t.text) == 2 && strings.IndexByte("lscgofw", t.text[1]) >= 0 && i+1 < len(args) &&
				span(args[i+1].text, "0123456789", len(args[i+1].text)) == len(args[i+1].text) {
				i++
			}
		default:
			operands++
			if t.shift {
				operands++
			}
		}
	}
	if most > 0 && operands > most || most < 0 && operands > 0 {
		l.notInspection("a further operand of " + name + " is written to")
	}
	if name == "top" && !hasFlag(args, "-b") {
		l.notInspection("top without -b is interactive")
	}
}

// inspectGit holds a git subcommand to those that only look.
func (l *look) inspectGit(sub string, args []token) {
	for _, t := range args {
		if t.text == "--" && t.exact() {
			break
		}
		for _, f := range [...]string{"--output", "--ext-diff", "--textconv", "--paginate", "--output-directory"} {
			if flagHit(t.text, f) {
				l.notInspection("git " + f + " does more than look")
				return
			}
		}
		if t.hidesOption() || t.shift && !t.glob() {
			l.notInspection("a word of git may become an option that writes")
			return
		}
	}
	bad := ""
	switch sub {
	case "status", "log", "diff", "show", "rev-parse", "ls-files", "ls-tree", "blame", "annotate", "describe", "cat-file",
		"shortlog", "for-each-ref", "rev-list", "grep", "name-rev", "merge-base", "show-ref", "count-objects",
		"check-ignore", "check-attr", "diff-tree", "diff-index", "diff-files", "version", "whatchanged", "cherry",
		"range-diff", "show-branch", "--version", "--help":
		return
	case "branch":
		bad = "-d -D -m -M -c -C -f -u -t --delete --move --copy --force --set-upstream-to --unset-upstream --edit-description --track --create-reflog"
		if onlyFlags(args) || hasFlag(args, "--list", "-l", "--contains", "--merged", "--no-merged", "--points-at") {
			break
		}
		l.notInspection("git branch NAME creates a branch")
		return
	case "tag":
		bad = "-d -a -s -f -m -F -u -e --delete --annotate --sign --force --message --file --local-user --edit"
		if onlyFlags(args) || hasFlag(args, "-l", "--list", "--contains", "--merged", "--points-at") {
			break
		}
		l.notInspection("git tag NAME creates a tag")
		return
	case "remote":
		if onlyFlags(args) || args[0].text == "get-url" || args[0].text == "-v" && len(args) == 1 {
			return
		}
		l.notInspection("git remote " + show(args[0].text) + " does more than look")
		return
	case "config":
		for _, t := range args {
			switch t.text {
			case "--get", "--get-all", "--get-regexp", "--list", "-l", "get", "list":
				bad = "--unset --unset-all --add --replace-all --edit -e --rename-section --remove-section"
			}
			if bad != "" {
				break
			}
			if !strings.HasPrefix(t.text, "-") {
				break
			}
		}
		if bad == "" {
			l.notInspection("git config without --get or --list may write")
			return
		}
	case "stash", "worktree", "notes", "submodule", "reflog", "bundle", "bisect":
		first := ""
		if len(args) > 0 {
			first = args[0].text
		}
		switch sub + " " + first {
		case "stash list", "stash show", "worktree list", "notes list", "notes show", "submodule status", "reflog show",
			"reflog ", "submodule ", "bisect log":
			return
		}
		l.notInspection("git " + sub + " " + first + " does more than look")
		return
	default:
		l.notInspection("git " + show(sub) + " is not on the inspection list")
		return
	}
	for _, t := range args {
		for _, f := range strings.Fields(bad) {
			if flagHit(t.text, f) {
				l.notInspection("git " + sub + " " + f + " does more than look")
				return
			}
		}
	}
}

func onlyFlags(args []token) bool {
	for _, t := range args {
		if !strings.HasPrefix(t.text, "-") || t.text == "--" {
			return false
		}
	}
	return true
}
