package enforce

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/plan"
	"github.com/tether-sandbox/tether/policy"
)

// Kind names a provider.
type Kind string

// The providers. Auto is the order of trying them.
const (
	Auto     Kind = "auto"
	Native   Kind = "native"
	Bwrap    Kind = "bwrap"
	Landlock Kind = "landlock"
	Seatbelt Kind = "seatbelt"
	Guard    Kind = "guard"
	// Unconfined is no provider: what --no-sandbox and full-access run with.
	Unconfined Kind = "none"
)

// Graded says how far one guarantee holds, by what means, and why not further.
type Graded struct {
	Guarantee policy.Guarantee `json:"guarantee"`
	Grade     policy.Grade     `json:"grade"`
	Means     string           `json:"means"`
	Reason    string           `json:"reason,omitempty"`
}

// Machine is what grades depend on besides the plan.
type Machine struct {
	// LandlockABI is the kernel's Landlock version, zero for none.
	LandlockABI int
	// CgroupMemory and CgroupProcesses say whether control groups can limit these
	// here, CgroupTime whether they count processor time, where the policy asks for
	// it; NoCgroup is why not.
	CgroupMemory, CgroupProcesses, CgroupTime bool
	NoCgroup                                  string
}

// Grades says what a provider makes of a plan. It is honest by construction:
// what is not listed is None.
func Grades(kind Kind, p *plan.Plan, m Machine) []Graded {
	if kind == Landlock {
		return wallGrades(p, m)
	}
	if kind == Seatbelt {
		return beltGrades(p)
	}
	var out []Graded
	add := func(g policy.Guarantee, grade policy.Grade, means, reason string) {
		out = append(out, Graded{g, grade, means, reason})
	}
	if kind != Native && kind != Bwrap {
		why := "there is no jail"
		if kind == Guard {
			why = "the guard reads command lines; nothing holds a program to them"
		}
		for _, g := range policy.Guarantees {
			add(g, policy.None, string(kind), why)
		}
		return out
	}
	how := "mount namespace"
	if kind == Bwrap {
		how = "bwrap's mount namespace"
	}
	if p.Identity.HostUID == 0 {
		add(policy.Read, policy.Partial, how, "the command runs as root: root-only files of the system are readable")
	} else {
		add(policy.Read, policy.Complete, how+": system folders by allowlist, the rest absent", "")
	}
	mounts := "read-only mounts"
	if m.LandlockABI >= FilesABI && !p.Policy.Nested {
		mounts += ", Landlock behind them"
	}
	switch {
	case p.Policy.Nested:
		add(policy.Write, policy.Partial, mounts+", which nested namespaces inherit locked", nestedWhy)
	case kind == Native:
		add(policy.Write, policy.Complete, mounts+"; no nested mount or user namespaces", "")
	default:
		add(policy.Write, policy.Complete, mounts+"; no nested user namespaces by system call filter", "")
	}
	if p.Policy.Nested {
		add(policy.Secrets, policy.Partial, masksOver(len(p.Masks))+", which nested namespaces inherit locked", nestedWhy)
	} else {
		add(policy.Secrets, policy.Complete, masksOver(len(p.Masks)),
			"a secret that is created during the run is not hidden from it")
	}
	switch p.Policy.Network.Mode {
	case policy.Offline:
		add(policy.NetworkGuarantee, policy.Complete, "network namespace with a loopback of its own", "")
	case policy.Gated:
		if p.Policy.Network.Upstream != "" {
			add(policy.NetworkGuarantee, policy.Partial, "network namespace of its own; the gate lets out what the rules allow",
				"the upstream proxy resolves names, and may find any address for one that is allowed")
			break
		}
		add(policy.NetworkGuarantee, policy.Complete, "network namespace of its own; the gate lets out what the rules allow", "")
	default:
		add(policy.NetworkGuarantee, policy.None, "the host's network",
			"every address that the host reaches is reachable, its own loopback included")
	}
	add(policy.Process, policy.Complete, "process namespace, killed whole; no capabilities, no_new_privs, system call filter", "")
	sockets, later := "; sockets present at the start are hidden", laterSockets
	if m.LandlockABI >= SocketsABI && !p.Policy.Nested {
		sockets, later = ", Landlock for sockets with a path", ""
	}
	switch {
	case p.Policy.Network.Mode != policy.Open:
		add(policy.IPC, policy.Complete, "ipc and network namespaces"+sockets, later)
	case m.LandlockABI >= ScopesABI:
		add(policy.IPC, policy.Complete, "ipc namespace, Landlock scope for abstract sockets"+sockets, later)
	default:
		add(policy.IPC, policy.Partial, "ipc namespace"+sockets,
			"abstract sockets of the host can be reached: Landlock ABI 6 (Linux 6.12) or --no-network closes them")
	}
	return append(out, limits(kind, p, m))
}

