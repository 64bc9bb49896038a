package stream

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// screen is a terminal emulator with a user in front of it.
type screen struct {
	t      *testing.T
	master *os.File
	tty    *os.File // what the caller has as its terminal
	mu     sync.Mutex
	seen   bytes.Buffer
	done   chan struct{}
}

func newScreen(t *testing.T) *screen {
	t.Helper()
	leaks(t) // before our own: cleanups run in reverse order
	master, tty, err := openPTY(nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &screen{t: t, master: master, tty: tty, done: make(chan struct{})}
	if err := SetSize(tty, Size{Rows: 30, Cols: 100}); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(s.done)
		buf := make([]byte, 4096)
		for {
			n, err := master.Read(buf)
			s.mu.Lock()
			s.seen.Write(buf[:n])
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		tty.Close()
		master.Close()
		<-s.done
	})
	return s
}

func (s *screen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen.String()
}

func (s *screen) typed(keys string) {
	s.t.Helper()
	if _, err := s.master.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 500 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("not within 5 s: %s", what)
}

func (s *screen) shows(want string) {
	s.t.Helper()
	for range 500 {
		if strings.Contains(s.text(), want) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	s.t.Fatalf("not within 5 s: %q; the screen has %q", want, s.text())
}

func (s *screen) mode() unix.Termios {
	s.t.Helper()
	var m unix.Termios
	err := withFD(s.tty, func(fd int) error {
		t, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		if err == nil {
			m = *t
		}
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return m
}

func (s *screen) isRaw() bool { return s.mode().Lflag&unix.ICANON == 0 }

func (s *screen) all() Options { return Options{Stdin: s.tty, Stdout: s.tty, Stderr: s.tty} }

func TestTerminal(t *testing.T) {
	s := newScreen(t)
	before := s.mode()
	c := start(t, s.all(), `test -t 0 && test -t 1 && test -t 2 && echo three; stty size; read l; echo "got $l"; exec 0<&- 1<&- 2<&-; exec </dev/tty >/dev/tty; echo again`)
	s.shows("three\r\n30 100\r\n")
	if !s.isRaw() {
		t.Error("the caller's terminal is not in raw mode")
	}
	s.typed("hello\r")
	s.shows("got hello\r\n")
	c.finish(t)
	s.shows("again\r\n")
	if s.mode() != before {
		t.Errorf("mode: got %+v, want %+v", s.mode(), before)
	}
}

func TestTerminalIsFiltered(t *testing.T) {
	s := newScreen(t)
	c := start(t, s.all(), `printf '\033[31mred\033[0m\033]52;c;QUJD\007\033]2;title\007\005end'; printf '\033]52;c;x\007' >&2; printf '\033]52;c;x\007' >/dev/tty`)
	c.finish(t)
	s.shows("end")
	if got, want := s.text(), "\x1b[31mred\x1b[0m\x1b]2;title\x07end"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := c.set.Dropped(), (Dropped{Clipboard: 3, Reports: 1}); got != want {
		t.Errorf("dropped: got %+v, want %+v", got, want)
	}
}

func TestTerminalKeys(t *testing.T) {
	s := newScreen(t)
	c := start(t, s.all(), "echo ready; exec sleep 60")
	s.shows("ready")
	s.typed("\x03") // Ctrl-C
	_ = c.Wait()
	if ws := c.ProcessState.Sys().(syscall.WaitStatus); ws.Signal() != unix.SIGINT {
		t.Errorf("got %v, want SIGINT", c.ProcessState)
	}
	c.finish(t)
}

func TestTerminalOutputArrivesWhole(t *testing.T) {
	s := newScreen(t)
	for range 20 {
		s.mu.Lock()
		s.seen.Reset()
		s.mu.Unlock()
		start(t, s.all(), "head -c 60000 /dev/zero | tr '\\0' x; printf end").finish(t)
		eventually(t, "60003 bytes", func() bool { return len(s.text()) == 60003 })
	}
}

func TestTerminalIsLeftInOrder(t *testing.T) {
	s := newScreen(t)
	c := start(t, s.all(), `printf '\033[?1049h\033[?1003h\033[?25lfull screen'; kill -9 $$`)
	c.finish(t)
	s.shows("full screen\x1b[?1003l\x1b[?1049l\x1b[?25h")
}

// Ctrl-S, or a window whose program hangs.
func TestTerminalThatTakesNothing(t *testing.T) {
	leaks(t)
	master, tty, err := openPTY(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	defer tty.Close()
	c := start(t, Options{Stdin: tty, Stdout: tty, Stderr: tty}, "exec yes")
	time.Sleep(50 * time.Millisecond)
	_ = c.Process.Kill()
	_ = c.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	begin := time.Now()
	if err := c.set.Settled(ctx); err != context.DeadlineExceeded {
		t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
	}
	c.set.Close()
	if d := time.Since(begin); d > soon {
		t.Errorf("took %v", d)
	}
	if !lineMode(int(tty.Fd())) {
		t.Error("the terminal was not put back")
	}
}

func TestTerminalResize(t *testing.T) {
	s := newScreen(t)
	c := start(t, s.all(), `trap 'stty size; exit' WINCH; echo ready; while :; do sleep .05; done`)
	s.shows("ready")
	if err := SetSize(s.tty, Size{Rows: 11, Cols: 22}); err != nil {
		t.Fatal(err)
	}
	_ = unix.Kill(unix.Getpid(), unix.SIGWINCH) // s.tty is not our controlling terminal
	s.shows("11 22")
	c.finish(t)
}

func TestTerminalWithRedirectedError(t *testing.T) {
	s := newScreen(t)
	var errs Capture
	start(t, Options{Stdin: s.tty, Stdout: s.tty, Stderr: &errs}, "test -t 2 || echo piped; echo log >&2").finish(t)
	s.shows("piped")
	if got := text(&errs); got != "log\n" || strings.Contains(s.text(), "log") {
		t.Errorf("got %q, and on the screen %q", got, s.text())
	}
}

// As in `tether run -- CMD </dev/null`: what a terminal would answer would go
// to the caller's shell.
func TestPipesToATerminalAreFiltered(t *testing.T) {
	s := newScreen(t)
	c := start(t, Options{Stdout: s.tty, Stderr: s.tty}, `printf 'a\033]52;c;x\007b\033[?1003h'; printf '\005c' >&2`)
	if c.set.Terminal() {
		t.Error("got a terminal, want pipes")
	}
	c.finish(t)
	s.shows("ab\x1b[?1003hc\x1b[?1003l")
	if got, want := c.set.Dropped(), (Dropped{Clipboard: 1, Reports: 1}); got != want {
		t.Errorf("dropped: got %+v, want %+v", got, want)
	}
}

// As in `tether run -- CMD | less`.
func TestTerminalInPipeline(t *testing.T) {
	s := newScreen(t)
	before := s.mode()
	var out Capture
	c := start(t, Options{Stdin: s.tty, Stdout: &out, Stderr: s.tty},
		`test -t 0 && test -t 2 && ! test -t 1 && echo ready >&2; read a; echo "a=$a"; cat; echo asked >/dev/tty; read b; echo "b=$b"`)
	s.shows("ready\r\n") // one CR: from the caller's terminal
	if s.mode() != before {
		t.Errorf("mode: got %+v, want it untouched: %+v", s.mode(), before)
	}
	s.typed("one\ntwo\n\x04")
	s.shows("asked\r\n")
	if got := text(&out); got != "a=one\ntwo\n" {
		t.Errorf("got %q", got)
	}

	// While a pager has the terminal, keys are for the pager.
	pager, err := newMode(int(s.tty.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	pager.enter()
	s.typed("q")
	time.Sleep(150 * time.Millisecond)
	buf := make([]byte, 8)
	if n, err := unix.Read(int(s.tty.Fd()), buf); n != 1 || buf[0] != 'q' {
		t.Errorf("the pager got %q, %v; want q", buf[:max(n, 0)], err)
	}
	pager.restore()
	s.typed("three\n")
	c.finish(t)
	if got := text(&out); got != "a=one\ntwo\nb=three\n" {
		t.Errorf("got %q", got)
	}
	if strings.Count(s.text(), "three") != 1 {
		t.Errorf("what is typed must show once: %q", s.text())
	}
}

func TestTerminalOfSomebodyElse(t *testing.T) {
	s := newScreen(t)
	master, slave, err := openPTY(nil)
	if err != nil {
		t.Fatal(err)
	}
	o := s.all()
	o.Master = master
	set, err := PTY(o)
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	for i, f := range set.Child() {
		if a, err := slave.Stat(); err != nil {
			t.Fatal(err)
		} else if b, err := f.Stat(); err != nil || !os.SameFile(a, b) || !set.Terminal() {
			t.Errorf("end %d is %v (%v), want that of the given master", i, f, err)
		}
	}
	set.Start()
	if _, err := slave.WriteString("from inside"); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	if err := set.Settled(context.Background()); err != nil {
		t.Error(err)
	}
	s.shows("from inside")
}

func TestPTYNeedsATerminal(t *testing.T) {
	leaks(t)
	for _, o := range []Options{{}, {Stdin: strings.NewReader("")}} {
		if set, err := PTY(o); err == nil {
			set.Close()
			t.Errorf("%+v: got a terminal, want a refusal", o)
		}
	}
}

// TestAsCaller is the caller in a process of its own, see below.
func TestAsCaller(t *testing.T) {
	how := os.Getenv("STREAM_TEST_CALLER")
	if how == "" {
		t.Skip("runs as the child of other tests")
	}
	o := Options{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	told := make(chan os.Signal, 1)
	if how == "told" {
		o.OnSignal = func(sig os.Signal) { told <- sig }
	}
	set, err := Open(o)
	if err != nil {
		panic(err)
	}
	defer set.Close()
	c := exec.Command("/bin/sh", "-c", "echo ready; exec sleep 20")
	c.Stdin, c.Stdout, c.Stderr = set.Child()[0], set.Child()[1], set.Child()[2]
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Pdeathsig: unix.SIGKILL}
	if err := c.Start(); err != nil {
		panic(err)
	}
	set.Start()
	switch how {
	case "told":
		sig := <-told
		_ = c.Process.Kill()
		_ = c.Wait()
		_ = set.Settled(context.Background())
		set.Close()
		os.Exit(128 + int(sig.(unix.Signal)))
	case "panic":
		time.Sleep(200 * time.Millisecond)
		panic("on purpose")
	}
	_ = c.Wait()
}

func (s *screen) caller(how string) *exec.Cmd {
	s.t.Helper()
	c := exec.Command(os.Args[0], "-test.run=^TestAsCaller$", "-test.timeout=30s")
	c.Env = append(os.Environ(), "STREAM_TEST_CALLER="+how)
	c.Stdin, c.Stdout, c.Stderr = s.tty, s.tty, s.tty
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := c.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Process.Kill() })
	s.shows("ready")
	return c
}

func TestSignalsPutTheTerminalBack(t *testing.T) {
	for _, sig := range []unix.Signal{unix.SIGTERM, unix.SIGHUP, unix.SIGINT} {
		for _, how := range []string{"default", "told"} {
			t.Run(how+" "+sig.String(), func(t *testing.T) {
				s := newScreen(t)
				before := s.mode()
				c := s.caller(how)
				if !s.isRaw() {
					t.Fatal("control: the terminal must be in raw mode")
				}
				_ = c.Process.Signal(sig)
				_ = c.Wait()
				ws := c.ProcessState.Sys().(syscall.WaitStatus)
				if how == "default" && ws.Signal() != sig || how == "told" && ws.ExitStatus() != 128+int(sig) {
					t.Errorf("status: got %v", c.ProcessState)
				}
				if s.mode() != before {
					t.Error("the terminal was not put back")
				}
			})
		}
	}
}

func TestPanicPutsTheTerminalBack(t *testing.T) {
	s := newScreen(t)
	before := s.mode()
	c := s.caller("panic")
	_ = c.Wait()
	if s.mode() != before {
		t.Error("the terminal was not put back")
	}
}

func TestStopAndContinue(t *testing.T) {
	s := newScreen(t)
	before := s.mode()
	c := s.caller("default")
	_ = c.Process.Signal(unix.SIGTSTP)
	var ws unix.WaitStatus
	if _, err := unix.Wait4(c.Process.Pid, &ws, unix.WUNTRACED, nil); err != nil || !ws.Stopped() {
		t.Fatalf("got %v, %v; want it stopped", ws, err)
	}
	if s.mode() != before {
		t.Error("stopped, but the terminal was not put back")
	}
	_ = c.Process.Signal(unix.SIGCONT)
	eventually(t, "raw mode again", s.isRaw)
	_ = c.Process.Signal(unix.SIGTERM)
	_ = c.Wait()
	if s.mode() != before {
		t.Error("the terminal was not put back")
	}
}
