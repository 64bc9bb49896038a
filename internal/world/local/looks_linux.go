package local

import (
	"context"
	"time"

	"github.com/tether-sandbox/tether/internal/plan"
)

// pace is when something is looked at that takes its time, beside the rest. A
// command that changes things all the time gets no more of the machine spent on
// it than one part in share.
type pace struct {
	// due is when the next look begins, zero for not at all.
	due    time.Time
	timer  *time.Timer
	share  time.Duration
	busy   bool
	began  time.Time
	rested time.Time // none begins before
}

// shortest is the least pause between looks.
const shortest = 2 * time.Millisecond

func (p *pace) want(at time.Time) {
	if p.due.IsZero() || at.Before(p.due) {
		p.due = at
	}
}

// set sets the timer to the next look.
func (p *pace) set() {
	if p.busy || p.due.IsZero() {
		p.timer.Stop()
		return
	}
	if p.due.Before(p.rested) {
		p.due = p.rested
	}
	p.timer.Reset(time.Until(p.due))
}

// ready says whether a look begins now.
func (p *pace) ready() bool { return !p.busy && !p.due.IsZero() && !time.Now().Before(p.due) }

func (p *pace) start() { p.busy, p.began, p.due = true, time.Now(), time.Time{} }

func (p *pace) rest() {
	p.busy, p.rested = false, time.Now().Add(max(shortest, (p.share-1)*time.Since(p.began)))
}

// looks is when a plan is made anew. What can be hidden by itself does not wait
// for it.
type looks struct {
	pace
	// news is what asked for the next one first, zero when nothing did, asked
	// the news that the one that is made answers.
	news, asked time.Time
	// done gives what was made.
	done chan looked
}

// looked is a plan that was made anew.
type looked struct {
	p   *plan.Plan
	err error
}

// share is to the making of plans what promptShare is to taking back: together
// they make a quarter.
const share = 6

func newLooks() *looks {
	return &looks{pace: pace{due: time.Now(), timer: time.NewTimer(0), share: share}, done: make(chan looked, 1)}
}

// want asks for a look at a moment, because of news.
func (l *looks) want(at, news time.Time) {
	l.pace.want(at)
	if l.news.IsZero() {
		l.news = news
	}
}

// begin begins to make p anew.
func (l *looks) begin(ctx context.Context, p *plan.Plan) {
	l.start()
	l.asked, l.news = l.news, time.Time{}
	go func() {
		now, err := p.Again(ctx)
		l.done <- looked{now, err}
	}()
}
