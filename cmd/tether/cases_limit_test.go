//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/need"
	"github.com/tether-sandbox/tether/internal/world/local"
	"github.com/tether-sandbox/tether/policy"
)

// The bombs are bounded by themselves, so that a limit that fails harms nobody.
const (
	memoryBomb = `python3 -c 'x=bytearray(200<<20); print("ALL"+"OCATED")'; echo WENT_ON`
	openBomb   = `python3 -c 'f=[open("/dev/null") for i in range(60)]; print("OPEN"+"ED")'`
	// More than a second of work.
	cpuBomb = `python3 -c 'import time; [0 for _ in iter(lambda: time.process_time() < 1.5, False)]; print("WORK"+"ED")'`
	// Three seconds of work, of many that each do little.
	cpuTreeBomb = `for i in 1 2 3 4 5 6; do python3 -c 'import time; [0 for _ in iter(lambda: time.process_time() < 0.5, False)]' & [ $((i%2)) = 1 ] || wait; done; wait; echo WORK''ED`
	// Each makes two, down to 64 of them, which stay for a moment.
	forkBomb   = `b() { if [ $1 = 6 ]; then echo LE''AF; sleep 1; else b $(($1+1)) & b $(($1+1)) & wait; fi; }; b 0 > leaves; grep -c LEAF leaves`
	threadBomb = `python3 -c 'import threading, time
t=[threading.Thread(target=time.sleep, args=(0.5,)) for i in range(120)]
[x.start() for x in t]; print("THREAD"+"ED")'`
)

// denied fails unless --json tells a limit that was met, with the flag that
// raises it.
func (j *jail) denied(code fault.Code, script string, flags ...string) map[string]any {
	j.t.Helper()
	o := j.report(script, flags...)
	list, _ := o["denials"].([]any)
	for _, x := range list {
		d, _ := x.(map[string]any)
		if d["code"] != string(code) {
			continue
		}
		if remedy := fmt.Sprint(d["remedy"]); !strings.HasPrefix(remedy, flags[0]+" ") {
			j.t.Errorf("%s: got the remedy %q, want %s", code, remedy, flags[0])
		}
		return o
	}
	j.t.Errorf("%q under %q: got %v, want a denial %s", script, flags, o, code)
	return o
}

// TestLimits: each bomb works without Tether, and meets its limit inside.
func TestLimits(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.systemPath()
		j.closed(openBomb, "OPENED", "--max-open-files", "40")
		j.works(openBomb, "OPENED", "--max-open-files", "120")

		j.closed(threadBomb, "THREADED", "--max-procs", "60")
		j.works(threadBomb, "THREADED", "--max-procs", "200")
		j.denied(fault.LimitProcesses, "for i in $(seq 150); do sleep 1 & done; wait", "--max-procs", "40", "--timeout", "500ms")

		j.closed(cpuBomb, "WORKED", "--max-cpu", "1")
		j.denied(fault.LimitCPU, "exec "+cpuBomb, "--max-cpu", "900ms") // rounded up

		j.closed(cpuTreeBomb, "WORKED", "--max-cpu", "1")
		j.works(cpuTreeBomb, "WORKED", "--max-cpu", "8")
		j.denied(fault.LimitCPU, cpuTreeBomb, "--max-cpu", "1")
		// Also of those that were left by whoever started them.
		j.denied(fault.LimitCPU, "("+cpuTreeBomb+" & ); sleep 5", "--max-cpu", "1")

		const fill = "dd if=/dev/zero of=%s/f bs=64k count=64 status=none && echo FIL''LED; rm -f %[1]s/f"
		for _, dir := range []string{"/tmp", "/dev/shm", "/var/tmp", "$HOME"} {
			flags := []string{"--max-scratch", "1M", "--home", "private"}
			if dir == "$HOME" {
				j.opens("HOME=$OUT; "+fmt.Sprintf(fill, dir), "FILLED")
			} else {
				j.opens(strings.ReplaceAll(fmt.Sprintf(fill, dir), "/f", "/tether-test-f"), "FILLED")
			}
			j.stays(fmt.Sprintf(fill, dir), "FILLED", flags...)
			j.works(fmt.Sprintf(fill, dir), "FILLED", "--max-scratch", "5M", "--home", "private")
		}
		j.denied(fault.LimitScratch, "cat /dev/zero > /dev/shm/f", "--max-scratch", "1M")
		j.denied(fault.LimitFileSize, "exec dd if=/dev/zero of=f bs=64k count=64", "--max-file-size", "1M")

		// A limit of the command's own caller is never exceeded.
		const soft = "ulimit -n"
		if got := j.host("ulimit -n 64; " + soft).stdout; got != "64\n" {
			t.Fatalf("control: %q", got)
		}
		cmd := j.command("--max-open-files", "9999", "--", "sh", "-c", soft)
		cmd.Args = append([]string{"sh", "-c", `ulimit -n 64; exec "$@"`, "sh"}, cmd.Args...)
		cmd.Path = "/bin/sh"
		if r := j.built(finishCommand(t, cmd)); r.stdout != "64\n" {
			t.Errorf("got %q, want the caller's 64", r.all())
		}
	})
}

