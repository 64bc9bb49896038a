package egress

import (
	"context"
	"errors"
	"net"
	"net/netip"

	"github.com/tether-sandbox/tether/internal/host"
)

// judgeOwn judges an address that Decide allows once more if it is one of the
// host's own: what listens there may be closed to everybody else by a firewall,
// which does not stand before the host itself. Where it cannot be found out, the
// address counts as one.
func (d *Dialer) judgeOwn(name string, addr netip.Addr, port uint16) error {
	if host.ClassOf(addr) != host.Public { // which only a rule about addresses opens
		return nil
	}
	v := d.Rules.DecideOwn(addr, port)
	if v.Allow {
		return nil
	}
	own, err := d.isOwn(addr)
	switch {
	case err != nil:
		v.Rule = "it may be an address of this host itself: " + err.Error()
	case !own:
		return nil
	}
	return d.refuse(Denial{Name: name, Addr: addr, Port: port, Proto: TCP, Verdict: v})
}

func (d *Dialer) isOwn(addr netip.Addr) (bool, error) {
	if d.Own != nil {
		return d.Own(addr)
	}
	return isOwn(addr)
}

// amongInterfaces looks an address up among those that the interfaces have.
func amongInterfaces(addr netip.Addr) (bool, error) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return false, err
	}
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok {
			if ip, ok := netip.AddrFromSlice(n.IP); ok && ip.Unmap() == addr.Unmap() {
				return true, nil
			}
		}
	}
	return false, nil
}

// inFiles looks a name up in the hosts file, and asks no resolver.
func inFiles(ctx context.Context, network, name string) ([]netip.Addr, error) {
	nobody := errors.New("nobody is asked")
	files := net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) { return nil, nobody }}
	return files.LookupNetIP(ctx, network, name)
}
