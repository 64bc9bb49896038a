package inner

import (
	"errors"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// signalTree signals everything inside but ourselves. As process 1 of a process
// namespace that is everybody; otherwise it is our descendants.
func signalTree(sig unix.Signal) {
	if os.Getpid() == 1 {
		_ = unix.Kill(-1, sig)
		return
	}
	for _, pid := range descendants(os.Getpid(), 0) {
		_ = unix.Kill(pid, sig)
	}
}

// killTree kills everything that the command left and waits until it is gone:
// orphans become our children, so there is nobody left when we have none. It
// does not wait for the kernel to take the namespaces apart.
func killTree() {
	for {
		signalTree(unix.SIGKILL)
		_, err := unix.Wait4(-1, nil, 0, nil)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// descendants lists the processes below pid, parents first.
func descendants(pid, depth int) []int {
	const deepest = 1000
	if depth > deepest {
		return nil
	}
	var out []int
	tasks, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/task")
	if err != nil {
		return nil
	}
	for _, t := range tasks {
		list, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/task/" + t.Name() + "/children")
		if err != nil {
			continue
		}
		for f := range strings.FieldsSeq(string(list)) {
			if child, err := strconv.Atoi(f); err == nil {
				out = append(out, child)
				out = append(out, descendants(child, depth+1)...)
			}
		}
	}
	return out
}
