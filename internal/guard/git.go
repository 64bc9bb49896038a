package guard

import "strings"

// git looks at git's own options, at the subcommand, and at the many ways in
// which git runs a program or a hook that a command line names.
func (l *look) git(args []token, in dirs) {
	i := 0
	for ; i < len(args); i++ {
		t := args[i]
		if !t.exact() || t.option {
			l.unsure("the subcommand of git is made at run time")
			return
		}
		if len(t.text) < 2 || t.text[0] != '-' {
			break
		}
		switch t.text {
		case "-C", "--git-dir", "--work-tree", "--namespace":
			if t.text != "-C" {
				l.notInspection("git " + t.text + " reads another repository's configuration")
			}
			if i++; i < len(args) {
				if t.text == "-C" {
					in = l.cd(args[i:i+1], in).ok
				}
				l.path(args[i], in)
			}
		case "-c":
			if i++; i < len(args) {
				key, _, _ := strings.Cut(args[i].text, "=")
				if !args[i].known() || !harmlessKey(key) {
					l.unsure("git -c " + show(args[i].text) + " may name a program to run")
					return
				}
			}
		case "--no-pager", "-P", "--no-replace-objects", "--bare", "--literal-pathspecs", "--glob-pathspecs",
			"--noglob-pathspecs", "--icase-pathspecs", "--no-optional-locks", "--version", "-v", "--help", "-h",
			"--exec-path", "--html-path", "--man-path", "--info-path", "--no-advice":
		default:
			if strings.HasPrefix(t.text, "--git-dir=") || strings.HasPrefix(t.text, "--work-tree=") {
				l.notInspection("git --git-dir reads another repository's configuration")
				l.path(t, in)
				continue
			}
			l.unsure("git with the option " + show(t.text))
			return
		}
	}
	if i >= len(args) {
		return
	}
	sub, rest := args[i].text, args[i+1:]
	if why := l.gitRuns(sub, rest); why != "" {
		l.unsure("git " + sub + " " + why)
		return
	}
	l.inspectGit(sub, rest)
	l.gitOperands(sub, rest, in)
}

// gitRuns says how a subcommand would run a program that its words name.
func (l *look) gitRuns(sub string, args []token) string {
	flags := "--upload-pack --exec --receive-pack --ext-diff"
	switch sub {
	case "filter-branch", "instaweb", "daemon", "send-email", "hook", "credential", "credential-store",
		"credential-cache", "remote-ext", "remote-fd", "shell", "upload-pack", "receive-pack", "http-backend", "gui",
		"gitk", "citool", "web--browse", "sh-setup", "svn", "p4", "cvsimport", "cvsserver", "fast-import", "upload-archive",
		"for-each-repo", "maintenance", "update-server-info", "request-pull", "difftool", "mergetool", "var", "help",
		"sh-i18n", "merge-index", "imap-send", "bugreport", "diagnose", "scalar":
		return "runs programs that are not in the text"
	case "grep":
		flags += " -O --open-files-in-pager"
	case "rebase":
		flags += " -x --exec -i --interactive"
	case "bisect":
		if len(args) > 0 && args[0].text == "run" {
			return "runs a command"
		}
	case "submodule":
		for _, t := range args {
			if t.text == "foreach" || !t.exact() {
				return "runs a command"
			}
		}
	case "config":
		return gitConfig(args)
	case "archive":
		flags += " --remote"
	case "clone", "fetch", "pull", "push", "ls-remote", "remote":
		flags += " -u -c --config --template --receive-pack"
		if sub != "clone" && sub != "fetch" && sub != "ls-remote" {
			flags = strings.Replace(flags, " -u -c", "", 1)
		}
		if sub == "fetch" {
			flags = strings.Replace(flags, " -u -c", "", 1)
		}
		for _, t := range args {
			if strings.Contains(t.text, "::") {
				return "runs a transport of another name"
			}
			if !t.known() && t.option {
				return "has a word that may become an option"
			}
		}
	case "init":
		flags += " --template"
	case "apply", "am":
		flags += " --unsafe-paths --directory"
	}
	for _, t := range args {
		if t.text == "--" && t.exact() {
			break
		}
		for _, f := range strings.Fields(flags) {
			if flagHit(t.text, f) {
				return f + " runs a program"
			}
		}
	}
	return ""
}

