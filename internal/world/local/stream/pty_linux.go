package stream

import (
	"io"
	"os"
	"os/signal"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/fault"
)

// PTY gives the command a terminal of ours. Standard input must be a terminal.
//
// The outputs that are terminals are ours as well, and the others are pipes.
// If standard output is one, the caller's terminal goes into raw mode from
// Start to Close, so that every key reaches the command, Ctrl-C and Ctrl-Z
// among them: they are for the job control inside. Otherwise, as in a pipeline
// that ends in a pager, the caller's terminal stays as it is, with its own
// Ctrl-C, and hands over whole lines; while another program has put it into
// raw mode, nothing is read from it.
//
// Making the terminal the command's controlling one (setsid, TIOCSCTTY) is the
// business of whoever starts it.
//
// The caller's terminal is put back by Close, and before one of the signals
// that OnSignal names or SIGTSTP takes effect; not when this process is killed
// by SIGKILL or a panic outside (shells then do it).
func PTY(o Options) (*Set, error) {
	f, ok := o.Stdin.(*os.File)
	if !ok || f == nil || !IsTerminal(f) {
		return nil, fault.New(fault.Internal, "a terminal for the command needs standard input to be one")
	}
	s := new(Set)
	if err := s.openTerminal(f, o); err != nil {
		s.Close()
		if o.Master != nil {
			o.Master.Close()
		}
		return nil, err
	}
	return s, nil
}

func (s *Set) openTerminal(stdin *os.File, o Options) (err error) {
	t := &terminal{onSignal: o.OnSignal, master: -1, hold: -1, signals: make(chan os.Signal, 16), stop: make(chan struct{})}
	s.watch = newJob(t) // frees t, also when what follows fails
	s.restore = t.restore
	fd, err := duplicate(stdin)
	if err != nil {
		return err
	}
	if t.mode, err = newMode(fd); err != nil {
		unix.Close(fd)
		return fault.Wrap(fault.IsolationUnavailable, "cannot read the terminal's mode", err)
	}
	outIsTerminal, errIsTerminal := isTerminal(o.Stdout), isTerminal(o.Stderr)
	t.raw = outIsTerminal

	master := o.Master
	if master == nil {
		master, s.child[0], err = openPTY(o.Owner)
	} else {
		err = withFD(master, func(fd int) (err error) { s.child[0], err = peer(fd); return err })
	}
	if err != nil {
		return err
	}
	if t.hold, err = duplicate(s.child[0]); err == nil {
		err = t.prepare()
	}
	if err == nil {
		t.master, err = duplicate(master)
	}
	if err == nil {
		t.resize() // before the command can ask
	}
	if err != nil {
		master.Close()
		return err
	}

	screen := stdin
	for _, w := range []io.Writer{o.Stderr, o.Stdout} {
		if isTerminal(w) {
			screen = w.(*os.File)
		}
	}
	s.terminal = true
	if err := s.carry(master, screen, o); err != nil {
		return err
	}
	if err := s.openKeyboard(stdin, master, t); err != nil {
		return err
	}
	s.begin = t.begin
	if outIsTerminal {
		s.child[1] = s.child[0]
	} else if err := s.openOutput(1, o.Stdout, o); err != nil {
		return err
	}
	switch {
	case errIsTerminal:
		s.child[2] = s.child[0]
	case !outIsTerminal && sameSink(o.Stdout, o.Stderr):
		s.child[2] = s.child[1]
	default:
		return s.openOutput(2, o.Stderr, o)
	}
	return nil
}

// openKeyboard carries what is typed to the command's terminal.
func (s *Set) openKeyboard(stdin, master *os.File, t *terminal) error {
	fd, err := duplicate(master)
	if err != nil {
		return err
	}
	in, err := newInput(stdin, os.NewFile(uintptr(fd), "terminal"))
	if err != nil {
		return err
	}
	in.carry = func() error { return in.keys(nil) }
	in.interrupt = t.mode.saved.Cc[unix.VINTR]
	s.interrupted = &in.interrupted
	if !t.raw {
		in.interrupt = 0 // the terminal itself tells whom it concerns
		in.carry = func() error { return in.lines(t.mode.saved.Cc[unix.VEOF : unix.VEOF+1]) }
	}
	s.in = newJob(in)
	return nil
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && f != nil && IsTerminal(f)
}

// terminal looks after the caller's terminal and its signals while the
// command has one of ours.
type terminal struct {
	mode     *mode
	raw      bool
	master   int // the size is set here
	hold     int // the command's end, so that it may close all of its own and open one again
	onSignal func(os.Signal)
	signals  chan os.Signal
	once     sync.Once
	stop     chan struct{}
}

// prepare makes the command's end like the caller's terminal.
func (t *terminal) prepare() error {
	m := t.mode.saved
	if !t.raw {
		// The caller's terminal edits the line, shows it and ends lines.
		m.Iflag |= unix.ICRNL
		m.Oflag &^= unix.OPOST
		m.Lflag = m.Lflag&^(unix.ECHO|unix.ECHONL) | unix.ICANON | unix.ISIG
	}
	if err := unix.IoctlSetTermios(t.hold, unix.TCSETS, &m); err != nil {
		return fault.Wrap(fault.IsolationUnavailable, "cannot prepare the command's terminal", err)
	}
	return nil
}

// begin runs before anything is carried.
func (t *terminal) begin() {
	t.resize() // does nothing unless it has changed since
	watched := []os.Signal{unix.SIGWINCH, unix.SIGCONT}
	if t.raw {
		watched = append(watched, unix.SIGTSTP, unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT)
	}
	for _, sig := range watched {
		if !signal.Ignored(sig) { // nohup and the like
			signal.Notify(t.signals, sig)
		}
	}
	if t.raw {
		t.mode.enter()
	}
}

func (t *terminal) resize() {
	if w, err := unix.IoctlGetWinsize(t.mode.fd, unix.TIOCGWINSZ); err == nil {
		_ = unix.IoctlSetWinsize(t.master, unix.TIOCSWINSZ, w)
	}
}

func (t *terminal) run() error {
	defer t.release()
	for {
		select {
		case <-t.stop:
			return nil
		case sig := <-t.signals:
			t.handle(sig)
		}
	}
}

func (t *terminal) handle(sig os.Signal) {
	switch sig {
	case unix.SIGWINCH:
		t.resize()
	case unix.SIGCONT:
		t.resize() // it may have changed while we were stopped
		if t.raw {
			t.mode.enter()
		}
	case unix.SIGTSTP: // from another program: Ctrl-Z goes to the command
		t.mode.restore()
		_ = unix.Kill(unix.Getpid(), unix.SIGSTOP)
	default:
		if t.onSignal != nil {
			t.onSignal(sig)
			return
		}
		t.mode.restore()
		signal.Reset(sig)
		_ = unix.Kill(unix.Getpid(), sig.(unix.Signal))
	}
}

func (t *terminal) restore() {
	if t.mode != nil {
		t.mode.restore()
	}
}

// settle does nothing: signals count until the caller's terminal is put back.
func (t *terminal) settle()       {}
func (t *terminal) abort()        { t.once.Do(func() { close(t.stop) }) }
func (t *terminal) foreign() bool { return false }

func (t *terminal) release() {
	t.restore() // while the signals still come to us
	signal.Stop(t.signals)
	for _, fd := range []int{t.hold, t.master} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
	t.hold, t.master = -1, -1
	if t.mode != nil {
		t.mode.close()
	}
}
