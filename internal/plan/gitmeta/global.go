package gitmeta

import (
	"path"
	"strings"
)

// maxIncludes is how deep includes may nest, as in git.
const maxIncludes = 10

// GlobalSource tells [GlobalCopy] about the place that it works for.
type GlobalSource struct {
	// Path is the file's own path: relative includes start from its folder.
	Path string
	// Home replaces ~ in the paths of includes.
	Home string
	// GitDir is the workspace's git directory, with links resolved, for
	// includeIf "gitdir:". Empty: no such condition holds.
	GitDir string
	// Remotes are the URLs of its remotes, for "hasconfig:remote.*.url:".
	Remotes []string
	// Read returns the content of an included file. Files that it refuses are
	// skipped, as git skips missing ones. Nil: no includes.
	Read func(path string) ([]byte, error)
}

// GlobalCopy makes, from the user's global configuration, the one that git
// finds inside: identity, habits, aliases and pagers stay; includes are
// written out in their place.
//
// It drops credentials (see [Filtered]) and what names files that are hidden
// or mean something else inside, because git fails where such a file is
// missing: signing (its keys are hidden), hooks and templates, watchers,
// exclude and attribute files under the home. Rewrites of URLs with a user in
// them go too. includeIf "onbranch:" never holds: the branch may change while
// the copy does not.
//
// A raw file that does not parse is an error; an included one that does not
// parse, or nests too deep, is skipped.
func GlobalCopy(raw []byte, src GlobalSource) ([]byte, error) {
	entries, err := Parse(raw)
	if err != nil {
		return nil, err
	}
	return Encode(src.flatten(nil, entries, src.Path, 0)), nil
}

func (src GlobalSource) flatten(out, entries []Entry, file string, depth int) []Entry {
	for _, e := range entries {
		switch {
		case e.Name == "include.path" || e.Section == "includeif" && e.Key == "path":
			if src.Read == nil || depth >= maxIncludes || !src.holds(e, file) {
				continue
			}
			p := expand(e.Value, src.Home, path.Dir(file))
			raw, err := src.Read(p)
			if err != nil || len(raw) > MaxConfig {
				continue
			}
			if more, err := Parse(raw); err == nil {
				out = src.flatten(out, more, p, depth+1)
			}
		case usefulInside(e):
			if v, keep := withoutSecrets(e); keep {
				e.Value = v
				out = append(out, e)
			}
		}
	}
	return out
}

// usefulInside says whether a global key still works where homes are hidden.
func usefulInside(e Entry) bool {
	switch e.Section {
	case "", "include", "includeif", "credential", "gpg", "maintenance", "hook":
		return false
	case "url":
		// The subsection is what the rewritten URL becomes.
		return withoutUserinfo(e.Subsection) == e.Subsection && withoutUserinfo(e.Value) == e.Value
	case "core":
		switch e.Key {
		case "hookspath", "worktree", "attributesfile", "excludesfile", "askpass", "gitproxy":
			return false
		case "fsmonitor":
			return isBool(e)
		}
	}
	switch e.Name {
	case "commit.gpgsign", "tag.gpgsign", "push.gpgsign", "tag.forcesignannotated", "log.showsignature",
		"merge.verifysignatures", "commit.template", "init.templatedir", "blame.ignorerevsfile", "mailmap.file",
		"user.signingkey":
		return false
	}
	return withoutUserinfo(e.Subsection) == e.Subsection
}

// holds evaluates the condition of an include.
func (src GlobalSource) holds(e Entry, file string) bool {
	if e.Section == "include" {
		return true
	}
	kind, pattern, _ := strings.Cut(e.Subsection, ":")
	switch kind {
	case "gitdir", "gitdir/i":
		if src.GitDir == "" {
			return false
		}
		switch {
		case strings.HasPrefix(pattern, "./"):
			pattern = path.Join(path.Dir(file), pattern) + trailing(pattern)
		case strings.HasPrefix(pattern, "~/"):
			pattern = strings.TrimSuffix(src.Home, "/") + pattern[1:]
		case !strings.HasPrefix(pattern, "/"):
			pattern = "**/" + pattern
		}
		if strings.HasSuffix(pattern, "/") {
			pattern += "**"
		}
		dir := src.GitDir
		if kind == "gitdir/i" {
			pattern, dir = strings.ToLower(pattern), strings.ToLower(dir)
		}
		return matchPath(pattern, dir)
	case "hasconfig":
		pattern, ok := strings.CutPrefix(pattern, "remote.*.url:")
		if !ok {
			return false
		}
		for _, u := range src.Remotes {
			if matchPath(pattern, u) {
				return true
			}
		}
	}
	return false
}

func trailing(p string) string {
	if strings.HasSuffix(p, "/") {
		return "/"
	}
	return ""
}

// expand resolves a path of a configuration file as git does, without ~user
// and %(prefix), which stay as they are (and then name nothing).
func expand(p, home, base string) string {
	switch {
	case p == "~" || strings.HasPrefix(p, "~/"):
		return path.Join(home, p[1:])
	case strings.HasPrefix(p, "/"):
		return path.Clean(p)
	}
	return path.Join(base, p)
}

// matchPath is git's wildmatch on paths: * and ? stay within a component, **
// between slashes crosses them, brackets and backslash as usual.
func matchPath(pattern, s string) bool {
	for pattern != "" {
		switch c := pattern[0]; c {
		case '*':
			if strings.HasPrefix(pattern, "**") {
				rest := strings.TrimLeft(pattern, "*")
				if after, ok := strings.CutPrefix(rest, "/"); ok && matchPath(after, s) {
					return true // "**/" also stands for nothing
				}
				for i := 0; i <= len(s); i++ {
					if matchPath(rest, s[i:]) {
						return true
					}
				}
				return false
			}
			for i := 0; ; i++ {
				if matchPath(pattern[1:], s[i:]) {
					return true
				}
				if i == len(s) || s[i] == '/' {
					return false
				}
			}
		case '?', '[':
			if s == "" || s[0] == '/' {
				return false
			}
			n := 1
			if c == '[' {
				var in bool
				if n, in = bracket(pattern, s[0]); !in {
					return false
				}
			}
			pattern, s = pattern[n:], s[1:]
			continue
		case '\\':
			if len(pattern) > 1 {
				pattern = pattern[1:]
			}
		}
		if s == "" || pattern[0] != s[0] {
			return false
		}
		pattern, s = pattern[1:], s[1:]
	}
	return s == ""
}

// bracket matches c with the set at the start of p and returns its length.
func bracket(p string, c byte) (n int, in bool) {
	i, not := 1, false
	if i < len(p) && (p[i] == '!' || p[i] == '^') {
		not = true
		i++
	}
	for first := true; i < len(p); first = false {
		if p[i] == ']' && !first {
			return i + 1, in != not
		}
		lo := p[i]
		if lo == '\\' && i+1 < len(p) {
			i++
			lo = p[i]
		}
		hi := lo
		if i+2 < len(p) && p[i+1] == '-' && p[i+2] != ']' {
			hi = p[i+2]
			i += 2
		}
		in = in || lo <= c && c <= hi
		i++
	}
	return len(p), false
}
