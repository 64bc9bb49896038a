//go:build !linux && !darwin

package stream

import (
	"errors"
	"os"

	"github.com/tether-sandbox/tether/fault"
)

// IsTerminal tells whether f may be a terminal: a character device.
func IsTerminal(f *os.File) bool {
	st, err := f.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0
}

// Size is a terminal's size in characters and, where known, in pixels.
type Size struct{ Rows, Cols, Width, Height uint16 }

// SizeOf refuses.
func SizeOf(*os.File) (Size, error) { return Size{}, errTerminal() }

// SetSize refuses.
func SetSize(*os.File, Size) error { return errTerminal() }

func errTerminal() error {
	return fault.Wrap(fault.SandboxUnavailable, "no control of terminals on this system", errors.ErrUnsupported)
}
