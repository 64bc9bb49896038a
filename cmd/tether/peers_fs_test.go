package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/need"
)

// foreign says that root runs the tests through bwrap, whose commands run as
// the workspace's owner and not as root.
func (j *jail) foreign() bool { return os.Geteuid() == 0 && j.provider == "bwrap" }

// give hands a folder outside of the workspace to whoever the command runs as.
func (j *jail) give(path string) {
	j.t.Helper()
	if j.foreign() {
		j.mustHost(fmt.Sprintf("chown -R %d:%[1]d %s", foreignUID, path))
	}
}

// Reading the system's folders needs no grant.
func TestSystemIsReadable(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		for _, dir := range []string{"/usr", "/etc", "/usr/bin", "/usr/lib", "/bin", "/lib"} {
			if r := j.run("ls " + dir); r.exit != 0 || len(r.stdout) < 10 {
				t.Errorf("ls %s: exit %d, %s", dir, r.exit, r.all())
			}
		}
		j.works("cat /etc/passwd", "root:")
		j.works("cat /proc/self/environ | tr '\\0' '\\n'", "TETHER=1")
	})
}

// A minimal /dev works under every profile.
func TestDevices(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		for _, flags := range [][]string{nil, {"-p", "read-only", "--commands", "any"}} {
			j.works("for d in null zero full random urandom tty; do test -c /dev/$d || echo MISSING $d; done; echo x >/dev/null && "+
				"head -c 3 /dev/zero | wc -c && head -c 3 /dev/urandom | wc -c && echo fine", "3\n3\nfine", flags...)
			j.stays("for d in null zero full random urandom tty; do test -c /dev/$d || echo MISSING $d; done", "MISSING", flags...)
			j.stays("echo x >/dev/full && echo WROTE; touch /dev/new && echo WROTE; rm -f /dev/null && echo WROTE", "WROTE", flags...)
		}
		// Nothing else of the machine's.
		j.stays("ls /dev; cat /dev/kmsg /dev/mem /dev/vda /dev/sda /dev/input/event0 2>/dev/null | head -c1; test -e /dev/kvm && echo kvm; "+
			"test -e /dev/fuse && echo fuse; find /dev -type b | grep . && echo block", "block")
	})
}

// Shared memory is private, unless the host's is asked for by name.
func TestSharedMemoryOfTheHost(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		name := "/dev/shm/" + filepath.Base(filepath.Dir(j.w))
		t.Cleanup(func() { os.Remove(name) })
		j.works("touch "+name+" && echo made", "made")
		j.absent(name)
		j.works("touch "+name+" && echo made", "made", "--allow-write", "/dev/shm")
		if _, err := os.Stat(name); err != nil {
			t.Errorf("the write did not reach the host: %v", err)
		}
	})
}

// Added roots: written, read, missing, nested, and next to each other.
func TestAddedRoots(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		for _, f := range []string{"rw/f", "ro/f", "ro/rw/f", "rw/ro/f", "hidden/f", "hidden/rw/f"} {
			j.write(filepath.Join(j.out, f), "text\n")
		}
		j.write(filepath.Join(j.out, "rw/.env"), j.secret)
		j.write(filepath.Join(j.out, "ro/rw/deep/tls.key"), j.secret)
		j.give(j.out)
		o := j.out
		flags := []string{"--allow-write", o + "/rw", "--allow-read", o + "/ro", "--allow-write", o + "/ro/rw",
			"--allow-read", o + "/rw/ro", "--allow-write", o + "/hidden/rw", "--allow-write", o + "/none", "--allow-read", o + "/none/too"}
		for path, want := range map[string]string{"rw/f": "read write", "ro/f": "read", "ro/rw/f": "read write", "rw/ro/f": "read",
			"hidden/f": "", "hidden/rw/f": "read write", "none/f": ""} {
			p := o + "/" + path
			r := j.run(fmt.Sprintf("cat %s >/dev/null 2>&1 && echo read; echo text 2>/dev/null >%[1]s && echo write", p), flags...)
			if got := strings.Join(strings.Fields(r.stdout), " "); got != want {
				t.Errorf("%s: got %q, want %q (%s)", path, got, want, r.stderr)
			}
		}
		// What is protected is so in every root, also below a nested one.
		r := j.run(fmt.Sprintf("cat %s/rw/.env %[1]s/ro/rw/deep/tls.key; echo x >%[1]s/rw/.env; mv %[1]s/ro/rw/deep %[1]s/ro/rw/d; cat %[1]s/ro/rw/d/tls.key", o), flags...)
		j.noSecret(r)
		// Folders above a root that is shown say nothing of what else they hold.
		j.stays("ls -a "+o+" "+o+"/hidden; touch "+o+"/new && echo hiddenWROTE", "f\n", flags...)
		j.absent(o + "/new")
		j.absent(o + "/none")
		if out := j.report("true", flags...); !strings.Contains(fmt.Sprint(out["report"]), "was left out") {
			t.Errorf("no note of the roots that are missing: %v", out["report"])
		}
		// Nothing is writable under read-only, whatever the order.
		j.stays("touch "+o+"/ro/x && echo WROTE", "WROTE", "-p", "read-only", "--commands", "any", "--allow-read", o+"/ro")
		j.absent(o + "/ro/x")
	})
}

