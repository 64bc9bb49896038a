//go:build linux || darwin

package secrets

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

const (
	openDir = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC | unix.O_NONBLOCK
	// keptFDs bounds the descriptors kept open so that children are reached
	// without their path. Beyond it they are reached step by step.
	keptFDs    = 256
	bufferSize = 64 << 10
)

// node is a directory that is to be read. Its descriptor stays open until the
// last of its children has been opened.
type node struct {
	parent  *node
	name    string
	fd      int
	waiting atomic.Int32
	// git says that it is a git directory, or lies in one.
	git bool
	// at is what is remembered of it; nil when nothing is to be. sure says that
	// the very directory lies here that it is remembered of.
	at   *folder
	sure bool
}

// path builds the directory's absolute path.
func (n *node) path() string {
	if n.parent == nil {
		return n.name
	}
	return join(n.parent.path(), n.name)
}

// walk is one walk over one root by several workers.
type walk struct {
	rules Rules
	// inspect looks at an entry with a hidden mark and says whether it counts;
	// nil takes every one unseen. It is called by several workers at once.
	inspect func(dir int, name string, h *hit, buf *[]byte) bool
	// aliases, when not nil, asks for every entry that has one of these inode
	// numbers, instead of what rules say.
	aliases *aliasSet
	// memory, when not nil, spares listing what has not changed.
	memory *memory

	// capable says that files may have been given capabilities.
	capable bool
	root    int
	noatime atomic.Bool
	kept    atomic.Int32

	mu      sync.Mutex
	wake    *sync.Cond
	queue   []*node
	busy    int
	workers int
	limit   int
	err     error
	group   sync.WaitGroup
	total   Found
}

// aliasSet is what a second walk looks for.
type aliasSet struct {
	inodes map[uint64]bool
	// every takes each entry that is no directory, because the inode numbers
	// in directories cannot be relied on.
	every bool
}

// run walks the directory root, whose descriptor is fd, and closes fd.
func (w *walk) run(ctx context.Context, root string, fd int) (Found, error) {
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		unix.Close(fd)
		return Found{}, fmt.Errorf("walk: %w", err)
	}
	w.root = own
	defer unix.Close(own)
	w.wake = sync.NewCond(&w.mu)
	w.err = context.Cause(ctx)
	w.noatime.Store(true)
	w.limit = min(max(2, runtime.GOMAXPROCS(0)), 16)
	stop := context.AfterFunc(ctx, func() { w.fail(context.Cause(ctx)) })
	defer stop()

	first := &node{name: root, fd: -1}
	s := &scan{walk: w, buf: make([]byte, bufferSize)}
	if w.memory != nil {
		first.at = w.memory.top
	}
	if s.unchanged(first) {
		unix.Close(fd)
		s.replay(first)
	} else {
		s.read(first, fd)
	}
	w.add(s.children)
	s.children = s.children[:0]
	s.work()
	w.group.Wait()
	for _, n := range w.queue { // left over after a failure
		w.release(n.parent)
	}
	if w.err != nil {
		return Found{}, w.err
	}
	byPath := func(a, b Entry) int { return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Marks, b.Marks)) }
	slices.SortFunc(w.total.Entries, byPath)
	w.total.Entries = mergeMarks(w.total.Entries)
	slices.SortFunc(w.total.hits, func(a, b hit) int { return byPath(a.Entry, b.Entry) })
	return w.total, nil
}

// mergeMarks makes one entry of those with the same path. They are sorted.
func mergeMarks(list []Entry) []Entry {
	out := list[:0]
	for _, e := range list {
		if n := len(out); n > 0 && out[n-1].Path == e.Path {
			out[n-1].Marks |= e.Marks
			continue
		}
		out = append(out, e)
	}
	return out
}

func (w *walk) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
	}
	w.wake.Broadcast()
}

// add queues directories and starts another worker when there is work for it:
// a small tree is walked by one.
func (w *walk) add(nodes []*node) {
	if len(nodes) == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = append(w.queue, nodes...)
	if w.workers < w.limit-1 && len(w.queue) > 4 {
		w.workers++
		w.group.Go(func() { (&scan{walk: w, buf: make([]byte, bufferSize)}).work() })
	}
	if len(nodes) > 1 {
		w.wake.Broadcast()
	} else {
		w.wake.Signal()
	}
}

// next waits for a directory; nil means that the walk is over.
func (w *walk) next(idle bool) *node {
	w.mu.Lock()
	defer w.mu.Unlock()
	if idle {
		w.busy--
	}
	for len(w.queue) == 0 && w.busy > 0 && w.err == nil {
		w.wake.Wait()
	}
	if len(w.queue) == 0 || w.err != nil {
		w.wake.Broadcast()
		return nil
	}
	n := w.queue[len(w.queue)-1]
	w.queue = w.queue[:len(w.queue)-1]
	w.busy++
	return n
}

// release says that one child of n has been opened or given up.
func (w *walk) release(n *node) {
	if n != nil && n.waiting.Add(-1) == 0 && n.fd >= 0 {
		unix.Close(n.fd)
		n.fd = -1
		w.kept.Add(-1)
	}
}

// open opens the directory name below dir.
func (w *walk) open(dir int, name string) (int, error) {
	for {
		flags := openDir
		noatime := w.noatime.Load()
		if noatime {
			flags |= asOwner
		}
		fd, err := unix.Openat(dir, name, flags, 0)
		switch {
		case err == unix.EPERM && noatime: // O_NOATIME is for owners
			w.noatime.Store(false)
		case err != unix.EINTR:
			return fd, err
		}
	}
}

// reopen opens the directory n again, which is not kept open, step by step from
// the root: no path is ever looked up as a whole, so no link is followed and no
// length limit met. A kept ancestor is of no use, as it may close at any time.
func (w *walk) reopen(n *node) (int, error) {
	const flags = openPlace | unix.O_NOFOLLOW
	if n.parent == nil {
		return unix.Openat(w.root, ".", flags, 0)
	}
	if fd, err := openBelow(w.root, string(n.appendRel(nil))); err == nil {
		return fd, nil
	}
	up, err := w.reopen(n.parent)
	if err != nil {
		return -1, err
	}
	defer unix.Close(up)
	return unix.Openat(up, n.name, flags, 0)
}

// Walk walks root once, by several workers, and returns every entry that the
// rules or the walk itself mark with something else than a hidden mark. No
// symbolic link is followed, mount points are crossed. Directories that the
// rules hide are not entered.
//
// It fails when root cannot be opened, when ctx ends, and when descriptors run
// out; a directory that vanishes meanwhile is no failure, and one that cannot
// be read is an entry marked Unreadable.
func Walk(ctx context.Context, root string, rules Rules) (Found, error) {
	return walkWith(ctx, root, rules, nil)
}

func walkWith(ctx context.Context, root string, rules Rules, m *memory) (Found, error) {
	w := &walk{rules: rules, capable: unix.Geteuid() == 0, memory: m}
	fd, err := openRoot(root)
	if err != nil {
		return Found{}, err
	}
	return w.run(ctx, root, fd)
}

// openRoot opens a root that is a directory.
func openRoot(root string) (int, error) {
	if root == "" || root[0] != '/' {
		return -1, fmt.Errorf("walk: root %q: %w", root, errors.ErrUnsupported)
	}
	fd, err := unix.Open(root, openDir, 0)
	if err != nil {
		return -1, fmt.Errorf("walk: open %q: %w", root, err)
	}
	return fd, nil
}
