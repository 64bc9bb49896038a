//go:build !linux

package stream

import (
	"errors"
	"io"
	"os"

	"github.com/tether-sandbox/tether/fault"
)

// Open gives the command pipes.
func Open(o Options) (*Set, error) { return Pipes(o) }

// PTY refuses: there is no terminal of ours on this system yet.
func PTY(Options) (*Set, error) {
	return nil, fault.Wrap(fault.SandboxUnavailable, "no terminal for the command on this system", errors.ErrUnsupported)
}

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
	flow := &writerFlow{src: ours, to: w}
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
	s.out = append(s.out, newJob(flow))
	return nil
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
// the pipe is gone.
type writerFlow struct {
	src  *os.File
	to   io.Writer
	last func() error
}

func (f *writerFlow) run() error {
	defer f.src.Close()
	_, err := io.Copy(struct{ io.Writer }{f.to}, struct{ io.Reader }{f.src})
	if f.last != nil {
		err = errors.Join(err, f.last())
	}
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

func (f *writerFlow) settle()       {}
func (f *writerFlow) abort()        { f.src.Close() }
func (f *writerFlow) release()      { f.src.Close() }
func (f *writerFlow) foreign() bool { return true }
