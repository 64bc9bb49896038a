package tether

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/machine"
	"github.com/tether-sandbox/tether/internal/world/local"
	"github.com/tether-sandbox/tether/policy"
)

// Diagnosis says how strong each guarantee is on this machine.
type Diagnosis struct {
	// Grades has one entry for each guarantee: how far the best provider that
	// works here holds it, without a network, and what raises it.
	Grades []Standing `json:"grades"`
	// Facts are what was found of the kernel and its settings.
	Facts []Fact `json:"facts"`
	// Providers were each tried with a harmless command.
	Providers []Provider `json:"providers"`
}

// Standing is where one guarantee stands on this machine.
type Standing struct {
	// Guarantee is read, write, secrets, network, process, ipc or limits.
	Guarantee policy.Guarantee `json:"guarantee"`
	// Grade is how far it is held: None, Partial or Complete.
	Grade policy.Grade `json:"grade"`
	// Provider is the best one that works here; empty: there is none.
	Provider string `json:"provider,omitempty"`
	// Means is how it is held.
	Means string `json:"means,omitempty"`
	// Reason is why not further.
	Reason string `json:"reason,omitempty"`
	// Raise is what to type to raise it, in lines for a shell; empty when nothing
	// helps or nothing is missing.
	Raise string `json:"raise,omitempty"`
}

// Fact is one thing found, and, where it stands in the way, what changes it.
type Fact struct {
	// What was found.
	What string `json:"what"`
	// Good is false for what lowers a grade or keeps a provider from working.
	Good bool `json:"good"`
	// Fix is what to type, in lines for a shell; empty when nothing helps or
	// nothing is wrong.
	Fix string `json:"fix,omitempty"`
	// Then is what the fix needs to come into force, or what else there is to do.
	Then string `json:"then,omitempty"`
	// Blocks names the providers that do not work because of it.
	Blocks []string `json:"blocks,omitempty"`
	// Raises names the guarantees that the fix raises by itself.
	Raises []policy.Guarantee `json:"raises,omitempty"`
}

// Provider says whether a provider works here, found by really starting
// something with it.
type Provider struct {
	// Name is native, bwrap or landlock, on macOS seatbelt.
	Name string `json:"name"`
	// Works says that a command was really confined by it.
	Works bool `json:"works"`
	// Code, Why and Hint say what keeps it from working.
	Code fault.Code `json:"code,omitempty"`
	Why  string     `json:"why,omitempty"`
	Hint string     `json:"hint,omitempty"`
	// Accept are the flags without which it is not taken, because it holds less
	// than is required.
	Accept string `json:"accept,omitempty"`
	// Report has the grades that it reaches without a network.
	Report *Report `json:"report,omitempty"`
	// Gate is how the gate is joined with it: veth, where every program's
	// connections come to it, or proxy, which programs must know of; empty where
	// it cannot be built. GateWhy says why not better.
	Gate    string `json:"gate,omitempty"`
	GateWhy string `json:"gate_why,omitempty"`
}

// Diagnose tries every provider with a harmless command in an empty folder.
func Diagnose(ctx context.Context) (Diagnosis, error) {
	d := Diagnosis{}
	for _, a := range machine.Advise(local.Facts()) {
		d.Facts = append(d.Facts, Fact(a))
	}
	dir, err := os.MkdirTemp("", "tether-doctor-")
	if err != nil {
		return d, fault.Wrap(fault.Internal, "cannot make a folder to try in", err)
	}
	defer os.RemoveAll(dir)
	for _, kind := range local.Jails() {
		d.Providers = append(d.Providers, try(ctx, string(kind), dir))
	}
	harmless(d.Facts, d.Providers)
	d.Grades = standings(d.Facts, d.Providers)
	return d, nil
}

// harmless takes the blame from facts that could keep native from working where
// it works all the same.
func harmless(facts []Fact, providers []Provider) {
	for i := range facts {
		f := &facts[i]
		if len(f.Raises) == 0 && slices.ContainsFunc(providers, func(p Provider) bool {
			return p.Works && p.Name == "native" && slices.Contains(f.Blocks, p.Name)
		}) {
			f.Good, f.Fix, f.Then, f.Blocks = true, "", "", nil
		}
	}
}

