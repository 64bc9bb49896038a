//go:build !linux

package seccomp

import (
	"errors"

	"github.com/tether-sandbox/tether/fault"
)

// Listen refuses, as Load does.
func Listen([]Insn) (int, error) { return -1, Load(nil) }

// Load refuses: system call filters are Linux's.
func Load([]Insn) error {
	return fault.Wrap(fault.SandboxUnavailable, "system call filters need Linux", errors.ErrUnsupported)
}
