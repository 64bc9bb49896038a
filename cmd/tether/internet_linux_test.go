package main

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// endWithParent ends this process when the one that started it ends.
func endWithParent() { _ = unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0) }

// inGroup gives cmd a process group of its own, and returns what kills it.
func inGroup(cmd *exec.Cmd) (kill func()) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
