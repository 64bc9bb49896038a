package gate

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/internal/egress"
	"github.com/tether-sandbox/tether/internal/host"
)

// Side are the sockets of one network namespace in which first packets are held.
// Raw6 and Send6 are -1 without IPv6.
type Side struct {
	Raw4, Raw6, Send6 int
	Listeners         []int
}

// Pair are the sockets of a gate that is joined by a pair of interfaces; -1
// stands for one that is not there. They belong to the gate from then on.
type Pair struct {
	Far                                   Side
	DNS, DNSTCP, UDP4, UDP6, ICMP4, ICMP6 int
	Near                                  Side
	// Ports are those that Far listens on, Local those of Near.
	Ports, Local []uint16
	// Mark is on every packet that Raw4 and Send6 send, and on no other.
	Mark uint32
}

// ServePair serves a pair. When it returns no packet can pass unjudged: the
// listeners take no first packet but the gate's own, so that a connection is
// made only after the gate has dialled its other end, and what the client sees
// until then is what it would have seen from there.
func (g *Gate) ServePair(p Pair) error {
	ports := append([]uint16{}, p.Ports...)
	g.ports.Store(&ports)
	far := &side{gate: g, ports: p.Ports, held: map[flow]*held{}}
	if err := far.serve(p.Far, p.Mark); err != nil {
		return err
	}
	if p.Near.Raw4 >= 0 {
		near := &side{gate: g, ports: p.Local, local: true, held: map[flow]*held{}}
		if err := near.serve(p.Near, p.Mark); err != nil {
			return err
		}
	}
	dns, err := packetConn(p.DNS)
	if err != nil {
		return err
	}
	l, err := listener(p.DNSTCP)
	if err != nil {
		return err
	}
	g.accept(l, g.called(g.serveDNSTCP))
	if g.keep(dns) {
		go g.serveDNS(dns)
	}
	return g.watch(p)
}

func listener(fd int) (net.Listener, error) {
	f := os.NewFile(uintptr(fd), "listener")
	defer f.Close()
	return net.FileListener(f)
}

func packetConn(fd int) (*net.UDPConn, error) {
	f := os.NewFile(uintptr(fd), "packets")
	defer f.Close()
	c, err := net.FilePacketConn(f)
	if err != nil {
		return nil, err
	}
	u, ok := c.(*net.UDPConn)
	if !ok {
		c.Close()
		return nil, errors.New("not a UDP socket")
	}
	return u, nil
}

// side holds the first packets of one namespace.
type side struct {
	gate  *Gate
	ports []uint16
	local bool // the command's own loopback: only some of what is seen is ours

	raw4, raw6, send6 *raw

	mu   sync.Mutex
	held map[flow]*held
}

// held is a connection that its client waits for.
type held struct {
	first first
	// server is the other end, once it is there.
	server egress.Conn
	name   string
	expiry *time.Timer // ends its wait
}

// mostWaiting is how many connections wait at once. More first packets are dropped,
// as by a host that is busy: the client sends them again a second later.
const mostWaiting = 1024

// patience is how long a client that was let in has to come.
const patience = 10 * time.Second

func (s *side) serve(fds Side, mark uint32) error {
	var err error
	if s.raw4, err = newRaw(fds.Raw4, sees(mark, true)); err != nil {
		return err
	}
	s.gate.keep(s.raw4)
	if fds.Raw6 >= 0 {
		if s.raw6, err = newRaw(fds.Raw6, sees(mark, false)); err != nil {
			return err
		}
		s.gate.keep(s.raw6)
		if s.send6, err = newRaw(fds.Send6, nil); err != nil {
			return err
		}
		s.gate.keep(s.send6)
	}
	for _, fd := range fds.Listeners {
		if err := attach(fd, holds(mark)); err != nil {
			return fmt.Errorf("socket filter: %w", err)
		}
		l, err := listener(fd)
		if err != nil {
			return err
		}
		s.gate.accept(l, s.arrived)
	}
	go s.look(s.raw4, true)
	if s.raw6 != nil {
		go s.look(s.raw6, false)
	}
	return nil
}

