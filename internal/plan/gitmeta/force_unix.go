//go:build linux || darwin

package gitmeta

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// A command may take away the permissions that we need; what it can take its
// owner can give back. Everything here works on descriptors, so that no name is
// looked up twice and no link followed.

// refused says whether permissions were in the way.
func refused(err error) bool {
	return errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM)
}

// grant adds permissions to what fd is open on. undo takes them back.
func grant(fd int, bits uint32) (undo func(), err error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	mode := uint32(st.Mode)
	if t := mode & unix.S_IFMT; t != unix.S_IFDIR && t != unix.S_IFREG {
		return nil, unix.EACCES // nobody needs the others open
	}
	if mode&bits == bits {
		return func() {}, nil
	}
	if err := chmodFD(fd, mode|bits); err != nil {
		return nil, err
	}
	return func() { _ = chmodFD(fd, mode) }, nil
}

// forced does something with the entries of the directory fd. When that is
// refused it tries again with the owner's permissions, and takes those back.
func forced(fd int, do func() error) error {
	err := do()
	if !refused(err) {
		return err
	}
	undo, failed := grant(fd, 0o700)
	if failed != nil {
		return err
	}
	defer undo()
	return do()
}

// handleAt opens whatever is at name, for everything but its content.
func handleAt(fd int, name string) (h int, err error) {
	err = forced(fd, func() (err error) {
		h, err = openHandle(fd, name, 0)
		return err
	})
	if err != nil {
		return -1, err
	}
	return h, nil
}

// openFile opens a regular file for reading, also one whose owner cannot read
// it as it is.
func openFile(fd int, name string) (int, error) {
	f, err := unix.Openat(fd, name, readFlags, 0)
	if !refused(err) {
		return f, err
	}
	h, err := handleAt(fd, name)
	if err != nil {
		return -1, err
	}
	defer unix.Close(h)
	undo, err := grant(h, 0o400)
	if err != nil {
		return -1, err
	}
	defer undo()
	return readHandle(h)
}

// OpenUp gives the owner's permissions to folders of a workspace, and to all
// folders in them, except those that keep holds by device and inode. It says
// whether it changed any. Folders of other owners stay as they are.
func OpenUp(workspace string, folders []string, keep func(dev, ino uint64) bool) bool {
	s, err := openSurvey(workspace, nil)
	if err != nil {
		return false
	}
	defer s.close()
	o := opener{keep: keep}
	for _, path := range folders {
		if !inside(workspace, path) {
			continue
		}
		if path == workspace {
			o.open(s.roots[0].fd)
			continue
		}
		dir, base := splitPath(path)
		fd, err := s.dir(dir)
		if err != nil {
			continue
		}
		if h, err := openHandle(fd, base, unix.O_DIRECTORY); err == nil {
			o.open(h)
			unix.Close(h)
		}
		unix.Close(fd)
	}
	return o.changed
}

type opener struct {
	keep    func(dev, ino uint64) bool
	changed bool
}

// open opens up the folder of h and all in it.
func (o *opener) open(h int) {
	var st unix.Stat_t
	if unix.Fstat(h, &st) != nil || o.keep(uint64(st.Dev), st.Ino) {
		return
	}
	if st.Mode&0o700 != 0o700 {
		if chmodFD(h, uint32(st.Mode)|0o700) != nil {
			return
		}
		o.changed = true
	}
	fd, err := unix.Openat(h, ".", dirFlags, 0)
	if err != nil {
		return
	}
	f := os.NewFile(uintptr(fd), "")
	entries, _ := f.ReadDir(-1)
	f.Close()
	for _, e := range entries {
		if e.Type()&fs.ModeType != fs.ModeDir {
			continue
		}
		if c, err := openHandle(h, e.Name(), unix.O_DIRECTORY); err == nil {
			o.open(c)
			unix.Close(c)
		}
	}
}
