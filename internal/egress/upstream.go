package egress

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/host"
	"github.com/tether-sandbox/tether/policy"
)

// Conn is a connection whose two halves can be closed one by one.
type Conn interface {
	net.Conn
	CloseWrite() error
}

// Upstream is a proxy of the caller's network through which public hosts are
// reached. The rules judge every connection before it is asked for anything; it
// resolves the names, so that the addresses of those are not judged here.
//
// Rules that open what is not public (an address, localhost) are dialled past
// it, and so is what the caller exempts by NO_PROXY: there addresses are judged
// as ever. The zero value, and a nil pointer, chain nothing.
type Upstream struct {
	web, rest *host.Proxy // for port 80, and for the other ports; nil is none
	exempt    []exemption
}

// exemption is one entry of NO_PROXY.
type exemption struct {
	all    bool
	prefix netip.Prefix
	name   string
	below  bool // only what lies below the name
	port   uint16
}

// UpstreamOf returns the proxies that a policy chains: none, one by its URL, or
// those that the caller's environment names in http_proxy (for port 80),
// https_proxy, all_proxy and no_proxy, in small letters or capitals. The error
// is POLICY_INVALID, and shows no credentials.
func UpstreamOf(n policy.Network, environ []string) (*Upstream, error) {
	if n.Upstream == "" || n.Mode != policy.Gated {
		return nil, nil
	}
	if n.Upstream != policy.UpstreamEnvironment {
		p, err := host.ParseProxy(n.Upstream)
		if err != nil {
			return nil, unreadable("upstream", err)
		}
		return &Upstream{web: &p, rest: &p}, nil
	}
	read := func(name string) (string, string) {
		for _, name := range []string{name, strings.ToUpper(name)} {
			for _, kv := range environ {
				if value, ok := strings.CutPrefix(kv, name+"="); ok && value != "" {
					return name, value
				}
			}
		}
		return "", ""
	}
	proxy := func(names ...string) (*host.Proxy, error) {
		for _, name := range names {
			name, value := read(name)
			if value == "" {
				continue
			}
			p, err := host.ParseProxy(value)
			if err != nil {
				return nil, unreadable("the variable "+name, err)
			}
			return &p, nil
		}
		return nil, nil
	}
	var u Upstream
	var err error
	if u.rest, err = proxy("https_proxy", "all_proxy"); err != nil {
		return nil, err
	}
	if u.web, err = proxy("http_proxy", "all_proxy"); err != nil {
		return nil, err
	}
	_, list := read("no_proxy")
	for _, s := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' }) {
		if e, ok := parseExemption(s); ok {
			u.exempt = append(u.exempt, e)
		}
	}
	return &u, nil
}

func unreadable(where string, err error) error {
	hint := ""
	if e, ok := err.(*host.Error); ok {
		hint = e.Hint
	}
	return fault.New(fault.PolicyInvalid, where+": "+err.Error()).WithHint(hint)
}

// parseExemption reads *, an address, a network, a name with what lies below it,
// or .name for that alone; all but networks may have a port. What it cannot read
// exempts nothing.
func parseExemption(s string) (e exemption, ok bool) {
	if s == "*" {
		return exemption{all: true}, true
	}
	if p, err := netip.ParsePrefix(s); err == nil {
		return exemption{prefix: p.Masked()}, true
	}
	s = strings.TrimPrefix(s, "*")
	if name, port, err := net.SplitHostPort(s); err == nil {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return e, false
		}
		s, e.port = name, uint16(n)
	}
	s, e.below = strings.CutPrefix(s, ".")
	h, err := host.Parse(s)
	if err != nil {
		return e, false
	}
	if e.name = h.Name; h.Addr.IsValid() {
		e.prefix = netip.PrefixFrom(h.Addr, h.Addr.BitLen())
	}
	return e, true
}

func (e exemption) holds(name string, addr netip.Addr, port uint16) bool {
	switch {
	case e.port != 0 && e.port != port:
		return false
	case e.all:
		return true
	case e.prefix.IsValid():
		return name == "" && e.prefix.Contains(addr)
	}
	return name != "" && (name == e.name && !e.below || host.Below(name, e.name))
}

