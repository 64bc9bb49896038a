//go:build !linux

package bwrap

import (
	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/plan"
)

// Find refuses: bubblewrap needs Linux.
func Find() (string, error) {
	return "", fault.New(fault.SandboxUnavailable, "the bwrap provider needs Linux")
}

// Start refuses: bubblewrap needs Linux.
func Start(plan.Identity, bool, string, enforce.Job) (enforce.Process, error) {
	return nil, fault.New(fault.SandboxUnavailable, "the bwrap provider needs Linux")
}
