package local

import (
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func stripOne(root, path string, uid uint32) error {
	top, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(top)
	fd, err := unix.Openat2(top, strings.TrimPrefix(path[len(root):], "/"), &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS})
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
