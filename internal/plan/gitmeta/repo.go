package gitmeta

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tether-sandbox/tether/fault"
)

var (
	errTooBig     = errors.New("too big to be git's")
	errNotRegular = errors.New("not a regular file")
)

// Kind says how a repository relates to the workspace.
type Kind uint8

// The kinds.
const (
	// Foreign: the entry leads out of the workspace to something that did not
	// prove that it belongs here. Nothing of it may be shown.
	Foreign Kind = iota
	// Main: a git directory of its own inside the workspace.
	Main
	// Linked: a worktree made by `git worktree add`.
	Linked
	// Submodule: the git directory lies in a superproject's .git/modules.
	Submodule
	// Bare: a directory that git takes for a repository without a worktree.
	Bare
	// Parent: the workspace lies in the worktree of a repository outside.
	Parent
)

// String returns the kind in one lower-case word.
func (k Kind) String() string {
	names := [...]string{"foreign", "main", "linked", "submodule", "bare", "parent"}
	if int(k) < len(names) {
		return names[k]
	}
	return "foreign"
}

// Search is what [Discover] starts from.
type Search struct {
	// Workspace is the canonical workspace.
	Workspace string
	// GitEntries are all .git files, directories and links in it, and Bare all
	// directories that look like a git directory (see [BareLooking]), as a walk
	// that follows no link found them.
	GitEntries, Bare []string
	// Homes are home directories, canonical; no git directory is one.
	Homes []string
	// Home is the caller's, for ~ in configuration.
	Home string
	// Host are the entries of the host's system and global configuration, in
	// that order: they too can name a hooks directory. See [HostEntries].
	Host []Entry
}

// Repo is one repository, or what claims to be one, in reach of a workspace.
// All paths are absolute, with links resolved where they exist.
type Repo struct {
	Kind Kind
	// Verified: the git directory lies in the workspace with all that it leads
	// to, or it proved to belong to it. Nothing outside the workspace may be
	// shown of a repository that is not; Why says what was wrong.
	Verified bool
	Why      string
	// Workspace is the one that was searched.
	Workspace string
	// Entry is the .git file, directory or link, or the bare directory.
	Entry string
	// Worktree is the folder of Entry; empty for Bare.
	Worktree string
	// GitDir is the repository's own directory and CommonDir the one that it
	// shares with its other worktrees (the same, mostly). Both are empty when
	// they lie outside and are not Verified.
	GitDir, CommonDir string
	// Config, ConfigWorktree and Attributes are the files that git reads,
	// whether they exist or not.
	Config, ConfigWorktree, Attributes string
	// HooksDir is where git finds hooks by the configuration as it is, links
	// resolved. HookDirs is every folder where it could find them (the default
	// one, those of includes whose condition may hold), as named and, where
	// that differs, as resolved; HooksDir is among them.
	HooksDir string
	HookDirs []string
	// Includes are the configuration files inside the workspace that the
	// repository's configuration includes, existing or not, whatever the
	// condition, as named and as resolved.
	Includes []string
	// Programs are files inside the workspace that executable keys name. They
	// are ordinary files of the tree that run later on the host.
	Programs []Program
	// Drivers are the attributes ("filter=x") for which the host's or the
	// repository's configuration has a program.
	Drivers []string
	// Hostile says why the configuration cannot be used (it does not parse, is
	// too big, is no file): then it must be hidden, not shown. Empty: it can.
	Hostile string

	outside bool // the entry leads, or would lead, out of the workspace
}

// Program is a file that a key of a repository's configuration makes git run.
type Program struct{ Path, Key string }

