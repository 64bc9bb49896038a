package gate

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/internal/egress"
	"github.com/tether-sandbox/tether/internal/host"
)

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
