package inner

import (
	"errors"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/internal/enforce"
)

// openKit mounts the private tmpfs that the sources of masks live in, at a place
// where something else will be mounted on top of it: it stays in the tree, since
// nothing can be cloned later from a mount that is in none, and only we, who
// hold its descriptor, still reach it.
func (b *builder) openKit(at string) error {
	kit, err := newTmpfs("0700", 64<<20)
	if err != nil {
		return err
	}
	fd, err := b.make(at, false)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	b.kit = kit
	return b.attach(kit, fd, at)
}

// mask hides Dst behind a clone of a prepared mount.
func (b *builder) mask(s *enforce.Step) (string, error) {
	if s.Do == enforce.MaskStub {
		name := "s" + strconv.Itoa(b.stubs)
		b.stubs++
		if err := b.makeStub(name, s); err != nil {
			return "prepare", err
		}
		return b.attachKit(s, name)
	}
	src, err := b.maskSource(s.Do)
	if err != nil {
		return "prepare", err
	}
	at, err := b.target(s)
	if err != nil {
		return "open", err
	}
	defer unix.Close(at)
	if s.Do == enforce.MaskFile {
		// A folder that took the file's place cannot be covered by a file.
		if dir, err := isDir(at); err != nil || dir {
			return "check", errors.Join(err, errIfDir(dir))
		}
	}
	tree, err := clone(src, false)
	if err != nil {
		return "clone the mask", err
	}
	defer unix.Close(tree)
	return "attach", b.attach(tree, at, s.Dst)
}

func errIfDir(dir bool) error {
	if dir {
		return errChanged
	}
	return nil
}

// maskSource returns the attached mount that masks of a kind are cloned from.
func (b *builder) maskSource(do enforce.Verb) (int, error) {
	name := do.String()
	if fd, ok := b.masks[name]; ok {
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
		fd, err := unix.Openat(b.kit, name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC, 0o400)
		if err != nil {
			return -1, err
		}
		unix.Close(fd)
	} else if err := unix.Mkdirat(b.kit, name, 0o700); err != nil {
		return -1, err
	}
	at, err := child(b.kit, name)
	if err != nil {
		return -1, err
	}
	err = attach(tree, at)
	unix.Close(at)
	if err != nil {
		return -1, err
	}
	// The lookup now ends on the attached mount.
	if at, err = child(b.kit, name); err != nil {
		return -1, err
	}
	b.masks[name] = at
	return at, nil
}

// makeStub makes a file of the hidden one's size and time that nobody can open.
func (b *builder) makeStub(name string, s *enforce.Step) error {
	fd, err := unix.Openat(b.kit, name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC, 0)
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
	return setMTime(fd, s.MTime)
}

func setMTime(fd int, nsec int64) error {
	ts := unix.NsecToTimespec(nsec)
	times := [2]unix.Timespec{ts, ts}
	return unix.UtimesNanoAt(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(fd), times[:], 0)
}

// attachKit shows the kit's file name at Dst, read-only.
func (b *builder) attachKit(s *enforce.Step, name string) (string, error) {
	src, err := unix.Openat(b.kit, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return "open the source", err
	}
	defer unix.Close(src)
	tree, err := clone(src, false)
	if err != nil {
		return "clone the source", err
	}
	defer unix.Close(tree)
	step := *s
	step.Flags |= enforce.ReadOnly | enforce.NoExec | enforce.IsFile
	return b.place(&step, tree)
}

func isDir(fd int) (bool, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return false, err
	}
	return st.Mode&unix.S_IFMT == unix.S_IFDIR, nil
}
