//go:build unix

package main

import (
	"os/signal"
	"syscall"
)

// dieOfInterrupt ends this program by SIGINT.
func dieOfInterrupt() {
	signal.Reset(syscall.SIGINT)
	_ = syscall.Kill(syscall.Getpid(), syscall.SIGINT)
}
