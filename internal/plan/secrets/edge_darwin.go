package secrets

import (
	"path/filepath"

	"golang.org/x/sys/unix"
)

const (
	// openPlace opens a directory for what lies in it.
	openPlace = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC
	// asOwner has no counterpart here.
	asOwner = 0
	// onlyHere has none either: a look at a trigger does not mount anything.
	onlyHere = 0
	// direntHead is the length of a dirent before its name, direntKind where its
	// type stands (dirent.h, with 64-bit inode numbers).
	direntHead, direntKind = 21, 20
)

func readDir(fd int, buf []byte) (int, error) { return unix.ReadDirent(fd, buf) }

// fileSystem says what can be relied on in a file system.
type fileSystem struct{ keepsTime, tells bool }

// fileSystemOf relies on none here: every directory is listed every time.
func fileSystemOf(int) fileSystem { return fileSystem{} }

func lockable(int) bool { return true }

// openBelow refuses: here paths are followed step by step.
func openBelow(int, string) (int, error) { return -1, unix.ENOTSUP }

// place is where a path leads.
type place struct {
	// fd is a descriptor of the end if that is a directory, and otherwise of
	// the one that it lies in, as dir always is.
	fd, dir int
	// path is canonical; name is its last name, empty for "/".
	path, name string
	stat       unix.Stat_t
}

func (p *place) close() {
	unix.Close(p.fd)
	unix.Close(p.dir)
}

// errAutomount is never met here.
var errAutomount = unix.ENOTSUP

// resolve follows an absolute path, links included, to what exists at its end.
// Nothing but directories is opened.
func resolve(path string) (place, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return place{}, err
	}
	up, name := splitPath(real)
	p := place{path: real, name: name}
	if p.dir, err = unix.Open(up, openPlace|unix.O_NOFOLLOW, 0); err != nil {
		return place{}, err
	}
	at := name
	if at == "" {
		at = "."
	}
	if err = unix.Fstatat(p.dir, at, &p.stat, unix.AT_SYMLINK_NOFOLLOW); err == nil {
		if p.stat.Mode&unix.S_IFMT == unix.S_IFDIR {
			p.fd, err = unix.Openat(p.dir, at, openPlace|unix.O_NOFOLLOW, 0)
		} else {
			p.fd, err = unix.Dup(p.dir)
		}
	}
	if err != nil {
		unix.Close(p.dir)
		return place{}, err
	}
	return p, nil
}
