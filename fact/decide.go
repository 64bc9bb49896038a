package fact

import (
	"fmt"
	"slices"
	"time"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/policy"
)

// Default is what holds where a session has no fact of its own: a preset, and
// whether the deployment or the user's settings say so. The zero value allows
// nothing.
type Default struct {
	Preset Preset
	Origin Origin
	// Never turns the preset's questions off.
	Never bool
}

// bundle is the pair that d comes to.
func (d Default) bundle() Bundle {
	b, _ := d.Preset.Bundle()
	if d.Never {
		b.Approval = Never
	}
	return b
}

// Permissions is what is in force.
type Permissions struct {
	Bundle
	// Preset is Custom, and Origin empty, once the pair is not the one that
	// the last preset stands for.
	Preset Preset
	Origin Origin
}

// Permissions derives what is in force from the facts and, where there are
// none, from d.
func (s State) Permissions(d Default) Permissions {
	base, _ := d.Preset.Bundle()
	p := Permissions{Bundle: d.bundle(), Preset: d.Preset, Origin: d.Origin}
	if s.preset.is {
		p.Preset, p.Origin = s.preset.value, s.origin
		base, _ = s.preset.value.Bundle()
		p.Bundle = base
	}
	if s.mode.is {
		p.Mode = s.mode.value
	}
	if s.approval.is {
		p.Approval = s.approval.value
	}
	if s.Parent != "" {
		p.Mode = min(p.Mode, s.Ceiling)
	}
	if _, known := p.Preset.Bundle(); !known || p.Bundle != base {
		p.Preset, p.Origin = Custom, ""
	}
	return p
}

// InTurn tells whether a turn is open.
func (s State) InTurn() bool { return len(s.Turns) > 0 }

// InForce returns the grants in force for somebody in a turn, or between turns
// when turn is empty or not open. Inside a turn a grant that was in force at
// its beginning does not expire.
func (s State) InForce(turn string, now time.Time) []Held {
	at := s.clock(turn, now)
	var live []Held
	for _, h := range s.Grants {
		if h.live(at) {
			live = append(live, h)
		}
	}
	return live
}

// Change says who wants a change, and on what ground.
type Change struct {
	By Actor
	// Grant is the ID of the approved grant that a widening relies on.
	Grant string
	// Turn is the turn in which it is wanted, empty between turns.
	Turn string
	// At is now: what expires is judged by it.
	At  time.Time
	Why string
}

// Begin returns what must be recorded before the first turn starts, so that
// later defaults cannot reach the session: the part of d that no fact says.
// Afterwards it returns nothing.
func (s State) Begin(d Default) []Fact {
	switch {
	case s.Started || s.mode.is && s.approval.is:
		return nil
	case s.mode.is:
		return []Fact{{Kind: ApprovalSet, Approval: d.bundle().Approval.String(), By: System}}
	case s.approval.is:
		return []Fact{ModeFact(d.bundle().Mode, System)}
	}
	facts := []Fact{{Kind: PresetSet, Preset: d.Preset, Origin: d.Origin, By: System}}
	if b, _ := d.Preset.Bundle(); b != d.bundle() {
		facts = append(facts, Fact{Kind: ApprovalSet, Approval: d.bundle().Approval.String(), By: System})
	}
	return facts
}

// EnterMode answers a request for a mode with the facts to record: none, and
// success, when it is already in force. Narrowing is for those who decide, and
// not while a turn is open (SANDBOX_NARROW_DENIED); a widening of a started
// session needs a grant in force, and none lifts a child above its parent
// (APPROVAL_DENIED).
func (s State) EnterMode(to policy.Profile, c Change, d Default) ([]Fact, error) {
	if same, err := s.mayEnter(to, c, d); same || err != nil {
		return nil, err
	}
	f := c.fact(ModeFact(to, c.By))
	return append(s.Begin(d), f), nil
}

// SelectPreset is EnterMode for a preset. It changes the approval policy too,
// with the rules of SetApproval.
func (s State) SelectPreset(p Preset, c Change, d Default) ([]Fact, error) {
	b, ok := p.Bundle()
	if !ok {
		_, err := ParsePreset(string(p))
		return nil, err
	}
	now := s.Permissions(d)
	if now.Preset == p && now.Origin == Selection {
		return nil, nil
	}
	if _, err := s.mayEnter(b.Mode, c, d); err != nil {
		return nil, err
	}
	if _, err := s.mayApprove(b.Approval, c, d); err != nil {
		return nil, err
	}
	return []Fact{c.fact(Fact{Kind: PresetSet, Preset: p, Origin: Selection})}, nil
}

// SetApproval answers a request for an approval policy with the facts to
// record. It is for those who decide (APPROVAL_DENIED), and nothing turns to
// never while a turn is open (SANDBOX_NARROW_DENIED).
func (s State) SetApproval(a Approval, c Change, d Default) ([]Fact, error) {
	if same, err := s.mayApprove(a, c, d); same || err != nil {
		return nil, err
	}
	return append(s.Begin(d), c.fact(Fact{Kind: ApprovalSet, Approval: a.String()})), nil
}

func (c Change) fact(f Fact) Fact {
	f.By, f.Why, f.Turn, f.Time = c.By, c.Why, c.Turn, c.At
	if c.Grant != "" {
		f.Uses = []string{c.Grant}
	}
	return f
}