// limits grades the limits of a provider that has a jail.
func limits(kind Kind, p *plan.Plan, m Machine) Graded {
	asked, means := p.Policy.Limits, "rlimits"
	onDisk := slices.ContainsFunc(p.Views, func(v plan.View) bool { return v.Origin == plan.Tmp && v.Writable })
	uncounted := ""
	switch {
	case kind == Landlock:
		uncounted, onDisk = "without a user namespace it counts all of the user's; the command's are looked at every 20 ms, and all ended when there are more", true
	case p.Identity.HostUID == 0:
		uncounted = "it does not count those of root"
	}
	if asked.MemoryBytes > 0 || asked.Processes > 0 && m.CgroupProcesses || asked.CPU > 0 && m.CgroupTime {
		means += ", a control group"
	}
	if kind != Landlock {
		means += ", sizes of folders in memory"
	}
	g := func(grade policy.Grade, reason string) Graded {
		return Graded{policy.LimitsGuarantee, grade, means, reason}
	}
	switch {
	case asked.MemoryBytes > 0 && !m.CgroupMemory:
		return g(policy.None, cmp.Or(m.NoCgroup, "no control group can limit memory here"))
	case asked.Processes > 0 && uncounted != "" && !m.CgroupProcesses:
		return g(policy.None, "the kernel does not hold processes: "+uncounted)
	case asked.ScratchBytes > 0 && onDisk:
		return g(policy.Partial, "/tmp lies on the disk: a session's is looked at several times a second, and the command ended when it is too large")
	case asked.MemoryBytes > 0 && (asked.CPU == 0 || m.CgroupTime):
		return g(policy.Complete, "")
	case asked != policy.Limits{Time: asked.Time, OutputBytes: asked.OutputBytes, FreeDisk: asked.FreeDisk}:
		uncounted = ""
		if asked.CPU > 0 && !m.CgroupTime {
			uncounted = "; processor time of children that nobody waits for counts as long as they run"
		}
		return g(policy.Complete, "of what was asked; memory is not limited without --max-memory"+uncounted)
	case uncounted != "":
		return g(policy.Partial, "memory is not limited without --max-memory, and the kernel does not hold processes: "+uncounted)
	}
	return g(policy.Partial, "memory is not limited without --max-memory")
}

// laterSockets is what is left of them without Landlock's help.
const laterSockets = "a socket that the host makes later in a folder that shows stays open: Landlock ABI 9 (Linux 7.1) closes it"

// nestedWhy is why nested sandboxes cost a grade.
const nestedWhy = "from a mount namespace of its own a command can remove or replace a protected file, and more of the kernel can be reached"

// masksOver says in words how many files are hidden.
func masksOver(n int) string {
	switch n {
	case 0:
		return "a search at the start, which found nothing to hide"
	case 1:
		return "a mask over the one that was present at the start"
	}
	return fmt.Sprintf("masks over the %d that were present at the start", n)
}

// Meets says whether grades reach what a policy requires. The error names the
// first guarantee that falls short; the hint accepts all that do.
func Meets(pol policy.Policy, kind Kind, grades []Graded) error {
	var short *fault.Error
	hint := ""
	for _, of := range policy.Guarantees {
		g := Graded{Guarantee: of, Reason: "it is not graded"} // None, unless the list says more
		if i := slices.IndexFunc(grades, func(g Graded) bool { return g.Guarantee == of }); i >= 0 {
			g = grades[i]
		}
		need := pol.Required(of)
		if g.Grade >= need {
			continue
		}
		hint += fmt.Sprintf(" --accept %s=%s", g.Guarantee, g.Grade)
		if short == nil {
			short = fault.New(fault.SandboxUnavailable, fmt.Sprintf("provider %s holds %s only to the grade %s, the policy requires %s: %s",
				kind, g.Guarantee, g.Grade, need, g.Reason))
		}
	}
	if short == nil {
		return nil
	}
	return short.WithHint(strings.TrimSpace(hint))
}

// Overall is the lowest grade among the required guarantees.
func Overall(pol policy.Policy, grades []Graded) policy.Grade {
	lowest := policy.Complete
	required := false
	for _, g := range grades {
		if pol.Required(g.Guarantee) == policy.None {
			continue
		}
		required = true
		lowest = min(lowest, g.Grade)
	}
	if !required {
		return policy.None
	}
	return lowest
}