// proxy returns the proxy for a host, nil for one that is dialled past it. Port
// 0 stands for one that is not known yet.
func (u *Upstream) proxy(name string, addr netip.Addr, port uint16) *host.Proxy {
	if u == nil || host.IsLocal(name) || host.IsMetadata(name) || name == "" && host.ClassOf(addr) != host.Public {
		return nil
	}
	for _, e := range u.exempt {
		if e.holds(name, addr, port) {
			return nil
		}
	}
	const http = 80
	if port == http || port == 0 && u.rest == nil {
		return u.web
	}
	return u.rest
}

// Chains says whether a host is reached through the proxy.
func (u *Upstream) Chains(name string, addr netip.Addr, port uint16) bool {
	return u.proxy(name, addr, port) != nil
}

// String names the proxies, without credentials; empty where there is none.
func (u *Upstream) String() string {
	switch {
	case u == nil || u.rest == nil && u.web == nil:
		return ""
	case u.rest == nil:
		return u.web.String()
	case u.web == nil || *u.web == *u.rest:
		return u.rest.String()
	}
	return u.rest.String() + " and " + u.web.String()
}

// AtProxy says whether a host that is reached through a proxy may be one of the
// proxies itself, as far as its port tells: whoever may speak to a proxy could ask
// it for what the rules refuse, and where a name leads only the proxy knows. Then
// nothing must be said there that a proxy would take for a question: no more than
// TLS, and requests of HTTP for a path.
//
// Blind says that such a proxy is itself spoken to by TLS, so that nobody sees
// what it is asked for.
func (u *Upstream) AtProxy(name string, addr netip.Addr, port uint16) (at, blind bool) {
	if !u.Chains(name, addr, port) {
		return false, false
	}
	for _, p := range []*host.Proxy{u.web, u.rest} {
		if p != nil && p.Port == port {
			at, blind = true, blind || p.TLS
		}
	}
	return at, blind
}

// itself says whether a host is one of the proxies, by its name, its address, or
// an address that both have as far as they are resolved here. See AtProxy for
// what leads there only where the proxy resolves it.
func (d *Dialer) itself(ctx context.Context, to host.Host, port uint16) bool {
	const patience = 2 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, p := range []*host.Proxy{d.Upstream.web, d.Upstream.rest} {
		if p == nil || p.Port != port {
			continue
		}
		if p.At == to {
			return true
		}
		theirs := d.addresses(ctx, p.At)
		if slices.ContainsFunc(d.addresses(ctx, to), func(a netip.Addr) bool { return slices.Contains(theirs, a) }) {
			return true
		}
	}
	return false
}

// beforeProxy judges what a proxy would be asked for by what is known here: a
// name, an address, and the hosts file, but no resolver. Direct says that it is
// an address of this host itself that a rule opens, which no proxy is asked for.
func (d *Dialer) beforeProxy(ctx context.Context, to host.Host, port uint16) (direct bool, err error) {
	if to.Name == "" {
		if err := d.judgeOwn("", to.Addr, port); err != nil {
			return false, err
		}
		if own, err := d.isOwn(to.Addr); own && err == nil {
			return true, nil
		}
	} else if v := d.Rules.DecideName(to.Name, port); !v.Allow {
		return false, d.refuse(Denial{Name: to.Name, Port: port, Proto: TCP, Verdict: v})
	}
	const https = 443 // refused there, a proxy at that port would close the web
	if _, blind := d.Upstream.AtProxy(to.Name, to.Addr, port); blind && port != https {
		return false, d.refuse(Denial{Name: to.Name, Addr: to.Addr, Port: port, Proto: TCP, Verdict: Verdict{Rule: "it may lead to the upstream proxy itself, whose port it is"}})
	}
	if to.Name == "" {
		return false, nil
	}
	known, _ := inFiles(ctx, "ip", to.Name)
	for _, a := range known {
		if err := d.judgeOwn(to.Name, a.Unmap(), port); err != nil {
			return false, err
		}
	}
	return false, nil
}

// addresses returns those that a host has, as far as can be found out here.
func (d *Dialer) addresses(ctx context.Context, h host.Host) []netip.Addr {
	if h.Addr.IsValid() {
		return []netip.Addr{h.Addr.Unmap()}
	}
	r := d.Resolver
	if r == nil {
		r = System{}
	}
	addrs, err := r.LookupNetIP(ctx, "ip", h.Name+".")
	if err != nil {
		return nil
	}
	for i, a := range addrs {
		addrs[i] = a.Unmap()
	}
	return addrs
}
