package tether

import (
	"context"
	"time"

	"github.com/tether-sandbox/tether/fact"
	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/enforce"
)

// StartTurn begins a turn: nothing narrows until it ends, and what this Session
// runs belongs to it. That the machine can hold the policy is made sure of
// first, by really starting something, once for each policy. A Session has one
// turn at a time; others that take part in the same session have their own.
func (s *Session) StartTurn(ctx context.Context, what string) error {
	e, err := s.now()
	if err != nil {
		return err
	}
	if err := s.prove(ctx, e); err != nil {
		return err
	}
	id := s.newID()
	if !s.turn.CompareAndSwap(nil, &id) {
		return fault.New(fault.UsageInvalid, "a turn is open already").WithHint("call EndTurn first")
	}
	err = s.record(func(st fact.State) ([]fact.Fact, error) {
		return append(st.Begin(s.fallback), fact.Fact{Kind: fact.TurnStart, ID: id, Time: time.Now(), What: what, By: s.by}), nil
	})
	if err != nil {
		s.turn.Store(nil)
	}
	return err
}

// EndTurn ends the turn that is open; without one it does nothing.
func (s *Session) EndTurn(context.Context) error {
	id := s.turn.Swap(nil)
	if id == nil {
		return nil
	}
	return s.record(func(fact.State) ([]fact.Fact, error) {
		return []fact.Fact{{Kind: fact.TurnEnd, ID: *id, Time: time.Now(), By: s.by}}, nil
	})
}

// openTurn returns the turn that is open, or nothing.
func (s *Session) openTurn() string {
	if id := s.turn.Load(); id != nil {
		return *id
	}
	return ""
}

// prove starts something harmless under a policy, unless that has been done.
func (s *Session) prove(ctx context.Context, e effect) error {
	if e.kind == enforce.Unconfined {
		return nil
	}
	s.provedMu.Lock()
	defer s.provedMu.Unlock()
	if s.proved != nil && s.proved.same(e) {
		return nil
	}
	if _, err := s.attempt(ctx, Command{}, []string{"true"}, e, nil); err != nil {
		return err
	}
	s.proved = &e
	return nil
}
