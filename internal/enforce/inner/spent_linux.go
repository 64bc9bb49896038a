package inner

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/internal/enforce"
)

// tick is the unit of times in /proc (proc_pid_stat(5)); Linux shows it as 100 a
// second wherever we run.
const tick = time.Second / 100

// holdCPU ends everything inside once all processes together have used what the
// order allows. It returns when that is not asked for.
func holdCPU(order *enforce.Order, u *undertaker) {
	if !order.Limits.CountCPU || order.Limits.CPUSeconds <= 0 {
		return
	}
	most := time.Duration(order.Limits.CPUSeconds) * time.Second
	// We may be on fewer processors than the command.
	processors := max(len(order.CPUs), runtime.NumCPU())
	for {
		begin := time.Now()
		left := most - spentInside(u)
		if left <= 0 {
			break
		}
		time.Sleep(enforce.Pace(left, processors, time.Since(begin)))
	}
	send(Message{Kind: Limited, Status: uint32(enforce.MetTreeCPU)})
	for { // the main thread ends us when there is nobody left
		signalTree(unix.SIGKILL, u)
		time.Sleep(5 * time.Millisecond)
	}
}

// spentInside adds up the processor time of what runs inside and of what has
// ended. It is never more than was used: our own dead are asked for before any
// other process, and parents before their children, so that a child whose time
// passes on to its parent meanwhile counts once or not yet. What nobody waits for
// (SIGCHLD ignored) counts as long as it runs: the kernel forgets it then.
func spentInside(u *undertaker) time.Duration {
	var dead syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_CHILDREN, &dead)
	sum := time.Duration(dead.Utime.Nano() + dead.Stime.Nano())
	for _, d := range descendants(os.Getpid(), 0) {
		if u.is(d.pid) {
			continue
		}
		if raw, err := os.ReadFile("/proc/" + strconv.Itoa(d.pid) + "/stat"); err == nil {
			sum += spentBy(string(raw))
		}
	}
	return sum
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
