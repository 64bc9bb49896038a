package filegate

import (
	"errors"
	"runtime"

	"golang.org/x/sys/unix"
)

// actor runs calls on a thread of its own that has the rights of the command
// on files and no capability, so that a gate of root opens, creates and owns
// what the command could. A thread's rights are its own; the rest of the
// program keeps what it has.
type actor struct {
	calls chan func()
}

// newActor starts the thread. It ends with close.
func newActor(uid, gid uint32) (*actor, error) {
	a := &actor{calls: make(chan func())}
	ready := make(chan error)
	go func() {
		// Never unlocked: the thread ends with the goroutine.
		runtime.LockOSThread()
		err := become(uid, gid)
		ready <- err
		if err != nil {
			return
		}
		for call := range a.calls {
			call()
		}
	}()
	if err := <-ready; err != nil {
		return nil, err
	}
	return a, nil
}

func (a *actor) do(call func() error) error {
	done := make(chan error, 1)
	a.calls <- func() { done <- call() }
	return <-done
}

func (a *actor) close() { close(a.calls) }

// become gives this thread alone the rights of uid and gid on files. The calls
// are made raw: the wrappers of the standard library change every thread.
func become(uid, gid uint32) error {
	if _, _, e := unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0); e != 0 {
		return e
	}
	for _, id := range [...]struct{ call, want uintptr }{{unix.SYS_SETFSGID, uintptr(gid)}, {unix.SYS_SETFSUID, uintptr(uid)}} {
		unix.RawSyscall(id.call, id.want, 0, 0)
		// It tells no error, only what was before; an id that cannot be is not set.
		if got, _, _ := unix.RawSyscall(id.call, ^uintptr(0), 0, 0); uint32(got) != uint32(id.want) {
			return errors.New("the file system id did not change")
		}
	}
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return unix.Capset(&head, &none[0])
}
