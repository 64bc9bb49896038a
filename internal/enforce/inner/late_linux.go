package inner

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"runtime/debug"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/internal/enforce"
)

// late carries out what is found to be missing in the world of a command that
// runs already. The command can do nothing about it: it is done by a thread of
// this process that was never restricted, which is out of the command's reach.
type late struct {
	mu sync.Mutex
	b  *builder // nil where the world is not ours
}

// cover answers a request to carry out the steps in a file.
func (l *late) cover(number uint32, fd int) {
	f := os.NewFile(uintptr(fd), "steps")
	defer f.Close()
	m := Message{Kind: Covered, Status: number}
	done, err := l.carryOut(f)
	if err != nil {
		m.Errno = int32(unix.EIO)
		if errno, ok := errors.AsType[unix.Errno](err); ok {
			m.Errno = int32(errno)
		}
		m.What = err.Error()
	} else {
		m.What = string(done.Encode())
	}
	send(m)
}

func (l *late) carryOut(f *os.File) (Coverage, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.b == nil {
		return Coverage{}, unix.ENOSYS
	}
	debug.SetGCPercent(100) // off until now: nothing was to live long
	raw, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<30))
	if err != nil {
		return Coverage{}, err
	}
	order, err := enforce.DecodeOrder(raw)
	if err != nil {
		return Coverage{}, err
	}
	var c Coverage
	for i := range order.Steps {
		s := &order.Steps[i]
		did, err := l.b.cover(s)
		switch {
		case err == nil && did:
			c.Done++
		case err == nil:
		case errors.Is(err, errChanged):
			c.Changed++
		default:
			c.Failed++
			c.Why = (&stepError{step: s, what: "cover", err: err}).Error()
		}
	}
	return c, nil
}

// cover makes sure that a step holds, and says whether anything had to be done
// for it. errChanged: the file is not where it was seen.
//
// Mounts are made in the kit and moved to their place when they are as they must
// be: there is no moment at which the place is open in another way than it was.
func (b *builder) cover(s *enforce.Step) (bool, error) {
	if s.Ino == 0 || s.Flags&enforce.Make != 0 {
		return false, unix.EINVAL
	}
	at, err := b.lookup(s.Dst)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return false, errChanged
	}
	if err != nil {
		if b.gone(s.Dst, "open", err) {
			return false, nil
		}
		return false, err
	}
	defer unix.Close(at)
	var st unix.Stat_t
	if err := unix.Fstat(at, &st); err != nil {
		return false, err
	}
	if b.ours(&st) {
		return false, nil
	}
	if st.Dev != s.Dev || st.Ino != s.Ino {
		return false, errChanged
	}
	dir := st.Mode&unix.S_IFMT == unix.S_IFDIR
	switch s.Do {
	case enforce.MaskFile, enforce.MaskDir:
		if dir != (s.Do == enforce.MaskDir) {
			return false, errChanged
		}
		src, err := b.maskSource(s.Do)
		if err != nil {
			return false, err
		}
		return true, bindOver(src, at, 0)
	case enforce.MaskStub, enforce.File:
		if dir {
			return false, errChanged
		}
		return true, b.coverByFile(s, at)
	case enforce.Self:
		var fs unix.Statfs_t
		if err := unix.Fstatfs(at, &fs); err != nil || fs.Flags&unix.ST_RDONLY != 0 {
			return false, err
		}
		return true, b.lockLate(at, dir)
	}
	return false, unix.EINVAL
}

// ours says whether a file is one that masks show.
func (b *builder) ours(st *unix.Stat_t) bool {
	var own unix.Stat_t
	if unix.Fstat(b.kit, &own) == nil && own.Dev == st.Dev {
		return true
	}
	for _, fd := range b.masks {
		if unix.Fstat(fd, &own) == nil && own.Dev == st.Dev && own.Ino == st.Ino {
			return true
		}
	}
	return false
}

// coverByFile covers at with a stub or a file with content.
func (b *builder) coverByFile(s *enforce.Step, at int) error {
	name := "l" + strconv.Itoa(b.stubs)
	b.stubs++
	make := b.makeStub
	if s.Do == enforce.File {
		make = b.fill
	}
	if err := make(name, s); err != nil {
		return err
	}
	defer unix.Unlinkat(b.kit, name, 0) // the mount keeps it
	file, err := child(b.kit, name)
	if err != nil {
		return err
	}
	defer unix.Close(file)
	return b.moveOver(file, name, at, attrs(enforce.ReadOnly|enforce.NoExec), 0)
}

// lockLate makes what lies at at, with all that is mounted in it, read-only.
func (b *builder) lockLate(at int, dir bool) error {
	name := "p" + strconv.Itoa(b.stubs)
	b.stubs++
	remove := 0
	if dir {
		if err := unix.Mkdirat(b.kit, name, 0o700); err != nil {
			return err
		}
		remove = unix.AT_REMOVEDIR
	} else {
		fd, err := unix.Openat(b.kit, name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC, 0o400)
		if err != nil {
			return err
		}
		unix.Close(fd)
	}
	defer unix.Unlinkat(b.kit, name, remove)
	return b.moveOver(at, name, at, attrs(enforce.ReadOnly), unix.MS_REC)
}

// moveOver mounts src in the kit at name, restricts that, and moves it over at.
func (b *builder) moveOver(src int, name string, at int, attr uint64, flags uintptr) error {
	place, err := child(b.kit, name)
	if err != nil {
		return err
	}
	err = bindOver(src, place, flags)
	unix.Close(place)
	if err != nil {
		return err
	}
	// The lookup now ends on the new mount.
	mount, err := child(b.kit, name)
	if err != nil {
		return err
	}
	defer unix.Close(mount)
	err = setattr(mount, attr, flags != 0)
	if err == nil {
		err = attach(mount, at)
	}
	if err != nil {
		_ = unix.Unmount(numbered(mount), unix.MNT_DETACH)
	}
	return err
}

// bindOver mounts src over at by the old call: the new ones count detached
// mounts as mount namespaces, of which there may be none any more.
func bindOver(src, at int, flags uintptr) error {
	return unix.Mount(numbered(src), numbered(at), "", unix.MS_BIND|flags, "")
}

func numbered(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// request is what one packet of the supervisor's asks for.
func request(b []byte, oob []byte) (n int, fd int, err error) {
	fd = -1
	for {
		got := 0
		n, got, _, _, err = unix.Recvmsg(FDControl, b, oob, unix.MSG_CMSG_CLOEXEC)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || got == 0 {
			return n, fd, err
		}
		messages, err := unix.ParseSocketControlMessage(oob[:got])
		if err != nil || len(messages) != 1 {
			return n, fd, nil
		}
		fds, err := unix.ParseUnixRights(&messages[0])
		if err != nil {
			return n, fd, nil
		}
		for i, f := range fds {
			if i == 0 {
				fd = f
				continue
			}
			unix.Close(f)
		}
		return n, fd, nil
	}
}

// number reads the number of a request to cover.
func number(b []byte) uint32 { return binary.LittleEndian.Uint32(b[1:]) }
