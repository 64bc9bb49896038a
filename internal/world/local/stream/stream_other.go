//go:build !linux

package stream

import (
	"errors"
	"io"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tether-sandbox/tether/fault"
)

// Pipes gives the command pipes.
func Pipes(o Options) (*Set, error) {
	s := new(Set)
	if err := s.openPipes(o); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Set) openPipes(o Options) error {
	if o.Owner != nil {
		return fault.Wrap(fault.SandboxUnavailable, "cannot give pipes to another user on this system", errors.ErrUnsupported)
	}
	if f, isFile := o.Stdin.(*os.File); o.Stdin == nil || isFile && f == nil {
		if err := s.null(0, os.O_RDONLY); err != nil {
			return err
		}
	} else {
		theirs, ours, err := os.Pipe()
		if err != nil {
			return fault.Wrap(fault.IsolationUnavailable, "cannot make a pipe", err)
		}
		s.child[0], s.in = theirs, newJob(&readerFlow{r: o.Stdin, to: ours})
	}
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
	if f, isFile := w.(*os.File); w == nil || isFile && f == nil {
		return s.null(i, os.O_WRONLY)
	}
	ours, theirs, err := os.Pipe()
	if err != nil {
		return fault.Wrap(fault.IsolationUnavailable, "cannot make a pipe", err)
	}
	s.child[i] = theirs
	s.out = append(s.out, newJob(s.carry(ours, w, o)))
	return nil
}

// carry takes output from src to w: through the filter where that is a terminal,
// and through what the caller put before it.
func (s *Set) carry(src *os.File, w io.Writer, o Options) *writerFlow {
	flow := &writerFlow{src: src, to: w}
	if f, isFile := w.(*os.File); isFile && IsTerminal(f) {
		filter := NewFilter(w)
		s.filters = append(s.filters, filter)
		flow.to, flow.last = filter, filter.Close
	}
	if o.Through != nil {
		flow.to = o.Through(struct{ io.Writer }{flow.to}) // never closes the caller's own
		if c, ok := flow.to.(io.Closer); ok {
			last := flow.last
			flow.last = func() error {
				err := c.Close()
				if last != nil {
					err = errors.Join(err, last())
				}
				return err
			}
		}
	}
	return flow
}

func (s *Set) null(i, flag int) error {
	f, err := os.OpenFile(os.DevNull, flag, 0)
	if err != nil {
		return fault.Wrap(fault.IsolationUnavailable, "cannot open the null device", err)
	}
	s.child[i] = f
	return nil
}

// writerFlow carries output until its end, which comes when the last holder of
// the pipe is gone, or, once the command is over, when nothing comes any more:
// whoever has escaped may hold it for ever.
type writerFlow struct {
	src  *os.File
	to   io.Writer
	last func() error
	over atomic.Bool
}

// drain is how long output is waited for once the command is over.
const drain = 200 * time.Millisecond

func (f *writerFlow) run() error {
	defer f.src.Close()
	err := f.copy()
	if f.last != nil {
		err = errors.Join(err, f.last())
	}
	return err
}

func (f *writerFlow) copy() error {
	buf := make([]byte, 32<<10)
	for {
		if f.over.Load() {
			_ = f.src.SetReadDeadline(time.Now().Add(drain)) // what knows no deadlines ends by itself
		}
		n, err := f.src.Read(buf)
		if n > 0 {
			if _, err := f.to.Write(buf[:n]); err != nil {
				return err
			}
		}
		switch {
		case err == nil:
		case err == io.EOF, errors.Is(err, os.ErrClosed), errors.Is(err, os.ErrDeadlineExceeded),
			errors.Is(err, syscall.EIO): // a terminal that nobody holds any more
			return nil
		default:
			return err
		}
	}
}

func (f *writerFlow) settle() {
	f.over.Store(true)
	_ = f.src.SetReadDeadline(time.Now().Add(drain))
}
func (f *writerFlow) abort()        { f.src.Close() }
func (f *writerFlow) release()      { f.src.Close() }
func (f *writerFlow) foreign() bool { return true }
