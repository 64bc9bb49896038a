//go:build linux || darwin

package gitmeta

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// readRegular reads a regular file of at most max bytes. It follows no link in
// the last component and waits for nothing: a FIFO or a device in a planted
// place is an error, not a hang.
func readRegular(path string, max int64) ([]byte, error) {
	fd, err := unix.Open(path, readFlags, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return readFD(fd, path, max)
}

const readFlags = unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC

func readFD(fd int, path string, max int64) ([]byte, error) {
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: %w", path, errNotRegular)
	}
	if st.Size() > max {
		return nil, fmt.Errorf("%s: %w", path, errTooBig)
	}
	raw, err := io.ReadAll(io.LimitReader(f, max+1))
	if err == nil && int64(len(raw)) > max {
		err = fmt.Errorf("%s: %w", path, errTooBig)
	}
	return raw, err
}

// owner returns the uid that a file belongs to.
func owner(fi fs.FileInfo) (uint32, bool) {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return st.Uid, true
}
