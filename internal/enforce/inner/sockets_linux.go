package inner

import (
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/internal/enforce"
)

// farSockets makes the sockets of the namespace that the thread is in.
func farSockets(o *enforce.GateOrder) (enforce.GateSockets, error) {
	s := enforce.NoSockets()
	s.Link, s.V6 = enforce.Veth, hasV6()
	m := maker{}
	m.raws(&s.Far, s.V6)
	s.UDP4 = m.raw(unix.AF_INET, unix.IPPROTO_UDP)
	s.ICMP4 = m.raw(unix.AF_INET, unix.IPPROTO_ICMP)
	if s.V6 {
		s.UDP6 = m.raw(unix.AF_INET6, unix.IPPROTO_UDP)
		s.ICMP6 = m.raw(unix.AF_INET6, unix.IPPROTO_ICMPV6)
		m.set(s.UDP6, unix.SOL_IPV6, unix.IPV6_RECVPKTINFO, 1)
		m.set(s.ICMP6, unix.SOL_IPV6, unix.IPV6_RECVPKTINFO, 1)
	}
	const dns = 53
	anywhere := netip.IPv4Unspecified()
	if s.V6 {
		anywhere = netip.IPv6Unspecified()
	}
	s.DNS = m.bound(unix.SOCK_DGRAM, netip.AddrPortFrom(anywhere, dns))
	m.set(s.DNS, unix.SOL_IP, unix.IP_PKTINFO, 1)
	if s.V6 {
		m.set(s.DNS, unix.SOL_IPV6, unix.IPV6_RECVPKTINFO, 1)
		// It answers from the address that was asked, which is nobody's.
		m.set(s.DNS, unix.SOL_IPV6, unix.IPV6_FREEBIND, 1)
	}
	s.DNSTCP = m.listener(netip.AddrPortFrom(anywhere, dns))
	for _, p := range o.Ports {
		s.Far.Listeners = append(s.Far.Listeners, m.listener(netip.AddrPortFrom(anywhere, p)))
	}
	return s, m.err
}

// nearSockets makes those on the command's own loopback.
func nearSockets(o *enforce.GateOrder, s *enforce.GateSockets, hold bool) error {
	m := maker{}
	if hold {
		m.raws(&s.Near, s.V6)
	}
	for _, p := range o.Local {
		s.Near.Listeners = append(s.Near.Listeners, m.listener(netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), p)))
		if s.V6 {
			s.Near.Listeners = append(s.Near.Listeners, m.listener(netip.AddrPortFrom(netip.IPv6Loopback(), p)))
		}
	}
	return m.err
}

// proxySockets makes the sockets of a gate that is a proxy: all of them on the
// command's loopback, none of which takes a right.
func proxySockets(o *enforce.GateOrder) (enforce.GateSockets, error) {
	s := enforce.NoSockets()
	s.Link, s.V6 = enforce.Proxy, hasV6()
	m := maker{}
	s.Proxy = m.listener(netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), enforce.ProxyPort))
	if m.err == nil {
		m.err = nearSockets(o, &s, false)
	}
	return s, m.err
}

func hasV6() bool {
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	// A machine may know the family and have it off.
	return unix.Bind(fd, &unix.SockaddrInet6{Addr: netip.IPv6Loopback().As16()}) == nil
}

// maker makes sockets until one fails.
type maker struct{ err error }

func (m *maker) socket(family, kind, proto int) int {
	if m.err != nil {
		return -1
	}
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, proto)
	if err != nil {
		m.err = fmt.Errorf("socket: %w", err)
	}
	return fd
}

func (m *maker) set(fd, level, option, value int) {
	if m.err == nil {
		if err := unix.SetsockoptInt(fd, level, option, value); err != nil {
			m.err = fmt.Errorf("socket option %d: %w", option, err)
		}
	}
}

// raw makes a raw socket that hears what nobody filters yet; the gate does.
func (m *maker) raw(family, proto int) int {
	return m.socket(family, unix.SOCK_RAW, proto)
}

// raws makes the sockets that see first packets and send them again.
func (m *maker) raws(s *enforce.Side, v6 bool) {
	const buffer = 4 << 20
	s.Raw4 = m.raw(unix.AF_INET, unix.IPPROTO_TCP)
	m.set(s.Raw4, unix.SOL_IP, unix.IP_HDRINCL, 1)
	m.set(s.Raw4, unix.SOL_SOCKET, unix.SO_MARK, enforce.GateMark)
	m.set(s.Raw4, unix.SOL_SOCKET, unix.SO_RCVBUF, buffer)
	if v6 {
		s.Raw6 = m.raw(unix.AF_INET6, unix.IPPROTO_TCP)
		m.set(s.Raw6, unix.SOL_IPV6, unix.IPV6_RECVPKTINFO, 1)
		m.set(s.Raw6, unix.SOL_SOCKET, unix.SO_RCVBUF, buffer)
		s.Send6 = m.raw(unix.AF_INET6, unix.IPPROTO_RAW)
		m.set(s.Send6, unix.SOL_SOCKET, unix.SO_MARK, enforce.GateMark)
	}
}

func (m *maker) bound(kind int, at netip.AddrPort) int {
	family := unix.AF_INET
	if at.Addr().Is6() {
		family = unix.AF_INET6
	}
	fd := m.socket(family, kind, 0)
	if kind == unix.SOCK_STREAM {
		m.set(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	}
	var addr unix.Sockaddr
	if family == unix.AF_INET6 {
		only := 0
		if !at.Addr().IsUnspecified() {
			only = 1
		}
		m.set(fd, unix.SOL_IPV6, unix.IPV6_V6ONLY, only)
		addr = &unix.SockaddrInet6{Port: int(at.Port()), Addr: at.Addr().As16()}
	} else {
		addr = &unix.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()}
	}
	if m.err == nil {
		if err := unix.Bind(fd, addr); err != nil {
			m.err = fmt.Errorf("bind %v: %w", at, err)
		}
	}
	return fd
}

// listener makes a listening socket. In IPv6 the unspecified address stands for
// both families.
func (m *maker) listener(at netip.AddrPort) int {
	fd := m.bound(unix.SOCK_STREAM, at)
	const backlog = 4096
	if m.err == nil {
		if err := unix.Listen(fd, backlog); err != nil {
			m.err = fmt.Errorf("listen on %v: %w", at, err)
		}
	}
	return fd
}
