package stream

import (
	"bytes"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/fault"
)

// IsTerminal tells whether f is a terminal.
func IsTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TIOCGETA)
	return err == nil
}

// Size is a terminal's size in characters and, where known, in pixels.
type Size struct{ Rows, Cols, Width, Height uint16 }

// SizeOf returns the size of the terminal f.
func SizeOf(f *os.File) (Size, error) {
	w, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return Size{}, err
	}
	return Size{Rows: w.Row, Cols: w.Col, Width: w.Xpixel, Height: w.Ypixel}, nil
}

// SetSize sets the size of the terminal f. Its programs are told by SIGWINCH.
func SetSize(f *os.File, s Size) error {
	return unix.IoctlSetWinsize(int(f.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: s.Rows, Col: s.Cols, Xpixel: s.Width, Ypixel: s.Height})
}

// openPTY opens a terminal, as openpty(3) does.
func openPTY() (master, slave *os.File, err error) {
	fail := func(err error) (*os.File, *os.File, error) {
		if master != nil {
			master.Close()
		}
		return nil, nil, fault.Wrap(fault.IsolationUnavailable, "cannot open a terminal for the command", err)
	}
	if master, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		return fail(err)
	}
	fd := int(master.Fd())
	if err := unix.IoctlSetInt(fd, unix.TIOCPTYGRANT, 0); err != nil {
		return fail(err)
	}
	if err := unix.IoctlSetInt(fd, unix.TIOCPTYUNLK, 0); err != nil {
		return fail(err)
	}
	var name [128]byte // sys/ttycom.h: TIOCPTYGNAME
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TIOCPTYGNAME, uintptr(unsafe.Pointer(&name[0]))); errno != 0 {
		return fail(errno)
	}
	end := bytes.IndexByte(name[:], 0)
	if slave, err = os.OpenFile(string(name[:max(end, 0)]), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		return fail(err)
	}
	return master, slave, nil
}
