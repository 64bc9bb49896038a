package watch

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Tree watches folders with all that they hold.
type Tree struct {
	file *os.File
	buf  []byte
	list []byte // what folders are listed into
	wake atomic.Bool

	most int // how many folders it watches at most

	end *os.File // of a tree that watches nothing, the other end of file

	mu   sync.Mutex
	dirs map[int32]string
	// touched are the watches of folders in which something happened, and all says
	// that it may have happened in any, since Touched was asked.
	touched map[int32]bool
	all     bool
	// left is what was moved away last: what tells where it came follows.
	left struct {
		cookie uint32
		path   string
	}
}

// share is the part of all the watches that a user may have which one tree
// takes: editors and servers of the same user need some, too.
const share = 2

// New makes a tree that watches nothing yet. ErrFull: the user has too many.
func New() (*Tree, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, full(err)
	}
	return &Tree{file: os.NewFile(uintptr(fd), "inotify"), buf: make([]byte, 1<<16), list: make([]byte, 1<<15), most: most(), dirs: map[int32]string{}, touched: map[int32]bool{}}, nil
}

// Blind makes a tree that watches nothing, for where New does not: nothing ever
// happens in it, and Add says ErrFull.
func Blind() (*Tree, error) {
	file, end, err := os.Pipe()
	if err != nil {
		return nil, full(err)
	}
	return &Tree{file: file, end: end, buf: make([]byte, 1<<10), list: make([]byte, 1<<10), dirs: map[int32]string{}, touched: map[int32]bool{}}, nil
}

// most is how many folders a tree watches at most. A limit that cannot be read
// shows when it is met.
func most() int {
	raw, err := os.ReadFile("/proc/sys/fs/inotify/max_user_watches")
	n, perr := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil || perr != nil {
		return math.MaxInt
	}
	return n / share
}

func full(err error) error {
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) || errors.Is(err, unix.ENOMEM) {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return err
}

// Close ends a Next that waits, and the watch.
func (t *Tree) Close() {
	t.file.Close()
	if t.end != nil {
		t.end.Close()
	}
}

// Wake ends a Next that waits, or the next one, with os.ErrDeadlineExceeded.
func (t *Tree) Wake() {
	t.wake.Store(true)
	_ = t.file.SetReadDeadline(time.Unix(1, 0))
}

// Len is how many folders are watched.
func (t *Tree) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.dirs)
}

const wanted = attrib | closeWrite | movedFrom | movedTo | created | deleted | onlyDir | exclUnlink

// Add watches the folder at path and all below it; links are not followed. A
// folder is watched before it is listed, so that nothing slips between. What
// cannot be listed is left out. One Add at a time; stop is asked now and then and
// ends it. See Partly for what is watched after an error.
func (t *Tree) Add(path string, stop func() bool) error {
	fd, err := unix.Open(path, openDir, 0)
	if gone(err) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
		return nil
	}
	if errors.Is(err, unix.ENAMETOOLONG) {
		return ErrDeep
	}
	if err != nil {
		return full(err)
	}
	defer unix.Close(fd)
	return t.add(fd, path, 0, stop)
}

const openDir = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC | unix.O_NONBLOCK

func gone(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP)
}

// deepest is how many folders in each other one Add follows: each level holds a
// descriptor, of which other work needs some, too.
const deepest = 128

// add watches a folder and what is below it.
func (t *Tree) add(fd int, path string, depth int, stop func() bool) error {
	if depth > deepest {
		return ErrDeep
	}
	if stop != nil && stop() {
		return os.ErrClosed
	}
	if _, err := t.Watch(fd, path); err != nil {
		if gone(err) || errors.Is(err, unix.EACCES) {
			return nil
		}
		return err
	}
	var kids []string
	for {
		n, err := unix.Getdents(fd, t.list)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n <= 0 {
			break
		}
		kids = folders(fd, t.list[:n], kids)
	}
	var deep error
	for _, name := range kids {
		kid, err := unix.Openat(fd, name, openDir, 0)
		if errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) || errors.Is(err, unix.ENOMEM) {
			return full(err)
		}
		if err != nil {
			continue // gone, or closed to everybody
		}
		err = t.add(kid, path+"/"+name, depth+1, stop)
		unix.Close(kid)
		if errors.Is(err, ErrDeep) {
			deep = err
		} else if err != nil {
			return err
		}
	}
	return deep
}

