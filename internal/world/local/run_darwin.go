package local

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/egress"
	"github.com/tether-sandbox/tether/internal/egress/gate"
	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/enforce/seatbelt"
	"github.com/tether-sandbox/tether/internal/plan"
	"github.com/tether-sandbox/tether/internal/plan/secrets"
	"github.com/tether-sandbox/tether/internal/world"
	"github.com/tether-sandbox/tether/internal/world/local/stream"
	"github.com/tether-sandbox/tether/policy"
)

// World is this machine.
type World struct{ Keep *Keeper }

// Keeper keeps nothing here: nothing can be started before there is a profile.
type Keeper struct{}

// Close does nothing.
func (*Keeper) Close() {}

// ID names this machine.
func (World) ID() string {
	name, err := os.Hostname()
	if err != nil {
		return "local"
	}
	return "local:" + name
}

// Machine is what grades depend on besides a plan.
func (World) Machine(policy.Limits) enforce.Machine { return enforce.Machine{} }

// CanLimit says why a limit cannot be enforced here whatever the provider.
func (World) CanLimit(l policy.Limits) error {
	switch {
	case l.MemoryBytes > 0:
		return fault.New(fault.LimitUnenforceable, "memory cannot be limited here: macOS has no control groups")
	case l.ScratchBytes > 0:
		return fault.New(fault.LimitUnenforceable, "scratch space cannot be limited here: it lies on the disk")
	}
	return nil
}

// known is nothing: nobody watches here.
func (World) known(policy.Policy, world.Warm) (k *secrets.Known, done func()) { return nil, func() {} }

// Warm starts nothing.
func (World) Warm(policy.Policy, enforce.Kind, []string) world.Warm { return nothing{} }

type nothing struct{}

func (nothing) Discard() {}

// Run runs a command in a plan of this world.
//
// Commands that run in one workspace at the same time need not know of each
// other here: none can move what another hides, nor a folder around it.
func (World) Run(ctx context.Context, p *plan.Plan, c world.Command) (world.Outcome, error) {
	begin := time.Now()
	out := world.Outcome{Provider: c.Provider}
	if c.Provider == enforce.Auto || c.Provider == "" {
		out.Provider = enforce.Seatbelt
	}
	bare := out.Provider == enforce.Unconfined || out.Provider == enforce.Guard
	if !bare && out.Provider != enforce.Seatbelt {
		return out, fault.New(fault.SandboxUnavailable, "there is no provider "+string(out.Provider)+" here").WithHint("--provider seatbelt")
	}
	out.Grades = enforce.Grades(out.Provider, p, enforce.Machine{})
	if err := enforce.Meets(p.Policy, out.Provider, out.Grades); err != nil && out.Provider != enforce.Unconfined {
		return out, err
	}
	before, err := takeSnapshot(p, c.Provider)
	if err != nil {
		return world.Outcome{Findings: before.dead}, err
	}
	fail := func(err error) (world.Outcome, error) {
		before.drop()
		return world.Outcome{Findings: before.dead}, err
	}
	s := &start{plan: p, command: c, bare: bare}
	defer s.close()
	proc, err := s.begin(ctx)
	if err != nil {
		return fail(err)
	}
	s.set.Start()
	disks := guardDisks(p, out.Provider, proc.Kill)
	ended, err := attend(ctx, proc, c, &out)
	if low, killed := disks.end(); killed || ended.Status != 0 {
		out.LowDisk = low
	}
	var lost error
	if serr := s.set.Settled(ctx); err == nil && serr != nil && !errors.Is(serr, context.Canceled) && !errors.Is(serr, context.DeadlineExceeded) {
		lost = fault.Wrap(fault.OutputLost, "the command ran, and its output could not be written", serr)
	}
	out.Duration, out.Interrupted = time.Since(begin), s.set.Interrupted()
	s.report(&out)
	findings, ferr := before.settle(p)
	<-proc.Gone()
	out.Findings = findings
	if err = errors.Join(err, ferr, ctx.Err(), lost); err != nil {
		return out, err
	}
	ws := syscall.WaitStatus(ended.Status)
	out.NotExecuted = ended.NoExec
	if ws.Signaled() {
		out.Signal = int(ws.Signal())
		if out.Ended != 0 && ws.Signal() == syscall.SIGKILL {
			out.Signal = int(out.Ended) // ours was only the last word
		}
	}
	out.Exit = ws.ExitStatus()
	return out, nil
}

// start is one start of a command and what has to be cleared up after it.
type start struct {
	plan    *plan.Plan
	command world.Command
	bare    bool

	set    *stream.Set
	gate   *gate.Gate
	folder string
}

