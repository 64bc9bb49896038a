//go:build !linux

package landlock

import (
	"errors"

	"github.com/tether-sandbox/tether/fault"
)

// ABI refuses: Landlock is Linux's.
func ABI() (int, error) { return 0, refuse() }

// Restrict refuses: Landlock is Linux's.
func Restrict(Ruleset) error { return refuse() }

func refuse() error {
	return fault.Wrap(fault.SandboxUnavailable, "Landlock needs Linux", errors.ErrUnsupported)
}
