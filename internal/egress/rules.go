// Package egress decides where bytes may go, and dials what it allowed.
//
// One pure function, [Rules.Decide], judges a name, an address, a port and a
// protocol; the gate, the fetch tool and every data path ask it and nothing
// else. Names are judged before any resolver sees them, every address that one
// resolves to is judged before any is dialled, and what is dialled is what was
// judged.
//
// Not promised: that an allowed host is harmless. Whoever may send bytes to a
// host, or names below an allowed wildcard to its resolver, can tell it
// anything.
package egress

import (
	"slices"
	"strconv"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/host"
	"github.com/tether-sandbox/tether/policy"
)

// Proto is a protocol.
type Proto uint8

// The protocols. Zero is none that may pass.
const (
	Other Proto = iota
	TCP
	UDP
	ICMP
)

func (p Proto) String() string {
	switch p {
	case TCP:
		return "tcp"
	case UDP:
		return "udp"
	case ICMP:
		return "icmp"
	}
	return "other"
}

// Base is what holds where no rule speaks.
type Base uint8

// The bases, from strict to wide.
const (
	None   Base = iota // nothing, whatever the rules
	Listed             // what rules allow
	Public             // also public addresses, on host.PublicPorts
)

// MaxPorts is how many ports the rules of one policy name at most.
const MaxPorts = 64

// Rules are a policy's words about the network, compiled. The zero value, and a
// nil pointer, allow nothing. They are read-only and safe for concurrent use.
type Rules struct {
	base        Base
	private     bool
	anySNI      bool
	allow, deny []host.Rule
}

// Compile reads the rules of a policy. Under policy.Gated they mean what they
// say; under policy.Offline they allow nothing; under policy.Open, where no
// gate stands, they are what our own requests are held to: base public. The
// error is POLICY_INVALID with the right spelling.
func Compile(n policy.Network) (*Rules, error) {
	r := &Rules{anySNI: n.AnySNI}
	switch {
	case n.Mode == policy.Open, n.Mode == policy.Gated && n.Public:
		r.base = Public
	case n.Mode == policy.Gated:
		r.base = Listed
	}
	var err error
	if r.allow, err = parse(n.Allow); err != nil {
		return nil, err
	}
	if r.deny, err = parse(n.Deny); err != nil {
		return nil, err
	}
	if n := len(r.Ports()); n > MaxPorts {
		return nil, fault.New(fault.PolicyInvalid, "the rules name "+strconv.Itoa(n)+" ports, more than the gate listens on").
			WithHint("name at most " + strconv.Itoa(MaxPorts) + " ports, or use --network open")
	}
	return r, nil
}

func parse(texts []string) ([]host.Rule, error) {
	rules := make([]host.Rule, 0, len(texts))
	for _, s := range texts {
		r, err := host.ParseRule(s)
		if err != nil {
			hint := ""
			if e, ok := err.(*host.Error); ok {
				hint = e.Hint
			}
			return nil, fault.New(fault.PolicyInvalid, err.Error()).WithHint(hint)
		}
		rules = append(rules, r)
	}
	return rules, nil
}

// Base is what holds where no rule speaks.
func (r *Rules) Base() Base {
	if r == nil {
		return None
	}
	return r.base
}

// Listed says whether only what rules list is allowed, so that a name inside of
// an allowed connection matters.
func (r *Rules) Listed() bool { return r.Base() == Listed }

// AnySNI says whether TLS to a listed host may name none or hide the name.
func (r *Rules) AnySNI() bool { return r != nil && r.anySNI }

// WithPrivate returns rules that also allow what base Public keeps closed, the
// caller's own addresses and private networks, but never metadata. It is for the
// one documented switch of the fetch tool.
func (r *Rules) WithPrivate() *Rules {
	if r == nil {
		return nil
	}
	c := *r
	c.private = true
	return &c
}

// Ports are all ports that the rules let through for some host, in order.
func (r *Rules) Ports() []uint16 {
	if r == nil || r.base == None {
		return nil
	}
	var all []uint16
	if r.base == Public {
		p := host.PublicPorts()
		all = append(all, p[:]...)
	}
	for _, a := range r.allow {
		if len(a.Ports) == 0 {
			all = append(all, 80, 443)
		}
		for _, s := range a.Ports {
			for p := int(s.First); p <= int(s.Last); p++ {
				all = append(all, uint16(p))
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Local lists the ports on which rules open the host's own loopback by name or
// by address.
func (r *Rules) Local() []uint16 {
	if r == nil || r.base == None {
		return nil
	}
	only := Rules{base: Listed}
	for _, a := range r.allow {
		if host.IsLocal(a.Name) && !a.Wild || a.Prefix.IsValid() && host.ClassOf(a.Prefix.Addr()) == host.Loopback {
			only.allow = append(only.allow, a)
		}
	}
	return only.Ports()
}

func webPort(p uint16) bool { return p == 80 || p == 443 }

func anyPort(uint16) bool { return true }
