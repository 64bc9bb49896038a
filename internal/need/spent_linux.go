package need

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// Spent is the processor time that f takes in the calling goroutine: what a busy
// machine takes from it is not counted. Elsewhere than on Linux it is how long f
// took.
func Spent(f func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	now := func() time.Duration {
		var t unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
			panic(err)
		}
		return time.Duration(t.Nano())
	}
	begin := now()
	f()
	return now() - begin
}