// Patterns of the user's own hide and lock in every root.
func TestCarveOuts(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.plant("conf/prod.yml", "deep/a/b/prod.yml", "vault/x", "vault/sub/y", "certs/a.txt")
		j.write("keep.lock", "locked\n")
		j.write("sub/keep.lock", "locked\n")
		j.write(filepath.Join(j.out, "prod.yml"), j.secret)
		j.mustHost("ln -s conf/prod.yml link.yml; ln -s prod.yml conf/same.yml")
		flags := []string{"--protect", "prod.yml", "--protect", "vault", "--protect", "certs/*.txt", "--lock", "*.lock", "--allow-read", j.out}
		for _, c := range []string{"cat conf/prod.yml", "cat deep/a/b/prod.yml", "cat vault/x", "cat vault/sub/y", "cat certs/a.txt",
			"cat " + j.out + "/prod.yml", "cat link.yml", "cat conf/same.yml", "mv vault v2; cat v2/x vault/x",
			"mv conf c2; cat c2/prod.yml conf/prod.yml", "mv c2 conf"} {
			if !strings.HasPrefix(c, "mv") {
				j.opens(c, j.secret)
			}
			j.noSecret(j.run(c, flags...))
		}
		for _, c := range []string{"echo x >keep.lock", "echo x >>sub/keep.lock", "rm -f keep.lock", "mv keep.lock k2", "touch n && mv -f n keep.lock",
			"sed -i s/l/m/ sub/keep.lock"} {
			if r := j.run(c, flags...); r.exit == 0 {
				t.Errorf("%s succeeded", c)
			}
			j.unchanged("keep.lock", "locked\n")
			j.unchanged("sub/keep.lock", "locked\n")
		}
		j.works("cat keep.lock && echo x >free", "locked", flags...)
	})
}

