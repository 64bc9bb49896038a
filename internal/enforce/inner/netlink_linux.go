package inner

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// batch is several requests of rtnetlink(7) that go to the kernel together.
type batch struct {
	b     []byte
	seq   uint32
	names []string
}

// add appends a request: a header's payload and attributes.
func (n *batch) add(name string, kind, flags uint16, header []byte, attrs ...[]byte) {
	size := unix.NLMSG_HDRLEN + len(header)
	for _, a := range attrs {
		size += len(a)
	}
	n.seq++
	n.names = append(n.names, name)
	n.b = binary.NativeEndian.AppendUint32(n.b, uint32(size))
	n.b = binary.NativeEndian.AppendUint16(n.b, kind)
	n.b = binary.NativeEndian.AppendUint16(n.b, flags|unix.NLM_F_REQUEST|unix.NLM_F_ACK)
	n.b = binary.NativeEndian.AppendUint32(n.b, n.seq)
	n.b = binary.NativeEndian.AppendUint32(n.b, 0)
	n.b = append(n.b, header...)
	for _, a := range attrs {
		n.b = append(n.b, a...)
	}
}

// attr is one attribute; its value is several parts.
func attr(kind uint16, parts ...[]byte) []byte {
	size := unix.SizeofRtAttr
	for _, p := range parts {
		size += len(p)
	}
	b := binary.NativeEndian.AppendUint16(nil, uint16(size))
	b = binary.NativeEndian.AppendUint16(b, kind)
	for _, p := range parts {
		b = append(b, p...)
	}
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

func u32(v uint32) []byte { return binary.NativeEndian.AppendUint32(nil, v) }

func zstring(s string) []byte { return append([]byte(s), 0) }

// linkHeader is a struct ifinfomsg.
func linkHeader(index int, flags uint32) []byte {
	b := make([]byte, 4, unix.SizeofIfInfomsg)
	b = append(b, u32(uint32(index))...)
	b = append(b, u32(flags)...)
	return append(b, u32(flags)...) // what changes
}

// addrHeader is a struct ifaddrmsg.
func addrHeader(family, bits, flags byte, index int) []byte {
	return append([]byte{family, bits, flags, unix.RT_SCOPE_UNIVERSE}, u32(uint32(index))...)
}

// routeHeader is a struct rtmsg for the route to everywhere.
func routeHeader(family, scope, kind byte) []byte {
	return []byte{family, 0, 0, 0, unix.RT_TABLE_MAIN, unix.RTPROT_STATIC, scope, kind, 0, 0, 0, 0}
}

// send sends all requests and returns the first refusal.
func (n *batch) send(fd int) error {
	if err := unix.Sendto(fd, n.b, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	buf := make([]byte, 1<<14)
	var first error
	for left := len(n.names); left > 0; {
		got, _, err := unix.Recvfrom(fd, buf, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return err
		}
		for b := buf[:got]; len(b) >= unix.NLMSG_HDRLEN; {
			size := int(binary.NativeEndian.Uint32(b))
			kind, seq := binary.NativeEndian.Uint16(b[4:]), binary.NativeEndian.Uint32(b[8:])
			if size < unix.NLMSG_HDRLEN || size > len(b) {
				return errors.New("malformed answer of the kernel")
			}
			if kind == unix.NLMSG_ERROR && size >= unix.NLMSG_HDRLEN+4 && seq >= 1 && seq <= uint32(len(n.names)) {
				left--
				if errno := -int32(binary.NativeEndian.Uint32(b[unix.NLMSG_HDRLEN:])); errno != 0 && first == nil {
					first = fmt.Errorf("%s: %w", n.names[seq-1], unix.Errno(errno))
				}
			}
			b = b[min((size+3)&^3, len(b)):]
		}
	}
	return first
}
