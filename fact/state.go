package fact

import (
	"slices"
	"time"

	"github.com/tether-sandbox/tether/policy"
)

// State is what the facts of one session add up to. The zero value is that of
// a session without facts. It holds for every list of facts: a fact that this
// version does not know, or that is not allowed to have an effect, has none
// and is counted in Skipped.
type State struct {
	// World, Workspace, Parent and Policy are those of the first session/start.
	World, Workspace, Parent, Policy string
	// Ceiling bounds the mode of a session that has a Parent, whatever its
	// own facts say.
	Ceiling policy.Profile
	// Started: a turn has begun, or a command, edit or fetch outside one.
	// From then on defaults are history and a widening needs a grant.
	Started bool
	// Turns are the open ones. A writer that died leaves its turn open; who
	// finds that out ends it.
	Turns []Turn
	// Running are the command intents without an outcome.
	Running []Fact
	// Asks are the questions without an answer.
	Asks []Fact
	// Grants are all that were ever given; see InForce.
	Grants []Held
	// Children are the running child sessions.
	Children []Child
	// Latest is the latest time of any fact. Clocks may run backwards; what
	// expires does not come back.
	Latest time.Time
	// Facts and Skipped count.
	Facts, Skipped int

	mode     set[policy.Profile]
	approval set[Approval]
	preset   set[Preset] // the last one set; Permissions says whether it still holds
	origin   Origin
	chosen   bool
	begun    bool
}

// Turn is an open turn.
type Turn struct {
	ID    string
	Since time.Time
}

// Child is a running child session.
type Child struct {
	ID      string
	Ceiling policy.Profile
}

type set[T any] struct {
	value T
	is    bool
}

// Fold returns the state that facts add up to.
func Fold(facts []Fact) State {
	var s State
	for _, f := range facts {
		s.Add(f)
	}
	return s
}

// Clone returns a copy that shares nothing that Add changes.
func (s State) Clone() State {
	s.Turns, s.Running, s.Asks = slices.Clone(s.Turns), slices.Clone(s.Running), slices.Clone(s.Asks)
	s.Grants, s.Children = slices.Clone(s.Grants), slices.Clone(s.Children)
	return s
}

// Add counts f in. It cannot fail: facts are what happened, and a state that
// could not be made of them would lock everybody out. What it refuses to
// believe is in the rules for each kind below.
func (s *State) Add(f Fact) {
	s.Facts++
	if f.Time.After(s.Latest) {
		s.Latest = f.Time
	}
	if !s.add(f) {
		s.Skipped++
	}
}

func (s *State) add(f Fact) bool {
	switch f.Kind {
	case Start:
		return s.start(f)
	case Mode:
		return s.enter(f)
	case PresetSet:
		return s.setPreset(f)
	case ApprovalSet:
		if f.By == Model {
			return false // who asks does not say whether asking is allowed
		}
		a, _ := ParseApproval(f.Approval)
		s.approval, s.chosen = set[Approval]{a, true}, true
	case TurnStart:
		s.Started = true
		s.Turns = append(without(s.Turns, func(t Turn) bool { return t.ID == f.ID }), Turn{f.ID, s.Latest})
	case TurnEnd:
		s.Turns = without(s.Turns, func(t Turn) bool { return t.ID == f.ID })
	case Intent:
		s.Started = true
		s.spend(f)
		s.Running = append(s.Running, f)
	case Use:
		s.spend(f)
	case Outcome:
		s.Running = without(s.Running, func(o Fact) bool { return o.ID == f.ID })
	case Edit, Fetch:
		s.Started = true
		s.spend(f)
	case Denial:
		s.answer(f.ID)
	case Ask:
		s.Asks = append(s.Asks, f)
	case GrantGiven:
		return s.grant(f)
	case Revoke:
		return s.revoke(f)
	case ChildRun:
		s.child(f)
	case Finding, Note:
	default:
		return false
	}
	return true
}

