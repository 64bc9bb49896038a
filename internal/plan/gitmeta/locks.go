package gitmeta

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// LockKind says what lies, or would lie, at a locked path.
type LockKind uint8

// The kinds of lock.
const (
	// File: a regular file.
	File LockKind = iota
	// Dir: a directory with all below it.
	Dir
	// Link: a symbolic link. No mount can hold one; what it leads to is locked
	// on its own, and [Settle] finds a link that was replaced.
	Link
)

// Lock is one path that a command must not write.
type Lock struct {
	Path   string
	Exists bool
	Kind   LockKind
	// Pin: the directory itself has to become a mount, writable as it is, so
	// that it can be neither renamed nor removed with the locks below it. All
	// other locks are read-only.
	Pin bool
	// Hide: the file must be unreadable too, since it could not be filtered.
	Hide bool
	// Replace is what to show in place of the file; nil shows the file.
	Replace []byte
	// Secret: the file holds something that must not be seen.
	Secret bool
	Why    string
}

// Locks lists every path of a repository through which git finds its
// configuration, its hooks or a program to run, present or not: config,
// config.worktree, hooks and every configured hooks folder inside the
// workspace, info (attributes; exclude and sparse-checkout are locked with
// it), commondir and gitdir, remotes and branches (the old way to write
// remotes), the .git file, included files inside the workspace, objects/info/
// alternates where there is one, and the same in all modules and worktrees.
//
// Pins are every git directory and each directory between it and a git
// directory of a submodule or worktree within, and between the worktree and a
// hooks folder or an included file in the tree. Folders between the workspace
// and a nested repository are not pinned, because moving folders is ordinary
// work; what is built in their place is a new repository to [Settle].
//
// Nothing is listed for Foreign repositories without a git directory inside
// but the .git entry itself; for a Parent only what lies in the workspace.
// Programs are not locked (see [Repo.Programs]).
func Locks(r Repo) []Lock { return AllLocks([]Repo{r}) }

// AllLocks is [Locks] for many repositories, each path once: the worktrees of
// one repository share most of them.
func AllLocks(repos []Repo) []Lock {
	l := &locker{at: map[string]int{}}
	for _, r := range repos {
		l.repo = r
		if r.Kind == Parent {
			l.tree()
			continue
		}
		l.entry()
		if r.GitDir == "" {
			continue
		}
		l.pins(r.Worktree, r.CommonDir)
		l.gitDir(r.CommonDir, 0)
		l.pins(r.CommonDir, r.GitDir)
		l.gitDir(r.GitDir, 0)
		l.tree()
	}
	return l.locks
}

type locker struct {
	repo  Repo
	locks []Lock
	at    map[string]int // path → 1 + index in locks
}

func (l *locker) add(k Lock) {
	if i := l.at[k.Path]; i > 0 {
		// Read-only wins over a pin for the same path.
		if have := &l.locks[i-1]; have.Pin && !k.Pin {
			*have = k
		}
		return
	}
	l.locks = append(l.locks, k)
	l.at[k.Path] = len(l.locks)
}

// path locks what is at p, or would be, and what a link there leads to.
func (l *locker) path(p string, kind LockKind, why string) {
	fi, err := os.Lstat(p)
	if err != nil {
		l.add(Lock{Path: p, Kind: kind, Why: why})
		return
	}
	if fi.Mode()&fs.ModeSymlink != 0 {
		l.add(Lock{Path: p, Exists: true, Kind: Link, Why: why})
		p = realOr(p)
		if fi, err = os.Lstat(p); err != nil || !l.reach(p) {
			return
		}
	}
	if fi.IsDir() {
		l.dir(p, kind, why)
		return
	}
	l.add(Lock{Path: p, Exists: true, Kind: File, Why: why})
}

// dir locks a directory, unless that would lock the repository's own folders:
// then only the names that git looks for in it.
func (l *locker) dir(p string, kind LockKind, why string) {
	if kind == Dir && l.repo.within(p) {
		for _, name := range hookNames {
			l.path(filepath.Join(p, name), File, why)
		}
		return
	}
	l.add(Lock{Path: p, Exists: true, Kind: Dir, Why: why})
}

// within says whether the repository lies in dir, or is it.
func (r Repo) within(dir string) bool {
	return inside(dir, r.GitDir) || inside(dir, r.CommonDir) || inside(dir, r.Worktree) || inside(dir, r.Workspace)
}

// reach says whether a path is one that the command may come to write.
func (l *locker) reach(p string) bool {
	r := l.repo
	return inside(r.Workspace, p) || r.Verified && r.Kind != Parent && inside(r.CommonDir, p)
}

func (l *locker) config(p, why string) {
	fi, err := os.Lstat(p)
	l.path(p, File, why)
	if err != nil || fi.IsDir() {
		return
	}
	k := &l.locks[l.at[p]-1]
	if k.Kind == Link {
		if p = realOr(p); l.at[p] == 0 {
			return
		}
		k = &l.locks[l.at[p]-1]
	}
	raw, err := readRegular(p, MaxConfig)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		k.Hide = true
		return
	}
	out, changed, err := Filtered(raw)
	k.Hide = err != nil
	k.Secret = changed || k.Hide
	if !k.Hide {
		var plain bool
		if out, plain = withoutWorktree(out, filepath.Dir(p)); changed || plain {
			k.Replace = out
		}
	}
}