// Roots and the workspace by way of links.
func TestLinkedRoots(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.write(filepath.Join(j.out, "target/f"), "text\n")
		j.write(filepath.Join(j.out, "target/.env"), j.secret)
		j.write(filepath.Join(j.out, "other/f"), j.secret)
		j.mustHost("ln -s $OUT/target $OUT/link; ln -s $OUT/other planted; mkdir in; ln -s in inner; ln -s nowhere $OUT/broken; ln -s loop $OUT/loop; ln -s $OUT w2; ln -s w2 w3")
		j.give(j.out)
		// A link of the user's own is followed, once, and what it leads to is
		// a root like any other.
		j.works("cat "+j.out+"/target/f && touch "+j.out+"/target/new", "text", "--allow-write", j.out+"/link")
		j.works("cat "+j.out+"/target/f", "text", "--allow-write", j.out+"/link/")
		j.noSecret(j.run("cat "+j.out+"/target/.env "+j.out+"/link/.env", "--allow-read", j.out+"/link"))
		// A link that a command can have planted is not.
		for _, link := range []string{"planted", "planted/", "./planted", "in/../planted", "w2/other", "w3/other", "inner/../planted"} {
			for _, flag := range []string{"--allow-read", "--allow-write"} {
				cmd := j.command(flag, j.w+"/"+link, "--", "sh", "-c", "cat "+j.out+"/other/f planted/f")
				r := finishCommand(t, cmd)
				j.noSecret(r)
				if r.exit != exitOurs || !strings.Contains(r.stderr, string(fault.SandboxViolation)) || !strings.Contains(r.stderr, j.out+"/other") {
					t.Errorf("%s %s: exit %d, %q; want it refused, with the target named", flag, link, r.exit, r.stderr)
				}
			}
		}
		j.works("echo RAN", "RAN", "--allow-write", j.w+"/inner", "--allow-read", j.out+"/broken", "--allow-read", j.out+"/loop")
		// A linked workspace is the one it leads to.
		j.mustHost("ln -s $W $OUT/ws")
		r := finishCommand(t, j.command("-C", j.out+"/ws", "--", "sh", "-c", "pwd; touch here"))
		if r.stdout != j.w+"\n" || r.exit != 0 {
			t.Errorf("in a linked workspace: %q, exit %d", r.all(), r.exit)
		}
		if _, err := os.Stat(j.w + "/here"); err != nil {
			t.Error(err)
		}
		// Links inside that lead out lead nowhere.
		j.noSecret(j.closed("cat planted/f", j.secret))
		j.stays("touch planted/new && echo WROTE", "WROTE")
	})
}

// What the sandbox rests on cannot be asked for.
func TestRefusedRoots(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.mustHost("ln -s / $OUT/slash; ln -s /proc $OUT/proc")
		state := filepath.Join(j.state, "tether")
		for _, root := range []string{"/", "/proc", "/proc/self", "/dev", "/sys", "/sys/kernel", "/run", "//", "/usr/..", j.out + "/slash", j.out + "/proc"} {
			for _, flag := range []string{"--allow-read", "--allow-write"} {
				r := finishCommand(t, j.command(flag, root, "--", "sh", "-c", "echo RAN; ls -d /proc/[0-9]* | wc -l"))
				if r.exit != exitOurs || !strings.Contains(r.stderr, "tether: ") || !strings.Contains(r.stderr, "hint: ") || strings.Contains(r.stdout, "RAN") {
					t.Errorf("%s %s: exit %d, %q; want it refused with a hint", flag, root, r.exit, r.all())
				}
			}
		}
		// Tether's own files: never writable, and closed where they are shown.
		j.works("echo RAN", "RAN")
		j.mustHost("test -d " + state)
		for _, root := range []string{state, j.state, filepath.Dir(j.w)} {
			if r := finishCommand(t, j.command("--allow-write", root, "--", "echo", "RAN")); r.exit != exitOurs || !strings.Contains(r.stderr, "own files") {
				t.Errorf("--allow-write %s: exit %d, %q", root, r.exit, r.all())
			}
		}
		j.stays("ls "+state+" && echo LISTED; cat "+state+"/pending/*/* && echo LISTED", "LISTED", "--allow-read", j.state)
		k := *j
		k.set("XDG_STATE_HOME", j.w+"/.state")
		if r := finishCommand(t, k.command("--", "echo", "RAN")); r.exit != exitOurs || !strings.Contains(r.stderr, "XDG_STATE_HOME") {
			t.Errorf("state in the workspace: exit %d, %q", r.exit, r.all())
		}
		j.absent(".state")
		// A refusal leaves nothing to settle.
		if got := j.mustHost("find " + state + "/pending -type f").stdout; got != "" {
			t.Errorf("left behind: %s", got)
		}
	})
	t.Run("no account", func(t *testing.T) {
		need.Root(t)
		j := newJail(t, "native")
		j.systemPath()
		j.mustHost("chmod 777 .")
		cmd := j.command("--", "echo", "RAN")
		for i, kv := range cmd.Env {
			if strings.HasPrefix(kv, "XDG_STATE_HOME=") {
				cmd.Env = append(cmd.Env[:i:i], cmd.Env[i+1:]...)
				break
			}
		}
		become := append([]string{"python3", "-c", "import os, sys; os.setgroups([]); os.setgid(31337); os.setuid(31337); os.execv(sys.argv[1], sys.argv[1:])"}, cmd.Args...)
		cmd.Path, cmd.Args = need.Program(t, "python3"), become
		r := finishCommand(t, cmd)
		if r.exit != exitOurs || !strings.Contains(r.stderr, "XDG_STATE_HOME") {
			t.Errorf("without an account: exit %d, %q", r.exit, r.all())
		}
		if got := j.mustHost("ls -A").stdout; got != "" {
			t.Errorf("left in the workspace: %s", got)
		}
	})
}

