package inner

import (
	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/enforce/seccomp"
)

// told is what the filter tells of the command. It needs no thread of its own,
// which would cost every command some hundred microseconds for the sake of a few:
// whoever waits for the supervisor's requests waits for both.
type told struct {
	listener int // negative: nothing is told
	once     bool
}

// await returns when there is something to be read on the control socket. Until
// then it refuses what the filter asks about, and says so once. If it cannot, it
// lets go of the listener, and the kernel refuses.
func (t *told) await() {
	for t.listener >= 0 {
		fds := []unix.PollFd{{Fd: FDControl, Events: unix.POLLIN}, {Fd: int32(t.listener), Events: unix.POLLIN}}
		_, err := unix.Poll(fds, -1)
		if err == unix.EINTR {
			continue
		}
		if err == nil && fds[1].Revents&unix.POLLIN != 0 {
			err = seccomp.Answer(t.listener, t.tell)
		}
		if err != nil || fds[1].Revents&^unix.POLLIN != 0 {
			unix.Close(t.listener)
			t.listener = -1
		}
		if fds[0].Revents != 0 {
			return
		}
	}
}

func (t *told) tell() {
	if !t.once {
		t.once = true
		send(Message{Kind: Limited, Status: uint32(enforce.MetNamespaces)})
	}
}
