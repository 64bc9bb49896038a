package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
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
	p    *plan.Plan
	proc enforce.Process
	// covers says that the provider can change a world that stands.
	covers bool
	// blind says that it turned out not to: then only prompt goes on.
	blind bool
	// prompt is what takes back what the host would run; it may be nil.
	prompt *prompt
	live   *live // may be nil
	begin  time.Time
	wants  wants

	ctx  context.Context
	end  context.CancelFunc
	done chan struct{}
	eyes sight
	tree *watch.Tree
	// stands is a watch that stood before the plan was made.
	stands *standing

	// warmed tells once whether anything can be covered at all.
	warmed chan error

	// full is why not every folder is watched, failing why the last look failed,
	// failed what could not be covered.
	full, failing, failed error

	// unsure are files that may yet turn out to be secrets.
	unsure unsure

	out world.Late
}

// vigilAfter is how long a command runs before its vigil begins: those that are
// over by then, which are most, pay nothing for it.
const vigilAfter = 200 * time.Millisecond

// lookAfter begins the vigil of a command; nil where there is nothing to be done:
// the provider cannot change a world that stands, and the record of what was
// there before is empty.
func lookAfter(p *plan.Plan, proc enforce.Process, early *warm, kind enforce.Kind, before *record, around ways, eyes sight) *vigil {
	v := &vigil{p: p, proc: proc, eyes: eyes, begin: time.Now(), done: make(chan struct{}), warmed: make(chan error, 1), unsure: unsure{}}
	v.covers = (kind == enforce.Native || kind == enforce.Bwrap) && p.Policy.Profile != policy.FullAccess
	if kind == enforce.Native || kind == enforce.Bwrap || kind == enforce.Landlock {
		if kind != enforce.Landlock {
			around = nil // behind mounts nobody gets at them
		}
		v.prompt = newPrompt(before, p.StateDir, kind == enforce.Landlock, around)
	}
	if !v.covers && v.prompt == nil {
		return nil
	}
	if early != nil {
		v.live, v.stands = early.live, early.watch
	}
	v.ctx, v.end = context.WithCancel(context.Background())
	go v.run()
	return v
}

// wait is how long it waits before it begins.
func (v *vigil) wait() time.Duration {
	if v.stands != nil {
		return 0
	}
	return vigilAfter
}

func (v *vigil) run() {
	defer close(v.done)
	select {
	case <-v.ctx.Done():
		return
	case <-time.After(v.wait()):
	}
	err := v.keep()
	if v.ctx.Err() != nil {
		err = nil // what failed because the command is over did not fail
	}
	for _, e := range []error{v.full, v.failing, v.failed} {
		if err == nil {
			err = e
		}
	}
	if err == nil {
		return
	}
	v.out.Watched, v.out.WhyNot = false, err.Error()
	if errors.Is(err, watch.ErrFull) {
		v.out.Hint = "sudo sysctl fs.inotify.max_user_watches=524288 fs.inotify.max_user_instances=1024"
	}
}

// report ends the vigil and tells what came of it.
func (v *vigil) report(out *world.Outcome, before *record) {
	if v == nil {
		return
	}
	v.end()
	<-v.done
	if v.prompt != nil {
		before.early = v.prompt.tally.list(v.p.Workspace.Path)
	}
	if !v.covers {
		if v.out.WhyNot != "" {
			out.Notes = append(out.Notes, "what the host's git would run was looked for at the end alone: "+v.out.WhyNot)
		}
		return
	}
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
	if v.covers {
		go v.warmUp()
	}
	if v.stands != nil {
		v.wants.all, v.out.Watched, v.full = false, true, v.stands.full
		v.tree = v.stands.tree
		return v.stay()
	}
	if v.eyes.err != nil {
		return v.eyes.err
	}
	v.tree = v.eyes.tree
	if err := v.armAll(); err != nil {
		return err
	}
	return v.stay()
}

