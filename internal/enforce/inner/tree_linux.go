package inner

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// signalTree signals everything inside but ourselves. As process 1 of a process
// namespace that is everybody; otherwise it is our descendants, and what the
// undertaker reaches.
func signalTree(sig unix.Signal, u *undertaker) {
	if os.Getpid() == 1 {
		_ = unix.Kill(-1, sig)
		return
	}
	if sig == unix.SIGKILL {
		u.bury()
	}
	all, _ := descendants(os.Getpid(), 0)
	for _, d := range all {
		if !u.is(d.pid) {
			d.signal(sig)
		}
	}
}

// endAll kills everything that the command started, again and again. It never
// returns: the main thread, which buries the dead, ends us when nobody is left.
func endAll(u *undertaker) {
	for {
		signalTree(unix.SIGKILL, u)
		time.Sleep(5 * time.Millisecond)
	}
}

// killTree kills everything that the command left and waits until it is gone:
// orphans become our children, so there is nobody left when we have none. It
// does not wait for the kernel to take the namespaces apart.
func killTree(u *undertaker) {
	for {
		signalTree(unix.SIGKILL, u)
		_, err := unix.Wait4(-1, nil, 0, nil)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
		for { // all that are dead already, before the tree is looked through again
			if pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); err != nil || pid == 0 {
				break
			}
		}
	}
}

// descendant is a process below us, and whose child it was.
type descendant struct{ pid, parent int }

// signal signals the process, unless another one has its number by now: while a
// descriptor stands for it, what is told by its number is told of it.
func (d descendant) signal(sig unix.Signal) {
	fd, err := unix.PidfdOpen(d.pid, 0)
	if err == unix.ENOSYS || err == unix.EPERM { // closed to us, as in some containers
		_ = unix.Kill(d.pid, sig)
		return
	}
	if err != nil {
		return
	}
	defer unix.Close(fd)
	// Orphans come to us.
	if p := parentOf(d.pid); p == d.parent || p == os.Getpid() {
		_ = unix.PidfdSendSignal(fd, sig, nil, 0)
	}
}

// descendants lists the processes below pid, parents first. whole is false when
// some could not be looked for.
func descendants(pid, depth int) (out []descendant, whole bool) {
	const deepest = 1000
	if depth > deepest {
		return nil, false
	}
	tasks, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/task")
	if err != nil {
		return nil, goneBy(err)
	}
	whole = true
	for _, t := range tasks {
		at := "/proc/" + strconv.Itoa(pid) + "/task/" + t.Name()
		list, err := os.ReadFile(at + "/children")
		if err != nil {
			var st unix.Stat_t // a kernel without these lists has the rest
			whole = whole && goneBy(err) && unix.Stat(at, &st) != nil
			continue
		}
		for f := range strings.FieldsSeq(string(list)) {
			if child, err := strconv.Atoi(f); err == nil {
				below, all := descendants(child, depth+1)
				out, whole = append(append(out, descendant{child, pid}), below...), whole && all
			}
		}
	}
	return out, whole
}

// goneBy says whether a file of a process was not read because that is gone.
func goneBy(err error) bool { return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH) }

// parentOf returns the parent of a process, zero when it is gone.
func parentOf(pid int) int {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	// The name may hold anything; what follows its last parenthesis is state
	// and parent (proc_pid_stat(5)).
	s := string(b)
	f := strings.Fields(s[strings.LastIndexByte(s, ')')+1:])
	if len(f) < 2 {
		return 0
	}
	n, _ := strconv.Atoi(f[1])
	return n
}
