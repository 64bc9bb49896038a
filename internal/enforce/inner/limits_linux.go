package inner

import (
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/internal/enforce"
)

// limit bounds this process, for good, and so the command that it starts.
func limit(l *enforce.Limits) error {
	// Our own threads count as the command's do, in its user namespace: those that
	// there are, and those that may come, are the command's on top. We may have
	// more; see holdProcesses.
	procs := l.Processes + ownThreads() + enforce.LateThreads
	for _, e := range [...]struct {
		name      string
		resource  int
		asked     int64
		soft, max int64
	}{
		{"process limit", unix.RLIMIT_NPROC, l.Processes, procs, max(procs, l.Processes+enforce.OwnThreads)},
		{"process limit", unix.RLIMIT_NPROC, l.UserProcesses, l.UserProcesses, l.UserProcesses},
		{"file size limit", unix.RLIMIT_FSIZE, l.FileBytes, l.FileBytes, l.FileBytes},
		{"open files limit", unix.RLIMIT_NOFILE, l.OpenFiles, l.OpenFiles, l.OpenFiles},
		// The first brings SIGXCPU, which says why; the second ends what has
		// not ended for that, and at once if it came first (setrlimit(2)).
		{"processor time limit", unix.RLIMIT_CPU, l.CPUSeconds, l.CPUSeconds, l.CPUSeconds + 1},
	} {
		if e.asked <= 0 {
			continue
		}
		var now syscall.Rlimit
		if err := syscall.Getrlimit(e.resource, &now); err != nil {
			return &stage{e.name, err}
		}
		// Never more than the caller has.
		hard := min(uint64(e.max), now.Max)
		// Package syscall and not unix: it would otherwise give a child the limit
		// of open files back that this process was started with.
		if err := syscall.Setrlimit(e.resource, &syscall.Rlimit{Cur: min(uint64(e.soft), hard), Max: hard}); err != nil {
			return &stage{e.name, err}
		}
	}
	return nil
}

// holdProcesses takes the room for more threads of ours, which we go on with, from
// a command that has just been started.
func holdProcesses(pid int, l *enforce.Limits) error {
	if l.Processes <= 0 {
		return nil
	}
	var own, its unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &own); err != nil {
		return err
	}
	if err := unix.Prlimit(pid, unix.RLIMIT_NPROC, nil, &its); err != nil {
		return unlessEnded(err)
	}
	if its.Max > own.Cur { // and not less already, by its own hand
		its = unix.Rlimit{Cur: min(its.Cur, own.Cur), Max: own.Cur}
		if err := unix.Prlimit(pid, unix.RLIMIT_NPROC, &its, nil); err != nil {
			return unlessEnded(err)
		}
	}
	own.Cur = own.Max
	return unix.Setrlimit(unix.RLIMIT_NPROC, &own)
}

// unlessEnded passes an error on, unless it says that there is no such process.
func unlessEnded(err error) error {
	if err == unix.ESRCH {
		return nil
	}
	return err
}

// ownThreads is how many threads we have; as many as we may, where that is not to
// be seen.
func ownThreads() int64 {
	var st unix.Stat_t
	if unix.Stat("/proc/self/task", &st) != nil || st.Nlink <= 2 {
		return enforce.OwnThreads
	}
	return min(int64(st.Nlink)-2, enforce.OwnThreads)
}

// met says which limits can be seen to be met while what the command left is
// still there, and which folder is full.
func met(order *enforce.Order) (m enforce.Met, full string) {
	for i := range order.Steps {
		s := &order.Steps[i]
		if s.Do != enforce.Tmpfs || s.Mode&0o200 == 0 {
			continue
		}
		var fs unix.Statfs_t
		if unix.Statfs(s.Dst, &fs) == nil && fs.Type == unix.TMPFS_MAGIC && fs.Blocks > 0 && (fs.Bfree == 0 || fs.Ffree == 0) {
			m, full = m|enforce.MetScratch, s.Dst
		}
	}
	if n := order.Limits.Processes; n > 0 && order.Walls == nil {
		// A bomb does not hold still to be counted.
		if most := n + ownThreads(); inside() >= most-most/16 {
			m |= enforce.MetProcesses
		}
	}
	return m, full
}

// watchProcesses tells once that more processes are there than were asked for, of
// the few that are allowed on top: the kernel keeps nothing of a fork that it
// refused, and none of them may be left at the end. It looks several times a
// second, where looking is cheap.
func watchProcesses(asked int64) {
	const few = 1024
	if asked <= 0 || asked > few {
		return
	}
	for {
		begin := time.Now()
		if inside()-ownThreads() > asked {
			send(Message{Kind: Limited, Status: uint32(enforce.MetProcesses)})
			return
		}
		time.Sleep(max(50*time.Millisecond, 50*time.Since(begin)))
	}
}

// inside counts the processes and threads in our process namespace.
func inside() (all int64) {
	dir, err := os.Open("/proc")
	if err != nil {
		return 0
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return 0
	}
	for _, name := range names {
		if _, err := strconv.Atoi(name); err != nil {
			continue
		}
		var st unix.Stat_t
		if unix.Stat("/proc/"+name+"/task", &st) == nil && st.Nlink > 2 {
			all += int64(st.Nlink) - 2
		}
	}
	return all
}

// metBy says which limit ended a command, as far as its status tells: by the
// signal itself, or by the number that a shell makes of it for a child.
func metBy(l *enforce.Limits, ws syscall.WaitStatus, spent *syscall.Rusage) (m enforce.Met) {
	ended := func(sig syscall.Signal) bool {
		return ws.Signaled() && ws.Signal() == sig || ws.Exited() && ws.ExitStatus() == 128+int(sig)
	}
	if l.FileBytes > 0 && ended(syscall.SIGXFSZ) {
		m |= enforce.MetFileSize
	}
	if l.CPUSeconds > 0 && (ended(syscall.SIGXCPU) ||
		ended(syscall.SIGKILL) && spent.Utime.Sec+spent.Stime.Sec >= l.CPUSeconds) {
		m |= enforce.MetCPU
	}
	return m
}

// tellMet tells the supervisor which limits have been met, if any.
func tellMet(order *enforce.Order, also enforce.Met) {
	m, full := met(order)
	if m |= also; m != 0 {
		send(Message{Kind: Limited, Status: uint32(m), What: full})
	}
}