// gitConfig lets a value be read, and written where no program is named.
func gitConfig(args []token) string {
	operands := 0
	for i, t := range args {
		if !t.exact() && i < 2 {
			return "has a key that is made at run time"
		}
		switch t.text {
		case "--get", "--get-all", "--get-regexp", "--list", "-l", "--show-origin", "--show-scope", "get", "list",
			"--name-only", "--get-urlmatch", "--type", "--bool", "--int", "-z", "--null":
			if t.text != "--type" && t.text != "--bool" && t.text != "--int" && t.text != "--show-origin" &&
				t.text != "--show-scope" && t.text != "--name-only" && t.text != "-z" && t.text != "--null" {
				return ""
			}
			continue
		case "--local", "--global", "--worktree", "set", "--add", "--replace-all":
			continue
		case "--unset", "--unset-all", "unset":
			return ""
		}
		if strings.HasPrefix(t.text, "-") && operands == 0 {
			return "with the option " + show(t.text)
		}
		operands++
		if operands == 1 {
			if len(args) == i+1 || harmlessKey(t.text) {
				return ""
			}
			return "sets " + show(t.text) + ", which may name a program to run"
		}
	}
	return ""
}

// harmlessKey says that no value of a git setting runs a program or moves a
// file.
func harmlessKey(key string) bool {
	switch key = strings.ToLower(key); key {
	case "user.name", "user.email", "core.autocrlf", "core.quotepath", "core.filemode", "core.ignorecase",
		"core.longpaths", "core.abbrev", "core.safecrlf", "core.eol", "init.defaultbranch", "pull.rebase", "pull.ff",
		"push.default", "push.autosetupremote", "commit.gpgsign", "tag.gpgsign", "merge.conflictstyle", "diff.algorithm",
		"diff.renames", "diff.context", "fetch.prune", "log.date", "rebase.autostash", "rerere.enabled", "gc.auto",
		"diff.mnemonicprefix", "diff.noprefix", "status.short", "help.autocorrect":
		return true
	}
	return strings.HasPrefix(key, "color.") || strings.HasPrefix(key, "advice.") || strings.HasPrefix(key, "column.")
}

// gitOperands: messages, formats and search texts are text; :/x and :(top)x
// name something in the repository.
func (l *look) gitOperands(sub string, args []token, in dirs) {
	s := shape{}
	switch sub {
	case "commit", "tag", "merge", "notes", "stash", "cherry-pick", "revert":
		s = shape{text: "m", path: "F", longText: "message author date cleanup trailer"}
	case "log", "show", "shortlog", "rev-list", "diff", "whatchanged", "reflog":
		s = shape{text: "SGL", longText: "grep author committer"}
	case "grep":
		s = shape{text: "eABCm", path: "f", longText: "max-depth", first: true, unless: "ef"}
	case "branch", "for-each-ref":
		s = shape{longText: "format sort"}
	case "config":
		return
	}
	plainArgs := make([]token, 0, len(args))
	for i, t := range args {
		if t.known() && strings.HasPrefix(t.text, ":") {
			if rest := strings.TrimLeft(t.text[1:], "/!^"); !strings.HasPrefix(t.text, ":(") || strings.HasPrefix(t.text, ":(top)") {
				rest = strings.TrimPrefix(rest, "(top)")
				if !climbs(t) {
					t = t.from(len(t.text) - len(rest))
				}
			}
		}
		// -L:name:file and -L1,2:file end in a path of the repository.
		for _, f := range [...]string{"--format=", "--pretty=", "--grep=", "--author=", "--date=", "--message=", "--since=", "--until="} {
			if t.known() && strings.HasPrefix(t.text, f) {
				t = quoted("-")
			}
		}
		if sub == "log" && i < len(args) && t.known() && strings.HasPrefix(t.text, "-L") && len(t.text) > 2 {
			t = quoted("-")
		}
		plainArgs = append(plainArgs, t)
	}
	l.byShape(s, plainArgs, in)
}