// Nothing appears on the host by protecting what is not there.
func TestNoLitter(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.mustHost("git init -q repo; mkdir -p repo/sub plain")
		before := j.mustHost("find . -name .git -prune -o -print | sort; cd repo && git status --porcelain").stdout
		for _, c := range []string{"true", "false", "ls -la", "cd repo/sub && git status --porcelain"} {
			r := j.run(c, "--protect", "not-there", "--lock", "nor/this", "--allow-config", "absent")
			if strings.Contains(r.stdout, "??") {
				t.Errorf("%s sees new names: %s", c, r.stdout)
			}
		}
		if after := j.mustHost("find . -name .git -prune -o -print | sort; cd repo && git status --porcelain").stdout; after != before {
			t.Errorf("the workspace was %q and is %q", before, after)
		}
		for _, dir := range []string{"repo", "repo/sub", "plain"} {
			got := j.mustHost("ls -A " + dir).stdout
			for _, n := range []string{".codex", ".agents", ".tether", ".claude", ".env", ".bashrc"} {
				if strings.Contains(got, n) {
					t.Errorf("%s holds %s", dir, n)
				}
			}
		}
	})
}

// A subdirectory of a repository as the workspace: git finds its top, and
// nothing of it can be changed from there.
func TestWorkspaceBelowRepository(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.mustHost("git init -q; mkdir sub; echo x >sub/f; echo y >other; git add .; git commit -qm x")
		k := *j
		k.own()
		k.w = filepath.Join(j.w, "sub")
		r := k.run("git rev-parse --show-toplevel; git status --porcelain; git log --format=%s -1")
		if r.exit != 0 || r.stdout != j.w+"\nx\n" {
			// What lies beside the workspace is not shown, so git misses it.
			if !strings.HasPrefix(r.stdout, j.w+"\n") || !strings.HasSuffix(r.stdout, "x\n") || strings.Contains(r.stdout, "?? ") {
				t.Errorf("got exit %d: %s", r.exit, r.all())
			}
		}
		for _, c := range []string{"git config user.name x", "echo x >../.git/config", "echo x >../.git/hooks/pre-commit", "mv ../.git ../.git2",
			"echo x >../other", "rm -rf ../.git"} {
			if r := k.run(c); r.exit == 0 {
				t.Errorf("%s succeeded", c)
			}
		}
		j.unchanged("other", "y\n")
		j.mustHost("git fsck && git status")
	})
}

