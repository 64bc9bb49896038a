package local

import (
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/enforce/native"
	"github.com/tether-sandbox/tether/internal/plan"
	"github.com/tether-sandbox/tether/internal/watch"
	"github.com/tether-sandbox/tether/internal/world"
	"github.com/tether-sandbox/tether/policy"
)

// warm is what was started while the plan was still being made: this run's
// entry among the living, and an inner stage.
type warm struct {
	live *live
	err  error // why there is no entry

	mu    sync.Mutex
	stage *native.Stage

	keep  *Keeper
	watch *standing // what happens is watched already; nil when it is not

	again func() // makes ready what the next run will want
}

// Warm enters a run among the living and starts an inner stage, which it will
// most likely need. What that is started with is compared with the plan before
// it is used.
func (at World) Warm(pol policy.Policy, kind enforce.Kind, environ []string) world.Warm {
	w := &warm{keep: at.Keep, again: func() {
		at.Keep.fill(pol, kind)
		at.Keep.armWatch(pol, kind)
	}}
	if kind == enforce.Unconfined || kind == enforce.Guard || pol.Profile == policy.FullAccess {
		return w
	}
	if kind != enforce.Bwrap && kind != enforce.Landlock {
		if w.stage = at.Keep.take(); w.stage == nil {
			w.stage = launch(pol)
		}
	}
	if watches(pol, kind) {
		w.follow(at.Keep.takeWatch(pol))
	}
	host, err := caller(environ)
	roots := searchRoots(pol)
	if err == nil && overlap([]string{host.StateDir}, roots) {
		return w // the plan will refuse, and nothing is written there before
	}
	if err == nil {
		w.live, err = announce(host.StateDir, roots)
	}
	if err != nil {
		w.err = fault.Wrap(fault.SandboxUnavailable, "cannot enter the run among those that live", err).
			WithHint("make " + filepath.Dir(host.StateDir) + " writable, or set XDG_STATE_HOME")
	}
	return w
}

func launch(pol policy.Policy) *native.Stage {
	info, err := os.Stat(pol.Workspace)
	if err != nil {
		return nil
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	id := plan.IdentityFor(uint32(os.Geteuid()), uint32(os.Getegid()), plan.Root{UID: st.Uid, GID: st.Gid})
	stage, err := native.Launch(id, netOf(pol))
	if err != nil {
		return nil // why, is found again when it is needed
	}
	return stage
}

// take returns the stage if it fits, once.
func (w *warm) take(id plan.Identity, network enforce.Net) *native.Stage {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stage == nil || !w.stage.Fits(id, network) {
		return nil
	}
	s := w.stage
	w.stage = nil
	return s
}

// follow takes a watch that stands for this run: the search that comes sees all
// that happened up to now.
func (w *warm) follow(s *standing) {
	if s == nil {
		return
	}
	if err := s.catchUp(func(watch.Event) {}); err != nil {
		s.tree.Close()
		return
	}
	w.watch = s
}

// Discard ends the run's entry, and the stage if nobody took it.
func (w *warm) Discard() {
	defer w.again()
	if w.watch != nil {
		w.keep.putWatch(w.watch)
		w.watch = nil
	}
	if w.live != nil {
		w.live.end()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stage != nil {
		w.stage.Discard()
		w.stage = nil
	}
}
