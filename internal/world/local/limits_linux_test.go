package local

import (
	"testing"

	"github.com/tether-sandbox/tether/policy"
)

// TestBehindGroup: outside of a user namespace all of a user's processes count,
// so there a group alone limits those of a command.
func TestBehindGroup(t *testing.T) {
	for _, tt := range []struct {
		asked      int64
		bare       bool
		with, want int64
	}{{200, false, 200, 208}, {0, false, policy.BuiltinProcesses, policy.BuiltinProcesses + 8}, {200, true, 0, 0}} {
		l := limits(policy.Limits{Processes: tt.asked}, tt.bare)
		if l.Processes != tt.with {
			t.Errorf("%+v: without a group: %d", tt, l.Processes)
		}
		if behindGroup(&l); l.Processes != tt.want {
			t.Errorf("%+v: behind a group: %d", tt, l.Processes)
		}
	}
}
