package host

import (
	"encoding/binary"
	"net/netip"
)

// Class says what an address is for.
type Class uint8

// The classes. Zero, and every other one but Public, is not the internet.
const (
	Unknown Class = iota
	Public
	Unspecified
	Loopback
	Private
	LinkLocal
	CGNAT
	Benchmarking
	Documentation
	Multicast
	Reserved
	// Transition addresses carry an IPv4 address in them.
	Mapped
	NAT64
	SixToFour
	Teredo
	ISATAP
	// Metadata is where a cloud hands out its machines' credentials.
	Metadata
)

// String names the class in a sentence such as "a private address".
func (c Class) String() string {
	names := [...]string{"an unknown", "a public", "an unspecified", "a loopback", "a private", "a link-local",
		"a carrier-grade NAT", "a benchmarking", "a documentation", "a multicast", "a reserved", "an IPv4-compatible",
		"a NAT64", "a 6to4", "a Teredo", "an ISATAP", "a cloud metadata"}
	if int(c) >= len(names) {
		c = Unknown
	}
	return names[c] + " address"
}

// block is a part of the address space, IPv4 in the lower half of hi.
type block struct {
	hi, lo uint64
	bits   uint8
	class  Class
}

// v4 and v6 follow the special-purpose registries of IANA (as of November
// 2026); what they call globally reachable and lies in none of these blocks is
// public. A narrower block beats the wider one. Protocol assignments are closed
// as a whole, the few reachable anycast services in them included. Metadata
// addresses are the providers' own.
var v4 = [...]block{
	{0x00000000, 0, 0, Public},
	{0x00000000, 0, 8, Unspecified}, // RFC 791: this network
	{0x0a000000, 0, 8, Private},
	{0x64400000, 0, 10, CGNAT}, // 100.64/10
	{0x646464c8, 0, 32, Metadata},
	{0x7f000000, 0, 8, Loopback},
	{0xa83f8110, 0, 32, Metadata},  // 168.63.129.16, Azure's wire server
	{0xa9fe0000, 0, 16, LinkLocal}, // 169.254/16
	{0xa9fea9fe, 0, 32, Metadata},  // AWS, Azure, Google, Oracle, and most others
	{0xa9feaa02, 0, 32, Metadata},  // AWS ECS
	{0xa9feaa17, 0, 32, Metadata},  // AWS EKS
	{0xa9fe0017, 0, 32, Metadata},  // Tencent
	{0xa9fe2a2a, 0, 32, Metadata},  // Scaleway
	{0xac100000, 0, 12, Private},
	{0xc0000000, 0, 24, Reserved}, // protocol assignments
	{0xc00000c0, 0, 32, Metadata}, // Oracle classic
	{0xc0000200, 0, 24, Documentation},
	{0xc0586300, 0, 24, SixToFour}, // relay anycast, deprecated
	{0xc0a80000, 0, 16, Private},
	{0xc6120000, 0, 15, Benchmarking},
	{0xc6336400, 0, 24, Documentation},
	{0xcb007100, 0, 24, Documentation},
	{0xe0000000, 0, 4, Multicast},
	{0xf0000000, 0, 4, Reserved},
}

