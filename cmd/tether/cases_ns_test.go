package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tether-sandbox/tether"
	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/need"
	"github.com/tether-sandbox/tether/policy"
)

// EC-050: writes outside the workspace.
func TestEC050(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		// A name that does no harm, should it ever appear; it is removed then.
		name := filepath.Base(filepath.Dir(j.w))
		dirs := []string{"/usr", "/etc", "/opt", "/srv", "/var", "/boot", "/root", "/var/lib", "/usr/local/bin", "/", j.out}
		script := ""
		for _, d := range dirs {
			path := filepath.Join(d, name)
			t.Cleanup(func() { _ = os.RemoveAll(path) })
			script += fmt.Sprintf("touch %s && echo WROTE %[1]s; mkdir %[1]s && echo WROTE %[1]s\n", path)
			// The control asks and does not write: these are the real ones.
			if os.Geteuid() == 0 && d != "/boot" {
				j.opens("test -w "+d+" && echo YES", "YES")
			}
		}
		j.opens("test -w $OUT && echo YES", "YES")
		for _, flags := range [][]string{nil, {"--allow-read", j.out}, {"-p", "read-only", "--commands", "any"}} {
			if r := j.stays(script, "WROTE", flags...); strings.Count(r.stderr, "annot") < len(dirs) {
				t.Errorf("flags %q: only %q", flags, r.stderr)
			}
			for _, d := range dirs {
				j.absent(filepath.Join(d, name))
			}
		}
		j.works("touch here && echo WROTE", "WROTE")
	})
}

// EC-051: root remounts, and turns the kernel's knobs.
func TestEC051(t *testing.T) {
	need.Root(t)
	providers(t, func(t *testing.T, j *jail) {
		j.systemPath()
		const knob = `python3 -c 'import os
for f in ("kernel/core_pattern", "kernel/modprobe", "vm/drop_caches", "user/max_user_namespaces", "fs/binfmt_misc/register"):
    try: os.open("/proc/sys/"+f, os.O_WRONLY); print("OPENED", f)
    except OSError as e: print(e)
for f in ("/proc/sysrq-trigger", "/sys/kernel/uevent_helper", "/sys/power/state", "/dev/kmsg", "/dev/mem"):
    try: os.open(f, os.O_WRONLY); print("OPENED", f)
    except OSError as e: print(e)'`
		j.opens(knob, "OPENED kernel/core_pattern")
		r := j.stays(knob, "OPENED")
		if strings.Count(r.stdout, "Errno") != 10 {
			t.Errorf("the knobs were not all tried: %s", r.all())
		}
		const remount = "mount -o remount,bind,rw / && test -w /etc && echo REMOUNTED"
		if r := j.inMountsHost("mount -o remount,bind,ro /", remount); !strings.Contains(r.stdout, "REMOUNTED") {
			t.Fatalf("control: root must be able to remount: %s", r.all())
		}
		j.stays(remount, "REMOUNTED")
		j.stays("for m in /usr /etc / /proc/sys; do mount -o remount,rw,bind $m && echo REMOUNTED; done", "REMOUNTED")
	})
}

// EC-052: a nested user namespace as attack surface. The documented answer is
// that there is none.
func TestEC052(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.systemPath()
		for _, c := range []string{"unshare -Ur", "unshare -Urn", "unshare -Urm", "unshare -Urp --fork", "unshare -UrC"} {
			j.closed(c+" true && echo MADE", "MADE")
		}
		// By clone and by clone3, whose flags a filter cannot see.
		for _, call := range []string{"56, 0x10000000|17, 0, 0, 0, 0", "435, (ctypes.c_uint64*11)(0x10000000,0,0,0,17), 88"} {
			j.closed(fmt.Sprintf(`python3 -c 'import ctypes, os
pid = ctypes.CDLL(None).syscall(%s)
if pid == 0: os._exit(0)
print("MADE" if pid > 0 else "refused")'`, call), "MADE")
		}
		if j.provider == "native" {
			j.works("cat /proc/sys/user/max_user_namespaces /proc/sys/user/max_mnt_namespaces | tr '\\n' ' '", "0 0")
		}
	})
}

