// Package tether runs what an AI agent wants to do under one policy that the
// operating system enforces.
//
// A program that embeds it calls [Inner] first of all in main, then opens a
// session and runs commands in it:
//
//	func main() {
//		tether.Inner()
//		s, err := tether.Open(ctx, tether.Options{Policy: policy.Default("/home/u/project")})
//		...
//		res, err := s.Run(ctx, tether.Command{Args: []string{"make", "test"}})
//	}
//
// A command that fails is a [Result], not an error. An error is a *fault.Error
// with a stable code and means that nothing of the command ran.
//
// With [Options.Session] everything that happens is recorded before it is done,
// and what a session may do follows from what is recorded: its mode, and what
// was granted to it ([Session.Grant], [Approver]). [Session.Child] opens a
// session for a sub-agent, which never has more than its parent.
//
// What is promised, guarantee by guarantee, stands in [Result.Report]; what is
// not defended stands in SECURITY.md.
package tether

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tether-sandbox/tether/fact"
	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/egress"
	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/enforce/inner"
	"github.com/tether-sandbox/tether/internal/factlog"
	"github.com/tether-sandbox/tether/internal/world"
	"github.com/tether-sandbox/tether/internal/world/local"
	"github.com/tether-sandbox/tether/policy"
)

// lent remembers that Inner was called. It is the one piece of state outside a
// session: a fact about the program, not about its use.
var lent atomic.Bool

// Inner lends this program to the inner stage of the sandbox: the first
// process in a sandbox is this very program, started again. Call it first in
// main, before flags are parsed or anything is opened; in the inner stage it
// never returns.
func Inner() {
	if inner.Wanted(os.Args) {
		inner.Main()
	}
	lent.Store(true)
}

// Options say how a session is opened.
type Options struct {
	// Policy is what may happen. Its zero value allows nothing: start from
	// policy.Default.
	Policy policy.Policy
	// Provider names the provider; empty tries them in order.
	Provider string
	// NoSandbox runs commands with no sandbox at all. Time, output, process
	// tree and environment rules still hold; every guarantee is None. It is
	// the one explicit way to ask for that.
	NoSandbox bool
	// KeepReady is for a session with many commands: an inner stage is started
	// after each, so that the next one starts sooner. It ends after a minute
	// that brings none.
	KeepReady bool
	// Fetch, when not nil, is what the caller's own requests may reach (see
	// [Session.Web]), instead of the policy's network.
	Fetch *policy.Network
	// Environ is the caller's environment, of which the policy lets a part
	// through. Nil is os.Environ().
	Environ []string

	// Session is the name of a session to begin or to go on with, in which
	// everything that happens is recorded; see [NewSessionID]. One that goes on
	// keeps within the policy that it began with. Empty: nothing is recorded.
	Session string
	// Default is the preset that holds as long as no fact of the session says
	// anything else, such as a setting of the user's. Without one, the profile
	// of Policy is what is asked for, also of a session that goes on: as by
	// [Session.EnterMode].
	Default fact.Default
	// Approver is asked for what needs an approval. Nil: all of it is refused.
	Approver Approver
	// KeepTmp gives commands and edits of a session that is not recorded one /tmp
	// that lasts until Close. Recorded sessions always have one that lasts as
	// long as the session; otherwise each command has its own.
	KeepTmp bool
	// By is who uses the session: fact.Person at a terminal. Empty is
	// fact.Program.
	By fact.Actor

	// parent is that of a child that begins.
	parent *Session
}

// Session runs commands under one policy. It is safe for concurrent use.
type Session struct {
	id        string
	opening   policy.Policy // the one it was opened with; see effect
	narrowed  bool
	provider  enforce.Kind
	noSandbox bool
	environ   []string
	world     world.World
	fallback  fact.Default
	approver  Approver
	by        fact.Actor

	ledger   ledger
	store    *factlog.Store // nil: not recorded
	place    world.Place
	part     string // the name of this part of the session
	tmp      string // names the /tmp that lasts; empty: there is none
	dropTmp  func() error
	count    atomic.Uint64
	turn     atomic.Pointer[string]
	scrubbed atomic.Pointer[[]string]
	red      atomic.Pointer[redactor] // of the last plan

	parent *Session
	// childID is its name in a parent that is told when it ends. Without one,
	// the parent is only looked at, and ours to close.
	childID string

	offered  sync.Map // hosts for which the question was put
	provedMu sync.Mutex
	proved   *effect

	keep     *local.Keeper   // nil: none
	fetch    *policy.Network // see Options.Fetch
	resolver egress.Resolver // of our own requests; nil is the host's own
}

