// Package tool is what an agent may call: bash runs a command, edit reads and
// changes files, fetch gets a document from the web, all in a session of package
// tether and under its policy.
//
// The inputs and outputs are plain values with JSON names; [Specs] describes
// them to a model, with JSON schemas, and [Tools.Call] takes what the model
// answers. A harness in Go can also call [Tools.Bash] and [Tools.Edit].
//
// What an agent asks for never widens what the session allows: there is no
// argument for that. An action that is refused is an output with an [Error],
// which carries a stable code, the reason and a hint, and nothing of it was
// done. The failure of a command is an ordinary output.
package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/tether-sandbox/tether"
	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/policy"
)

// The names of the tools.
const (
	BashName  = "bash"
	EditName  = "edit"
	FetchName = "fetch"
)

// Spec describes one tool to a model and to the program that runs it.
type Spec struct {
	Name        string
	Title       string
	Description string
	// Input and Output are JSON schemas of what the tool takes and returns.
	Input, Output json.RawMessage
	// ReadOnly: no call changes a file. Destructive: a call may change or
	// remove what is there. OpenWorld: a call may reach the network. They
	// follow from the policy and are hints, not the enforcement.
	ReadOnly, Destructive, OpenWorld bool
}

// Specs describes the tools as they are under a policy.
func Specs(pol policy.Policy) []Spec {
	reads := pol.Profile == policy.ReadOnly
	bash, edit := bashText, editText
	if reads {
		bash += " The workspace is read-only: only commands that inspect are allowed."
		edit += " The workspace is read-only: view, list and search."
	}
	switch pol.Network.Mode {
	case policy.Offline:
		bash += " There is no network."
	case policy.Gated:
		bash += " The network is limited to what the policy allows."
	}
	return []Spec{
		{Name: BashName, Title: "Run a command, confined", Description: bash,
			Input: inputSchema(BashInput{}), Output: outputSchema(BashOutput{}),
			ReadOnly: reads, Destructive: !reads, OpenWorld: pol.Network.Mode != policy.Offline || pol.Profile == policy.FullAccess},
		{Name: EditName, Title: "Read and change files", Description: edit,
			Input: inputSchema(EditInput{}), Output: outputSchema(EditOutput{}),
			ReadOnly: reads, Destructive: !reads},
		{Name: FetchName, Title: "Get a document from the web", Description: fetchText,
			Input: inputSchema(FetchInput{}), Output: outputSchema(FetchOutput{}),
			ReadOnly: true, OpenWorld: true},
	}
}

const refusedText = " What the policy refuses comes back as an error with a code, the reason and a hint: tell the user the hint, do not look for a way around it."

// Tools are the tools of one session. They are safe for concurrent use.
type Tools struct{ session *tether.Session }

// New returns the tools of a session, which stays the caller's to close.
func New(s *tether.Session) *Tools { return &Tools{s} }

// Error says why a call did nothing.
type Error struct {
	// Code is stable: see package fault.
	Code fault.Code `json:"code" doc:"stable code, for programs"`
	What string     `json:"what" doc:"what happened and why"`
	// Hint is the exact thing to type or to change; empty when there is no way.
	Hint string `json:"hint,omitempty" doc:"what would allow it, or do instead"`
}

// asError tells a failure as an output tells it.
func asError(err error) *Error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return &Error{Code: fault.Cancelled, What: "the call was cancelled; every process that it started was killed"}
	}
	return &Error{Code: fault.CodeOf(err), What: fault.TextOf(err), Hint: fault.HintOf(err)}
}

// Result is how a call ended.
type Result struct {
	// Output is a BashOutput, an EditOutput or a FetchOutput.
	Output any
	// Text is the same for people and models.
	Text string
	// Failed: the output carries an Error.
	Failed bool
}

// Call calls a tool with what a model gave, a JSON object as in the tool's
// schema. The only error is a name that no tool has; arguments that the tool
// cannot take are a Result, so that the model can correct them. watch, when not
// nil, is shown the output of a command as it comes, as in [tether.Command].
func (t *Tools) Call(ctx context.Context, name string, args json.RawMessage, watch func([]byte)) (Result, error) {
	switch name {
	case BashName:
		var in BashInput
		if err := decode(args, &in); err != nil {
			return bashResult(bashFailed(err)), nil
		}
		in.Watch = watch
		return bashResult(t.Bash(ctx, in)), nil
	case EditName:
		var in EditInput
		if err := decode(args, &in); err != nil {
			return editResult(EditOutput{Action: in.Action, Error: asError(err)}), nil
		}
		return editResult(t.Edit(ctx, in)), nil
	case FetchName:
		var in FetchInput
		if err := decode(args, &in); err != nil {
			return fetchResult(FetchOutput{Error: asError(err)}), nil
		}
		return fetchResult(t.Fetch(ctx, in)), nil
	}
	return Result{}, fault.New(fault.UsageInvalid, "there is no tool "+quote(name)).WithHint(BashName + ", " + EditName + " or " + FetchName)
}

// Refused is the result of a call that a surface refuses before the tool is
// asked. A name that no tool has is taken for edit's.
func Refused(name string, err error) Result {
	if name == BashName {
		return bashResult(bashFailed(err))
	}
	if name == FetchName {
		return fetchResult(FetchOutput{Error: asError(err)})
	}
	return editResult(EditOutput{Error: asError(err)})
}

// decode reads arguments strictly: a name that is misspelt would otherwise be
// a wish that nobody hears.
func decode(args json.RawMessage, into any) error {
	if len(bytes.TrimSpace(args)) == 0 {
		args = json.RawMessage("{}")
	}
	d := json.NewDecoder(bytes.NewReader(args))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil {
		if _, more := d.Token(); more == io.EOF {
			return nil
		}
		return invalid("the arguments are more than one JSON object")
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if wrong.Field == "" {
			return invalid("the arguments are a JSON " + wrong.Value + ", not an object")
		}
		return invalid(wrong.Field + " cannot be a JSON " + wrong.Value)
	}
	return invalid("the arguments do not fit: " + strings.TrimPrefix(err.Error(), "json: "))
}

func invalid(what string) *fault.Error {
	return fault.New(fault.UsageInvalid, what).WithHint("call it as its schema says")
}
