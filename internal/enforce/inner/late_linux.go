package inner

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/internal/enforce"
)

// answer answers a request to carry out the steps in a file.
func (c *coverer) answer(number uint32, f *os.File) {
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
