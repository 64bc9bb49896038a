// Package fact says what happened: the events of a session as plain values,
// the state that they add up to, and what may follow from that state. It is
// pure: it reads no clock and no file, and where facts are kept is another
// package's matter.
//
// A [State] is a fold over facts, nothing else: whoever has the facts has the
// state, and a prefix of the facts has a state too. What may be done is asked
// of the state ([State.EnterMode], [State.Approve] and others), which answers
// with the facts to record or with a *fault.Error; recording them is what
// makes the change.
package fact

import (
	"encoding/json"
	"time"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/policy"
)

// Kind is what a fact is about. Kinds are only ever added; a reader keeps and
// skips those that it does not know.
type Kind string

// The kinds, with the fields that each one uses besides Kind, Time, What, By,
// Why and Turn.
const (
	// Start: a session begins in a World, on a Workspace, under a Policy. A
	// child's has its Parent and, in Mode, the ceiling that it can never exceed.
	Start Kind = "session/start"
	// Mode: the sandbox mode is now Mode. Uses names the grant of a widening.
	Mode Kind = "sandbox/mode"
	// PresetSet: mode and approval policy are now those of Preset, set by
	// Origin. Uses names the grant of a widening.
	PresetSet Kind = "permission/preset"
	// ApprovalSet: the approval policy is now Approval.
	ApprovalSet Kind = "approval/policy"
	// TurnStart and TurnEnd: a turn, named by ID, begins and ends.
	TurnStart Kind = "turn/start"
	TurnEnd   Kind = "turn/end"
	// Intent: a command, named by ID, is about to run. An intent without an
	// outcome is how a crash looks.
	Intent Kind = "command/intent"
	// Use: the running command ID relies on what Uses names as well, from now on.
	Use Kind = "command/use"
	// Outcome: the command ID has ended, with Exit or Code.
	Outcome Kind = "command/outcome"
	// Edit: Path is about to be changed.
	Edit Kind = "edit"
	// Fetch: Host is about to be asked.
	Fetch Kind = "fetch"
	// Denial: something was refused, with Code, by Rule; Remedy is the one
	// thing that would allow it. With an ID it also answers that Ask.
	Denial Kind = "denial"
	// Finding: a command left Path, which would run on the host later.
	Finding Kind = "finding"
	// Ask: the Grant, named by ID, was asked for.
	Ask Kind = "ask"
	// GrantGiven: By approved the Grant, named by ID. It answers the Ask of
	// the same ID, if there is one.
	GrantGiven Kind = "grant"
	// Revoke: the grant ID ends.
	Revoke Kind = "revoke"
	// ChildRun: the session ID is a child, with Mode as its ceiling; with
	// Ended, it is none any more.
	ChildRun Kind = "child"
	// Note: a remark without effect.
	Note Kind = "note"
)

// Fact is one thing that happened. Every kind uses some of the fields. It
// never holds a secret: who makes one leaves values out or has them redacted.
//
// Values that a later version may add to (modes, presets, ...) are text here,
// so that a fact from that version survives; [State] reads what it does not
// know as the strictest.
type Fact struct {
	Kind Kind      `json:"kind,omitempty"`
	Time time.Time `json:"time,omitzero"`
	// ID joins facts: an intent with its outcome, an ask with its grant.
	ID string `json:"id,omitempty"`
	// Turn is the turn in which it happened, empty between turns.
	Turn string `json:"turn,omitempty"`
	// What says it in one line.
	What string `json:"what,omitempty"`
	// By is who caused it, Why the reason that was given.
	By  Actor  `json:"by,omitempty"`
	Why string `json:"why,omitempty"`
	// Uses are the grants that it relies on. A grant for once is spent by it.
	Uses []string `json:"uses,omitempty"`

	World     string `json:"world,omitempty"`
	Workspace string `json:"workspace,omitempty"`
	Parent    string `json:"parent,omitempty"`
	// Policy is a policy.Policy as JSON, without values of variables.
	Policy string `json:"policy,omitempty"`

	Mode     string `json:"mode,omitempty"` // as policy.Profile spells it
	Preset   Preset `json:"preset,omitempty"`
	Origin   Origin `json:"origin,omitempty"`
	Approval string `json:"approval,omitempty"` // as Approval spells it

	Exit int        `json:"exit,omitempty"`
	Code fault.Code `json:"code,omitempty"`

	Path   string `json:"path,omitempty"`
	Host   string `json:"host,omitempty"`
	Rule   string `json:"rule,omitempty"`
	Remedy string `json:"remedy,omitempty"`

	Grant *Grant `json:"grant,omitempty"`
	Ended bool   `json:"ended,omitempty"`

	// extra are the fields of the future, as they were found.
	extra map[string]json.RawMessage
}

// ModeFact says that a mode is entered: a shorthand that spells the profile.
func ModeFact(p policy.Profile, by Actor) Fact {
	return Fact{Kind: Mode, Mode: p.String(), By: by}
}

// Known tells whether this version knows the kind of f and every field in it.
func (f Fact) Known() bool { return len(f.extra) == 0 && f.Kind.Known() }

// Known tells whether this version knows the kind.
func (k Kind) Known() bool {
	switch k {
	case Start, Mode, PresetSet, ApprovalSet, TurnStart, TurnEnd, Intent, Use, Outcome, Edit, Fetch,
		Denial, Finding, Ask, GrantGiven, Revoke, ChildRun, Note:
		return true
	}
	return false
}

// Open returns the intents that have no outcome, in the order of facts: what
// was under way when the writer died.
func Open(facts []Fact) []Fact {
	s := Fold(facts)
	return s.Running
}
