package tether

import (
	"context"
	"errors"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/egress"
	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/guard"
	"github.com/tether-sandbox/tether/internal/plan"
	"github.com/tether-sandbox/tether/internal/world"
	"github.com/tether-sandbox/tether/internal/world/local/stream"
	"github.com/tether-sandbox/tether/policy"
)

// Built-in limits of a command whose output is captured.
const (
	DefaultTime   = 120 * time.Second
	DefaultOutput = 1 << 20
)

// Command is one command to run.
type Command struct {
	// Args is the program and its arguments. A program without a slash is
	// found on the PATH inside.
	Args []string
	// Shell, when Args is empty, is run by /bin/sh -c.
	Shell string
	// Dir is the folder to start in, relative to the workspace or absolute and
	// inside a root; empty is the workspace. It never moves a root.
	Dir string
	// Stdin is what the command reads; nil is an empty input. When it is a
	// terminal the command gets a terminal of ours, joined to it.
	Stdin io.Reader
	// Stdout and Stderr, when not nil, get the output as it comes, with
	// neither cap nor copy in the result.
	Stdout, Stderr io.Writer
	// Watch, when not nil, is shown the captured output as it comes, from
	// either stream. It is called by one goroutine for each; it must neither
	// keep p nor block, and is not called after Run has returned.
	Watch func(p []byte)
	// Time ends the command earlier than the policy's limit; it never makes
	// that longer. Zero is the policy's.
	Time time.Duration
	// Stream leaves out the built-in time limit.
	Stream bool
	// Signals are forwarded to the command.
	Signals <-chan os.Signal
	// Why is the reason that whoever wants it gives; it is recorded, and shown
	// to whoever is asked.
	Why string
	// Published, when not nil, is told where the host reaches each port that the
	// policy publishes, such as 127.83.4.9:8080, before the command starts.
	Published func(port uint16, address string)
}

// argv returns the words to execute.
func (c Command) argv() ([]string, error) {
	switch {
	case len(c.Args) > 0 && c.Shell != "":
		return nil, fault.New(fault.UsageInvalid, "a command has either Args or Shell, not both")
	case len(c.Args) > 0:
		return c.Args, nil
	case c.Shell != "":
		return []string{"/bin/sh", "-c", c.Shell}, nil
	}
	return nil, fault.New(fault.UsageInvalid, "no command was given").WithHint("tether run -- CMD")
}

// Run runs a command to its end under the session's policy.
//
// When ctx ends the whole process tree is killed before Run returns CANCELLED,
// which wraps the error of ctx. A child that the command left in the background is killed when
// the command itself has ended. Run does not judge what the command means
// beyond the guard's look (see package internal/guard). With an error the result
// holds nothing but what was found in the workspace nevertheless.
func (s *Session) Run(ctx context.Context, c Command) (Result, error) {
	argv, err := c.argv()
	if err != nil {
		return Result{}, err
	}
	for _, a := range argv {
		for i := range len(a) {
			if a[i] == 0 {
				return Result{}, fault.New(fault.UsageInvalid, "an argument holds a NUL byte")
			}
		}
	}
	return s.do(ctx, c, argv)
}

// do runs a command as an act of the session: intended, carried out, told. It
// begins anew when what holds has changed meanwhile.
func (s *Session) do(ctx context.Context, c Command, argv []string) (Result, error) {
	a := &act{s: s, what: CommandLine(argv), why: c.Why}
	var res Result
	err := errStale
	for try := 0; errors.Is(err, errStale) && try < planTries; try++ {
		var e effect
		if e, err = s.now(); err == nil {
			res, err = s.attempt(ctx, c, argv, e, a)
		}
	}
	if errors.Is(err, errStale) {
		err = fault.Wrap(fault.IsolationUnavailable, "the session does not hold still", err)
	}
	err = cancelled(err)
	s.remedies(&res)
	a.settle(&res, err)
	if err == nil {
		s.offer(ctx, &res, c.Why)
	}
	return res, err
}

// attempt runs a command under one effect. Without an act nothing is recorded,
// and the guard is not asked.
func (s *Session) attempt(ctx context.Context, c Command, argv []string, e effect, a *act) (Result, error) {
	early := s.world.Warm(e.policy, e.kind, s.environ)
	defer early.Discard()
	var found []Finding
	for try := 1; ; try++ {
		res, err := s.runOnce(ctx, c, argv, e, a, early, try == planTries)
		found = append(found, res.Findings...)
		if len(found) > 0 {
			res.Findings = found
		}
		if !errors.Is(err, plan.ErrChanged) || try == planTries || ctx.Err() != nil {
			return res, err
		}
	}
}

