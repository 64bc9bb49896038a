package supervise

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// What makes a user namespace is started with a lower limit of processes than ours,
// which we have back at once.
func TestKeepRoom(t *testing.T) {
	var own, after unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &own); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Setrlimit(unix.RLIMIT_NPROC, &own) })
	for name, c := range map[string]struct{ ours, want uint64 }{
		"a limit":   {30000, 30000 - uint64(Kept())},
		"too small": {uint64(Kept()), uint64(Kept())},
	} {
		t.Run(name, func(t *testing.T) {
			if own.Max < c.ours {
				t.Skipf("the caller may have %d at most", own.Max)
			}
			if os.Geteuid() != 0 && c.ours < 1000 {
				t.Skip("others' processes count")
			}
			if err := unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: c.ours, Max: own.Max}); err != nil {
				t.Fatal(err)
			}
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			cmd := exec.Command("/bin/cat", "/proc/self/limits")
			cmd.Stdout = w
			i := &Indirect{Cmd: cmd}
			if _, err := i.Start(os.Stdin); err != nil {
				t.Fatal(err)
			}
			w.Close()
			var b [8192]byte
			text := ""
			for {
				n, err := r.Read(b[:])
				text += string(b[:n])
				if err != nil {
					break
				}
			}
			if err := i.Bury(); err != nil {
				t.Fatal(err)
			}
			_, rest, _ := strings.Cut(text, "Max processes")
			if f := strings.Fields(rest); len(f) == 0 || f[0] != strconv.FormatUint(c.want, 10) {
				t.Errorf("started with %.60q, want %d", rest, c.want)
			}
			if err := unix.Getrlimit(unix.RLIMIT_NPROC, &after); err != nil || after != (unix.Rlimit{Cur: c.ours, Max: own.Max}) {
				t.Errorf("afterwards we have %v: %v", after, err)
			}
		})
	}
}
