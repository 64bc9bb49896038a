package cgroup

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// fakeTree makes folders with files as the kernel shows them.
func fakeTree(t *testing.T, files map[string]string) string {
	t.Helper()
	top := t.TempDir()
	for name, content := range files {
		path := filepath.Join(top, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return top
}

// TestFindSecond: where groups may be made in a version 2 tree.
func TestFindSecond(t *testing.T) {
	us := strconv.Itoa(os.Getpid()) + "\n"
	child := exec.Command("/proc/self/exe")
	child.Env = []string{role + "=nap"}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = child.Process.Kill()
		_ = child.Wait()
	}()
	with := func(above, controllers, procs string) map[string]string {
		return map[string]string{"cgroup.subtree_control": above, "cgroup.procs": "", "s/cgroup.controllers": controllers,
			"s/cgroup.procs": procs, "s/cgroup.type": "domain\n", "s/cgroup.subtree_control": ""}
	}
	for _, c := range []struct {
		name    string
		files   map[string]string
		own     string
		systemd bool
		want    string
	}{
		{"beside us, where children are limited", with("memory pids\n", "", us+"1\n"), "s", false, "memory / pids / time /"},
		{"memory alone", with("memory\n", "", us), "s", false, "memory / time /"},
		{"beside us is systemd's", with("memory pids\n", "memory pids\n", us+"1\n"), "s", true, ""},
		{"alone in our own", with("", "cpu memory pids\n", us), "s", true, "memory /s leave pids /s leave time /s leave"},
		{"with what we started", with("", "memory\n", us+fmt.Sprintln(child.Process.Pid)), "s", true, "memory /s leave time /s leave"},
		{"with somebody else", with("", "memory\n", us+"1\n"), "s", true, ""},
		{"with one who is not to be seen", with("", "memory\n", us+"0\n"), "s", true, ""},
		{"no memory controller", with("pids\n", "pids\n", us), "s", false, "pids / time /"},
		{"nothing", with("", "", us), "s", false, ""},
	} {
		top := fakeTree(t, c.files)
		if got := spelled(find([]tree{{v2: true, dir: filepath.Join(top, c.own)}}, c.systemd), top); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
	// Once we have left, our own folder lies in the one that was given to us.
	top := fakeTree(t, map[string]string{"cgroup.subtree_control": "memory pids\n", "cgroup.procs": "", ownName + "/cgroup.procs": us})
	if got := spelled(find([]tree{{v2: true, dir: filepath.Join(top, ownName)}}, true), top); got != "memory / pids / time /" {
		t.Errorf("after leaving: got %q", got)
	}
	// The top of the machine is nobody's.
	top = fakeTree(t, map[string]string{"s/cgroup.controllers": "memory\n", "s/cgroup.procs": us})
	if got := spelled(find([]tree{{v2: true, dir: filepath.Join(top, "s")}}, false), top); got != "" {
		t.Errorf("at the top: got %q", got)
	}
}

// TestLeaveEnables: only those controllers that there are.
func TestLeaveEnables(t *testing.T) {
	for have, want := range map[string]string{"cpu memory pids\n": "+memory +pids", "pids\n": "+pids", "memory\n": "+memory"} {
		top := fakeTree(t, map[string]string{"cgroup.procs": "", "cgroup.controllers": have, "cgroup.subtree_control": ""})
		if err := leave(top); err != nil {
			t.Fatal(err)
		}
		if raw, _ := os.ReadFile(filepath.Join(top, "cgroup.subtree_control")); string(raw) != want {
			t.Errorf("%q: got %q, want %q", have, raw, want)
		}
	}
}

// TestFindFirst: version 1 controllers come first where both exist.
func TestFindFirst(t *testing.T) {
	top := fakeTree(t, map[string]string{"m/cgroup.procs": "", "p/cgroup.procs": "", "c/cgroup.procs": "",
		"u/cgroup.subtree_control": "memory pids\n", "u/cgroup.procs": "", "u/s/cgroup.procs": ""})
	all := []tree{{controllers: []string{"rw", "memory"}, dir: top + "/m"}, {controllers: []string{"rw", "pids"}, dir: top + "/p"},
		{v2: true, dir: top + "/u/s"}, {controllers: []string{"rw", "cpu"}, dir: top + "/none"},
		{controllers: []string{"rw", "cpuacct"}, dir: top + "/c"}}
	// Whoever comes first counts time: it is the same everywhere.
	if got := spelled(find(all, false), top); got != "memory /m pids /p time /c" {
		t.Errorf("got %q", got)
	}
	p := find([]tree{{controllers: []string{"memory"}, dir: top + "/gone"}}, false)
	if p.Memory() || p.Why() == nil || !strings.Contains(p.Why().Error(), "/gone") {
		t.Errorf("a folder that cannot be used: got %+v", p)
	}
	if p = find(nil, false); p.Memory() || p.Processes() || p.Why() == nil {
		t.Errorf("no trees: got %+v", p)
	}
}

func spelled(p Place, top string) string {
	var out []string
	for _, c := range []struct {
		name string
		at   spot
	}{{"memory", p.memory}, {"pids", p.pids}, {"time", p.time}} {
		if c.at.dir == "" {
			continue
		}
		out = append(out, c.name, "/"+strings.Trim(strings.TrimPrefix(c.at.dir, top), "/"))
		if c.at.leave {
			out = append(out, "leave")
		}
	}
	return strings.Join(out, " ")
}
