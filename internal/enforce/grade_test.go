package enforce_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/enforce/enforcetest"
	"github.com/tether-sandbox/tether/internal/plan"
	"github.com/tether-sandbox/tether/policy"
)

const newest = 8 // a Landlock version with scopes

// gradesOf returns the grade of each guarantee, in the order of reports.
func gradesOf(kind enforce.Kind, p *plan.Plan, abi int) string {
	short := map[policy.Grade]string{policy.None: "N", policy.Partial: "P", policy.Complete: "C"}
	var out []string
	for _, g := range enforce.Grades(kind, p, enforce.Machine{LandlockABI: abi}) {
		out = append(out, g.Guarantee.String()+"="+short[g.Grade])
	}
	return strings.Join(out, " ")
}

func TestGrades(t *testing.T) {
	with := func(change func(*plan.Plan)) *plan.Plan {
		p := enforcetest.Plan()
		change(p)
		return p
	}
	open := func(p *plan.Plan) { p.Policy.Network.Mode = policy.Open }
	gated := func(p *plan.Plan) { p.Policy.Network.Mode = policy.Gated }
	for _, c := range []struct {
		name string
		kind enforce.Kind
		plan *plan.Plan
		abi  int
		want string
	}{
		{"native, offline", enforce.Native, with(func(*plan.Plan) {}), newest,
			"read=C write=C secrets=C network=C process=C ipc=C limits=P"},
		{"native, offline, without Landlock", enforce.Native, with(func(*plan.Plan) {}), 0,
			"read=C write=C secrets=C network=C process=C ipc=C limits=P"},
		{"bwrap, offline", enforce.Bwrap, with(func(*plan.Plan) {}), newest,
			"read=C write=C secrets=C network=C process=C ipc=C limits=P"},
		{"native, open", enforce.Native, with(open), newest,
			"read=C write=C secrets=C network=N process=C ipc=C limits=P"},
		{"native, open, the first Landlock with scopes", enforce.Native, with(open), 6,
			"read=C write=C secrets=C network=N process=C ipc=C limits=P"},
		{"native, open, the last without", enforce.Native, with(open), 5,
			"read=C write=C secrets=C network=N process=C ipc=P limits=P"},
		{"native, gated", enforce.Native, with(func(p *plan.Plan) { p.Policy.Network.Mode = policy.Gated }), newest,
			"read=C write=C secrets=C network=C process=C ipc=C limits=P"},
		{"root, idmapped", enforce.Native, with(func(p *plan.Plan) {
			p.Identity = plan.Identity{Root: true, Idmapped: true, HostUID: 0x70000000}
		}), newest, "read=C write=C secrets=C network=C process=C ipc=C limits=P"},
		{"root as root", enforce.Native, with(func(p *plan.Plan) { p.Identity = plan.Identity{Root: true} }), newest,
			"read=P write=C secrets=C network=C process=C ipc=C limits=P"},
		{"processes of root are not counted", enforce.Native, with(func(p *plan.Plan) {
			p.Identity, p.Policy.Limits.Processes = plan.Identity{Root: true}, 9
		}), newest, "read=P write=C secrets=C network=C process=C ipc=C limits=N"},
		{"processes", enforce.Native, with(func(p *plan.Plan) { p.Policy.Limits.Processes = 9 }), newest,
			"read=C write=C secrets=C network=C process=C ipc=C limits=C"},
		{"file size", enforce.Bwrap, with(func(p *plan.Plan) { p.Policy.Limits.FileBytes = 9 }), newest,
			"read=C write=C secrets=C network=C process=C ipc=C limits=C"},
		{"scratch, and the session's /tmp on the disk", enforce.Native, with(func(p *plan.Plan) {
			p.Policy.Limits.ScratchBytes = 9
			p.Views = append(p.Views, plan.View{At: "/tmp", Origin: plan.Tmp, Writable: true})
		}), newest, "read=C write=C secrets=C network=C process=C ipc=C limits=P"},
		{"scratch", enforce.Native, with(func(p *plan.Plan) { p.Policy.Limits.ScratchBytes = 9 }), newest,
			"read=C write=C secrets=C network=C process=C ipc=C limits=C"},
		{"open files and processor time", enforce.Native, with(func(p *plan.Plan) {
			p.Policy.Limits.OpenFiles, p.Policy.Limits.CPU = 99, 1
		}), newest, "read=C write=C secrets=C network=C process=C ipc=C limits=C"},
		{"memory without a control group", enforce.Native, with(func(p *plan.Plan) { p.Policy.Limits.MemoryBytes = 9 }), newest,
			"read=C write=C secrets=C network=C process=C ipc=C limits=N"},
		{"guard", enforce.Guard, with(func(*plan.Plan) {}), newest,
			"read=N write=N secrets=N network=N process=N ipc=N limits=N"},
		{"no sandbox", enforce.Unconfined, with(func(*plan.Plan) {}), newest,
			"read=N write=N secrets=N network=N process=N ipc=N limits=N"},
		{"landlock, with hidden files", enforce.Landlock, with(func(*plan.Plan) {}), newest,
			"read=P write=P secrets=N network=C process=P ipc=C limits=P"},
		{"landlock, nothing hidden", enforce.Landlock, with(func(p *plan.Plan) { p.Masks, p.Locks = nil, nil }), newest,
			"read=P write=P secrets=C network=C process=P ipc=C limits=P"},
		{"landlock, a configuration with credentials", enforce.Landlock, with(func(p *plan.Plan) { p.Masks = nil }), newest,
			"read=P write=P secrets=N network=C process=P ipc=C limits=P"},
		{"landlock, nothing writable", enforce.Landlock, with(func(p *plan.Plan) {
			p.Policy.Profile = policy.ReadOnly
			for i := range p.Views {
				p.Views[i].Writable = false
			}
		}), newest, "read=P write=P secrets=C network=C process=P ipc=C limits=P"},
		{"landlock, gated", enforce.Landlock, with(gated), newest, "read=P write=P secrets=N network=P process=P ipc=C limits=P"},
		{"landlock, gated, the first that holds TCP", enforce.Landlock, with(gated), 4, "read=P write=P secrets=N network=P process=N ipc=C limits=P"},
		{"landlock, gated, the last that does not: nothing leads out", enforce.Landlock, with(gated), 3, "read=P write=P secrets=N network=C process=N ipc=C limits=P"},
		{"landlock, open", enforce.Landlock, with(open), newest, "read=P write=P secrets=N network=N process=P ipc=C limits=P"},
		{"landlock, the last without scopes", enforce.Landlock, with(func(*plan.Plan) {}), 5,
			"read=P write=P secrets=N network=C process=N ipc=C limits=P"},
		{"landlock, the first that keeps files from being cut", enforce.Landlock, with(func(*plan.Plan) {}), 3,
			"read=P write=P secrets=N network=C process=N ipc=C limits=P"},
		{"landlock, the last that does not", enforce.Landlock, with(func(*plan.Plan) {}), 2,
			"read=P write=N secrets=N network=C process=N ipc=C limits=P"},
		{"landlock, without it", enforce.Landlock, with(func(*plan.Plan) {}), 0,
			"read=N write=N secrets=N network=N process=N ipc=N limits=N"},
		{"landlock counts no processes", enforce.Landlock, with(func(p *plan.Plan) { p.Policy.Limits.Processes = 9 }), newest,
			"read=P write=P secrets=N network=C process=P ipc=C limits=N"},
		{"a provider that nobody knows", "magic", with(func(*plan.Plan) {}), newest,
			"read=N write=N secrets=N network=N process=N ipc=N limits=N"},
	} {
		if got := gradesOf(c.kind, c.plan, c.abi); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

// TestGradesAreExplained: whatever is less than complete says why, and every
// guarantee is named exactly once.
func TestGradesAreExplained(t *testing.T) {
	for _, kind := range []enforce.Kind{enforce.Native, enforce.Bwrap, enforce.Landlock, enforce.Guard, enforce.Unconfined, "magic"} {
		for _, mode := range []policy.NetworkMode{policy.Offline, policy.Gated, policy.Open} {
			p := enforcetest.Plan()
			p.Policy.Network.Mode = mode
			grades := enforce.Grades(kind, p, enforce.Machine{})
			if len(grades) != len(policy.Guarantees) {
				t.Fatalf("%s: %d grades, want %d", kind, len(grades), len(policy.Guarantees))
			}
			for i, g := range grades {
				if g.Guarantee != policy.Guarantees[i] {
					t.Errorf("%s: grade %d is of %s, want %s", kind, i, g.Guarantee, policy.Guarantees[i])
				}
				if g.Grade != policy.Complete && g.Reason == "" || g.Means == "" {
					t.Errorf("%s, network %s: %s is %s by %q because of %q", kind, mode, g.Guarantee, g.Grade, g.Means, g.Reason)
				}
			}
		}
	}
}

func TestMeets(t *testing.T) {
	offline := policy.Default("/w")
	offline.Network.Mode = policy.Offline
	accepting := func(a map[policy.Guarantee]policy.Grade) policy.Policy {
		p := offline
		p.Accept = a
		return p
	}
	all := map[policy.Guarantee]policy.Grade{policy.Read: policy.None, policy.Write: policy.None, policy.Secrets: policy.None,
		policy.NetworkGuarantee: policy.None, policy.Process: policy.None}
	without := func(g policy.Guarantee) map[policy.Guarantee]policy.Grade {
		m := map[policy.Guarantee]policy.Grade{}
		for k, v := range all {
			if k != g {
				m[k] = v
			}
		}
		return m
	}
	open := policy.Default("/w")
	open.Network = policy.Network{Mode: policy.Open}
	for _, c := range []struct {
		name   string
		policy policy.Policy
		kind   enforce.Kind
		abi    int
		short  string // what falls short, "" for nothing
	}{
		{"native holds the default", offline, enforce.Native, 0, ""},
		{"bwrap holds the default", offline, enforce.Bwrap, 0, ""},
		{"an open network is no promise", open, enforce.Native, 0, ""},
		{"the guard holds nothing", offline, enforce.Guard, newest, "read"},
		{"the guard with everything accepted", accepting(all), enforce.Guard, newest, ""},
		{"the guard with all but write accepted", accepting(without(policy.Write)), enforce.Guard, newest, "write"},
		{"the guard with all but process accepted", accepting(without(policy.Process)), enforce.Guard, newest, "process"},
		{"the guard with all but network accepted", accepting(without(policy.NetworkGuarantee)), enforce.Guard, newest, "network"},
		{"ipc is asked for by name", withAccept(open, policy.IPC, policy.Complete), enforce.Native, 5, "ipc"},
		{"ipc where the kernel can", withAccept(open, policy.IPC, policy.Complete), enforce.Native, 6, ""},
		{"less of ipc", withAccept(open, policy.IPC, policy.Partial), enforce.Native, 5, ""},
		{"memory", func() policy.Policy { p := offline; p.Limits.MemoryBytes = 1; return p }(), enforce.Native, newest, "limits"},
	} {
		p := enforcetest.Plan()
		p.Policy = c.policy
		err := enforce.Meets(c.policy, c.kind, enforce.Grades(c.kind, p, enforce.Machine{LandlockABI: c.abi}))
		if c.short == "" {
			if err != nil {
				t.Errorf("%s: got %v, want nil", c.name, err)
			}
			continue
		}
		e, ok := errors.AsType[*fault.Error](err)
		if !ok || e.Code != fault.SandboxUnavailable {
			t.Errorf("%s: got %v, want %s", c.name, err, fault.SandboxUnavailable)
			continue
		}
		if !strings.Contains(e.Hint, "--accept "+c.short+"=") || !strings.Contains(e.What, " "+c.short+" ") {
			t.Errorf("%s: got %q with the hint %q, want both to name %s", c.name, e.What, e.Hint, c.short)
		}
		if strings.Contains(e.Hint, "no-sandbox") {
			t.Errorf("%s: the hint %q suggests to run without a sandbox", c.name, e.Hint)
		}
	}
}

func withAccept(p policy.Policy, g policy.Guarantee, grade policy.Grade) policy.Policy {
	p.Accept = map[policy.Guarantee]policy.Grade{g: grade}
	return p
}

// TestMeetsNothing: grades that are not there are not met. A list without a
// guarantee must not pass for one that holds it.
func TestMeetsNothing(t *testing.T) {
	if err := enforce.Meets(policy.Default("/w"), enforce.Native, nil); err == nil {
		t.Error("no grades at all: got nil, want an error")
	}
}

func TestOverall(t *testing.T) {
	pol := policy.Default("/w")
	grade := func(g policy.Guarantee, grade policy.Grade) enforce.Graded {
		return enforce.Graded{Guarantee: g, Grade: grade}
	}
	full := policy.Default("/w").WithProfile(policy.FullAccess)
	for _, c := range []struct {
		name   string
		policy policy.Policy
		grades []enforce.Graded
		want   policy.Grade
	}{
		{"the lowest of what is required", pol, []enforce.Graded{grade(policy.Read, policy.Complete), grade(policy.Write, policy.Partial)}, policy.Partial},
		{"what is not required does not count", pol, []enforce.Graded{grade(policy.Read, policy.Complete), grade(policy.IPC, policy.None)}, policy.Complete},
		{"none", pol, []enforce.Graded{grade(policy.Read, policy.None), grade(policy.Write, policy.Complete)}, policy.None},
		{"accepted as None counts no more", withAccept(pol, policy.Read, policy.None),
			[]enforce.Graded{grade(policy.Read, policy.None), grade(policy.Write, policy.Complete)}, policy.Complete},
		{"accepted as Partial still counts", withAccept(pol, policy.Read, policy.Partial),
			[]enforce.Graded{grade(policy.Read, policy.Partial), grade(policy.Write, policy.Complete)}, policy.Partial},
		{"full access requires nothing and promises nothing", full, []enforce.Graded{grade(policy.Read, policy.Complete)}, policy.None},
		{"no grades", pol, nil, policy.None},
	} {
		if got := enforce.Overall(c.policy, c.grades); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}
