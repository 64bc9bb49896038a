package inner

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/internal/enforce"
)

// letGo gives up the command's descriptors, which are only the command's from
// now on: nothing that we might say, such as why we crashed when it took away
// what we need, is taken for its output. A terminal stays open, since the
// command may close it and open it again by name.
func letGo(null int, terminal bool) error {
	if terminal {
		if _, err := unix.FcntlInt(0, unix.F_DUPFD_CLOEXEC, 3); err != nil {
			return err
		}
	}
	for fd := range 3 {
		if err := unix.Dup3(null, fd, 0); err != nil {
			return err
		}
	}
	return unix.Close(null)
}

// start restricts one thread for good and starts the command from it. The
// child inherits the thread's credentials and filters; the thread then ends. It
// returns the process id, and the filter's listener, negative without one.
func start(order *enforce.Order, u *undertaker) (int, int, error) {
	type result struct {
		pid, listener int
		err           error
	}
	done := make(chan result, 1)
	var begin func()
	begin = func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if order.Walls != nil {
			if unix.Gettid() == os.Getpid() {
				go begin() // on another thread: what stands round the first stands round the process
				select {}
			}
			pid, err := startLauncher(order, u)
			done <- result{pid, -1, err}
			select {} // the launcher dies with this thread
		}
		spread(order.CPUs)
		listener, err := confine(order)
		if err != nil {
			done <- result{0, -1, err}
			return
		}
		pid, err := launch(order)
		done <- result{pid, listener, err}
		// Stay until the process ends, so that nothing tied to this thread
		// (such as a parent-death signal of a grandchild) fires early.
		select {}
	}
	go begin()
	r := <-done
	return r.pid, r.listener, r.err
}

// spread lets the calling thread, and the command that it will start, use the
// processors that the caller could. If they were taken away meanwhile, the
// kernel has widened or will refuse the mask; the command then keeps ours.
func spread(cpus []int) {
	if len(cpus) == 0 {
		return
	}
	var set unix.CPUSet
	for _, n := range cpus {
		set.Set(n)
	}
	_ = unix.SchedSetaffinity(0, &set)
}

// confine restricts the calling thread and refuses to go on unless it is then
// exactly as strict as it must be. Bare orders ask for no sandbox.
// The descriptor is the filter's listener, or negative.
func confine(order *enforce.Order) (int, error) {
	if order.Bare {
		if err := unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil {
			return -1, err
		}
		return -1, limit(&order.Limits)
	}
	listener, err := restrict(order)
	if err != nil {
		return -1, err
	}
	if err := checkPosture(order); err != nil {
		return -1, &stage{"posture", err}
	}
	if err := checkPlaces(order); err != nil {
		return -1, &stage{"places", err}
	}
	return listener, nil
}
