//go:build !linux

package main

import "github.com/tether-sandbox/tether/fault"

// fetchVerb refuses: it follows the policy of a sandbox.
func fetchVerb(args []string, std stdio) (int, error) { return mcpVerb(args, std) }

// mcpVerb refuses: nothing can be confined here.
func mcpVerb([]string, stdio) (int, error) {
	return 0, fault.New(fault.SandboxUnavailable, "there is no provider for this system in this build").WithHint("run tether on Linux")
}
