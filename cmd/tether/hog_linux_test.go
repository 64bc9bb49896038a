package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/internal/need"
)

// A command that uses up all the inotify instances of its user is looked after
// all the same: now and then, as the report says. Control: nobody can have one.
func TestNoInstanceLeft(t *testing.T) {
	need.Program(t, "python3")
	need.Program(t, "git")
	providers(t, func(t *testing.T, j *jail) {
		if j.provider == "landlock" {
			t.Skip("nothing is hidden late")
		}
		j.repo()
		j.mustHost("rm -rf .git/hooks")
		j.write("hog.py", `import ctypes, os, time
libc = ctypes.CDLL(None)
while libc.inotify_init1(0) >= 0:
    pass
open("full", "w")
while not os.path.exists("over"):
    time.sleep(0.05)
`)
		cmd := j.command("--json", "--timeout", "60s", "--env", "LATE="+j.secret, "--", "sh", "-c",
			`python3 hog.py & until test -e full; do sleep 0.05; done; sleep 0.5; printenv LATE >.env; mkdir .git/hooks; `+j.hook(".git/hooks/pre-commit")+`
			: >planted; i=0; while cat .env >/dev/null 2>&1 && test $i -lt 100; do sleep 0.1; i=$((i+1)); done; cat .env >seen
			i=0; while test -e .git/hooks/pre-commit && test $i -lt 100; do sleep 0.1; i=$((i+1)); done; ls .git/hooks >stands; : >over`)
		var out strings.Builder
		cmd.Stdout = &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		within(20*time.Second, func() bool { _, err := os.Lstat(filepath.Join(j.w, "planted")); return err == nil })
		left, _ := unix.InotifyInit1(unix.IN_CLOEXEC)
		if _ = cmd.Wait(); left >= 0 {
			unix.Close(left)
			t.Skip("the commands of this user have instances of their own")
		}
		for _, name := range []string{"seen", "stands"} {
			if got, err := os.ReadFile(filepath.Join(j.w, name)); err != nil || len(got) > 0 {
				t.Errorf("%s: %q, %v", name, got, err)
			}
		}
		if !strings.Contains(out.String(), "the system allows no more watches") {
			t.Errorf("the report does not say why it was late: %s", out.String())
		}
	})
}

// A command that has as many descriptors on their way as its user may have keeps
// nothing from being hidden by that. Control: nobody of that user can send one.
func TestNoDescriptorCanBeSent(t *testing.T) {
	need.Program(t, "python3")
	providers(t, func(t *testing.T, j *jail) {
		if j.provider == "landlock" {
			t.Skip("nothing is hidden late")
		}
		j.write("hog.py", `import array, os, resource, socket, time
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
many, pairs = array.array("i", [0] * 253), []
while True:
    if not pairs or full:
        pairs.append(socket.socketpair())
        pairs[-1][0].setblocking(False)
    full = False
    try:
        pairs[-1][0].sendmsg([b"."], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, many)])
    except BlockingIOError:
        full = True
    except OSError as e:
        print("control:", e.strerror, flush=True)
        break
open("full", "w")
while not os.path.exists("over"):
    time.sleep(0.05)
`)
		res := j.report(`python3 hog.py & until test -e full; do sleep 0.05; done; sleep 0.5; printenv LATE >.env
			i=0; while cat .env >/dev/null 2>&1 && test $i -lt 50; do sleep 0.1; i=$((i+1)); done; cat .env; : >over; wait`, "--env", "LATE="+j.secret)
		text := lateText(res)
		if !strings.Contains(text, "control: Too many references") {
			t.Fatalf("control: descriptors can still be sent: %s", text)
		}
		if strings.Contains(text, j.secret) || !strings.Contains(text, "Permission denied") {
			t.Errorf("the command reads %s", text)
		}
	})
}
