package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether"
	"github.com/tether-sandbox/tether/fault"
)

// asker puts questions on the terminal that we were started on, never through
// what the command reads: that may come from anywhere. Questions are put one at a
// time, before a command starts and after it has ended, so that none of its output
// gets in between; while it runs only where its output goes elsewhere.
type asker struct {
	mu     sync.Mutex
	signal atomic.Int32
}

// terminal returns an asker if there is a terminal with somebody in front of it.
func terminal() *asker {
	tty, err := openTTY()
	if err != nil {
		return nil
	}
	tty.Close()
	return &asker{}
}

// openTTY opens the controlling terminal, if we are in its foreground: anybody
// else who reads from it is stopped.
func openTTY() (*os.File, error) {
	fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	if err != nil || group != unix.Getpgrp() {
		unix.Close(fd)
		return nil, unix.ENOTTY
	}
	return os.NewFile(uintptr(fd), "/dev/tty"), nil
}

// interrupted returns the signal that ended a question, or 0.
func (a *asker) interrupted() int {
	if a == nil {
		return 0
	}
	return int(a.signal.Load())
}

// WhileRunning says whether the terminal is free while a command runs: whether
// neither its input nor its output is one.
func (a *asker) WhileRunning(context.Context) bool {
	for fd := range 3 {
		if _, err := unix.IoctlGetTermios(fd, unix.TCGETS); err == nil {
			return false
		}
	}
	return true
}

// Approve puts one question. Ctrl-C, the end of ctx and everything that is not
// plainly yes are no.
func (a *asker) Approve(ctx context.Context, q tether.Question) (tether.Answer, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	text, err := question(q)
	if err != nil {
		return tether.Answer{}, err
	}
	tty, err := openTTY()
	if err != nil {
		return tether.Answer{}, fault.New(fault.ApprovalDenied, "there is no terminal to ask on")
	}
	defer tty.Close()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	defer signal.Stop(signals)
	// What was typed before the question was seen is no answer to it.
	raw, err := tty.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { _ = unix.IoctlSetInt(int(fd), unix.TCFLSH, unix.TCIFLUSH) })
	}
	if err == nil {
		// Whoever left the terminal in raw mode has lines end in both.
		_, err = io.WriteString(tty, strings.ReplaceAll(text, "\n", "\r\n"))
	}
	if err != nil {
		return tether.Answer{}, err
	}
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case s := <-signals:
			if n, ok := s.(syscall.Signal); ok {
				a.signal.Store(int32(n))
			}
		case <-ctx.Done():
		case <-done:
			return
		}
		_ = tty.SetReadDeadline(time.Unix(1, 0))
	}()
	line, err := a.line(tty)
	if err != nil || a.interrupted() != 0 {
		_, _ = io.WriteString(tty, "\r\n")
		if n := a.interrupted(); n != 0 {
			return tether.Answer{}, fault.New(fault.ApprovalDenied, "interrupted")
		}
		return tether.Answer{}, ctx.Err() // the end of the terminal's input is no
	}
	return reply(line), nil
}

// line reads what is typed, also on a terminal in raw mode, where Enter and
// Ctrl-C are characters like others.
func (a *asker) line(tty io.Reader) (string, error) {
	var line []byte
	for b := make([]byte, 1); len(line) < 256; {
		n, err := tty.Read(b)
		switch {
		case err != nil:
			return "", err
		case n == 0:
		case b[0] == '\n' || b[0] == '\r':
			return string(line), nil
		case b[0] == 3:
			a.signal.Store(int32(syscall.SIGINT))
			return "", io.EOF
		case b[0] == 4:
			return "", io.EOF
		default:
			line = append(line, b[0])
		}
	}
	return "", nil
}
