//go:build linux || darwin

package local

import (
	"errors"
	"io/fs"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/plan"
)

// usage adds up what lies below a folder takes on the disk, and stops once it is
// more than most. Names that come and go meanwhile count or do not.
func usage(dir string, most int64) int64 {
	const entry = 512 // in a folder's own blocks, about
	var all int64
	full := errors.New("full")
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // gone, or closed to us
		}
		if info, err := d.Info(); err == nil {
			all += entry
			if st, ok := info.Sys().(*syscall.Stat_t); ok {
				all += st.Blocks * 512
			}
		}
		if all > most {
			return full
		}
		return nil
	})
	return all
}

// tmpOnDisk returns the host's side of a session's /tmp, if the plan shows one
// that the command may write.
func tmpOnDisk(p *plan.Plan) string {
	for i := range p.Views {
		if v := &p.Views[i]; v.Origin == plan.Tmp && v.Writable {
			return v.Path
		}
	}
	return ""
}

// roomInTmp refuses to start where a session's /tmp holds more than it may.
func roomInTmp(p *plan.Plan) error {
	most, dir := p.Policy.Limits.ScratchBytes, tmpOnDisk(p)
	if most == 0 || dir == "" || usage(dir, most) <= most {
		return nil
	}
	return fault.New(fault.LimitScratch, "the session's /tmp holds more than it may: "+dir).WithHint("rm -r " + dir + "/*")
}

// tmpGuard looks at the size of a session's /tmp while a command runs: no kernel
// limits a folder on the disk.
type tmpGuard struct {
	dir        string
	most       int64
	stop, done chan struct{}
	over       atomic.Bool
}

// guardTmp calls kill when a session's /tmp has grown beyond its limit. It is nil
// where there is nothing to look at.
func guardTmp(p *plan.Plan, kill func()) *tmpGuard {
	g := &tmpGuard{dir: tmpOnDisk(p), most: p.Policy.Limits.ScratchBytes, stop: make(chan struct{}), done: make(chan struct{})}
	if g.dir == "" || g.most == 0 {
		return nil
	}
	go func() {
		defer close(g.done)
		for {
			begin := time.Now()
			if usage(g.dir, g.most) > g.most {
				g.over.Store(true)
				kill()
				return
			}
			// Never more than a small part of the time, however much lies there.
			select {
			case <-time.After(max(200*time.Millisecond, 20*time.Since(begin))):
			case <-g.stop:
				return
			}
		}
	}()
	return g
}

// end says whether the limit was met, also by what lies there now.
func (g *tmpGuard) end() bool {
	if g == nil {
		return false
	}
	close(g.stop)
	<-g.done
	return g.over.Load() || usage(g.dir, g.most) > g.most
}
