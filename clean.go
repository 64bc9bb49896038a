package tether

import (
	"errors"

	"github.com/tether-sandbox/tether/internal/world/local"
)

// Clean removes Tether's caches, verdicts and stand-ins of the calling user, the
// /tmp of sessions that nobody takes part in, and with quarantine also what was
// moved away from workspaces. It returns the folders that it removed. What runs
// of other commands still use is left, and so are the logs of sessions.
func Clean(quarantine bool) ([]string, error) {
	removed, err := local.Clean(quarantine)
	if err != nil {
		return removed, err
	}
	s, err := OpenSessions(nil)
	if err != nil {
		return removed, err
	}
	tmps, err := s.removeTmps()
	return append(removed, tmps...), errors.Join(err, s.Close())
}