// TestForkBomb: what has no limit of its own is bounded, and its call ends.
func TestForkBomb(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.systemPath()
		r := j.run("ulimit -u || bash -c 'ulimit -u'")
		n, err := strconv.Atoi(strings.TrimSpace(r.stdout))
		if own := n - policy.BuiltinProcesses; err != nil || own < 1 || own > enforce.OwnThreads {
			t.Errorf("got %q, want 4096 and the inner stage's own", r.all())
		}
		mark := " # in " + j.w // another run of this test may go on beside
		j.opens(forkBomb+mark, "64")
		j.closed(forkBomb+mark, "64", "--max-procs", "50")
		for _, p := range processes() {
			if strings.Contains(p.words, mark) {
				t.Errorf("%d is left: %s", p.pid, p.words)
			}
		}
	})
}

// countThreads says how many threads it can have, of 200.
const countThreads = `exec python3 -c '
import threading, time
n = 1
try:
    while n < 200:
        threading.Thread(target=time.sleep, args=(1,), daemon=True).start(); n += 1
except RuntimeError: pass
time.sleep(0.3)
print("MOST", n, flush=True)
import os; os._exit(0)'`

// TestMaxProcsExact: with a control group it is the number that was asked for, and
// else at least that, and few more.
func TestMaxProcsExact(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.systemPath()
		if r := j.host(countThreads); !strings.Contains(r.stdout, "MOST 200") {
			t.Fatalf("control: %s", r.all())
		}
		most, limits := 40+enforce.LateThreads, policy.Limits{Processes: 40}
		if (local.World{}).Machine(limits).CgroupProcesses {
			most = 40
		}
		for _, script := range []string{countThreads, "ulimit -u 100 2>/dev/null || bash -c 'ulimit -u 100'; " + countThreads,
			// What appears late is covered by more of ours.
			"sleep 0.5; touch .env; sleep 0.5; " + countThreads} {
			for range 2 {
				r := j.run(script, "--max-procs", "40")
				var got int
				if !strings.Contains(r.stderr, string(fault.LimitProcesses)) {
					t.Errorf("%s: not told: %s", script[:10], r.all())
				}
				if _, err := fmt.Sscanf(r.stdout, "MOST %d", &got); err != nil || got < 40 || got > most {
					t.Errorf("%s: exit %d: %s: got %d, want 40 to %d", script[:10], r.exit, r.all(), got, most)
				}
			}
		}
	})
}

// memoryGroups returns the folders of the test's own control groups, with a
// memory and a process controller of version 1, or skips the test.
func memoryGroups(t *testing.T) []string {
	t.Helper()
	raw, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	var dirs []string
	for line := range strings.SplitSeq(string(raw), "\n") {
		f := strings.SplitN(line, ":", 3)
		if len(f) == 3 && (f[1] == "memory" || f[1] == "pids") {
			dirs = append(dirs, filepath.Join("/sys/fs/cgroup", f[1], f[2]))
		}
	}
	for _, dir := range dirs {
		if syscall.Access(dir, 2) != nil {
			need.Missing(t, "cgroup", dir+" cannot be written")
		}
	}
	if len(dirs) < 2 {
		need.Missing(t, "cgroup", "there are no version 1 controllers of memory and processes")
	}
	return dirs
}

