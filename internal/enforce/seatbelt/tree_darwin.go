package seatbelt

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/internal/enforce"
)

// tree is a command's processes, as far as the system lets one find them: those
// in its process group, those that carry the marker in the environment that
// they were started with, and the children of both.
type tree struct {
	leader int
	marker string
}

// await returns when the leader has ended, and leaves it to be reaped.
func (t tree) await() error {
	kq, err := unix.Kqueue()
	if err != nil {
		return os.NewSyscallError("kqueue", err)
	}
	defer unix.Close(kq)
	unix.CloseOnExec(kq)
	ev := unix.Kevent_t{Ident: uint64(t.leader), Filter: unix.EVFILT_PROC, Flags: unix.EV_ADD | unix.EV_ONESHOT, Fflags: unix.NOTE_EXIT}
	var got [1]unix.Kevent_t
	for {
		n, err := unix.Kevent(kq, []unix.Kevent_t{ev}, got[:], nil)
		if err == nil && n == 1 && got[0].Flags&unix.EV_ERROR != 0 {
			err = syscall.Errno(got[0].Data)
		}
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.ESRCH):
			return nil // it has ended before we asked
		default:
			return os.NewSyscallError("kevent", err)
		}
	}
}

// kill ends all that is found, until nothing is found any more, a bounded number
// of times: what forks meanwhile is found in the next round.
func (t tree) kill() {
	for range 50 {
		_ = syscall.Kill(-t.leader, syscall.SIGKILL)
		left := t.members()
		if len(left) == 0 {
			return
		}
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// zombie is the state of a process that waits to be reaped (sys/proc.h).
const zombie = 5

// members lists the processes that live, without our own.
func (t tree) members() []int {
	all, err := unix.SysctlKinfoProcSlice("kern.proc.uid", os.Getuid())
	if err != nil {
		return nil
	}
	own := os.Getpid()
	all = slices.DeleteFunc(all, func(k unix.KinfoProc) bool {
		pid := int(k.Proc.P_pid)
		return pid <= 1 || pid == own || k.Proc.P_stat == zombie
	})
	var found []int
	for i := range all {
		pid := int(all[i].Proc.P_pid)
		if pid == t.leader || int(all[i].Eproc.Pgid) == t.leader || t.marked(pid) {
			found = append(found, pid)
		}
	}
	for n := -1; n != len(found); { // and the children of those
		n = len(found)
		for i := range all {
			pid := int(all[i].Proc.P_pid)
			if slices.Contains(found, int(all[i].Eproc.Ppid)) && !slices.Contains(found, pid) {
				found = append(found, pid)
			}
		}
	}
	return found
}

// marked says whether a process was started with the marker.
func (t tree) marked(pid int) bool {
	raw, err := unix.SysctlRaw("kern.procargs2", pid)
	return err == nil && bytes.Contains(raw, []byte("\x00"+t.marker+"\x00"))
}

// notRun is a command whose program could not be executed.
type notRun syscall.Errno

func (notRun) PID() int                         { return 0 }
func (notRun) Signal(int, bool)                 {}
func (notRun) Connect(uint16) (*os.File, error) { return nil, os.ErrProcessDone }
func (notRun) Cover([]enforce.Step) (enforce.Coverage, error) {
	return enforce.Coverage{}, enforce.ErrStands
}
func (notRun) Kill()                          {}
func (notRun) Ready() error                   { return nil }
func (n notRun) Wait() (enforce.Ended, error) { return enforce.Ended{NoExec: int(n)}, nil }
func (notRun) Beside() []int                  { return nil }
func (notRun) Gone() <-chan struct{}          { c := make(chan struct{}); close(c); return c }
