package local

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// stripOne takes the bits and capabilities from the regular file at path, through
// no link, be it in a root or above it.
func stripOne(path string, uid uint32) error {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil // it is another one by now
	}
	if st.Uid != uid {
		return errNotTheirs
	}
	self := "/proc/self/fd/" + strconv.Itoa(fd)
	if st.Mode&(unix.S_ISUID|unix.S_ISGID) != 0 {
		if err := unix.Chmod(self, st.Mode&0o1777); err != nil {
			return err
		}
	}
	// Only root may remove them; to others that is refused also where there are none.
	switch _, err := unix.Getxattr(self, "security.capability", nil); err {
	case nil:
		return unix.Removexattr(self, "security.capability")
	case unix.ENODATA, unix.EOPNOTSUPP:
		return nil
	default:
		return err
	}
}
