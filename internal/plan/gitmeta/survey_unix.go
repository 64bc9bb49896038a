//go:build linux || darwin

package gitmeta

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// survey looks at every watched path through handles: a root is opened once
// and everything below it is reached component by component without following
// a link, so that nothing planted leads it elsewhere or makes it wait.
type survey struct {
	ws    string
	after bool // the command has run: folders it made unreadable are opened up
	roots []root
	seen  map[string]bool // git directories already looked at
	items map[string]Item
	// before and closed are of the snapshot: files and folders that could not
	// be read then stay as they are.
	before map[string]Item
	closed []string
	// dirs says which folders the git directories are, by path.
	dirs map[string]string
	// early, when not nil, says that the command still runs.
	early *Early
}

type root struct {
	path string
	fd   int
}

// openSurvey opens the workspace and the common directories outside it.
func openSurvey(workspace string, commons []string) (*survey, error) {
	s := &survey{ws: workspace, seen: map[string]bool{}, items: map[string]Item{}, dirs: map[string]string{}}
	for _, p := range append([]string{workspace}, commons...) {
		fd, err := openRoot(p)
		if err == unix.ENOENT && p != workspace {
			continue // nothing is left of it to look at
		}
		if err != nil {
			s.close()
			return nil, &fs.PathError{Op: "open", Path: p, Err: err}
		}
		s.roots = append(s.roots, root{p, fd})
	}
	return s, nil
}

// openRoot opens a canonical path without following a link anywhere on it: where
// one root lies in another, or in that of another run, a command can move the
// folders around it, and a link in their place would lead out of all roots.
func openRoot(path string) (int, error) {
	at, err := unix.Open("/", openPlace, 0)
	for name := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		if err != nil || name == "" {
			break
		}
		up := at
		at, err = unix.Openat(up, name, openPlace, 0)
		unix.Close(up)
	}
	return at, err
}

// Reachable says whether a root, given by its canonical path, is still a folder
// that is reached without following a link. What follows one acts elsewhere.
func Reachable(root string) error {
	fd, err := openRoot(root)
	if err != nil {
		return &fs.PathError{Op: "open", Path: root, Err: err}
	}
	return unix.Close(fd)
}

func (s *survey) close() {
	for _, r := range s.roots {
		unix.Close(r.fd)
	}
}

const dirFlags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC

// dir opens a directory in one of the roots. The caller closes it.
func (s *survey) dir(path string) (int, error) {
	for _, r := range s.roots {
		if inside(r.path, path) {
			return s.below(r.fd, strings.Trim(path[len(r.path):], "/"))
		}
	}
	return -1, fmt.Errorf("%s: %w", path, errOutside)
}

var errOutside = errors.New("outside of what may be touched")

// below walks down one component at a time. On the way it needs search
// permission only, as git does.
func (s *survey) below(fd int, rel string) (int, error) {
	if rel == "" {
		return s.sub(fd, ".")
	}
	at := fd
	for {
		name, rest, more := strings.Cut(rel, "/")
		var next int
		err := error(errOutside)
		switch {
		case name == "" || name == "." || name == "..":
		case more:
			next, err = s.handle(at, name)
		default:
			next, err = s.sub(at, name)
		}
		if at != fd {
			unix.Close(at)
		}
		if err != nil {
			return -1, err
		}
		if !more {
			return next, nil
		}
		at, rel = next, rest
	}
}

// handle opens a directory to go through it.
func (s *survey) handle(fd int, name string) (int, error) {
	h, err := openHandle(fd, name, unix.O_DIRECTORY)
	if err != unix.EACCES || !s.open(fd) {
		return h, err
	}
	return openHandle(fd, name, unix.O_DIRECTORY)
}

// sub opens a directory for listing. git runs a hook by its name in a folder
// that nobody can list, so after a command such a folder gets back its owner's
// permissions, and so does one that can be listed and not searched.
func (s *survey) sub(fd int, name string) (int, error) {
	d, err := unix.Openat(fd, name, dirFlags, 0)
	if err == nil {
		var st unix.Stat_t
		if unix.Fstatat(d, ".", &st, unix.AT_SYMLINK_NOFOLLOW) == unix.EACCES {
			s.open(d)
		}
		return d, nil
	}
	if err != unix.EACCES {
		return -1, err
	}
	h, err := s.handle(fd, name)
	if err != nil {
		return -1, err
	}
	defer unix.Close(h)
	if !s.open(h) {
		return -1, unix.EACCES
	}
	return unix.Openat(h, ".", dirFlags, 0)
}

