package tether

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"time"

	"github.com/tether-sandbox/tether/fact"
	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/plan"
	"github.com/tether-sandbox/tether/internal/world"
	"github.com/tether-sandbox/tether/policy"
)

// effect is what holds for one command or edit: the policy that the session was
// opened with, in the mode and with the grants that its facts come to, within
// what holds for its parent.
type effect struct {
	policy policy.Policy
	kind   enforce.Kind
	perm   fact.Permissions
	// grants are those that widen the policy; commands lift the guard's word.
	grants, commands []fact.Held
	parent           *effect
}

// same tells whether two effects are one: then a command that was planned under
// the one may start under the other.
func (e effect) same(f effect) bool {
	ids := func(list []fact.Held) (out []string) {
		for _, h := range list {
			out = append(out, h.ID)
		}
		return out
	}
	return e.kind == f.kind && e.perm == f.perm && reflect.DeepEqual(e.policy, f.policy) &&
		slices.Equal(ids(e.grants), ids(f.grants)) && slices.Equal(ids(e.commands), ids(f.commands))
}

// uses names the grants that something relies on which runs under e.
func (e effect) uses() []string {
	var ids []string
	for _, h := range e.grants {
		ids = append(ids, h.ID)
	}
	return ids
}

// now returns what holds at this moment.
func (s *Session) now() (effect, error) {
	st, err := s.state()
	if err != nil {
		return effect{}, err
	}
	return s.effect(st)
}

// effect returns what holds in a state. It reads the states of the sessions
// above, so that it may be asked while this session's is being changed.
func (s *Session) effect(st fact.State) (effect, error) {
	held, err := s.inForce(st)
	if err != nil {
		return effect{}, err
	}
	return s.with(st, held)
}

// bound returns what bounds a child at this moment. A grant for once is for one
// command of this session, and no child's.
func (s *Session) bound() (effect, error) {
	st, err := s.state()
	if err != nil {
		return effect{}, err
	}
	held, err := s.inForce(st)
	if err != nil {
		return effect{}, err
	}
	return s.with(st, slices.DeleteFunc(held, func(h fact.Held) bool { return h.Scope != fact.Session && h.Scope != fact.Project }))
}

// with returns what holds in a state with these grants.
func (s *Session) with(st fact.State, held []fact.Held) (effect, error) {
	e := effect{perm: st.Permissions(s.fallback), kind: s.provider}
	if e.perm.Mode == policy.Nothing {
		return e, fault.New(fault.PolicyInvalid, "the session's mode allows nothing").WithHint("tether session mode " + s.id + " read-only")
	}
	e.policy = inMode(s.opening, e.perm.Mode)
	for _, h := range held {
		if len(h.Command) > 0 {
			e.commands = append(e.commands, h)
			continue
		}
		if wide, ok := widened(e.policy, h.Grant); ok {
			e.policy = wide
			e.grants = append(e.grants, h)
		}
	}
	if s.parent != nil {
		above, err := s.parent.bound()
		if err != nil {
			return e, err
		}
		e.policy = policy.Meet(e.policy, above.policy)
		e.parent = &above
		e.perm.Mode = e.policy.Profile
	}
	if err := e.policy.Validate(); err != nil {
		return e, fault.Wrap(fault.ApprovalDenied, "the session's facts leave it nothing that could be run", err)
	}
	if e.policy.Profile == policy.FullAccess || s.noSandbox {
		e.kind = enforce.Unconfined
	}
	return e, nil
}

// inForce returns the grants in force for what this session does now. One for
// the project must still be one there.
func (s *Session) inForce(st fact.State) ([]fact.Held, error) {
	held := st.InForce(s.openTurn(), time.Now())
	if !slices.ContainsFunc(held, func(h fact.Held) bool { return h.Scope == fact.Project }) {
		return held, nil
	}
	project, err := s.projectGrants()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(held, func(h fact.Held) bool {
		return h.Scope == fact.Project && !slices.ContainsFunc(project, func(p fact.Held) bool { return p.ID == h.ID })
	}), nil
}

