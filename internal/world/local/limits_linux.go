package local

import (
	"cmp"
	"time"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/enforce/cgroup"
	"github.com/tether-sandbox/tether/internal/enforce/landlock"
	"github.com/tether-sandbox/tether/internal/plan"
	"github.com/tether-sandbox/tether/internal/world"
	"github.com/tether-sandbox/tether/policy"
)

// Machine is what grades depend on besides a plan. It looks for control groups
// only where the limits ask for them.
func (World) Machine(l policy.Limits) enforce.Machine {
	abi, _ := landlock.ABI() // none is zero, and told by the grades
	m := enforce.Machine{LandlockABI: abi}
	if l.MemoryBytes > 0 || l.Processes > 0 || l.CPU > 0 {
		at := cgroup.Find()
		m.CgroupMemory, m.CgroupTime = at.Memory(), at.Time()
		// systemd is not asked for processes alone.
		m.CgroupProcesses = at.Processes() || at.Asks(cgroup.Want{Memory: l.MemoryBytes, Time: l.CPU > 0})
		m.NoCgroup = at.Why().Error()
	}
	return m
}

// CanLimit says why a limit cannot be enforced here whatever the provider.
func (w World) CanLimit(l policy.Limits) error {
	if l.MemoryBytes == 0 {
		return nil
	}
	m := w.Machine(l)
	if m.CgroupMemory {
		return nil
	}
	return fault.New(fault.LimitUnenforceable, "memory cannot be limited here: "+m.NoCgroup).WithHint(wayTo(l))
}

// wayTo is how to type a command so that its memory can be limited, or what says
// what stands in the way.
func wayTo(l policy.Limits) string {
	way := ""
	if l.MemoryBytes > 0 {
		way = cgroup.Way("tether run --max-memory " + policy.SizeText(l.MemoryBytes) + " -- CMD")
	}
	return cmp.Or(way, "tether doctor")
}

// enter puts a process into a group.
func enter(g *cgroup.Group, l policy.Limits, pid int) error {
	if err := g.Enter(pid); err != nil {
		return fault.Wrap(fault.LimitUnenforceable, "the command could not be put into a control group", err).WithHint(wayTo(l))
	}
	return nil
}

// limits are what the inner stage is told of a policy's.
func limits(l policy.Limits, bare bool) enforce.Limits {
	out := enforce.Limits{Processes: cmp.Or(l.Processes, policy.BuiltinProcesses), FileBytes: l.FileBytes, OpenFiles: l.OpenFiles,
		CPUSeconds: int64((l.CPU + time.Second - 1) / time.Second), ScratchBytes: l.ScratchBytes}
	if bare {
		// Without a user namespace all that the user runs anywhere would count.
		out.Processes = 0
	}
	return out
}

// group makes the control group that a run needs: none, unless the policy limits
// memory, or processes or processor time where one is to be had.
func group(p *plan.Plan) (*cgroup.Group, error) {
	l := p.Policy.Limits
	if l.MemoryBytes == 0 && l.Processes == 0 && l.CPU == 0 {
		return nil, nil
	}
	at := cgroup.Find()
	want := cgroup.Want{Memory: l.MemoryBytes, Time: l.CPU > 0 && at.Time()}
	if l.Processes > 0 && (at.Processes() || at.Asks(want)) {
		want.Processes = l.Processes + enforce.OwnThreads
	}
	if want == (cgroup.Want{}) {
		return nil, nil // the kernel counts them for the user namespace, the inner stage time
	}
	g, err := at.Make(want)
	if err != nil {
		return nil, fault.Wrap(fault.LimitUnenforceable, "no control group could be made", err)
	}
	return g, nil
}

// behindGroup lets the group be met first: it tells that it was. What is not
// limited by the kernel's count of a user stays so.
func behindGroup(l *enforce.Limits) {
	if l.Processes > 0 {
		l.Processes += 8
	}
}

// starved says that a sandbox was not built for want of memory, if so.
func starved(g *cgroup.Group, l policy.Limits) error {
	if g == nil || !g.Events().Killed {
		return nil
	}
	const enough = 16 << 20
	return fault.New(fault.LimitMemory, "no command starts in "+policy.SizeText(l.MemoryBytes)+" of memory: the sandbox itself took more").
		WithHint("--max-memory " + policy.SizeText(max(2*l.MemoryBytes, enough)))
}

// account adds what has happened in a group, and removes it.
func account(g *cgroup.Group, out *world.Outcome) error {
	if g == nil {
		return nil
	}
	e := g.Events()
	if e.Killed {
		out.Met |= enforce.MetMemory
	}
	if e.Refused {
		out.Met |= enforce.MetProcesses
	}
	if e.Lost {
		out.Notes = append(out.Notes, "somebody lifted the limit of memory while the command ran")
	}
	if err := g.Remove(); err != nil {
		return fault.Wrap(fault.Internal, "the command ran, and its control group stays", err)
	}
	return nil
}
