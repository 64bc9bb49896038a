package tether

import (
	"syscall"
	"testing"
)

func TestSignalName(t *testing.T) {
	for s, want := range map[syscall.Signal]string{syscall.SIGHUP: "HUP", syscall.SIGUSR1: "USR1", syscall.SIGSYS: "SYS",
		syscall.SIGXCPU: "XCPU", syscall.SIGABRT: "ABRT", syscall.SIGIO: "IO", 32: "32", 33: "33", 34: "RTMIN", 64: "RTMIN+30", 0: "0"} {
		if got := signalName(s); got != want {
			t.Errorf("%d: got %s, want %s", int(s), got, want)
		}
	}
}
