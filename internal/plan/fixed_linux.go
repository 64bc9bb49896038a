package plan

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// statFixed looks at a canonical path without following a link anywhere on the
// way: a link that has come into it since is an error, and never a detour.
func statFixed(path string) (fs.FileInfo, error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS}
	for n := 0; ; n++ {
		fd, err := unix.Openat2(unix.AT_FDCWD, path, &how)
		if err == nil {
			f := os.NewFile(uintptr(fd), path)
			defer f.Close()
			return f.Stat()
		}
		if n > 1000 || !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR) {
			return nil, &fs.PathError{Op: "open", Path: path, Err: err}
		}
	}
}
