package tether

import (
	"cmp"
	"context"
	"sync"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/egress"
	"github.com/tether-sandbox/tether/internal/egress/gate"
	"github.com/tether-sandbox/tether/policy"
)

// live asks about hosts while the command that they were refused to runs, one
// question at a time. What is granted holds for the command's next try.
type live struct {
	s   *Session
	e   effect
	id  string // of the command's intent
	why string

	mu      sync.Mutex
	wanted  int // how many questions were wanted
	closed  bool
	queue   chan wish
	done    chan struct{}
	granted sync.Map // hosts
	policy  policy.Policy
}

// wish is one host that was refused.
type wish struct {
	egress.Denial
	gate *gate.Gate
}

// askLive returns what asks during a command, or nil where nobody can be asked
// then.
func (s *Session) askLive(ctx context.Context, e effect, a *act, why string) *live {
	to, ok := s.approver.(LiveApprover)
	if !ok || a == nil || e.policy.Network.Mode != policy.Gated || !to.WhileRunning(ctx) {
		return nil
	}
	l := &live{s: s, e: e, id: a.id, why: why, queue: make(chan wish, offers), done: make(chan struct{}), policy: e.policy}
	go l.run(ctx)
	return l
}

// denied takes what the gate has refused. It does not block.
func (l *live) denied(d egress.Denial, g *gate.Gate) {
	h := hostOf(d)
	if h == "" || !g.Listens(cmp.Or(d.Port, usualPort)) || cmp.Or(d.Code, fault.EgressDenied) != fault.EgressDenied {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.wanted == offers {
		return
	}
	if _, asked := l.s.offered.LoadOrStore(h, true); asked {
		return
	}
	l.wanted++
	l.queue <- wish{d, g} // it holds as many as are wanted
}

func (l *live) run(ctx context.Context) {
	defer close(l.done)
	for w := range l.queue {
		l.put(ctx, w)
	}
}

// put asks about one host, if a grant would open it for this command.
func (l *live) put(ctx context.Context, w wish) {
	port := cmp.Or(w.Port, usualPort)
	g, ok := l.s.hostGrant(Denial{host: hostOf(w.Denial)})
	if !ok {
		return
	}
	wide, useful := widened(l.policy, g)
	if l.e.parent != nil {
		wide = policy.Meet(wide, l.e.parent.policy)
	}
	rules, err := egress.Compile(wide.Network)
	if !useful || err != nil || !rules.Decide(w.Name, w.Addr, port, egress.TCP).Allow {
		return
	}
	if _, _, err := l.s.ask(ctx, g, w.Err(), l.why, l.id); err != nil {
		return
	}
	l.policy = wide
	l.granted.Store(g.Host, true)
	w.gate.Rule(rules)
}

// end waits for a question that is still open, and says of each denial what came
// of it.
func (l *live) end(denials []Denial) {
	if l == nil {
		return
	}
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		close(l.queue)
	}
	l.mu.Unlock()
	<-l.done
	for i := range denials {
		d := &denials[i]
		if _, ok := l.granted.Load(d.host); ok {
			d.Remedy, d.host = "", ""
			d.Rule += "; granted while the command ran"
		}
	}
}