var v6 = [...]block{
	{0, 0, 0, Reserved},                   // what is not allocated
	{0x2000000000000000, 0, 3, Public},    // global unicast
	{0, 0, 96, Mapped},                    // IPv4-compatible, deprecated
	{0, 0xffff000000000000, 96, Mapped},   // ::ffff:0:0/96 of RFC 2765, translated
	{0, 0, 128, Unspecified},              //
	{0, 1, 128, Loopback},                 //
	{0x0064ff9b00000000, 0, 96, NAT64},    //
	{0x0064ff9b00010000, 0, 48, NAT64},    // local use
	{0x0100000000000000, 0, 64, Reserved}, // discard
	{0x2001000000000000, 0, 23, Reserved}, // protocol assignments
	{0x2001000000000000, 0, 32, Teredo},
	{0x2001000200000000, 0, 48, Benchmarking},
	{0x20010db800000000, 0, 32, Documentation},
	{0x2002000000000000, 0, 16, SixToFour},
	{0x3fff000000000000, 0, 20, Documentation},
	{0xfc00000000000000, 0, 7, Private},
	{0xfd000ec200000000, 0x0254, 128, Metadata},     // AWS
	{0xfd000ec200000000, 0x0023, 128, Metadata},     // AWS EKS
	{0xfd2000ce00000000, 0x0254, 128, Metadata},     // Google
	{0xfd00004200000000, 0x0042, 128, Metadata},     // Scaleway
	{0xfd0000c100000000, 0xa9fea9fe, 128, Metadata}, // Oracle
	{0xfe80000000000000, 0, 10, LinkLocal},
	{0xfe80000000000000, 0xa9fea9fe, 128, Metadata}, // OpenStack
	{0xfec0000000000000, 0, 10, Private},            // site-local, deprecated
	{0xff00000000000000, 0, 8, Multicast},
}

// ClassOf says what an address is for. An IPv4 address in IPv6 clothes is what
// that IPv4 address is; one with a zone is link-local. The zero Addr is Unknown.
func ClassOf(a netip.Addr) Class {
	if !a.IsValid() {
		return Unknown
	}
	if a.Zone() != "" {
		return LinkLocal
	}
	a = a.Unmap()
	if a.Is4() {
		b := a.As4()
		return find(v4[:], uint64(binary.BigEndian.Uint32(b[:])), 0, 32)
	}
	b := a.As16()
	hi, lo := binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])
	c := find(v6[:], hi, lo, 64)
	// An interface identifier of ISATAP (RFC 5214), in whatever network.
	if c != Metadata && (lo>>32 == 0x00005efe || lo>>32 == 0x02005efe) {
		return ISATAP
	}
	return c
}

// find returns the class of the narrowest block around an address, whose first
// word has so many bits.
func find(table []block, hi, lo uint64, width uint8) Class {
	class, most := Unknown, -1
	for i := range table {
		b := &table[i]
		if int(b.bits) <= most {
			continue
		}
		in := hi>>(width-min(b.bits, width)) == b.hi>>(width-min(b.bits, width))
		if b.bits > width {
			in = in && lo>>(128-b.bits) == b.lo>>(128-b.bits)
		}
		if in {
			class, most = b.class, int(b.bits)
		}
	}
	return class
}

// Embedded returns the IPv4 address that an IPv6 one leads to by a transition
// mechanism; ok is false for any other.
func Embedded(a netip.Addr) (v4 netip.Addr, ok bool) {
	a = a.Unmap()
	if !a.Is6() {
		return netip.Addr{}, false
	}
	b := a.As16()
	switch ClassOf(a) {
	case Mapped, ISATAP:
		return netip.AddrFrom4([4]byte(b[12:])), true
	case NAT64:
		if b[5] == 0 && b[4] == 0 { // 64:ff9b::/96
			return netip.AddrFrom4([4]byte(b[12:])), true
		}
		// The local prefix is cut by its network's own rules (RFC 8215); what
		// most cut it by is 96 bits.
		return netip.AddrFrom4([4]byte(b[12:])), true
	case SixToFour:
		return netip.AddrFrom4([4]byte(b[2:6])), true
	case Teredo:
		return netip.AddrFrom4([4]byte{^b[12], ^b[13], ^b[14], ^b[15]}), true
	}
	return netip.Addr{}, false
}

// PublicPorts are the ports on which base public reaches the internet, in
// order: ssh, http and https with their usual other ports, and git.
func PublicPorts() [6]uint16 { return [...]uint16{22, 80, 443, 8080, 8443, 9418} }

// PublicPort says whether port is one of PublicPorts.
func PublicPort(port uint16) bool {
	for _, p := range PublicPorts() {
		if p == port {
			return true
		}
	}
	return false
}
