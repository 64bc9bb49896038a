package inner

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/internal/enforce"
)

// gate makes what joins the sandbox to the gate. One thread lives in a second
// network namespace, the far one, in which every address is local; no process
// of the sandbox can ever enter it. Sockets made there are handed to the
// supervisor, and keep it alive when the thread is gone.
type gate struct {
	order chan *enforce.GateOrder
	made  chan madeGate
}

type madeGate struct {
	sockets enforce.GateSockets
	why     string // why there is no veth pair
	err     error
}

// The interfaces: the first that a new namespace gets after its loopback.
const (
	loopback = 1
	device   = 2
	// linkMTU is the largest packet of IP with room for its header; small ones
	// would cost most of the throughput.
	linkMTU = 65520
)

// beginGate starts to make a veth pair, before the ports are known.
func beginGate() *gate {
	g := &gate{order: make(chan *enforce.GateOrder, 1), made: make(chan madeGate, 1)}
	go g.onThread()
	return g
}

// onThread keeps the thread that it runs on to itself, for good: when the
// goroutine ends, the thread does. The first thread of the process is left
// alone, since it would stay, and the process is named by its namespaces.
func (g *gate) onThread() {
	runtime.LockOSThread()
	if unix.Gettid() == unix.Getpid() {
		done := make(chan struct{})
		go func() { g.onThread(); close(done) }()
		<-done
		runtime.UnlockOSThread()
		return
	}
	near, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		defer unix.Close(near)
		err = g.join(near)
	}
	o, ok := <-g.order
	if !ok {
		return
	}
	var m madeGate
	if err != nil {
		m.why = err.Error()
	} else if m.sockets, m.err = farSockets(o); m.err == nil && len(o.Local) > 0 {
		// Back to the command's namespace, for the sockets on its loopback.
		if m.err = enter(near); m.err == nil {
			m.err = nearSockets(o, &m.sockets, true)
		}
	}
	g.made <- m
}

// namespace returns the network namespace that a socket lies in.
func namespace(socket int) (int, error) {
	const siocgskns = 0x894c // SIOCGSKNS
	fd, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(socket), siocgskns, 0)
	if errno != 0 {
		return -1, errno
	}
	return int(fd), nil
}

func enter(socket int) error {
	fd, err := namespace(socket)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Setns(fd, unix.CLONE_NEWNET)
}

// join takes the thread to a new namespace and lays the pair between it and the
// one that near lies in.
func (g *gate) join(near int) error {
	nearNS, err := namespace(near)
	if err != nil {
		return fmt.Errorf("name the network namespace: %w", err)
	}
	defer unix.Close(nearNS)
	nearLink, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("netlink: %w", err)
	}
	defer unix.Close(nearLink)
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("a second network namespace: %w", err)
	}
	farLink, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("netlink: %w", err)
	}
	defer unix.Close(farLink)

	far := batch{}
	one := func() [][]byte {
		return [][]byte{attr(unix.IFLA_MTU, u32(linkMTU)), attr(unix.IFLA_NUM_TX_QUEUES, u32(1)), attr(unix.IFLA_NUM_RX_QUEUES, u32(1))}
	}
	const vethPeer = 1 // VETH_INFO_PEER
	// The peer is set up once both are there: before, it has nobody to talk to.
	peer := append([][]byte{linkHeader(device, 0), attr(unix.IFLA_IFNAME, zstring("eth0")),
		attr(unix.IFLA_NET_NS_FD, u32(uint32(nearNS)))}, one()...)
	far.add("veth pair", unix.RTM_NEWLINK, unix.NLM_F_CREATE|unix.NLM_F_EXCL, linkHeader(device, unix.IFF_UP),
		append(one(), attr(unix.IFLA_IFNAME, zstring("gate")),
			attr(unix.IFLA_LINKINFO, attr(unix.IFLA_INFO_KIND, zstring("veth")), attr(unix.IFLA_INFO_DATA, attr(vethPeer, peer...))))...)
	up(&far)
	address(&far, enforce.GateAddr, 30)
	everywhere(&far, unix.AF_INET, unix.RT_SCOPE_HOST, unix.RTN_LOCAL, attr(unix.RTA_OIF, u32(loopback)))
	if err := far.send(farLink); err != nil {
		return fmt.Errorf("gate's side: %w", err)
	}
	side := batch{}
	up(&side)
	side.add("interface", unix.RTM_SETLINK, 0, linkHeader(device, unix.IFF_UP))
	address(&side, enforce.CommandAddr, 30)
	everywhere(&side, unix.AF_INET, unix.RT_SCOPE_UNIVERSE, unix.RTN_UNICAST, attr(unix.RTA_OIF, u32(device)),
		attr(unix.RTA_GATEWAY, netip.MustParseAddr(enforce.GateAddr).AsSlice()))
	if err := side.send(nearLink); err != nil {
		return fmt.Errorf("command's side: %w", err)
	}
	joinV6(farLink, nearLink)
	quiet()
	return nil
}

