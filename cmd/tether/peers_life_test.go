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

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/internal/need"
)

// The command sees its own processes, and none of the host's.
func TestOwnProcessesOnly(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.systemPath()
		tag := seconds(60)
		outside := hostProcess(t, "sleep", tag)
		const list = "cat /proc/*/cmdline | tr '\\0' ' '; ls -d /proc/[0-9]*"
		j.closed(list, tag)
		for _, script := range []string{
			fmt.Sprintf("kill -0 %d", outside.Process.Pid), fmt.Sprintf("kill -TERM %d", outside.Process.Pid),
			fmt.Sprintf("ls /proc/%d/root/", outside.Process.Pid), "kill -TERM -- -1; exit 1",
		} {
			if r := j.run(script); r.exit == 0 {
				t.Errorf("%s: exit 0: %s", script, r.all())
			}
		}
		if err := outside.Process.Signal(syscall.Signal(0)); err != nil {
			t.Errorf("the host's process is gone: %v", err)
		}
		if r := j.run("echo $$ $PPID; ls -d /proc/[0-9]* | wc -l"); r.exit != 0 || strings.Fields(r.stdout)[1] != "1" || len(strings.Fields(r.stdout)) != 3 || len(strings.Fields(r.stdout)[2]) != 1 {
			t.Errorf("got %q, want a child of process 1 and a handful of processes", r.stdout)
		}
	})
}

// Orphans are reaped by process 1, and a zombie does not pile up.
func TestOrphansAreReaped(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.works(`i=0; while [ $i -lt 50 ]; do (true & ) ; sh -c '(sleep .05 &)'; i=$((i+1)); done
sleep .5; n=0; for f in /proc/[0-9]*/stat; do case $(cut -d')' -f2 $f 2>/dev/null) in ' Z '*) n=$((n+1));; esac; done; echo zombies=$n`, "zombies=0\n")
		// What the command itself has not waited for is its own business.
		j.works(`python3 -c '
import os, time
p = os.fork()
if p == 0: os._exit(3)
time.sleep(.1)
print(os.waitpid(p, 0)[1] >> 8)'`, "3")
	})
}

// No privilege is to be had, nor a device.
func TestNoPrivileges(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.systemPath()
		r := j.run("grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status")
		for _, want := range []string{"CapInh:\t0000000000000000", "CapPrm:\t0000000000000000", "CapEff:\t0000000000000000",
			"CapBnd:\t0000000000000000", "CapAmb:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"} {
			if !strings.Contains(r.stdout, want) {
				t.Errorf("got %s, want %s", r.all(), want)
			}
		}
		for _, script := range []string{"mknod dev c 1 3", "mknod dev b 8 0", "mknod /tmp/dev c 1 3", "mount -t tmpfs t /mnt", "umount /tmp", "umount -l /proc",
			"unshare -U true", "unshare -Ur true", "unshare -m true", "unshare -n true", "chroot / true", "hostname x", "date -s '2001-01-01'",
			"nice -n -5 true 2>&1 | grep -q denied && exit 1", "su -c true", "dmesg", "sysctl -w kernel.hostname=x", "swapoff /dev/null", "ip link set lo down",
			"chown 12345 .", "setpriv --reuid 12345 true", "mount --bind /etc /tmp", "losetup -f", "modprobe loop", "echo x > /proc/sysrq-trigger", "echo 1 > /proc/sys/vm/drop_caches"} {
			if r := j.run("exec 2>&1; " + script); r.exit == 0 {
				t.Errorf("%s: exit 0: %s", script, r.all())
			}
		}
		// A set-uid file that the command makes of its own is nothing, here and
		// on the host.
		j.run("cp /bin/true own; chmod 4755 own; cp /bin/id id; chmod 4755 id; ./id")
		if info, err := os.Stat(filepath.Join(j.w, "own")); err == nil && info.Mode()&os.ModeSetuid != 0 && os.Geteuid() == 0 {
			t.Errorf("a set-uid file is left: %v", info.Mode())
		}
	})
}

// Other processes' memory is out of reach but for one's own children.
func TestMemoryOfOthers(t *testing.T) {
	need.Program(t, "python3")
	providers(t, func(t *testing.T, j *jail) {
		j.systemPath()
		j.write("peek.py", `
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
class iovec(ctypes.Structure): _fields_ = [("base", ctypes.c_void_p), ("len", ctypes.c_size_t)]
b = ctypes.create_string_buffer(16)
a = iovec(ctypes.cast(b, ctypes.c_void_p), 16)
for pid in map(int, sys.argv[1:]):
    for n in (310, 311): # process_vm_readv, process_vm_writev
        r = libc.syscall(n, pid, ctypes.byref(a), 1, ctypes.byref(a), 1, 0)
        print("OPEN" if r >= 0 else "closed", pid, n)
    print("OPEN" if libc.ptrace(16, pid, 0, 0) == 0 else "closed", pid, "ptrace")
    for f in ("mem", "environ", "maps", "auxv"):
        try: print("OPEN" if open("/proc/%d/%s" % (pid, f), "rb").read(1) else "closed", f)
        except OSError as e: print("closed", f)
`)
		if r := j.run("python3 peek.py 1"); r.exit != 0 || strings.Contains(r.stdout, "OPEN") || !strings.Contains(r.stdout, "closed") {
			t.Errorf("process 1 is open: %s", r.all())
		}
	})
}

