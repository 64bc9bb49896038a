package local

import (
	"os"
	"sync"
	"syscall"

	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/enforce/native"
	"github.com/tether-sandbox/tether/internal/plan"
	"github.com/tether-sandbox/tether/internal/world"
	"github.com/tether-sandbox/tether/policy"
)

// warm is an inner stage that was started while the plan was still being made.
type warm struct {
	mu    sync.Mutex
	stage *native.Stage
}

// Warm starts an inner stage for a run that will most likely need one. What it
// is started with is compared with the plan before it is used.
func (World) Warm(pol policy.Policy, kind enforce.Kind) world.Warm {
	if kind != enforce.Auto && kind != enforce.Native {
		return nil
	}
	info, err := os.Stat(pol.Workspace)
	if err != nil {
		return nil
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	id := plan.IdentityFor(uint32(os.Geteuid()), uint32(os.Getegid()), plan.Root{UID: st.Uid, GID: st.Gid})
	stage, err := native.Launch(id, pol.Network.Mode == policy.Open)
	if err != nil {
		return nil
	}
	return &warm{stage: stage}
}

// take returns the stage if it fits, once.
func (w *warm) take(id plan.Identity, network bool) *native.Stage {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stage == nil || !w.stage.Fits(id, network) {
		return nil
	}
	s := w.stage
	w.stage = nil
	return s
}

// Discard ends the stage if nobody took it.
func (w *warm) Discard() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stage != nil {
		w.stage.Discard()
		w.stage = nil
	}
}
