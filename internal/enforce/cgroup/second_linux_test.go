package cgroup

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

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/internal/need"
)

// role makes the test program another one: a hog of memory, a maker of
// processes, or a caller that was given a group.
const role = "TETHER_CGROUP_TEST"

func TestMain(m *testing.M) {
	what, arg, _ := strings.Cut(os.Getenv(role), " ")
	switch what {
	case "":
		os.Exit(m.Run())
	case "hog":
		n, _ := strconv.Atoi(arg)
		_, _ = os.Stdin.Read(make([]byte, 1)) // until it is in its group
		b := make([]byte, n<<20)
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		fmt.Println("ALLOCATED")
	case "forker":
		_, _ = os.Stdin.Read(make([]byte, 1))
		for range 40 {
			cmd := exec.Command("/proc/self/exe")
			cmd.Env = []string{role + "=nap"}
			if err := cmd.Start(); err != nil {
				fmt.Println("REFUSED")
				os.Exit(0)
			}
			defer cmd.Process.Kill()
		}
		fmt.Println("FORKED")
	case "nap":
		time.Sleep(5 * time.Second)
	case "caller":
		if err := caller(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
}

// second returns the top of a version 2 tree with these controllers, or skips.
func second(t *testing.T) string {
	t.Helper()
	need.Root(t)
	raw, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for _, tr := range trees("0::/\n", string(raw)) {
		have, _ := os.ReadFile(filepath.Join(tr.dir, "cgroup.controllers"))
		if list := strings.Fields(string(have)); tr.v2 && slices.Contains(list, "memory") && slices.Contains(list, "pids") {
			return tr.dir
		}
	}
	need.Missing(t, "cgroup2", "there are no version 2 controllers of memory and processes")
	return ""
}

// TestSecond: a caller who was given a group of its own, as systemd gives it,
// limits memory and processes in it, and leaves nothing.
func TestSecond(t *testing.T) {
	top := second(t)
	if err := os.WriteFile(filepath.Join(top, "cgroup.subtree_control"), []byte("+memory +pids"), 0); err != nil {
		t.Fatal(err)
	}
	given, err := os.MkdirTemp(top, "test-")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		for _, dir := range []string{filepath.Join(given, ownName), given} {
			for try := 0; syscall.Rmdir(dir) != nil && try < 100; try++ {
				time.Sleep(10 * time.Millisecond)
			}
		}
		if stands(given) {
			t.Errorf("%s stays", given)
		}
	}()
	const uid = 54321
	for _, name := range []string{"", "cgroup.procs", "cgroup.subtree_control", "cgroup.threads"} {
		if err := os.Chown(filepath.Join(given, name), uid, uid); err != nil {
			t.Fatal(err)
		}
	}
	dir, err := os.Open(given)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{role + "=caller"}
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd()), Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// caller does what a run does, and says what went otherwise.
func caller() error {
	for round := range 2 {
		cgroups, _ := os.ReadFile("/proc/self/cgroup")
		mounts, _ := os.ReadFile("/proc/self/mountinfo")
		at := find(trees(string(cgroups), string(mounts)), true)
		if !at.Memory() || !at.Processes() || at.memory.leave != (round == 0) {
			return fmt.Errorf("round %d: got %+v (in %s)", round, at, cgroups)
		}
		// The first shows that it works at all, and that more is not limited.
		for _, c := range []struct {
			job    string
			want   Want
			says   string
			killed bool
			denied bool
		}{
			{"hog 120", Want{Memory: 400 << 20}, "ALLOCATED", false, false},
			{"hog 120", Want{Memory: 60 << 20}, "", true, false},
			{"forker", Want{Processes: 600}, "FORKED", false, false},
			{"forker", Want{Processes: 30}, "REFUSED", false, true},
		} {
			says, e, err := oneRun(at, c.job, c.want)
			if err != nil {
				return fmt.Errorf("%s under %+v: %w", c.job, c.want, err)
			}
			if says != c.says || e.Killed != c.killed || e.Refused != c.denied || e.Lost {
				return fmt.Errorf("%s under %+v: says %q, %+v", c.job, c.want, says, e)
			}
			at = find(trees(reread(), string(mounts)), true) // we have moved
		}
	}
	return nil
}

func reread() string {
	raw, _ := os.ReadFile("/proc/self/cgroup")
	return string(raw)
}

func oneRun(at Place, job string, want Want) (says string, e Events, err error) {
	g, err := at.Make(want)
	if err != nil {
		return "", e, err
	}
	base := filepath.Dir(g.all[0].dir)
	// Somebody else's that was left is removed by the next, and ours not.
	left := filepath.Join(base, prefix+"left")
	if err := os.Mkdir(left, 0o755); err != nil {
		return "", e, err
	}
	other, err := at.Make(Want{Processes: 10})
	if err != nil {
		return "", e, fmt.Errorf("a second group: %w", err)
	}
	if stands(left) || !stands(g.all[0].dir) {
		return "", e, fmt.Errorf("left: %v, ours: %v", stands(left), stands(g.all[0].dir))
	}
	if err := other.Remove(); err != nil {
		return "", e, err
	}
	in, go_, err := os.Pipe()
	if err != nil {
		return "", e, err
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env, cmd.Stdin = []string{role + "=" + job}, in
	out := &strings.Builder{}
	cmd.Stdout = out
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		return "", e, err
	}
	if err := g.Enter(cmd.Process.Pid); err != nil {
		return "", e, err
	}
	g.Watch(func() { _ = cmd.Process.Kill() })
	go_.Close()
	_ = cmd.Wait() // how it ended, the events say
	e = g.Events()
	if err := g.Remove(); err != nil { // what it left is killed
		return "", e, err
	}
	if unix.Access(filepath.Join(base, ownName), unix.F_OK) != nil {
		return "", e, fmt.Errorf("the caller has no group of its own in %s", base)
	}
	return strings.TrimSpace(out.String()), e, nil
}
