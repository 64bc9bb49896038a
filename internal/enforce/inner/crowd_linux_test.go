package inner

import (
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestInTree(t *testing.T) {
	for _, c := range []struct {
		name, script string
		want         int64
	}{
		{"one", "echo up; read a", 1},
		{"children", "for i in 1 2 3; do (read a) <&3 & done; echo up; read a", 4},
		{"in a row", `sh -c 'sh -c "echo up; read a; :"; :'; :`, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := exec.Command("sh", "-c", c.script)
			hold, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			up, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			cmd.ExtraFiles = []*os.File{r}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadAtLeast(up, make([]byte, 3), 3); err != nil {
				t.Fatal(err)
			}
			var got int64
			for range 100 { // until the shells have settled
				if got = inTree(os.Getpid(), 1000); got == c.want {
					break
				}
				time.Sleep(20 * time.Millisecond)
			}
			if got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
			if c.want > 1 {
				if got := inTree(os.Getpid(), 1); got <= 1 || got > c.want {
					t.Errorf("got %d where more than one is enough", got)
				}
			}
			w.Close()
			hold.Close()
			_ = cmd.Wait()
		})
	}
}

func TestEverywhere(t *testing.T) {
	raw, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		t.Fatal(err)
	}
	if got := Everywhere(); got < 2 || !strings.Contains(string(raw), "/") {
		t.Errorf("got %d of %q", got, raw)
	}
}