// EC-053: other processes.
func TestEC053(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.systemPath()
		victim := hostProcess(t, "sleep", "60")
		pid := strconv.Itoa(victim.Process.Pid)
		alive := func() {
			t.Helper()
			if _, err := os.Stat("/proc/" + pid + "/exe"); err != nil {
				t.Fatal("the host's process is gone")
			}
		}
		j.opens("kill -0 "+pid+" && echo SEEN; grep -az PATH= /proc/"+pid+"/environ >/dev/null && echo READ", "READ")
		j.stays("kill -0 "+pid+" && echo SEEN; kill -9 "+pid+" && echo SEEN; cat /proc/"+pid+"/environ && echo READ", "SEEN")
		alive()
		// Everything that it may signal, but only where that is not us.
		outside, err := os.Readlink("/proc/self/ns/pid")
		if err != nil {
			t.Fatal(err)
		}
		r := j.run(`[ "$(readlink /proc/self/ns/pid)" = "` + outside + `" ] || { kill -9 -1; echo after; }`)
		if !strings.Contains(r.stdout, "after") {
			t.Errorf("kill -9 -1: exit %d, %q", r.exit, r.all())
		}
		alive()
		r = j.run("ls /proc | grep -c '^[0-9]'")
		if n, err := strconv.Atoi(strings.TrimSpace(r.stdout)); err != nil || n > 5 {
			t.Errorf("%q processes to be seen, want own ones only", r.stdout)
		}
		tracer := `python3 -c 'import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
pid = int(sys.argv[1])
print("ATTACHED" if libc.ptrace(16, pid, 0, 0) == 0 else "refused")
buf = ctypes.create_string_buffer(8)
class iov(ctypes.Structure): _fields_ = [("p", ctypes.c_void_p), ("n", ctypes.c_size_t)]
mine = iov(ctypes.cast(buf, ctypes.c_void_p), 8)
for line in open("/proc/%d/maps" % pid):
    theirs = iov(int(line.split("-")[0], 16), 8); break
print("READ" if libc.process_vm_readv(pid, ctypes.byref(mine), 1, ctypes.byref(theirs), 1, 0) > 0 else "refused")' `
		j.opens(tracer+pid, "READ")
		j.stays(tracer+pid, "READ")
		j.stays(tracer+"1", "ATTACHED")
		j.stays("cat /proc/1/mem /proc/1/environ /proc/1/maps | head -c 1 | wc -c; ls -l /proc/1/exe /proc/1/root /proc/1/cwd /proc/1/fd && echo SEEN", "SEEN")
		alive()
		if _, err := exec.LookPath("gdb"); err == nil {
			j.stays("gdb -batch -nx -p "+pid+" -ex 'info proc' 2>&1", "process "+pid+"\n")
		}
	})
}

// EC-055: an inherited directory descriptor.
func TestEC055(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.systemPath()
		j.write(filepath.Join(j.out, "f"), j.secret)
		const list = "for fd in /proc/self/fd/*; do readlink $fd; cat $fd/f; done"
		inherited := func(cmd *exec.Cmd) result {
			dir, err := os.Open(j.out)
			if err != nil {
				t.Fatal(err)
			}
			defer dir.Close()
			cmd.ExtraFiles = []*os.File{dir, dir, nil, dir} // 3, 4 and 6
			return finishCommand(t, cmd)
		}
		if r := inherited(exec.Command("sh", "-c", list)); !strings.Contains(r.stdout, j.secret) {
			t.Fatalf("control: the descriptor must be inherited without Tether: %s", r.all())
		}
		r := j.built(inherited(j.command("--", "sh", "-c", list)))
		j.noSecret(r)
		r = j.built(inherited(j.command("--", "python3", "-c", `import os
print([n for n in range(1, 4096) if n > 2 and os.path.exists("/proc/self/fd/%d" % n) and os.readlink("/proc/self/fd/%d" % n) != "/proc/self/fd"])`)))
		if got := strings.TrimSpace(r.stdout); got != "[]" {
			t.Errorf("descriptors besides 0, 1 and 2: %s %s", got, r.stderr)
		}
		// A path descriptor that its holder did not mark to be closed.
		hold := `import os, sys
fd = os.open(sys.argv[1], os.O_PATH); os.set_inheritable(fd, True); os.dup2(fd, 77, True)
os.execvp(sys.argv[2], sys.argv[2:])`
		cmd := j.command("--", "sh", "-c", "cat /proc/self/fd/77/f /proc/1/fd/77/f; ls /proc/self/fd")
		j.noSecret(j.built(finishCommand(t, &exec.Cmd{Path: need.Program(t, "python3"), Env: cmd.Env, Dir: cmd.Dir,
			Args: append([]string{"python3", "-c", hold, j.out}, cmd.Args...)})))
	})
}

