package egress

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/host"
)

// Resolver looks a name up. *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, name string) ([]netip.Addr, error)
}

// System is the host's own resolver, with its hosts file.
type System struct{}

// LookupNetIP looks a name up that ends in a dot.
func (System) LookupNetIP(ctx context.Context, network, name string) ([]netip.Addr, error) {
	if label := strings.TrimSuffix(name, "."); !strings.Contains(label, ".") {
		// In the hosts file it has no dot, and without one it would be asked for
		// below the domains of the search list as well.
		if addrs, err := inFiles(ctx, network, label); err == nil {
			return addrs, nil
		}
	}
	r := net.Resolver{PreferGo: true}
	return r.LookupNetIP(ctx, network, name)
}

// Denial is one connection that was not allowed.
type Denial struct {
	Name  string
	Addr  netip.Addr
	Port  uint16
	Proto Proto
	Verdict
	// Code is EGRESS_DENIED where it is empty.
	Code fault.Code
}

// String says what was refused.
func (d Denial) String() string {
	s := d.Name
	switch {
	case s == "" && d.Addr.IsValid():
		s = d.Addr.String()
	case d.Addr.IsValid():
		s += " (" + d.Addr.String() + ")"
	}
	if d.Port != 0 {
		s += " port " + strconv.Itoa(int(d.Port))
	}
	if d.Proto != TCP {
		s += " by " + d.Proto.String()
	}
	return s
}

// Err is the denial as an error for people.
func (d Denial) Err() error {
	return fault.New(fault.EgressDenied, d.String()+": "+d.Rule).WithHint(d.Remedy)
}

// Dialer dials what its rules allow. Its zero value dials nothing.
type Dialer struct {
	Rules *Rules
	// Resolver resolves allowed names; nil is the host's own, with its hosts
	// file.
	Resolver Resolver
	// Upstream, when not nil, is asked for what it chains.
	Upstream *Upstream
	// Own says whether an address is one of the host's own; nil asks the host.
	Own func(netip.Addr) (bool, error)
	// Denied, when not nil, is told of every denial.
	Denied func(Denial)
	// Timeout bounds one connection attempt; zero is 30 s.
	Timeout time.Duration
}

const builtinTimeout = 30 * time.Second

// headStart is what one address has before the next is tried beside it (RFC
// 8305 recommends 250 ms).
const headStart = 250 * time.Millisecond

// DialContext has the form that net/http wants: network tcp, tcp4 or tcp6, and
// host:port. A denial is a *fault.Error with EGRESS_DENIED and the flag that
// would allow it as its hint; any other error is the network's.
//
// The name is judged before it is looked up. If one of its addresses is not
// allowed none is dialled: a name that leads to several places is as good as
// its worst. What is dialled is an address that was judged, never the name.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	name, service, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fault.Wrap(fault.EgressDenied, "not a host and a port", err)
	}
	port, err := strconv.ParseUint(service, 10, 16)
	if err != nil || port == 0 {
		return nil, fault.New(fault.EgressDenied, "not a port: "+strconv.Quote(service))
	}
	family := ""
	switch network {
	case "tcp":
	case "tcp4", "tcp6":
		family = network[3:]
	default:
		return nil, d.refuse(Denial{Name: name, Port: uint16(port), Proto: Other, Verdict: Verdict{Rule: "only TCP and names pass the gate"}})
	}
	c, err := d.Dial(ctx, name, netip.Addr{}, uint16(port), family)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Dial dials a name, or an address when name is empty. Family is "4" or "6" for
