package tether

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tether-sandbox/tether/fact"
	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/factlog"
	"github.com/tether-sandbox/tether/internal/world"
	"github.com/tether-sandbox/tether/internal/world/local"
	"github.com/tether-sandbox/tether/policy"
)

// NewSessionID makes up a name for a session that is to be recorded: when it
// began, and chance.
func NewSessionID() string { return factlog.NewID(time.Now()) }

// projectPrefix begins the names of logs that hold the grants of a project.
const projectPrefix = "project-"

// ID names the session in the store; it is empty for one that is not recorded.
func (s *Session) ID() string { return s.id }

// Narrowed tells whether the session was continued with a policy that is wider
// than the one it began with, so that less holds than [Options] say.
func (s *Session) Narrowed() bool { return s.narrowed }

// Permissions is the mode and the approval policy in force. The mode of a child
// is never above that of its parent.
func (s *Session) Permissions() (fact.Permissions, error) {
	e, err := s.now()
	return e.perm, err
}

// State is what the session's facts add up to.
func (s *Session) State() (fact.State, error) { return s.state() }

// start opens a session's log and records what must stand in it before anything
// happens.
func (s *Session) start(o Options) error {
	if strings.HasPrefix(s.id, projectPrefix) {
		return fault.New(fault.UsageInvalid, "no session can be called "+strconv.Quote(s.id)+": such names are for the grants of projects")
	}
	place, err := s.world.Place(o.Policy, s.environ)
	if err != nil {
		return err
	}
	store, err := factlog.Open(place.State)
	if err != nil {
		return err
	}
	s.scrub(nil)
	if err := s.join(store, place, o); err != nil {
		s.Close()
		return err
	}
	return nil
}

// join takes part in the session's log.
func (s *Session) join(store *factlog.Store, place world.Place, o Options) error {
	s.store, s.place, s.tmp = store, place, s.id
	log, err := store.Session(s.id)
	if err != nil {
		return err
	}
	s.ledger = log
	if s.part, err = log.Attend(); err != nil {
		return err
	}
	project, err := s.projectGrants()
	if err != nil {
		return err
	}
	var parent string
	err = s.record(func(st fact.State) ([]fact.Fact, error) {
		var facts []fact.Fact
		if parent = st.Parent; st.World == "" && st.Workspace == "" {
			first, err := s.first(o)
			if err != nil {
				return nil, err
			}
			facts = append(facts, first)
		} else if err := s.resume(st, place, o); err != nil {
			return nil, err
		}
		facts = append(facts, s.endDead(st)...)
		for _, f := range facts {
			st.Add(f)
		}
		if st.Parent == "" {
			facts = append(facts, recall(st, project)...)
		}
		return facts, nil
	})
	if err != nil || parent == "" {
		return err
	}
	s.parent, err = resumeParent(store, parent, s)
	return err
}

// first is the fact that a session begins.
func (s *Session) first(o Options) (fact.Fact, error) {
	text, err := policyText(o.Policy)
	f := fact.Fact{Kind: fact.Start, Time: time.Now(), World: s.world.ID(), Workspace: s.place.Workspace, Policy: text, By: s.by}
	if o.parent != nil {
		f.Parent, f.Mode = o.parent.id, o.Policy.Profile.String()
	}
	return f, err
}

// startUnrecorded gives a session that is not recorded its /tmp, and a child its
// ceiling.
func (s *Session) startUnrecorded(keepTmp bool) (err error) {
	if keepTmp {
		if s.place, err = s.world.Place(s.opening, s.environ); err != nil {
			return err
		}
		if s.tmp, s.dropTmp, err = local.HoldTmp(s.place.State); err != nil {
			return err
		}
	}
	if s.parent == nil {
		return nil
	}
	return s.record(func(fact.State) ([]fact.Fact, error) {
		return []fact.Fact{{Kind: fact.Start, Time: time.Now(), World: s.world.ID(), Parent: "a session that is not recorded", Mode: s.opening.Profile.String()}}, nil
	})
}

// resume checks that a session goes on where it began, and takes of the policy
// what it began with.
func (s *Session) resume(st fact.State, place world.Place, o Options) error {
	if err := st.InWorld(s.world.ID()); err != nil {
		return err
	}
	if st.Workspace != place.Workspace {
		return fault.New(fault.SandboxSplitWorld, fmt.Sprintf("the session %s is about %q, not about %q", s.id, st.Workspace, place.Workspace)).
			WithHint("tether run --session " + s.id + " -C " + shellWord(st.Workspace) + " -- CMD")
	}
	if st.Policy == "" {
		return nil
	}
	began, err := readPolicy(st)
	if err != nil {
		return err
	}
	var whole bool
	s.opening, whole = within(s.opening, began)
	s.narrowed = !whole
	return nil
}

// readPolicy returns the policy that a session began with.
func readPolicy(st fact.State) (policy.Policy, error) {
	var p policy.Policy
	if err := json.Unmarshal([]byte(st.Policy), &p); err != nil {
		return p, fault.Wrap(fault.StoreUnavailable, "the session began with a policy that this version cannot read", err).
			WithHint("tether run --session new -- CMD")
	}
	return p, nil
}

