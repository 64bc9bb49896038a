package supervise

import (
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

// Kept is how many processes and threads of the caller's own limit (RLIMIT_NPROC)
// stay ours whatever a sandbox does: a Go program that cannot have a thread when
// it wants one ends at once, and then nothing is settled.
func Kept() int64 { return 32 + int64(runtime.NumCPU()) }

// keeping is held while the limit is lower than the caller's.
var keeping sync.Mutex

// keepRoom starts something that makes a user namespace while the caller's limit is
// lower by what is kept. The kernel remembers it as the most that the user may have
// together with all in that namespace (set_userns_rlimit_max in kernel/fork.c,
// Linux 5.14), which nothing in it can raise. Root has no such limit.
//
// In that moment, which ends when the program is executed, the whole process has
// the lower limit, and what others start in it inherits it as their soft limit.
func keepRoom(start func() (int, error)) (int, error) {
	keeping.Lock()
	defer keeping.Unlock()
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &own); err != nil {
		return 0, err
	}
	kept := uint64(Kept())
	if own.Cur == unix.RLIM_INFINITY || own.Cur <= kept {
		return start() // the caller looked whether there is room
	}
	low := unix.Rlimit{Cur: own.Cur - kept, Max: own.Max}
	if err := unix.Setrlimit(unix.RLIMIT_NPROC, &low); err != nil {
		return 0, err
	}
	pid, err := start()
	// Up to a hard limit that stayed, which the kernel always allows.
	_ = unix.Setrlimit(unix.RLIMIT_NPROC, &own)
	return pid, err
}
