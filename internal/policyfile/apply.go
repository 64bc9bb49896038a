package policyfile

import (
	"fmt"
	"strings"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/policy"
)

// Apply puts layers on top of base, each on those before it, and returns what
// holds. The error is a *fault.Error: POLICY_INVALID for a value, for a
// contradiction (with the file and the line that brings it, where one alone
// does) and for a layer without trust that would widen; SANDBOX_BAD_WORKSPACE
// as in [policy.Policy.Validate], which the result passes.
//
// What layers say, key by key:
//
//   - A scalar is what the last layer says; reads and only-host are replaced as
//     a whole, env per variable and accept per guarantee. Other lists grow.
//   - fetch is what the fetch tool may reach, instead of what the network says:
//     public (addresses, besides the rules), listed (what the rules allow), none.
//     Its rules hold without a network, too.
//   - Under network none every rule about hosts is void for commands. Under open so are the
//     rules to allow of the layers below the one that opened it; a rule to deny
//     is a contradiction, since nothing would enforce it.
//   - The network becomes gated with public addresses as its base, unless a
//     layer lists the base by only-host.
//   - Under read-only the write roots of the layers below become read roots.
//   - Full access opens the network if no layer says anything about it.
//
// A layer without trust may only narrow. Each of its changes is compared with
// what the layers below it come to, and what all layers come to must lie
// within what they come to without it, as [policy.Policy.Within] has it.
func Apply(base policy.Policy, layers ...Layer) (Effective, error) {
	e, err := resolve(base, layers)
	if err != nil {
		return Effective{}, err
	}
	foreign := func(check func(i int) error) error {
		for i, l := range layers {
			if l.Trusted || len(l.Changes) == 0 {
				continue
			}
			if err := check(i); err != nil {
				return err
			}
		}
		return nil
	}
	// Validate comes between, because nothing malformed can be compared.
	if err := foreign(func(i int) error { return eachNarrows(base, layers, i) }); err != nil {
		return Effective{}, err
	}
	if err := e.Policy.Validate(); err != nil {
		return Effective{}, blame(base, layers, err)
	}
	if err := foreign(func(i int) error { return allNarrow(base, layers, i, e) }); err != nil {
		return Effective{}, err
	}
	return e, nil
}

// rule is a change and the number of its layer.
type rule struct {
	Change
	layer int
}

// noLayer is the number of what is built in.
const noLayer = -1

// merge returns the changes that no later one replaces, in their order.
func merge(layers []Layer) []rule {
	n := 0
	for _, l := range layers {
		n += len(l.Changes)
	}
	rules := make([]rule, 0, n)
	last := make(map[string]int, n) // by slot: the place of the change that counts
	top := map[string]int{}         // the highest layer that says something about a key
	for i, l := range layers {
		for _, c := range l.Changes {
			name, replaces := slot(c)
			if at, again := last[name]; again {
				if !replaces {
					continue // a list holds it already
				}
				rules[at].Key = ""
			}
			last[name] = len(rules)
			rules = append(rules, rule{c, i})
			top[c.Key] = i
		}
	}
	kept := rules[:0]
	for _, r := range rules {
		whole := r.Key == "reads" || r.Key == "only-host"
		if r.Key != "" && !(whole && r.layer < top[r.Key]) {
			kept = append(kept, r)
		}
	}
	return kept
}

// slot names what a change fills, and whether a later change replaces it.
func slot(c Change) (name string, replaces bool) {
	switch c.Key {
	case "env", "set-env":
		if name, _, set := strings.Cut(c.Value, "="); set {
			return "$" + name, true
		}
	case "accept":
		g, _, _ := strings.Cut(c.Value, "=")
		return "accept " + g, true
	case "reads", "only-host":
		// A higher layer that repeats an element must still count as the one
		// that said it.
		return c.Key + "\x00" + c.Value, true
	}
	if isScalar(c.Key) {
		return c.Key, true
	}
	return c.Key + "\x00" + c.Value, false
}

// resolve is Apply without a judgement of the result.
func resolve(base policy.Policy, layers []Layer) (Effective, error) {
	b := builder{layers: layers, rules: merge(layers), profileLayer: noLayer, modeLayer: noLayer, onlyLayer: noLayer}
	b.e.Policy = base
	err := b.build()
	return b.e, err
}

type builder struct {
	e      Effective
	layers []Layer
	rules  []rule
	// The layers that set the profile, the network mode and its base.
	profileLayer, modeLayer, onlyLayer int
	fetch                              string // what the last layer says
	// ownSet says that the map of variables is not the base's any more.
	ownSet bool
}

func (b *builder) build() error {
	p := &b.e.Policy
	if err := b.modes(); err != nil {
		return err
	}
	readsSet := false
	for _, r := range b.rules {
		if b.void(r) {
			continue
		}
		switch {
		case r.Key == "profile" || r.Key == "network":
			b.keep(r)
			continue
		case r.Key == "reads" && !readsSet:
			readsSet = true
			p.Reads = policy.Reads{}
		case r.Key == "allow-write" && p.Profile == policy.ReadOnly && r.layer < b.profileLayer:
			r.Key = "allow-read"
		}
		if err := b.set(r.Change); err != nil {
			return b.at(r, err)
		}
		b.keep(r)
	}
	if p.Profile == policy.ReadOnly && b.profileLayer != noLayer && len(p.Write) > 0 && !b.writesAt() {
		// What is left was written by nobody but base.
		p.Read, p.Write = append(p.Read[:len(p.Read):len(p.Read)], p.Write...), nil
	}
	b.e.FetchNetwork = b.fetchNetwork()
	return nil
}

