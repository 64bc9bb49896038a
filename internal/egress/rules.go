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
	"net/netip"
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

// Verdict is what Decide says.
type Verdict struct {
	Allow bool
	// Rule says in a few words what decided.
	Rule string
	// Remedy is the one flag that would allow what was denied; empty where none
	// does.
	Remedy string
}

// Decide judges one connection. Name is what the client dialled by, empty for an
// address; it is normalised here, and an address in it is judged as one. With
// no address yet it answers whether the name may be resolved at all: then every
// address found must be judged again, with the name.
//
//   - Nothing but TCP passes.
//   - A rule to deny beats everything. Without ports it means all of them.
//   - A rule to allow by name opens the name, on its ports (80 and 443 when it
//     says none), and only public addresses. What is not public must be named by
//     an address or a network, on top. The one exception is localhost, named in
//     so many words.
//   - Base Public opens every other name and every public address on host.PublicPorts.
//     Those of the host itself are DecideOwn's to judge, once one is about to be dialled.
//     Under it a rule by address holds for whatever name leads there.
//   - Metadata is opened by its one exact name or address, and by nothing wider.
//   - An address that carries another, as NAT64 does, is judged by both.
func (r *Rules) Decide(name string, addr netip.Addr, port uint16, proto Proto) Verdict {
	q := query{r: r, port: port, addr: addr.Unmap()}
	if name != "" {
		h, err := host.Parse(name)
		if err != nil {
			return Verdict{Rule: err.Error()}
		}
		if q.name = h.Name; h.Addr.IsValid() {
			if addr.IsValid() && q.addr != h.Addr {
				return Verdict{Rule: "an address is no name for another one"}
			}
			q.addr = h.Addr
		}
	}
	switch {
	case r == nil || r.base == None:
		return Verdict{Rule: "there is no network", Remedy: "--network gated"}
	case proto != TCP:
		return Verdict{Rule: "only TCP and names pass the gate", Remedy: "--network open"}
	case q.name == "" && !q.addr.IsValid():
		return Verdict{Rule: "it names no host"}
	case q.addr.Zone() != "":
		return Verdict{Rule: "an address with a zone names an interface"}
	}
	if v, denied := q.denied(); denied {
		return v
	}
	if !q.addr.IsValid() {
		return q.byName()
	}
	if q.name != "" {
		if v := q.byName(); !v.Allow {
			return v
		}
	}
	return q.byAddr()
}

// query is one question to the rules.
type query struct {
	r    *Rules
	name string
	addr netip.Addr
	port uint16
	// last says that no address will be judged after the name.
	last bool
}

func (q query) denied() (Verdict, bool) {
	inside, carries := host.Embedded(q.addr)
	for _, d := range q.r.deny {
		if (d.MatchName(q.name) || d.MatchAddr(q.addr) || carries && d.MatchAddr(inside)) && d.MatchPort(q.port, anyPort) {
			return Verdict{Rule: "deny-host " + d.String()}, true
		}
	}
	return Verdict{}, false
}

// named finds a rule that allows the name, an exact one first.
func (q query) named(exact bool) (host.Rule, bool) {
	for _, a := range q.r.allow {
		if a.MatchName(q.name) && (a.Exact() || !exact) && a.MatchPort(q.port, webPort) {
			return a, true
		}
	}
	return host.Rule{}, false
}

// addressed finds a rule that allows an address, or, for none, one that allows
// any.
func (q query) addressed(addr netip.Addr) (host.Rule, bool) {
	exact := addr.IsValid() && host.ClassOf(addr) == host.Metadata
	for _, a := range q.r.allow {
		if a.Prefix.IsValid() && (a.MatchAddr(addr) || !addr.IsValid() && !q.shut(a)) && (a.Exact() || !exact) && a.MatchPort(q.port, webPort) {
			return a, true
		}
	}
	return host.Rule{}, false
}

// shut says whether a rule to deny closes all addresses of one to allow.
func (q query) shut(a host.Rule) bool {
	return slices.ContainsFunc(q.r.deny, func(d host.Rule) bool {
		return d.MatchAddr(a.Prefix.Addr()) && d.Prefix.Bits() <= a.Prefix.Bits() && d.MatchPort(q.port, anyPort)
	})
}

func (q query) publicPort() bool { return q.r.base == Public && host.PublicPort(q.port) }