func (s State) mayEnter(to policy.Profile, c Change, d Default) (same bool, err error) {
	now := s.Permissions(d)
	switch {
	case to == now.Mode:
		return true, nil
	case to < policy.ReadOnly || to > policy.FullAccess:
		return false, fault.New(fault.PolicyInvalid, fmt.Sprintf("%v is no mode", to))
	case to < now.Mode && s.InTurn():
		return false, narrowDenied(fmt.Sprintf("a turn is open in %v and cannot be narrowed to %v", now.Mode, to))
	case to < now.Mode && !c.By.decides():
		return false, narrowDenied(fmt.Sprintf("only a person narrows a session, from %v to %v", now.Mode, to))
	case to < now.Mode:
		return false, nil
	case s.Parent != "" && to > s.Ceiling:
		return false, fault.New(fault.ApprovalDenied, fmt.Sprintf("a child session cannot be wider than %v, its parent's mode", s.Ceiling))
	case !s.Started && c.By.decides():
		return false, nil // nothing has begun: this is a choice, not a widening
	case !s.granted(to, c.fact(Fact{})):
		return false, fault.New(fault.ApprovalDenied, fmt.Sprintf("the session runs in %v; %v needs an approved grant", now.Mode, to))
	}
	return false, nil
}

func (s State) mayApprove(a Approval, c Change, d Default) (same bool, err error) {
	now := s.Permissions(d).Approval
	switch {
	case a == now:
		return true, nil
	case a != Never && a != Asking:
		return false, fault.New(fault.PolicyInvalid, fmt.Sprintf("%v is no approval policy", a))
	case a < now && s.InTurn():
		return false, narrowDenied("a turn is open and its questions cannot be turned off")
	case !c.By.decides():
		return false, fault.New(fault.ApprovalDenied, "only a person changes the approval policy")
	}
	return false, nil
}

func narrowDenied(what string) *fault.Error {
	return fault.New(fault.SandboxNarrowDenied, what).WithHint("change it between turns")
}

// Ask answers whether a question for g may be put, with the facts to record.
// Under the policy never it may not (APPROVAL_DENIED).
func (s State) Ask(id string, g Grant, c Change, d Default) ([]Fact, error) {
	if err := g.Check(); err != nil {
		return nil, err
	}
	if s.Permissions(d).Approval != Asking {
		return nil, fault.New(fault.ApprovalDenied, "the approval policy is never: no question is put")
	}
	return []Fact{c.fact(Fact{Kind: Ask, ID: id, Grant: &g})}, nil
}

// Approve answers with the fact that gives g under the name id. It is for
// those who decide; a model's word is APPROVAL_DENIED, whatever it asks.
func (s State) Approve(id string, g Grant, c Change) ([]Fact, error) {
	if err := g.Check(); err != nil {
		return nil, err
	}
	switch {
	case !c.By.decides():
		return nil, fault.New(fault.ApprovalDenied, "only a person or the embedding program approves a grant")
	case id == "" || s.held(id) >= 0:
		return nil, fault.New(fault.PolicyInvalid, "a grant needs a name of its own")
	}
	if to, err := policy.ParseProfile(g.Mode); err == nil && s.Parent != "" && to > s.Ceiling {
		return nil, fault.New(fault.ApprovalDenied, fmt.Sprintf("a child session cannot be wider than %v, its parent's mode", s.Ceiling))
	}
	return []Fact{c.fact(Fact{Kind: GrantGiven, ID: id, Grant: &g})}, nil
}

// Withdraw answers with the fact that revokes a grant: none for one that has
// already ended. Not while a turn is open (SANDBOX_NARROW_DENIED). Commands
// that run keep what they started with.
func (s State) Withdraw(id string, c Change) ([]Fact, error) {
	i := s.held(id)
	switch {
	case i < 0:
		return nil, fault.New(fault.PolicyInvalid, fmt.Sprintf("no grant is called %q", id))
	case s.Grants[i].Revoked || s.Grants[i].Spent:
		return nil, nil
	case s.InTurn():
		return nil, narrowDenied("a turn is open and keeps its grants")
	case !c.By.decides():
		return nil, narrowDenied("only a person revokes a grant")
	}
	return []Fact{c.fact(Fact{Kind: Revoke, ID: id})}, nil
}

// Spawn answers with the fact that a child session begins under a ceiling,
// which lies at most at the mode in force (APPROVAL_DENIED).
func (s State) Spawn(id string, ceiling policy.Profile, c Change, d Default) ([]Fact, error) {
	now := s.Permissions(d).Mode
	switch {
	case id == "" || slices.ContainsFunc(s.Children, func(k Child) bool { return k.ID == id }):
		return nil, fault.New(fault.PolicyInvalid, "a child needs a name of its own")
	case ceiling > now:
		return nil, fault.New(fault.ApprovalDenied, fmt.Sprintf("a child cannot have %v: the session runs in %v", ceiling, now))
	}
	return []Fact{c.fact(Fact{Kind: ChildRun, ID: id, Mode: ceiling.String()})}, nil
}

// InWorld checks that a part of the session runs where the session began
// (SANDBOX_SPLIT_WORLD).
func (s State) InWorld(world string) error {
	if !s.begun || world == s.World {
		return nil
	}
	return fault.New(fault.SandboxSplitWorld, fmt.Sprintf("the session lives in the world %q, not in %q", s.World, world))
}