// inMode returns a policy under another mode, without what would contradict it.
func inMode(p policy.Policy, to policy.Profile) policy.Policy {
	if to != p.Profile {
		p = p.WithProfile(to)
	}
	switch to {
	case policy.ReadOnly:
		p.Read, p.Write = slices.Concat(p.Read, p.Write), nil
	case policy.FullAccess:
		p.Reads, p.Protect = policy.Reads{System: true}, policy.Protect{}
	}
	if to != policy.FullAccess {
		p.Env.NoScrub = false
	}
	return p
}

// widened returns a policy with what a grant opens in it, and whether it opens
// anything at all. It shares nothing with p that it changes.
func widened(p policy.Policy, g fact.Grant) (policy.Policy, bool) {
	switch {
	case p.Profile == policy.FullAccess:
	case g.Path != "" && g.Write && p.Profile == policy.WorkspaceWrite:
		p.Write = append(slices.Clip(p.Write), g.Path)
		return p, true
	case g.Path != "":
		p.Read = append(slices.Clip(p.Read), g.Path)
		return p, true
	case g.Host != "" && p.Network.Mode == policy.Gated:
		p.Network.Allow = append(slices.Clip(p.Network.Allow), g.Host)
		return p, true
	}
	return p, false
}

// neutral is a policy as two of them are compared whatever their modes are:
// those belong to the session's facts. Values of variables are none of the
// session's business, and what a command may take is each command's own.
func neutral(p policy.Policy) policy.Policy {
	p = inMode(p, policy.WorkspaceWrite)
	p.Env.Set = nil
	p.Limits.Time, p.Limits.OutputBytes = 0, 0
	return p
}

// within returns what of a policy lies within the one that a session began
// with, and whether that is all of it. Its profile means nothing: the mode is
// that of the facts.
func within(given, began policy.Policy) (policy.Policy, bool) {
	// These two mean nothing under workspace-write, so they are not compared there.
	commands := min(given.Commands, began.Commands)
	noScrub := given.Env.NoScrub && began.Env.NoScrub
	whole := neutral(given).Within(neutral(began)) && commands == given.Commands && noScrub == given.Env.NoScrub
	p := neutral(given)
	if !whole {
		p = policy.Meet(p, neutral(began))
	}
	p.Env.Set, p.Limits.Time, p.Limits.OutputBytes = given.Env.Set, given.Limits.Time, given.Limits.OutputBytes
	p.Commands, p.Env.NoScrub = commands, noScrub
	return p, whole
}

// policyText is a policy as it is recorded: without values of variables.
func policyText(p policy.Policy) (string, error) {
	p.Env.Set = nil
	b, err := json.Marshal(p)
	if err != nil || len(b) > fact.MaxText {
		return "", fault.Wrap(fault.PolicyInvalid, "the policy is too long to be recorded", err).WithHint("name fewer roots and rules")
	}
	return string(b), nil
}

// planFor pins what holds to the machine. What a child's plan opens, its
// parent's must open too, by identity.
func (s *Session) planFor(ctx context.Context, e effect, dir string) (*plan.Plan, error) {
	return s.pin(ctx, e, world.Options{Dir: dir, Tmp: s.tmp})
}

// pin is planFor with these options, of which it adds what the session knows.
// With a Tmp, places for what is shown below /tmp are made in it; without,
// nothing is changed.
func (s *Session) pin(ctx context.Context, e effect, o world.Options) (*plan.Plan, error) {
	o.Environ, o.Provider = s.environ, e.kind
	p, err := s.world.Plan(ctx, e.policy, o)
	if err != nil {
		return nil, err
	}
	if s.store != nil || s.approver != nil {
		s.scrub(p.Env)
	}
	if e.parent == nil || e.parent.policy.Profile == policy.FullAccess {
		return p, nil
	}
	above, err := s.parent.planFor(ctx, *e.parent, "")
	if err != nil {
		return nil, err
	}
	return p, plan.Within(p, above, plan.Here)
}
