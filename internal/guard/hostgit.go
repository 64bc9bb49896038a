package guard

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// GitConfigWrites returns the git commands of a command line that write a
// repository's configuration, each spelled as one would type it. Inside, that
// file is locked, so they are what belongs on the host. It is a help for a
// message, no judgement: only plain words are understood, and what is not
// understood is left out.
func GitConfigWrites(argv []string) []string {
	var found []string
	add := func(words []string) {
		if writesConfig(words) {
			found = append(found, strings.Join(words, " "))
		}
	}
	add(argv)
	if src, ok := shellText(argv); ok {
		file, err := syntax.NewParser().Parse(strings.NewReader(src), "")
		if err != nil {
			return found
		}
		syntax.Walk(file, func(n syntax.Node) bool {
			if call, ok := n.(*syntax.CallExpr); ok {
				add(plainWords(call.Args))
			}
			return true
		})
	}
	return found
}

// shellText returns the text of `sh -c TEXT`.
func shellText(argv []string) (string, bool) {
	if len(argv) < 3 || !slices.Contains([]string{"sh", "bash", "dash", "zsh", "ksh"}, path.Base(argv[0])) {
		return "", false
	}
	for i, a := range argv[1 : len(argv)-1] {
		if strings.HasPrefix(a, "-") && strings.HasSuffix(a, "c") {
			return argv[i+2], true
		}
	}
	return "", false
}

// plainWords returns the words as typed, or nothing when one of them is not
// plain text.
func plainWords(words []*syntax.Word) []string {
	var out []string
	for _, w := range words {
		var b strings.Builder
		for _, part := range w.Parts {
			switch p := part.(type) {
			case *syntax.Lit:
				b.WriteString(p.Value)
			case *syntax.SglQuoted:
				b.WriteString("'" + p.Value + "'")
			case *syntax.DblQuoted:
				b.WriteByte('"')
				for _, q := range p.Parts {
					lit, ok := q.(*syntax.Lit)
					if !ok {
						return nil
					}
					b.WriteString(lit.Value)
				}
				b.WriteByte('"')
			default:
				return nil
			}
		}
		out = append(out, b.String())
	}
	return out
}

// writesConfig says whether words are a git command that writes .git/config.
func writesConfig(words []string) bool {
	if len(words) < 2 || path.Base(words[0]) != "git" {
		return false
	}
	rest := words[1:]
	for len(rest) > 0 && strings.HasPrefix(rest[0], "-") {
		if rest[0] == "-C" || rest[0] == "-c" {
			rest = rest[min(1, len(rest)-1):]
		}
		rest = rest[1:]
	}
	if len(rest) == 0 {
		return false
	}
	has := func(options ...string) bool {
		return slices.ContainsFunc(rest[1:], func(a string) bool {
			return slices.ContainsFunc(options, func(o string) bool { return a == o || strings.HasPrefix(a, o+"=") })
		})
	}
	plain := slices.DeleteFunc(slices.Clone(rest[1:]), func(a string) bool { return strings.HasPrefix(a, "-") })
	first := ""
	if len(plain) > 0 {
		first = plain[0]
	}
	switch rest[0] {
	case "config":
		return !has("--global", "--system", "-f", "--file", "--get", "--get-all", "--get-regexp", "--list", "-l", "--get-urlmatch") &&
			(len(plain) > 1 || has("--unset", "--unset-all", "--add", "--replace-all", "--remove-section", "--rename-section", "-e", "--edit"))
	case "remote":
		return slices.Contains([]string{"add", "remove", "rm", "rename", "set-url", "set-head", "set-branches"}, first)
	case "branch":
		return has("-u", "--set-upstream-to", "--unset-upstream", "--track", "-t", "--edit-description", "-m", "-M", "--move")
	case "push":
		return has("-u", "--set-upstream")
	case "checkout", "switch":
		return has("--track", "-t")
	case "submodule":
		return slices.Contains([]string{"add", "init", "sync", "deinit", "set-url", "set-branch"}, first) || first == "update" && has("--init")
	case "sparse-checkout", "lfs":
		return slices.Contains([]string{"init", "set", "disable", "install"}, first)
	case "maintenance":
		return slices.Contains([]string{"start", "register", "unregister", "stop"}, first)
	}
	return false
}
