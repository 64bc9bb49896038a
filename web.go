package tether

import (
	"context"
	"errors"
	"net"
	"reflect"
	"slices"
	"sync"

	"github.com/tether-sandbox/tether/fact"
	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/egress"
	"github.com/tether-sandbox/tether/policy"
)

// privateVariable lets our own requests reach private addresses.
const privateVariable = "TETHER_WEB_ALLOW_PRIVATE"

// Web is what requests that are made in the caller's own process may reach, for
// tools that fetch. It dials, under the rules that commands meet at the gate,
// and knows the secrets that must not leave or come back. It speaks no protocol.
//
// It is safe for concurrent use, and sees secrets as they were when it was
// opened: open it anew for each request.
type Web struct {
	act     *act
	dialer  egress.Dialer
	red     *redactor
	widened []string

	mu      sync.Mutex
	denials []Denial
}

// Web opens the web for one request, to url, under [Options.Fetch] or else under
// the policy's network. Without a network it fails with EGRESS_DENIED. In a
// recorded session the request is recorded now, and its end by Done.
//
// When the caller has TETHER_WEB_ALLOW_PRIVATE=1, the caller's own loopback and
// private networks are open, too, but not the metadata of clouds; Widened says
// so.
func (s *Session) Web(ctx context.Context, url string) (*Web, error) {
	w := &Web{act: &act{s: s, what: "fetch " + shellWord(url)}}
	err := errStale
	for try := 0; errors.Is(err, errStale) && try < planTries; try++ {
		var e effect
		if e, err = s.now(); err == nil {
			err = w.open(ctx, e)
		}
	}
	if errors.Is(err, errStale) {
		err = fault.Wrap(fault.IsolationUnavailable, "the session does not hold still", err)
	}
	if err != nil {
		w.Done(err)
		return nil, err
	}
	return w, nil
}

// open opens it under an effect.
func (w *Web) open(ctx context.Context, e effect) error {
	s := w.act.s
	network := s.fetchNetwork(e)
	if network.Mode == policy.Offline {
		return fault.New(fault.EgressDenied, "the policy has no network for fetching").WithHint("--fetch public")
	}
	rules, err := egress.Compile(network)
	if err != nil {
		return err
	}
	upstream, err := egress.UpstreamOf(network, s.environ)
	if err != nil {
		return err
	}
	w.widened = nil
	if slices.Contains(s.environ, privateVariable+"=1") {
		rules = rules.WithPrivate()
		w.widened = []string{privateVariable + " opens private addresses to fetch"}
	}
	p, err := s.planFor(ctx, e, "")
	if err != nil {
		return err
	}
	w.red = s.redactor(e, p)
	w.dialer = egress.Dialer{Rules: rules, Resolver: s.resolver, Upstream: upstream, Denied: func(d egress.Denial) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.denials = append(w.denials, Denial{What: d.String(), Rule: d.Rule, Code: fault.EgressDenied, Remedy: d.Remedy})
	}}
	return w.act.begin(e, fact.Fact{Kind: fact.Fetch, Uses: e.uses()})
}

// Done says how the request ended.
func (w *Web) Done(err error) { w.act.end(err) }

// fetchNetwork is what our own requests may reach under an effect. What fetching
// may is no part of a policy; hosts that are granted are.
func (s *Session) fetchNetwork(e effect) policy.Network {
	if s.fetch == nil || s.childID == "" && s.parent != nil {
		return e.policy.Network // a child that goes on in another process has what its policy says
	}
	n := *s.fetch
	for _, h := range e.grants {
		if h.Host != "" && n.Mode == policy.Gated && s.parent == nil {
			n.Allow = append(slices.Clip(n.Allow), h.Host)
		}
	}
	return n
}

// fetchOfChild is what a child may reach whose policy comes to p under e, where
// that is not what its policy says: what its parent may if its network is the
// same, else no more than either.
func (s *Session) fetchOfChild(e effect, p policy.Policy) *policy.Network {
	switch {
	case s.fetch == nil:
		return nil
	case s.childID == "" && s.parent != nil:
		return nil
	case reflect.DeepEqual(p.Network, e.policy.Network):
		return s.fetch
	}
	above := p
	above.Network = *s.fetch
	met := policy.Meet(p, above).Network
	return &met
}

// DialContext dials an address of the form host:port, by "tcp", if the rules
// allow it: the name before it is looked up, and every address before any is
// dialled. A denial is a *fault.Error with EGRESS_DENIED.
func (w *Web) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return w.dialer.DialContext(ctx, network, address)
}

// Secret returns the name of a secret that text holds, other than those of
// variables that the policy passes.
func (w *Web) Secret(text string) (name string, found bool) {
	if w.red == nil {
		return "", false
	}
	<-w.red.ready
	return w.red.sent.FindString(text)
}

// Redact returns text with [REDACTED:NAME] in place of secrets. Redacted counts
// all of them.
func (w *Web) Redact(text string) string { return w.red.text(text) }

// Redacted counts what Redact has replaced so far, by name.
func (w *Web) Redacted() []Redaction {
	if w.red == nil {
		return nil
	}
	return w.red.tally.Counts()
}

// Denials are the connections that were refused so far.
func (w *Web) Denials() []Denial {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.denials)
}

// Widened names what the environment has widened.
func (w *Web) Widened() []string { return w.widened }
