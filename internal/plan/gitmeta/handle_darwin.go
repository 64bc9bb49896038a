package gitmeta

import "golang.org/x/sys/unix"

// openPlace opens a directory for what lies in it.
const openPlace = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC

// openHandle opens whatever is at name, a link itself. There is no opening
// without the permission to read here, so what its owner cannot read gets it for
// as long as that takes.
func openHandle(fd int, name string, more int) (int, error) {
	flags := unix.O_RDONLY | unix.O_SYMLINK | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC | more
	h, err := unix.Openat(fd, name, flags, 0)
	var st unix.Stat_t
	if err != unix.EACCES || unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return h, err
	}
	mode := uint32(st.Mode)
	if t := mode & unix.S_IFMT; t != unix.S_IFDIR && t != unix.S_IFREG || mode&0o400 != 0 {
		return h, err
	}
	if unix.Fchmodat(fd, name, mode&0o7777|0o400, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return h, err
	}
	h, err = unix.Openat(fd, name, flags, 0)
	_ = unix.Fchmodat(fd, name, mode&0o7777, unix.AT_SYMLINK_NOFOLLOW)
	return h, err
}

// chmodFD changes the mode of what fd is open on.
func chmodFD(fd int, mode uint32) error { return unix.Fchmod(fd, mode&0o7777) }

// readHandle returns another descriptor of the handle fd, which can be read.
func readHandle(fd int) (int, error) { return unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3) }

// truncateHandle refuses: a handle cannot be written.
func truncateHandle(int) error { return unix.EPERM }
