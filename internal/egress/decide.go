package egress

import (
	"net/netip"
	"slices"
	"strconv"

	"github.com/tether-sandbox/tether/internal/host"
)

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
