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
	// lazy is when the plan is made anew although nothing is known to be missing.
	lazy = 250 * time.Millisecond
)

// stay acts on what happens until the vigil is over.
func (v *vigil) stay() error {
	look := time.Now() // when the plan is made anew, zero for not at all
	var news, rested time.Time
	for v.ctx.Err() == nil {
		if !look.IsZero() && !time.Now().Before(later(look, rested)) {
			begin := time.Now()
			done, again, err := v.look()
			if err != nil {
				return err
			}
			if !v.out.Watched {
				v.out.Watched, v.out.From = true, time.Since(v.begin)
			}
			if done {
				v.took(news)
			}
			if !again {
				look, news = v.wants.due(), time.Time{}
			}
			rested = time.Now().Add(max(shortest, (share-1)*time.Since(begin)))
		}
		deadline := look
		if !look.IsZero() {
			deadline = later(look, rested)
		}
		events, err := v.tree.Next(deadline)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			continue
		}
		if err != nil {
			return err
		}
		seen := time.Now()
		hot, err := v.quick(events, seen)
		if err != nil {
			return err
		}
		want := seen.Add(lazy)
		if hot {
			want = seen
			if news.IsZero() {
				news = seen
			}
		} else if len(v.wants.touched) == 0 && !v.wants.all {
			continue // of no interest to anybody
		}
		if look.IsZero() || want.Before(look) {
			look = want
		}
	}
	return nil
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// took notes how long something took that was asked for by news.
func (v *vigil) took(news time.Time) {
	if !news.IsZero() {
		v.out.Slowest = max(v.out.Slowest, time.Since(news))
	}
}

// quick follows events, and hides at once what can be told by itself: files by
// their names and what is in them, and what lies in folders that appeared. It
// says whether there is more to it.
func (v *vigil) quick(events []watch.Event, seen time.Time) (hot bool, err error) {
	var masks []secrets.Mask
	for _, e := range events {
		path := filepath.Join(e.Dir, e.Name)
		switch {
		case e.Lost:
			err = v.armAll()
		case e.Folder && e.New:
			err = v.arm(path) // before it is looked into
		}
		if err != nil {
			return true, err
		}
		if !v.wants.note(e) {
			continue
		}
		if e.Lost || !v.wants.alone(e, path) {
			hot = true
			continue
		}
		found, err := secrets.Find(v.ctx, []secrets.Root{{Path: path}}, v.wants.rules, nil)
		if err != nil {
			continue // gone, most likely; the plan is made anew in any case
		}
		hot = hot || len(found.Unreadable) > 0 || len(found.Locked) > 0 || len(found.GitEntries) > 0 || len(found.BareRepos) > 0
		for _, m := range found.Masks {
			if !slices.Contains(found.Unreadable, m.Path) {
				masks = append(masks, m)
			}
		}
	}
	if len(masks) == 0 {
		return hot, nil
	}
	steps := make([]enforce.Step, 0, len(masks))
	for i := range masks {
		steps = append(steps, v.wants.form(enforce.Mask(&masks[i])))
	}
	again, err := v.cover(steps, false)
	if err == nil && !again {
		v.took(seen)
	}
	return hot || again, err
}

// look makes the plan anew and lets what is missing hold. It says whether that
// was anything, and whether things moved meanwhile.
func (v *vigil) look() (done, again bool, err error) {
	now, err := v.p.Again(v.ctx)
	if errors.Is(err, plan.ErrChanged) {
		return false, true, nil
	}
	if err != nil {
		return false, false, err
	}
	steps := v.wants.missing(now)
	if len(steps) == 0 {
		v.wants.hold(nil, true)
		return false, false, nil
	}
	again, err = v.cover(steps, true)
	return !again, again, err
}

// cover lets steps hold; all says that they are all that are missing. again: they
// are not where they were.
func (v *vigil) cover(steps []enforce.Step, all bool) (again bool, err error) {
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
	v.wants.hold(steps, all)
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