// withoutWorktree returns the configuration of the git directory g without a
// core.worktree that says no more than the .git file there does, by which git
// comes to this configuration. While it stands, "git submodule update" writes
// it again, though nothing changes.
func withoutWorktree(raw []byte, g string) ([]byte, bool) {
	entries, err := Parse(raw)
	if err != nil {
		return raw, false
	}
	var edits []edit
	for _, e := range entries {
		if e.Name != "core.worktree" {
			continue
		}
		entry := filepath.Join(expand(e.Value, "/", g), ".git")
		fi, err := os.Lstat(entry)
		if err != nil || !fi.Mode().IsRegular() {
			return raw, false
		}
		to, err := pointerText(entry, "gitdir: ")
		if err != nil {
			return raw, false
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(entry), to)
		}
		if realOr(to) != realOr(g) {
			return raw, false
		}
		edits = append(edits, edit{span: span{e.Start, e.End}})
	}
	return apply(raw, edits), len(edits) > 0
}

// entry locks the .git entry itself.
func (l *locker) entry() {
	const why = "it says where the repository is"
	fi, err := os.Lstat(l.repo.Entry)
	switch {
	case err != nil:
	case fi.IsDir():
		l.add(Lock{Path: l.repo.Entry, Exists: true, Kind: Dir, Pin: true, Why: why})
	default:
		l.path(l.repo.Entry, File, why)
	}
}

// maxDepth bounds how deep modules and worktrees may nest.
const maxDepth = 32

func (l *locker) gitDir(g string, depth int) {
	if _, done := l.at[filepath.Join(g, "config.worktree")]; done || depth > maxDepth {
		return
	}
	l.add(Lock{Path: g, Exists: true, Kind: Dir, Pin: true, Why: "a git directory moved away could be rebuilt"})
	l.config(filepath.Join(g, "config"), "git's configuration")
	l.config(filepath.Join(g, "config.worktree"), "git's configuration of one worktree")
	l.path(filepath.Join(g, "hooks"), Dir, "git's hooks")
	l.path(filepath.Join(g, "info"), Dir, "attributes bind files to programs")
	l.path(filepath.Join(g, "commondir"), File, "it says where configuration and hooks are")
	l.path(filepath.Join(g, "gitdir"), File, "it proves which worktree this is")
	for _, name := range [...]string{"remotes", "branches"} {
		l.path(filepath.Join(g, name), Dir, "the old way to name remotes")
	}
	if alternates := filepath.Join(g, "objects/info/alternates"); exists(alternates) {
		l.path(alternates, File, "it says where objects are")
	}
	worktrees := filepath.Join(g, "worktrees")
	for _, name := range subdirs(worktrees) {
		id := filepath.Join(worktrees, name)
		l.pins(g, id)
		l.gitDir(id, depth+1)
	}
	l.modules(g, filepath.Join(g, "modules"), depth+1)
}

// modules descends to every git directory below dir; names of submodules may
// have slashes.
func (l *locker) modules(g, dir string, depth int) {
	if depth > maxDepth {
		return
	}
	for _, name := range subdirs(dir) {
		m := filepath.Join(dir, name)
		l.pins(g, m)
		if has(m, "HEAD") || has(m, "config") || has(m, "commondir") {
			l.gitDir(m, depth)
		} else {
			l.modules(g, m, depth+1)
		}
	}
}

// tree locks what configuration names in the tree.
func (l *locker) tree() {
	base := l.repo.Worktree
	if base == "" || !inside(l.repo.Workspace, base) {
		base = l.repo.Workspace
	}
	for _, p := range l.repo.Includes {
		if l.reach(p) {
			l.pins(base, filepath.Dir(p))
			l.config(p, "git's configuration includes it")
		}
	}
	for _, p := range l.repo.HookDirs {
		if l.reach(p) {
			l.pins(base, filepath.Dir(p))
			l.path(p, Dir, "git finds hooks here")
			if !l.repo.within(p) {
				l.hookLinks(p)
			}
		}
	}
}

// hookLinks locks files of the tree that a hooks folder links to.
func (l *locker) hookLinks(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if e.Type()&fs.ModeSymlink == 0 {
			continue
		}
		p := realOr(filepath.Join(dir, e.Name()))
		if fi, err := os.Lstat(p); err == nil && fi.Mode().IsRegular() && l.reach(p) {
			l.add(Lock{Path: p, Exists: true, Kind: File, Why: "a hook links to it"})
		}
	}
}

// pins adds path and the existing directories above it up to base, which is
// not pinned.
func (l *locker) pins(base, path string) {
	if path == base || !inside(base, path) || !l.reach(path) || path == l.repo.Workspace {
		return
	}
	var chain []string
	for p := path; p != base; p = filepath.Dir(p) {
		chain = append(chain, p)
	}
	for _, p := range slices.Backward(chain) {
		fi, err := os.Lstat(p)
		if err != nil || !fi.IsDir() {
			return
		}
		l.add(Lock{Path: p, Exists: true, Kind: Dir, Pin: true, Why: "moved away, its locks would go with it"})
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// subdirs lists the real directories in dir.
func subdirs(dir string) []string {
	if fi, err := os.Lstat(dir); err != nil || !fi.IsDir() {
		return nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() && !strings.ContainsRune(e.Name(), 0) {
			names = append(names, e.Name())
		}
	}
	return names
}
