package tether

import (
	"context"

	"github.com/tether-sandbox/tether/fact"
	"github.com/tether-sandbox/tether/fault"
)

// offers is how many questions are put after one command.
const offers = 3

// remedies names, in a recorded session, the grant that opens a host which was
// refused: the flag would not, since the session's policy is what it began with.
func (s *Session) remedies(res *Result) {
	if s.store == nil {
		return
	}
	for i := range res.Denials {
		if g, ok := s.hostGrant(res.Denials[i]); ok {
			res.Denials[i].Remedy = GrantCommand(s.id, g)
		}
	}
}

// hostGrant is the grant that would have allowed what was refused.
func (s *Session) hostGrant(d Denial) (fact.Grant, bool) {
	g := fact.Grant{Host: d.host, Scope: fact.Once}
	return g, d.host != "" && g.Check() == nil && s.unfit(g) == ""
}

// offer asks, after a command that was refused hosts, whether it may have them
// the next time; about each host once, whatever the answer is.
func (s *Session) offer(ctx context.Context, res *Result, why string) {
	if s.approver == nil {
		return
	}
	put := 0
	for i := range res.Denials {
		d := &res.Denials[i]
		g, ok := s.hostGrant(*d)
		if _, asked := s.offered.Load(d.host); !ok || asked || put == offers {
			continue
		}
		if s.tryGrant(ctx, g) != nil {
			continue
		}
		s.offered.Store(d.host, true)
		put++
		if _, _, err := s.ask(ctx, g, fault.New(d.Code, d.What+": "+d.Rule), why, ""); err == nil {
			d.Rule += "; granted by now, for the next try"
			d.Remedy = ""
		}
	}
}
