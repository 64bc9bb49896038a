package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/enforce/bwrap"
	"github.com/tether-sandbox/tether/internal/enforce/native"
	"github.com/tether-sandbox/tether/internal/enforce/seccomp"
	"github.com/tether-sandbox/tether/internal/environ"
	"github.com/tether-sandbox/tether/internal/plan"
	"github.com/tether-sandbox/tether/internal/world"
	"github.com/tether-sandbox/tether/internal/world/local/stream"
	"github.com/tether-sandbox/tether/policy"
)

// Run runs a command in a plan of this world.
func (w World) Run(ctx context.Context, p *plan.Plan, c world.Command) (world.Outcome, error) {
	machine := w.Machine(p.Policy.Limits)
	begin := time.Now()
	streams := newStreams(p, &c)
	if err := streams.open(); err != nil {
		return world.Outcome{}, err
	}
	defer streams.close()
	if c.Provider != enforce.Unconfined && c.Provider != enforce.Guard {
		trustIndexes(ctx, p)
	}
	before, err := takeSnapshot(p, c.Provider)
	if err != nil {
		return world.Outcome{Findings: before.dead}, err
	}
	early, _ := c.Warm.(*warm)
	if early != nil {
		if early.err != nil {
			before.drop()
			return world.Outcome{Findings: before.dead}, early.err
		}
		if early.live != nil {
			if err := early.live.agree(p, c.Last); err != nil {
				early.watch.doubt()
				before.drop()
				return world.Outcome{Findings: before.dead}, fault.Wrap(fault.IsolationUnavailable, "the workspace does not hold still", err)
			}
		}
	}
	outlet, err := newOutlet(p, c)
	if err != nil {
		before.drop()
		return world.Outcome{Findings: before.dead}, err
	}
	defer outlet.close()
	doors, err := publish(p, c.Provider, c.Published)
	if err != nil {
		before.drop()
		return world.Outcome{Findings: before.dead}, err
	}
	defer doors.close()
	job := enforce.Job{Stdio: streams.child(), Terminal: streams.terminal, Gate: outlet.serve}
	if job.Order, err = order(p, c, machine.LandlockABI, streams.onTerminal); err != nil {
		before.drop()
		return world.Outcome{Findings: before.dead}, err
	}
	job.Order.Gate = outlet.order()
	job.Order.Wary = early != nil && early.live != nil && early.live.company
	if c.Check != nil {
		if err := c.Check(ctx); err != nil {
			before.drop()
			return world.Outcome{Findings: before.dead}, err
		}
	}
	var crowded *world.Crowd
	if !job.Order.Bare {
		if crowded, err = crowd(&job.Order.Limits); err != nil {
			before.drop()
			return world.Outcome{Findings: before.dead}, err
		}
	}
	bounds, err := group(p)
	if err != nil {
		before.drop()
		return world.Outcome{Findings: before.dead}, err
	}
	defer bounds.Remove()
	var unbound error // said in its own words, whatever the provider makes of it
	if bounds != nil {
		job.Enter = func(pid int) error {
			unbound = enter(bounds, p.Policy.Limits, pid)
			return unbound
		}
		if bounds.Counts() {
			behindGroup(&job.Order.Limits)
		}
	}
	job.Order.Limits.CountCPU = !bounds.Times()
	if early != nil && early.watch != nil {
		if err := early.watch.before(ctx, p); err != nil && !(c.Last && errors.Is(err, plan.ErrChanged)) {
			before.drop()
			return world.Outcome{Findings: before.dead}, fault.Wrap(fault.IsolationUnavailable, "the workspace does not hold still", err)
		}
	}
	around := holdWays(before.Roots, p.StateDir)
	defer around.close()
	var eyes sight
	if early == nil || early.watch == nil {
		eyes = openEyes()
		defer eyes.close()
	}
	defer keepThreads(crowded)()
	out, proc, err := startFirst(p, c, machine, outlet, job, crowding{crowded != nil, bounds.Counts()})
	if err != nil {
		before.drop()
		out.Findings = before.dead
		return out, cmp.Or(unbound, starved(bounds, p.Policy.Limits), err)
	}
	out.Crowd = crowded
	if early != nil && early.live != nil {
		early.live.started(proc.PID())
	}
	if err := bounds.None(); err != nil {
		out.Notes = append(out.Notes, "systemd gave no control group, so process 1 counts processor time: "+err.Error())
	}
	if bounds.Counts() {
		if err := bounds.Only(p.Policy.Limits.Processes, proc.Beside()); err != nil {
			out.Notes = append(out.Notes, fmt.Sprintf("up to %d more processes than asked are allowed: %v", enforce.OwnThreads, err))
		}
	}
	bounds.Watch(proc.Kill)
	tmp := guardTmp(p, proc.Kill)
	disks := guardDisks(p, out.Provider, proc.Kill)
	used := guardTime(bounds, job.Order.Limits.CPUSeconds, proc.Kill)
	doors.serve(proc)
	looking := lookAfter(p, proc, early, out.Provider, before, around, eyes)
	set := streams.set
	set.Start()
	ended, err := attend(ctx, proc, c, &out)
	looking.report(&out, before)
	if low, killed := disks.end(); killed || ended.Status != 0 {
		out.LowDisk = low
	}
	out.Met |= used.end()
	if tmp.end() {
		out.Met |= enforce.MetScratch
		ended.Full = "/tmp"
	}
	var lost error
	// What the caller did not wait for is not lost by us.
	if serr := set.Settled(ctx); err == nil && serr != nil && !errors.Is(serr, context.Canceled) && !errors.Is(serr, context.DeadlineExceeded) {
		lost = fault.Wrap(fault.OutputLost, "the command ran, and its output could not be written", serr)
	}
	out.Duration, out.Interrupted = time.Since(begin), set.Interrupted()
	outlet.report(&out)
	if early != nil && early.watch != nil {
		before.look = early.watch.walk
	}
	if out.Provider == enforce.Landlock {
		around.reopen()
		out.Notes = append(out.Notes, around.notes()...)
	}
	findings, ferr := before.settle(p)
	<-proc.Gone() // no dead child is left for somebody else to bury
	out.Findings = findings
	aerr := account(bounds, &out)
	if err = errors.Join(err, ferr, ctx.Err(), lost, aerr); err != nil {
		return out, err
	}
	ws := syscall.WaitStatus(ended.Status)
	out.NotExecuted, out.Full = ended.NoExec, ended.Full
	out.Met |= ended.Met
	if ws.Signaled() {
		out.Signal = int(ws.Signal())
		if out.Ended != 0 && ws.Signal() == syscall.SIGKILL {
			out.Signal = int(out.Ended) // ours was only the last word
		}
	}
	out.Exit = ws.ExitStatus()
	return out, nil
}

