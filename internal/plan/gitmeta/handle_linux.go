package gitmeta

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// openPlace opens a directory for what lies in it, and not to be listed.
const openPlace = unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC

// openHandle opens whatever is at name, for everything but its content.
func openHandle(fd int, name string, more int) (int, error) {
	return unix.Openat(fd, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC|more, 0)
}

// chmodFD changes the mode of what fd is open on, a handle as well.
func chmodFD(fd int, mode uint32) error { return unix.Chmod(fdPath(fd), mode&0o7777) }

// readHandle opens for reading what the handle fd is open on.
func readHandle(fd int) (int, error) { return unix.Open(fdPath(fd), readFlags&^unix.O_NOFOLLOW, 0) }

func truncateHandle(fd int) error { return unix.Truncate(fdPath(fd), 0) }

// fdPath is a path to the very thing that fd is open on.
func fdPath(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }
