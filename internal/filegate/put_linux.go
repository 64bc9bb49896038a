package filegate

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"golang.org/x/sys/unix"
)

// createFile makes the missing file with its content, or nothing. It takes the
// mode that the umask and the folder give.
func (w *walk) createFile(data []byte) error {
	dir, name := w.end().fd, w.missing[0]
	tmp, err := newTemp(dir, 0o666)
	if err != nil {
		return failed(w.asked, "make", err)
	}
	defer tmp.drop()
	if err := tmp.fill(data); err != nil {
		return failed(w.asked, "write", err)
	}
	err = unix.Renameat2(dir, tmp.name, dir, name, unix.RENAME_NOREPLACE)
	if err == unix.EINVAL || err == unix.ENOSYS { // not on every file system
		err = unix.Linkat(dir, tmp.name, dir, name, 0)
	}
	switch err {
	case nil:
		return nil
	case unix.EEXIST:
		return errChanged
	}
	return failed(w.asked, "make", err)
}

// put gives the file at the end of the way a new content, by replacing it, or
// where that cannot be, in place.
func (w *walk) put(data []byte) (inPlace bool, err error) {
	n := w.end()
	// What decides is what a command needs, too: leave to write the file.
	fd, err := openat(n.dir, n.name, unix.O_WRONLY)
	running := err == unix.ETXTBSY
	if running { // replacing it does no harm
		fd, err = openat(n.dir, n.name, unix.O_RDONLY)
	}
	switch err {
	case nil:
		defer unix.Close(fd)
	case unix.ELOOP, unix.ENXIO, unix.ENOENT:
		return false, errChanged
	default:
		return false, failed(w.asked, "write", err)
	}
	if n.fd >= 0 && !mounted(fd) { // the folder of a root that is a file is no root
		if err = w.swap(fd, data); err != errInPlace {
			return false, err
		}
	}
	if running {
		return false, failed(w.asked, "write", unix.ETXTBSY)
	}
	return true, w.overwrite(fd, data)
}

// mounted says whether a file is a mount of its own, which a rename would
// break, or could not replace.
func mounted(fd int) bool {
	var x unix.Statx_t
	return unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_BASIC_STATS, &x) == nil && x.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
}

// errInPlace says that a file cannot be replaced without losing something.
var errInPlace = errors.New("it can only be written in place")

// swap replaces the file that fd is by a new one of the same kind.
func (w *walk) swap(fd int, data []byte) error {
	n := w.end()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return failed(w.asked, "write", err)
	}
	if !same(&st, &n.st) {
		return errChanged
	}
	tmp, err := newTemp(n.dir, 0o600)
	switch err {
	case nil:
	case unix.EACCES, unix.EPERM, unix.EROFS:
		return errInPlace
	default:
		return failed(w.asked, "replace", err)
	}
	defer tmp.drop()
	if err := tmp.like(fd, &st); err != nil {
		return errInPlace
	}
	if err := tmp.fill(data); err != nil {
		return failed(w.asked, "write", err)
	}
	var now unix.Stat_t
	if err := unix.Fstatat(n.dir, n.name, &now, unix.AT_SYMLINK_NOFOLLOW); err != nil || !same(&now, &st) {
		return errChanged
	}
	switch err := unix.Renameat(n.dir, tmp.name, n.dir, n.name); err {
	case nil:
		return nil
	case unix.EBUSY, unix.EPERM, unix.EACCES: // a mount, or a folder with the sticky bit
		return errInPlace
	default:
		return failed(w.asked, "replace", err)
	}
}

// same says whether two looks saw one file with one content.
func same(a, b *unix.Stat_t) bool {
	return a.Dev == b.Dev && a.Ino == b.Ino && a.Size == b.Size && a.Mtim == b.Mtim && a.Mode == b.Mode
}

// overwrite writes into the file itself. Of several names of one file that
// would change the others, too.
func (w *walk) overwrite(fd int, data []byte) error {
	n := w.end()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return failed(w.asked, "write", err)
	}
	if !same(&st, &n.st) {
		return errChanged
	}
	if st.Nlink > 1 {
		return refuse(w.asked, "has other names, and cannot be replaced without changing them", "make a copy of it under another name, and edit that")
	}
	before, _, cannot := readFile(n, MaxFile)
	err := writeAll(fd, data)
	if err == nil {
		err = unix.Ftruncate(fd, int64(len(data)))
	}
	if err == nil {
		return nil
	}
	// What was there is worth more than a part of what is new.
	if cannot == nil && int64(len(before)) == st.Size && writeAll(fd, before) == nil {
		_ = unix.Ftruncate(fd, st.Size)
	}
	return failed(w.asked, "write", err)
}

// temp is a file that is to become another one.
type temp struct {
	dir, fd int
	name    string
}

// newTemp makes a file next to the one that it is for.
func newTemp(dir int, mode uint32) (*temp, error) {
	for try := 0; ; try++ {
		t := &temp{dir: dir, name: fmt.Sprintf(".tether-%016x.tmp", rand.Uint64())}
		var err error
		t.fd, err = unix.Openat(dir, t.name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, mode)
		if err == nil {
			return t, nil
		}
		if err != unix.EEXIST && err != unix.EINTR || try == 8 {
			return nil, err
		}
	}
}

// drop closes the file and removes its name, unless that is gone already: a
// name of this kind is nobody else's.
func (t *temp) drop() {
	unix.Close(t.fd)
	_ = unix.Unlinkat(t.dir, t.name, 0)
}

func (t *temp) fill(data []byte) error { return writeAll(t.fd, data) }

// like gives the file the owner, mode, access list and user's attributes of
// another one. What writing would take away from that one it does not get: the
// bits that lend rights, and the security attributes.
func (t *temp) like(fd int, st *unix.Stat_t) error {
	var mine unix.Stat_t
	if err := unix.Fstat(t.fd, &mine); err != nil {
		return err
	}
	if mine.Uid != st.Uid || mine.Gid != st.Gid {
		if err := unix.Fchown(t.fd, int(st.Uid), int(st.Gid)); err != nil {
			return err
		}
	}
	if err := unix.Fchmod(t.fd, st.Mode&0o777); err != nil {
		return err
	}
	var names [1 << 12]byte
	size, err := unix.Flistxattr(fd, names[:])
	if err == unix.EOPNOTSUPP || err == nil && size == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	for name := range strings.SplitSeq(strings.TrimRight(string(names[:size]), "\x00"), "\x00") {
		if !strings.HasPrefix(name, "user.") && name != "system.posix_acl_access" {
			continue
		}
		value := make([]byte, 1<<16)
		k, err := unix.Fgetxattr(fd, name, value)
		if err == nil {
			err = unix.Fsetxattr(t.fd, name, value[:k], 0)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func writeAll(fd int, data []byte) error {
	for at := 0; at < len(data); {
		k, err := unix.Pwrite(fd, data[at:], int64(at))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		at += k
	}
	return nil
}