// those addresses alone, or empty; an upstream proxy dials as it likes.
func (d *Dialer) Dial(ctx context.Context, name string, addr netip.Addr, port uint16, family string) (Conn, error) {
	timeout := d.Timeout
	if timeout == 0 {
		timeout = builtinTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if d.Upstream != nil {
		to, err := d.allowed(name, addr, port)
		if err != nil {
			return nil, err
		}
		if d.itself(ctx, to, port) {
			return nil, d.refuse(Denial{Name: to.Name, Addr: to.Addr, Port: port, Proto: TCP, Verdict: Verdict{Rule: "it is the upstream proxy itself"}})
		}
		if p := d.Upstream.proxy(to.Name, to.Addr, port); p != nil {
			direct, err := d.beforeProxy(ctx, to, port)
			if err != nil {
				return nil, err
			}
			if !direct {
				return d.chain(ctx, p, to, port)
			}
		}
	}
	addrs, err := d.Judge(ctx, name, addr, port)
	if err != nil {
		return nil, err
	}
	if family != "" {
		kept := addrs[:0:0]
		for _, a := range addrs {
			if a.Is4() == (family == "4") {
				kept = append(kept, a)
			}
		}
		if addrs = kept; len(addrs) == 0 {
			return nil, &net.DNSError{Err: "no address of this family", Name: name, IsNotFound: true}
		}
	}
	c, err := race(ctx, addrs, port)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Judge returns the addresses that may be dialled for a name, or for an address
// when name is empty: all that it has, or an error. A public address of the host
// itself is like its loopback: a rule by address opens it, and nothing wider.
func (d *Dialer) Judge(ctx context.Context, name string, addr netip.Addr, port uint16) ([]netip.Addr, error) {
	to, err := d.allowed(name, addr, port)
	if err != nil {
		return nil, err
	}
	if to.Addr.IsValid() {
		if err := d.judgeOwn("", to.Addr, port); err != nil {
			return nil, err
		}
		return []netip.Addr{to.Addr}, nil
	}
	name = to.Name
	addrs, err := d.Lookup(ctx, name)
	if err != nil {
		return nil, err
	}
	for _, a := range addrs {
		if v := d.Rules.Decide(name, a, port, TCP); !v.Allow {
			return nil, d.refuse(Denial{Name: name, Addr: a, Port: port, Proto: TCP, Verdict: v})
		}
		if err := d.judgeOwn(name, a, port); err != nil {
			return nil, err
		}
	}
	return addrs, nil
}

// allowed judges what a client asks for, before anything is looked up.
func (d *Dialer) allowed(name string, addr netip.Addr, port uint16) (host.Host, error) {
	if name != "" {
		h, err := host.Parse(name)
		if err != nil {
			return h, d.refuse(Denial{Name: name, Port: port, Proto: TCP, Verdict: Verdict{Rule: err.Error()}})
		}
		name = h.Name
		if h.Addr.IsValid() {
			addr = h.Addr
		}
	}
	if v := d.Rules.Decide(name, addr, port, TCP); !v.Allow {
		return host.Host{}, d.refuse(Denial{Name: name, Addr: addr, Port: port, Proto: TCP, Verdict: v})
	}
	if addr.IsValid() {
		return host.Host{Addr: addr.Unmap()}, nil
	}
	return host.Host{Name: name}, nil
}

// Families says which families of addresses a name has, if it may be resolved.
// One that only the upstream proxy resolves counts as having IPv4.
func (d *Dialer) Families(ctx context.Context, name string) (four, six bool, err error) {
	if v := d.Rules.MayResolve(name); v.Allow && d.Upstream.Chains(name, netip.Addr{}, 0) {
		return true, false, nil
	}
	addrs, err := d.Lookup(ctx, name)
	for _, a := range addrs {
		four, six = four || a.Is4(), six || a.Is6()
	}
	return four, six, err
}

// Lookup resolves a name that the rules let be resolved, and judges no address.
func (d *Dialer) Lookup(ctx context.Context, name string) ([]netip.Addr, error) {
	if v := d.Rules.MayResolve(name); !v.Allow {
		return nil, d.refuse(Denial{Name: name, Proto: TCP, Verdict: v})
	}
	if host.IsLocal(name) { // never a resolver's to say (RFC 6761)
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}, nil
	}
	r := d.Resolver
	if r == nil {
		r = System{}
	}
	// With the final dot it is looked up as it is, and not below the domains of
	// a search list.
	addrs, err := r.LookupNetIP(ctx, "ip", name+".")
	if err != nil {
		return nil, err
	}
	for i, a := range addrs {
		addrs[i] = a.Unmap()
	}
	if len(addrs) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
	}
	return addrs, nil
}

func (d *Dialer) refuse(x Denial) error {
	if d.Denied != nil {
		d.Denied(x)
	}
	return x.Err()
}

// race dials the addresses in turn, the next one when the last has failed or
// has had its head start, and returns the first connection. The error is the
// first address's.
func race(ctx context.Context, addrs []netip.Addr, port uint16) (*net.TCPConn, error) {
	type result struct {
		c   *net.TCPConn
		i   int
		err error
	}
	dial := func(ctx context.Context, a netip.Addr) (*net.TCPConn, error) {
		var dialer net.Dialer
		dialer.SetMultipathTCP(false)
		// Not by DialTCP, which binds first: a port that is chosen before it is known
		// what for is nobody else's, and there are few of those.
		c, err := dialer.DialContext(ctx, "tcp", netip.AddrPortFrom(a, port).String())
		if err != nil {
			return nil, err
		}
		return c.(*net.TCPConn), nil
	}
	if len(addrs) == 1 {
		return dial(ctx, addrs[0])
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan result, len(addrs))
	started, ended := 0, 0
	start := func() {
		i := started
		started++
		go func() {
			c, err := dial(ctx, addrs[i])
			results <- result{c, i, err}
		}()
	}
	errs := make([]error, len(addrs))
	start()
	timer := time.NewTimer(headStart)
	defer timer.Stop()
	for {
		select {
		case r := <-results:
			ended++
			if r.err == nil {
				go func(left int) { // connections that came second
					for range left {
						if late := <-results; late.c != nil {
							late.c.Close()
						}
					}
				}(started - ended)
				return r.c, nil
			}
			errs[r.i] = r.err
			if ended == len(addrs) {
				return nil, errs[0]
			}
			if started < len(addrs) && started == ended {
				start()
				timer.Reset(headStart)
			}
		case <-timer.C:
			if started < len(addrs) {
				start()
				timer.Reset(headStart)
			}
		}
	}
}

// IsDenied says whether an error is a denial.
func IsDenied(err error) bool {
	e, ok := errors.AsType[*fault.Error](err)
	return ok && e.Code == fault.EgressDenied
}