// joinV6 gives the pair IPv6 where the machine has it. Without, clients find no
// way and take IPv4.
func joinV6(farLink, nearLink int) {
	const gateSix, commandSix = enforce.GateAddr6, "fd7e:7e74:6874:6572::2"
	far := batch{}
	address(&far, gateSix, 126)
	everywhere(&far, unix.AF_INET6, unix.RT_SCOPE_HOST, unix.RTN_LOCAL, attr(unix.RTA_OIF, u32(loopback)))
	if far.send(farLink) != nil {
		return
	}
	near := batch{}
	address(&near, commandSix, 126)
	everywhere(&near, unix.AF_INET6, unix.RT_SCOPE_UNIVERSE, unix.RTN_UNICAST, attr(unix.RTA_OIF, u32(device)),
		attr(unix.RTA_GATEWAY, netip.MustParseAddr(gateSix).AsSlice()))
	_ = near.send(nearLink)
}

func up(n *batch) {
	n.add("loopback", unix.RTM_SETLINK, 0, linkHeader(loopback, unix.IFF_UP))
}

func address(n *batch, s string, bits byte) {
	a := netip.MustParseAddr(s)
	family, flags := byte(unix.AF_INET), byte(0)
	if a.Is6() {
		// Nobody else can have it, and looking for others takes a second.
		family, flags = unix.AF_INET6, unix.IFA_F_NODAD
	}
	n.add("address "+s, unix.RTM_NEWADDR, unix.NLM_F_CREATE|unix.NLM_F_EXCL, addrHeader(family, bits, flags, device),
		attr(unix.IFA_LOCAL, a.AsSlice()), attr(unix.IFA_ADDRESS, a.AsSlice()))
}

func everywhere(n *batch, family, scope, kind byte, attrs ...[]byte) {
	n.add("route", unix.RTM_NEWROUTE, unix.NLM_F_CREATE|unix.NLM_F_EXCL, routeHeader(family, scope, kind), attrs...)
}

// quiet keeps the far namespace's kernel from answering pings, which the gate
// refuses, and from holding back the refusals that a client waits for. Where
// the machine does not let it be set, refusals come late.
func quiet() {
	for _, s := range [...][2]string{{"ipv4/icmp_echo_ignore_all", "1"}, {"ipv4/icmp_ratelimit", "0"},
		{"ipv6/icmp/echo_ignore_all", "1"}, {"ipv6/icmp/ratelimit", "0"}} {
		_ = os.WriteFile("/proc/sys/net/"+s[0], []byte(s[1]), 0)
	}
}

// makeGate makes the sockets that the order asks for and hands them out.
func makeGate(g *gate, o *enforce.GateOrder) (enforce.GateLink, error) {
	m := madeGate{why: "bwrap's own network namespace takes no pair of interfaces"}
	if g != nil {
		g.order <- o
		m = <-g.made
	}
	if m.err != nil {
		return 0, m.err
	}
	if m.sockets.Link == enforce.NoLink {
		// Whoever else made the namespace has set its loopback up.
		var err error
		if g != nil {
			if err = loopbackUp(); err != nil {
				return 0, err
			}
		}
		if m.sockets, err = proxySockets(o); err != nil {
			return 0, err
		}
	}
	v6 := uint32(0)
	if m.sockets.V6 {
		v6 = 1
	}
	fds := m.sockets.Pack()
	packet := Message{Kind: Gate, Step: string(rune(m.sockets.Link)), Status: v6, What: m.why}.Encode()
	if err := unix.Sendmsg(FDControl, packet, unix.UnixRights(fds...), nil, unix.MSG_NOSIGNAL); err != nil {
		return 0, err
	}
	for _, fd := range fds {
		unix.Close(fd)
	}
	return m.sockets.Link, nil
}

// awaitGate returns when the gate serves its sockets.
func awaitGate() error {
	var b [1]byte
	for {
		n, err := unix.Read(FDControl, b[:])
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return err
		case n == 0:
			os.Exit(125)
		case b[0] != GateServes:
			return errors.New("an answer that was not asked for")
		}
		return nil
	}
}

// withEnv adds NAME=VALUE pairs to an environment; they beat what it holds.
func withEnv(env, more []string) []string {
	out := append([]string{}, more...)
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		if !slices.ContainsFunc(more, func(m string) bool { return strings.HasPrefix(m, name+"=") }) {
			out = append(out, kv)
		}
	}
	return out
}