// open gives the owner's permissions to the directory fd after a command, unless
// it was closed before. Before one it notes that it was.
func (s *survey) open(fd int) bool {
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil {
		return false
	}
	id := whichFile(&st)
	if !s.after {
		s.closed = append(s.closed, id)
		return false
	}
	return !slices.Contains(s.closed, id) && chmodFD(fd, uint32(st.Mode)|0o700) == nil
}

// whichFile names a file, whatever it is called.
func whichFile(st *unix.Stat_t) string { return fmt.Sprintf("%d:%d", st.Dev, st.Ino) }

// commonsOf lists the verified common directories outside the workspace.
func commonsOf(workspace string, repos []Repo) []string {
	var out []string
	for _, r := range repos {
		if r.Verified && r.Kind != Parent && r.CommonDir != "" && !inside(workspace, r.CommonDir) &&
			!slices.Contains(out, r.CommonDir) {
			out = append(out, r.CommonDir)
		}
	}
	return out
}

// Take records the state of everything that [Settle] watches. It is cheap: it
// reads git's configuration and hooks, never objects or the tree.
func Take(workspace string, repos []Repo) (Snapshot, error) {
	snap := Snapshot{Workspace: workspace, Commons: commonsOf(workspace, repos)}
	s, err := openSurvey(workspace, snap.Commons)
	if err != nil {
		return snap, err
	}
	defer s.close()
	hooks, includes := map[string]bool{}, map[string]bool{}
	for _, r := range repos {
		for _, p := range r.HookDirs {
			if hooks[p] || !inside(workspace, p) || p == filepath.Join(r.CommonDir, "hooks") {
				continue
			}
			hooks[p] = true
			snap.Hooks = append(snap.Hooks, HookDir{p, r.within(p)})
		}
		for _, p := range r.Includes {
			if !includes[p] {
				includes[p] = true
				snap.Includes = append(snap.Includes, p)
			}
		}
		for _, p := range r.Programs {
			s.one(p.Path, Item{Role: RoleProgram, Key: p.Key})
		}
	}
	s.all(repos, snap)
	snap.Items, snap.Closed, snap.dirs = s.items, s.closed, s.dirs
	return snap, nil
}

// all looks at everything but programs.
func (s *survey) all(repos []Repo, snap Snapshot) {
	for _, r := range repos {
		if r.Kind != Parent {
			s.repo(r, snap)
		}
	}
	s.tree(snap)
}

// tree looks at what configuration named before the command.
func (s *survey) tree(snap Snapshot) {
	for _, p := range snap.Includes {
		s.links(p)
		s.one(p, Item{Role: RoleConfig})
	}
	for _, h := range snap.Hooks {
		s.links(h.Path)
		if fd, err := s.dir(h.Path); err == nil {
			s.hooks(fd, h.Path, RoleTreeHook, h.NamesOnly)
			unix.Close(fd)
		}
	}
}

func (s *survey) repo(r Repo, snap Snapshot) {
	foreignCommon := r.CommonDir != "" && !inside(s.ws, r.CommonDir) && !slices.Contains(snap.Commons, r.CommonDir)
	if r.Kind != Bare && r.Entry != r.GitDir {
		item := Item{Role: RoleEntry}
		if r.outside && (r.Kind == Foreign || foreignCommon) {
			item.Bad = "it leads out of the workspace"
		}
		s.one(r.Entry, item)
	}
	if inside(s.ws, r.Worktree) {
		if fd, err := s.dir(r.Worktree); err == nil {
			s.at(fd, r.Worktree, ".gitmodules", Item{Role: RoleTree})
			s.at(fd, r.Worktree, ".gitattributes", Item{Role: RoleTree}, r.Drivers...)
			unix.Close(fd)
		}
	}
	if r.GitDir == "" || foreignCommon {
		return
	}
	s.gitDir(r.CommonDir, 0)
	s.gitDir(r.GitDir, 0)
}

