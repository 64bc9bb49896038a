//go:build linux || darwin

package local

import (
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/plan"
	"github.com/tether-sandbox/tether/internal/world"
	"github.com/tether-sandbox/tether/policy"
)

// mountsAfter is how long a command runs before it is found out what else is
// mounted where it may write, and disksAfter before its disks are looked at:
// those that are over by then, which are most, pay nothing for it.
const mountsAfter, disksAfter = 5 * time.Millisecond, 200 * time.Millisecond

// diskGuard looks at what is left of the host's disks while a command runs: no
// kernel keeps some of them free for others. Whoever fills one, it is the command
// that can be ended.
type diskGuard struct {
	stop, done chan struct{}
	asked      int64
	seen       map[uint64]bool // by device
	low        atomic.Pointer[world.LowDisk]
	killed     atomic.Bool
}

// disk is a folder on a file system, and what it was like at the start.
type disk struct {
	dir   string
	floor floor
}

// guardDisks calls kill when too little is left of a disk that the command may
// write.
func guardDisks(p *plan.Plan, kind enforce.Kind, kill func()) *diskGuard {
	g := &diskGuard{stop: make(chan struct{}), done: make(chan struct{}), asked: p.Policy.Limits.FreeDisk, seen: map[uint64]bool{}}
	go func() {
		defer close(g.done)
		// Off the way of the command, which has not written much by then.
		dirs := writable(p, kind)
		disks := g.disks(dirs)
		if !g.sleep(mountsAfter) {
			return
		}
		disks = append(disks, g.disks(mountsBelow(dirs))...)
		if !g.sleep(disksAfter - mountsAfter) {
			return
		}
		for {
			wait := g.look(disks)
			if wait == 0 {
				g.killed.Store(true)
				kill()
				return
			}
			if !g.sleep(wait) {
				g.look(disks) // what it ended by itself for
				return
			}
		}
	}()
	return g
}

// sleep returns false when the guard is to stop.
func (g *diskGuard) sleep(wait time.Duration) bool {
	select {
	case <-time.After(wait):
		return true
	case <-g.stop:
		return false
	}
}

// look returns when to look again; zero when a disk is too full.
func (g *diskGuard) look(disks []disk) time.Duration {
	wait := time.Second
	for _, d := range disks {
		r, err := roomAt(d.dir)
		if err != nil {
			continue // unmounted, or gone
		}
		if r.below(d.floor) {
			g.low.Store(&world.LowDisk{Dir: d.dir, Free: int64(r.free), Keep: int64(d.floor.bytes), Names: r.free >= d.floor.bytes})
			return 0
		}
		wait = min(wait, r.pause(d.floor))
	}
	return wait
}

// end says which disk is too full, if one is, and whether the command was killed
// for it. A file system that does not answer is not waited for.
func (g *diskGuard) end() (low *world.LowDisk, killed bool) {
	close(g.stop)
	select {
	case <-g.done:
	case <-time.After(100 * time.Millisecond):
	}
	return g.low.Load(), g.killed.Load()
}

// writable lists the folders of the host that a command may write.
func writable(p *plan.Plan, kind enforce.Kind) (dirs []string) {
	for i := range p.Views {
		if p.Views[i].Writable {
			dirs = append(dirs, p.Views[i].Path)
		}
	}
	switch {
	case kind == enforce.Unconfined || kind == enforce.Guard || p.Policy.Profile == policy.FullAccess:
		dirs = append(dirs, p.Policy.Workspace, "/", p.Home, "/tmp", "/var/tmp")
	case kind == enforce.Landlock:
		dirs = append(dirs, filepath.Join(p.StateDir, privateFolder), filepath.Join(rootsPrivate, privateFolder))
	}
	return dirs
}

// disks lists the file systems of folders that are not looked at yet.
func (g *diskGuard) disks(dirs []string) (out []disk) {
	for _, dir := range dirs {
		var st unix.Stat_t
		if unix.Stat(dir, &st) != nil || g.seen[uint64(st.Dev)] {
			continue
		}
		g.seen[uint64(st.Dev)] = true
		if r, err := roomAt(dir); err == nil && r.size > 0 {
			out = append(out, disk{dir, floorOf(g.asked, r)})
		}
	}
	return out
}