// groupsLeft lists the groups of Tether's below.
func groupsLeft(dirs []string) (left []string) {
	for _, dir := range dirs {
		names, _ := filepath.Glob(filepath.Join(dir, "tether-*"))
		left = append(left, names...)
	}
	return left
}

// TestMaxMemory: the memory of the whole tree, folders in memory included; the
// call ends as a whole; nothing is left.
func TestMaxMemory(t *testing.T) {
	dirs := memoryGroups(t)
	providers(t, func(t *testing.T, j *jail) {
		j.systemPath()
		j.opens(memoryBomb, "ALLOCATED")
		for name, script := range map[string]string{
			"one process":      memoryBomb,
			"many":             `for i in 1 2 3 4 5 6 7 8; do python3 -c 'x=bytearray(25<<20); import time; time.sleep(1)' & done; wait; echo WENT_ON`,
			"folder in memory": "head -c 200M /dev/zero > /dev/shm/f; echo WENT_ON",
		} {
			o := j.denied(fault.LimitMemory, script, "--max-memory", "100M", "--timeout", "20s")
			if o["exit"] != float64(137) || strings.Contains(fmt.Sprint(o["stdout"]), "WENT_ON") {
				t.Errorf("%s: got %v, want it to be killed whole", name, o)
			}
		}
		j.works(memoryBomb, "ALLOCATED", "--max-memory", "600M")
		r := finishCommand(t, j.command("--max-memory", "4K", "--", "echo", "RAN"))
		if r.exit != 125 || strings.Contains(r.stdout, "RAN") || !strings.Contains(r.stderr, string(fault.LimitMemory)) || !strings.Contains(r.stderr, "hint: --max-memory ") {
			t.Errorf("less than a sandbox takes: got exit %d: %s", r.exit, r.all())
		}
		// Told also when nothing of it is left at the end.
		j.denied(fault.LimitProcesses, forkBomb+"; true", "--max-procs", "50")
		if left := groupsLeft(dirs); len(left) > 0 {
			t.Errorf("left: %q", left)
		}
	})
}

// TestMaxMemoryDelegated: an ordinary user's, in a group that was given to them.
func TestMaxMemoryDelegated(t *testing.T) {
	need.Root(t)
	dirs := memoryGroups(t)
	providers(t, func(t *testing.T, j *jail) {
		j.systemPath()
		j.own()
		_ = os.Chown(j.w, foreignUID, foreignUID)
		_ = os.Chown(j.state, foreignUID, foreignUID)
		var given []string
		for _, dir := range dirs {
			at, err := os.MkdirTemp(dir, "test-")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { removeGroup(t, at) })
			for _, name := range []string{"", "cgroup.procs", "tasks"} {
				if err := os.Chown(filepath.Join(at, name), foreignUID, foreignUID); err != nil {
					t.Fatal(err)
				}
			}
			given = append(given, at)
		}
		run := func(script string, flags ...string) result {
			cmd := j.command(append(flags, "--", "sh", "-c", script)...)
			enter := `for g in "$G1" "$G2"; do echo $$ > "$g/cgroup.procs" || exit 9; done
exec setpriv --reuid ` + fmt.Sprint(foreignUID) + ` --regid ` + fmt.Sprint(foreignUID) + ` --clear-groups "$@"`
			out := exec.Command("sh", append([]string{"-c", enter, "sh"}, cmd.Args...)...)
			out.Dir, out.Env = cmd.Dir, append(cmd.Env, "G1="+given[0], "G2="+given[1])
			return j.built(finishCommand(t, out))
		}
		r := run(memoryBomb, "--max-memory", "100M", "--max-procs", "40")
		if r.exit != 137 || !strings.Contains(r.stderr, string(fault.LimitMemory)) {
			t.Errorf("got exit %d: %s", r.exit, r.all())
		}
		if r = run(memoryBomb, "--max-memory", "600M"); !strings.Contains(r.stdout, "ALLOCATED") {
			t.Errorf("got exit %d: %s", r.exit, r.all())
		}
		// Inside, the groups cannot be changed, although they are the user's.
		if r = run("mkdir "+given[0]+"/x && echo MA''DE; echo 1 > "+given[0]+"/cgroup.procs && echo MOV''ED", "--max-memory", "600M"); strings.Contains(r.stdout, "MADE") || strings.Contains(r.stdout, "MOVED") {
			t.Errorf("the groups can be changed inside: %s", r.all())
		}
		if left := groupsLeft(given); len(left) > 0 {
			t.Errorf("left: %q", left)
		}
		// One whose maker was killed goes with the next run; one in use stays.
		dead := filepath.Join(given[0], "tether-1")
		if err := os.Mkdir(dead, 0o755); err != nil {
			t.Fatal(err)
		}
		_ = os.Chown(dead, foreignUID, foreignUID)
		run("true", "--max-memory", "100M", "--max-procs", "40")
		if _, err := os.Stat(dead); err == nil {
			t.Errorf("%s stays", dead)
		}
	})
}

