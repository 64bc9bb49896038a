package local

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/enforce/cgroup"
)

// timeGuard looks at the processor time that a control group counts for all
// processes of a command together.
type timeGuard struct {
	stop, done chan struct{}
	met        atomic.Uint32 // enforce.Met
}

// guardTime calls kill when what a group has used from now on is more than the
// limit. It is nil where there is no limit, or the group does not count.
func guardTime(g *cgroup.Group, seconds int64, kill func()) *timeGuard {
	if !g.Times() || seconds <= 0 {
		return nil
	}
	t := &timeGuard{stop: make(chan struct{}), done: make(chan struct{})}
	// What the sandbox took to be built is not the command's.
	before, _ := g.Used()
	most := time.Duration(seconds) * time.Second
	go func() {
		defer close(t.done)
		for {
			begin := time.Now()
			now, err := g.Used()
			if err != nil || now-before >= most {
				// What cannot be counted any more is not let go on.
				t.met.Store(uint32(enforce.MetTreeCPU))
				if err != nil {
					t.met.Store(uint32(enforce.MetUncounted))
				}
				kill()
				return
			}
			select {
			case <-time.After(enforce.Pace(most-(now-before), runtime.NumCPU(), time.Since(begin))):
			case <-t.stop:
				return
			}
		}
	}()
	return t
}

// end says what the command was ended for, zero for nothing. The group may go
// then: nobody looks at it any more.
func (t *timeGuard) end() enforce.Met {
	if t == nil {
		return 0
	}
	close(t.stop)
	<-t.done
	return enforce.Met(t.met.Load())
}
