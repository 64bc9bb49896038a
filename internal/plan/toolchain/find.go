// Package toolchain knows which folders of a home a toolchain needs, and shows
// those and no more.
//
// A home is hidden inside; compilers, interpreters and package managers that
// are installed in it are not secrets. The table says for each of them where
// it lies, which of its folders are needed and what in them stays hidden. What
// the table does not name is not shown, however plainly PATH points to it.
//
// Promised: nothing is shown that was reached through a folder which the
// sandbox may write, or, outside of the home, one that anybody may write; no
// folder that holds a home; nothing of the list of credentials. A shown folder
// may hold a root of the policy (a workspace in ~/bin): the root's own view
// goes over it.
//
// Not promised: that a file with a name of its own inside a shown folder (a
// script in ~/.local/bin with a password in it) holds no secret; that a second
// mount of a writable root is known for one; and that what was looked at stays
// as it is until it is mounted. Whoever mounts must not follow links in Path,
// which is canonical.
package toolchain

import (
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Input is what a search starts from.
type Input struct {
	// Home is the caller's home as the account database spells it.
	Home string
	// Homes are all homes that stay closed, as spelled or canonical.
	Homes []string
	// Env is the caller's environment in the form of os.Environ; some
	// variables say where a toolchain lies.
	Env []string
	// Roots are the canonical workspace and every canonical root that the
	// sandbox may write now or in a later turn. Nothing in them, and nothing
	// reached through them, is added.
	Roots []string
	// Visible are canonical folders that are shown anyway, the system's and
	// the roots that may be read, and the names of links at the top that lead
	// to them, such as /bin.
	Visible []string
	// FS is the file system; nil is the machine's.
	FS FS
}

// Show is a folder or file to show, read-only.
type Show struct {
	// Path is canonical.
	Path string
	// File is true for anything but a folder.
	File bool
	// Deny are canonical paths below Path that stay hidden.
	Deny []string
	// Tool names the row of the table, Why what it is for.
	Tool, Why string
}

// Link is a symbolic link that must exist inside for names to resolve.
type Link struct{ Path, To string }

// Cache is a module cache of the user's, to be shown read-only as a source.
type Cache struct {
	Tool string
	// Path is canonical.
	Path string
	// Into and Rel say where a tool inside would look for the same: at Rel
	// below the folder that the variable Into names. Empty: it reads Path by
	// Env, or by a setting of the package environ.
	Into, Rel string
	// Env is the NAME=VALUE by which the tool reads Path in place, or empty.
	Env string
}

// Skip is something that was there and is not shown.
type Skip struct{ Path, Tool, Why string }

// Result is what was found. All lists are sorted.
type Result struct {
	Shows []Show
	// Links lie outside of Shows and Visible.
	Links []Link
	// Env are NAME=VALUE pairs that tell the tools where they are, with paths
	// as the caller spells them.
	Env     []string
	Caches  []Cache
	Skipped []Skip
}

// finder is one search.
type finder struct {
	in    Input
	w     walker
	home  string          // canonical
	homes []string        // canonical and as spelled
	names map[string]bool // what lies in the home; nil when it cannot be listed
	res   Result
	links []Link
}

// Shown finds the toolchains and caches of a home. An empty or relative Home
// finds nothing. Things that are missing are no error, and things that cannot
// be used are in Skipped.
func Shown(in Input) Result {
	if in.FS == nil {
		in.FS = Machine{}
	}
	f := finder{in: in, w: walker{fs: in.FS, avoid: in.Roots, seen: make(map[string]fs.FileInfo, 256)}}
	if !plain(in.Home) {
		return Result{}
	}
	f.in.Home = path.Clean(in.Home)
	f.w.home = f.in.Home
	home, err := f.w.follow(in.Home)
	if err != nil || home.real == "/" {
		return Result{}
	}
	f.home, f.w.home = home.real, home.real
	f.homes = []string{f.in.Home, home.real}
	for _, h := range in.Homes {
		if !plain(h) || path.Clean(h) == "/" {
			continue
		}
		f.homes = append(f.homes, path.Clean(h))
		if w, err := f.w.follow(h); err == nil && w.real != "/" {
			f.homes = append(f.homes, w.real)
		}
	}
	// One listing spares a look-up for nearly every row.
	if entries, err := in.FS.ReadDir(f.home); err == nil {
		f.names = make(map[string]bool, len(entries))
		for _, e := range entries {
			f.names[e.Name()] = true
		}
	}
	vars := f.variables()
	for i := range rows {
		f.row(&rows[i], vars)
	}
	for i := range caches {
		f.cache(&caches[i], vars)
	}
	f.merge()
	f.deny()
	f.path(vars["PATH"])
	if len(f.links) > 0 || len(f.res.Shows) > 0 || len(f.res.Caches) > 0 {
		f.links = append(f.links, home.links...)
	}
	f.finish()
	return f.res
}

// variables returns the plain values of the caller's variables, and PATH.
func (f *finder) variables() map[string]string {
	m := make(map[string]string, len(f.in.Env))
	for _, kv := range f.in.Env {
		if name, value, ok := strings.Cut(kv, "="); ok && (name == "PATH" || strings.HasPrefix(value, "/")) {
			m[name] = value
		}
	}
	return m
}

// place is where a toolchain may lie.
type place struct {
	spelled string
	byVar   bool
}

// places lists where a row says that its folder may be.
func (f *finder) places(vars map[string]string, names, dirs string) []place {
	var out []place
	for v := range strings.FieldsSeq(names) {
		name, below, _ := strings.Cut(v, "/")
		value, ok := vars[name]
		if !ok {
			continue
		}
		for dir := range strings.SplitSeq(value, ":") {
			if plain(dir) {
				out = append(out, place{path.Join(dir, below), true})
			}
		}
	}
	for d := range strings.FieldsSeq(dirs) {
		if !strings.HasPrefix(d, "/") {
			top, _, _ := strings.Cut(d, "/")
			if f.names != nil && !f.names[top] {
				continue
			}
			d = path.Join(f.in.Home, d)
		}
		if !slices.Contains(out, place{d, true}) {
			out = append(out, place{d, false})
		}
	}
	return out
}

// row shows what is there of one row.
func (f *finder) row(r *row, vars map[string]string) {
	set := false
	for _, p := range f.places(vars, r.vars, r.dirs) {
		base, ok := f.base(p, r.tool, r.mark)
		if !ok {
			continue
		}
		f.links = append(f.links, base.links...)
		if !f.shows(base.real, r, insideAny(base.real, f.in.Visible)) || set {
			continue
		}
		set = true // the first place found is the one that the tool uses
		for s := range strings.FieldsSeq(r.set) {
			name, rel, _ := strings.Cut(s, "=")
			if rel == "." || f.w.exists(join(base.real, rel)) {
				f.setEnv(name + "=" + path.Join(p.spelled, rel))
			}
		}
	}
}

// shows adds the sub-folders of a toolchain, and reports whether one is there.
func (f *finder) shows(base string, r *row, visible bool) bool {
	found := false
	var denied []string
	if !visible {
		for d := range strings.FieldsSeq(r.deny) {
			denied = append(denied, f.w.expand(base, d)...)
		}
	}
	for pattern := range strings.FieldsSeq(r.show) {
		for _, p := range f.w.expand(base, pattern) {
			to, ok := f.sub(p, base, r.tool)
			if !ok {
				continue
			}
			found = true
			f.links = append(f.links, to.links...)
			// A link inside of the folder is no more than that: what it leads
			// to is there when the table shows it by its own name.
			if visible || len(to.links) > 0 {
				continue
			}
			s := Show{Path: to.real, File: !to.mode.IsDir(), Tool: r.tool, Why: "programs and libraries of " + r.tool}
			if r.tool == "programs" {
				s.Why = "programs that the user installed"
			}
			for _, d := range denied {
				if inside(d, p) {
					s.Deny = append(s.Deny, d)
				}
			}
			f.res.Shows = append(f.res.Shows, s)
		}
	}
	return found
}

// cache finds one module cache.
func (f *finder) cache(c *cacheRow, vars map[string]string) {
	for _, p := range f.places(vars, c.vars, c.dirs) {
		base, ok := f.base(p, c.tool, c.show)
		if !ok {
			continue
		}
		for pattern := range strings.FieldsSeq(c.show) {
			for _, sub := range f.w.expand(base.real, pattern) {
				w, ok := f.sub(sub, base.real, c.tool)
				if !ok || !w.mode.IsDir() {
					continue
				}
				f.links = append(f.links, base.links...)
				out := Cache{Tool: c.tool, Path: w.real, Into: c.into}
				if c.into != "" {
					out.Rel = "."
					if sub != base.real {
						out.Rel = sub[len(base.real)+1:]
					}
				}
				if name, rel, ok := strings.Cut(c.set, "="); ok {
					out.Env = name + "=" + path.Join(p.spelled, rel)
				}
				f.res.Caches = append(f.res.Caches, out)
			}
		}
		return // the tool reads one cache
	}
}

// merge sorts what is shown and drops what lies inside of another.
func (f *finder) merge() {
	shows := f.res.Shows
	slices.SortStableFunc(shows, func(a, b Show) int { return strings.Compare(a.Path, b.Path) })
	var out []Show
	for _, s := range shows {
		i := slices.IndexFunc(out, func(o Show) bool { return inside(s.Path, o.Path) })
		if i < 0 {
			out = append(out, s)
			continue
		}
		out[i].Deny = append(out[i].Deny, s.Deny...)
	}
	f.res.Shows = out
}

// deny makes the denied paths canonical and adds the credentials.
func (f *finder) deny() {
	for i := range f.res.Shows {
		s := &f.res.Shows[i]
		paths := s.Deny
		if own, ok := f.below(s.Path); ok {
			for _, n := range never {
				if inside(n, own) {
					paths = append(paths, path.Join(f.home, n))
				}
			}
		}
		s.Deny = nil
		for _, p := range paths {
			// A link is followed: what it leads to is the secret. One that
			// leads out of what is shown leads to nothing inside.
			if w, err := f.w.follow(p); err == nil && inside(w.real, s.Path) && w.real != s.Path {
				s.Deny = append(s.Deny, w.real)
			}
		}
		slices.Sort(s.Deny)
		s.Deny = slices.Compact(s.Deny)
	}
}

// path finds the links by which names on PATH reach what is shown.
func (f *finder) path(list string) {
	const most = 128
	n := 0
	for dir := range strings.SplitSeq(list, ":") {
		if n++; n > most {
			return
		}
		if !plain(dir) || insideAny(path.Clean(dir), f.in.Visible) {
			continue
		}
		w, err := f.w.follow(dir)
		if err != nil || len(w.links) == 0 {
			continue
		}
		if insideAny(w.real, f.in.Visible) || slices.ContainsFunc(f.res.Shows, func(s Show) bool { return inside(w.real, s.Path) }) {
			f.links = append(f.links, w.links...)
		}
	}
}

// finish sorts the rest and keeps the links that nothing shown holds already.
func (f *finder) finish() {
	for _, l := range f.links {
		if insideAny(l.Path, f.in.Visible) || slices.Contains(f.res.Links, l) ||
			slices.ContainsFunc(f.res.Shows, func(s Show) bool { return inside(l.Path, s.Path) }) {
			continue
		}
		f.res.Links = append(f.res.Links, l)
	}
	slices.SortFunc(f.res.Links, func(a, b Link) int { return strings.Compare(a.Path, b.Path) })
	slices.Sort(f.res.Env)
	slices.SortStableFunc(f.res.Caches, func(a, b Cache) int { return strings.Compare(a.Path, b.Path) })
	f.res.Caches = slices.CompactFunc(f.res.Caches, func(a, b Cache) bool { return a.Path == b.Path })
	slices.SortStableFunc(f.res.Skipped, func(a, b Skip) int { return strings.Compare(a.Path, b.Path) })
	f.res.Skipped = slices.CompactFunc(f.res.Skipped, func(a, b Skip) bool { return a.Path == b.Path })
}

// setEnv sets a variable once; the first row that does wins.
func (f *finder) setEnv(kv string) {
	name, _, _ := strings.Cut(kv, "=")
	if !slices.ContainsFunc(f.res.Env, func(s string) bool { return strings.HasPrefix(s, name+"=") }) {
		f.res.Env = append(f.res.Env, kv)
	}
}

func (f *finder) skip(p, tool, why string) {
	f.res.Skipped = append(f.res.Skipped, Skip{Path: p, Tool: tool, Why: why})
}
