package filegate

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/plan/secrets"
	"golang.org/x/sys/unix"
)

// node is an entry on the way, as its handle tells.
type node struct {
	fd   int // O_PATH; -1 for a root that is a file
	dir  int // of the folder that holds it, for what is no folder
	name string
	path string // as commands see it
	keep bool   // fd is the root's
	root *root
	st   unix.Stat_t
	v    verdict
}

func (n *node) is(format uint32) bool { return n.st.Mode&unix.S_IFMT == format }
func (n *node) id() fileID            { return fileID{n.st.Dev, n.st.Ino} }

// walk goes a path from a root to its end.
type walk struct {
	g     *Gate
	asked string
	nodes []node
	// missing are the names behind the last node that do not exist.
	missing []string
	v       verdict // of missing, the last name's
	links   int
	steps   int
}

// step is a name to go, and the marks of the links whose last name it is.
type step struct {
	name  string
	marks secrets.Mark
}

func steps(names []string) []step {
	out := make([]step, len(names))
	for i, name := range names {
		out[i].name = name
	}
	return out
}

// walk follows a path of a request. The caller closes what it returns.
func (g *Gate) walk(path string) (*walk, error) {
	s, err := split(path)
	if err != nil {
		return nil, err
	}
	w := &walk{g: g, asked: path}
	if err = w.run(steps(g.layout.request(s))); err == nil && s.folder && len(w.missing) == 0 && !w.end().is(unix.S_IFDIR) {
		err = unfit(path, "is no folder", "leave out the slash at the end")
	}
	if err == nil && s.folder && len(w.missing) > 0 {
		err = notFound(path)
	}
	if err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

func (w *walk) close() {
	for _, n := range w.nodes {
		if !n.keep && n.fd >= 0 {
			unix.Close(n.fd)
		}
	}
	w.nodes = nil
}

func (w *walk) end() *node { return &w.nodes[len(w.nodes)-1] }

// run goes the steps of an absolute path.
func (w *walk) run(todo []step) error {
	todo, err := w.begin(todo)
	for err == nil && len(todo) > 0 {
		if w.steps++; w.steps > maxSteps || len(todo) > maxSteps || len(w.nodes) > maxDepth {
			return refuse(w.asked, "leads through too many folders or links", "use a shorter path")
		}
		s := todo[0]
		todo = todo[1:]
		if s.name == ".." {
			todo, err = w.up(s, todo)
			continue
		}
		todo, err = w.down(s, todo)
	}
	return err
}

// begin starts at the root that an absolute path lies in.
func (w *walk) begin(todo []step) ([]step, error) {
	names := make([]string, len(todo))
	for i := range todo {
		names[i] = todo[i].name
	}
	i, used, ok := w.g.layout.root(names)
	if !ok {
		return nil, outside(w.asked)
	}
	w.close()
	var marks secrets.Mark
	for _, s := range todo[:used] {
		marks = s.marks // of the last
	}
	return todo[used:], w.root(&w.g.roots[i], marks)
}

// root steps on a root.
func (w *walk) root(r *root, marks secrets.Mark) error {
	n := node{fd: r.fd, dir: r.fd, name: r.name, path: r.path, keep: true, root: r, v: r.base}
	var err error
	if r.name != "" {
		n.fd = -1
		err = unix.Fstatat(r.fd, r.name, &n.st, unix.AT_SYMLINK_NOFOLLOW)
		if err == nil && n.is(unix.S_IFLNK) {
			return outside(w.asked)
		}
	} else {
		err = unix.Fstat(r.fd, &n.st)
	}
	if err != nil {
		return w.failed(err)
	}
	e := entry{path: r.path, name: r.path[1+strings.LastIndexByte(r.path, '/'):], typ: typeOf(n.st.Mode), marks: marks, free: r.tmp}
	if r.name == "" {
		e.name = "" // a folder that the policy names is not judged by its name
		if !r.inner {
			e.marks &= secrets.Locked // nor by that of a link
		}
	}
	return w.push(n, e)
}

// push judges an entry and takes it as the end of the way.
func (w *walk) push(n node, e entry) error {
	n.v = w.g.rules.judge(n.v, e)
	w.g.byIdentity(&n)
	w.nodes = append(w.nodes, n)
	if n.v.hidden != "" {
		return hidden(w.asked, n.v.hidden)
	}
	return nil
}

// up goes to the folder above: the one we came through, or, above a root, the
// one that another root shows there.
func (w *walk) up(s step, todo []step) ([]step, error) {
	last := w.end()
	if !last.is(unix.S_IFDIR) {
		return nil, notFound(w.asked)
	}
	if len(w.nodes) > 1 {
		if !last.keep {
			unix.Close(last.fd)
		}
		w.nodes = w.nodes[:len(w.nodes)-1]
		if s.marks&secrets.HiddenAny != 0 {
			return nil, hidden(w.asked, "a link with a hidden name leads there")
		}
		return todo, nil
	}
	if last.path == "/" {
		return todo, nil
	}
	above := steps(cut(parent(last.path)).names)
	if len(above) > 0 {
		above[len(above)-1].marks = s.marks
	}
	return w.begin(append(above, todo...))
}

// down goes to what the last folder holds under a name.
func (w *walk) down(s step, todo []step) ([]step, error) {
	last := w.end()
	if !last.is(unix.S_IFDIR) {
		return nil, notFound(w.asked)
	}
	path := join(last.path, s.name)
	if i, ok := w.g.layout.at[path]; ok {
		if i == scaffold {
			return w.begin(append(steps(cut(path).names), todo...))
		}
		r := &w.g.roots[i]
		above := last.v
		if err := w.root(r, s.marks); err != nil {
			return nil, err
		}
		if above.lock.why != "" {
			w.end().v.hold(above.lock)
		}
		return todo, nil
	}
	n := node{dir: last.fd, name: s.name, path: path, root: last.root, v: last.v}
	e := entry{path: path, name: s.name, marks: s.marks, free: last.root.tmp}
	var err error
	n.fd, err = openat(last.fd, s.name, unix.O_PATH)
	if err == unix.ENOENT {
		return nil, w.absent(last, append([]step{s}, todo...))
	}
	if err != nil {
		return nil, w.failed(err)
	}
	if err = unix.Fstat(n.fd, &n.st); err == nil && n.st.Dev != last.st.Dev {
		err = ordinary(n.fd)
	}
	if err != nil {
		unix.Close(n.fd)
		return nil, w.failed(err)
	}
	if n.is(unix.S_IFLNK) {
		defer unix.Close(n.fd)
		return w.follow(&n, e, todo)
	}
	e.typ = typeOf(n.st.Mode)
	return todo, w.push(n, e)
}

// absent judges names that do not exist as if they did.
func (w *walk) absent(last *node, rest []step) error {
	v, path := last.v, last.path
	for i, s := range rest {
		if s.name == ".." {
			return notFound(w.asked)
		}
		path = join(path, s.name)
		if _, ok := w.g.layout.at[path]; ok {
			return outside(w.asked) // a root in a folder that is gone
		}
		e := entry{path: path, name: s.name, typ: secrets.Directory, marks: s.marks, free: last.root.tmp}
		if i == len(rest)-1 {
			e.typ = secrets.Regular
		}
		v = w.g.rules.judge(v, e)
		w.missing = append(w.missing, s.name)
	}
	w.v = v
	return nil
}

// follow replaces a link by where it leads. What its name is marked with goes
// on to that.
func (w *walk) follow(n *node, e entry, todo []step) ([]step, error) {
	e.typ = secrets.Symlink
	if w.links++; w.links > maxLinks {
		return nil, refuse(w.asked, "leads through a loop of links", "name the file itself")
	}
	if why := w.g.rules.closed[n.path]; why != "" {
		return nil, hidden(w.asked, why)
	}
	if !e.free && mayBeGit(e.name) {
		var v verdict
		if w.g.rules.gitName(&v, e); v.hidden != "" {
			return nil, hidden(w.asked, v.hidden)
		}
	}
	var buf [maxPath]byte
	size, err := unix.Readlinkat(n.fd, "", buf[:])
	if err != nil {
		return nil, w.failed(err)
	}
	if size == 0 || size == len(buf) {
		return nil, outside(w.asked)
	}
	marks := e.marks
	if !e.free {
		marks |= w.g.rules.marks(e)
	}
	// A lifted or Tether's own lock goes by the link's own path and name.
	if w.g.rules.lifted[n.path] {
		marks &^= secrets.Locked
	}
	if !e.free && w.g.rules.isTether(e.name) {
		marks |= secrets.Locked
	}
	to := cut(string(buf[:size]))
	next := steps(to.names)
	if len(next) > 0 {
		next[len(next)-1].marks = marks
	}
	next = append(next, todo...)
	if !to.abs {
		return next, nil
	}
	return w.begin(next)
}

// byIdentity judges by which file it is: another name of a hidden or locked
// one, or that one in a folder that was moved.
func (g *Gate) byIdentity(n *node) {
	r := g.rules
	why, closed := r.closedIDs[n.id()]
	l, locked := r.lockedIDs[n.id()]
	if !closed && !locked || n.v.hidden != "" || g.bornLater(n) {
		return
	}
	if closed {
		n.v.hidden = why
	} else {
		n.v.hold(l)
	}
}

// bornLater says whether a file came to be after the gate: then it only has
// the number of one that is gone.
func (g *Gate) bornLater(n *node) bool {
	var x unix.Statx_t
	var err error
	if n.fd >= 0 {
		err = unix.Statx(n.fd, "", unix.AT_EMPTY_PATH, unix.STATX_BTIME, &x)
	} else {
		err = unix.Statx(n.dir, n.name, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BTIME, &x)
	}
	if err != nil || x.Mask&unix.STATX_BTIME == 0 {
		return false
	}
	born := time.Unix(x.Btime.Sec, int64(x.Btime.Nsec))
	return born.After(g.born) && !born.After(time.Now())
}

// failed turns an errno into an answer.
func (w *walk) failed(err error) error {
	if _, ours := errors.AsType[*fault.Error](err); ours {
		return err
	}
	switch err {
	case unix.ENOENT, unix.ENOTDIR:
		return notFound(w.asked)
	case errStrange:
		return refuse(w.asked, "lies on a file system that is no place for files", "name a file in the workspace")
	case unix.ENAMETOOLONG:
		return refuse(w.asked, "holds a name that is longer than names can be", "use a shorter name")
	}
	return failed(w.asked, "open", err)
}

var errStrange = errors.New("no file system for files")

// ordinary refuses file systems whose files are the kernel's: their links jump,
// their files act, and automounters reach out.
func ordinary(fd int) error {
	var fs unix.Statfs_t
	if err := unix.Fstatfs(fd, &fs); err != nil {
		return err
	}
	if slices.Contains([]int64{unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.AUTOFS_SUPER_MAGIC, unix.CGROUP_SUPER_MAGIC,
		unix.CGROUP2_SUPER_MAGIC, unix.DEBUGFS_MAGIC, unix.TRACEFS_MAGIC, unix.DEVPTS_SUPER_MAGIC, unix.SECURITYFS_MAGIC,
		unix.BPF_FS_MAGIC, unix.NSFS_MAGIC, unix.EFIVARFS_MAGIC, unix.PSTOREFS_MAGIC, unix.BINFMTFS_MAGIC}, int64(fs.Type)) {
		return errStrange
	}
	return nil
}

// openat opens one name, and never a link, waits for nothing and makes no
// terminal ours.
func openat(dir int, name string, flags int) (int, error) {
	for {
		fd, err := unix.Openat(dir, name, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

func typeOf(mode uint32) secrets.Type {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return secrets.Regular
	case unix.S_IFDIR:
		return secrets.Directory
	case unix.S_IFLNK:
		return secrets.Symlink
	case unix.S_IFSOCK:
		return secrets.SocketFile
	}
	return secrets.Other
}
