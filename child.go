package tether

import (
	"context"
	"strconv"

	"github.com/tether-sandbox/tether/fact"
	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/factlog"
	"github.com/tether-sandbox/tether/policy"
)

// Child opens a session within this one, for a sub-agent. What holds in it is,
// at every command, what of p lies within what holds here by then: a child never
// has more than its parent, whatever is granted to it, and loses what its parent
// loses. What p does not have, or this session does not have now, the child
// never gets: a network that is off stays off, and limits only shrink.
//
// It shares the approver, and has a turn, grants and a /tmp of its own. It is
// recorded if this session is, and ends with its Close or with this session.
func (s *Session) Child(ctx context.Context, p policy.Policy) (*Session, error) {
	e, err := s.bound()
	if err != nil {
		return nil, err
	}
	if err := p.Validate(); err != nil {
		return nil, err
	}
	p = policy.Meet(p, e.policy)
	if err := p.Validate(); err != nil {
		return nil, fault.Wrap(fault.SandboxViolation, "nothing of the child's policy lies within its parent's", err)
	}
	o := Options{Policy: p, Provider: string(s.provider), NoSandbox: s.noSandbox, Environ: s.environ, Approver: s.approver,
		By: s.by, Default: fallbackOf(p.Profile), KeepTmp: s.tmp != "", Fetch: s.fetchOfChild(e, p), parent: s}
	o.Default.Never = e.perm.Approval == fact.Never
	name := "child-" + s.newID()
	if s.store != nil {
		o.Session = NewSessionID()
		name = o.Session
	}
	// The parent first: a child that nobody spawned must not be there.
	err = s.record(func(st fact.State) ([]fact.Fact, error) {
		facts, err := st.Spawn(name, p.Profile, s.change(Request{By: s.by}), s.fallback)
		return append(st.Begin(s.fallback), facts...), err
	})
	if err != nil {
		return nil, err
	}
	child, err := Open(ctx, o)
	if err != nil {
		return nil, err
	}
	child.childID = name
	// By identity, too, and before anything runs.
	now, err := child.now()
	if err == nil {
		_, err = child.planFor(ctx, now, "")
	}
	if err != nil {
		child.Close()
		return nil, err
	}
	return child, nil
}

// resumeParent opens the parent of a child that goes on in another process, to
// be asked what holds in it. It must be there, with facts that say so: there is
// no default for it.
func resumeParent(store *factlog.Store, id string, child *Session) (*Session, error) {
	st, err := fold(store, id)
	if err != nil {
		return nil, fault.Wrap(fault.CodeOf(err), "the parent "+strconv.Quote(id)+" of the session "+child.id+" cannot be asked", err)
	}
	p := &Session{id: id, provider: child.provider, noSandbox: child.noSandbox, environ: child.environ, world: child.world,
		by: fact.System, part: "0", ledger: &memory{}}
	p.scrubbed.Store(child.scrubbed.Load())
	if p.opening, err = readPolicy(st); err != nil {
		return nil, err
	}
	if p.place, err = p.world.Place(p.opening, p.environ); err != nil {
		return nil, err
	}
	own, err := factlog.Open(p.place.State)
	if err != nil {
		return nil, err
	}
	p.store = own
	log, err := own.Session(id)
	if err != nil {
		return nil, joinClose(err, own.Close)
	}
	p.ledger = log
	if st.Parent == "" {
		return p, nil
	}
	if p.parent, err = resumeParent(store, st.Parent, p); err != nil {
		return nil, joinClose(err, p.Close)
	}
	return p, nil
}

func joinClose(err error, close func() error) error {
	_ = close() // the first failure is the one to tell
	return err
}