// removeGroup removes a test's group once it is empty.
func removeGroup(t *testing.T, dir string) {
	for range 100 {
		left, _ := filepath.Glob(filepath.Join(dir, "tether-*"))
		for _, l := range left {
			_ = syscall.Rmdir(l)
		}
		if err := syscall.Rmdir(dir); err == nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("%s stays", dir)
}

// TestMaxMemoryRefused: what cannot be limited is refused, not approximated, by
// a run and by tether policy check.
func TestMaxMemoryRefused(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		need.Root(t)
		const without = "mount -t tmpfs none /sys/fs/cgroup"
		r := finishCommand(t, j.inMountsCommand(without, "echo RAN", "--max-memory", "64M"))
		if r.exit != exitOurs || strings.Contains(r.stdout, "RAN") || !strings.Contains(r.stderr, string(fault.LimitUnenforceable)+": memory cannot be limited here: ") {
			t.Errorf("got exit %d: %s", r.exit, r.all())
		}
		file := j.write("p.toml", "network = \"gated\"\nmax-memory = \"2G\"\naudit = true\n")
		r = j.inMountsHost(without, binary+" policy check "+file)
		if !strings.Contains(r.stderr, "p.toml:2: every run under this is refused: LIMIT_UNENFORCEABLE: ") ||
			strings.Contains(r.stderr, "p.toml:1") || strings.Contains(r.stderr, "p.toml:3") {
			t.Errorf("policy check: exit %d: %s", r.exit, r.all())
		}
	})
}

// TestLimitsElsewhere: limits need no namespaces, and no sandbox.
func TestLimitsElsewhere(t *testing.T) {
	dirs := memoryGroups(t)
	for name, flags := range map[string][]string{
		"landlock": {"--provider", "landlock", "--no-network", "--accept", "read=partial", "--accept", "write=partial", "--accept",
			"process=partial"},
		"none": {"--no-sandbox"},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJail(t, "auto")
			j.systemPath()
			if name == "landlock" {
				j.provider = "bwrap" // for the same owner of the workspace
				j.own()
			}
			run := func(script string, more ...string) result {
				cmd := commandWith(j, append(append(append([]string{"run"}, flags...), more...), "--", "sh", "-c", script)...)
				return j.built(finishCommand(t, cmd))
			}
			if r := run(countThreads, "--max-procs", "40"); r.stdout != "MOST 40\n" {
				t.Errorf("exit %d: %s", r.exit, r.all())
			}
			for _, c := range []struct {
				bomb, word string
				flags      []string
				code       fault.Code
			}{
				{memoryBomb, "ALLOCATED", []string{"--max-memory", "100M"}, fault.LimitMemory},
				{"exec " + cpuBomb, "WORKED", []string{"--max-cpu", "1"}, fault.LimitCPU},
				{openBomb, "OPENED", []string{"--max-open-files", "40"}, ""},
				{forkBomb, "64", []string{"--max-procs", "50"}, fault.LimitProcesses},
			} {
				if r := run(c.bomb); !strings.Contains(r.stdout, c.word) {
					t.Errorf("control: %q: exit %d: %s", c.bomb, r.exit, r.all())
				}
				if r := run(c.bomb, c.flags...); strings.Contains(r.stdout, c.word) || !strings.Contains(r.stderr, string(c.code)) {
					t.Errorf("%q under %q: exit %d: %s", c.bomb, c.flags, r.exit, r.all())
				}
			}
		})
	}
	if left := groupsLeft(dirs); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// TestMaxCPUElsewhere: what all processes use together is counted without
