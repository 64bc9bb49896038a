package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tether-sandbox/tether/internal/need"
)

// Where others have used up all the inotify instances of a user, a run is looked
// after all the same: now and then, as the report says.
func TestNoInstanceLeft(t *testing.T) {
	need.Root(t) // to have an id that runs nothing else
	need.Program(t, "python3")
	need.Program(t, "git")
	everyProvider(t, func(t *testing.T, j *jail) {
		const uid = 61300
		j.systemPath()
		j.repo()
		j.mustHost("rm -rf .git/hooks")
		hog := j.write("hog.py", `import ctypes
libc = ctypes.CDLL(None)
while libc.inotify_init1(0) >= 0:
    pass
print("full", flush=True)
input()
`)
		cmd := j.command("--json", "--timeout", "60s", "--env", "LATE="+j.secret, "--", "sh", "-c",
			`sleep 0.5; printenv LATE >.env; mkdir .git/hooks; `+j.hook(".git/hooks/pre-commit")+`
			i=0; while cat .env >/dev/null 2>&1 && test $i -lt 50; do sleep 0.1; i=$((i+1)); done; cat .env >seen 2>/dev/null
			i=0; while test -e .git/hooks/pre-commit && test $i -lt 100; do sleep 0.1; i=$((i+1)); done; ls .git/hooks >stands`)
		as := func(cmd *exec.Cmd) *exec.Cmd {
			cmd.Env = j.env
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
			return cmd
		}
		for _, d := range []string{j.w, j.state} {
			_ = filepath.WalkDir(d, func(path string, _ os.DirEntry, _ error) error { return os.Lchown(path, uid, uid) })
		}
		full := as(exec.Command("sh", "-c", "exec python3 "+hog))
		up, err := full.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		hold, err := full.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := full.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { hold.Close(); _ = full.Wait() }()
		if _, err := io.ReadAtLeast(up, make([]byte, 5), 5); err != nil {
			t.Fatal(err)
		}
		control := as(exec.Command("sh", "-c", "exec python3 -c 'import ctypes; print(ctypes.CDLL(None).inotify_init1(0))'"))
		if out, err := control.Output(); err != nil || string(out) != "-1\n" {
			t.Fatalf("control: got %q, %v: there is an instance left", out, err)
		}
		r := finishCommand(t, as(cmd))
		if got := j.read("stands"); got != "" {
			t.Errorf("hooks that stand: %q: %s", got, r.all())
		}
		if got := j.read("seen"); (got != "") != (j.provider == "landlock") { // which has no masks
			t.Errorf("the secret: %q: %s", got, r.all())
		}
		if !strings.Contains(r.stdout, "the system allows no more watches") && j.provider != "landlock" {
			t.Errorf("the report does not say why it was late: %s", r.all())
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
