//go:build !linux && !darwin

package stream

import (
	"errors"

	"github.com/tether-sandbox/tether/fault"
)

// Open gives the command pipes.
func Open(o Options) (*Set, error) { return Pipes(o) }

// PTY refuses: there is no terminal of ours on this system yet.
func PTY(Options) (*Set, error) {
	return nil, fault.Wrap(fault.SandboxUnavailable, "no terminal for the command on this system", errors.ErrUnsupported)
}
