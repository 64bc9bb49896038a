//go:build linux

package main

import (
	"strings"
	"testing"

	"github.com/tether-sandbox/tether/internal/need"
)

// signalAll sends every signal to every thread of process 1, in every way that
// there is. It prints how many were let through.
const signalAll = `
import ctypes, os, struct
kill, tgkill, tkill, queue, tgqueue = (62, 234, 200, 129, 297) if os.uname().machine == "x86_64" else (129, 131, 130, 138, 240)
call, sent = ctypes.CDLL(None).syscall, 0
for s in range(1, 65):
    for t in [int(t) for t in os.listdir("/proc/1/task")]:
        info = struct.pack("iii", s, 0, -1) + bytes(116)
        for args in ((kill, t, s), (tgkill, 1, t, s), (tkill, t, s), (queue, t, s, info), (tgqueue, 1, t, s, info)):
            sent += call(*args) == 0
print("sent", sent)
`

// TestSignalsToTheFirstProcess: what a command signals to process 1 neither ends
// it, and with it the command, nor makes it say anything.
func TestSignalsToTheFirstProcess(t *testing.T) {
	need.Program(t, "python3")
	providers(t, func(t *testing.T, j *jail) {
		j.write("signals.py", signalAll)
		r := j.run("python3 signals.py; sleep .1; echo alive; exit 7")
		if r.exit != 7 || !strings.Contains(r.stdout, "alive") || r.stderr != "" {
			t.Errorf("got exit %d: %.600s", r.exit, r.all())
		}
		if strings.Contains(r.stdout, "sent 0\n") {
			t.Log("the kernel lets none through")
		}
	})
}