// EC-058: set-up must not follow a link of the workspace onto the host.
func TestEC058(t *testing.T) {
	shapes := map[string]string{
		"links": "ln -s %s .git; mkdir real; echo x >real/.env; ln -s %s sub; ln -s %s .vscode; ln -s %s .husky; " +
			"ln -s %s .claude; ln -s %s .mcp.json; ln -s %s/.env .env; ln -s %s .ssh; ln -s %s/x.pem x.pem",
		"policy": "ln -s %s .tether", // refused, since it would speak for the user
		"repository": "git init -q; rm -rf .git/hooks; ln -s %s .git/hooks; ln -s %s/info .git/info2; ln -s %s/worktrees .git/worktrees; " +
			"ln -s %s .git/modules; rm .git/config; ln -s %s/config .git/config",
	}
	for name, shape := range shapes {
		for _, prefix := range []string{"/oldroot", "/newroot", ""} {
			t.Run(name+prefix, func(t *testing.T) {
				providers(t, func(t *testing.T, j *jail) {
					j.mustHost(strings.ReplaceAll(shape, "%s", prefix+"$OUT"))
					before := j.mustHost("find $OUT . | sort").stdout
					for _, script := range []string{"true", "mkdir -p .git/hooks sub .ssh; echo x >.git/hooks/pre-commit; echo x >.git/config; echo x >sub/.env"} {
						r := finishCommand(t, j.command("--", "sh", "-c", script))
						if r.exit == exitOurs && !strings.Contains(r.stderr, "hint:") && !strings.Contains(r.stderr, "tether: ") {
							t.Errorf("refused without a word: %s", r.all())
						}
						if got := j.mustHost("find $OUT").stdout; got != j.out+"\n" {
							t.Errorf("%q made something outside: %s", script, got)
						}
						if script == "true" {
							if r.exit != 0 && (name != "policy" || !strings.Contains(r.stderr, "POLICY_INVALID")) {
								t.Errorf("did not start: %s", r.all())
							}
							if after := j.mustHost("find $OUT . | sort").stdout; after != before {
								t.Errorf("the workspace changed from %s to %s", before, after)
							}
						}
					}
				})
			})
		}
	}
}

// EC-059: resource bombs, in sizes that harm nobody if a limit fails.
func TestEC059(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.systemPath()
		const bomb = "i=0; while [ $i -lt 150 ]; do sleep 2 >/dev/null & i=$((i+1)); done 2>&1; echo made $i"
		j.opens(bomb, "made 150")
		r := j.run(bomb, "--max-procs", "40")
		if strings.Contains(r.all(), "made 150") && !strings.Contains(r.all(), "ork") {
			t.Errorf("150 processes under a limit of 40: %s", r.all())
		}
		if r.took > 10*time.Second {
			t.Errorf("took %s", r.took)
		}
		// A file in each place that is writable.
		for _, dir := range []string{"/tmp", "/dev/shm", "$HOME", "/var/tmp", "."} {
			fill := "dd if=/dev/zero of=" + dir + "/f bs=64k count=64 && echo FILLED; rm -f " + dir + "/f"
			j.works(fill, "FILLED")
			r := j.run(fill, "--max-file-size", "1M")
			if strings.Contains(r.stdout, "FILLED") {
				t.Errorf("%s: 4 MiB written under a limit of 1 MiB", dir)
			}
		}
		// What nobody ends by itself, the time limit ends.
		r = j.run("while :; do :; done & while :; do :; done", "--timeout", "300ms")
		if r.exit != 124 || r.took > 10*time.Second {
			t.Errorf("endless loops: exit %d after %s: %s", r.exit, r.took, r.all())
		}
	})
}

