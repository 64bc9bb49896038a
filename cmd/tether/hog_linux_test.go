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