// Without a network, the usual clients fail, and fail at once.
func TestClientsOffline(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.systemPath()
		addr := listen(t, "tcp", "127.0.0.1:0").Addr().String()
		port := addr[strings.LastIndexByte(addr, ':')+1:]
		j.closed("bash -c 'cat </dev/tcp/127.0.0.1/"+port+"'", hostData, "--no-network")
		for _, c := range []string{"curl -s -m 3 http://127.0.0.1:" + port, "wget -q -T 3 -t 1 -O- http://127.0.0.1:" + port, "ping -c1 -W1 127.0.0.2",
			"nc -w 2 127.0.0.1 " + port, "ssh -o ConnectTimeout=2 -o BatchMode=yes -p " + port + " 127.0.0.1 true",
			"python3 -c 'import urllib.request; urllib.request.urlopen(\"http://192.0.2.1/\", timeout=3)'"} {
			prog, _, _ := strings.Cut(c, " ")
			if prog == "ping" {
				continue // a loopback of its own answers
			}
			r := j.run("command -v "+prog+" >/dev/null || exit 1; "+c, "--no-network")
			if r.exit == 0 {
				t.Errorf("%s: exit 0: %s", c, r.all())
			}
			if r.took.Seconds() > 8 {
				t.Errorf("%s took %s", c, r.took)
			}
		}
		j.works("cat /proc/net/dev | tail -n +3 | cut -d: -f1 | tr -d ' '", "lo\n", "--no-network")
		if r := j.run("tail -n +3 /proc/net/dev | wc -l", "--no-network"); strings.TrimSpace(r.stdout) != "1" {
			t.Errorf("%s interfaces, want one", r.stdout)
		}
	})
}

// A time limit is told as one, and not as a denial.
func TestTimeLimitIsNotADenial(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		out := j.report("echo before; sleep 20", "--timeout", "200ms")
		if out["timed_out"] != true || out["exit"] != float64(124) || out["outcome"] != "timed-out" || out["stdout"] != "before\n" ||
			len(out["denials"].([]any)) != 0 {
			t.Errorf("got %v", out)
		}
	})
}

// Home folders of people with links in them.
func TestLinkedHomes(t *testing.T) {
	need.Root(t)
	const setup = `mount -t tmpfs t /opt; mount -t tmpfs t /srv; mkdir -m 755 -p /opt/real /opt/deep/er /srv/data/h2
for d in /opt/real /opt/deep/er /srv/data/h2; do echo "$SECRET" >$d/.netrc; done
ln -s /opt/real /opt/link; ln -s /opt/deep /opt/way
{ cat /etc/passwd; echo "a:x:4242:4242::/opt/link:/bin/sh"; echo "b:x:4243:4243::/opt/way/er:/bin/sh"; echo "c:x:4244:4244::/srv/data/h2:/bin/sh"; } >$OUT/p
mount --bind $OUT/p /etc/passwd
`
	providers(t, func(t *testing.T, j *jail) {
		const read = "cat /opt/real/.netrc /opt/link/.netrc /opt/deep/er/.netrc /opt/way/er/.netrc /srv/data/h2/.netrc"
		if r := j.inMountsHost(setup, read); strings.Count(r.stdout, j.secret) != 5 {
			t.Fatalf("control: %s", r.all())
		}
		j.noSecret(j.inMounts(setup, read+"; ls -a /opt/real /opt/deep/er"))
	})
}

// Memory, descriptors and other processes are out of reach, and the launcher's
// own processes too.
func TestLaunchersAreOutOfReach(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.systemPath()
		j.plant(".env")
		j.stays(`python3 -c '
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
for f in ("mem", "maps", "environ", "auxv", "stack", "syscall", "io"):
    try:
        if open("/proc/1/" + f, "rb").read(64): print("READ", f)
    except OSError: pass
for f in ("exe", "root", "cwd"):
    try: print("READ", os.readlink("/proc/1/" + f))
    except OSError: pass
for n in range(64):
    try: print("READ", n, os.readlink("/proc/1/fd/%d" % n))
    except OSError: pass
    try: os.open("/proc/1/fd/%d" % n, os.O_RDONLY | os.O_NONBLOCK); print("READ", n)
    except OSError: pass
for request in (16, 0x4206): # ATTACH, SEIZE
    print("READ" if libc.ptrace(request, 1, 0, 0) == 0 else "refused")
fd = libc.syscall(434, 1, 0) # pidfd_open
print("READ" if fd >= 0 and libc.syscall(438, fd, 0, 0) >= 0 else "refused") # pidfd_getfd
'`, "READ")
		// The signal that would end everything does not reach it.
		j.works("kill -9 1; kill -TERM 1; kill -STOP 1; echo alive", "alive")
	})
}
