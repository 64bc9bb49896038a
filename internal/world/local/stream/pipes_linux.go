package stream

import (
	"errors"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/fault"
)

// Open gives the command a terminal of ours if its standard input is one, and
// pipes otherwise.
func Open(o Options) (*Set, error) {
	if f, ok := o.Stdin.(*os.File); ok && f != nil && IsTerminal(f) {
		return PTY(o)
	}
	return Pipes(o)
}

// Pipes gives the command pipes, whatever the caller's files are.
func Pipes(o Options) (*Set, error) {
	s := new(Set)
	if err := s.openPipes(o); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Set) openPipes(o Options) error {
	if err := s.openInput(o); err != nil {
		return err
	}
	return s.openOutputs(o)
}

func (s *Set) openInput(o Options) error {
	f, isFile := o.Stdin.(*os.File)
	if o.Stdin == nil || isFile && (f == nil || isNull(f)) {
		return s.null(0, os.O_RDONLY)
	}
	ours, theirs, err := pipe(o.Owner, false)
	if err != nil {
		return err
	}
	s.child[0] = theirs
	if !isFile {
		s.in = newJob(&readerFlow{r: o.Stdin, to: ours})
		return nil
	}
	in, err := newInput(f, ours)
	if err != nil {
		return err
	}
	s.in = newJob(in)
	return nil
}

func (s *Set) openOutputs(o Options) error {
	if err := s.openOutput(1, o.Stdout, o); err != nil {
		return err
	}
	if sameSink(o.Stdout, o.Stderr) {
		s.child[2] = s.child[1]
		return nil
	}
	return s.openOutput(2, o.Stderr, o)
}

func (s *Set) openOutput(i int, w io.Writer, o Options) error {
	f, isFile := w.(*os.File)
	if w == nil || isFile && (f == nil || isNull(f)) {
		return s.null(i, os.O_WRONLY)
	}
	ours, theirs, err := pipe(o.Owner, true)
	if err != nil {
		return err
	}
	s.child[i] = theirs
	return s.carry(ours, w, o)
}

// carry adds the flow from src, which it owns, to w.
func (s *Set) carry(src *os.File, w io.Writer, o Options) error {
	out, err := newOutput(src, w)
	if err != nil {
		return err
	}
	s.out = append(s.out, newJob(out))
	var filter *Filter
	if out.sink != nil && out.sink.tty {
		filter = NewFilter(out.sink)
		s.filters = append(s.filters, filter)
		out.to, out.plain = filter, false
	}
	var through io.Closer
	if o.Through != nil {
		// Only what Through made may be closed, never the caller's own.
		out.to, out.plain = o.Through(struct{ io.Writer }{out.to}), false
		through, _ = out.to.(io.Closer)
	}
	out.last = func() (err error) {
		if through != nil {
			err = through.Close()
		}
		if filter != nil {
			err = errors.Join(err, filter.Close())
			out.sink.try(filter.Undo())
		}
		return err
	}
	return nil
}

func (s *Set) null(i, flag int) error {
	f, err := os.OpenFile(os.DevNull, flag, 0)
	if err != nil {
		return fault.Wrap(fault.IsolationUnavailable, "cannot open /dev/null", err)
	}
	s.child[i] = f
	return nil
}

// isNull tells whether f is /dev/null, by whatever name.
func isNull(f *os.File) bool {
	var st unix.Stat_t
	err := withFD(f, func(fd int) error { return unix.Fstat(fd, &st) })
	return err == nil && st.Mode&unix.S_IFMT == unix.S_IFCHR && st.Rdev == unix.Mkdev(1, 3)
}

// pipe makes a pipe. Our end does not block and is known to the runtime's
// poller; theirs blocks, as every program expects, and has the owner.
func pipe(owner *Owner, reading bool) (ours, theirs *os.File, err error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return nil, nil, fault.Wrap(fault.IsolationUnavailable, "cannot make a pipe", err)
	}
	mine, other := fds[1], fds[0]
	if reading {
		mine, other = fds[0], fds[1]
	}
	_, err = unix.FcntlInt(uintptr(other), unix.F_SETFL, 0)
	if err == nil && owner != nil {
		err = unix.Fchown(other, owner.UID, owner.GID)
	}
	if err != nil {
		unix.Close(mine)
		unix.Close(other)
		return nil, nil, fault.Wrap(fault.IsolationUnavailable, "cannot prepare a pipe", err)
	}
	return os.NewFile(uintptr(mine), "pipe"), os.NewFile(uintptr(other), "pipe"), nil
}

// withFD calls f with the descriptor of file, which stays open meanwhile.
// (File.Fd would be shorter; on some systems it makes the file block.)
func withFD(file *os.File, f func(fd int) error) error {
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	if err := raw.Control(func(fd uintptr) { inner = f(int(fd)) }); err != nil {
		return err
	}
	return inner
}

// duplicate returns a descriptor of our own for file's description.
func duplicate(file *os.File) (fd int, err error) {
	// Not below 3: should one of the caller's own be closed, ours must not
	// take its place.
	err = withFD(file, func(old int) (err error) {
		fd, err = unix.FcntlInt(uintptr(old), unix.F_DUPFD_CLOEXEC, 3)
		return err
	})
	if err != nil {
		return -1, fault.Wrap(fault.IsolationUnavailable, "cannot use "+file.Name(), err)
	}
	return fd, nil
}

// event wakes whoever polls for it. Once set it stays so.
type event struct {
	mu sync.Mutex
	fd int // -1 once closed
}

func newEvent() (*event, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fault.Wrap(fault.IsolationUnavailable, "cannot make an event", err)
	}
	return &event{fd: fd}, nil
}

func (e *event) set() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.fd >= 0 {
		_, _ = unix.Write(e.fd, []byte{1, 0, 0, 0, 0, 0, 0, 1}) // 1 on either endianness is not zero
	}
}

// close may be called only by the one who polls.
func (e *event) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.fd >= 0 {
		unix.Close(e.fd)
		e.fd = -1
	}
}

// await polls two descriptors, either of which may be -1, until one is ready,
// the time is over (-1: never) or stop is set, which is os.ErrClosed.
func await(stop *event, a, b *unix.PollFd, timeout int) error {
	fds := [3]unix.PollFd{*a, *b, {Fd: int32(stop.fd), Events: unix.POLLIN}}
	for {
		_, err := unix.Poll(fds[:], timeout)
		if err == unix.EINTR {
			continue // with the whole time again: nobody relies on it
		}
		if err != nil {
			return err
		}
		break
	}
	a.Revents, b.Revents = fds[0].Revents, fds[1].Revents
	if fds[2].Revents != 0 {
		return os.ErrClosed
	}
	return nil
}

// queued returns how many bytes lie in a pipe.
func queued(fd int) int {
	n, err := unix.IoctlGetUint32(fd, unix.TIOCINQ) // FIONREAD
	if err != nil {
		return 0
	}
	return int(n)
}

// bulk is the size of a pipe through which much goes. The kernel may refuse it
// to a user who has many; then the pipe stays as it is, and is only slower.
const bulk = 1 << 20

func enlarge(fd int) { _, _ = unix.FcntlInt(uintptr(fd), unix.F_SETPIPE_SZ, bulk) }
