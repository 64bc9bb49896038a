package inner

import (
	"errors"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/internal/enforce"
)

// target opens Dst in the new root without following any link, and makes it
// first where the step says so.
func (b *builder) target(s *enforce.Step) (int, error) {
	open := b.lookup
	if s.Flags&enforce.Make != 0 {
		open = func(path string) (int, error) { return b.make(path, s.Flags&enforce.IsFile != 0) }
	}
	fd, err := open(s.Dst)
	if err != nil {
		return -1, err
	}
	if s.Do != enforce.Bind && s.Ino != 0 {
		if err := sameFile(fd, s.Dev, s.Ino); err != nil {
			unix.Close(fd)
			return -1, err
		}
	}
	return fd, nil
}

func (c *coverer) lookup(path string) (int, error) {
	rel := strings.TrimPrefix(path, "/")
	if rel == "" {
		rel = "."
	}
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS}
	return retry(func() (int, error) { return unix.Openat2(c.root, rel, &how) })
}

// make opens path, which it creates with its parents where they are missing, but
// only in file systems that we made: nothing is ever created in a folder of the
// host.
func (b *builder) make(path string, file bool) (int, error) {
	dir, name, err := b.parent(path)
	if err != nil {
		return -1, err
	}
	fd, err := child(dir, name)
	if !errors.Is(err, unix.ENOENT) {
		return fd, err
	}
	if err := b.create(dir, name, file); err != nil {
		return -1, err
	}
	return child(dir, name)
}

func child(dir int, name string) (int, error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS}
	return retry(func() (int, error) { return unix.Openat2(dir, name, &how) })
}

// parent opens the folder that path lies in, and makes it where it is missing.
// The descriptor stays the builder's.
func (b *builder) parent(path string) (dir int, name string, err error) {
	path = strings.TrimRight(path, "/")
	i := strings.LastIndexByte(path, '/')
	at, name := path[:max(i, 0)], path[i+1:]
	if at == "" {
		return b.root, name, nil
	}
	if b.last >= 0 && b.lastAt == at {
		return b.last, name, nil
	}
	dir, err = b.lookup(at)
	if errors.Is(err, unix.ENOENT) {
		dir, err = b.make(at, false)
	}
	if err != nil {
		return -1, "", err
	}
	b.forget("")
	b.last, b.lastAt = dir, at
	return dir, name, nil
}

// forget lets the remembered folder go, if it is path or lies below: something
// was mounted there.
func (b *builder) forget(path string) {
	if b.last >= 0 && (b.lastAt == path || strings.HasPrefix(b.lastAt, path+"/")) {
		unix.Close(b.last)
		b.last = -1
	}
}

// attach attaches a tree at a place that was opened by the name path.
func (b *builder) attach(tree, at int, path string) error {
	b.forget(path)
	return attach(tree, at)
}

func (b *builder) create(dir int, name string, file bool) error {
	var st unix.Stat_t
	if err := unix.Fstat(dir, &st); err != nil {
		return err
	}
	if !b.own[st.Dev] {
		return unix.ENOENT
	}
	if !file {
		return unix.Mkdirat(dir, name, 0o755)
	}
	fd, err := unix.Openat(dir, name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC, 0o444)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

func (b *builder) mine(fd int) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	b.own[st.Dev] = true
	return nil
}

var errChanged = errors.New("it is no longer the file that was planned for")

func sameFile(fd int, dev, ino uint64) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Dev != dev || st.Ino != ino {
		return errChanged
	}
	return nil
}

// gone says whether a step's place is not there, or not for the command: where
// a folder that belongs to somebody else closes the way to us, who have all
// rights over the command's ids, the command can neither pass it nor open it.
func (c *coverer) gone(path, what string, err error) bool {
	if errors.Is(err, unix.ENOENT) {
		return true
	}
	if !errors.Is(err, unix.EACCES) || what != "open" && what != "open the place" {
		return false
	}
	for at := path; ; {
		i := strings.LastIndexByte(at, '/')
		if i <= 0 {
			return false
		}
		at = at[:i]
		fd, err := c.lookup(at)
		if errors.Is(err, unix.EACCES) {
			continue
		}
		if err != nil {
			return errors.Is(err, unix.ENOENT)
		}
		defer unix.Close(fd)
		var st unix.Stat_t
		return unix.Fstat(fd, &st) == nil && int(st.Uid) != unix.Getuid()
	}
}