// EC-060: core dumps.
func TestEC060(t *testing.T) {
	pattern, err := os.ReadFile("/proc/sys/kernel/core_pattern")
	if err != nil {
		t.Fatal(err)
	}
	providers(t, func(t *testing.T, j *jail) {
		j.systemPath()
		const abort = "ulimit -c unlimited; ulimit -Hc unlimited; python3 -c 'import os; os.abort()'; ls"
		if plain := string(pattern); !strings.ContainsAny(plain, "|/%") {
			if j.opens("ulimit -c unlimited; python3 -c 'import os; os.abort()'; ls", "core"); t.Failed() {
				return
			}
			j.mustHost("rm -f core*")
		}
		r := j.run(abort)
		if strings.Contains(r.stdout, "core") {
			t.Errorf("a core file: %s", r.all())
		}
		if got := j.mustHost("ls -A").stdout; got != "" {
			t.Errorf("left in the workspace: %s", got)
		}
		// 1 and not 0: the kernel starts a handler behind a pipe whatever the
		// limit is, unless it is 1.
		const limits = `python3 -c 'import resource as r; r.setrlimit(r.RLIMIT_CORE, (0, 0)); print(r.getrlimit(r.RLIMIT_CORE), r.getrlimit(r.RLIMIT_NOFILE)[0] > 16)'`
		j.works("ulimit -c 0; ulimit -Hc 0; "+limits, "(1, 1) True")
	})
}

// EC-061: the home comes from the account database, not from $HOME.
func TestEC061(t *testing.T) {
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	providers(t, func(t *testing.T, j *jail) {
		// A file of its own name in the real home, gone afterwards.
		mark, err := os.CreateTemp(me.HomeDir, ".tether-case-")
		if err != nil {
			t.Skipf("need: a home that can be written: %v", err)
		}
		t.Cleanup(func() { os.Remove(mark.Name()) })
		_, _ = mark.WriteString(j.secret)
		_ = mark.Chmod(0o644)
		mark.Close()
		read := "cat " + mark.Name() + "; ls -a " + me.HomeDir
		for _, home := range []string{"HOME=/nonexistent", "HOME=" + j.out, "HOME=", "HOME=/", "none", "XDG_CONFIG_HOME=" + j.out} {
			t.Run(home, func(t *testing.T) {
				k := *j
				k.t, k.env = t, append([]string{}, j.env...)
				name, value, ok := strings.Cut(home, "=")
				if ok {
					k.set(name, value)
				} else {
					k.set("HOME", "")
					k.env = append(k.env[:1], k.env[2:]...)
				}
				r := k.closed(read, j.secret)
				if strings.Contains(r.stdout, filepath.Base(mark.Name())) {
					t.Errorf("the home is listed: %s", r.stdout)
				}
			})
		}
	})
}

// EC-061, continued: homes that lie in odd places, in an account database of
// the test's own.
func TestEC061Accounts(t *testing.T) {
	need.Root(t)
	const accounts = `
{ cat /etc/passwd; echo "odd:x:4242:4242::/data/odd:/bin/sh"; echo "opt:x:4243:4243::/opt/homes/opt:/bin/sh"
  echo "link:x:4244:4244::/var/lib/link:/bin/sh"; echo "low:x:642:642::/opt/low:/bin/sh"; } >$OUT/passwd
mount --bind $OUT/passwd /etc/passwd
mount -t tmpfs t /opt; mount -t tmpfs t /srv; mount -t tmpfs t /var/opt
mkdir -p /opt/homes/opt/proj /opt/low /srv/real/w /opt/plain
for d in /opt/homes/opt /opt/low /srv/real /opt/homes/opt/proj; do echo "$SECRET" >$d/.netrc; chmod 755 $d; done
echo shown >/opt/plain/f
mount --bind /srv/real /var/opt
`
	providers(t, func(t *testing.T, j *jail) {
		files := "cat /opt/homes/opt/.netrc /opt/homes/opt/proj/.netrc /opt/low/.netrc"
		if r := j.inMountsHost(accounts, files); strings.Count(r.stdout, j.secret) != 3 {
			t.Fatalf("control: %s", r.all())
		}
		// The account below uid 1000 counts when it is whose rights sudo lent.
		j.set("SUDO_USER", "low")
		r := j.inMounts(accounts, files+" /opt/plain/f; ls -a /opt/homes/opt")
		j.noSecret(r)
		if !strings.Contains(r.stdout, "shown") || strings.Contains(r.stdout, "proj") {
			t.Errorf("got %q, want the rest of the folder and nothing of the home", r.all())
		}
		// A workspace in such a home shows itself and nothing around it.
		k := *j
		k.w = "/opt/homes/opt/proj"
		own := "chown -R 54321:54321 /opt/homes/opt/proj\n"
		if j.provider == "native" {
			own = ""
		}
		cmd := j.inMountsCommand(accounts+own+"cd "+k.w, "cat .netrc ../.netrc; ls -a ..; touch t && echo WROTE", "-C", k.w)
		r = j.built(finishCommand(t, cmd))
		if strings.Count(r.stdout, j.secret) != 1 || !strings.Contains(r.stdout, "WROTE") {
			t.Errorf("a workspace in a home inside /opt: exit %d: %s", r.exit, r.all())
		}
	})
}

