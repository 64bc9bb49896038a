package gate

import (
	"encoding/binary"
	"net/netip"
)

// flow is one connection as packets name it.
type flow struct{ src, dst netip.AddrPort }

// first is a connection's first packet: its TCP header and what follows it.
type first struct {
	flow
	tcp []byte
}

const (
	tcpHeader = 20
	ip4Header = 20
	ip6Header = 40
	udpHeader = 8

	flagFIN, flagSYN, flagRST, flagACK = 1, 2, 4, 16
)

// cut4 splits an IPv4 packet into addresses and payload. Fragments are nothing.
func cut4(b []byte) (src, dst netip.Addr, payload []byte, ok bool) {
	if len(b) < ip4Header || b[0]>>4 != 4 || binary.BigEndian.Uint16(b[6:])&0x3fff != 0 {
		return src, dst, nil, false
	}
	size := int(b[0]&15) * 4
	if size < ip4Header || size > len(b) {
		return src, dst, nil, false
	}
	return netip.AddrFrom4([4]byte(b[12:16])), netip.AddrFrom4([4]byte(b[16:20])), b[size:], true
}

// firstOf reads the TCP part of a first packet.
func firstOf(src, dst netip.Addr, tcp []byte) (first, bool) {
	if len(tcp) < tcpHeader || tcp[13]&(flagSYN|flagACK|flagRST|flagFIN) != flagSYN || int(tcp[12]>>4)*4 > len(tcp) || tcp[12]>>4 < 5 {
		return first{}, false
	}
	return first{flow{netip.AddrPortFrom(src, binary.BigEndian.Uint16(tcp)), netip.AddrPortFrom(dst, binary.BigEndian.Uint16(tcp[2:]))},
		append([]byte(nil), tcp...)}, true
}

// sum adds up b as the checksums of the internet do.
func sum(s uint32, b []byte) uint32 {
	for ; len(b) > 1; b = b[2:] {
		s += uint32(b[0])<<8 | uint32(b[1])
	}
	if len(b) == 1 {
		s += uint32(b[0]) << 8
	}
	for s>>16 != 0 {
		s = s&0xffff + s>>16
	}
	return s
}

// seal writes the checksum of a TCP segment.
func seal(src, dst netip.Addr, tcp []byte) {
	tcp[16], tcp[17] = 0, 0
	s := sum(0, src.AsSlice())
	s = sum(s, dst.AsSlice())
	s = sum(s, []byte{0, 6, byte(len(tcp) >> 24), byte(len(tcp) >> 16), byte(len(tcp) >> 8), byte(len(tcp))})
	binary.BigEndian.PutUint16(tcp[16:], ^uint16(sum(s, tcp)))
}

// again is the first packet as it is sent once more, with its IP header.
func again(f first) []byte {
	tcp := append([]byte(nil), f.tcp...)
	return segment(f.src.Addr(), f.dst.Addr(), tcp)
}

// refusal is the packet that refuses f, from where it was going.
func refusal(f first) []byte {
	r := make([]byte, tcpHeader)
	copy(r[0:2], f.tcp[2:4])
	copy(r[2:4], f.tcp[0:2])
	data := uint32(len(f.tcp) - int(f.tcp[12]>>4)*4) // with TCP fast open
	binary.BigEndian.PutUint32(r[8:], binary.BigEndian.Uint32(f.tcp[4:])+1+data)
	r[12], r[13] = 5<<4, flagRST|flagACK
	return segment(f.dst.Addr(), f.src.Addr(), r)
}

// segment puts an IP header before a TCP segment.
func segment(src, dst netip.Addr, tcp []byte) []byte {
	const tcpProtocol, hops = 6, 64
	seal(src, dst, tcp)
	if src.Is4() {
		h := make([]byte, ip4Header, ip4Header+len(tcp))
		h[0], h[6], h[8], h[9] = 4<<4|5, 0x40, hops, tcpProtocol // 0x40: do not fragment
		binary.BigEndian.PutUint16(h[2:], uint16(ip4Header+len(tcp)))
		copy(h[12:], src.AsSlice())
		copy(h[16:], dst.AsSlice())
		return append(h, tcp...)
	}
	h := make([]byte, ip6Header, ip6Header+len(tcp))
	h[0], h[6], h[7] = 6<<4, tcpProtocol, hops
	binary.BigEndian.PutUint16(h[4:], uint16(len(tcp)))
	copy(h[8:], src.AsSlice())
	copy(h[24:], dst.AsSlice())
	return append(h, tcp...)
}

// prohibited4 is the ICMP message that says that a packet was refused by rule,
// for the sender of the packet b (RFC 1812, code 13).
func prohibited4(b []byte) []byte {
	m := append(make([]byte, 8, 8+len(b)), b[:min(len(b), ip4Header+40)]...)
	m[0], m[1] = 3, 13
	binary.BigEndian.PutUint16(m[2:], ^uint16(sum(0, m)))
	return m
}

// prohibited6 is the same for IPv6 (RFC 4443, code 1), without its checksum,
// which the kernel fills in. The header of what was refused is made anew: a raw
// socket does not show it.
func prohibited6(src, dst netip.Addr, proto byte, payload []byte) []byte {
	m := make([]byte, 8+ip6Header, 8+ip6Header+len(payload))
	m[0], m[1] = 1, 1
	h := m[8:]
	h[0], h[6], h[7] = 6<<4, proto, 64
	binary.BigEndian.PutUint16(h[4:], uint16(len(payload)))
	copy(h[8:], src.AsSlice())
	copy(h[24:], dst.AsSlice())
	return append(m, payload...)
}
