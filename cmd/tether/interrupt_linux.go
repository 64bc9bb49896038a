package main

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/tether-sandbox/tether"
	"github.com/tether-sandbox/tether/internal/world/local/stream"
)

// interrupted ends this program by SIGINT when it was Ctrl-C that ended the
// command. A shell stops its loop for a program that ended so, and tells 130;
// for one that ended with the status 130 it goes on. Whoever is not on a
// terminal of this program's gets the status.
func interrupted(res tether.Result, std stdio) {
	if signal.Ignored(syscall.SIGINT) || !stream.Foreground(std.in) && !stream.Foreground(std.out) && !stream.Foreground(std.err) {
		return
	}
	signal.Reset(syscall.SIGINT)
	whom := os.Getpid()
	if res.Interrupted {
		whom = 0 // all that a terminal tells, such as the script that we are in
	}
	_ = syscall.Kill(whom, syscall.SIGINT)
	time.Sleep(time.Second) // it arrives at once; if it never does, the status tells
}
