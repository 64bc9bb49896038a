package enforce

import "errors"

// Net says which network a sandbox gets.
type Net uint8

// The networks.
const (
	OwnNet   Net = iota // a loopback of its own and nothing else
	GatedNet            // that, and the gate
	HostNet             // the host's
)

// GateOrder says what the inner stage makes for the gate: sockets in network
// namespaces of the sandbox, which it hands out. The gate itself serves them
// outside.
type GateOrder struct {
	// Ports are the TCP ports on which a connection to any address arrives at
	// the gate.
	Ports []uint16
	// Local are those on the sandbox's own loopback that lead out.
	Local []uint16
	// Env is added to the command's environment where the gate is a proxy.
	Env []string
}

// GateLink says how the gate is joined to the sandbox.
type GateLink byte

// The links.
const (
	// NoLink is none.
	NoLink GateLink = iota
	// Veth: a pair of interfaces joins the sandbox's network namespace with one
	// in which every address is local and nobody lives.
	Veth
	// Proxy: a listener on the sandbox's loopback.
	Proxy
)

// String is veth or proxy; empty for none.
func (l GateLink) String() string {
	switch l {
	case Veth:
		return "veth"
	case Proxy:
		return "proxy"
	}
	return ""
}

// The gate's own addresses; all lie in the range for benchmarks (RFC 2544) or
// are unique local ones, so that no host of the internet is shadowed.
const (
	GateAddr    = "198.18.0.1"
	CommandAddr = "198.18.0.2"
	GateAddr6   = "fd7e:7e74:6874:6572::1"
	// ProxyPort is where a gate that is a proxy listens on the loopback inside:
	// above the ports that Linux hands out.
	ProxyPort = 61888
	// GateMark marks the packets that the gate sends. Only who holds a
	// capability over the namespace can set a mark, and a mark does not cross
	// from one namespace to another.
	GateMark = 0x7e74
)

// Side are the sockets of one namespace in which first packets are held: raw
// ones that see them and send them again, and the listeners that they are for.
// Raw6 and Send6 are -1 without IPv6.
type Side struct {
	Raw4, Raw6, Send6 int
	Listeners         []int
}

// GateSockets are the sockets of a gate, by descriptor.
type GateSockets struct {
	Link GateLink
	V6   bool
	// Far are the sockets in the gate's own namespace (Veth). DNS and DNSTCP
	// answer for every address; UDP4, UDP6, ICMP4 and ICMP6 see what is refused.
	Far                                   Side
	DNS, DNSTCP, UDP4, UDP6, ICMP4, ICMP6 int
	// Near are those on the command's loopback, for GateOrder.Local.
	Near Side
	// Proxy is the listener of a proxy; with it Near has listeners alone.
	Proxy int
}

// NoSockets has no socket at all.
func NoSockets() GateSockets {
	none := Side{Raw4: -1, Raw6: -1, Send6: -1}
	return GateSockets{Far: none, DNS: -1, DNSTCP: -1, UDP4: -1, UDP6: -1, ICMP4: -1, ICMP6: -1, Near: none, Proxy: -1}
}

// list names every socket that there is, in the order in which they cross.
func (s *GateSockets) list(ports, local int) []*int {
	var l []*int
	if s.Link == Proxy {
		l = append(l, &s.Proxy)
	} else {
		l = append(l, &s.Far.Raw4, &s.DNS, &s.DNSTCP, &s.UDP4, &s.ICMP4)
		if s.V6 {
			l = append(l, &s.Far.Raw6, &s.Far.Send6, &s.UDP6, &s.ICMP6)
		}
		if local > 0 {
			l = append(l, &s.Near.Raw4)
			if s.V6 {
				l = append(l, &s.Near.Raw6, &s.Near.Send6)
			}
		}
		if s.Far.Listeners == nil {
			s.Far.Listeners = make([]int, ports)
		}
		for i := range s.Far.Listeners {
			l = append(l, &s.Far.Listeners[i])
		}
	}
	if s.V6 {
		local *= 2 // 127.0.0.1 and ::1
	}
	if s.Near.Listeners == nil {
		s.Near.Listeners = make([]int, local)
	}
	for i := range s.Near.Listeners {
		l = append(l, &s.Near.Listeners[i])
	}
	return l
}

// Pack returns the descriptors in the order in which they cross.
func (s GateSockets) Pack() []int {
	local := len(s.Near.Listeners)
	if s.V6 {
		local /= 2
	}
	var fds []int
	for _, p := range s.list(len(s.Far.Listeners), local) {
		fds = append(fds, *p)
	}
	return fds
}

// Unpack reads what Pack wrote, for the order that it answers.
func Unpack(o *GateOrder, link GateLink, v6 bool, fds []int) (GateSockets, error) {
	s := NoSockets()
	s.Link, s.V6 = link, v6
	if link != Veth && link != Proxy {
		return s, errors.New("no such link")
	}
	places := s.list(len(o.Ports), len(o.Local))
	if len(places) != len(fds) {
		return s, errors.New("the gate's sockets do not fit its order")
	}
	for i, p := range places {
		*p = fds[i]
	}
	return s, nil
}
