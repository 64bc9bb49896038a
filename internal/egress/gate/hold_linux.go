package gate

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"
	"unsafe"

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
	g.accept(l, g.serveDNSTCP)
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

// raw is a raw socket that waits without keeping a thread.
type raw struct {
	f    *os.File
	conn syscall.RawConn
}

func newRaw(fd int, filter []unix.SockFilter) (*raw, error) {
	if filter != nil {
		if err := attach(fd, filter); err != nil {
			unix.Close(fd)
			return nil, fmt.Errorf("socket filter: %w", err)
		}
	}
	f := os.NewFile(uintptr(fd), "raw")
	conn, err := f.SyscallConn()
	return &raw{f, conn}, err
}

func (r *raw) Close() error { return r.f.Close() }

// read returns one packet, its sender and, of IPv6, where it was going.
func (r *raw) read(b []byte) (n int, src, dst netip.Addr, err error) {
	oob := make([]byte, 64)
	err = r.conn.Read(func(fd uintptr) bool {
		var got int
		var from unix.Sockaddr
		var rerr error
		n, got, _, from, rerr = unix.Recvmsg(int(fd), b, oob, 0)
		switch {
		case errors.Is(rerr, unix.EAGAIN):
			return false
		case rerr != nil: // nothing that stays, and no reason to spin
			n = 0
			time.Sleep(time.Millisecond)
			return true
		}
		if s, ok := from.(*unix.SockaddrInet6); ok {
			src = netip.AddrFrom16(s.Addr)
			if messages, err := unix.ParseSocketControlMessage(oob[:got]); err == nil {
				for _, m := range messages {
					if m.Header.Level == unix.SOL_IPV6 && m.Header.Type == unix.IPV6_PKTINFO && len(m.Data) >= 16 {
						dst = netip.AddrFrom16([16]byte(m.Data))
					}
				}
			}
		}
		return true
	})
	return n, src, dst, err
}

func (r *raw) send(b []byte, to netip.Addr) {
	var addr unix.Sockaddr = &unix.SockaddrInet6{Addr: to.As16()}
	if to.Is4() {
		addr = &unix.SockaddrInet4{Addr: to.As4()}
	}
	// One that is lost is sent again by the client's kernel.
	_ = r.conn.Control(func(fd uintptr) { _ = unix.Sendto(int(fd), b, unix.MSG_DONTWAIT, addr) })
}

func attach(fd int, filter []unix.SockFilter) error {
	p := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, errno := unix.Syscall6(unix.SYS_SETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER,
		uintptr(unsafe.Pointer(&p)), unsafe.Sizeof(p), 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// Classic BPF.
const (
	ldB, ldH, ldBX, ldHX = unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, unix.BPF_LD | unix.BPF_H | unix.BPF_ABS,
		unix.BPF_LD | unix.BPF_B | unix.BPF_IND, unix.BPF_LD | unix.BPF_H | unix.BPF_IND
	ldW     = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	ldxIP   = unix.BPF_LDX | unix.BPF_B | unix.BPF_MSH // X = the length of an IPv4 header
	and     = unix.BPF_ALU | unix.BPF_AND | unix.BPF_K
	ifEqual = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	ret     = unix.BPF_RET | unix.BPF_K
	// markOff is SKF_AD_OFF + SKF_AD_MARK.
	markOff = 0xfffff000 + 20
	all     = 0xffffffff
)

// holds is the filter of a listener: no first packet but ours. It sees the
// packet from its TCP header on.
func holds(mark uint32) []unix.SockFilter {
	return []unix.SockFilter{
		{Code: ldW, K: markOff}, {Code: ifEqual, K: mark, Jt: 4},
		{Code: ldB, K: 13}, {Code: and, K: flagSYN | flagACK}, {Code: ifEqual, K: flagSYN, Jf: 1},
		{Code: ret, K: 0}, {Code: ret, K: all},
	}
}

// sees is the filter of a raw socket: first packets that are not ours, from the
// IP header on (IPv4), or from the TCP header on.
func sees(mark uint32, v4 bool) []unix.SockFilter {
	load := []unix.SockFilter{{Code: ldB, K: 13}}
	if v4 {
		load = []unix.SockFilter{{Code: ldxIP, K: 0}, {Code: ldBX, K: 13}}
	}
	f := append([]unix.SockFilter{{Code: ldW, K: markOff}, {Code: ifEqual, K: mark, Jt: uint8(len(load) + 2)}}, load...)
	return append(f, unix.SockFilter{Code: and, K: flagSYN | flagACK}, unix.SockFilter{Code: ifEqual, K: flagSYN, Jt: 1},
		unix.SockFilter{Code: ret, K: 0}, unix.SockFilter{Code: ret, K: 0xffff})
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
	server *net.TCPConn
	name   string
}

// mostHeld is how many connections wait at once. More first packets are dropped,
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
	s.mu.Unlock()
	s.sendAgain(f)
	time.AfterFunc(patience, func() {
		if s.forget(h) {
			server.Close()
		}
	})
}

func (s *side) dial(h *held) (*net.TCPConn, error) {
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
	if name == "" {
		return g.dialer.Dial(g.ctx, "", addr, port, "")
	}
	return g.dialer.Dial(g.ctx, name, netip.Addr{}, port, "")
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
	delete(s.held, key)
	s.mu.Unlock()
	if h == nil || h.server == nil {
		reset(c)
		s.gate.drop(c)
		return
	}
	if conn, err := c.SyscallConn(); err == nil { // it has done its work, and costs time for each packet
		_ = conn.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_DETACH_FILTER, 0) })
	}
	s.gate.pass(c, h.server, h.name, h.first.dst.Port(), nil)
}

