// Package stream carries a command's input and output.
//
// A confined command never gets the caller's own files as its standard input
// and outputs: it could open them again through /proc/self/fd and read, write
// or truncate what lies behind them, whatever mode they were opened in. It gets
// pipes of ours, or a terminal of ours, and a [Set] carries the bytes:
//
//	set, err := stream.Open(stream.Options{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr})
//	defer set.Close()             // puts the caller's terminal back
//	cmd.Stdin, cmd.Stdout, cmd.Stderr = set.Child()[0], set.Child()[1], set.Child()[2]
//	cmd.Start(); set.Start()      // the command has its ends now
//	...                           // wait until its whole tree is dead
//	set.Settled(ctx)              // what it left behind is delivered
//
// Which one it gets. A standard input that is a terminal becomes a terminal of
// ours; so do the outputs that are terminals then. All else become pipes, and
// /dev/null stays /dev/null: programs such as rg decide by that whether to read
// their input at all. Outputs that lead to the same place share one pipe, so
// that lines keep their order.
//
// What ends on a terminal of the caller passes a [Filter], by whatever way; all
// other output is carried unchanged.
//
// What the caller's input loses. A regular file is left where the command
// stopped reading it, as if it had had the file itself. From a pipe nothing is
// taken until the command has read (its first 64 KiB are tracked exactly, so
// that a loop over a pipe works); afterwards up to 1 MiB that was on its way to
// the command is lost with it. From a terminal, what was typed ahead. Two
// commands that read one pipe at the same time would get the same bytes.
//
// Outside Linux bytes are copied without these refinements; a terminal of ours
// there is on macOS alone, where input and output both are one.
package stream

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
)

// Options says where a command's input comes from and its output goes.
type Options struct {
	// Stdin is where input comes from; nil is /dev/null. A *os.File is read
	// through a descriptor of our own and never closed. A Read of any other
	// reader cannot be interrupted: when the command ends while one is under
	// way, its goroutine ends with it, and what it returns is lost.
	Stdin io.Reader
	// Stdout and Stderr take the output; nil is /dev/null. A *os.File is
	// written through a descriptor of our own. When a writer fails, the command
	// gets SIGPIPE at its next write.
	Stdout, Stderr io.Writer
	// Through, when set, is called once for each stream of output, and what it
	// returns takes the output and passes on to w what should go there: the
	// place for a redactor. It is closed at the end if it can be. It must not
	// block but in w.
	Through func(w io.Writer) io.Writer
	// Owner, when set, becomes the owner of the command's ends, so that a
	// command under another identity can open /dev/stderr. Needs privilege.
	Owner *Owner
	// Master is a terminal's master that somebody else opened, not blocking,
	// such as the inner stage in the sandbox's own /dev/pts: the command then
	// finds its terminal by name. Used for a terminal only. It belongs to the
	// Set from then on.
	Master *os.File
	// OnSignal is told of SIGINT, SIGTERM, SIGHUP and SIGQUIT while the
	// caller's terminal is in raw mode; whoever sets it promises that Close
	// follows (but not from OnSignal itself, which should return at once).
	// Without it the terminal is put back and the signal takes its default
	// course.
	OnSignal func(os.Signal)
}

// Owner is a user and group as the host numbers them.
type Owner struct{ UID, GID int }

// Set is the three streams of one command. Its methods may be called from any
// goroutine, Start at most once.
type Set struct {
	child [3]*os.File
	in    *job   // nil when there is nothing to carry
	out   []*job // one for each pipe or terminal
	// watch follows signals, as long as the Set is open; begin runs in Start.
	watch *job
	begin func()
	// terminal tells that the command has a terminal of ours.
	terminal bool
	filters  []*Filter
	// interrupted says that the key was typed that interrupts; may be nil.
	interrupted *atomic.Bool
	// restore puts the caller's terminal back; it can be called repeatedly.
	restore func()

	mu      sync.Mutex
	started bool
	closed  bool
}

// flow is one direction.
type flow interface {
	// run carries until the stream has ended, frees everything, and returns
	// nil when the end was an orderly one.
	run() error
	// settle says that no process of the command is left: what is on its way
	// out is delivered, what is on its way in stays. Called at any time.
	settle()
	// abort ends run as soon as possible. Called at any time.
	abort()
	// release frees everything instead of run.
	release()
	// foreign tells whether run calls code that cannot be interrupted.
	foreign() bool
}

