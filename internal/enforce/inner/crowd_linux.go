package inner

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tether-sandbox/tether/internal/enforce"
)

// oomRaise is how much sooner than what else runs on the machine the kernel ends
// what is inside when memory runs out, in thousandths of it (proc(5),
// oom_score_adj): a command that uses memory up in small pieces would otherwise
// outlive whoever watches it. One that means to can go back to what its caller has.
const oomRaise = 300

// firstToGo makes us, and all that we start, the kernel's first choice when memory
// runs out. It must come before our files in /proc are closed to us.
func firstToGo() {
	const path = "/proc/self/oom_score_adj"
	raw, err := os.ReadFile(path)
	if err != nil {
		return
	}
	now, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil {
		return
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return
	}
	defer f.Close()
	_, _ = f.WriteString(strconv.Itoa(min(now+oomRaise, 1000)))
}

// KeepThreads makes the runtime have n threads more, which it does not give back:
// one that it wants when there are none to be had ends the program. Threads that
// work takes while this starts them are not counted.
func KeepThreads(n int) {
	var there sync.WaitGroup
	there.Add(n)
	release := make(chan struct{})
	for range n {
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			there.Done()
			<-release
		}()
	}
	there.Wait()
	close(release)
}

// wallThreads is how many more threads an inner stage may want that has no count
// of processes for itself.
const wallThreads = 10

// watchTree ends everything once the command has more processes and threads than
// most, where no namespace and no control group counts them. Between two looks
// there can be more.
func watchTree(most int64, u *undertaker) {
	if most <= 0 {
		return
	}
	for {
		begin := time.Now()
		// All of the machine's are seen at a glance. Whoever cannot see them looks
		// closer each time.
		if all := Everywhere(); (all == 0 || all > most) && inTree(os.Getpid(), most) > most {
			break
		}
		time.Sleep(max(20*time.Millisecond, 20*time.Since(begin)))
	}
	send(Message{Kind: Limited, Status: uint32(enforce.MetProcesses)})
	endAll(u)
}

// Everywhere is how many processes and threads the machine has, zero if that is
// not to be seen (proc_loadavg(5)).
func Everywhere() int64 {
	raw, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	f := strings.Fields(string(raw))
	if len(f) < 4 {
		return 0
	}
	_, all, _ := strings.Cut(f[3], "/")
	n, _ := strconv.ParseInt(all, 10, 64)
	return n
}

// inTree counts the processes and threads below pid, until there are more than
// most.
func inTree(pid int, most int64) (n int64) {
	for next := []string{strconv.Itoa(pid)}; len(next) > 0 && n <= most; {
		at := next[len(next)-1]
		next = next[:len(next)-1]
		dir := "/proc/" + at + "/task"
		d, err := os.Open(dir)
		if err != nil {
			continue
		}
		tasks, _ := d.Readdirnames(-1)
		d.Close()
		if at != strconv.Itoa(pid) {
			n += int64(len(tasks))
		}
		for _, t := range tasks {
			if list, err := os.ReadFile(dir + "/" + t + "/children"); err == nil {
				next = append(next, strings.Fields(string(list))...)
			}
		}
	}
	return n
}
