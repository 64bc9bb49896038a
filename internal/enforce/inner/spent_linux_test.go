package inner

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestSpentBy(t *testing.T) {
	stat := func(name string, times ...any) string {
		return fmt.Sprintf("7 (%s) S 1 7 7 0 -1 4194560 1 2 3 4 ", name) + strings.TrimSpace(fmt.Sprintln(times...)) + " 20 0 1 0 99 1 2"
	}
	for _, c := range []struct {
		name, stat string
		want       time.Duration
	}{
		{"all four", stat("sh", 1, 20, 300, 4000), 4321 * tick},
		{"a name that looks like the rest", stat(") S 9 9 9", 1, 0, 0, 0), tick},
		{"nothing used", stat("sh", 0, 0, 0, 0), 0},
		{"cut off", stat("sh", 1)[:30], 0},
		{"not numbers", stat("sh", "a", "b", "c", "d"), 0},
		{"negative", stat("sh", -5, 1, 1, 1), 0},
		{"more than fits", stat("sh", "9223372036854775807", 1, 1, 1), 0},
		{"nothing", "", 0},
	} {
		if got := spentBy(c.stat); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

func FuzzSpentBy(f *testing.F) {
	f.Add("7 (sh) S 1 7 7 0 -1 4194560 1 2 3 4 1 2 3 4 20")
	f.Add(") 1 2 3")
	f.Fuzz(func(t *testing.T, stat string) {
		if spentBy(stat) < 0 {
			t.Errorf("%q: less than nothing", stat)
		}
	})
}

// TestSpentInside: a child counts while it runs and after it was waited for, once.
func TestSpentInside(t *testing.T) {
	const work = "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done; "
	var none undertaker
	before, _ := spentInside(&none)
	cmd := exec.Command("/bin/sh", "-c", "("+work+"); "+work+"echo; read x")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	running, all := spentInside(&none)
	running -= before
	in.Close()
	_ = cmd.Wait() // read fails, as it must
	ended, _ := spentInside(&none)
	ended -= before
	spent := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	// What is not a whole tick shows only afterwards.
	if !all || spent < 2*tick || running < spent-5*tick || running > spent || ended < spent || ended > spent+5*tick {
		t.Errorf("got %v (of all: %v), then %v of %v (pid %d)", running, all, ended, spent, os.Getpid())
	}
}
