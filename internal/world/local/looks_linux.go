package local

import (
	"context"
	"time"

	"github.com/tether-sandbox/tether/internal/plan"
)

// looks is when a plan is made anew. It takes its time, and what can be hidden
// by itself does not wait for it; so one is made beside the rest.
type looks struct {
	// due is when the next one is made, zero for not at all; news is what asked
	// for it first, zero when nothing did.
	due, news time.Time
	timer     *time.Timer
	// done gives what was made.
	done chan looked

	busy         bool
	began, asked time.Time // asked is the news that the one that is made answers
	rested       time.Time // none begins before
}

// looked is a plan that was made anew.
type looked struct {
	p   *plan.Plan
	err error
}

// The pauses between looks. A command that changes things all the time gets no
// more of the machine spent on it than one part in share.
const (
	shortest = 2 * time.Millisecond
	share    = 4
)

func newLooks() *looks {
	return &looks{due: time.Now(), timer: time.NewTimer(0), done: make(chan looked, 1)}
}

// want asks for a look at a moment, because of news.
func (l *looks) want(at, news time.Time) {
	if l.due.IsZero() || at.Before(l.due) {
		l.due = at
	}
	if l.news.IsZero() {
		l.news = news
	}
}

// set sets the timer to the next look.
func (l *looks) set() {
	if l.busy || l.due.IsZero() {
		l.timer.Stop()
		return
	}
	if l.due.Before(l.rested) {
		l.due = l.rested
	}
	l.timer.Reset(time.Until(l.due))
}

// begin begins to make p anew.
func (l *looks) begin(ctx context.Context, p *plan.Plan) {
	l.busy, l.began, l.asked = true, time.Now(), l.news
	l.due, l.news = time.Time{}, time.Time{}
	go func() {
		now, err := p.Again(ctx)
		l.done <- looked{now, err}
	}()
}

// end says that it is made.
func (l *looks) end() {
	l.busy, l.rested = false, time.Now().Add(max(shortest, (share-1)*time.Since(l.began)))
}
