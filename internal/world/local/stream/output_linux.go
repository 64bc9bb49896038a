package stream

import (
	"errors"
	"io"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// output carries what a command writes.
type output struct {
	src     *os.File // our end of the pipe, or a terminal's master
	raw     syscall.RawConn
	to      io.Writer
	sink    *sink        // the file of the caller that to ends in, if any
	plain   bool         // to is the sink itself
	last    func() error // runs when all has been carried
	ours    bool         // to ends in a Capture
	settled atomic.Bool
}

func newOutput(src *os.File, w io.Writer) (*output, error) {
	_, ours := w.(*Capture)
	o := &output{src: src, to: w, ours: ours}
	var err error
	if o.raw, err = src.SyscallConn(); err != nil {
		src.Close()
		return nil, err
	}
	if f, ok := w.(*os.File); ok {
		if o.sink, err = newSink(f); err != nil {
			src.Close()
			return nil, err
		}
		o.to, o.plain = o.sink, true
	}
	return o, nil
}

func (o *output) settle() {
	o.settled.Store(true)
	// Wakes a read that waits. The reader goes on without a deadline then, and
	// takes an empty pipe for the end.
	_ = o.src.SetReadDeadline(time.Unix(1, 0))
}

func (o *output) abort() {
	if o.sink != nil {
		o.sink.stop.set()
	}
	o.src.Close()
}

func (o *output) release() {
	o.src.Close()
	if o.sink != nil {
		o.sink.close()
	}
}

// foreign: a Capture and files (but see sink) do not hold us up for ever.
func (o *output) foreign() bool { return o.sink == nil && !o.ours }

func (o *output) run() (err error) {
	defer o.release() // the command gets SIGPIPE from now on
	if o.plain && o.sink.pipe {
		err = o.splice()
	} else {
		err = o.copy()
	}
	if o.last != nil {
		if lastErr := o.last(); err == nil {
			err = lastErr
		}
	}
	switch {
	case errors.Is(err, os.ErrClosed): // we were told to end
	case errors.Is(err, unix.EPIPE): // the reader has left
	case errors.Is(err, unix.EIO) && o.sink != nil && o.sink.tty: // so has the terminal
	default:
		return err
	}
	return nil
}

var errFull = errors.New("the sink is full")

// splice moves whole pages from pipe to pipe; nothing is copied.
func (o *output) splice() error {
	grown := false
	for {
		n, err := o.next(func(fd int) (int, error) {
			n, err := unix.Splice(fd, nil, o.sink.fd, nil, bulk, unix.SPLICE_F_NONBLOCK|unix.SPLICE_F_MOVE)
			if err == unix.EAGAIN && queued(fd) > 0 {
				return 0, errFull
			}
			return int(n), err
		})
		switch {
		case err == errFull:
			err = o.sink.wait()
		case err == io.EOF:
			return nil
		case err == unix.EINVAL:
			return o.copy()
		}
		if err != nil {
			return err
		}
		if n >= 32<<10 && !grown {
			grown = true
			_ = withFD(o.src, func(fd int) error { enlarge(fd); return nil })
		}
	}
}

func (o *output) copy() error {
	buf := make([]byte, 4<<10) // most commands say little
	for {
		n, err := o.next(func(fd int) (int, error) { return unix.Read(fd, buf) })
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if _, err := o.to.Write(buf[:n]); err != nil {
			return err
		}
		if n < len(buf) || len(buf) > 32<<10 {
			continue
		}
		buf = make([]byte, 64<<10)
		if o.sink != nil {
			buf = make([]byte, 256<<10)
			_ = withFD(o.src, func(fd int) error { enlarge(fd); return nil })
		}
	}
}

// next calls take when there is something to read. The end is io.EOF: nobody
// can write any more, or the command has settled and nothing is left.
func (o *output) next(take func(fd int) (int, error)) (n int, err error) {
	for {
		var inner error
		err = o.raw.Read(func(fd uintptr) bool {
			// Before the attempt: what was written before settle is seen.
			settled := o.settled.Load()
			n, inner = take(int(fd))
			for inner == unix.EINTR {
				n, inner = take(int(fd))
			}
			return inner != unix.EAGAIN || settled
		})
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			if err = o.src.SetReadDeadline(time.Time{}); err == nil {
				continue
			}
			return 0, err
		case err != nil:
			return 0, err
		case inner == unix.EAGAIN, inner == nil && n <= 0:
			return 0, io.EOF
		case inner == unix.EIO:
			return 0, io.EOF // a terminal's master says so when nobody has the other end
		}
		return n, inner
	}
}

// sink writes to a file of the caller, through a descriptor of our own: the
// runtime would end this process by SIGPIPE for a failed write to 1 or 2, and
// only a descriptor that we poll can be given up. The description may be
// shared with other programs, so its flags stay as they are.
type sink struct {
	fd   int
	pipe bool
	tty  bool
	slow bool // may wait for whoever reads
	stop *event
}

func newSink(f *os.File) (*sink, error) {
	fd, err := duplicate(f)
	if err != nil {
		return nil, err
	}
	k := &sink{fd: fd}
	if k.stop, err = newEvent(); err != nil {
		unix.Close(fd)
		return nil, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err == nil {
		kind := st.Mode & unix.S_IFMT
		k.pipe = kind == unix.S_IFIFO
		k.slow = kind != unix.S_IFREG && kind != unix.S_IFBLK
	}
	if k.slow && !k.pipe && isTTY(fd) {
		k.tty = true
		k.fd = unblocked(fd, unix.O_WRONLY)
	}
	return k, nil
}

// unblocked trades a terminal's descriptor for one that does not block, if the
// terminal can be opened again; that needs /proc and permission.
func unblocked(fd, mode int) int {
	path := "/proc/self/fd/" + strconv.Itoa(fd)
	own, err := unix.Open(path, mode|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fd
	}
	unix.Close(fd)
	return own
}

func (k *sink) close() {
	k.stop.close()
	if k.fd >= 0 {
		unix.Close(k.fd)
		k.fd = -1
	}
}

// wait waits until the file takes something.
func (k *sink) wait() error {
	return await(k.stop, &unix.PollFd{Fd: int32(k.fd), Events: unix.POLLOUT}, &unix.PollFd{Fd: -1}, -1)
}

// Write writes all of p, waiting where it must.
func (k *sink) Write(p []byte) (n int, err error) {
	for n < len(p) {
		part := p[n:]
		if k.slow {
			if err := k.wait(); err != nil {
				return n, err
			}
			// A descriptor that blocks takes so much without blocking.
			part = part[:min(len(part), 4096)]
		}
		m, err := unix.Write(k.fd, part)
		switch {
		case err == unix.EINTR:
		case err == unix.EAGAIN:
			k.slow = true
		case err != nil:
			return n, err
		default:
			n += m
		}
	}
	return n, nil
}

// try writes p if the file takes it soon, also after stop.
func (k *sink) try(p []byte) {
	fds := []unix.PollFd{{Fd: int32(k.fd), Events: unix.POLLOUT}}
	if len(p) == 0 {
		return
	}
	if n, _ := unix.Poll(fds, 200); n > 0 && fds[0].Revents&unix.POLLOUT != 0 {
		_, _ = unix.Write(k.fd, p)
	}
}
