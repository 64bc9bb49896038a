package local

import "golang.org/x/sys/unix"

// stripOne takes the bits from the regular file at path, through no link. There
// are no capabilities of files here.
func stripOne(path string, uid uint32) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW_ANY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
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
	if st.Mode&(unix.S_ISUID|unix.S_ISGID) == 0 {
		return nil
	}
	return unix.Fchmod(fd, uint32(st.Mode)&0o1777)
}