// Discover finds what the .git entries of a workspace are. It runs nothing and
// trusts nothing that they say: of a git directory outside the workspace it
// reports paths only if
//
//   - for a linked worktree, it lies in COMMON/worktrees/ID, its back-pointer
//     names this very .git file, and its commondir leads to that COMMON;
//   - for a submodule, it lies in the modules of a .git directory and its
//     core.worktree is this very worktree;
//
// and both ways the common directory looks like one, belongs to the owner of
// the workspace, and is no home, no system folder and nothing that contains
// the workspace. All comparisons are by identity, not by name.
//
// The enclosing repository of the workspace, if there is one, comes last as
// [Parent]. Repositories whose configuration is damaged are returned with
// Hostile set. An error means that the workspace cannot be read at all, or
// that an entry does not lie in it.
func Discover(s Search) ([]Repo, error) {
	ws, err := os.Stat(s.Workspace)
	if err != nil {
		return nil, fault.Wrap(fault.SandboxBadWorkspace, "cannot look for git repositories", err)
	}
	d := &discovery{Search: s, ws: ws, configs: map[string]configFile{}}
	var repos []Repo
	seen := map[string]bool{}
	for _, e := range s.GitEntries {
		if !inside(s.Workspace, e) {
			return nil, fault.New(fault.Internal, fmt.Sprintf("%s does not lie in the workspace", e))
		}
		if !d.calledGit(e) {
			continue
		}
		r := d.entry(e)
		seen[r.GitDir], seen[r.CommonDir] = true, true
		repos = append(repos, r)
	}
	for _, b := range s.Bare {
		if !inside(s.Workspace, b) {
			return nil, fault.New(fault.Internal, fmt.Sprintf("%s does not lie in the workspace", b))
		}
		if !seen[b] && BareLooking(func(name string) bool { return has(b, name) }) && !d.administrative(b, seen) {
			repos = append(repos, d.bare(b))
			seen[b] = true
		}
	}
	if r, ok := d.parent(); ok {
		repos = append(repos, r)
	}
	for i := range repos {
		d.configure(&repos[i])
	}
	return repos, nil
}

// calledGit says whether git finds an entry as .git. A walk that knows nothing of
// the file system hands over every name that some file system takes for it; of
// those with foreign letters the file system itself is asked.
func (d *discovery) calledGit(entry string) bool {
	dir, base := filepath.Split(entry)
	for i := range len(base) {
		if base[i] >= 0x80 {
			return same(filepath.Join(dir, ".git"), entry)
		}
	}
	return true
}

// administrative says whether dir is what a repository that was seen keeps of
// one of its worktrees: it is covered with the repository.
func (d *discovery) administrative(dir string, seen map[string]bool) bool {
	up := filepath.Dir(dir)
	if filepath.Base(up) != "worktrees" || !seen[filepath.Dir(up)] {
		return false
	}
	common, err := d.pointer(filepath.Join(dir, "commondir"), dir, "")
	return err == nil && common == filepath.Dir(up)
}

type discovery struct {
	Search
	ws      os.FileInfo
	configs map[string]configFile
}

// entry classifies one .git entry of the workspace.
func (d *discovery) entry(path string) Repo {
	r := Repo{Workspace: d.Workspace, Entry: path, Worktree: filepath.Dir(path)}
	fi, err := os.Lstat(path)
	if err != nil {
		return r.foreign("it cannot be read: " + err.Error())
	}
	target := path
	if fi.Mode()&os.ModeSymlink != 0 {
		if target, err = filepath.EvalSymlinks(path); err != nil {
			name, _ := os.Readlink(path)
			r.outside = d.leadsOut(name, r.Worktree)
			return r.foreign("it is a link that leads nowhere")
		}
		if !inside(d.Workspace, target) {
			r.outside = true
			return r.foreign("it is a link that leads out of the workspace")
		}
		if fi, err = os.Lstat(target); err != nil {
			return r.foreign("it cannot be read: " + err.Error())
		}
	}
	switch {
	case fi.IsDir():
		return d.within(r, target)
	case !fi.Mode().IsRegular():
		return r.foreign("it is neither a file nor a directory")
	}
	dir, err := d.pointer(target, filepath.Dir(path), "gitdir: ")
	if err != nil {
		if name, textErr := pointerText(target, "gitdir: "); textErr == nil {
			r.outside = d.leadsOut(name, r.Worktree)
		}
		return r.foreign(err.Error())
	}
	if inside(d.Workspace, dir) {
		return d.within(r, dir)
	}
	r.outside = true
	if _, err := os.Lstat(filepath.Join(dir, "commondir")); err == nil {
		return d.linkedOutside(r, dir)
	}
	return d.submoduleOutside(r, dir)
}

// leadsOut says whether a path that is not there would lie outside.
func (d *discovery) leadsOut(name, base string) bool {
	return !inside(d.Workspace, realOr(expand(name, "/", base)))
}

