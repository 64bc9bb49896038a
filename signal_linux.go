package tether

import (
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// firstRealTime is the first signal that has a number for a name.
const firstRealTime = 34

// signalName returns the name of a signal as kill(1) spells it.
func signalName(s syscall.Signal) string {
	if s >= firstRealTime {
		name := "RTMIN"
		if s > firstRealTime {
			name += "+" + strconv.Itoa(int(s)-firstRealTime)
		}
		return name
	}
	if name := unix.SignalName(s); name != "" {
		return strings.TrimPrefix(name, "SIG")
	}
	return strconv.Itoa(int(s))
}
