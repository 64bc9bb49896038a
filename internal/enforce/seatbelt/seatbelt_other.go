//go:build !darwin

package seatbelt

import (
	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/enforce"
)

// Start refuses: seatbelt needs macOS.
func Start(string, enforce.Job) (enforce.Process, error) {
	return nil, fault.New(fault.SandboxUnavailable, "the seatbelt provider needs macOS")
}

// Find refuses: seatbelt needs macOS.
func Find() error { return fault.New(fault.SandboxUnavailable, "the seatbelt provider needs macOS") }