// fetchNetwork is what the fetch tool may reach.
func (b *builder) fetchNetwork() policy.Network {
	n := b.e.Policy.Network
	switch b.fetch {
	case "":
		return n
	case "public", "listed":
	default:
		return policy.Network{}
	}
	if n.Mode == policy.Offline { // the rules are void there
		n.Allow, n.Deny = nil, nil
		for _, r := range b.rules {
			switch {
			case r.Empty:
			case r.Key == "allow-host" || r.Key == "only-host":
				n.Allow = add(n.Allow, r.Value)
			case r.Key == "deny-host":
				n.Deny = add(n.Deny, r.Value)
			}
		}
	}
	return policy.Network{Mode: policy.Gated, Public: b.fetch == "public", Allow: n.Allow, Deny: n.Deny, Upstream: n.Upstream}
}

// set is the function set, with a map of variables that is this builder's own:
// copying it for each of a thousand variables would take a second.
func (b *builder) set(c Change) error {
	name, value, sets := strings.Cut(c.Value, "=")
	if !sets || c.Key != "env" && c.Key != "set-env" || !b.ownSet {
		err := set(&b.e, c)
		b.ownSet = b.ownSet || sets && err == nil && (c.Key == "env" || c.Key == "set-env")
		return err
	}
	if _, err := policy.ParseEnv(c.Value); err != nil {
		return err
	}
	b.e.Policy.Env.Set[name] = value
	return nil
}

// writesAt tells whether a rule that holds adds a write root.
func (b *builder) writesAt() bool {
	for _, o := range b.e.Origins {
		if o.Key == "allow-write" {
			return true
		}
	}
	return false
}

// modes settles the profile and the network, on which the meaning of the other
// rules depends.
func (b *builder) modes() error {
	p := &b.e.Policy
	was := p.Network
	for _, r := range b.rules {
		switch r.Key {
		case "profile":
			b.profileLayer = r.layer
		case "network":
			b.modeLayer = r.layer
		case "only-host":
			b.onlyLayer = max(b.onlyLayer, r.layer)
			continue
		case "fetch":
			b.fetch = r.Value
			continue
		default:
			continue
		}
		if err := set(&b.e, r.Change); err != nil {
			return b.at(r, err)
		}
	}
	if p.Profile == policy.FullAccess && b.modeLayer == noLayer && b.profileLayer != noLayer {
		*p = p.WithProfile(policy.FullAccess)
		b.modeLayer = b.profileLayer
	}
	switch p.Network.Mode {
	case policy.Gated:
		if b.onlyLayer != noLayer && was.Mode == policy.Gated && !was.Public {
			p.Network.Allow = nil // it was the base
		}
		p.Network.Public = (was.Mode != policy.Gated || was.Public) && b.onlyLayer == noLayer
	case policy.Offline:
		p.Network.Public, p.Network.Allow, p.Network.Deny, p.Network.AnySNI, p.Network.Upstream = false, nil, nil, false, ""
	case policy.Open:
		if was.Mode != policy.Open {
			p.Network.Public, p.Network.Allow, p.Network.AnySNI, p.Network.Upstream = false, nil, false, ""
		}
		if b.onlyLayer != noLayer && b.onlyLayer >= b.modeLayer {
			for _, r := range b.rules {
				if r.Key == "only-host" {
					return b.at(r, invalid("only-host would not be enforced, because the network is open", "use --network gated, or leave it out"))
				}
			}
		}
	}
	return nil
}

// void tells whether the network's mode leaves nothing of a rule.
func (b *builder) void(r rule) bool {
	if b.e.Policy.Network.Mode == policy.Offline && (b.fetch == "public" || b.fetch == "listed") {
		switch r.Key {
		case "allow-host", "only-host", "deny-host":
			return true // see fetchNetwork
		}
	}
	switch r.Key {
	case "deny-host":
		return b.e.Policy.Network.Mode == policy.Offline
	case "allow-host", "only-host", "sni", "upstream":
		return b.e.Policy.Network.Mode != policy.Gated && r.layer < b.modeLayer
	}
	return false
}

func (b *builder) keep(r rule) {
	o := Origin{Key: r.Key, Value: r.Value, Layer: b.layers[r.layer].Name, Line: r.Line}
	b.e.Origins = append(b.e.Origins, o)
}

func (b *builder) at(r rule, err error) error { return located(b.layers[r.layer], r.Change, err) }

// located puts the place of a change in front of an error about it. A flag has
// no place.
func located(l Layer, c Change, err error) error {
	if c.Line == 0 {
		return err
	}
	return invalid(fmt.Sprintf("%s:%d:%d: %s", l.Name, c.Line, c.Column, said(err)), fault.HintOf(err))
}

// said is what an error says, without its code.
func said(err error) string {
	if e, ok := err.(*fault.Error); ok {
		return e.What
	}
	return err.Error()
}

// blame finds the one change of a file without which the policy would be valid,
// the last one of them, and puts its place in front of err. What err names is
// tried first.
func blame(base policy.Policy, layers []Layer, err error) error {
	tries := 50 // beyond, the search would take longer than reading the file
	if fault.CodeOf(err) != fault.PolicyInvalid {
		return err
	}
	for _, named := range []bool{true, false} {
		for i := len(layers) - 1; i >= 0; i-- {
			changes := layers[i].Changes
			for j := len(changes) - 1; j >= 0; j-- {
				c := changes[j]
				if c.Line == 0 || strings.Contains(said(err), quote(c.Value)) != named {
					continue
				}
				if tries--; tries < 0 {
					return err
				}
				fewer := append([]Layer{}, layers...)
				fewer[i].Changes = append(append([]Change{}, changes[:j]...), changes[j+1:]...)
				if e, rerr := resolve(base, fewer); rerr == nil && e.Policy.Validate() == nil {
					return located(layers[i], c, err)
				}
			}
		}
	}
	return err
}
