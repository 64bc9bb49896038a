package inner

import (
	"errors"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/internal/enforce"
)

// coverer covers places of a world: the builder's part of it, and a joiner's. It
// is used by one goroutine at a time.
type coverer struct {
	root  int            // the world's root
	kit   int            // a private tmpfs with the sources of masks
	masks map[string]int // attached mask sources by name, as O_PATH descriptors
	stubs int
	// self is the folder with our own descriptors, with a slash at its end; empty
	// for the current folder.
	self string
	// foreign says that a launcher built the world, and covered what was to be
	// covered at the start by files of its own.
	foreign bool
}

// cover makes sure that a step holds, and says whether anything had to be done
// for it. errChanged: the file is not where it was seen.
//
// Mounts are made in the kit and moved to their place when they are as they must
// be: there is no moment at which the place is open in another way than it was.
func (c *coverer) cover(s *enforce.Step) (bool, error) {
	if s.Ino == 0 || s.Flags&enforce.Make != 0 {
		return false, unix.EINVAL
	}
	at, err := c.lookup(s.Dst)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return false, errChanged
	}
	if err != nil {
		if c.gone(s.Dst, "open", err) {
			return false, nil
		}
		return false, err
	}
	defer unix.Close(at)
	var st unix.Stat_t
	if err := unix.Fstat(at, &st); err != nil {
		return false, err
	}
	if c.ours(&st) || c.foreign && stands(s, at, &st) {
		return false, nil
	}
	if st.Dev != s.Dev || st.Ino != s.Ino {
		return false, errChanged
	}
	dir := st.Mode&unix.S_IFMT == unix.S_IFDIR
	switch s.Do {
	case enforce.MaskFile, enforce.MaskDir:
		if dir != (s.Do == enforce.MaskDir) {
			return false, errChanged
		}
		src, err := c.maskSource(s.Do)
		if err != nil {
			return false, err
		}
		return true, c.bindOver(src, at, 0)
	case enforce.MaskStub, enforce.File:
		if dir {
			return false, errChanged
		}
		return true, c.coverByFile(s, at)
	case enforce.Self:
		var fs unix.Statfs_t
		if err := unix.Fstatfs(at, &fs); err != nil || fs.Flags&unix.ST_RDONLY != 0 {
			return false, err
		}
		return true, c.lockLate(at, dir)
	}
	return false, unix.EINVAL
}

// ours says whether a file is one that masks show.
func (c *coverer) ours(st *unix.Stat_t) bool {
	var own unix.Stat_t
	if unix.Fstat(c.kit, &own) == nil && own.Dev == st.Dev {
		return true
	}
	for _, fd := range c.masks {
		if unix.Fstat(fd, &own) == nil && own.Dev == st.Dev && own.Ino == st.Ino {
			return true
		}
	}
	return false
}

// stands says whether what lies at a place, and is not what was planned for, is
// what a launcher puts there for the step: a mount, which nobody inside can make,
// that is as closed and looks as it must.
func stands(s *enforce.Step, at int, st *unix.Stat_t) bool {
	if st.Dev == s.Dev && st.Ino == s.Ino {
		return false
	}
	var x unix.Statx_t
	var fs unix.Statfs_t
	err := unix.Statx(at, "", unix.AT_EMPTY_PATH, 0, &x)
	if err != nil || x.Attributes&unix.STATX_ATTR_MOUNT_ROOT == 0 {
		return false
	}
	if err := unix.Fstatfs(at, &fs); err != nil || fs.Flags&unix.ST_RDONLY == 0 {
		return false
	}
	kind, perm := st.Mode&unix.S_IFMT, st.Mode&0o777
	switch s.Do {
	case enforce.MaskDir:
		return kind == unix.S_IFDIR && perm == 0 && fs.Type == unix.TMPFS_MAGIC
	case enforce.MaskStub:
		return kind == unix.S_IFREG && perm&0o666 == 0 && st.Size == s.Size && st.Mtim.Nano() == s.MTime
	case enforce.File:
		return kind == unix.S_IFREG && perm&0o222 == 0 && st.Size == int64(len(s.Content)) && fs.Type == unix.TMPFS_MAGIC
	}
	return false
}

// coverByFile covers at with a stub or a file with content.
func (c *coverer) coverByFile(s *enforce.Step, at int) error {
	name := "l" + strconv.Itoa(c.stubs)
	c.stubs++
	make := c.makeStub
	if s.Do == enforce.File {
		make = c.fill
	}
	if err := make(name, s); err != nil {
		return err
	}
	defer unix.Unlinkat(c.kit, name, 0) // the mount keeps it
	file, err := child(c.kit, name)
	if err != nil {
		return err
	}
	defer unix.Close(file)
	return c.moveOver(file, name, at, attrs(enforce.ReadOnly|enforce.NoExec), 0)
}

// lockLate makes what lies at at, with all that is mounted in it, read-only.
func (c *coverer) lockLate(at int, dir bool) error {
	name := "p" + strconv.Itoa(c.stubs)
	c.stubs++
	remove := 0
	if dir {
		if err := unix.Mkdirat(c.kit, name, 0o700); err != nil {
			return err
		}
		remove = unix.AT_REMOVEDIR
	} else {
		fd, err := unix.Openat(c.kit, name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC, 0o400)
		if err != nil {
			return err
		}
		unix.Close(fd)
	}
	defer unix.Unlinkat(c.kit, name, remove)
	return c.moveOver(at, name, at, attrs(enforce.ReadOnly), unix.MS_REC)
}

// moveOver mounts src in the kit at name, restricts that, and moves it over at.
func (c *coverer) moveOver(src int, name string, at int, attr uint64, flags uintptr) error {
	place, err := child(c.kit, name)
	if err != nil {
		return err
	}
	err = c.bindOver(src, place, flags)
	unix.Close(place)
	if err != nil {
		return err
	}
	// The lookup now ends on the new mount.
	mount, err := child(c.kit, name)
	if err != nil {
		return err
	}
	defer unix.Close(mount)
	err = setattr(mount, attr, flags != 0)
	if err == nil {
		err = attach(mount, at)
	}
	if err != nil {
		_ = unix.Unmount(c.numbered(mount), unix.MNT_DETACH)
	}
	return err
}

// bindOver mounts src over at by the old call: the new ones count detached
// mounts as mount namespaces, of which there may be none any more.
func (c *coverer) bindOver(src, at int, flags uintptr) error {
	return unix.Mount(c.numbered(src), c.numbered(at), "", unix.MS_BIND|flags, "")
}

// numbered is a path to what one of our own descriptors stands for.
func (c *coverer) numbered(fd int) string { return c.self + strconv.Itoa(fd) }
