//go:build !linux

package walls

import (
	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/plan"
)

// Steps refuses: Landlock needs Linux.
func Steps(*plan.Plan, string) ([]enforce.Step, error) {
	return nil, fault.New(fault.SandboxUnavailable, "the landlock provider needs Linux")
}

// Start refuses: Landlock needs Linux.
func Start(*plan.Plan, string, uint16, enforce.Job) (enforce.Process, error) {
	return nil, fault.New(fault.SandboxUnavailable, "the landlock provider needs Linux")
}