// warmUp has whoever covers things ready before anything is to be covered, also
// where that is not to be waited for: a command that is over at once pays nothing.
func (v *vigil) warmUp() {
	select {
	case <-v.ctx.Done():
		return
	case <-time.After(time.Until(v.begin.Add(vigilAfter))):
	}
	_, err := v.proc.Cover(nil)
	v.warmed <- err
}

func (v *vigil) armAll() error {
	for _, path := range v.wants.roots {
		if err := v.arm(path); err != nil {
			return err
		}
	}
	return nil
}

// arm watches a folder. Where no more can be watched, what is goes on being so,
// and the rest is looked at now and then. A watch that goes on after the command
// must have no gaps, so for it the command's end ends nothing.
func (v *vigil) arm(path string) error {
	err := v.tree.Add(path, func() bool { return v.stands == nil && v.ctx.Err() != nil })
	if watch.Partly(err) {
		if v.full, err = err, nil; v.stands != nil {
			v.stands.full = v.full
		}
	}
	return err
}

const (
	// lazy is when the plan is made anew although nothing is known to be missing.
	lazy = 250 * time.Millisecond
	// slow is when it is made anew where not everything is watched, or where that
	// failed.
	slow = time.Second
	// together is for how long what happens is gathered, once news came more than
	// some times in the time of storm: a build that writes thousands of files must
	// not wake us for each of them.
	together = 10 * time.Millisecond
	storm    = 100 * time.Millisecond
	some     = 8
)

// stay acts on what happens until the vigil is over.
func (v *vigil) stay() (err error) {
	events, failed := v.listen()
	l, q := newLooks(), v.prompt
	if v.stands != nil && v.full == nil || !v.covers {
		l.due = time.Time{} // nothing happened since the plan was made
	}
	l.set()
	if q == nil {
		q = &prompt{pace: pace{timer: time.NewTimer(0)}}
	} else if v.stands == nil || v.full != nil {
		q.lookAtAll()
	}
	q.set()
	defer func() {
		if q.busy {
			q.end(<-q.done)
		}
		v.tree.Wake()
		for list := range events { // until nobody reads the watch any more
			v.leave(list)
		}
		if l.busy {
			v.end()
			<-l.done
		}
		if v.stands != nil && err != nil {
			v.stands.lost = true // some may not have been followed
		}
	}()
	polled := time.Now()
	for {
		var poll <-chan time.Time
		if len(v.unsure) > 0 {
			poll = time.After(time.Until(polled.Add(unsureAgain)))
		}
		select {
		case <-v.ctx.Done():
			return nil
		case <-poll:
			polled = time.Now()
			if _, err := v.quick(v.unsure.changed(), time.Now()); v.goBlind(err) != nil {
				return err
			}
		case err := <-failed:
			return err
		case err := <-v.warmed:
			if errors.Is(err, enforce.ErrStands) {
				if err := v.goBlind(err); err != nil {
					return err
				}
			}
		case list := <-events:
			seen := time.Now()
			hot, err := v.quick(list, seen)
			if err = v.goBlind(err); err != nil {
				return err
			}
			if err := v.tellPrompt(list); err != nil {
				return err
			}
			if v.blind || !v.covers {
				break
			}
			if hot {
				l.want(seen, seen)
			} else if v.wants.news() {
				l.want(seen.Add(lazy), time.Time{})
			}
		case <-l.timer.C:
			if v.blind {
				l.due = time.Time{}
			}
			if l.ready() {
				v.wants.start()
				l.begin(v.ctx, v.p)
			}
		case now := <-l.done:
			l.rest()
			if err := v.goBlind(v.look(l, now)); err != nil {
				return err
			}
		case <-q.timer.C:
			if q.ready() {
				q.begin()
			}
		case d := <-q.done:
			q.end(d)
			if v.full != nil {
				q.lookAtAll()
			}
		}
		l.set()
		q.set()
	}
}

// goBlind lets a vigil that cannot cover anything go on with what needs no cover.
func (v *vigil) goBlind(err error) error {
	if v.prompt == nil || !errors.Is(err, enforce.ErrStands) {
		return err
	}
	v.blind, v.failed = true, err
	return nil
}

