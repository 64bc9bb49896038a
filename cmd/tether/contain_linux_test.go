package main

import (
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/internal/enforce/seccomp"
)

// contain refuses namespaces as the filters of containers do.
func contain() {
	const (
		load, and, ifEq, ret = 0x20, 0x54, 0x15, 0x06
		newNamespaces        = 0x7e020000
		allow, refuse        = 0x7fff0000, 0x00050000
	)
	runtime.LockOSThread()
	prog := []seccomp.Insn{{Code: load}}
	for _, c := range []struct {
		nr    int
		errno syscall.Errno
	}{{unix.SYS_CLONE3, syscall.ENOSYS}, {unix.SYS_UNSHARE, syscall.EPERM}, {unix.SYS_SETNS, syscall.EPERM}, {unix.SYS_MOUNT, syscall.EPERM}} {
		prog = append(prog, seccomp.Insn{Code: ifEq, Jf: 1, K: uint32(c.nr)}, seccomp.Insn{Code: ret, K: refuse | uint32(c.errno)})
	}
	prog = append(prog, seccomp.Insn{Code: ifEq, Jf: 4, K: uint32(unix.SYS_CLONE)}, seccomp.Insn{Code: load, K: 16},
		seccomp.Insn{Code: and, K: newNamespaces}, seccomp.Insn{Code: ifEq, Jt: 1},
		seccomp.Insn{Code: ret, K: refuse | uint32(syscall.EPERM)}, seccomp.Insn{Code: ret, K: allow})
	err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	if err == nil {
		err = seccomp.Load(prog)
	}
	if err == nil {
		_ = os.Unsetenv(containVariable)
		err = syscall.Exec(os.Args[1], os.Args[1:], os.Environ())
	}
	fmt.Fprintln(os.Stderr, "contain:", err)
	os.Exit(99)
}
