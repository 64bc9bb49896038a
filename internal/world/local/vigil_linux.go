package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/plan"
	"github.com/tether-sandbox/tether/internal/plan/secrets"
	"github.com/tether-sandbox/tether/internal/watch"
	"github.com/tether-sandbox/tether/internal/world"
	"github.com/tether-sandbox/tether/policy"
)

// A vigil looks after the workspace while a command runs: what would have been
// hidden or locked, had it been there at the start, becomes so when it is seen.
//
// The order keeps anything from slipping between: every folder is watched, then
// the plan is made anew, then what is missing is put into the world of the
// command, and only then is it asked what happened meanwhile.
type vigil struct {
	p     *plan.Plan
	proc  enforce.Process
	live  *live // may be nil
	begin time.Time
	wants wants

	ctx  context.Context
	end  context.CancelFunc
	done chan struct{}
	mu   sync.Mutex
	tree *watch.Tree

	out world.Late
}

// vigilAfter is how long a command runs before its vigil begins: those that are
// over by then, which are most, pay nothing for it.
const vigilAfter = 200 * time.Millisecond

// lookAfter begins the vigil of a command; nil where the provider cannot change
// a world that stands.
func lookAfter(p *plan.Plan, proc enforce.Process, early *warm, kind enforce.Kind) *vigil {
	if kind != enforce.Native || p.Policy.Profile == policy.FullAccess {
		return nil
	}
	v := &vigil{p: p, proc: proc, begin: time.Now(), done: make(chan struct{})}
	if early != nil {
		v.live = early.live
	}
	v.ctx, v.end = context.WithCancel(context.Background())
	go v.run()
	return v
}

func (v *vigil) run() {
	defer close(v.done)
	select {
	case <-v.ctx.Done():
		return
	case <-time.After(vigilAfter):
	}
	err := v.keep()
	if err == nil || v.ctx.Err() != nil {
		return
	}
	v.out.Watched, v.out.WhyNot = false, err.Error()
	if errors.Is(err, watch.ErrFull) {
		v.out.Hint = "sudo sysctl fs.inotify.max_user_watches=524288 fs.inotify.max_user_instances=1024"
	}
}

// report ends the vigil and tells what came of it.
func (v *vigil) report(out *world.Outcome) {
	if v == nil {
		return
	}
	v.end()
	v.mu.Lock()
	if v.tree != nil {
		v.tree.Close()
	}
	v.mu.Unlock()
	<-v.done
	for path, s := range v.wants.late {
		if isMask(&s) {
			v.out.Hidden = append(v.out.Hidden, path)
		} else {
			v.out.Locked = append(v.out.Locked, path)
		}
	}
	slices.Sort(v.out.Hidden)
	slices.Sort(v.out.Locked)
	out.Late = v.out
}

// keep watches until the vigil is over.
func (v *vigil) keep() error {
	rules, err := secrets.RulesOf(v.p.Policy.Protect)
	if err != nil {
		return err
	}
	v.wants.init(v.p, rules, v.begin)
	tree, err := watch.New()
	if err != nil {
		return err
	}
	v.mu.Lock()
	v.tree = tree
	v.mu.Unlock()
	defer tree.Close()
	if err := v.armAll(); err != nil {
		return err
	}
	return v.stay()
}

func (v *vigil) armAll() error {
	for _, path := range v.wants.roots {
		if err := v.arm(path); err != nil {
			return err
		}
	}
	return nil
}

func (v *vigil) arm(path string) error {
	return v.tree.Add(path, func() bool { return v.ctx.Err() != nil })
}

// The pauses of a vigil. A command that changes things all the time gets no more
// of the machine spent on it than one part in share.
const (
	shortest = 2 * time.Millisecond
	share    = 4
)

// stay looks whenever something happened, until the vigil is over.
func (v *vigil) stay() error {
	dirty, news := true, time.Time{}
	var next time.Time // no look before
	for v.ctx.Err() == nil {
		if dirty && !time.Now().Before(next) {
			begin := time.Now()
			again, err := v.look()
			if err != nil {
				return err
			}
			if !v.out.Watched {
				v.out.Watched, v.out.From = true, time.Since(v.begin)
			}
			if dirty = again; !dirty && !news.IsZero() {
				v.out.Slowest, news = max(v.out.Slowest, time.Since(news)), time.Time{}
			}
			next = time.Now().Add(max(shortest, (share-1)*time.Since(begin)))
		}
		deadline := v.wants.due()
		if dirty {
			deadline = next
		}
		events, err := v.tree.Next(deadline)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			dirty = true // what had to be left alone for a moment was
			continue
		}
		if err != nil {
			return err
		}
		seen := time.Now()
		for _, e := range events {
			if err := v.follow(e); err != nil {
				return err
			}
			if v.wants.note(e) && news.IsZero() {
				dirty, news = true, seen
			}
		}
	}
	return nil
}

// follow watches what the watch does not watch yet.
func (v *vigil) follow(e watch.Event) error {
	switch {
	case e.Lost:
		return v.armAll()
	case e.Folder && e.New:
		return v.arm(filepath.Join(e.Dir, e.Name))
	}
	return nil
}

// look makes the plan anew and lets what is missing hold. It says whether things
// moved meanwhile.
func (v *vigil) look() (again bool, err error) {
	now, err := v.p.Again(v.ctx)
	if errors.Is(err, plan.ErrChanged) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	steps := v.wants.missing(now)
	if len(steps) == 0 {
		return false, nil
	}
	v.tell(steps)
	c, err := v.proc.Cover(steps)
	switch {
	case err != nil:
		return false, err
	case c.Changed > 0:
		v.wants.all = true
		return true, nil
	case c.Failed > 0:
		v.out.WhyNot = fmt.Sprintf("%d could not be covered: %s", c.Failed, c.Why)
	}
	v.wants.hold(steps)
	return false, nil
}

// tell enters what is about to be hidden in the list that other runs read.
func (v *vigil) tell(steps []enforce.Step) {
	if v.live == nil {
		return
	}
	var found []secret
	for i := range steps {
		if s := &steps[i]; isMask(s) && !v.wants.known(s) {
			found = append(found, secret{identity{s.Dev, s.Ino}, s.Dst})
		}
	}
	v.live.more(found)
}

// bornAfter says whether what lies at path was made after a moment, which no
// program can pretend. Where the file system does not tell, nothing was.
func bornAfter(path string, moment time.Time) bool {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BTIME, &st)
	return err == nil && st.Mask&unix.STATX_BTIME != 0 && time.Unix(st.Btime.Sec, int64(st.Btime.Nsec)).After(moment.Add(-tick))
}