func (s *survey) gitDir(g string, depth int) {
	if s.seen[g] || depth > maxDepth {
		return
	}
	s.seen[g] = true
	fd, err := s.dir(g)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || s.early != nil && !s.early.knows(g, &st) {
		return
	}
	s.dirs[g] = whichFile(&st)
	s.at(fd, g, "config", Item{Role: RoleConfig})
	s.at(fd, g, "config.worktree", Item{Role: RoleConfig})
	s.at(fd, g, "commondir", Item{Role: RoleCommonDir})
	s.at(fd, g, "gitdir", Item{Role: RoleGitDir})
	s.in(fd, g, "hooks", func(d int, p string) { s.hooks(d, p, RoleHook, false) })
	s.in(fd, g, "info", func(d int, p string) { s.at(d, p, "attributes", Item{Role: RoleAttributes}) })
	for _, name := range [...]string{"remotes", "branches"} {
		s.in(fd, g, name, func(d int, p string) {
			for _, n := range names(d) {
				s.at(d, p, n, Item{Role: RoleRemote})
			}
		})
	}
	s.in(fd, g, "rebase-merge", func(d int, p string) {
		s.at(d, p, "git-rebase-todo", Item{Role: RoleTodo})
	})
	s.in(fd, g, "rebase-apply", func(d int, p string) { s.at(d, p, "next", Item{Role: RolePending}) })
	s.in(fd, g, "sequencer", func(d int, p string) { s.at(d, p, "todo", Item{Role: RolePending}) })
	for _, name := range [...]string{"MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_LOG"} {
		s.at(fd, g, name, Item{Role: RolePending})
	}
	if d, err := s.below(fd, "objects/info"); err == nil {
		s.at(d, filepath.Join(g, "objects/info"), "alternates", Item{Role: RoleAlternates})
		unix.Close(d)
	}
	s.in(fd, g, "worktrees", func(d int, p string) {
		for _, n := range names(d) {
			s.gitDir(filepath.Join(p, n), depth+1)
		}
	})
	s.in(fd, g, "modules", func(d int, p string) { s.modules(d, p, depth+1) })
}

// in calls do for a directory of git's own; a link in its place is an item.
func (s *survey) in(fd int, dir, name string, do func(fd int, path string)) {
	d, err := s.sub(fd, name)
	switch {
	case err == nil:
		do(d, filepath.Join(dir, name))
		unix.Close(d)
	case err != unix.ENOENT:
		s.at(fd, dir, name, Item{Role: RoleLink})
	}
}

func (s *survey) modules(fd int, dir string, depth int) {
	if depth > maxDepth {
		return
	}
	for _, n := range names(fd) {
		d, err := s.sub(fd, n)
		if err != nil {
			if isLinkAt(fd, n) {
				s.at(fd, dir, n, Item{Role: RoleLink})
			}
			continue
		}
		p := filepath.Join(dir, n)
		if there(d, "HEAD") || there(d, "config") || there(d, "commondir") {
			s.gitDir(p, depth)
		} else {
			s.modules(d, p, depth+1)
		}
		unix.Close(d)
	}
}

func (s *survey) hooks(fd int, dir string, role Role, namesOnly bool) {
	list := hookNames[:]
	if !namesOnly {
		list = names(fd)
	}
	for _, n := range list {
		if !strings.HasSuffix(n, ".sample") && !strings.HasPrefix(n, Inert) { // git runs exact names only
			s.at(fd, dir, n, Item{Role: role})
		}
	}
}

// one looks at a single path.
func (s *survey) one(path string, item Item) {
	fd, err := s.dir(filepath.Dir(path))
	if err != nil {
		return
	}
	s.at(fd, filepath.Dir(path), filepath.Base(path), item)
	unix.Close(fd)
}

// links notes the links on the way from the workspace to a path of the tree.
func (s *survey) links(path string) {
	if !inside(s.ws, path) || path == s.ws {
		return
	}
	at := s.ws
	for name := range strings.SplitSeq(strings.Trim(path[len(s.ws):], "/"), "/") {
		fd, err := s.dir(at)
		if err != nil {
			return
		}
		link := isLinkAt(fd, name)
		if link {
			s.at(fd, at, name, Item{Role: RoleLink})
		}
		unix.Close(fd)
		if link {
			return
		}
		at = filepath.Join(at, name)
	}
}

// names lists a directory that is open at fd, which stays open.
func names(fd int) []string {
	again, err := unix.Openat(fd, ".", dirFlags, 0)
	if err != nil {
		return nil
	}
	f := os.NewFile(uintptr(again), "")
	defer f.Close()
	list, _ := f.Readdirnames(-1)
	return list
}
