package policyfile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/policy"
)

// trustHint is the way out for a file that widens.
const trustHint = "tether policy trust"

// Widenings returns the changes of l that allow more than base and the layers
// below come to, in the order in which they stand.
func Widenings(base policy.Policy, below []Layer, l Layer) ([]Change, error) {
	e, err := resolve(base, below)
	if err != nil {
		return nil, err
	}
	var wide []Change
	for _, c := range l.Changes {
		if widens(e, c) {
			wide = append(wide, c)
		}
	}
	return wide, nil
}

// eachNarrows refuses layer i if one of its changes widens. It does not look at
// what is above: a change may be void where it stands and come to life under
// another flag tomorrow.
func eachNarrows(base policy.Policy, layers []Layer, i int) error {
	l := layers[i]
	wide, err := Widenings(base, layers[:i], l)
	if err != nil || len(wide) == 0 {
		return err
	}
	c := wide[0]
	what := fmt.Sprintf("%s:%d:%d: %s would allow more, and nobody has trusted this file", l.Name, c.Line, c.Column, c)
	if n := len(wide) - 1; n > 0 {
		what += fmt.Sprintf(" (%d more like it)", n)
	}
	return refused(l, what)
}

// allNarrow refuses layer i if what all layers come to, e, is not within what
// they come to without it. It holds whatever eachNarrows may have missed, and
// what only the layers above bring to life.
func allNarrow(base policy.Policy, layers []Layer, i int, e Effective) error {
	without, err := resolve(base, slices.Delete(slices.Clone(layers), i, i+1))
	if err != nil {
		return err
	}
	if !e.Policy.Within(without.Policy) {
		l := layers[i]
		return refused(l, l.Name+": together with the other layers this file would allow more, and nobody has trusted it")
	}
	return nil
}

// String returns the change as a message names it.
func (c Change) String() string {
	if c.Empty {
		return c.Key
	}
	return c.Key + " " + quote(c.Value)
}

func refused(l Layer, what string) error {
	if l.distrust != nil {
		return fault.Wrap(fault.PolicyInvalid, what, l.distrust).WithHint(trustHint)
	}
	return invalid(what, trustHint)
}

// widens tells whether c alone could allow more than below, now or under other
// layers above. What it does not know widens.
func widens(below Effective, c Change) bool {
	p := below.Policy
	one := Effective{Policy: p}
	switch c.Key {
	case "deny-host", "protect", "lock", "redact":
		return false
	case "only-host":
		if !c.Empty && p.Network.Mode == policy.Gated && p.Network.Public {
			// A list within the public base narrows it.
			q := p
			q.Network.Public, q.Network.Allow = false, []string{c.Value}
			return !q.Within(p)
		}
		return !c.Empty && p.Network.Mode != policy.Open && !slices.Contains(p.Network.Allow, c.Value)
	case "allow-host":
		return !slices.Contains(p.Network.Allow, c.Value)
	case "reads":
		if c.Value == "system" {
			return !p.Reads.System
		}
		one.Policy.Reads = policy.Reads{}
	}
	if c.Empty {
		return false
	}
	if err := set(&one, c); err != nil {
		return true
	}
	q := one.Policy
	switch c.Key {
	case "profile":
		return q.Profile > p.Profile
	case "network":
		return q.Network.Mode > p.Network.Mode
	case "sni":
		return q.Network.AnySNI && !p.Network.AnySNI
	case "upstream":
		return q.Network.Upstream != p.Network.Upstream
	case "commands":
		return q.Commands > p.Commands
	case "home":
		return q.Home > p.Home
	case "timeout", "max-output", "max-procs", "max-memory", "max-file-size", "max-open-files", "max-cpu", "max-scratch", "min-free-disk", "reads":
		return !q.Within(p)
	case "accept":
		return slices.ContainsFunc(policy.Guarantees[:], func(g policy.Guarantee) bool { return q.Required(g) < p.Required(g) })
	case "nested":
		return q.Nested && !p.Nested
	case "no-scrub":
		return q.Env.NoScrub && !p.Env.NoScrub
	case "audit":
		return below.Audit && !one.Audit
	case "approval":
		return one.Approval != "never" && one.Approval != below.Approval
	case "fetch":
		return one.Fetch != below.Fetch && one.Fetch != "none"
	case "provider":
		return one.Provider != below.Provider
	case "allow-read":
		return !slices.Contains(p.Read, c.Value)
	case "allow-write":
		return !slices.Contains(p.Write, c.Value)
	case "allow-config":
		return !slices.Contains(p.Protect.AllowConfig, c.Value)
	case "publish":
		return len(q.Network.Publish) > 0 && !slices.Contains(p.Network.Publish, q.Network.Publish[len(q.Network.Publish)-1])
	case "env", "set-env":
		name, value, set := strings.Cut(c.Value, "=")
		if set {
			was, ok := p.Env.Set[name]
			return !ok || was != value
		}
		return !slices.Contains(p.Env.Pass, name)
	}
	return true
}
