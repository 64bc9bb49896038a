package tether

import (
	"context"
	"os"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/world/local"
	"github.com/tether-sandbox/tether/policy"
)

// Diagnosis says how strong each guarantee is on this machine.
type Diagnosis struct {
	// Facts are what was found of the kernel and its settings.
	Facts []Fact `json:"facts"`
	// Providers were each tried with a harmless command.
	Providers []Provider `json:"providers"`
}

// Fact is one thing found, and, where it stands in the way, what changes it.
type Fact struct {
	// What was found.
	What string `json:"what"`
	// Good is false for what lowers a grade or keeps a provider from working.
	Good bool `json:"good"`
	// Fix is what to type, empty when nothing helps or nothing is wrong.
	Fix string `json:"fix,omitempty"`
}

// Provider says whether a provider works here, found by really starting
// something with it.
type Provider struct {
	// Name is native or bwrap.
	Name string `json:"name"`
	// Works says that a command was really confined by it.
	Works bool `json:"works"`
	// Code, Why and Hint say what keeps it from working.
	Code fault.Code `json:"code,omitempty"`
	Why  string     `json:"why,omitempty"`
	Hint string     `json:"hint,omitempty"`
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
	for _, f := range local.Facts() {
		d.Facts = append(d.Facts, Fact(f))
	}
	dir, err := os.MkdirTemp("", "tether-doctor-")
	if err != nil {
		return d, fault.Wrap(fault.Internal, "cannot make a folder to try in", err)
	}
	defer os.RemoveAll(dir)
	for _, name := range []string{"native", "bwrap"} {
		d.Providers = append(d.Providers, try(ctx, name, dir))
	}
	return d, nil
}

func try(ctx context.Context, name, dir string) Provider {
	p := Provider{Name: name}
	pol := policy.Default(dir)
	pol.Network.Mode = policy.Offline
	res, err := tryRun(ctx, pol, name)
	if err != nil {
		p.Code, p.Why, p.Hint = fault.CodeOf(err), fault.TextOf(err), fault.HintOf(err)
		return p
	}
	p.Works, p.Report = true, &res.Report
	pol.Network.Mode = policy.Gated
	gated, err := tryRun(ctx, pol, name)
	if err != nil {
		p.GateWhy = fault.TextOf(err)
		return p
	}
	p.Gate, p.GateWhy = gated.Report.Gate, gated.gateWhy
	return p
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
