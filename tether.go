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
// What is promised, guarantee by guarantee, stands in [Result.Report]; what is
// not defended stands in SECURITY.md.
package tether

import (
	"context"
	"os"
	"strconv"
	"sync/atomic"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/enforce/inner"
	"github.com/tether-sandbox/tether/internal/plan"
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
	// Environ is the caller's environment, of which the policy lets a part
	// through. Nil is os.Environ().
	Environ []string
}

// Session runs commands under one policy. It is safe for concurrent use.
type Session struct {
	policy   policy.Policy
	provider enforce.Kind
	environ  []string
	world    world.World
}

// Open opens a session on this machine. It fails with POLICY_INVALID for a
// policy that contradicts itself and with EMBED_MISSING in a program that did
// not call [Inner]. Whether the machine can hold the policy is found when a
// command starts, or by [Session.Explain].
func Open(_ context.Context, o Options) (*Session, error) {
	if !lent.Load() {
		return nil, fault.New(fault.EmbedMissing, "the program did not lend itself to the inner stage").
			WithHint("call tether.Inner() first in main")
	}
	if err := o.Policy.Validate(); err != nil {
		return nil, err
	}
	if n := o.Policy.Limits.MemoryBytes; n > 0 {
		return nil, fault.New(fault.LimitUnenforceable, "memory cannot be limited by a provider of this build, only from outside").
			WithHint("systemd-run --user --scope -p MemoryMax=" + strconv.FormatInt(n, 10) + " tether run -- CMD")
	}
	kind, err := providerKind(o.Provider)
	if err != nil {
		return nil, err
	}
	if o.Policy.Profile == policy.FullAccess || o.NoSandbox {
		kind = enforce.Unconfined
	}
	s := &Session{policy: o.Policy, provider: kind, environ: o.Environ, world: local.World{}}
	if s.environ == nil {
		s.environ = os.Environ()
	}
	return s, nil
}

func providerKind(name string) (enforce.Kind, error) {
	switch k := enforce.Kind(name); k {
	case "":
		return enforce.Auto, nil
	case enforce.Auto, enforce.Native, enforce.Bwrap, enforce.Guard:
		return k, nil
	case enforce.Landlock, "seatbelt":
		return "", fault.New(fault.SandboxUnavailable, "provider "+name+" is not part of this build").
			WithHint("--provider auto")
	}
	return "", fault.New(fault.PolicyInvalid, "there is no provider "+quoteWord(name)+"; there are auto, native, bwrap and guard").
		WithHint("--provider auto")
}

// Policy is what the session runs under.
func (s *Session) Policy() policy.Policy { return s.policy }

// Close ends the session. Commands that still run are not ended by it.
func (s *Session) Close() error { return nil }

// plan pins the session's policy to the machine.
func (s *Session) plan(ctx context.Context, dir string) (*plan.Plan, error) {
	return s.world.Plan(ctx, s.policy, world.Options{Dir: dir, Environ: s.environ, Provider: s.provider})
}