// byName judges the name alone.
func (q query) byName() Verdict {
	special, local := host.IsMetadata(q.name), host.IsLocal(q.name)
	if a, ok := q.named(special || local); ok {
		return Verdict{Allow: true, Rule: "allow-host " + a.String()}
	}
	switch {
	case special:
		return Verdict{Rule: "it is a name of cloud metadata", Remedy: q.allowName()}
	case local && q.r.private:
		return Verdict{Allow: true, Rule: "private addresses are allowed"}
	case local:
		return Verdict{Rule: "it is the host's own loopback", Remedy: q.allowName()}
	case q.publicPort():
		return Verdict{Allow: true, Rule: "base public"}
	case q.r.base == Public:
		if a, ok := q.addressed(q.addr); ok && !q.last {
			return Verdict{Allow: true, Rule: "allow-host " + a.String()}
		}
		return Verdict{Rule: "port " + strconv.Itoa(int(q.port)) + " is not one of base public", Remedy: q.allowName()}
	}
	return Verdict{Rule: "no rule allows it", Remedy: q.allowName()}
}

// byAddr judges the address, for a name that is allowed or without one.
func (q query) byAddr() Verdict {
	class := host.ClassOf(q.addr)
	rule, opened := q.addressed(q.addr)
	switch {
	case host.IsLocal(q.name) && class != host.Loopback:
		return Verdict{Rule: "the name means the loopback and leads to " + class.String()}
	case host.IsLocal(q.name):
		return Verdict{Allow: true, Rule: "allow-host " + q.name}
	case opened:
		if v, ok := q.inside(); !ok {
			return v
		}
		return Verdict{Allow: true, Rule: "allow-host " + rule.String()}
	case class == host.Public && q.name != "":
		return q.byName()
	case class == host.Public && q.publicPort():
		return Verdict{Allow: true, Rule: "base public"}
	case class == host.Public && q.r.base == Public:
		return Verdict{Rule: "port " + strconv.Itoa(int(q.port)) + " is not one of base public", Remedy: q.allowAddr(q.addr)}
	case class == host.Public:
		return Verdict{Rule: "no rule allows it", Remedy: q.allowAddr(q.addr)}
	case q.r.private && openable(class):
		if v, ok := q.inside(); !ok {
			return v
		}
		if q.r.base == Public || q.name != "" {
			return Verdict{Allow: true, Rule: "private addresses are allowed"}
		}
		return Verdict{Rule: "no rule allows it", Remedy: q.allowAddr(q.addr)}
	}
	return Verdict{Rule: "it is " + class.String(), Remedy: q.allowAddr(q.addr)}
}

// openable says which classes one switch may open together.
func openable(c host.Class) bool {
	switch c {
	case host.Loopback, host.Private, host.LinkLocal, host.CGNAT, host.Benchmarking, host.NAT64:
		return true
	}
	return false
}

// inside judges the address that q's own carries.
func (q query) inside() (Verdict, bool) {
	a, carries := host.Embedded(q.addr)
	if !carries {
		return Verdict{}, true
	}
	class := host.ClassOf(a)
	if class == host.Public || q.r.private && openable(class) {
		return Verdict{}, true
	}
	if _, ok := q.addressed(a); ok {
		return Verdict{}, true
	}
	return Verdict{Rule: "it carries " + class.String() + ", " + a.String(), Remedy: q.allowAddr(a)}, false
}

func (q query) allowName() string { return allowFlag(host.Host{Name: q.name}, q.port) }

func (q query) allowAddr(a netip.Addr) string { return allowFlag(host.Host{Addr: a}, q.port) }

func allowFlag(h host.Host, port uint16) string {
	if webPort(port) {
		return "--allow-host " + h.String()
	}
	return "--allow-host " + h.Join(port)
}

// DecideName judges a name, in its one spelling, whose addresses nobody will
// judge: rules about addresses open nothing there. It is for what Decide allows.
func (r *Rules) DecideName(name string, port uint16) Verdict {
	if r == nil || r.base == None {
		return Verdict{Rule: "there is no network", Remedy: "--network gated"}
	}
	q := query{r: r, name: name, port: port, last: true}
	if v, denied := q.denied(); denied {
		return v
	}
	return q.byName()
}

// DecideOwn judges an address of the host itself that would be public elsewhere.
// It is for what Decide allows.
func (r *Rules) DecideOwn(addr netip.Addr, port uint16) Verdict {
	q := query{r: r, port: port, addr: addr.Unmap()}
	if r != nil {
		if a, ok := q.addressed(q.addr); ok {
			return Verdict{Allow: true, Rule: "allow-host " + a.String()}
		}
		if r.private {
			return Verdict{Allow: true, Rule: "private addresses are allowed"}
		}
	}
	return Verdict{Rule: "it is an address of this host itself", Remedy: q.allowAddr(q.addr)}
}

// MayResolve says whether a name may be sent to a resolver: whether it is
// allowed on some port. The verdict of a denial names port 443.
func (r *Rules) MayResolve(name string) Verdict {
	v := r.Decide(name, netip.Addr{}, 443, TCP)
	for _, p := range r.Ports() {
		if v.Allow {
			break
		}
		if w := r.Decide(name, netip.Addr{}, p, TCP); w.Allow {
			v = w
		}
	}
	return v
}
