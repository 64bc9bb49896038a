package tether

import "github.com/tether-sandbox/tether/internal/world/local"

// Clean removes Tether's caches, verdicts and stand-ins of the calling user,
// and with quarantine also what was moved away from workspaces. It returns the
// folders that it removed. What runs of other commands still use is left.
func Clean(quarantine bool) ([]string, error) { return local.Clean(quarantine) }
