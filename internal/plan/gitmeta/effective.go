package gitmeta

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// configFile is a configuration file read at most once per discovery.
type configFile struct {
	entries []Entry
	hostile string // why it cannot be used; empty for a missing file
}

// read parses a configuration file, following a link at its end as git does.
func (d *discovery) read(path string) configFile {
	if c, ok := d.configs[path]; ok {
		return c
	}
	c := readConfig(path)
	d.configs[path] = c
	return c
}

func readConfig(path string) configFile {
	raw, err := readRegular(path, MaxConfig)
	if errors.Is(err, fs.ErrNotExist) {
		return configFile{}
	}
	if err != nil {
		real, linkErr := filepath.EvalSymlinks(path)
		if linkErr != nil || real == path {
			return configFile{hostile: err.Error()}
		}
		if raw, err = readRegular(real, MaxConfig); err != nil {
			return configFile{hostile: err.Error()}
		}
	}
	entries, err := Parse(raw)
	if err != nil {
		return configFile{hostile: err.Error()}
	}
	return configFile{entries: entries}
}

// GlobalFiles are the user's own configuration files, in the order in which git
// reads them. config is the folder that XDG_CONFIG_HOME names, or would name.
func GlobalFiles(home, config string) []string {
	var files []string
	if config != "" {
		files = append(files, filepath.Join(config, "git/config"))
	}
	if home != "" {
		files = append(files, filepath.Join(home, ".gitconfig"))
	}
	return files
}

// HostEntries reads the system's and the user's own configuration with all
// their includes, every condition taken for true, in the order in which git
// lets later ones win. What cannot be read is left out: these files are the
// host's own and no workspace writes them.
func HostEntries(home, config string) []Entry {
	d := &discovery{Search: Search{Home: home}, configs: map[string]configFile{}}
	var all []Entry
	var found []string
	for _, p := range append([]string{"/etc/gitconfig"}, GlobalFiles(home, config)...) {
		entries, _ := d.withIncludes(nil, p, 0, &found)
		all = append(all, entries...)
	}
	return all
}

// withIncludes appends the entries of a file, each include followed in place.
// It notes the included paths in found, and follows each once.
func (d *discovery) withIncludes(out []Entry, path string, depth int, found *[]string) ([]Entry, string) {
	c := d.read(path)
	for _, e := range c.entries {
		out = append(out, e)
		if e.Key != "path" || e.Section != "include" && e.Section != "includeif" || e.Name == "includeif.path" {
			continue
		}
		p := expand(e.Value, d.Home, filepath.Dir(path))
		if slices.Contains(*found, p) {
			continue
		}
		*found = append(*found, p)
		if depth < maxIncludes {
			out, _ = d.withIncludes(out, p, depth+1, found)
		}
	}
	return out, c.hostile
}

// configure fills what the repository's configuration decides.
func (d *discovery) configure(r *Repo) {
	if r.GitDir == "" {
		return
	}
	r.Config = filepath.Join(r.CommonDir, "config")
	r.ConfigWorktree = filepath.Join(r.GitDir, "config.worktree")
	r.Attributes = filepath.Join(r.CommonDir, "info/attributes")

	var includes []string
	entries, hostile := d.withIncludes(nil, r.Config, 0, &includes)
	r.Hostile = hostile
	// Whether extensions.worktreeConfig is set does not matter here: what is
	// found too much is locked too much.
	entries, hostile = d.withIncludes(entries, r.ConfigWorktree, 0, &includes)
	if r.Hostile == "" {
		r.Hostile = hostile
	}
	for _, p := range []string{r.Config, r.ConfigWorktree} {
		if real := realIn(p); real != p { // a link: what it leads to is configuration too
			includes = append(includes, real)
		}
	}
	for _, p := range includes {
		for _, p := range namedAndReal(p) {
			if inside(r.Workspace, p) && !slices.Contains(r.Includes, p) {
				r.Includes = append(r.Includes, p)
			}
		}
	}
	base := r.Worktree
	if base == "" {
		base = r.GitDir
	}
	addHooks := func(named string) {
		for _, p := range namedAndReal(named) {
			r.HooksDir = p
			if !slices.Contains(r.HookDirs, p) {
				r.HookDirs = append(r.HookDirs, p)
			}
		}
	}
	if p := filepath.Join(r.CommonDir, "hooks"); realIn(p) == p {
		r.HooksDir, r.HookDirs = p, []string{p}
	} else {
		addHooks(p)
	}
	for _, set := range [][]Entry{d.Host, entries} {
		for _, e := range set {
			if e.Name == "core.hookspath" && e.Value != "" {
				addHooks(expand(e.Value, d.Home, base))
			}
		}
	}
	for _, set := range [][]Entry{d.Host, entries} {
		for _, e := range set {
			if kind, ok := driverKind(e); ok && !slices.Contains(r.Drivers, kind+"="+e.Subsection) {
				r.Drivers = append(r.Drivers, kind+"="+e.Subsection)
			}
		}
	}
	for _, e := range entries {
		if Executable(e) && e.Name != "core.hookspath" && e.Name != "core.worktree" && e.Key != "path" {
			r.Programs = d.programs(r.Programs, e, base)
		}
	}
}

// driverKind says which attribute makes git run e's value.
func driverKind(e Entry) (string, bool) {
	if !e.hasSubsection() || !Executable(e) {
		return "", false
	}
	switch e.Section + "." + e.Key {
	case "filter.clean", "filter.smudge", "filter.process":
		return "filter", true
	case "diff.command", "diff.textconv":
		return "diff", true
	case "merge.driver":
		return "merge", true
	}
	return "", false
}

// programs appends the files inside the workspace that e's value names: words
// that exist, seen from base, the way a shell would cut them.
func (d *discovery) programs(out []Program, e Entry, base string) []Program {
	cut := func(c rune) bool { return strings.ContainsRune(" \t\n'\"!;|&()<>=`$", c) }
	for w := range strings.FieldsFuncSeq(e.Value, cut) {
		if strings.HasPrefix(w, "-") || len(w) > 4096 {
			continue
		}
		p := realOr(expand(w, d.Home, base))
		if !inside(d.Workspace, p) || slices.Contains(out, Program{p, e.Name}) {
			continue
		}
		if fi, err := os.Lstat(p); err == nil && fi.Mode().IsRegular() {
			out = append(out, Program{p, e.Name})
		}
	}
	return out
}

// namedAndReal returns a path and, last, what it resolves to if that differs.
func namedAndReal(path string) []string {
	if real := realOr(path); real != path {
		return []string{path, real}
	}
	return []string{path}
}

// realIn is [realOr] for a path whose folder has no links in it.
func realIn(path string) string {
	if fi, err := os.Lstat(path); err != nil || fi.Mode()&fs.ModeSymlink == 0 {
		return path
	}
	return realOr(path)
}

// realOr resolves links in as much of a path as exists and keeps the rest, so
// that a missing file is named where it would come to lie.
func realOr(path string) string {
	rest := ""
	for p := path; ; {
		if real, err := filepath.EvalSymlinks(p); err == nil {
			return filepath.Join(real, rest)
		}
		dir := filepath.Dir(p)
		if dir == p {
			return path
		}
		rest = filepath.Join(filepath.Base(p), rest)
		p = dir
	}
}
