// Package world says what a place is where commands run and files live.
package world

import (
	"context"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/tether-sandbox/tether/internal/egress"
	"github.com/tether-sandbox/tether/internal/egress/gate"
	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/plan"
	"github.com/tether-sandbox/tether/internal/plan/gitmeta"
	"github.com/tether-sandbox/tether/policy"
)

// World is a place where commands run and files live. Paths belong to it and
// are resolved by it.
type World interface {
	// ID names the world. Capabilities of one session come from one world.
	ID() string
	// Machine is what grades depend on besides a plan, for these limits.
	Machine(l policy.Limits) enforce.Machine
	// Warm starts what can be started before a plan is known, and returns at
	// once. A run begins with it.
	Warm(pol policy.Policy, kind enforce.Kind, environ []string) Warm
	// Place says where a policy's workspace is and where Tether keeps its own
	// files. It refuses a state folder that commands could write.
	Place(pol policy.Policy, environ []string) (Place, error)
	// Locate returns the one path of what lies at path, without links.
	Locate(path string) (string, error)
	// Plan pins a policy to this world.
	Plan(ctx context.Context, pol policy.Policy, o Options) (*plan.Plan, error)
	// Run runs a command in a planned world. A command that fails is an
	// Outcome, not an error; an error means that nothing of it ran, or that
	// how it ended is not known.
	Run(ctx context.Context, p *plan.Plan, c Command) (Outcome, error)
}

// Warm is something that was started early for one run.
type Warm interface {
	// Discard says that the run is over, and ends what was not used.
	Discard()
}

// Place is where a session happens.
type Place struct {
	// Workspace is the canonical path; Key names the folder there by identity:
	// another one that takes its path has another key.
	Workspace, Key string
	// State is Tether's own folder for the caller.
	State string
}

// Options are what a plan needs besides the policy.
type Options struct {
	// Dir is the folder that the command starts in; empty is the workspace.
	Dir string
	// Environ is the caller's environment.
	Environ []string
	// Provider is the provider that is asked for.
	Provider enforce.Kind
	// Warm is what Warm returned for the run that the plan is for; nil when it is
	// for none.
	Warm Warm
	// Tmp names the private folder, in the state folder, that is /tmp inside
	// and lasts from one command to the next. It is made where it is missing.
	// Empty: /tmp lasts as long as the command.
	Tmp string
}

// Command is one command to run.
type Command struct {
	Args     []string
	Provider enforce.Kind
	// Warm is what Warm returned for this run. Last says that no other plan
	// will be tried if this one does not hold.
	Warm Warm
	Last bool
	// Stdin is what the command reads; nil is an empty input. A file is carried
	// through a pipe, a terminal through one of ours: the command never gets
	// the caller's own.
	Stdin io.Reader
	// Stdout and Stderr get the output as it comes.
	Stdout, Stderr io.Writer
	// Through, when set, is called for each stream of output, and what it
	// returns takes the output and passes on to w what should go there. It is
	// closed at the end if it can be.
	Through func(w io.Writer) io.Writer
	// Guard, when set, is put before each server that the command speaks to in
	// clear text through the gate; see gate.Options.
	Guard func(to io.Writer) io.WriteCloser
	// Denied, when not nil, is told of each connection that the gate refuses, at
	// once. It must not block.
	Denied func(d egress.Denial, g *gate.Gate)
	// Upstream is the proxy that the gate goes through, if any.
	Upstream *egress.Upstream
	// Check, when set, is asked right before the command starts, when all else
	// is prepared; its error is that of Run.
	Check func(ctx context.Context) error
	// Time ends the command; zero does not.
	Time time.Duration
	// Grace is how long the command has between SIGTERM and SIGKILL; zero is
	// the built-in 2 s.
	Grace time.Duration
	// Signals are forwarded to the command.
	Signals <-chan os.Signal
	// Published is told where the host reaches a port of the command's, before
	// the command can listen there.
	Published func(port uint16, address string)
}

// Outcome says how a command ended.
type Outcome struct {
	Provider enforce.Kind
	// Tried says which providers failed before, and why.
	Tried  []string
	Grades []enforce.Graded
	// Exit is the command's own status, or 128+n for signal n.
	Exit   int
	Signal int
	// Ended is the caller's signal for which we ended the command ourselves.
	Ended syscall.Signal
	// NotExecuted is the errno for which the program could not be executed.
	NotExecuted int
	TimedOut    bool
	// Met are the limits of the policy that it was seen to meet; Full is the
	// folder that was full.
	Met  enforce.Met
	Full string
	// LowDisk is a disk of the host of which too little was left, if there was
	// one and the command did not succeed.
	LowDisk *LowDisk
	// Interrupted says that Ctrl-C was typed on a terminal that was the command's.
	Interrupted bool
	Duration    time.Duration
	// Refused is what the gate did not let out, each once with how often.
	Refused []gate.Refused
	// Link is how the gate was joined, if there was one, and LinkWhy why it was
	// not joined better.
	Link    enforce.GateLink
	LinkWhy string
	// Late is what came to be hidden and locked while the command ran.
	Late Late
	// Crowd, when not nil, bounded the command's processes more than its policy.
	Crowd *Crowd
	// Notes are things that went differently than usual.
	Notes    []string
	Findings []gitmeta.Finding
}

// LowDisk is a disk of which too little is left.
type LowDisk struct {
	// Dir is a folder on it, Free and Keep what is left and what must be, in bytes.
	Dir        string
	Free, Keep int64
	// Names says that it is not bytes that are too few, but inodes.
	Names bool
}

// Crowd is what is left of the caller's own limits of processes.
type Crowd struct {
	// Processes is what the command may have of it.
	Processes int64
	// Why says what leaves no more, and Way, if any, how to have more.
	Why, Way string
}

// Late says what was done about protected files that appeared, or were replaced,
// while a command ran.
type Late struct {
	// Watched says that the workspace was watched from From after the start of the
	// command to its end. WhyNot says why it was not, or what could not be done,
	// and Hint what to type about it.
	Watched      bool
	From         time.Duration
	WhyNot, Hint string
	// Hidden and Locked are the paths that came to be so.
	Hidden, Locked []string
	// Slowest is the longest time between the news of a change and the mask that
	// it asked for.
	Slowest time.Duration
}
