//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/need"
)

// fullHouse has as many processes as it can for two seconds, replaces all that
// end, and plants a hook all the while.
const fullHouse = `git init -q . && exec python3 -c '
import os, time
end = time.time() + 2
def more():
    while time.time() < end:
        try:
            if os.fork() == 0:
                time.sleep(max(0, end - time.time())); os._exit(0)
        except OSError:
            try:
                with open(".git/hooks/pre-commit", "w") as f: f.write("#!/bin/sh\n")
                os.chmod(".git/hooks/pre-commit", 0o755)
            except OSError: pass
            time.sleep(0.0005)
for i in range(6):
    try:
        if os.fork() == 0: more(); os._exit(0)
    except OSError: pass
more()
print("FULL", os.path.exists(".git/hooks/pre-commit"), flush=True)
os._exit(0)'`

// TestRoom: a command that fills up what its caller may have of processes leaves
// room for those that settle what it did.
func TestRoom(t *testing.T) {
	need.Root(t) // to have an id that runs nothing else
	dirs := memoryGroups(t)
	everyProvider(t, func(t *testing.T, j *jail) {
		j.systemPath()
		uid := 61200 + len(j.provider)
		none := func() (left []process) {
			for range 100 {
				left = nil
				offspring() // buries those whose parent has ended, if they came to us
				for _, p := range processes() {
					if st, err := os.Stat(fmt.Sprint("/proc/", p.pid)); err == nil && int(st.Sys().(*syscall.Stat_t).Uid) == uid {
						left = append(left, p)
					}
				}
				if len(left) == 0 {
					break
				}
				time.Sleep(50 * time.Millisecond)
			}
			return left
		}
		as := func(before string, cmd *exec.Cmd) result {
			for _, d := range []string{j.w, j.state} {
				_ = filepath.WalkDir(d, func(path string, _ os.DirEntry, _ error) error { return os.Lchown(path, uid, uid) })
			}
			out := exec.Command("bash", append([]string{"-c", before + "\n" +
				fmt.Sprintf(`exec setpriv --reuid %d --regid %d --clear-groups "$@"`, uid, uid), "bash"}, cmd.Args...)...)
			out.Dir, out.Env = cmd.Dir, cmd.Env
			return finishCommand(t, out)
		}
		const few = "ulimit -u 200"
		hook := filepath.Join(j.w, ".git/hooks/pre-commit")
		open := exec.Command("sh", "-c", fullHouse)
		open.Dir, open.Env = j.w, os.Environ()
		if r := as(few, open); !strings.Contains(r.stdout, "FULL True") {
			t.Fatalf("control: %s", r.all())
		}
		none() // those of the control end by themselves
		held := func(what string, r result) {
			t.Helper()
			r = j.built(r)
			ended := strings.Contains(r.stdout, "FULL") && r.exit == 0
			if j.provider == "landlock" { // which ends what it cannot hold
				ended = r.exit == 128+9
			}
			if !ended || strings.Contains(r.stderr, "goroutine") {
				t.Errorf("%s: exit %d: %.2000s", what, r.exit, r.all())
			}
			if !strings.Contains(r.stderr, string(fault.LimitProcesses)) {
				t.Errorf("%s: not told: %s", what, r.all())
			}
			if _, err := os.Lstat(hook); err == nil {
				t.Errorf("%s: the hook stands", what)
			}
			if left := none(); len(left) > 0 {
				t.Errorf("%s: left: %v", what, left)
			}
		}
		fresh := func() {
			if err := os.RemoveAll(filepath.Join(j.w, ".git")); err != nil {
				t.Fatal(err)
			}
		}
		fresh()
		held("limit of the user", as(few, j.command("--", "sh", "-c", fullHouse)))

		// What does not leave room for both is refused, with a limit that does.
		r := as("ulimit -u 60", j.command("--", "sh", "-c", "echo RA''N"))
		if r.exit != exitOurs || !strings.Contains(r.stderr, string(fault.IsolationUnavailable)) || strings.Contains(r.stdout, "RAN") {
			t.Errorf("got exit %d: %s", r.exit, r.all())
		}
		_, hint, _ := strings.Cut(r.stderr, "hint: ")
		hint, _, _ = strings.Cut(hint, "\n")
		if r := as(hint, j.command("--", "sh", "-c", "echo RA''N")); r.exit != 0 || !strings.Contains(r.stdout, "RAN") {
			t.Errorf("%q does not help: exit %d: %s", hint, r.exit, r.all())
		}

		// A control group that somebody else made, as containers have one.
		var pids string
		for _, dir := range dirs {
			if strings.HasPrefix(dir, "/sys/fs/cgroup/pids") {
				pids = dir
			}
		}
		at, err := os.MkdirTemp(pids, "test-")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { removeGroup(t, at) })
		_ = os.Chmod(at, 0o755)
		if err := os.WriteFile(filepath.Join(at, "pids.max"), []byte("150"), 0); err != nil {
			t.Fatal(err)
		}
		fresh()
		held("control group", as("echo $$ > "+at+"/cgroup.procs || exit 9", j.command("--", "sh", "-c", fullHouse)))
	})
}

// everyProvider is providers with landlock, whose grades are accepted.
func everyProvider(t *testing.T, f func(t *testing.T, j *jail)) {
	t.Helper()
	providers(t, f)
	if only := os.Getenv("TETHER_TEST_PROVIDER"); only != "" && only != "landlock" {
		return
	}
	t.Run("landlock", func(t *testing.T) { f(t, newJail(t, "landlock")) })
}