func (s *start) begin(ctx context.Context) (enforce.Process, error) {
	p, c := s.plan, s.command
	var err error
	s.set, err = stream.Open(stream.Options{Stdin: c.Stdin, Stdout: c.Stdout, Stderr: c.Stderr, Through: c.Through})
	if err != nil {
		return nil, err
	}
	job := enforce.Job{Stdio: s.set.Child(), Order: enforce.Order{Argv: c.Args, Env: p.Env, Dir: p.Dir, Terminal: s.set.Terminal(), Bare: s.bare}}
	profile := ""
	if !s.bare {
		l := p.Policy.Limits
		job.Order.Limits = enforce.Limits{Processes: l.Processes, FileBytes: l.FileBytes, OpenFiles: l.OpenFiles,
			CPUSeconds: int64((l.CPU + time.Second - 1) / time.Second)}
		o := seatbelt.Options{}
		if s.set.Terminal() {
			o.Terminal = job.Stdio[0].Name()
		}
		if err := s.open(&o, &job.Order); err != nil {
			return nil, err
		}
		text, err := seatbelt.Profile(p, o)
		if err != nil {
			return nil, err
		}
		if err := s.private(); err != nil {
			return nil, fault.Wrap(fault.SandboxUnavailable, "cannot make the folder of this run", err)
		}
		// In a file and not an argument: those can be read by every user, and the
		// profile names what is hidden. It lies beside what the command sees.
		profile = s.folder + ".sb"
		if err := writeNew(profile, text); err != nil {
			return nil, fault.Wrap(fault.SandboxUnavailable, "cannot write the profile", err)
		}
		for _, port := range p.Policy.Network.Publish {
			if c.Published != nil && p.Policy.Network.Mode != policy.Open {
				c.Published(port, fmt.Sprintf("127.0.0.1:%d", port))
			}
		}
	}
	if c.Check != nil {
		if err := c.Check(ctx); err != nil {
			return nil, err
		}
	}
	if profile != "" {
		defer os.Remove(profile)
	}
	proc, err := seatbelt.Start(profile, job)
	if err != nil {
		return nil, err
	}
	return proc, proc.Ready()
}

// open begins to serve the gate, if the policy has one, on a port of the host's
// loopback that the profile opens. Who does not know the secret gets nothing.
func (s *start) open(o *seatbelt.Options, order *enforce.Order) error {
	p, c := s.plan, s.command
	if p.Policy.Network.Mode != policy.Gated {
		return nil
	}
	rules, err := egress.Compile(p.Policy.Network)
	if err != nil {
		return err
	}
	var secret [16]byte
	if _, err := rand.Read(secret[:]); err != nil {
		return err
	}
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return fault.Wrap(fault.SandboxUnavailable, "the gate cannot listen on the loopback", err)
	}
	at, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		l.Close()
		return fault.New(fault.Internal, "a TCP listener without a port")
	}
	options := gate.Options{Rules: rules, Upstream: c.Upstream, Secret: hex.EncodeToString(secret[:]), Guard: c.Guard}
	var g *gate.Gate
	if c.Denied != nil {
		options.Denied = func(d egress.Denial) { c.Denied(d, g) }
	}
	g = gate.New(options)
	s.gate = g
	g.ServeProxyOn(l)
	o.Gate = uint16(at.Port)
	env := slices.DeleteFunc(gate.ProxyEnv(at.Port, options.Secret), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		_, set := p.Policy.Env.Set[name]
		// There is no loopback of its own: the host's is asked for like any host.
		return set || strings.EqualFold(name, "no_proxy")
	})
	order.Env = append(order.Env[:len(order.Env):len(order.Env)], env...)
	return nil
}

// private makes what the plan has private to this run.
func (s *start) private() error {
	p := s.plan
	for i, dir := range p.Scratch {
		if i == 0 || len(dir.Path) < len(s.folder) {
			s.folder = dir.Path
		}
	}
	if s.folder == "" || filepath.Base(s.folder) == "/" {
		return errors.New("the plan has none")
	}
	list := slices.Clone(p.Scratch)
	slices.SortFunc(list, func(a, b plan.Scratch) int { return strings.Compare(a.Path, b.Path) })
	for i, dir := range list {
		// The outermost must not be there: nobody can have put it in our way.
		if err := os.Mkdir(dir.Path, 0o700); err != nil {
			if i == 0 {
				s.folder = ""
			}
			return err
		}
	}
	for _, d := range p.Dirs {
		if !strings.HasPrefix(d, s.folder+"/") {
			return fmt.Errorf("%s lies outside of it", d)
		}
		if strings.HasSuffix(d, "/") {
			if err := os.MkdirAll(d, 0o700); err != nil {
				return err
			}
			continue
		}
		if err := s.file(d, nil, 0o600); err != nil {
			return err
		}
	}
	for _, f := range p.Files {
		if err := s.file(f.Path, f.Content, 0o400); err != nil {
			return err
		}
	}
	return nil
}

// writeNew writes a file that was not there.
func writeNew(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

func (s *start) file(path string, content []byte, mode os.FileMode) error {
	if !strings.HasPrefix(path, s.folder+"/") {
		return fmt.Errorf("%s lies outside of it", path)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, content, mode)
}

func (s *start) close() {
	if s.set != nil {
		s.set.Close()
	}
	if s.gate != nil {
		s.gate.Close()
	}
	if s.folder != "" {
		_ = removeTree(s.folder) // found and removed with the user's other temporary files, if not now
	}
}

// report says what the gate refused.
func (s *start) report(out *world.Outcome) {
	if s.gate == nil {
		return
	}
	var more int
	out.Link, out.LinkWhy = enforce.Proxy, "there is no network of its own on this system"
	if out.Refused, more = s.gate.Denials(); more > 0 {
		out.Notes = append(out.Notes, fmt.Sprintf("the gate refused %d more connections than are listed", more))
	}
	for i := range out.Grades {
		if g := &out.Grades[i]; g.Guarantee == policy.NetworkGuarantee {
			if name := s.command.Upstream.String(); name != "" {
				g.Means += ", through the upstream proxy " + name
			}
			g.Means += " (proxy: programs that know of proxies; for others nothing leads out)"
		}
	}
}