// namespaces, and without a sandbox, also for those who have no control groups.
func TestMaxCPUElsewhere(t *testing.T) {
	for name, flags := range map[string][]string{
		"landlock": {"--provider", "landlock", "--no-network", "--accept", "read=partial", "--accept", "write=partial", "--accept",
			"process=partial"},
		"none": {"--no-sandbox"},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJail(t, "auto")
			j.systemPath()
			if name == "landlock" {
				j.provider = "bwrap" // for the same owner of the workspace
				j.own()
			}
			run := func(most string) result {
				cmd := commandWith(j, append(append([]string{"run"}, flags...), "--max-cpu", most, "--", "sh", "-c", cpuTreeBomb)...)
				return j.built(finishCommand(t, cmd))
			}
			if r := run("8"); !strings.Contains(r.stdout, "WORKED") {
				t.Errorf("control: exit %d: %s", r.exit, r.all())
			}
			if r := run("1"); strings.Contains(r.stdout, "WORKED") || r.exit != 137 || !strings.Contains(r.stderr, string(fault.LimitCPU)) {
				t.Errorf("exit %d: %s", r.exit, r.all())
			}
		})
	}
}

// TestMaxCPUBlind: a command that keeps process 1 from looking does not go on,
// where it is process 1 that counts.
func TestMaxCPUBlind(t *testing.T) {
	if os.Geteuid() != 0 && (local.World{}).Machine(policy.Limits{CPU: time.Second}).CgroupTime {
		t.Skip("a control group counts")
	}
	together(t, func(t *testing.T, j *jail) {
		j.systemPath()
		j.own()
		if os.Geteuid() == 0 {
			_ = os.Chown(j.w, foreignUID, foreignUID)
			_ = os.Chown(j.state, foreignUID, foreignUID)
		}
		for files, ends := range map[int]bool{1024: false, 0: true} {
			script := fmt.Sprintf(`python3 -c 'import resource; resource.prlimit(1, resource.RLIMIT_NOFILE, (%d, %[1]d)); print("LOW""ERED", flush=True)'; sleep 4; echo WENT''_ON`, files)
			r := j.built(finishCommand(t, j.asOrdinary(j.command("--max-cpu", "8", "--", "sh", "-c", script))))
			told := r.exit == 137 && strings.Contains(r.stderr, string(fault.LimitCPU)) && !strings.Contains(r.stdout, "WENT_ON")
			if !strings.Contains(r.stdout, "LOWERED") || told != ends || !ends && r.exit != 0 {
				t.Errorf("%d files: exit %d: %s", files, r.exit, r.all())
			}
		}
	})
}

