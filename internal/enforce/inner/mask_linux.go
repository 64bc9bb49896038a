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
