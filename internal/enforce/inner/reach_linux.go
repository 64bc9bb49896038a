package inner

import (
	"errors"
	"net/netip"

	"golang.org/x/sys/unix"
)

// reach answers with a connection to a server of the command's, on the loopback
// of the namespaces that this process lies in.
func reach(port uint16, number uint32) {
	fd, err := connect(netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port))
	if err != nil {
		if six, serr := connect(netip.AddrPortFrom(netip.IPv6Loopback(), port)); serr == nil {
			fd, err = six, nil
		}
	}
	m := Message{Kind: Reached, Status: number}
	if err != nil {
		m.Errno = int32(unix.ECONNREFUSED)
		if errno, ok := errors.AsType[unix.Errno](err); ok {
			m.Errno = int32(errno)
		}
		send(m)
		return
	}
	defer unix.Close(fd)
	for {
		err := unix.Sendmsg(FDControl, m.Encode(), unix.UnixRights(fd), nil, unix.MSG_NOSIGNAL)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

func connect(to netip.AddrPort) (int, error) {
	family := unix.AF_INET
	var addr unix.Sockaddr
	if to.Addr().Is6() {
		family, addr = unix.AF_INET6, &unix.SockaddrInet6{Port: int(to.Port()), Addr: to.Addr().As16()}
	} else {
		addr = &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if err := unix.Connect(fd, addr); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}
