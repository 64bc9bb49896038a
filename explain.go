package tether

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/enforce/seatbelt"
	"github.com/tether-sandbox/tether/internal/enforce/walls"
	"github.com/tether-sandbox/tether/internal/plan"
	"github.com/tether-sandbox/tether/internal/world/local"
	"github.com/tether-sandbox/tether/policy"
)

// Explanation is a plan, not carried out.
type Explanation struct {
	// Profile is read-only, workspace-write or full-access.
	Profile string `json:"profile"`
	// Workspace is the canonical workspace.
	Workspace string `json:"workspace"`
	// Dir is the folder that the command would start in.
	Dir string `json:"dir"`
	// Network is none, gated or open.
	Network string `json:"network"`
	// Guard is what the guard says of the command line, empty for no objection.
	Guard string `json:"guard,omitempty"`
	// Shown, Hidden and Locked are paths, each with why.
	Shown  []string `json:"shown"`
	Hidden []string `json:"hidden"`
	Locked []string `json:"locked"`
	// Environment are the names of the variables, without their values.
	Environment []string `json:"environment"`
	// Steps are what the provider would carry out, in order.
	Steps []string `json:"steps"`
	// Report has the grades that would hold.
	Report Report `json:"report"`
}

// Explain says what would hold for a command and runs nothing. The grades are
// those of the first provider that can be asked for; that it really starts is
// found only by starting it.
func (s *Session) Explain(ctx context.Context, c Command) (Explanation, error) {
	now, err := s.now()
	if err != nil {
		return Explanation{}, err
	}
	p, err := s.planFor(ctx, now, c.Dir)
	if err != nil {
		return Explanation{}, err
	}
	pol, kind := now.policy, now.kind
	if kind == enforce.Auto {
		kind = local.Jails()[0]
	}
	e := Explanation{Profile: pol.Profile.String(), Workspace: p.Workspace.Path, Dir: p.Dir,
		Network: pol.Network.Mode.String(),
		Report:  report(pol, p, kind, enforce.Grades(kind, p, s.world.Machine(pol.Limits)))}
	e.Report.foresee()
	if argv, err := c.argv(); err == nil {
		v := look(now, p, argv)
		if v.Refused {
			e.Guard = "refuses: " + v.Reason
		}
	}
	for _, kv := range p.Env {
		name, _, _ := strings.Cut(kv, "=")
		e.Environment = append(e.Environment, name)
	}
	switch kind {
	case enforce.Native, enforce.Bwrap, enforce.Seatbelt:
	case enforce.Landlock:
		err := e.walls(p)
		return e, err
	default:
		return e, nil // nothing of what follows would hold
	}
	e.shown(p)
	e.hidden(p)
	for _, l := range p.Locks {
		if !l.Writable {
			e.Locked = append(e.Locked, fmt.Sprintf("%s (%s)", l.Path, l.Why))
		}
	}
	if kind == enforce.Seatbelt {
		text, err := seatbelt.Profile(p, seatbelt.Options{Gate: enforce.ProxyPort})
		e.Steps = slices.Collect(strings.Lines(text))
		return e, err
	}
	for _, st := range enforce.Compile(p) {
		e.Steps = append(e.Steps, st.String())
	}
	return e, nil
}

// walls explains a plan without namespaces: nothing in a writable folder is
// hidden or locked.
func (e *Explanation) walls(p *plan.Plan) error {
	e.shown(p)
	if slices.ContainsFunc(e.Report.Grades, func(g Grade) bool { return g.Guarantee == policy.Secrets && g.Grade == policy.Complete }) {
		e.hidden(p)
	}
	steps, err := walls.Steps(p, "(private)")
	for _, st := range steps {
		e.Steps = append(e.Steps, st.String())
	}
	return err
}

func (e *Explanation) shown(p *plan.Plan) {
	for _, v := range p.Views {
		line := v.Target()
		if v.At != "" {
			line += " <- " + v.Path
		}
		mode := "read-only"
		if v.Writable {
			mode = "writable"
		}
		e.Shown = append(e.Shown, fmt.Sprintf("%s (%s, %s)", line, origin(v.Origin), mode))
	}
	for _, x := range p.Scratch {
		if x.Writable && !(e.Report.Provider == string(enforce.Landlock) && x.Path == "/var/tmp") {
			where := " (private, in memory)"
			if e.Report.Provider == string(enforce.Landlock) {
				where = " (private; elsewhere, see TMPDIR and XDG_DATA_HOME)"
			}
			e.Shown = append(e.Shown, x.Path+where)
		}
	}
}

func (e *Explanation) hidden(p *plan.Plan) {
	for _, m := range p.Masks {
		e.Hidden = append(e.Hidden, fmt.Sprintf("%s (%s)", m.Path, m.Why))
	}
	for _, x := range p.Sockets {
		e.Hidden = append(e.Hidden, x+" (a socket of the host)")
	}
}

func origin(o plan.Origin) string {
	return [...]string{plan.System: "system", plan.Workspace: "workspace", plan.Added: "added by the policy",
		plan.Toolchain: "toolchain", plan.Cache: "cache", plan.Git: "git", plan.Tmp: "of this session"}[o]
}