// endDead ends the turns, and answers the questions, of parts that are gone.
func (s *Session) endDead(st fact.State) []fact.Fact {
	var facts []fact.Fact
	for _, t := range st.Turns {
		if part, _, _ := strings.Cut(t.ID, "."); !s.ledger.Alive(part) {
			facts = append(facts, fact.Fact{Kind: fact.TurnEnd, ID: t.ID, Time: time.Now(), By: fact.System, Why: "whoever began it is gone"})
		}
	}
	for _, q := range st.Asks {
		if part, _, _ := strings.Cut(strings.TrimPrefix(q.ID, grantPrefix), "."); !s.ledger.Alive(part) {
			facts = append(facts, fact.Fact{Kind: fact.Denial, ID: q.ID, Time: time.Now(), By: fact.System, Code: fault.ApprovalDenied,
				What: "whoever asked is gone", Grant: q.Grant})
		}
	}
	return facts
}

// fallbackOf is what holds in a session without facts, of somebody who gives no
// default: the preset of the policy's profile.
func fallbackOf(p policy.Profile) fact.Default {
	d := fact.Default{Preset: fact.PresetWorkspaceWrite, Origin: fact.Deployment}
	switch p {
	case policy.ReadOnly:
		d.Preset = fact.PresetReadOnly
	case policy.FullAccess:
		d.Preset = fact.PresetFullAccess
	}
	return d
}

// choose enters the mode that the session was opened with on purpose. In one
// without any mode yet, that is a choice, which later defaults do not reach.
func (s *Session) choose(ctx context.Context, p policy.Profile) error {
	r := Request{By: s.by, Why: "the session was opened with it"}
	st, err := s.state()
	if err != nil {
		return err
	}
	if st.Permissions(fact.Default{}).Mode != policy.Nothing {
		return s.EnterMode(ctx, p, r)
	}
	if err := s.SelectPreset(ctx, s.fallback.Preset, r); err != nil || !s.fallback.Never {
		return err
	}
	return s.SetApproval(ctx, fact.Never, r)
}

// newID names something in the session: no other part of it takes the same.
func (s *Session) newID() string {
	return s.part + "." + strconv.FormatUint(s.count.Add(1), 10)
}

// Request says who wants a change of a session, and why.
type Request struct {
	// By is who wants it. Only fact.Person and fact.Program decide; anybody
	// else needs an approval.
	By fact.Actor
	// Why is the reason that is recorded, and shown to whoever is asked.
	Why string
	// Grant is the ID of the approved grant that a widening relies on; empty
	// looks for one in force.
	Grant string
}

func (s *Session) change(r Request) fact.Change {
	c := fact.Change{By: r.By, Why: r.Why, Grant: r.Grant, Turn: s.openTurn(), At: time.Now()}
	if c.By == "" {
		c.By = fact.Model
	}
	return c
}

// EnterMode changes the mode. Asking for the one in force succeeds and changes
// nothing. A narrower one is SANDBOX_NARROW_DENIED while any turn of the session
// is open; a wider one, in a session that has begun, needs a grant, for which
// the approver is asked. Commands that run keep what they started with.
func (s *Session) EnterMode(ctx context.Context, to policy.Profile, r Request) error {
	return s.widening(ctx, to, r, func(st fact.State, c fact.Change) ([]fact.Fact, error) {
		return st.EnterMode(to, c, s.fallback)
	})
}

// SelectPreset changes mode and approval policy together, by the rules of both.
func (s *Session) SelectPreset(ctx context.Context, p fact.Preset, r Request) error {
	b, _ := p.Bundle()
	return s.widening(ctx, b.Mode, r, func(st fact.State, c fact.Change) ([]fact.Fact, error) {
		return st.SelectPreset(p, c, s.fallback)
	})
}

// SetApproval changes the approval policy. Only who decides may.
func (s *Session) SetApproval(_ context.Context, a fact.Approval, r Request) error {
	return s.record(func(st fact.State) ([]fact.Fact, error) {
		return st.SetApproval(a, s.change(r), s.fallback)
	})
}

// widening records a change of mode, and where a grant is missing asks for one.
func (s *Session) widening(ctx context.Context, to policy.Profile, r Request, decide func(fact.State, fact.Change) ([]fact.Fact, error)) error {
	var refused error
	var wider bool
	attempt := func() error {
		return s.record(func(st fact.State) ([]fact.Fact, error) {
			c := s.change(r)
			if c.Grant == "" {
				c.Grant = modeGrant(st, to, c)
			}
			facts, err := decide(st, c)
			refused, wider = err, to > st.Permissions(s.fallback).Mode && to <= policy.FullAccess && (st.Parent == "" || to <= st.Ceiling)
			return facts, err
		})
	}
	err := attempt()
	if refused == nil || !wider || fault.CodeOf(refused) != fault.ApprovalDenied {
		return err
	}
	id, _, err := s.ask(ctx, fact.Grant{Mode: to.String()}, refused, r.Why, "")
	if err != nil {
		return err
	}
	r.Grant = id
	return attempt()
}

// modeGrant finds a grant in force that allows to enter a mode.
func modeGrant(st fact.State, to policy.Profile, c fact.Change) string {
	for _, h := range st.InForce(c.Turn, c.At) {
		if widest, err := policy.ParseProfile(h.Mode); err == nil && h.Mode != "" && to <= widest {
			return h.ID
		}
	}
	return ""
}