// EC-063: the workspace is a home, an ancestor of one, or /.
func TestEC063(t *testing.T) {
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	refused := func(t *testing.T, r result) {
		t.Helper()
		if r.exit != exitOurs || !strings.Contains(r.stderr, "tether: "+string(fault.SandboxBadWorkspace)) || !strings.Contains(r.stderr, "hint: ") {
			t.Errorf("exit %d, %q; want SANDBOX_BAD_WORKSPACE with a hint", r.exit, r.stderr)
		}
		if strings.Contains(r.stdout, "RAN") {
			t.Error("the command ran")
		}
	}
	providers(t, func(t *testing.T, j *jail) {
		j.mustHost("ln -s / $OUT/slash; ln -s " + me.HomeDir + " $OUT/home")
		for _, w := range []string{me.HomeDir, filepath.Dir(me.HomeDir), "/home", "/", "/tmp", "/root", "/etc", "/proc", "/dev/shm",
			"/proc/self/cwd/../..", j.out + "/slash", j.out + "/home", j.out + "/slash/home", "//", "/usr/..", j.w + "/none", "/sys/kernel",
			me.HomeDir + "/."} {
			refused(t, finishCommand(t, j.command("-C", w, "--", "echo", "RAN")))
		}
		// A folder that merely begins like one, and one in a home, are fine.
		j.works("echo RAN", "RAN")
		if os.Geteuid() != 0 {
			dir, err := os.MkdirTemp(me.HomeDir, ".tether-case-")
			if err != nil {
				t.Skip(err)
			}
			t.Cleanup(func() { os.RemoveAll(dir) })
			r := finishCommand(t, j.command("-C", dir, "--", "sh", "-c", "echo RAN; ls -A .. | grep tether-case"))
			want := "RAN\n" + filepath.Base(dir) + "\n"
			if j.provider == "landlock" {
				want = "RAN\n" // the folder around it cannot be listed
			}
			if r.stdout != want {
				t.Errorf("a workspace in the home: got %q (%s), want %q", r.stdout, r.stderr, want)
			}
		}
	})
	t.Run("alias", func(t *testing.T) {
		need.Root(t)
		j := newJail(t, "native")
		setup := "mount -t tmpfs t /srv; mkdir /srv/home /srv/all /srv/up; mount --bind " + me.HomeDir + " /srv/home; mount --bind / /srv/all; mount --bind /home /srv/up"
		for _, w := range []string{"/srv/home", "/srv/all", "/srv/all/home", "/srv/up", "/srv/all" + me.HomeDir} {
			refused(t, finishCommand(t, j.inMountsCommand(setup, "echo RAN", "-C", w)))
		}
	})
}

