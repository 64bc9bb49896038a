package local

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/enforce/cgroup"
	"github.com/tether-sandbox/tether/internal/enforce/inner"
	"github.com/tether-sandbox/tether/internal/enforce/supervise"
	"github.com/tether-sandbox/tether/internal/world"
)

// spareThreads is how many more threads a supervisor may come to want than it has when
// its command starts: half of it was seen.
const spareThreads = 16

// keepThreads has the threads that a supervisor may want, before they are wanted: at
// once where a command soon fills up what there is, else against a limit that nobody
// saw, for which short commands need not pay.
func keepThreads(c *world.Crowd) (stop func() bool) {
	const soon = 1024
	if c != nil && c.Processes < soon {
		inner.KeepThreads(spareThreads)
		return func() bool { return true }
	}
	return time.AfterFunc(50*time.Millisecond, func() { inner.KeepThreads(spareThreads) }).Stop
}

// crowding is what else bounds the processes of a job: the caller's own limits, or
// a control group of the job's that counts them.
type crowding struct{ bounded, counted bool }

// leastRoom is with how many processes a command can do anything.
const leastRoom = 8

// crowd bounds the processes of a job by what the caller's own limits leave, less
// what we keep for ourselves: a command that met one of them would take the threads
// that we need to settle what it did. It says what it did, if anything.
func crowd(l *enforce.Limits) (*world.Crowd, error) {
	// Threads of the inner stage, of what covers late secrets, and ours.
	asked, keep := l.Processes, supervise.Kept()+2*enforce.OwnThreads
	c := world.Crowd{Processes: cgroup.Room() - keep, Why: "the control group that Tether runs in leaves no more"}
	if most, held := ownMost(); held {
		// All that runs on the machine is more than what counts, and seen at a glance.
		if all := inner.Everywhere(); all == 0 || most-all-keep < asked {
			used := ours()
			if left := most - used - keep; left < c.Processes {
				c = world.Crowd{Processes: left, Why: fmt.Sprintf("the caller's user may have %d and has %d", most, used),
					Way: fmt.Sprintf("ulimit -u %d", used+keep+max(asked, 2*left))}
			}
		}
	}
	switch {
	case c.Processes >= asked:
		return nil, nil
	case c.Processes < leastRoom:
		return nil, fault.New(fault.IsolationUnavailable, "there is no room for the processes of a command and those that watch it: "+c.Why).
			WithHint(c.Way)
	}
	l.Processes = c.Processes
	return &c, nil
}

// crowdOutside bounds the processes of the caller's user for a command that is
// counted with all else that the user runs. It is looser than what the inner stage
// watches, which tells and ends the command; what we need has been started before.
func crowdOutside(l *enforce.Limits, crowded bool) {
	if unheld() {
		return
	}
	used := inner.Everywhere()
	if crowded {
		used = ours()
	}
	l.UserProcesses = math.MaxInt32
	if used > 0 {
		l.UserProcesses = used + l.Processes + 3*enforce.OwnThreads
	}
	if most, held := ownMost(); held {
		l.UserProcesses = min(l.UserProcesses, most-leastRoom)
	}
}

// ownMost is the most processes and threads that the caller's user may have, if
// the kernel holds the caller to it: it does not hold the machine's root.
func ownMost() (int64, bool) {
	var own unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NPROC, &own) != nil || own.Cur > math.MaxInt32 || unheld() {
		return 0, false
	}
	return int64(own.Cur), true
}

// unheld says whether the caller is root of the machine.
func unheld() bool {
	if os.Geteuid() != 0 {
		return false
	}
	ids, err := os.ReadFile("/proc/self/uid_map")
	f := strings.Fields(string(ids))
	return err == nil && len(f) == 3 && f[0] == "0" && f[1] == "0"
}

// ours counts the processes and threads of the caller's user that are to be seen.
func ours() (n int64) {
	uid := os.Getuid()
	dir, err := os.Open("/proc")
	if err != nil {
		return 0
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	for _, name := range names {
		if _, err := strconv.Atoi(name); err != nil {
			continue
		}
		var st unix.Stat_t
		if unix.Stat("/proc/"+name, &st) != nil {
			continue
		}
		// What may not be traced looks like root's (proc_pid(5)).
		if int(st.Uid) != uid && (st.Uid != 0 || realUser(name) != uid) {
			continue
		}
		if unix.Stat("/proc/"+name+"/task", &st) == nil && st.Nlink > 2 {
			n += int64(st.Nlink) - 2
		}
	}
	return n
}

// realUser is the real uid of a process, -1 if it is not to be seen.
func realUser(pid string) int {
	raw, err := os.ReadFile("/proc/" + pid + "/status")
	if err != nil {
		return -1
	}
	_, rest, _ := bytes.Cut(raw, []byte("\nUid:"))
	f := bytes.Fields(rest)
	if len(f) == 0 {
		return -1
	}
	uid, err := strconv.Atoi(string(f[0]))
	if err != nil {
		return -1
	}
	return uid
}
