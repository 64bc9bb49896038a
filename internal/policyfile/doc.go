// Package policyfile reads policies that stand in files, puts the layers of a
// policy on top of each other and says which layer set which rule.
//
// A file is TOML; its keys have the names of the flags, and mean what the flags
// mean. The layers are the user's file, the workspace's file and the flags, in
// this order. A scalar is what the last layer says; lists grow. The workspace's
// file came with the workspace, so that until the user has trusted its exact
// content it may only narrow; one that would widen is refused as a whole,
// because a policy that is quietly cut is a policy that nobody wrote.
//
// What is not promised: that a trusted file is sensible, and that a workspace
// whose path, device or inode number changed (some file systems number anew at
// each start of the machine) is still trusted.
package policyfile

import "github.com/tether-sandbox/tether/policy"

// Change is one thing that a layer says. A list with three elements is three
// changes.
type Change struct {
	// Key is the key of a file, which is the name of the flag.
	Key string
	// Value is the value as text, in the spelling of the flag; for a variable
	// NAME or NAME=VALUE.
	Value string
	// Empty says that the key was given an empty list. It has no value then.
	Empty bool
	// Line and Column say where it stands in its file, from 1; 0 elsewhere.
	Line, Column int
}

// Layer is one source of changes. The zero value of Trusted is the strict one.
type Layer struct {
	// Name is the file's path, or "flags".
	Name    string
	Changes []Change
	// Trusted says that the layer may widen: it is the user's own, or the user
	// has seen it.
	Trusted bool
	// Workspace says that it is the file of the workspace.
	Workspace bool
	// Content is what the file holds, for [Trust]. Flags have none.
	Content []byte

	// distrust is why the trust of the file could not be looked up.
	distrust error
}

// Flags returns the layer of the command line.
func Flags(changes []Change) Layer { return Layer{Name: "flags", Changes: changes, Trusted: true} }

// Origin says where one rule that holds comes from.
type Origin struct {
	Key, Value string
	// Layer is the name of the layer.
	Layer string
	// Line is the line in its file, 0 for flags.
	Line int
}

// Origins are all rules that layers set, in the order in which they were set.
// What no origin names is built in.
type Origins []Origin

// Of returns where the rule comes from. For a scalar the value does not matter.
func (os Origins) Of(key, value string) (Origin, bool) {
	scalar := isScalar(key)
	for _, o := range os {
		if o.Key == key && (scalar || o.Value == value) {
			return o, true
		}
	}
	return Origin{}, false
}

// Effective is what all layers together say.
type Effective struct {
	Policy policy.Policy
	// Provider names a provider; empty is auto.
	Provider string
	// Approval is "ask" or "never"; empty is what the surface has built in.
	Approval string
	// FetchNetwork is what the fetch tool may reach: what Fetch says or, if that
	// is empty, the policy's network.
	FetchNetwork policy.Network
	// Fetch is what the fetch tool may reach whatever the network is: public,
	// listed or none; empty follows the network.
	Fetch string
	// Audit asks for a durable log of runs without a session.
	Audit bool

	Origins Origins
}
