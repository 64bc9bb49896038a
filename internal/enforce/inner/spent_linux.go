package inner

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/tether-sandbox/tether/internal/enforce"
)

// tick is the unit of times in /proc (proc_pid_stat(5)); Linux shows it as 100 a
// second wherever we run.
const tick = time.Second / 100

// uncounted is for how long looks may fail, one upon another: for want of memory
// or files they can, and a command can see to it that they do, by our own limits.
const uncounted = time.Second

// holdCPU ends everything inside once all processes together have used what the
// order allows, or that cannot be counted any more. It returns when it is not
// asked for.
func holdCPU(order *enforce.Order, u *undertaker) {
	if !order.Limits.CountCPU || order.Limits.CPUSeconds <= 0 {
		return
	}
	most := time.Duration(order.Limits.CPUSeconds) * time.Second
	// We may be on fewer processors than the command.
	processors := max(len(order.CPUs), runtime.NumCPU())
	why, counted := enforce.MetTreeCPU, time.Now()
	for {
		begin := time.Now()
		spent, all := spentInside(u)
		left := most - spent
		if left <= 0 {
			break
		}
		if all {
			counted = time.Now()
		} else if time.Since(counted) > uncounted {
			why = enforce.MetUncounted
			break
		}
		wait := enforce.Pace(left, processors, time.Since(begin))
		if !all {
			wait = min(wait, uncounted/10)
		}
		time.Sleep(wait)
	}
	send(Message{Kind: Limited, Status: uint32(why)})
	endAll(u)
}

// spentInside adds up the processor time of what runs inside and of what has
// ended. It is never more than was used: our own dead are asked for before any
// other process, and parents before their children, so that a child whose time
// passes on to its parent meanwhile counts once or not yet. What nobody waits for
// (SIGCHLD ignored) counts as long as it runs: the kernel forgets it then. all is
// false when something that runs could not be looked at.
func spentInside(u *undertaker) (sum time.Duration, all bool) {
	var dead syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_CHILDREN, &dead)
	sum = time.Duration(dead.Utime.Nano() + dead.Stime.Nano())
	list, all := descendants(os.Getpid(), 0)
	for _, d := range list {
		if u.is(d.pid) {
			continue
		}
		raw, err := os.ReadFile("/proc/" + strconv.Itoa(d.pid) + "/stat")
		if err == nil {
			sum += spentBy(string(raw))
		} else {
			all = all && goneBy(err)
		}
	}
	return sum, all
}

// spentBy is what a process has used by its own threads and by the children that
// it has waited for, of the content of its stat file; zero for anything else.
func spentBy(stat string) time.Duration {
	// The name may hold anything; it ends with the last parenthesis.
	f := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	const utime, cstime = 14 - 3, 17 - 3 // the first that is left is the third
	if len(f) <= cstime {
		return 0
	}
	var sum time.Duration
	for _, word := range f[utime : cstime+1] {
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil || n < 0 || n > int64(1<<62/tick)/4 {
			return 0
		}
		sum += time.Duration(n) * tick
	}
	return sum
}
