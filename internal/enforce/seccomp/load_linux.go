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
	if len(prog) == 0 || len(prog) > maxLen {
		return fault.New(fault.Internal, fmt.Sprintf("system call filter of %d instructions", len(prog)))
	}
	nnp, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	if err != nil {
		return fault.Wrap(fault.IsolationUnavailable, "cannot read no_new_privs", err)
	}
	if nnp != 1 {
		// With enough privileges the kernel would take the filter all the
		// same, and a set-id program could then be run under it.
		return fault.New(fault.Internal, "system call filter before no_new_privs")
	}
	code := make([]unix.SockFilter, len(prog))
	for i, in := range prog {
		code[i] = unix.SockFilter{Code: in.Code, Jt: in.Jt, Jf: in.Jf, K: in.K}
	}
	arg := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	// No flags. Not TSYNC: one thread is meant. Not SPEC_ALLOW: kernels from
	// 5.16 on cost nothing without it, and on others the machine's owner has
	// chosen the mitigation.
	_, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&arg)))
	runtime.KeepAlive(code)
	switch {
	case errno == 0:
		return nil
	case errors.Is(errno, unix.ENOSYS):
		return fault.Wrap(fault.SandboxUnavailable, "this kernel has no system call filters", errno)
	}
	return fault.Wrap(fault.IsolationUnavailable, "the kernel refused the system call filter", errno)
}