func (r Repo) foreign(why string) Repo {
	r.Kind, r.Verified, r.Why, r.GitDir, r.CommonDir = Foreign, false, why, "", ""
	return r
}

// pointer reads a one-line file that names a directory, relative to base, and
// returns it with links resolved.
func (d *discovery) pointer(file, base, prefix string) (string, error) {
	name, err := pointerText(file, prefix)
	if err != nil {
		return "", err
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(base, name)
	}
	real, err := filepath.EvalSymlinks(name)
	if err != nil {
		return "", errors.New("it names a directory that is not there")
	}
	if fi, err := os.Lstat(real); err != nil || !fi.IsDir() {
		return "", errors.New("it names something that is no directory")
	}
	return real, nil
}

func pointerText(file, prefix string) (string, error) {
	raw, err := readRegular(file, 1<<16)
	if err != nil {
		return "", err
	}
	name, ok := strings.CutPrefix(strings.TrimRight(string(raw), "\r\n"), prefix)
	if !ok || name == "" || strings.IndexByte(name, 0) >= 0 {
		return "", errors.New("it is not a pointer that git would follow")
	}
	return name, nil
}

// within fills r for a git directory inside the workspace.
func (d *discovery) within(r Repo, dir string) Repo {
	r.GitDir, r.CommonDir, r.Kind = dir, dir, Main
	pointer := filepath.Join(dir, "commondir")
	if _, err := os.Lstat(pointer); err == nil {
		common, err := d.pointer(pointer, dir, "")
		switch {
		case err != nil:
			return d.unsure(r, "commondir: "+err.Error())
		case !inside(d.Workspace, common):
			return d.unsure(r, "commondir leads out of the workspace")
		}
		r.Kind, r.CommonDir = Linked, common
		if err := d.backPointer(r, dir, common); err != nil {
			return d.unsure(r, err.Error())
		}
	} else if inModules(dir) {
		r.Kind = Submodule
	}
	if !gitDirLike(r.CommonDir) || !has(dir, "HEAD") {
		return d.unsure(r, "it is no complete git directory")
	}
	r.Verified = true
	return r
}

// unsure keeps what lies inside the workspace, because it has to be locked all
// the same, and forgets what does not.
func (d *discovery) unsure(r Repo, why string) Repo {
	if !inside(d.Workspace, r.CommonDir) {
		r.CommonDir = r.GitDir
	}
	r.Verified, r.Why = false, why
	return r
}

func (d *discovery) bare(dir string) Repo {
	r := d.within(Repo{Workspace: d.Workspace, Entry: dir}, dir)
	r.Kind = Bare
	return r
}

// parent walks up from the workspace. It reads no further than the first git
// directory, as git does.
func (d *discovery) parent() (Repo, bool) {
	for dir := filepath.Dir(d.Workspace); ; dir = filepath.Dir(dir) {
		entry := filepath.Join(dir, ".git")
		r := Repo{Kind: Parent, Workspace: d.Workspace, Entry: entry, Worktree: dir}
		if fi, err := os.Stat(entry); err == nil {
			git := entry
			if fi.Mode().IsRegular() {
				git, err = d.pointer(entry, dir, "gitdir: ")
			} else {
				git, err = filepath.EvalSymlinks(entry)
			}
			if err == nil && has(git, "HEAD") {
				return d.enclosing(r, git), true
			}
		}
		if gitDirLike(dir) {
			r.Entry, r.Worktree = dir, ""
			return d.enclosing(r, dir), true
		}
		if dir == filepath.Dir(dir) {
			return Repo{}, false
		}
	}
}

func (d *discovery) enclosing(r Repo, git string) Repo {
	r.GitDir, r.CommonDir, r.Verified = git, git, true
	if common, err := d.pointer(filepath.Join(git, "commondir"), git, ""); err == nil {
		r.CommonDir = common
	}
	if slices.Contains(d.Homes, r.Worktree) {
		r.Why = "it is the repository of a whole home directory"
	}
	if fi, err := os.Lstat(r.CommonDir); err == nil {
		if uid, ok := owner(fi); !ok {
			r.Verified, r.Why = false, "its owner is unknown"
		} else if want, _ := owner(d.ws); uid != want {
			r.Verified, r.Why = false, "it belongs to another user than the workspace"
		}
	}
	return r
}