// The inner stage, started by anybody else, does nothing and says nothing.
func TestInnerStageAlone(t *testing.T) {
	j := newJail(t, "native")
	for _, c := range [][]string{
		{"bash", "-c", `exec -a tether-inner "$0"`, binary},
		{"bash", "-c", `exec 3</dev/null; exec -a tether-inner "$0"`, binary},
		{"python3", "-c", `import os, socket, sys
a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
c = a.dup(); os.dup2(b.fileno(), 3); c.send(b"T"); c.send(b"ca"); c.shutdown(socket.SHUT_WR)
os.execv(sys.argv[1], ["tether-inner"])`, binary},
		{"bash", "-c", `exec 9<"$0"; exec -a /proc/self/fd/9 "$0" tether-inner`, binary},
		{"bash", "-c", `printf 'tether-order-1\n' | { exec 3<&0; exec -a tether-inner "$0"; }`, binary},
	} {
		cmd := commandIn(j.w, c...)
		cmd.Env = j.env
		if r := finishCommand(t, cmd); r.exit != exitOurs || r.all() != "" {
			t.Errorf("%q: exit %d: %q; want %d and silence", c, r.exit, r.all(), exitOurs)
		}
	}
}

// A signal is handed on to the command, through all that lies between, and
// those that nohup has ignored stay ignored.
func TestSignalsAreForwarded(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT} {
			cmd := j.command("--", "sh", "-c", fmt.Sprintf("trap 'echo got; exit 0' %d; echo ready; while :; do sleep .02; done", sig))
			out := startLines(t, cmd)
			out("ready")
			_ = cmd.Process.Signal(sig)
			out("got")
			if err := cmd.Wait(); err != nil {
				t.Errorf("%v: %v", sig, err)
			}
		}
		cmd := j.command("--", "sh", "-c", "echo ready; sleep .5; echo survived")
		cmd.Args = append([]string{"sh", "-c", `trap '' HUP; exec "$@"`, "sh"}, cmd.Args...)
		cmd.Path, _ = exec.LookPath("sh")
		out := startLines(t, cmd)
		out("ready")
		_ = cmd.Process.Signal(syscall.SIGHUP)
		out("survived")
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
}

// startLines starts a command and returns what waits for a line of its output.
func startLines(t testing.TB, cmd *exec.Cmd) func(want string) {
	t.Helper()
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
	t.Cleanup(func() { timer.Stop(); _ = cmd.Process.Kill(); _ = cmd.Wait() })
	var text strings.Builder
	b := make([]byte, 256)
	return func(want string) {
		t.Helper()
		for !strings.Contains(text.String(), want) {
			n, err := pipe.Read(b)
			text.Write(b[:n])
			if err != nil && !strings.Contains(text.String(), want) {
				t.Fatalf("it ended with %q, want %q", text.String(), want)
			}
		}
	}
}