// EC-064: the folder that a call names never moves a root. The command line has
// no such flag; the library has.
func TestEC064(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.mustHost("ln -s $OUT link-to-out; mkdir -p sub $OUT/other; ln -s sub in")
		j.own()
		pol := policy.Default(j.w)
		if j.provider == "landlock" {
			pol.Accept = map[policy.Guarantee]policy.Grade{policy.Read: policy.Partial, policy.Write: policy.Partial, policy.Process: policy.Partial,
				policy.Secrets: policy.None, policy.NetworkGuarantee: policy.Partial}
		}
		s, err := tether.Open(context.Background(), tether.Options{Policy: pol, Provider: j.provider, Environ: j.env})
		if err != nil {
			t.Fatal(err)
		}
		run := func(dir string) (tether.Result, error) {
			return s.Run(context.Background(), tether.Command{Args: []string{"sh", "-c", "pwd; touch p && echo WROTE"}, Dir: dir})
		}
		for dir, want := range map[string]string{"": j.w, "sub": j.w + "/sub", j.w + "/sub": j.w + "/sub", "in": j.w + "/sub", "sub/..": j.w} {
			res, err := run(dir)
			if err != nil || res.Stdout != want+"\nWROTE\n" {
				t.Errorf("Dir %q: got %q, %v; want it to run in %s", dir, res.Stdout, err, want)
			}
		}
		for _, dir := range []string{"/", "/home", "/etc", "/tmp", j.w + "/../out", "../out", "link-to-out", j.w + "/link-to-out/other",
			"sub/../../out", "/proc/self/cwd/../out", "none", ".env"} {
			res, err := run(dir)
			if fault.CodeOf(err) != fault.SandboxViolation || res.Stdout != "" {
				t.Errorf("Dir %q: got %q, %v; want %s", dir, res.Stdout, err, fault.SandboxViolation)
			}
		}
		j.absent(j.out + "/p")
		j.absent(j.out + "/other/p")
	})
}

// EC-065: terminal input injection.
func TestEC065(t *testing.T) {
	need.Program(t, "script")
	providers(t, func(t *testing.T, j *jail) {
		j.systemPath()
		inject := j.write("inject.py", `import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
fd = os.open("/dev/tty", os.O_RDWR) if sys.argv[1:] == ["tty"] else 0
for name, request in ("TIOCSTI", 0x5412), ("TIOCSTI+2^32", 0x5412 | 1 << 32), ("TIOCLINUX", 0x541C), ("TIOCLINUX+2^40", 0x541C | 1 << 40):
    r = libc.syscall(16 if os.uname().machine == "x86_64" else 29, ctypes.c_long(fd), ctypes.c_long(request), ctypes.c_char_p(b"\x03"[:1] if request & 0xffff == 0x541C else b"Z"))
    print(name, "DONE" if r == 0 else os.strerror(ctypes.get_errno()))
`)
		terminal := func(words ...string) result {
			cmd := exec.Command("script", "-qec", strings.Join(words, " "), "/dev/null")
			cmd.Env, cmd.Dir = append(append([]string{}, j.env...), "SHELL=/bin/sh"), j.w
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			cmd.Stdin = r
			defer w.Close()
			defer r.Close()
			return finishCommand(t, cmd)
		}
		control := terminal("python3", inject)
		if !strings.Contains(control.stdout, "TIOCSTI DONE") {
			need.Missing(t, "tiocsti", "the kernel injects nothing: "+control.all())
		}
		for _, how := range []string{"", "tty"} {
			words := j.command("--", "python3", "inject.py", how).Args
			if how == "" {
				words = words[:len(words)-1]
			}
			r := terminal(words...)
			if strings.Contains(r.stdout, "DONE") || strings.Count(r.stdout, "Operation not permitted") != 4 {
				t.Errorf("%s: %s", how, r.all())
			}
		}
	})
}

// EC-069: privilege tools.
func TestEC069(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.works("grep NoNewPrivs /proc/self/status", "NoNewPrivs:\t1")
		if os.Geteuid() == 0 {
			j.opens("mknod n c 1 3 && echo MADE; rm -f n", "MADE")
			j.opens("sudo -n id; rm -f n", "uid=0")
			j.opens("cat /etc/shadow", "root:")
		}
		r := j.run("for c in 'su -c id' 'sudo -n id' 'pkexec id' 'sg root id' 'newgrp root'; do timeout 5 $c </dev/null; done; mknod n c 1 3 && echo MADE; mknod b b 8 0 && echo MADE; cat /etc/shadow")
		// As real root the command believes to be uid 0 and owns nothing.
		if strings.Contains(r.stdout, "MADE") || strings.Contains(r.stdout, "root:") || os.Geteuid() != 0 && strings.Contains(r.stdout, "uid=0") {
			t.Errorf("got %s", r.all())
		}
		j.stays("cp /bin/sh s && chmod 4755 s && ./s -p -c 'cat /etc/shadow'; chmod 4755 s; ls -l /usr/bin/su; su -c 'cat /etc/shadow' </dev/null", "root:")
		j.stays("python3 -c 'import os; os.setuid(0); os.setgroups([0]); print(\"SET\")'", "SET")
	})
}
