//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// screen is a terminal with a program on it.
type screen struct {
	t           testing.TB
	cmd         *exec.Cmd
	master, tty *os.File
	before      unix.Termios

	mu   sync.Mutex
	seen bytes.Buffer
	read int // how much of seen was expected already
	over chan struct{}
}

// onScreen starts a command on a terminal of its own, as a terminal window
// does.
func onScreen(t testing.TB, cmd *exec.Cmd, size unix.Winsize) *screen {
	t.Helper()
	master, tty := openTerminal(t)
	s := &screen{t: t, cmd: cmd, master: master, tty: tty, over: make(chan struct{})}
	s.resize(size)
	s.before = s.mode()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(s.over)
		b := make([]byte, 4096)
		for {
			n, err := master.Read(b)
			s.mu.Lock()
			s.seen.Write(b[:n])
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		master.Close()
		tty.Close()
		<-s.over
	})
	return s
}

// openTerminal opens a terminal whose master can be closed under a read.
func openTerminal(t testing.TB) (master, tty *os.File) {
	t.Helper()
	m, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(m, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetUint32(m, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	tty, err = os.OpenFile(fmt.Sprint("/dev/pts/", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return os.NewFile(uintptr(m), "master"), tty
}

// resize does what dragging a window's corner does.
func (s *screen) resize(size unix.Winsize) {
	s.t.Helper()
	if err := unix.IoctlSetWinsize(int(s.tty.Fd()), unix.TIOCSWINSZ, &size); err != nil {
		s.t.Fatal(err)
	}
}

func (s *screen) mode() unix.Termios {
	s.t.Helper()
	mode, err := unix.IoctlGetTermios(int(s.tty.Fd()), unix.TCGETS)
	if err != nil {
		s.t.Fatal(err)
	}
	return *mode
}

// text is all that was shown so far.
func (s *screen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen.String()
}

// expect waits until want is shown after what was expected before, and returns
// what was shown up to its end.
func (s *screen) expect(want string) string {
	s.t.Helper()
	var got string
	found := soon(10*time.Second, func() bool {
		got = s.text()[s.read:]
		return strings.Contains(got, want)
	})
	if !found {
		s.t.Fatalf("the terminal must show %q; it shows %q", want, got)
	}
	end := strings.Index(got, want) + len(want)
	s.read += end
	return got[:end]
}

// send types.
func (s *screen) send(keys string) {
	s.t.Helper()
	if _, err := s.master.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

// close is what the kernel sees when a terminal window is closed.
func (s *screen) close() {
	s.tty.Close()
	s.master.Close()
	<-s.over
}

// wait returns the exit status as a shell tells it.
func (s *screen) wait() int {
	s.t.Helper()
	timer := time.AfterFunc(20*time.Second, func() { _ = s.cmd.Process.Kill() })
	_ = s.cmd.Wait()
	if !timer.Stop() {
		s.t.Fatalf("still running; the terminal shows %q", s.text())
	}
	ws := s.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return ws.ExitStatus()
}

// restored fails when the terminal's mode is not what it was.
func (s *screen) restored() {
	s.t.Helper()
	if after := s.mode(); after != s.before {
		s.t.Errorf("the terminal's mode: got %+v, want what it was: %+v", after, s.before)
	}
}
