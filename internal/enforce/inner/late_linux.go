package inner

import (
	"encoding/binary"
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/internal/enforce"
)

// answer answers a request to carry out the steps in a file.
func (c *coverer) answer(number uint32, fd int) {
	f := os.NewFile(uintptr(fd), "steps")
	defer f.Close()
	m := Message{Kind: Covered, Status: number}
	done, err := c.carryOut(f)
	if err != nil {
		m.Errno = int32(unix.EIO)
		if errno, ok := errors.AsType[unix.Errno](err); ok {
			m.Errno = int32(errno)
		}
		m.What = err.Error()
	} else {
		m.What = string(done.Encode())
	}
	send(m)
}

func (c *coverer) carryOut(f *os.File) (Coverage, error) {
	raw, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<30))
	if err != nil {
		return Coverage{}, err
	}
	order, err := enforce.DecodeOrder(raw)
	if err != nil {
		return Coverage{}, err
	}
	var all Coverage
	for i := range order.Steps {
		s := &order.Steps[i]
		did, err := c.cover(s)
		switch {
		case err == nil && did:
			all.Done++
		case err == nil:
		case errors.Is(err, errChanged):
			all.Changed++
		default:
			all.Failed++
			all.Why = (&stepError{step: s, what: "cover", err: err}).Error()
		}
	}
	return all, nil
}

// request is what one packet of the supervisor's asks for.
func request(b []byte, oob []byte) (n int, fd int, err error) {
	fd = -1
	for {
		got := 0
		n, got, _, _, err = unix.Recvmsg(FDControl, b, oob, unix.MSG_CMSG_CLOEXEC)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || got == 0 {
			return n, fd, err
		}
		messages, err := unix.ParseSocketControlMessage(oob[:got])
		if err != nil || len(messages) != 1 {
			return n, fd, nil
		}
		fds, err := unix.ParseUnixRights(&messages[0])
		if err != nil {
			return n, fd, nil
		}
		for i, f := range fds {
			if i == 0 {
				fd = f
				continue
			}
			unix.Close(f)
		}
		return n, fd, nil
	}
}

// number reads the number of a request to cover.
func number(b []byte) uint32 { return binary.LittleEndian.Uint32(b[1:]) }
