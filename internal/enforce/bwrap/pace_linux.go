package bwrap

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"github.com/tether-sandbox/tether/internal/enforce/inner"
)

// A bwrap that hangs is told from one that comes to its turn rarely, since the
// machine has much to do: the latter is about to run whenever one looks, and has
// used little of the processor so far.
const (
	// longest is how long one that is slow may take.
	longest = 30 * time.Second
	// between two looks something must have happened.
	between = 250 * time.Millisecond
	tick    = 10 * time.Millisecond // of USER_HZ, in which proc_pid_stat(5) counts
)

// hurry calls kill when the bwrap with a process id has hung for patience, or has
// used as much of the processor, until stop is called.
func hurry(pid int, patience time.Duration, kill func()) (stop func()) {
	done := make(chan struct{})
	go func() {
		begin, before := time.Now(), pace{}
		timer := time.NewTimer(patience - between)
		defer timer.Stop()
		for {
			select {
			case <-done:
				return
			case <-timer.C:
			}
			now := paceOf(pid)
			took := time.Since(begin)
			if took >= patience && (!now.busy && now.used == before.used || now.used >= patience/2) || took >= longest+patience {
				kill()
				return
			}
			before = now
			timer.Reset(between)
		}
	}()
	return func() { close(done) }
}

// pace says how a process and its children get on.
type pace struct {
	busy bool // one of them runs, or would, or is the inner stage, with which bwrap has done its part
	used time.Duration
}

func paceOf(pid int) (p pace) {
	own := strconv.Itoa(pid)
	children, _ := os.ReadFile("/proc/" + own + "/task/" + own + "/children")
	for _, id := range append(bytes.Fields(children), []byte(own)) {
		raw, err := os.ReadFile("/proc/" + string(id) + "/stat")
		if err != nil {
			continue
		}
		// The name may hold anything; what follows its last parenthesis is the
		// state, and the times are the twelfth and thirteenth after it.
		f := bytes.Fields(raw[bytes.LastIndexByte(raw, ')')+1:])
		if len(f) < 13 {
			continue
		}
		p.busy = p.busy || f[0][0] == 'R' || f[0][0] == 'D' || isInner(string(id))
		for _, field := range f[11:13] {
			n, _ := strconv.ParseInt(string(field), 10, 64)
			p.used += time.Duration(n) * tick
		}
	}
	return p
}

// isInner says whether a process has become the inner stage.
func isInner(id string) bool {
	words, _ := os.ReadFile("/proc/" + id + "/cmdline")
	return bytes.HasPrefix(words, []byte("/proc/self/fd/")) && bytes.Contains(words, []byte("\x00"+inner.Name))
}
