//go:build !linux

package tether

import (
	"strconv"
	"syscall"
)

// signalName returns a signal's number: nothing runs here, so none has a name.
func signalName(s syscall.Signal) string { return strconv.Itoa(int(s)) }
