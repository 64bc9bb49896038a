package plan

import (
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// statFixed looks at a canonical path without following a link anywhere on the
// way: a link that has come into it since is an error, and never a detour.
func statFixed(path string) (fs.FileInfo, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NOFOLLOW_ANY, 0)
	if err == nil {
		f := os.NewFile(uintptr(fd), path)
		defer f.Close()
		return f.Stat()
	}
	if err != unix.EACCES && err != unix.EOPNOTSUPP && err != unix.ENXIO {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	// What cannot be opened can be looked at; the profile goes by the path that
	// the kernel finds, so that a detour shows nothing.
	info, err := os.Lstat(path)
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return nil, &fs.PathError{Op: "lstat", Path: path, Err: syscall.ELOOP}
	}
	return info, err
}
