package stream

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strconv"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// input carries a file of the caller into a command's input. It polls on a
// thread of its own: the caller's file may be anything, and its description is
// shared, so that it can be neither made non-blocking nor closed under a read.
type input struct {
	src   int // our descriptor for the caller's description
	to    *os.File
	dst   int // of to
	stop  *event
	carry func() error
	// interrupt is the key that interrupts, 0 for none; interrupted says that
	// it was typed.
	interrupt   byte
	interrupted atomic.Bool
}

// errGone: the command has closed its input, or is no more.
var errGone = errors.New("nobody reads the input")

func newInput(f, to *os.File) (*input, error) {
	in := &input{src: -1, to: to}
	err := withFD(to, func(fd int) error { in.dst = fd; return nil })
	if err == nil {
		in.stop, err = newEvent()
	}
	if err == nil {
		in.src, err = duplicate(f)
	}
	if err != nil {
		in.release()
		return nil, err
	}
	in.carry = in.stream
	var st unix.Stat_t
	if err := unix.Fstat(in.src, &st); err != nil {
		return in, nil
	}
	switch kind := st.Mode & unix.S_IFMT; {
	case kind == unix.S_IFREG:
		in.carry = in.file
	case kind == unix.S_IFIFO:
		in.carry = in.pipe
	case kind == unix.S_IFCHR && isTTY(in.src):
		in.src = unblocked(in.src, unix.O_RDONLY)
		in.carry = func() error { return in.lines(nil) }
	}
	return in, nil
}

func (in *input) run() error {
	defer in.release()
	err := in.carry()
	if errors.Is(err, os.ErrClosed) || errors.Is(err, errGone) || errors.Is(err, unix.EPIPE) {
		return nil
	}
	return err
}

// settle and abort are the same: what the command has not read, it never will.
func (in *input) settle()       { in.stop.set() }
func (in *input) abort()        { in.stop.set() }
func (in *input) foreign() bool { return false }

func (in *input) release() {
	in.to.Close()
	if in.stop != nil {
		in.stop.close()
	}
	if in.src >= 0 {
		unix.Close(in.src)
		in.src = -1
	}
}

// readable waits until src has something or has ended.
func (in *input) readable() error {
	dst := unix.PollFd{Fd: int32(in.dst)} // for POLLERR only
	if err := await(in.stop, &unix.PollFd{Fd: int32(in.src), Events: unix.POLLIN}, &dst, -1); err != nil {
		return err
	}
	if dst.Revents != 0 {
		return errGone
	}
	return nil
}

// writable waits until dst takes something.
func (in *input) writable() error {
	dst := unix.PollFd{Fd: int32(in.dst), Events: unix.POLLOUT}
	if err := await(in.stop, &dst, &unix.PollFd{Fd: -1}, -1); err != nil {
		return err
	}
	if dst.Revents&(unix.POLLERR|unix.POLLHUP) != 0 {
		return errGone
	}
	return nil
}

// pause waits for the given time only.
func (in *input) pause(ms int) error {
	dst := unix.PollFd{Fd: int32(in.dst)}
	if err := await(in.stop, &unix.PollFd{Fd: -1}, &dst, ms); err != nil {
		return err
	}
	if dst.Revents != 0 {
		return errGone
	}
	return nil
}

// write writes all of p, and says how much when it could not.
func (in *input) write(p []byte) (n int, err error) {
	for n < len(p) {
		m, err := unix.Write(in.dst, p[n:])
		switch {
		case err == unix.EINTR:
		case err == unix.EAGAIN:
			if err := in.writable(); err != nil {
				return n, err
			}
		case err != nil:
			return n, err
		default:
			n += m
		}
	}
	return n, nil
}

// read reads once; 0 is the end.
func (in *input) read(p []byte) (int, error) {
	for {
		if err := in.readable(); err != nil {
			return 0, err
		}
		n, err := unix.Read(in.src, p)
		if err == unix.EINTR || err == unix.EAGAIN {
			continue
		}
		return max(n, 0), err
	}
}

// stream carries what cannot be given back: sockets, devices.
func (in *input) stream() error {
	buf := make([]byte, 32<<10)
	for {
		n, err := in.read(buf)
		if n <= 0 || err != nil {
			return err
		}
		if _, err := in.write(buf[:n]); err != nil {
			return err
		}
	}
}

