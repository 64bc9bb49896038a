package egress

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// isOwn says whether packets to an address would stay on this host. The kernel's
// routes are asked, each time: a second address of an interface, a network that
// is local as a whole, and an interface that has just come are in them.
func isOwn(addr netip.Addr) (bool, error) {
	kind, err := routeType(addr.Unmap())
	switch {
	case err == nil:
		return kind == unix.RTN_LOCAL || kind == unix.RTN_ANYCAST, nil
	case errors.Is(err, unix.ENETUNREACH), errors.Is(err, unix.EHOSTUNREACH), errors.Is(err, unix.EACCES):
		return false, nil // no route, and no connection
	}
	return amongInterfaces(addr)
}

// routeType asks for the type of the route that leads to an address, as
// ip route get does.
func routeType(addr netip.Addr) (kind uint8, err error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	const seq, attr = 1, unix.SizeofRtAttr
	dst := addr.AsSlice()
	size := unix.SizeofNlMsghdr + unix.SizeofRtMsg + attr + len(dst)
	b := make([]byte, size, 1024) // an answer has a few attributes
	order := binary.NativeEndian
	order.PutUint32(b, uint32(size))
	order.PutUint16(b[4:], unix.RTM_GETROUTE)
	order.PutUint16(b[6:], unix.NLM_F_REQUEST)
	order.PutUint32(b[8:], seq)
	route := b[unix.SizeofNlMsghdr:]
	route[0], route[1] = unix.AF_INET6, uint8(len(dst)*8)
	if addr.Is4() {
		route[0] = unix.AF_INET
	}
	order.PutUint16(route[unix.SizeofRtMsg:], uint16(attr+len(dst)))
	order.PutUint16(route[unix.SizeofRtMsg+2:], unix.RTA_DST)
	copy(route[unix.SizeofRtMsg+attr:], dst)
	if err := unix.Sendto(fd, b, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return 0, err
	}
	// The kernel has answered before it took the question's last byte.
	b = b[:cap(b)]
	n, from, err := unix.Recvfrom(fd, b, unix.MSG_DONTWAIT)
	if err != nil {
		return 0, err
	}
	kernel, ok := from.(*unix.SockaddrNetlink)
	if !ok || kernel.Pid != 0 || n < unix.SizeofNlMsghdr+int(unsafe.Sizeof(int32(0))) || order.Uint32(b[8:]) != seq {
		return 0, unix.EPROTO
	}
	body := b[unix.SizeofNlMsghdr:n]
	switch order.Uint16(b[4:]) {
	case unix.NLMSG_ERROR:
		return 0, unix.Errno(-int32(order.Uint32(body)))
	case unix.RTM_NEWROUTE:
		if len(body) >= unix.SizeofRtMsg {
			return body[7], nil
		}
	}
	return 0, unix.EPROTO
}