// Open opens a session on this machine. It fails with POLICY_INVALID for a
// policy that contradicts itself and with EMBED_MISSING in a program that did
// not call [Inner]. Whether the machine can hold the policy is found when a
// command starts, or by [Session.Explain].
func Open(ctx context.Context, o Options) (*Session, error) {
	if !lent.Load() {
		return nil, fault.New(fault.EmbedMissing, "the program did not lend itself to the inner stage").
			WithHint("call tether.Inner() first in main")
	}
	if err := o.Policy.Validate(); err != nil {
		return nil, err
	}
	if _, err := egress.Compile(o.Policy.Network); err != nil {
		return nil, err
	}
	if err := (local.World{}).CanLimit(o.Policy.Limits); err != nil {
		return nil, err
	}
	kind, err := providerKind(o.Provider)
	if err != nil {
		return nil, err
	}
	s := &Session{id: o.Session, opening: o.Policy, provider: kind, noSandbox: o.NoSandbox, environ: o.Environ, world: local.World{},
		fallback: o.Default, approver: o.Approver, by: o.By, parent: o.parent, fetch: o.Fetch, ledger: &memory{}, part: "0"}
	s.scrubbed.Store(&[]string{})
	if o.KeepReady {
		s.keep = &local.Keeper{}
		s.world = local.World{Keep: s.keep}
	}
	if s.environ == nil {
		s.environ = os.Environ()
	}
	if s.by == "" {
		s.by = fact.Program
	}
	asked := s.fallback.Preset == ""
	if asked {
		s.fallback.Preset = fallbackOf(o.Policy.Profile).Preset
	}
	if s.fallback.Origin == "" {
		s.fallback.Origin = fact.Deployment
	}
	if s.id == "" {
		if err := s.startUnrecorded(o.KeepTmp); err != nil {
			return nil, err
		}
		return s, nil
	}
	if err := s.start(o); err != nil {
		return nil, err
	}
	if asked && o.parent == nil {
		if err := s.choose(ctx, o.Policy.Profile); err != nil {
			s.Close()
			return nil, err
		}
	}
	return s, nil
}

func providerKind(name string) (enforce.Kind, error) {
	switch k := enforce.Kind(name); k {
	case "":
		return enforce.Auto, nil
	case enforce.Auto, enforce.Native, enforce.Bwrap, enforce.Landlock, enforce.Guard:
		return k, nil
	case enforce.Seatbelt:
		if slices.Contains(local.Jails(), k) {
			return k, nil
		}
		return "", fault.New(fault.SandboxUnavailable, "provider "+name+" is not part of this build").
			WithHint("--provider auto")
	}
	return "", fault.New(fault.PolicyInvalid, "there is no provider "+quoteWord(name)+"; there are auto, native, bwrap, landlock and guard").
		WithHint("--provider auto")
}

// Policy is what holds now. It allows nothing where that cannot be found out.
func (s *Session) Policy() policy.Policy {
	e, err := s.now()
	if err != nil {
		return policy.Policy{}
	}
	return e.policy
}

// Close ends this part of the session, and the turn that is open in it. Commands
// that still run are not ended by it. A recorded session can be opened again; a
// child that is not recorded is over.
func (s *Session) Close() error {
	if s.keep != nil {
		s.keep.Close()
	}
	err := s.EndTurn(context.Background())
	if s.childID != "" && s.parent != nil {
		err = errors.Join(err, s.parent.record(func(fact.State) ([]fact.Fact, error) {
			return []fact.Fact{{Kind: fact.ChildRun, ID: s.childID, Ended: true, By: s.by}}, nil
		}))
	}
	err = errors.Join(err, s.ledger.Close())
	if s.store != nil {
		err = errors.Join(err, s.store.Close())
	}
	if s.dropTmp != nil {
		err = errors.Join(err, s.dropTmp())
	}
	if s.childID == "" && s.parent != nil {
		err = errors.Join(err, s.parent.Close())
	}
	return err
}