// look reads first packets.
func (s *side) look(r *raw, v4 bool) {
	b := make([]byte, 4096)
	for {
		n, src, dst, err := r.read(b)
		if err != nil {
			return
		}
		tcp := b[:n]
		if v4 {
			var ok bool
			if src, dst, tcp, ok = cut4(tcp); !ok {
				continue
			}
		}
		if f, ok := firstOf(src, dst, tcp); ok {
			s.saw(f)
		}
	}
}

// saw takes a first packet, which may be one that the client has sent again.
func (s *side) saw(f first) {
	port := f.dst.Port()
	const dns = 53
	if s.local != f.dst.Addr().IsLoopback() || !s.local && port == dns {
		return
	}
	listens := false
	for _, p := range s.ports {
		listens = listens || p == port
	}
	if !listens {
		if !s.local { // the kernel has refused it already
			name, _ := s.gate.names.name(f.dst.Addr())
			s.gate.refused(name, f.dst.Addr(), port, egress.TCP)
		}
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.held[f.flow]; h != nil {
		if h.server != nil { // ours was lost, or came when too many waited
			s.sendAgain(h.first)
		}
		return
	}
	if len(s.held) >= mostWaiting {
		return
	}
	h := &held{first: f}
	s.held[f.flow] = h
	go s.judge(h)
}

// judge dials the other end, and then lets the client in or refuses it.
func (s *side) judge(h *held) {
	f := h.first
	server, err := s.dial(h)
	if err != nil {
		s.forget(h)
		// Who was not answered is not answered either.
		if !isTimeout(err) {
			s.refuse(f)
		}
		return
	}
	s.mu.Lock()
	h.server = server
	h.expiry = time.AfterFunc(patience, func() {
		if s.forget(h) {
			server.Close()
			s.gate.carried.leave()
		}
	})
	s.mu.Unlock()
	s.sendAgain(f)
}

// dial dials the other end, and takes a place for it.
func (s *side) dial(h *held) (egress.Conn, error) {
	addr, port := h.first.dst.Addr(), h.first.dst.Port()
	g := s.gate
	if s.local {
		return g.dialLocal(port)
	}
	name, ours := g.names.name(addr)
	if ours && name == "" {
		return nil, g.refused("", addr, port, egress.TCP)
	}
	h.name = name
	if name != "" {
		addr = netip.Addr{}
	}
	return g.reach(name, addr, port)
}

// forget takes h out of those that wait; false says that it was out already.
func (s *side) forget(h *held) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[h.first.flow] != h {
		return false
	}
	delete(s.held, h.first.flow)
	return true
}

func (s *side) sendAgain(f first) { s.inject(again(f), f.dst.Addr()) }

func (s *side) refuse(f first) { s.inject(refusal(f), f.src.Addr()) }

func (s *side) inject(packet []byte, to netip.Addr) {
	if to.Is4() {
		s.raw4.send(packet, to)
	} else if s.send6 != nil {
		s.send6.send(packet, to)
	}
}

// arrived takes a connection that a listener has let in.
func (s *side) arrived(c *net.TCPConn) {
	key := flow{unmapped(c.RemoteAddr()), unmapped(c.LocalAddr())}
	s.mu.Lock()
	h := s.held[key]
	if h != nil && h.server != nil {
		delete(s.held, key)
	}
	s.mu.Unlock()
	if h == nil || h.server == nil {
		reset(c)
		s.gate.drop(c)
		return
	}
	defer s.gate.carried.leave()
	h.expiry.Stop()
	if conn, err := c.SyscallConn(); err == nil { // it has done its work, and costs time for each packet
		_ = conn.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_DETACH_FILTER, 0) })
	}
	to := host.Host{Name: h.name}
	if to.Name == "" && !s.local {
		to.Addr = h.first.dst.Addr()
	}
	s.gate.pass(c, h.server, to, h.first.dst.Port(), nil)
}

func unmapped(a net.Addr) netip.AddrPort {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	p := t.AddrPort()
	return netip.AddrPortFrom(p.Addr().Unmap().WithZone(""), p.Port())
}