// start believes the first start alone: a session does not move.
func (s *State) start(f Fact) bool {
	if s.begun {
		return f.World == s.World && f.Workspace == s.Workspace && f.Parent == s.Parent
	}
	s.begun = true
	s.World, s.Workspace, s.Parent, s.Policy = f.World, f.Workspace, f.Parent, f.Policy
	s.Ceiling, _ = policy.ParseProfile(f.Mode)
	return true
}

// enter takes a mode that it cannot read for the strictest, and a widening of
// a started session that names no grant in force for nothing.
func (s *State) enter(f Fact) bool {
	to, _ := policy.ParseProfile(f.Mode)
	if s.widens(to) && !s.granted(to, f) {
		return false
	}
	s.spend(f)
	s.mode, s.chosen = set[policy.Profile]{to, true}, true
	return true
}

// setPreset leaves alone, on behalf of a default, a session that has started
// or in which somebody has chosen; a selection is for those who decide. A preset that it does not know is the
// strictest pair; custom is none that can be set.
func (s *State) setPreset(f Fact) bool {
	switch f.Origin {
	case Deployment, Settings:
		if s.Started || s.chosen {
			return false
		}
	case Selection:
		if !f.By.decides() {
			return false
		}
	default:
		return false
	}
	if f.Preset == Custom {
		return false
	}
	b, _ := f.Preset.Bundle()
	if s.widens(b.Mode) && !s.granted(b.Mode, f) {
		return false
	}
	s.spend(f)
	s.mode, s.approval = set[policy.Profile]{b.Mode, true}, set[Approval]{b.Approval, true}
	s.preset, s.origin = set[Preset]{f.Preset, true}, f.Origin
	s.chosen = f.Origin == Selection
	return true
}

func (s *State) widens(to policy.Profile) bool {
	return s.Started && s.mode.is && to > s.mode.value
}

func (s *State) granted(to policy.Profile, f Fact) bool {
	at := s.clock(f.Turn, f.Time)
	return slices.ContainsFunc(s.Grants, func(h Held) bool {
		return slices.Contains(f.Uses, h.ID) && h.live(at) && h.coversMode(to)
	})
}

func (s *State) spend(f Fact) {
	for _, id := range f.Uses {
		if i := s.held(id); i >= 0 && s.Grants[i].Scope != Session && s.Grants[i].Scope != Project {
			s.Grants[i].Spent = true
		}
	}
}

// grant believes what somebody who decides has approved, under a new name, and
// of which this version understands every word: a field that it does not know
// may be one that narrows.
func (s *State) grant(f Fact) bool {
	if f.ID == "" || f.Grant == nil || !f.Known() || !f.By.decides() || s.held(f.ID) >= 0 || f.Grant.Check() != nil {
		return false
	}
	s.answer(f.ID)
	s.Grants = append(s.Grants, Held{ID: f.ID, Grant: *f.Grant, By: f.By, Why: f.Why, Since: f.Time})
	return true
}

func (s *State) revoke(f Fact) bool {
	i := s.held(f.ID)
	if i < 0 {
		return false
	}
	s.Grants[i].Revoked = true
	return true
}

func (s *State) child(f Fact) {
	s.Children = without(s.Children, func(c Child) bool { return c.ID == f.ID })
	if !f.Ended {
		ceiling, _ := policy.ParseProfile(f.Mode)
		s.Children = append(s.Children, Child{f.ID, ceiling})
	}
}

func (s *State) answer(id string) {
	s.Asks = without(s.Asks, func(a Fact) bool { return a.ID == id })
}

func (s *State) held(id string) int {
	return slices.IndexFunc(s.Grants, func(h Held) bool { return h.ID == id })
}

// clock returns the time by which something in a turn is judged: the turn's
// beginning, because nothing narrows inside one. Between turns it is now.
func (s *State) clock(turn string, now time.Time) time.Time {
	for _, t := range s.Turns {
		if t.ID == turn && turn != "" {
			return t.Since
		}
	}
	if s.Latest.After(now) {
		return s.Latest
	}
	return now
}

// without drops what matches, in place; an empty list is nil.
func without[T any](list []T, drop func(T) bool) []T {
	list = slices.DeleteFunc(list, drop)
	if len(list) == 0 {
		return nil
	}
	return list
}