// file carries a regular file. It reads at an offset of its own and, when the
// command has settled, moves the caller's to where the command stopped.
func (in *input) file() error {
	start, err := unix.Seek(in.src, 0, io.SeekCurrent)
	if err != nil {
		return in.stream()
	}
	sent, rest := int64(0), in.dst
	defer func() {
		// Unless somebody else has moved it meanwhile.
		read := sent - int64(queued(rest))
		if at, err := unix.Seek(in.src, 0, io.SeekCurrent); err == nil && at == start && read > 0 {
			_, _ = unix.Seek(in.src, start+read, io.SeekStart)
		}
	}()
	buf := make([]byte, 64<<10)
	for {
		n, err := unix.Pread(in.src, buf, start+sent)
		if err == unix.EINTR {
			continue
		}
		if n <= 0 {
			break // the end, or not readable: the command sees an end
		}
		if n == len(buf) && sent == 0 {
			enlarge(in.dst)
		}
		n, err = in.write(buf[:n])
		sent += int64(n)
		if err != nil {
			return err
		}
	}
	// The end shows only when we close the pipe. Opened for reading, it can
	// still tell how much the command left.
	peek, err := unix.Open("/proc/self/fd/"+strconv.Itoa(in.dst), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		rest = -1
		return nil
	}
	rest = peek
	in.to.Close()
	in.dst = -1
	err = in.pause(-1)
	read := queued(peek)
	unix.Close(peek)
	sent, rest = sent-int64(read), -1
	return err
}

// exact is how many pages of a pipe are handed over one by one.
const exact = 16

// pipe carries a pipe. At first each page is shown to the command while it
// stays in the caller's pipe, and leaves it only as far as the command reads
// it. A pipe of one page shows when that is: it takes no more until it is empty.
func (in *input) pipe() error {
	_, err := unix.FcntlInt(uintptr(in.dst), unix.F_SETPIPE_SZ, os.Getpagesize())
	for i := 0; err == nil && i < exact; i++ {
		if err := in.readable(); err != nil {
			return err
		}
		n, err := unix.Tee(in.src, in.dst, os.Getpagesize(), unix.SPLICE_F_NONBLOCK)
		switch {
		case err == unix.EINTR || err == unix.EAGAIN:
			i--
			continue
		case err == unix.EINVAL:
			return in.stream()
		case err != nil:
			return err
		case n == 0:
			return nil
		}
		err = in.writable()
		if derr := in.discard(int(n) - queued(in.dst)); err == nil {
			err = derr
		}
		if err != nil {
			return err
		}
	}
	enlarge(in.dst)
	for {
		n, err := unix.Splice(in.src, nil, in.dst, nil, bulk, unix.SPLICE_F_NONBLOCK|unix.SPLICE_F_MOVE)
		switch {
		case err == unix.EINTR:
		case err == unix.EAGAIN && queued(in.src) > 0:
			err = in.writable()
		case err == unix.EAGAIN:
			err = in.readable()
		case err == unix.EINVAL:
			return in.stream()
		case n == 0:
			return err
		}
		if err != nil && err != unix.EINTR {
			return err
		}
	}
}

// discard takes n bytes out of the caller's pipe.
func (in *input) discard(n int) error {
	buf := make([]byte, min(max(n, 0), os.Getpagesize()))
	for n > 0 && queued(in.src) > 0 {
		m, err := unix.Read(in.src, buf[:min(n, len(buf))])
		if err == unix.EINTR {
			continue
		}
		if m <= 0 || err != nil {
			return err
		}
		n -= m
	}
	return nil
}

// keys carries what is typed at a terminal, as it comes. It reads only while
// the terminal is ours: a read from the background would stop this process.
func (in *input) keys(ready func() bool) error {
	buf := make([]byte, 4<<10)
	for {
		if err := in.readable(); err != nil {
			return err
		}
		if !foreground(in.src) || ready != nil && !ready() {
			if err := in.pause(100); err != nil {
				return err
			}
			continue
		}
		n, err := unix.Read(in.src, buf)
		switch {
		case err == unix.EINTR || err == unix.EAGAIN:
			continue
		case n <= 0:
			return err
		}
		if in.interrupt != 0 && bytes.IndexByte(buf[:n], in.interrupt) >= 0 {
			in.interrupted.Store(true)
		}
		if _, err := in.write(buf[:n]); err != nil {
			return err
		}
	}
}

// lines carries a terminal that keeps its own mode, a line at a time. While it
// hands over single keys, another program (a pager behind a pipe) has it, and
// the keys are for that one. eof is what tells the command of Ctrl-D; without,
// its input is closed.
func (in *input) lines(eof []byte) error {
	for {
		err := in.keys(func() bool { return lineMode(in.src) })
		if err != nil || len(eof) == 0 || !isTTY(in.src) {
			return err // the last: the terminal has gone
		}
		if _, err := in.write(eof); err != nil {
			return err
		}
	}
}