func unmapped(a net.Addr) netip.AddrPort {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	p := t.AddrPort()
	return netip.AddrPortFrom(p.Addr().Unmap().WithZone(""), p.Port())
}

// serveDNS answers questions from the address that each was sent to.
func (g *Gate) serveDNS(c *net.UDPConn) {
	defer g.drop(c)
	b, oob := make([]byte, 4096), make([]byte, 128)
	for {
		n, got, _, from, err := c.ReadMsgUDPAddrPort(b, oob)
		if err != nil {
			if g.ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return
			}
			continue
		}
		query, to := append([]byte(nil), b[:n]...), answersFrom(oob[:got])
		if !g.slot() {
			return
		}
		go func() {
			defer func() { <-g.slots }()
			if out := g.answerDNS(g.ctx, query); out != nil {
				_, _, _ = c.WriteMsgUDPAddrPort(out, to, from)
			}
		}()
	}
}

// answersFrom makes of the control messages that say where a packet went those
// that say where its answer comes from.
func answersFrom(oob []byte) []byte {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil
	}
	for _, m := range messages {
		switch {
		case m.Header.Level == unix.SOL_IP && m.Header.Type == unix.IP_PKTINFO && len(m.Data) >= 12:
			info := unix.Inet4Pktinfo{Spec_dst: [4]byte(m.Data[8:12])}
			return unix.PktInfo4(&info)
		case m.Header.Level == unix.SOL_IPV6 && m.Header.Type == unix.IPV6_PKTINFO && len(m.Data) >= 16:
			if a := netip.AddrFrom16([16]byte(m.Data)); a.Is4In6() {
				info := unix.Inet4Pktinfo{Spec_dst: a.Unmap().As4()}
				return unix.PktInfo4(&info)
			}
			info := unix.Inet6Pktinfo{Addr: [16]byte(m.Data)}
			return unix.PktInfo6(&info)
		}
	}
	return nil
}

// watch records what is not TCP. The kernel refuses UDP by itself, as nobody
// listens; pings are refused here.
func (g *Gate) watch(p Pair) error {
	const dns, echo4, echo6, part = 53, 8, 128, 256
	drop := unix.SockFilter{Code: ret, K: 0}
	take := unix.SockFilter{Code: ret, K: part}
	for _, w := range []struct {
		fd     int
		filter []unix.SockFilter
		saw    func(*raw, netip.Addr, netip.Addr, []byte)
	}{
		{p.UDP4, []unix.SockFilter{{Code: ldxIP, K: 0}, {Code: ldHX, K: 2}, {Code: ifEqual, K: dns, Jf: 1}, drop, take}, g.sawUDP},
		{p.UDP6, []unix.SockFilter{{Code: ldH, K: 2}, {Code: ifEqual, K: dns, Jf: 1}, drop, take}, g.sawUDP},
		{p.ICMP4, []unix.SockFilter{{Code: ldxIP, K: 0}, {Code: ldBX, K: 0}, {Code: ifEqual, K: echo4, Jt: 1}, drop, take}, g.sawPing},
		{p.ICMP6, []unix.SockFilter{{Code: ldB, K: 0}, {Code: ifEqual, K: echo6, Jt: 1}, drop, take}, g.sawPing},
	} {
		if w.fd < 0 {
			continue
		}
		r, err := newRaw(w.fd, w.filter)
		if err != nil {
			return err
		}
		if g.keep(r) {
			go g.look(r, w.fd == p.UDP4 || w.fd == p.ICMP4, w.saw)
		}
	}
	return nil
}

func (g *Gate) look(r *raw, v4 bool, saw func(*raw, netip.Addr, netip.Addr, []byte)) {
	b := make([]byte, 1024)
	for {
		n, src, dst, err := r.read(b)
		if err != nil {
			return
		}
		packet := b[:n]
		if v4 {
			var ok bool
			if src, dst, _, ok = cut4(packet); !ok {
				continue
			}
		}
		saw(r, src, dst, packet)
	}
}

func (g *Gate) sawUDP(_ *raw, _, dst netip.Addr, packet []byte) {
	if dst.Is4() {
		if _, _, packet, _ = cut4(packet); packet == nil {
			return
		}
	}
	if len(packet) < udpHeader || host.ClassOf(dst) == host.Multicast {
		return // what machines say to each other unasked is no denial worth telling
	}
	name, _ := g.names.name(dst)
	_ = g.refused(name, dst, binary.BigEndian.Uint16(packet[2:]), egress.UDP)
}

func (g *Gate) sawPing(r *raw, src, dst netip.Addr, packet []byte) {
	const icmp6 = 58
	name, _ := g.names.name(dst)
	_ = g.refused(name, dst, 0, egress.ICMP)
	if src.Is4() {
		r.send(prohibited4(packet), src)
		return
	}
	r.send(prohibited6(src, dst, icmp6, packet), src)
}