// Watch watches the folder at path that is open as fd, without what is below it,
// and returns the number by which Touched names it: the same one for as long as
// the folder exists, wherever it is moved, and no other's afterwards. It may be
// called by several at once.
func (t *Tree) Watch(fd int, path string) (int32, error) {
	if t.Len() >= t.most {
		return 0, fmt.Errorf("%w: %d folders are watched", ErrFull, t.most)
	}
	conn, err := t.file.SyscallConn()
	if err != nil {
		return 0, os.ErrClosed
	}
	var wd int
	var werr error
	err = conn.Control(func(inotify uintptr) {
		wd, werr = unix.InotifyAddWatch(int(inotify), fmt.Sprintf("/proc/self/fd/%d", fd), wanted)
	})
	if err != nil {
		return 0, os.ErrClosed
	}
	if werr != nil {
		return 0, full(werr)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dirs[int32(wd)] = path
	return int32(wd), nil
}

// mostTouched bounds what is noted for Touched.
const mostTouched = 1 << 16

// Touched returns the folders in which, by what Next read since the last call, an
// entry came, went or changed otherwise than by being written, or which
// themselves changed or went away. all: any may have.
func (t *Tree) Touched() (folders map[int32]bool, all bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	folders, all = t.touched, t.all
	t.touched, t.all = map[int32]bool{}, false
	return folders, all
}

// touch notes an event for Touched.
func (t *Tree) touch(r raw) {
	switch {
	case r.mask&(overflow|unmounted) != 0 || len(t.touched) >= mostTouched:
		t.all = true
		clear(t.touched)
	case r.mask&^(closeWrite|folder) != 0:
		t.touched[r.wd] = true
	}
}

// folders appends the folders among directory entries.
func folders(fd int, buf []byte, out []string) []string {
	const head = int(unsafe.Offsetof(unix.Dirent{}.Name))
	for len(buf) >= head {
		d := (*unix.Dirent)(unsafe.Pointer(&buf[0]))
		size := int(d.Reclen)
		if size < head || size > len(buf) {
			return out
		}
		name := buf[head:size]
		for i, c := range name {
			if c == 0 {
				name = name[:i]
				break
			}
		}
		kind := d.Type
		buf = buf[size:]
		if s := string(name); s == "." || s == ".." {
			continue
		}
		if kind == unix.DT_UNKNOWN {
			var st unix.Stat_t
			if unix.Fstatat(fd, string(name), &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR {
				kind = unix.DT_DIR
			}
		}
		if kind == unix.DT_DIR {
			out = append(out, string(name))
		}
	}
	return out
}

// Next waits for events until the deadline; a zero one is none, and one that is
// over gets what happened already. os.ErrClosed says that the tree is closed,
// os.ErrDeadlineExceeded that nothing happened.
//
// Folders that appeared are not watched by it; see Add.
func (t *Tree) Next(deadline time.Time) ([]Event, error) {
	if err := t.file.SetReadDeadline(deadline); err != nil {
		return nil, os.ErrClosed
	}
	if t.wake.Swap(false) {
		return nil, os.ErrDeadlineExceeded
	}
	n, err := t.read(deadline)
	if err != nil {
		t.wake.Store(false)
		return nil, err
	}
	list, lost := decode(t.buf[:n])
	out := make([]Event, 0, len(list))
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range list {
		t.touch(r)
		dir, known := t.dirs[r.wd]
		switch {
		case r.mask&overflow != 0:
			lost = true
		case r.mask&ignored != 0:
			delete(t.dirs, r.wd)
		case r.mask&unmounted != 0:
			lost = true
		case known && r.name != "":
			e := Event{Dir: dir, Name: r.name, Folder: r.mask&folder != 0, New: r.mask&(created|movedTo) != 0, Links: r.mask&attrib != 0}
			switch {
			case r.mask&movedFrom != 0:
				t.left.cookie, t.left.path = r.cookie, e.Path()
			case r.mask&movedTo != 0 && r.cookie == t.left.cookie:
				e.From = t.left.path
			}
			out = append(out, e)
		}
	}
	if lost {
		t.all = true
		out = append(out, Event{Lost: true})
	}
	return out, nil
}

// read fills the buffer. A file whose deadline is over is not read by package os
// at all, so that is done here, without waiting.
func (t *Tree) read(deadline time.Time) (n int, err error) {
	if deadline.IsZero() || time.Now().Before(deadline) {
		return t.file.Read(t.buf)
	}
	conn, err := t.file.SyscallConn()
	if err != nil {
		return 0, os.ErrClosed
	}
	if cerr := conn.Control(func(fd uintptr) {
		for n, err = unix.Read(int(fd), t.buf); err == unix.EINTR; {
			n, err = unix.Read(int(fd), t.buf)
		}
	}); cerr != nil {
		return 0, os.ErrClosed
	}
	if err == unix.EAGAIN {
		err = os.ErrDeadlineExceeded
	}
	return max(n, 0), err
}