// job is a flow and the goroutine that runs it.
type job struct {
	flow
	done chan struct{}
	err  error // valid after done
}

func newJob(f flow) *job { return &job{flow: f, done: make(chan struct{})} }

// Child returns the files that the command must get as 0, 1 and 2. They are
// closed by Start and by Close, and close on exec in this process.
func (s *Set) Child() [3]*os.File { return s.child }

// Terminal tells whether the command's standard input is a terminal of ours,
// which should then become its controlling terminal.
func (s *Set) Terminal() bool { return s.terminal }

// Start begins to carry. The command must have its ends by now: ours are closed.
func (s *Set) Start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.started || s.closed {
		return
	}
	s.started = true
	s.closeChild()
	if s.begin != nil {
		s.begin()
	}
	for _, j := range s.jobs() {
		go func() {
			defer close(j.done)
			defer s.restoreOnPanic()
			j.err = j.run()
		}()
	}
}

func (s *Set) jobs() []*job {
	list := make([]*job, 0, 4)
	if s.in != nil {
		list = append(list, s.in)
	}
	list = append(list, s.out...)
	if s.watch != nil {
		list = append(list, s.watch)
	}
	return list
}

// restoreOnPanic keeps a panic of ours from leaving the caller's terminal in
// raw mode. Panics elsewhere are met by the deferred Close.
func (s *Set) restoreOnPanic() {
	if p := recover(); p != nil {
		if s.restore != nil {
			s.restore()
		}
		panic(p)
	}
}

func (s *Set) closeChild() {
	for _, f := range s.child {
		if f != nil {
			f.Close() // a second Close of a shared one fails harmlessly
		}
	}
}

// Settled says that every process of the command is dead. It returns when all
// that they wrote has been delivered; it does not wait for whoever else may
// hold their end of a pipe. It takes as long as the writers do; when ctx ends
// first, the rest is dropped and the error is that of ctx.
//
// Otherwise the error is that of the writers that failed. A reader that has
// gone away (EPIPE) is no failure: the command has met SIGPIPE, and its status
// says so.
func (s *Set) Settled(ctx context.Context) error {
	s.mu.Lock()
	started := s.started
	s.mu.Unlock()
	if !started {
		return nil
	}
	for _, j := range s.jobs() {
		j.settle()
	}
	var errs []error
	for _, j := range s.out {
		select {
		case <-j.done:
			errs = append(errs, j.err)
		case <-ctx.Done():
			s.abort()
			return ctx.Err()
		}
	}
	if s.in != nil && !s.in.foreign() {
		<-s.in.done // gives back what the command did not read
	}
	return errors.Join(errs...)
}

// abort ends all jobs, and waits for those that are certain to end.
func (s *Set) abort() {
	for _, j := range s.jobs() {
		j.abort()
	}
	for _, j := range s.jobs() {
		if !j.foreign() {
			<-j.done
		}
	}
}

// Close ends everything at once, whether the command lives or not, and puts
// the caller's terminal back. It can be called at any time and repeatedly;
// after Settled it only does the latter.
func (s *Set) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	s.closeChild()
	if s.started {
		s.abort()
	} else {
		for _, j := range s.jobs() {
			j.release()
		}
	}
	if s.restore != nil {
		s.restore()
	}
	return nil
}

// Interrupted tells whether the key that interrupts (Ctrl-C) was typed while the
// caller's terminal was in raw mode: the command got it, and nobody else did.
func (s *Set) Interrupted() bool { return s.interrupted != nil && s.interrupted.Load() }

// Dropped returns what was kept from the caller's terminal. Call it after
// Settled or Close.
func (s *Set) Dropped() (d Dropped) {
	for _, f := range s.filters {
		d.Clipboard += f.dropped.Clipboard
		d.Reports += f.dropped.Reports
		d.Other += f.dropped.Other
	}
	return d
}

// sameSink tells whether two outputs lead to the same place.
func sameSink(a, b io.Writer) (same bool) {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	f, ok := a.(*os.File)
	g, ok2 := b.(*os.File)
	if ok && ok2 {
		x, err := f.Stat()
		y, err2 := g.Stat()
		return err == nil && err2 == nil && os.SameFile(x, y)
	}
	defer func() { _ = recover() }() // types that cannot be compared differ
	return a == b
}