// standings says where each guarantee stands.
func standings(facts []Fact, providers []Provider) []Standing {
	best := slices.IndexFunc(providers, func(p Provider) bool { return p.Works })
	out := make([]Standing, 0, len(policy.Guarantees))
	for _, g := range policy.Guarantees {
		s := Standing{Guarantee: g, Reason: "no provider works here"}
		if best >= 0 {
			p := providers[best]
			for _, r := range p.Report.Grades {
				if r.Guarantee == g {
					s = Standing{Guarantee: g, Grade: r.Grade, Provider: p.Name, Means: r.Means, Reason: r.Reason}
				}
			}
		}
		if s.Grade < policy.Complete {
			s.Raise = raise(facts, g, providers, best)
		}
		out = append(out, s)
	}
	return out
}

// raise lists the fixes that raise a guarantee: by themselves, or by making a
// better provider work than the best that does.
func raise(facts []Fact, g policy.Guarantee, providers []Provider, best int) string {
	better := providers[:max(best, 0)]
	if best < 0 {
		better = providers
	}
	var lines []string
	for _, f := range facts {
		blocks := slices.ContainsFunc(better, func(p Provider) bool { return slices.Contains(f.Blocks, p.Name) })
		if f.Fix != "" && (blocks && !f.Good || slices.Contains(f.Raises, g)) {
			lines = append(lines, f.Fix)
		}
	}
	return strings.Join(lines, "\n")
}

func try(ctx context.Context, name, dir string) Provider {
	p := Provider{Name: name}
	pol := policy.Default(dir)
	pol.Network.Mode = policy.Offline
	need := pol
	if name == "landlock" {
		// It holds less, and is taken by those alone who accept that.
		pol.Accept = map[policy.Guarantee]policy.Grade{}
		for _, g := range policy.Guarantees {
			if g != policy.IPC {
				pol.Accept[g] = policy.None
			}
		}
	}
	if name == string(enforce.Seatbelt) {
		// It has no process namespace, and says so.
		pol.Accept = map[policy.Guarantee]policy.Grade{policy.Process: policy.Partial}
	}
	res, err := tryRun(ctx, pol, name)
	if err != nil {
		p.Code, p.Why, p.Hint = fault.CodeOf(err), fault.TextOf(err), fault.HintOf(err)
		return p
	}
	p.Works, p.Report = true, &res.Report
	p.Report.foresee()
	for i := range p.Report.Grades {
		g := &p.Report.Grades[i]
		if g.Required = need.Required(g.Guarantee); g.Grade < g.Required {
			p.Accept += fmt.Sprintf(" --accept %s=%s", g.Guarantee, g.Grade)
		}
	}
	if p.Accept = strings.TrimSpace(p.Accept); p.Accept != "" {
		p.Report.Overall = lowest(p.Report.Grades)
	}
	pol.Network.Mode = policy.Gated
	gated, err := tryRun(ctx, pol, name)
	if err != nil {
		p.GateWhy = fault.TextOf(err)
		return p
	}
	p.Gate, p.GateWhy = gated.Report.Gate, gated.gateWhy
	if name == "landlock" && p.Gate == "" {
		p.GateWhy = "holding TCP to its port takes Linux 6.7; nothing leads out"
	}
	if p.Gate != "" {
		// What is accepted is for the default network, which may hold less than none.
		for _, g := range gated.Report.Grades {
			if g.Guarantee == policy.NetworkGuarantee && g.Grade < need.Required(g.Guarantee) {
				p.Accept = strings.TrimSpace(fmt.Sprintf("%s --accept %s=%s", p.Accept, g.Guarantee, g.Grade))
			}
		}
	}
	return p
}

// lowest is the lowest grade of what is required.
func lowest(grades []Grade) policy.Grade {
	low := policy.Complete
	for _, g := range grades {
		if g.Required > policy.None {
			low = min(low, g.Grade)
		}
	}
	return low
}

func tryRun(ctx context.Context, pol policy.Policy, name string) (Result, error) {
	s, err := Open(ctx, Options{Policy: pol, Provider: name})
	if err != nil {
		return Result{}, err
	}
	defer s.Close()
	res, err := s.Run(ctx, Command{Args: []string{"true"}})
	if err == nil && res.Exit != 0 {
		err = fault.New(fault.IsolationUnavailable, "even true(1) fails inside")
	}
	return res, err
}
