//go:build !linux

package seccomp

import (
	"errors"

	"github.com/tether-sandbox/tether/fault"
)

// Load refuses: system call filters are Linux's.
func Load([]Insn) error {
	return fault.Wrap(fault.SandboxUnavailable, "system call filters need Linux", errors.ErrUnsupported)
}
