//go:build !linux

package native

import (
	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/plan"
)

// Stage is an inner stage; there are none on this system.
type Stage struct{}

// Launch refuses: there are no namespaces on this system.
func Launch(plan.Identity, enforce.Net) (*Stage, error) {
	return nil, fault.New(fault.SandboxUnavailable, "the native provider needs Linux")
}

// Fits is never true.
func (*Stage) Fits(plan.Identity, enforce.Net) bool { return false }

// Discard does nothing.
func (*Stage) Discard() {}

// Begin refuses.
func (*Stage) Begin(enforce.Job) (enforce.Process, error) {
	return nil, fault.New(fault.SandboxUnavailable, "the native provider needs Linux")
}
