package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestDescriptors: process 1 of a sandbox keeps none of the command's
// descriptors, so that nothing that it could say, however the command treats it,
// is taken for the command's output; and the reader sees the end when the
// command's own are closed.
func TestDescriptors(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		cmd := j.command("--", "sh", "-c", "touch ready; while [ ! -e done ]; do sleep 0.02; done; echo end")
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() {
			j.write("done", "")
			if err := cmd.Wait(); err != nil || out.String() != "end\n" {
				t.Errorf("got %q, %v, want the command's own end", out.String(), err)
			}
		}()
		for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			if _, err := os.Stat(filepath.Join(j.w, "ready")); err == nil {
				break
			}
			if time.Now().After(end) {
				t.Error("the command did not start")
				return
			}
		}
		first := firstInside(cmd.Process.Pid)
		if first == 0 {
			t.Error("no process 1 found below the run")
			return
		}
		for fd := range 3 {
			to, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", first, fd))
			if os.IsPermission(err) {
				t.Skip("only root can see the descriptors of process 1")
			}
			if to != "/dev/null" {
				t.Errorf("descriptor %d of process 1: got %q (%v), want /dev/null", fd, to, err)
			}
		}
	})
}

// firstInside finds the process below top that is number 1 in the innermost
// process namespace, and not bwrap.
func firstInside(top int) int {
	parent, inner := map[int]int{}, map[int]bool{}
	files, _ := filepath.Glob("/proc/[0-9]*/status")
	for _, f := range files {
		raw, _ := os.ReadFile(f)
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(f)))
		for line := range strings.Lines(string(raw)) {
			fields := strings.Fields(line)
			switch {
			case strings.HasPrefix(line, "PPid:"):
				parent[pid], _ = strconv.Atoi(fields[1])
			case strings.HasPrefix(line, "NSpid:"):
				inner[pid] = len(fields) > 2 && fields[len(fields)-1] == "1"
			}
		}
	}
	for pid, is := range inner {
		for at := pid; is && at > 1; at = parent[at] {
			if at == top {
				return pid
			}
		}
	}
	return 0
}