// tellPrompt tells of events what takes back.
func (v *vigil) tellPrompt(list []watch.Event) error {
	if v.prompt == nil {
		return nil
	}
	for _, e := range list {
		if v.prompt.note(e) {
			if err := v.arm(e.Path()); err != nil {
				return err
			}
		}
	}
	return nil
}

// leave looks after what happened at the very end: a watch that goes on must
// know of new folders.
func (v *vigil) leave(list []watch.Event) {
	if v.stands == nil {
		return
	}
	for _, e := range list {
		if err := v.stands.follow(e); err != nil {
			v.stands.lost = true
		}
	}
}

// listen passes on what the watch tells, until that is woken. The events are
// closed when nobody reads it any more.
func (v *vigil) listen() (<-chan []watch.Event, <-chan error) {
	events, failed := make(chan []watch.Event), make(chan error, 1)
	go func() {
		defer close(events)
		var began time.Time
		reads := 0
		for {
			if time.Since(began) > storm {
				began, reads = time.Now(), 0
			}
			if reads++; reads > some {
				select {
				case <-v.ctx.Done():
				case <-time.After(together):
				}
			}
			list, err := v.tree.Next(time.Time{})
			if err != nil {
				failed <- err
				return
			}
			events <- list
		}
	}()
	return events, failed
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
		switch {
		case e.Lost:
			err = v.armAll()
		case e.Folder && e.New:
			err = v.arm(e.Path()) // before it is looked into
		}
		if err != nil {
			return true, err
		}
		if !v.covers || v.blind {
			continue
		}
		found, more := v.wants.judge(v.ctx, e)
		v.unsure.judged(&v.wants, e, found)
		masks, hot = append(append(masks, found...), v.wants.carryOn(v.ctx, e, found)...), hot || more
	}
	if len(masks) == 0 {
		return hot, nil
	}
	steps := make([]enforce.Step, 0, len(masks))
	for i := range masks {
		steps = append(steps, v.wants.form(enforce.Mask(&masks[i])))
	}
	again, err := v.cover(steps)
	if err == nil && !again {
		v.took(seen)
	}
	return hot || again, err
}

// look lets hold what a plan that was made anew asks for and is missing.
func (v *vigil) look(l *looks, now looked) error {
	if now.err != nil {
		v.wants.all = true
		if errors.Is(now.err, plan.ErrChanged) {
			l.want(time.Now(), l.asked)
			return nil
		}
		// Whoever can make a plan fail must not end the vigil by it.
		v.failing = now.err
		l.want(time.Now().Add(slow), l.asked)
		return nil
	}
	v.failing = nil
	if steps := v.wants.missing(now.p); len(steps) > 0 {
		again, err := v.cover(steps)
		if err != nil {
			return err
		}
		if again {
			at := time.Now()
			if v.failing != nil {
				at = at.Add(slow)
			}
			v.wants.all = true
			l.want(at, l.asked)
			return nil
		}
		v.took(l.asked)
	}
	if !v.out.Watched {
		v.out.Watched, v.out.From = true, time.Since(v.begin)
	}
	due := v.wants.due()
	if v.full != nil && due.IsZero() {
		due = time.Now().Add(slow)
	}
	if !due.IsZero() {
		l.want(due, time.Time{})
	}
	return nil
}

// cover lets steps hold. again: some are not where they were.
func (v *vigil) cover(steps []enforce.Step) (again bool, err error) {
	v.tell(steps)
	c, err := v.proc.Cover(steps)
	switch {
	case errors.Is(err, os.ErrClosed):
		v.end() // the command is over, and nobody sees anything any more
		return false, nil
	case errors.Is(err, enforce.ErrStands):
		return false, err
	case err != nil:
		v.failing = err // such as for want of descriptors, for now
		return true, nil
	case c.Changed > 0:
		return true, nil
	case c.Failed > 0:
		v.failed = fmt.Errorf("%d could not be covered: %s", c.Failed, c.Why)
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
