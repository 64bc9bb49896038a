package stream

import (
	"io"
	"os"
	"os/signal"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/fault"
)

// Open gives the command a terminal of ours where the caller's input and output
// are one, and pipes otherwise.
func Open(o Options) (*Set, error) {
	if isTerminal(o.Stdin) && isTerminal(o.Stdout) {
		return PTY(o)
	}
	return Pipes(o)
}

func isTerminal(v any) bool {
	f, ok := v.(*os.File)
	return ok && f != nil && IsTerminal(f)
}

// PTY gives the command a terminal of ours. Standard input and output must be
// one. It is in raw mode from Start to Close, so that every key reaches the
// command. Making it the command's controlling terminal is the business of
// whoever starts it.
func PTY(o Options) (*Set, error) {
	if !isTerminal(o.Stdin) || !isTerminal(o.Stdout) {
		return nil, fault.New(fault.Internal, "a terminal for the command needs standard input and output to be one")
	}
	s := new(Set)
	if err := s.openTerminal(o); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Set) openTerminal(o Options) error {
	screen := o.Stdin.(*os.File)
	saved, err := unix.IoctlGetTermios(int(screen.Fd()), unix.TIOCGETA)
	if err != nil {
		return fault.Wrap(fault.IsolationUnavailable, "cannot read the terminal's mode", err)
	}
	master, slave, err := openPTY()
	if err != nil {
		return err
	}
	t := &terminal{screen: screen, saved: *saved, master: master, signals: make(chan os.Signal, 4), stop: make(chan struct{})}
	s.watch, s.restore, s.begin = newJob(t), t.restore, t.begin // frees the master, also when what follows fails
	s.terminal = true
	s.child = [3]*os.File{slave, slave, slave}
	if err := unix.IoctlSetTermios(int(slave.Fd()), unix.TIOCSETA, saved); err != nil {
		return fault.Wrap(fault.IsolationUnavailable, "cannot prepare the command's terminal", err)
	}
	t.resize()
	if !isTerminal(o.Stderr) {
		s.child[2] = nil
		if err := s.openOutput(2, o.Stderr, o); err != nil {
			return err
		}
	}
	// The command may close all of its ends and open one again.
	hold, err := again(slave)
	if err != nil {
		return err
	}
	out, err := again(master)
	if err != nil {
		hold.Close()
		return err
	}
	s.out = append(s.out, newJob(&screenFlow{writerFlow: s.carry(out, o.Stdout, o), hold: hold}))
	keys, err := again(master)
	if err != nil {
		return err
	}
	s.in = newJob(&readerFlow{r: struct{ io.Reader }{screen}, to: keys})
	return nil
}

// again opens another descriptor of f.
func again(f *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, fault.Wrap(fault.IsolationUnavailable, "cannot keep the command's terminal", err)
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

// screenFlow carries what the command shows. It ends when nobody holds the
// command's end any more, us included.
type screenFlow struct {
	*writerFlow
	hold *os.File
	once sync.Once
}

// settle lets go of the command's end, which waits until all of it was read.
func (f *screenFlow) settle() {
	f.writerFlow.settle()
	f.once.Do(func() { go f.hold.Close() })
}
func (f *screenFlow) abort() {
	f.settle()
	f.writerFlow.abort()
}
func (f *screenFlow) release() { f.abort() }

// terminal looks after the caller's terminal while the command has one of ours.
type terminal struct {
	screen  *os.File
	saved   unix.Termios
	master  *os.File
	signals chan os.Signal
	stop    chan struct{}
	once    sync.Once

	mu  sync.Mutex
	raw bool
}

// begin passes every key through.
func (t *terminal) begin() {
	t.resize()
	signal.Notify(t.signals, unix.SIGWINCH)
	m := t.saved
	m.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	m.Oflag &^= unix.OPOST
	m.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	m.Cflag = m.Cflag&^(unix.CSIZE|unix.PARENB) | unix.CS8
	m.Cc[unix.VMIN], m.Cc[unix.VTIME] = 1, 0
	t.mu.Lock()
	defer t.mu.Unlock()
	t.raw = unix.IoctlSetTermios(int(t.screen.Fd()), unix.TIOCSETA, &m) == nil
}

func (t *terminal) resize() {
	if size, err := SizeOf(t.screen); err == nil {
		_ = SetSize(t.master, size)
	}
}

func (t *terminal) restore() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.raw {
		_ = unix.IoctlSetTermios(int(t.screen.Fd()), unix.TIOCSETA, &t.saved)
		t.raw = false
	}
}

func (t *terminal) run() error {
	defer t.release()
	for {
		select {
		case <-t.stop:
			return nil
		case <-t.signals:
			t.resize()
		}
	}
}

// settle does nothing: the size counts until the caller's terminal is put back.
func (t *terminal) settle()       {}
func (t *terminal) abort()        { t.once.Do(func() { close(t.stop) }) }
func (t *terminal) foreign() bool { return false }

func (t *terminal) release() {
	t.restore()
	signal.Stop(t.signals)
	t.master.Close()
}
