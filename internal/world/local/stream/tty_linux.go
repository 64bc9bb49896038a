package stream

import (
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/fault"
)

// IsTerminal tells whether f is a terminal.
func IsTerminal(f *os.File) bool {
	return withFD(f, func(fd int) error {
		_, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		return err
	}) == nil
}

// Foreground tells whether f is this process's own terminal and its keys are for
// it.
func Foreground(f *os.File) bool {
	there := false
	_ = withFD(f, func(fd int) error {
		pgrp, err := unix.IoctlGetUint32(fd, unix.TIOCGPGRP)
		there = err == nil && int(pgrp) == unix.Getpgrp()
		return err
	})
	return there
}

func isTTY(fd int) bool {
	_, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	return err == nil
}

// Size is a terminal's size in characters and, where known, in pixels.
type Size struct{ Rows, Cols, Width, Height uint16 }

// SizeOf returns the size of the terminal f.
func SizeOf(f *os.File) (s Size, err error) {
	err = withFD(f, func(fd int) error {
		w, err := unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ)
		if err == nil {
			s = Size{Rows: w.Row, Cols: w.Col, Width: w.Xpixel, Height: w.Ypixel}
		}
		return err
	})
	return s, err
}

// SetSize sets the size of the terminal f. Its programs are told by SIGWINCH.
func SetSize(f *os.File, s Size) error {
	return withFD(f, func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ,
			&unix.Winsize{Row: s.Rows, Col: s.Cols, Xpixel: s.Width, Ypixel: s.Height})
	})
}

// openPTY opens a terminal. The master does not block and is known to the
// runtime's poller.
func openPTY(owner *Owner) (master, slave *os.File, err error) {
	fail := func(err error) (*os.File, *os.File, error) {
		return nil, nil, fault.Wrap(fault.IsolationUnavailable, "cannot open a terminal for the command", err)
	}
	m, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return fail(err)
	}
	if err := unix.IoctlSetPointerInt(m, unix.TIOCSPTLCK, 0); err != nil {
		unix.Close(m)
		return fail(err)
	}
	slave, err = peer(m)
	if err != nil {
		unix.Close(m)
		return nil, nil, err
	}
	master = os.NewFile(uintptr(m), "terminal")
	if owner != nil {
		err := withFD(slave, func(fd int) error { return unix.Fchown(fd, owner.UID, owner.GID) })
		if err != nil {
			master.Close()
			slave.Close()
			return fail(err)
		}
	}
	return master, slave, nil
}

// peer opens the other end of a terminal's master: by the master and not by a
// path, which is right in whatever mount namespace.
func peer(master int) (*os.File, error) {
	fd, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(master), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	if errno != 0 {
		return nil, fault.Wrap(fault.IsolationUnavailable, "cannot open a terminal for the command", errno)
	}
	return os.NewFile(fd, "terminal"), nil
}

// mode is the mode of the caller's terminal.
type mode struct {
	fd    int
	saved unix.Termios

	mu  sync.Mutex
	raw bool
}

func newMode(fd int) (*mode, error) {
	t, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return nil, err
	}
	return &mode{fd: fd, saved: *t}, nil
}

// enter passes every key through, unless the terminal is at present somebody
// else's: changing it would stop us (SIGTTOU), and disturb them.
func (m *mode) enter() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fd < 0 || !foreground(m.fd) {
		return
	}
	t := m.saved
	t.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	t.Oflag &^= unix.OPOST
	t.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	t.Cflag = t.Cflag&^(unix.CSIZE|unix.PARENB) | unix.CS8
	t.Cc[unix.VMIN], t.Cc[unix.VTIME] = 1, 0
	m.raw = unix.IoctlSetTermios(m.fd, unix.TCSETS, &t) == nil
}

// restore puts the terminal back as it was found. It does not wait for output
// to drain: a terminal stopped by Ctrl-S would hold us for ever.
func (m *mode) restore() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.raw || !foreground(m.fd) {
		return // a shell that took the terminal back has set its own mode
	}
	_ = unix.IoctlSetTermios(m.fd, unix.TCSETS, &m.saved)
	m.raw = false
}

func (m *mode) close() {
	m.restore()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fd >= 0 {
		unix.Close(m.fd)
		m.fd, m.raw = -1, false
	}
}

// foreground tells whether we may read and change the terminal: our process
// group has it, or it is no controlling terminal of ours.
func foreground(fd int) bool {
	pgrp, err := unix.IoctlGetUint32(fd, unix.TIOCGPGRP)
	return err != nil || int(pgrp) == unix.Getpgrp()
}

// lineMode tells whether the terminal hands over whole lines.
func lineMode(fd int) bool {
	t, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	return err != nil || t.Lflag&unix.ICANON != 0
}
