package inner

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/internal/enforce"
)

// sources are the masks of which one is made for all, at the start.
var sources = [...]enforce.Verb{enforce.MaskFile, enforce.MaskDir}

// maskSource returns the attached mount that masks of a kind are cloned from.
func (c *coverer) maskSource(do enforce.Verb) (int, error) {
	name := do.String()
	if fd, ok := c.masks[name]; ok {
		return fd, nil
	}
	var tree int
	var err error
	file := do == enforce.MaskFile
	switch do {
	case enforce.MaskFile:
		// Without device rights on the mount, opening /dev/null is EACCES: the
		// honest answer. An empty file would look like an empty secret.
		var null int
		if null, err = unix.Open("/dev/null", unix.O_PATH|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0); err != nil {
			return -1, err
		}
		defer unix.Close(null)
		tree, err = clone(null, false)
	case enforce.MaskDir:
		tree, err = newTmpfs("0000", 1<<16)
	default:
		tree, err = newTmpfs("0555", 1<<16)
	}
	if err != nil {
		return -1, err
	}
	defer unix.Close(tree)
	if err := setattr(tree, attrs(enforce.ReadOnly|enforce.NoExec), false); err != nil {
		return -1, err
	}
	if file {
		fd, err := unix.Openat(c.kit, name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC, 0o400)
		if err != nil {
			return -1, err
		}
		unix.Close(fd)
	} else if err := unix.Mkdirat(c.kit, name, 0o700); err != nil {
		return -1, err
	}
	at, err := child(c.kit, name)
	if err != nil {
		return -1, err
	}
	err = attach(tree, at)
	unix.Close(at)
	if err != nil {
		return -1, err
	}
	// The lookup now ends on the attached mount.
	if at, err = child(c.kit, name); err != nil {
		return -1, err
	}
	c.masks[name] = at
	return at, nil
}

// makeStub makes a file of the hidden one's size and time that nobody can open.
func (c *coverer) makeStub(name string, s *enforce.Step) error {
	fd, err := unix.Openat(c.kit, name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	// The exec bits are all of a mode that git compares.
	if err := unix.Fchmod(fd, s.Mode&0o111); err != nil {
		return err
	}
	if err := unix.Ftruncate(fd, s.Size); err != nil {
		return err
	}
	return c.setMTime(fd, s.MTime)
}

func (c *coverer) setMTime(fd int, nsec int64) error {
	ts := unix.NsecToTimespec(nsec)
	times := [2]unix.Timespec{ts, ts}
	return unix.UtimesNanoAt(unix.AT_FDCWD, c.numbered(fd), times[:], 0)
}

// fill makes a file in the kit with the step's content and time.
func (c *coverer) fill(name string, s *enforce.Step) error {
	fd, err := unix.Openat(c.kit, name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC, 0o444)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), name)
	_, err = f.Write(s.Content)
	if err == nil && s.MTime != 0 {
		err = c.setMTime(fd, s.MTime)
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}
