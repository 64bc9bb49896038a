package supervise

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// elsewhere makes what the calling thread starts begin on another processor than
// the one that the thread runs on, where it may use several, until back is
// called. Left alone, the scheduler wakes a new process where the one that
// writes to it runs (the writer to a pipe is taken to sleep soon), so that
// starting the inner stage and planning the job would take turns on one
// processor while another one idles.
//
// all are the processors that the thread may use otherwise, for the command;
// none when nothing was changed.
func elsewhere() (all []int, back func()) {
	nothing := func() {}
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil || set.Count() < 2 {
		return nil, nothing
	}
	var here uint32
	_, _, errno := unix.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&here)), 0, 0)
	if errno != 0 || !set.IsSet(int(here)) {
		return nil, nothing
	}
	rest := set
	rest.Clear(int(here))
	if unix.SchedSetaffinity(0, &rest) != nil {
		return nil, nothing
	}
	for i := range 64 * len(set) {
		if set.IsSet(i) {
			all = append(all, i)
		}
	}
	return all, func() { _ = unix.SchedSetaffinity(0, &set) }
}
