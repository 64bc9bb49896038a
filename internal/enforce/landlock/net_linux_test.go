package landlock

import (
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"
)

func attemptNet(what, where string) error {
	switch what {
	case "wait":
		return waitForEnd()
	case "abstract", "path":
		return reach(unix.SOCK_STREAM, &unix.SockaddrUnix{Name: where})
	case "abstract-datagram":
		return send(&unix.SockaddrUnix{Name: where})
	case "abstract-inside", "path-inside":
		fd, err := listen(unix.AF_UNIX, &unix.SockaddrUnix{Name: where})
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		if what == "path-inside" {
			defer unix.Unlink(where)
		}
		return reach(unix.SOCK_STREAM, &unix.SockaddrUnix{Name: where})
	case "udp-send", "udp-bind":
		return udp(what, where)
	case "bind", "connect":
		port, err := strconv.Atoi(where)
		if err != nil {
			return err
		}
		to := &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}
		if what == "connect" {
			return reach(unix.SOCK_STREAM, to)
		}
		fd, err := listen(unix.AF_INET, to)
		if err == nil {
			unix.Close(fd)
		}
		return err
	}
	return fmt.Errorf("no attempt is called %q", what)
}

func udp(what, where string) error {
	port, err := strconv.Atoi(where)
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	at := &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}
	if what == "udp-bind" {
		return unix.Bind(fd, at)
	}
	return unix.Sendto(fd, []byte("x"), 0, at)
}

func listen(family int, at unix.Sockaddr) (int, error) {
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	if err := unix.Bind(fd, at); err != nil {
		unix.Close(fd)
		return 0, err
	}
	if err := unix.Listen(fd, 8); err != nil {
		unix.Close(fd)
		return 0, err
	}
	return fd, nil
}

func reach(kind int, to unix.Sockaddr) error {
	family := unix.AF_UNIX
	if _, ok := to.(*unix.SockaddrInet4); ok {
		family = unix.AF_INET
	}
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Connect(fd, to)
}

func send(to unix.Sockaddr) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Sendto(fd, []byte("x"), unix.MSG_DONTWAIT, to)
}
