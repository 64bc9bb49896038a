package gate

import (
	"net/netip"
	"sync"
)

// names gives each name an address.
type names struct {
	mu     sync.Mutex
	byName map[string]uint32
	list   []string
}

// The addresses of names: 198.18.1.0 and up (RFC 2544), and the same numbers in
// a network of their own in IPv6.
const (
	firstName = 0xc6120100
	mostNames = 1 << 16
	nameNet   = 0xfd7e7e7468746573
)

// of returns the addresses of a name; false when there are too many names.
func (n *names) of(name string) (v4, v6 netip.Addr, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	i, have := n.byName[name]
	if !have {
		if len(n.list) >= mostNames {
			return v4, v6, false
		}
		if n.byName == nil {
			n.byName = map[string]uint32{}
		}
		i = uint32(len(n.list))
		n.byName[name] = i
		n.list = append(n.list, name)
	}
	v := uint32(firstName) + i
	v4 = netip.AddrFrom4([4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)})
	var b [16]byte
	for i := range 8 {
		b[i] = byte(uint64(nameNet) >> (56 - 8*i))
	}
	b[12], b[13], b[14], b[15] = byte(i>>24), byte(i>>16), byte(i>>8), byte(i)
	return v4, netip.AddrFrom16(b), true
}

// name returns the name that an address stands for. Ours says that it could
// only stand for one.
func (n *names) name(a netip.Addr) (name string, ours bool) {
	var i uint32
	if a.Is4() {
		b := a.As4()
		v := uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
		if v < firstName || v >= firstName+mostNames {
			return "", false
		}
		i = v - firstName
	} else {
		b := a.As16()
		for j := range 8 {
			if b[j] != byte(uint64(nameNet)>>(56-8*j)) {
				return "", false
			}
		}
		i = uint32(b[12])<<24 | uint32(b[13])<<16 | uint32(b[14])<<8 | uint32(b[15])
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if int(i) >= len(n.list) {
		return "", true
	}
	return n.list[i], true
}
