package gate

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// The ports among which a gate on the host's loopback chooses: above those that
// Linux hands out by itself, and registered for nobody. A number of a machine's
// own range would be the port of somebody's connection sooner or later.
const (
	hostFirst, hostLast = 61000, 65535
	// enough is how many must be left beside the machine's own range for that to
	// be heeded.
	enough = 256
)

// ListenHost listens on a port of the host's loopback, by chance. When it was
// chosen nobody listened there on any address of this machine, of either family.
func ListenHost() (net.Listener, error) {
	ports := hostPorts(handedOut())
	const tries = 64
	var last error
	for range tries {
		port := ports[rand.IntN(len(ports))]
		err := unused(port)
		if err == nil {
			var l net.Listener
			if l, err = net.Listen("tcp4", "127.0.0.1:"+strconv.Itoa(port)); err == nil {
				return l, nil
			}
		}
		last = err
	}
	return nil, errors.Join(errors.New("no port is free"), last)
}

// hostPorts are those to choose from on a machine that hands out low to high.
func hostPorts(low, high int) []int {
	var all, beside []int
	for p := hostFirst; p <= hostLast; p++ {
		all = append(all, p)
		if p < low || p > high {
			beside = append(beside, p)
		}
	}
	if len(beside) < enough {
		return all
	}
	return beside
}

// unused says whether no address of this machine has the port: taking it for all
// of them at once, which is given up at once, and never listened on, fails
// otherwise.
func unused(port int) error {
	var at unix.Sockaddr = &unix.SockaddrInet6{Port: port}
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	six := err == nil
	if !six { // a machine without IPv6
		at = &unix.SockaddrInet4{Port: port}
		fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if six {
		if err := unix.SetsockoptInt(fd, unix.SOL_IPV6, unix.IPV6_V6ONLY, 0); err != nil {
			return err
		}
	}
	return unix.Bind(fd, at)
}

// handedOut is the range from which this machine takes ports by itself. Where it
// cannot be read it is none.
func handedOut() (low, high int) {
	b, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err == nil {
		_, err = fmt.Sscan(string(b), &low, &high)
	}
	if err != nil {
		return 0, 0
	}
	return low, high
}