// planTries is how often a plan is made anew when the workspace changes under
// it. A person's editor or a build needs one more; somebody who never stops is
// refused.
const planTries = 12

// runOnce plans a command and runs it.
func (s *Session) runOnce(ctx context.Context, c Command, argv []string, e effect, a *act, early world.Warm, last bool) (Result, error) {
	p, err := s.pin(ctx, e, world.Options{Dir: c.Dir, Tmp: s.tmp, Warm: early})
	if err != nil {
		return Result{}, err
	}
	red := s.redactor(e, p)
	var word guard.Verdict
	if a != nil {
		word = look(e, p, argv)
		if err := s.mayRun(ctx, a, e, argv, word, p.Dir); err != nil {
			return Result{}, err
		}
	}
	ask := s.askLive(ctx, e, a, c.Why)
	defer ask.end(nil)
	cmd := world.Command{Args: argv, Provider: e.kind, Warm: early, Last: last, Stdin: c.Stdin, Stdout: c.Stdout, Stderr: c.Stderr,
		Time: e.policy.Limits.Time, Signals: c.Signals, Published: c.Published,
		Through: red.through(), Guard: red.guard(), Check: s.mayLeave(e, red, argv)}
	if ask != nil {
		cmd.Denied = ask.denied
	}
	if cmd.Time == 0 && !c.Stream {
		cmd.Time = DefaultTime
	}
	if c.Time > 0 && (cmd.Time == 0 || c.Time < cmd.Time) {
		cmd.Time = c.Time
	}
	limit := e.policy.Limits.OutputBytes
	if limit == 0 {
		limit = DefaultOutput
	}
	var stdout, stderr *stream.Capture
	if cmd.Stdout == nil {
		stdout = stream.NewCapture(limit)
		stdout.Watch = c.Watch
		cmd.Stdout = stdout
	}
	if cmd.Stderr == nil {
		stderr = stream.NewCapture(limit)
		stderr.Watch = c.Watch
		cmd.Stderr = stderr
	}
	if cmd.Upstream, err = egress.UpstreamOf(e.policy.Network, s.environ); err != nil {
		return Result{}, err
	}
	out, err := s.world.Run(ctx, p, cmd)
	if err != nil {
		return Result{Findings: findings(out)}, err
	}
	res := result(e.policy, p, out, word)
	ask.end(res.Denials)
	if res.Exit != 0 && len(p.Repos) > 0 && e.policy.Profile == policy.WorkspaceWrite && out.Provider != enforce.Unconfined {
		for _, words := range guard.GitConfigWrites(argv) {
			res.Denials = append(res.Denials, Denial{What: words, Rule: "if it is git's configuration that could not be written: that is locked, since it can name programs that your git would run",
				Code: fault.SandboxViolation, Remedy: "on the host: " + words})
		}
	}
	if stdout != nil {
		var cut bool
		res.Stdout, cut, res.StdoutDropped = stdout.Text()
		res.Truncated = res.Truncated || cut
	}
	if stderr != nil {
		var cut bool
		res.Stderr, cut, res.StderrDropped = stderr.Text()
		res.Truncated = res.Truncated || cut
	}
	red.report(&res)
	return res, nil
}

// look asks the guard about a command line.
func look(e effect, p *plan.Plan, argv []string) guard.Verdict {
	if e.kind == enforce.Unconfined {
		return guard.Verdict{}
	}
	o := guard.Options{Mode: guard.Advise, Commands: policy.Any, Workspace: p.Workspace.Path, Dir: p.Dir, Roots: []string{"/tmp"}}
	if e.kind == enforce.Guard {
		o.Mode = guard.Enforce
	}
	if e.policy.Profile == policy.ReadOnly {
		o.Commands = e.policy.Commands
	}
	for _, v := range p.Views {
		if v.Origin == plan.Added {
			o.Roots = append(o.Roots, v.Path)
		}
	}
	return guard.LookArgv(argv, o)
}

func quoteWord(s string) string { return strconv.Quote(s) }
