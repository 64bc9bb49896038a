package local

import (
	"bytes"
	"os"
	"sync"
	"time"

	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/enforce/native"
	"github.com/tether-sandbox/tether/policy"
)

// keepFor is how long an inner stage waits for somebody who wants it. It holds
// on to what was mounted when it was started, which the host may want to
// unmount.
const keepFor = time.Minute

// Keeper has an inner stage ready between the runs of a session. Its zero value
// is ready.
type Keeper struct {
	mu     sync.Mutex
	stage  *native.Stage
	mounts []byte // what was mounted then
	timer  *time.Timer
	closed bool
	// watch stands for the next run; arming says that one is being begun.
	watch  *standing
	arming bool
}

// take returns the stage that is ready, if there is one that sees what is
// mounted now. Whether it fits the run is for the run to say.
func (k *Keeper) take() *native.Stage {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.stage
	if s == nil {
		return nil
	}
	k.stage = nil
	k.timer.Stop()
	// A mount that is gone on the host and not for the stage would be seen by
	// no plan.
	if now, err := os.ReadFile("/proc/self/mountinfo"); err != nil || !bytes.Equal(now, k.mounts) {
		s.Discard()
		return nil
	}
	return s
}

// fill starts a stage, if there is none, and does not wait for it.
func (k *Keeper) fill(pol policy.Policy, kind enforce.Kind) {
	if k == nil || kind == enforce.Bwrap || kind == enforce.Landlock || kind == enforce.Guard || kind == enforce.Unconfined || pol.Profile == policy.FullAccess {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed || k.stage != nil {
		return
	}
	var err error
	if k.mounts, err = os.ReadFile("/proc/self/mountinfo"); err != nil {
		return
	}
	s := launch(pol)
	if s == nil {
		return
	}
	k.stage = s
	k.timer = time.AfterFunc(keepFor, func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.stage == s {
			k.stage = nil
			s.Discard()
		}
	})
}

// Close ends the stage that is ready, and starts no other.
func (k *Keeper) Close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = true
	if k.watch != nil {
		k.watch.tree.Close()
		k.watch = nil
	}
	if k.stage != nil {
		k.timer.Stop()
		k.stage.Discard()
		k.stage = nil
	}
}