// Words reach the command as they were given.
func TestWordsAreKept(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		words := []string{"a  b", "*", "$HOME", "`id`", "$(id)", "", "'", `"`, `\`, "a\nb", "-n", "--", "{\"k\": [1, 2]}", "|", "&&", ";", "#", "~", "\xff\xfe", "ä", "%s"}
		r := j.argv(append([]string{"printf", "<%s>"}, words...)...)
		if want := "<" + strings.Join(words, "><") + ">"; r.stdout != want {
			t.Errorf("got %q, want %q", r.stdout, want)
		}
		// A flag after the command is the command's.
		if r := j.argv("echo", "--json", "-p", "read-only"); r.stdout != "--json -p read-only\n" {
			t.Errorf("got %q", r.stdout)
		}
		if r := finishCommand(t, j.command("echo", "--json", "-v")); r.stdout != "--json -v\n" {
			t.Errorf("without --: got %q", r.all())
		}
		long := strings.Repeat("x", 100000)
		if r := j.argv("echo", long); r.stdout != long+"\n" {
			t.Errorf("a long word: %d bytes", len(r.stdout))
		}
		j.works(`echo '{"a":1}' | python3 -c 'import json,sys; print(json.load(sys.stdin)["a"] + '$((1+1))')'`, "3")
	})
}

// Stopping and going on, of a command in a pipeline on a terminal.
func TestStopped(t *testing.T) {
	need.Program(t, "bash")
	providers(t, func(t *testing.T, j *jail) {
		adopt(t)
		run := strings.Join(j.command("--").Args, " ")
		outer := commandIn(j.w, "bash", "--norc", "-i")
		outer.Env = append(append([]string{}, j.env...), "PS1=OUTER> ")
		s := onScreen(t, outer, unix.Winsize{Row: 24, Col: 80})
		s.expect("OUTER> ")
		// In a script on the terminal: the status of the last of a pipeline.
		s.send(run + " sh -c 'echo one; echo two >&2; exit 3' | cat; echo ${PIPESTATUS[0]}\n")
		s.expect("\n")
		s.expect("3\r\n")
		s.expect("OUTER> ")
		// Stopped from outside and continued.
		s.send(run + " sh -c 'echo ready; sleep 1; echo done'\n")
		s.expect("\n")
		s.expect("ready")
		pid := 0
		for _, p := range offspring() {
			if p.parent == outer.Process.Pid {
				pid = p.pid
			}
		}
		_ = syscall.Kill(pid, syscall.SIGTSTP)
		s.expect("Stopped")
		s.expect("OUTER> ")
		s.send("stty -a | grep -o ' icanon'; fg >/dev/null\n")
		s.expect("\n")
		s.expect(" icanon") // the shell has its terminal back as it was
		s.expect("done")
		s.expect("OUTER> ")
		s.send("exit\n")
		if got := s.wait(); got != 0 {
			t.Errorf("exit %d", got)
		}
		nothingLeft(t, 0)
	})
}

// Many runs leave nothing: no process, no mount, no file, in the workspace,
// beside it, among Tether's own, or among the temporary ones.
func TestSoak(t *testing.T) {
	n := 200
	if testing.Short() {
		n = 20
	}
	providers(t, func(t *testing.T, j *jail) {
		adopt(t)
		j.plant(".env", "sub/.env")
		j.mustHost("git init -q . && git add sub -f && git commit -qm x")
		temporary := filepath.Join(j.out, "tmp")
		if err := os.Mkdir(temporary, 0o777); err != nil {
			t.Fatal(err)
		}
		_ = os.Chmod(temporary, 0o777)
		j.env = append(j.env, "TMPDIR="+temporary)
		scripts := []string{"true", "false", "cat sub/.env", "sleep 60 & true", "kill -9 $$", "echo x > f && rm f", "git status --porcelain", "exit 3"}
		once := func(i int) {
			cmd := j.command("--", "sh", "-c", scripts[i%len(scripts)])
			if i%len(scripts) == 7 {
				cmd = j.command("--json", "--timeout", "20ms", "--", "sleep", "60")
			}
			r := finishCommand(t, cmd)
			j.noSecret(r)
			if r.exit == exitOurs {
				t.Fatalf("run %d: %s", i, r.all())
			}
		}
		for i := range len(scripts) {
			once(i)
		}
		files := func() (all []string) {
			_ = filepath.WalkDir(filepath.Dir(j.w), func(path string, d os.DirEntry, err error) error {
				// The last entry of a run stays for some seconds, for others
				// that search at the same time.
				if err == nil && !strings.HasPrefix(d.Name(), "end-") {
					all = append(all, path+"\n")
				}
				return nil
			})
			return all
		}
		before, mounted := strings.Join(files(), ""), mounts(t)
		for i := range n {
			once(i)
		}
		nothingLeft(t, 0)
		if d := difference(before, strings.Join(files(), "")); d != "" {
			t.Errorf("after %d runs files differ%s", n, d)
		}
		if got := mounts(t); got != mounted {
			t.Errorf("%d mounts, want %d", got, mounted)
		}
		if left := living(filepath.Dir(j.w)); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	})
}

// Without a sandbox, too, a run keeps hold of its whole tree: the time limit
// ends it, its end ends it, and so does ours.
func TestTreeWithoutSandbox(t *testing.T) {
	j := newJail(t, "auto")
	adopt(t)
	tree := func(tag string) string {
		return "trap '' TERM; setsid sleep " + tag + " & (setsid sh -c 'trap \"\" TERM; sleep " + tag + "; sleep " + tag + "' &) ; echo ready; "
	}
	for _, c := range []struct {
		name, last string
		exit       int
	}{{"limit", "sleep 60; sleep 60", 124}, {"end", "exit 3", 3}} {
		tag := seconds(300)
		r := finishCommand(t, j.command("--no-sandbox", "--timeout", "500ms", "--", "sh", "-c", tree(tag)+c.last))
		if r.exit != c.exit || !strings.Contains(r.stdout, "ready") {
			t.Errorf("%s: exit %d: %s; want %d", c.name, r.exit, r.all(), c.exit)
		}
		nothingLeft(t, 0)
		if left := living(tag); len(left) > 0 {
			t.Errorf("%s: left behind: %v", c.name, left)
		}
	}
	tag := seconds(300)
	cmd := j.command("--no-sandbox", "--", "sh", "-c", tree(tag)+"sleep "+tag)
	startLines(t, cmd)("ready")
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	nothingLeft(t, 2*time.Second)
}