// order is what the inner stage is told, whatever the provider.
func order(p *plan.Plan, c world.Command, abi int, terminal bool) (enforce.Order, error) {
	o := enforce.Order{Argv: c.Args, Env: p.Env, Dir: p.Dir, Terminal: terminal}
	if c.Provider == enforce.Unconfined || c.Provider == enforce.Guard {
		o.Bare, o.Limits = true, limits(p.Policy.Limits, true)
		return o, nil
	}
	filter, err := seccomp.Compile(seccomp.Options{Arch: runtime.GOARCH, Inet: true, Unix: true, SetGID: !p.Identity.Root,
		NestedUserNS: p.Policy.Nested, NestedMounts: p.Policy.Nested,
		Namespaced: true, Tell: true})
	if err != nil {
		return o, err
	}
	o.Filter = filter
	o.Steps = enforce.Compile(p)
	o.ScopeAbstract, o.ScopeSignal = abi >= enforce.ScopesABI, abi >= enforce.ScopesABI
	// Behind a wall round files nobody mounts.
	o.WallFiles = abi >= enforce.FilesABI && !p.Policy.Nested
	o.WallSockets = o.WallFiles && abi >= enforce.SocketsABI
	o.Limits = limits(p.Policy.Limits, false)
	return o, nil
}

// startFirst starts the job with the first provider that can hold the plan at
// the grades that the policy requires. One that cannot be built gives way to
// the next of the same grade; none ever gives way to less.
func startFirst(p *plan.Plan, c world.Command, machine enforce.Machine, o *outlet, job enforce.Job, crowded crowding) (world.Outcome, enforce.Process, error) {
	kinds := []enforce.Kind{c.Provider}
	if c.Provider == enforce.Auto || c.Provider == "" {
		kinds = []enforce.Kind{enforce.Native, enforce.Bwrap, enforce.Landlock}
	}
	var out world.Outcome
	var first error
	for _, kind := range kinds {
		grades := enforce.Grades(kind, p, machine)
		err := enforce.Meets(p.Policy, kind, grades)
		if err == nil && p.Policy.Nested {
			err = nestable(kind, p)
		}
		if kind == enforce.Unconfined {
			err = nil // asked for in so many words
		}
		var proc enforce.Process
		if err == nil {
			proc, err = start(kind, p, c.Warm, machine.LandlockABI, o, job, crowded)
		}
		if err == nil {
			out.Provider, out.Grades = kind, grades
			if kind == enforce.Landlock && p.Policy.Network.Mode == policy.Gated && machine.LandlockABI < enforce.TCPABI {
				out.Notes = append(out.Notes, gateless)
			}
			return out, proc, nil
		}
		if first == nil {
			first = err
		} else if kind == enforce.Landlock {
			first = orLess(first, err)
		}
		out.Tried = append(out.Tried, string(kind)+": "+err.Error())
		if fault.CodeOf(err) != fault.SandboxUnavailable && !errors.Is(err, enforce.ErrMachine) {
			break
		}
	}
	return out, nil, first
}

