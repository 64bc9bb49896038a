//go:build !linux

package native

import (
	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/plan"
)

// Start refuses: there are no namespaces on this system.
func Start(plan.Identity, bool, enforce.Job) (enforce.Process, error) {
	return nil, fault.New(fault.SandboxUnavailable, "the native provider needs Linux")
}