// TestDiskBomb: whoever fills a disk of the host that it may write is ended while
// some of it is left, bytes or files; who needs less is not.
func TestDiskBomb(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.systemPath()
		const fill, files = "head -c %dM /dev/zero > disk/f; sleep 2; echo WENT_ON", "i=0; while [ $i -lt %d ]; do i=$((i+1)); : > disk/$i; done; sleep 2; echo WENT_ON"
		low := func(r result, free string) {
			t.Helper()
			if r.exit != 137 || strings.Contains(r.stdout, "WENT_ON") || !strings.Contains(r.stderr, string(fault.LimitDisk)) || !strings.Contains(r.stderr, free) {
				t.Errorf("exit %d: %s", r.exit, r.all())
			}
		}
		fine := func(r result) {
			t.Helper()
			if r.exit != 0 || !strings.Contains(r.stdout, "WENT_ON") || strings.Contains(r.stderr, "LIMIT_") {
				t.Errorf("exit %d: %s", r.exit, r.all())
			}
		}
		if os.Geteuid() != 0 && j.provider == "bwrap" {
			t.Skip("whoever mounts as an ordinary user sees bwrap as nobody's, which is not trusted")
		}
		j.mustHost("mkdir disk")
		j.own()
		const small = "mount -t tmpfs -o size=64M,nr_inodes=2000,mode=777 none $W/disk; "
		run := func(setup, script string, flags ...string) result {
			cmd := j.inMountsCommand(small+setup, script, flags...)
			if os.Geteuid() != 0 { // an ordinary user mounts in a user namespace, and loses the right to
				cmd.Args = slices.Insert(cmd.Args, 1, "--user", "--map-current-user", "--keep-caps")
				at := slices.Index(cmd.Args, "sh")
				cmd.Args[at+2] = strings.Replace(cmd.Args[at+2], `exec "$@"`, `exec setpriv --ambient-caps=-all --inh-caps=-all "$@"`, 1)
			}
			return j.built(finishCommand(t, cmd))
		}
		if r := j.host(fmt.Sprintf(fill, 63)); !strings.Contains(r.stdout, "WENT_ON") {
			t.Errorf("control: %s", r.all())
		}
		fine(run("", fmt.Sprintf(fill, 50)))
		low(run("", fmt.Sprintf(fill, 63)), "hint: --min-free-disk ")
		fine(run("", fmt.Sprintf(fill, 63), "--min-free-disk", "64K"))
		low(run("", fmt.Sprintf(fill, 30), "--min-free-disk", "50M"), "hint: --min-free-disk ")
		fine(run("", fmt.Sprintf(files, 1500)))
		low(run("", fmt.Sprintf(files, 1950)), "few files more")
		// What was fuller before is no obstacle, unless it is filled further.
		const before = "head -c 62M /dev/zero > $W/disk/before; "
		fine(run(before, "echo x > disk/f; sleep 1; echo WENT_ON"))
		low(run(before, "sleep 0.1; head -c 1500K /dev/zero > disk/f; sleep 2; echo WENT_ON"), "hint: --min-free-disk ")
	})
}

// TestSessionTmpIsBounded: a session's /tmp lies on the disk, where no kernel
// limits it; whoever fills it is ended, and the next is refused.
func TestSessionTmpIsBounded(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		if os.Geteuid() == 0 && j.provider == "bwrap" {
			t.Skip("bwrap, run by root, has no session's /tmp")
		}
		j.systemPath()
		const bomb = "head -c 20M /dev/zero > /tmp/f; sleep 3; echo WENT_ON"
		flags := []string{"--session", "s", "--no-network", "--max-scratch", "10M"}
		// It is less than was asked, and said so.
		r := finishCommand(t, j.command(append(flags, "--", "sh", "-c", bomb)...))
		if r.exit != exitOurs || !strings.Contains(r.stderr, "--accept limits=Partial") {
			t.Errorf("without accepting less: exit %d: %s", r.exit, r.all())
		}
		flags = append(flags, "--session", "s2", "--accept", "limits=partial")
		if r := j.run("head -c 5M /dev/zero > /tmp/f; echo WENT_ON", flags...); r.exit != 0 {
			t.Errorf("5 MiB: exit %d: %s", r.exit, r.all())
		}
		if r = j.run(bomb, flags...); strings.Contains(r.stdout, "WENT_ON") || !strings.Contains(r.stderr, string(fault.LimitScratch)) {
			t.Errorf("20 MiB: exit %d: %s", r.exit, r.all())
		}
		r = finishCommand(t, j.command(append(flags, "--", "sh", "-c", "echo RAN")...))
		if r.exit != exitOurs || !strings.Contains(r.stderr, string(fault.LimitScratch)) {
			t.Errorf("the next: exit %d: %s", r.exit, r.all())
		}
		_, way, _ := strings.Cut(r.stderr, "hint: ")
		j.mustHost(way)
		if r = j.run("echo RAN", flags...); !strings.Contains(r.stdout, "RAN") {
			t.Errorf("after %q: exit %d: %s", way, r.exit, r.all())
		}
	})
}
