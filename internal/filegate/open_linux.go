package filegate

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/plan"
	"github.com/tether-sandbox/tether/policy"
	"golang.org/x/sys/unix"
)

// Open opens the roots of a plan. It fails with SANDBOX_VIOLATION when the
// workspace is no longer the folder that was planned; an added root that is
// gone is left out. Make it right after the plan: files that are born later
// are never taken for those that the plan hides.
func Open(p *plan.Plan, o Options) (*Gate, error) {
	if p.Policy.Profile == policy.Nothing {
		return nil, refuse(p.Workspace.Path, "cannot be opened: the policy allows nothing", hintWrite)
	}
	r, err := newRules(p)
	if err != nil {
		return nil, err
	}
	g := &Gate{plan: p, rules: r, layout: layout{workspace: p.Workspace.Path, at: map[string]int{}}, born: time.Now()}
	if s := p.Policy.Workspace; s != "" && s[0] == '/' && clean(s) != p.Workspace.Path {
		g.layout.spelling = clean(s)
	}
	if err := g.openRoots(o.Tmp); err != nil {
		g.closeRoots()
		return nil, err
	}
	g.own(o.Own)
	for path, l := range r.locks {
		if info, id, ok := lstat(path); ok && info&unix.S_IFMT != unix.S_IFLNK {
			r.lockedIDs[id] = l
		}
	}
	// Under full-access commands run as the caller.
	if p.Identity.Root && !g.full() {
		if g.as, err = newActor(p.Workspace.UID, p.Workspace.GID); err != nil {
			g.closeRoots()
			return nil, fault.Wrap(fault.SandboxUnavailable, "cannot take on the rights of the workspace's owner", err)
		}
	}
	return g, nil
}

// Close closes the roots, once the calls that run have ended.
func (g *Gate) Close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil
	}
	g.closed = true
	g.closeRoots()
	if g.as != nil {
		g.as.close()
	}
	return nil
}

func (g *Gate) closeRoots() {
	for _, r := range g.roots {
		unix.Close(r.fd)
	}
	g.roots = nil
}

// openRoots opens the workspace, the added roots and /tmp.
func (g *Gate) openRoots(tmp string) error {
	p, full := g.plan, g.full()
	write := full || p.Policy.Profile == policy.WorkspaceWrite
	for _, v := range p.Views {
		workspace := v.Origin == plan.Workspace
		if v.At != "" || !workspace && (v.Origin != plan.Added || full) ||
			!full && (slices.Contains(p.Covers, v.Path) || g.rules.closed[v.Path] != "") {
			continue
		}
		if _, twice := g.layout.at[v.Path]; twice {
			continue
		}
		r := root{path: v.Path, writable: full || write && v.Writable, id: fileID{v.Dev, v.Ino}}
		if err := r.open(v.File); err != nil {
			if workspace {
				return fault.Wrap(fault.SandboxViolation, "the workspace "+quote(v.Path)+" cannot be opened as it was planned", err).
					WithHint("start again in the folder as it is now")
			}
			continue
		}
		g.addRoot(r)
	}
	if _, ok := g.layout.at[p.Workspace.Path]; !ok {
		return refuse(p.Workspace.Path, "is not shown to commands, so not to tools either", "choose another workspace")
	}
	if _, shown := g.layout.at["/tmp"]; tmp != "" && !shown {
		fd, err := unix.Open(tmp, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return failed(tmp, "open the private /tmp", err)
		}
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			unix.Close(fd)
			return failed(tmp, "open the private /tmp", err)
		}
		g.addRoot(root{path: "/tmp", fd: fd, writable: write, tmp: true, id: fileID{st.Dev, st.Ino}})
	}
	for path := range g.layout.at {
		delete(g.rules.absent, path)
	}
	if !full {
		g.nested()
	}
	if _, ok := g.layout.at["/tmp"]; ok {
		g.layout.scaffolds()
	}
	return nil
}

func (g *Gate) addRoot(r root) {
	g.layout.at[r.path] = len(g.roots)
	g.roots = append(g.roots, r)
}

// open opens a root and makes sure that it is the planned one.
func (r *root) open(file bool) error {
	path, flags := r.path, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC
	if file {
		path = parent(path)
		r.name = strings.TrimPrefix(r.path[len(path):], "/")
	}
	fd, err := unix.Open(path, flags, 0)
	if err != nil {
		return err
	}
	var st unix.Stat_t
	if file {
		err = unix.Fstatat(fd, r.name, &st, unix.AT_SYMLINK_NOFOLLOW)
	} else {
		err = unix.Fstat(fd, &st)
	}
	if err == nil && (fileID{st.Dev, st.Ino}) != r.id {
		err = errors.New("it is another one by now")
	}
	if err != nil {
		unix.Close(fd)
		return err
	}
	r.fd = fd
	return nil
}

// nested gives each root that lies in another one what the folders above it
// say: a lock holds, and what is hidden is no root.
func (g *Gate) nested() {
	for i := range g.roots {
		r := &g.roots[i]
		var up []string
		for path := r.path; path != "/"; path = parent(path) {
			if g.inOther(path, r) {
				up = append(up, path)
			}
		}
		r.inner = len(up) > 0
		slices.Reverse(up)
		r.base = g.rules.base(up)
		if r.base.hidden != "" && r.path != g.layout.workspace {
			delete(g.layout.at, r.path) // the index stays, and is closed with the others
		}
	}
}

// inOther says whether path lies in another root, or is it.
func (g *Gate) inOther(path string, r *root) bool {
	return slices.ContainsFunc(g.roots, func(o root) bool { return !o.tmp && o.path != r.path && inside(path, o.path) })
}

// own closes Tether's own files, wherever they lie.
func (g *Gate) own(more []string) {
	const why = "Tether's own files"
	for _, path := range append([]string{g.plan.StateDir}, more...) {
		real, err := filepath.EvalSymlinks(cmp.Or(path, "\x00"))
		if err != nil {
			continue
		}
		g.rules.closed[real] = why
		if _, id, ok := lstat(real); ok {
			g.rules.closedIDs[id] = why
		}
	}
	if exe, err := os.Executable(); err == nil {
		for _, real := range plan.Programs(exe) {
			g.rules.locks[real] = lock{why: "Tether's own program", hint: "change it outside of Tether"}
		}
	}
}

func lstat(path string) (mode uint32, id fileID, ok bool) {
	var st unix.Stat_t
	if unix.Lstat(path, &st) != nil {
		return 0, fileID{}, false
	}
	return st.Mode, fileID{st.Dev, st.Ino}, true
}
