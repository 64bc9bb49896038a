package supervise

import (
	"errors"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/enforce/inner"
)

// receive reads one message, and the descriptors that it may carry.
func (p *Process) receive(b []byte) (n int, fds []int, err error) {
	conn, err := p.control.SyscallConn()
	if err != nil {
		return 0, nil, err
	}
	oob := make([]byte, unix.CmsgSpace(4*mostSockets))
	got := 0
	var rerr error
	err = conn.Read(func(fd uintptr) bool {
		for {
			if n, got, _, _, rerr = unix.Recvmsg(int(fd), b, oob, unix.MSG_CMSG_CLOEXEC); !errors.Is(rerr, unix.EINTR) {
				return !errors.Is(rerr, unix.EAGAIN)
			}
		}
	})
	if err = errors.Join(err, rerr); err != nil || got == 0 {
		return n, nil, err
	}
	messages, err := unix.ParseSocketControlMessage(oob[:got])
	if err != nil || len(messages) != 1 {
		return n, nil, errors.Join(err, errors.New("malformed control message"))
	}
	if fds, err = unix.ParseUnixRights(&messages[0]); err != nil {
		return n, nil, err
	}
	return n, fds, nil
}

// mostSockets is how many descriptors one message carries at most (the kernel's
// SCM_MAX_FD).
const mostSockets = 253

// serveGate lets the gate serve its sockets, and says so when it does.
func (p *Process) serveGate(m inner.Message, fds []int) error {
	link := enforce.NoLink
	if len(m.Step) == 1 {
		link = enforce.GateLink(m.Step[0])
	}
	if p.gate == nil || p.order == nil {
		closeAll(fds)
		return fault.New(fault.Internal, "a gate that nobody asked for")
	}
	s, err := enforce.Unpack(p.order, link, m.Status == 1, fds)
	if err != nil {
		closeAll(fds)
		return fault.Wrap(fault.Internal, "the gate", err)
	}
	if err := p.gate(s, m.What); err != nil {
		return err
	}
	_, err = p.control.Write([]byte{inner.GateServes})
	return unlessGone(err)
}

// unlessGone passes an error on, unless the inner stage is gone, and perhaps our
// end closed for that: it says why by what it said last.
func unlessGone(err error) error {
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

func closeAll(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}

// handOver answers with the command's descriptors when the inner stage has
// opened a terminal.
func (p *Process) handOver(master *os.File) error {
	if p.terminal == nil {
		master.Close()
		return fault.New(fault.Internal, "a terminal that nobody asked for")
	}
	stdio, err := p.terminal(master)
	if err != nil {
		return err
	}
	return unlessGone(p.Pass(numbers(stdio)))
}

// fits says whether a message may carry so many descriptors.
func fits(m inner.Message, n int) bool {
	switch m.Kind {
	case inner.Gate:
		return true
	case inner.Terminal:
		return n == 1
	case inner.Reached:
		return n == 1 && m.Errno == 0 || n == 0 && m.Errno != 0
	}
	return n == 0
}

// listen reads what the inner stage says until it closes its end.
func (p *Process) listen() {
	defer close(p.over)
	defer p.joining.hangUp()
	defer p.control.Close()
	if p.steps != nil {
		defer p.steps.Close()
	}
	b := make([]byte, inner.MaxMessage)
	for reset := false; ; {
		n, fds, err := p.receive(b)
		if errors.Is(err, syscall.ECONNRESET) && !reset {
			// It went without having read all that we sent, which is told once and
			// before what it said last.
			reset = true
			continue
		}
		if n == 0 || err != nil {
			if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
				p.Kill()
			}
			break
		}
		m, err := inner.DecodeMessage(b[:n])
		hands := m.Kind == inner.Started && p.joining.id != nil && len(fds) <= 2
		if err == nil && !hands && !fits(m, len(fds)) {
			err = errors.New("descriptors out of place")
		}
		if err != nil {
			closeAll(fds)
			p.Kill()
			break
		}
		if m.Kind == inner.Reached {
			p.hand(m, fds)
			continue
		}
		if m.Kind == inner.Limited {
			p.met |= enforce.Met(m.Status)
			if m.What != "" {
				p.full = m.What
			}
			continue
		}
		if m.Kind == inner.Covered {
			p.tellCovered(m)
			continue
		}
		if m.Kind == inner.Gate {
			if p.terr = p.serveGate(m, fds); p.terr != nil {
				p.Kill()
				break
			}
			continue
		}
		if m.Kind == inner.Terminal {
			if p.terr = p.handOver(os.NewFile(uintptr(fds[0]), "terminal")); p.terr != nil {
				p.Kill()
				break
			}
			continue
		}
		if hands {
			p.joining.into(fds)
		}
		p.last = m
		if m.Kind == inner.Exited {
			break
		}
		if p.first.Kind == 0 {
			p.first = m
			close(p.ready)
		}
	}
	if p.first.Kind == 0 {
		close(p.ready)
	}
}
