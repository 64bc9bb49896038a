package seccomp

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/fault"
)

// Load puts prog in force for the calling thread and whatever it starts, for
// good. The caller has locked the goroutine to its thread and set
// no_new_privs, without which Load refuses. Other threads of the process are
// not touched.
//
// Filters add up: of several in force the strictest answer counts, so nothing
// that is loaded later, by us or by the command, opens what prog closes.
//
// The error is SANDBOX_UNAVAILABLE where the kernel has no filters, and
// ISOLATION_UNAVAILABLE where it refuses this one.
func Load(prog []Insn) error {
	_, err := load(untold(prog), 0)
	return err
}

// Listen is Load, and returns the descriptor on which the kernel tells what is
// Told, closed on exec; whoever holds it must Answer until the last process under
// the filter is gone. It is negative where prog tells nothing, or where this
// process may have no listener, as under another filter that has one: then
// nothing is told, and the same is refused.
func Listen(prog []Insn) (int, error) {
	if tells(prog) {
		if fd, err := load(prog, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER); err == nil {
			return fd, nil
		}
	}
	return -1, Load(prog)
}

func load(prog []Insn, flags uintptr) (int, error) {
	if len(prog) == 0 || len(prog) > maxLen {
		return -1, fault.New(fault.Internal, fmt.Sprintf("system call filter of %d instructions", len(prog)))
	}
	nnp, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	if err != nil {
		return -1, fault.Wrap(fault.IsolationUnavailable, "cannot read no_new_privs", err)
	}
	if nnp != 1 {
		// With enough privileges the kernel would take the filter all the
		// same, and a set-id program could then be run under it.
		return -1, fault.New(fault.Internal, "system call filter before no_new_privs")
	}
	code := make([]unix.SockFilter, len(prog))
	for i, in := range prog {
		code[i] = unix.SockFilter{Code: in.Code, Jt: in.Jt, Jf: in.Jf, K: in.K}
	}
	arg := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	// Not TSYNC: one thread is meant. Not SPEC_ALLOW: kernels from
	// 5.16 on cost nothing without it, and on others the machine's owner has
	// chosen the mitigation.
	fd, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&arg)))
	runtime.KeepAlive(code)
	switch {
	case errno == 0:
		return int(fd), nil
	case errors.Is(errno, unix.ENOSYS):
		return -1, fault.Wrap(fault.SandboxUnavailable, "this kernel has no system call filters", errno)
	}
	return -1, fault.Wrap(fault.IsolationUnavailable, "the kernel refused the system call filter", errno)
}

// The requests of a listener, and its structures' sizes (linux/seccomp.h): struct
// seccomp_notif, which begins with an id, and struct seccomp_notif_resp.
const (
	notifyRecv = 0xc0502100
	notifySend = 0xc0182101
)

type notice struct {
	id         uint64
	pid, flags uint32
	data       [64]byte
}

type answer struct {
	id    uint64
	val   int64
	errno int32
	flags uint32
}

// Answer waits for one call that is Told, calls tell and refuses the call, in
// this order. An error means that none will come, or that none can be answered.
// No answer lets a call pass.
func Answer(listener int, tell func()) error {
	var n notice // the kernel insists on zeroes
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(listener), notifyRecv, uintptr(unsafe.Pointer(&n))); errno != 0 {
		if errno == unix.EINTR || errno == unix.ENOENT {
			return nil // we were interrupted, or the caller died
		}
		return errno
	}
	tell()
	a := answer{id: n.id, errno: -int32(EPERM)}
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(listener), notifySend, uintptr(unsafe.Pointer(&a)))
	if errno != 0 && errno != unix.ENOENT { // dead, or interrupted: then it asks again
		return errno
	}
	return nil
}
