//go:build !linux && !darwin

package local

import (
	"context"
	"runtime"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/machine"
	"github.com/tether-sandbox/tether/internal/plan"
	"github.com/tether-sandbox/tether/internal/world"
	"github.com/tether-sandbox/tether/policy"
)

func refuse() error {
	return fault.New(fault.SandboxUnavailable, "there is no provider for "+runtime.GOOS+" in this build").
		WithHint("run tether on Linux")
}

// World is this machine. On this system it refuses.
type World struct{ Keep *Keeper }

// Keeper keeps nothing here.
type Keeper struct{}

// Close does nothing.
func (*Keeper) Close() {}

// ID names this machine.
func (World) ID() string { return "local" }

// Machine is what grades depend on besides a plan.
func (World) Machine(policy.Limits) enforce.Machine { return enforce.Machine{} }

// CanLimit refuses what would need the kernel.
func (World) CanLimit(l policy.Limits) error {
	if l.MemoryBytes > 0 {
		return refuse()
	}
	return nil
}

// Warm starts nothing.
func (World) Warm(policy.Policy, enforce.Kind, []string) world.Warm { return nothing{} }

type nothing struct{}

func (nothing) Discard() {}

// Place refuses.
func (World) Place(policy.Policy, []string) (world.Place, error) { return world.Place{}, refuse() }

// Locate refuses.
func (World) Locate(string) (string, error) { return "", refuse() }

// Plan refuses.
func (World) Plan(context.Context, policy.Policy, world.Options) (*plan.Plan, error) {
	return nil, refuse()
}

// Run refuses.
func (World) Run(context.Context, *plan.Plan, world.Command) (world.Outcome, error) {
	return world.Outcome{}, refuse()
}

// Jails are none; what has to name one names the strictest.
func Jails() []enforce.Kind { return []enforce.Kind{enforce.Native} }

// Clean refuses.
func Clean(bool) ([]string, error) { return nil, refuse() }

// Facts knows the system's name alone.
func Facts() machine.Facts { return machine.Look() }

// TmpFolder names no folder.
func TmpFolder(string, string) string { return "" }

// Tmps lists nothing.
func Tmps(string) []string { return nil }

// RemoveTmp finds nothing to remove.
func RemoveTmp(string, string) (string, error) { return "", nil }

// State refuses.
func State([]string) (string, error) { return "", refuse() }

// HoldTmp refuses.
func HoldTmp(string) (string, func() error, error) { return "", nil, refuse() }
