//go:build !linux

package walls

import (
	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/plan"
)

// Start refuses: Landlock needs Linux.
func Start(*plan.Plan, string, enforce.Job) (enforce.Process, error) {
	return nil, fault.New(fault.SandboxUnavailable, "the landlock provider needs Linux")
}
