package fact

import (
	"strconv"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/policy"
)

// Approval says what happens when something needs an approval.
type Approval int

// The approval policies, from strict to wide.
const (
	// Never: no question is put; what would need one is refused.
	Never Approval = iota
	// Asking: the question is put. Without anybody to answer it is no.
	Asking
)

// String returns never or ask.
func (a Approval) String() string {
	switch a {
	case Never:
		return "never"
	case Asking:
		return "ask"
	}
	return "Approval(" + strconv.Itoa(int(a)) + ")"
}

// ParseApproval reads never or ask; any other text is POLICY_INVALID, and Never.
func ParseApproval(s string) (Approval, error) {
	switch s {
	case "never":
		return Never, nil
	case "ask":
		return Asking, nil
	}
	return Never, fault.New(fault.PolicyInvalid, "approval policy "+strconv.Quote(s)+" is neither ask nor never")
}

// Preset names a pair of sandbox mode and approval policy.
type Preset string

// The presets.
const (
	PresetReadOnly       Preset = "read-only"
	PresetWorkspaceWrite Preset = "workspace-write"
	PresetFullAccess     Preset = "danger-full-access"
	// Custom is every other pair. It is only ever derived: no fact sets it.
	Custom Preset = "custom"
)

// Bundle is what a preset comes to. The zero value allows nothing.
type Bundle struct {
	Mode     policy.Profile
	Approval Approval
}

// Bundle returns the pair of p. Of Custom, or of a name that is none, it
// returns false and the strictest pair.
func (p Preset) Bundle() (Bundle, bool) {
	switch p {
	case PresetReadOnly:
		return Bundle{policy.ReadOnly, Asking}, true
	case PresetWorkspaceWrite:
		return Bundle{policy.WorkspaceWrite, Asking}, true
	case PresetFullAccess:
		return Bundle{policy.FullAccess, Never}, true
	}
	return Bundle{}, false
}

// ParsePreset reads the name of a preset, full-access for danger-full-access.
// custom and any other text are POLICY_INVALID.
func ParsePreset(s string) (Preset, error) {
	if s == "full-access" {
		return PresetFullAccess, nil
	}
	if _, ok := Preset(s).Bundle(); ok {
		return Preset(s), nil
	}
	if Preset(s) == Custom {
		return "", fault.New(fault.PolicyInvalid, "custom is what a session drifts into, not a preset that can be chosen")
	}
	return "", fault.New(fault.PolicyInvalid, "no preset is called "+strconv.Quote(s)).
		WithHint("read-only, workspace-write or danger-full-access")
}

// Origin says what set a preset.
type Origin string

// The origins. The first two are defaults: they never touch a session that has
// started or in which somebody has chosen.
const (
	Deployment Origin = "deployment"
	Settings   Origin = "settings"
	Selection  Origin = "selection"
)

// Actor says who caused a fact.
type Actor string

// The actors.
const (
	// Person: somebody at a terminal or another surface of ours.
	Person Actor = "person"
	// Program: the program that embeds us, or its approver.
	Program Actor = "program"
	// Model: the agent. It can ask; it approves nothing.
	Model Actor = "model"
	// System: Tether itself, by defaults and settings.
	System Actor = "tether"
)

// decides tells whether a may approve, revoke and choose.
func (a Actor) decides() bool { return a == Person || a == Program }