// orLess adds to the reason why no provider holds a plan what the weakest of
// them would hold, and the flags that accept it.
func orLess(first, weaker error) error {
	e, ok := errors.AsType[*fault.Error](first)
	accept := fault.HintOf(weaker)
	if !ok || !strings.HasPrefix(accept, "--accept ") {
		return first
	}
	e = e.WithHint(accept)
	if fix := fault.HintOf(first); fix != "" && !strings.HasPrefix(fix, "--accept ") {
		e.Hint = fix + "; or, if less will do: " + accept
	}
	e.What = "no provider holds this policy here: " + fault.TextOf(weaker) + "; " + e.What
	return e
}

// nestable says whether a command can build sandboxes of its own.
func nestable(kind enforce.Kind, p *plan.Plan) error {
	if kind != enforce.Native {
		return fault.New(fault.SandboxUnavailable, "under provider "+string(kind)+" a command cannot build sandboxes of its own").
			WithHint("--provider native --nested")
	}
	if p.Identity.UID == 0 {
		// The kernel maps uid 0 once more only for those who may set capabilities
		// of files (user_namespaces(7)), and no command may.
		return fault.New(fault.SandboxUnavailable, "a command that is root inside cannot build sandboxes of its own").
			WithHint("run it as an ordinary user, or in a workspace of one")
	}
	return nil
}

// start starts a job with one provider. It returns once the command runs, or
// the program could not be executed: until then another provider may be tried.
func start(kind enforce.Kind, p *plan.Plan, early world.Warm, abi int, o *outlet, job enforce.Job, crowded crowding) (enforce.Process, error) {
	network := netOf(p.Policy)
	var proc enforce.Process
	var err error
	switch kind {
	case enforce.Native:
		var stage *native.Stage
		if w, ok := early.(*warm); ok {
			stage = w.take(p.Identity, network)
		}
		if stage == nil {
			stage, err = native.Launch(p.Identity, network)
		}
		if err == nil {
			proc, err = stage.Begin(job)
		}
	case enforce.Bwrap:
		job.Order.Env = environ.Within(job.Order.Env, string(kind))
		proc, err = bwrap.Start(p.Identity, network == enforce.HostNet, filepath.Join(p.StateDir, "stubs"), job)
	case enforce.Landlock:
		proc, err = startWalled(p, abi, o, job, crowded)
	case enforce.Unconfined, enforce.Guard:
		proc, err = startBare(job)
	default:
		return nil, fault.New(fault.SandboxUnavailable, "there is no provider "+string(kind)+" here")
	}
	if err != nil {
		return nil, err
	}
	if err := proc.Ready(); err != nil {
		return nil, err
	}
	return proc, nil
}

// streams are the command's input and outputs. On a terminal they are opened
// only when the inner stage has opened the command's end of it.
type streams struct {
	options    stream.Options
	onTerminal bool
	set        *stream.Set
}

// newStreams also takes the signals over that a terminal in raw mode is told of.
func newStreams(p *plan.Plan, c *world.Command) *streams {
	s := &streams{options: stream.Options{Stdin: c.Stdin, Stdout: c.Stdout, Stderr: c.Stderr, Through: c.Through, Owner: owner(p.Identity)}}
	f, ok := c.Stdin.(*os.File)
	s.onTerminal = ok && f != nil && stream.IsTerminal(f)
	// Where the output goes elsewhere the terminal keeps its mode, and signals
	// come to the caller as ever.
	if out, ok := c.Stdout.(*os.File); s.onTerminal && ok && out != nil && stream.IsTerminal(out) {
		raw := make(chan os.Signal, 8)
		s.options.OnSignal = func(s os.Signal) {
			select {
			case raw <- s:
			default: // eight are waiting: the command does not listen
			}
		}
		c.Signals = raw
	}
	return s
}

func (s *streams) open() (err error) {
	if !s.onTerminal {
		s.set, err = stream.Pipes(s.options)
	}
	return err
}

// terminal opens them on a terminal that the inner stage has opened, again
// where another provider was tried before.
func (s *streams) terminal(master *os.File) ([3]*os.File, error) {
	s.close()
	o := s.options
	o.Master = master
	var err error
	if s.set, err = stream.PTY(o); err != nil {
		return [3]*os.File{}, err
	}
	return s.set.Child(), nil
}

func (s *streams) child() (files [3]*os.File) {
	if s.set != nil {
		files = s.set.Child()
	}
	return files
}

func (s *streams) close() {
	if s.set != nil {
		s.set.Close()
		s.set = nil
	}
}

func owner(id plan.Identity) *stream.Owner {
	if !id.Root {
		return nil
	}
	return &stream.Owner{UID: int(id.HostUID), GID: int(id.HostGID)}
}

// World is this machine.
type World struct {
	// Keep, when set, has an inner stage ready from one run to the next.
	Keep *Keeper
}

// ID names this machine.
func (World) ID() string {
	name, err := os.Hostname()
	if err != nil {
		return "local"
	}
	return "local:" + name
}
