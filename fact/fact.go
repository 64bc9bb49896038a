// Package fact says what happened: the events of a session as plain values. It
// is pure; where facts are kept is another package's matter.
package fact

import "time"

// Kind is what a fact is about. Kinds are only ever added.
type Kind string

// The kinds.
const (
	// Intent: a command is about to run. An intent without an outcome is how
	// a crash looks.
	Intent Kind = "command/intent"
	// Outcome: a command has ended.
	Outcome Kind = "command/outcome"
	// Denial: something was refused.
	Denial Kind = "denial"
	// Finding: a command left something that would run on the host later.
	Finding Kind = "finding"
)

// Fact is one thing that happened. It never holds a secret: who makes one
// leaves values out or has them redacted.
type Fact struct {
	Kind Kind      `json:"kind"`
	Time time.Time `json:"time"`
	// ID joins an intent with its outcome.
	ID string `json:"id,omitempty"`
	// What says it in one line.
	What string `json:"what"`
	// Exit is a command's status, in an Outcome.
	Exit int `json:"exit,omitempty"`
}

// Open returns the intents that have no outcome, in the order of facts: what
// was under way when the writer died.
func Open(facts []Fact) []Fact {
	ended := map[string]bool{}
	for _, f := range facts {
		if f.Kind == Outcome {
			ended[f.ID] = true
		}
	}
	var open []Fact
	for _, f := range facts {
		if f.Kind == Intent && !ended[f.ID] {
			open = append(open, f)
		}
	}
	return open
}
