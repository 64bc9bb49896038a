package enforcetest

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// patience is how long a host is waited for; one that refuses answers at once.
const patience = 3 * time.Second

func networkAttacks() []Attack {
	const g = "network"
	at := func(under Setup, name string, f func(s *Scene) error) Attack {
		return Attack{Name: name, Guarantee: g, Under: under, Try: f}
	}
	root := func(a Attack) Attack { a.Root = true; return a }
	optional := func(a Attack) Attack { a.Optional = true; return a }
	gated := func(a Attack) Attack { a.Name, a.Under = "gated: "+a.Name, Gated; return a }
	loopback := at(Offline, "the host's loopback", func(s *Scene) error { return s.asks("tcp", "127.0.0.1", s.TCP) })
	loopback6 := optional(at(Offline, "the host's loopback by IPv6", func(s *Scene) error { return s.asks("tcp", "::1", s.TCP6) }))
	mapped := at(Offline, "the host's loopback by a mapped address", func(s *Scene) error {
		return s.asksBy(unix.IPPROTO_TCP, netip.MustParseAddr("::ffff:127.0.0.1"), s.TCP, false)
	})
	udp := at(Offline, "the host's loopback by UDP", func(s *Scene) error { return s.asks("udp", "127.0.0.1", s.UDP) })
	near := root(at(Offline, "a private address of the host", func(s *Scene) error { return s.asks("tcp", s.Near, s.TCP) }))
	metadata := root(at(Offline, "the metadata address of clouds", func(s *Scene) error { return s.asks("tcp", s.Metadata, s.TCP) }))
	fast := at(Offline, "data in the first packet, without a connect", func(s *Scene) error {
		return s.asksBy(unix.IPPROTO_TCP, netip.MustParseAddr("127.0.0.1"), s.TCP, true)
	})
	multipath := optional(at(Offline, "a transport beside TCP", func(s *Scene) error {
		const mptcp = 262
		return s.asksBy(mptcp, netip.MustParseAddr("127.0.0.1"), s.TCP, false)
	}))
	raw := root(at(Offline, "forged packets", func(*Scene) error {
		return anyOf(socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_TCP), socket(unix.AF_PACKET, unix.SOCK_RAW, 0))
	}))
	return []Attack{
		loopback, loopback6, mapped, udp, near, metadata, fast, multipath, raw,
		optional(at(Offline, "the hypervisor by vsock", func(*Scene) error { return socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0) })),
		at(Offline, "the packet filter by netlink", func(*Scene) error {
			return anyOf(socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER), socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_KOBJECT_UEVENT))
		}),
		optional(at(Offline, "the kernel's ciphers by socket", func(*Scene) error { return socket(unix.AF_ALG, unix.SOCK_SEQPACKET, 0) })),
		root(at(Offline, "the address of an interface", func(*Scene) error {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return Address(fd, "lo:9", "127.9.9.9")
		})),
		root(optional(at(Offline, "a tunnel of its own", func(*Scene) error { return opens("/dev/net/tun", unix.O_RDWR) }))),
		root(at(Offline, "the network namespace of another process", func(s *Scene) error {
			return s.each(func(pid int) error { return joins(pid, "net", unix.CLONE_NEWNET) })
		})),
		root(at(Offline, "a mark on packets", func(*Scene) error {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MARK, 7)
		})),
		gated(loopback), gated(loopback6), gated(mapped), gated(udp), gated(near), gated(metadata), gated(fast), gated(multipath), gated(raw),
	}
}

// asks is nil when who listens there tells the secret.
func (s *Scene) asks(network, host string, port int) error {
	if host == "" || port == 0 {
		return errors.New("nobody listens there")
	}
	c, err := net.DialTimeout(network, net.JoinHostPort(host, strconv.Itoa(port)), patience)
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	if _, err := c.Write([]byte("?\n")); err != nil {
		return err
	}
	buf := make([]byte, 256)
	n, err := c.Read(buf)
	if string(buf[:n]) != s.Secret {
		return or(err, errNothing)
	}
	return nil
}

// asksBy is asks by hand: with a protocol, and in the first packet.
func (s *Scene) asksBy(protocol int, addr netip.Addr, port int, fast bool) error {
	family := unix.AF_INET
	var to unix.Sockaddr = &unix.SockaddrInet4{Port: port, Addr: addr.Unmap().As4()}
	if addr.Is4In6() {
		family, to = unix.AF_INET6, &unix.SockaddrInet6{Port: port, Addr: addr.As16()}
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	wait := unix.NsecToTimeval(patience.Nanoseconds())
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait)
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &wait)
	if fast {
		err = unix.Sendto(fd, []byte("?\n"), unix.MSG_FASTOPEN|unix.MSG_NOSIGNAL, to)
	} else if err = unix.Connect(fd, to); err == nil {
		_, err = unix.Write(fd, []byte("?\n"))
	}
	if err != nil {
		return err
	}
	buf := make([]byte, 256)
	n, err := unix.Read(fd, buf)
	if n <= 0 || string(buf[:n]) != s.Secret {
		return or(err, errNothing)
	}
	return nil
}

// socket is nil when such a socket can be made.
func socket(family, kind, protocol int) error {
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

// joins is nil when the thread can enter a namespace of a process.
func joins(pid int, name string, kind int) error {
	fd, err := unix.Open(of(pid, "ns/"+name), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Setns(fd, kind)
}

// Address gives an interface, also lo:1 and its like, an address and sets it up.
func Address(fd int, name, addr string) error {
	ip, err := netip.ParseAddr(addr)
	if err != nil {
		return err
	}
	var req struct {
		name [unix.IFNAMSIZ]byte
		addr unix.RawSockaddrInet4
		_    [8]byte
	}
	copy(req.name[:], name)
	req.addr = unix.RawSockaddrInet4{Family: unix.AF_INET, Addr: ip.As4()}
	if err := call(unix.SYS_IOCTL, uintptr(fd), unix.SIOCSIFADDR, uintptr(unsafe.Pointer(&req))); err != nil {
		return fmt.Errorf("address: %w", err)
	}
	return nil
}
