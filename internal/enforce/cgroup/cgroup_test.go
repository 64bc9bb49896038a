package cgroup

import (
	"path"
	"strings"
	"testing"
	"time"
)

const (
	unified = "35 24 0:29 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
	memory1 = "41 24 0:31 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
	cpus1   = "42 24 0:32 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
	named1  = "43 24 0:33 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd\n"
)

func TestTrees(t *testing.T) {
	for _, c := range []struct {
		name, cgroups, mounts string
		want                  string
	}{
		{"version 2", "0::/user.slice/a.scope\n", unified, "2 /sys/fs/cgroup/user.slice/a.scope"},
		{"at the top", "0::/\n", unified, "2 /sys/fs/cgroup"},
		{"version 1", "4:memory:/m/x\n2:cpu,cpuacct:/\n1:name=systemd:/s\n", memory1 + cpus1 + named1,
			"memory /sys/fs/cgroup/memory/m/x, cpu /sys/fs/cgroup/cpu,cpuacct, name=systemd /sys/fs/cgroup/systemd/s"},
		{"both", "4:memory:/\n0::/h\n", memory1 + unified, "memory /sys/fs/cgroup/memory, 2 /sys/fs/cgroup/h"},
		{"a line of another kind", "4:memory:/m\n", unified, ""},
		{"not mounted", "0::/a\n", "24 1 0:5 / /proc rw - proc proc rw\n", ""},
		{"a folder of the tree is mounted", "0::/box/in\n", "35 24 0:29 /box /cg rw - cgroup2 none rw\n", "2 /cg/in"},
		{"just the own folder", "0::/box\n", "35 24 0:29 /box /cg rw - cgroup2 none rw\n", "2 /cg"},
		{"another folder of the tree", "0::/box\n", "35 24 0:29 /bo /cg rw - cgroup2 none rw\n", ""},
		{"outside of the namespace", "0::/../other\n", unified, ""},
		{"optional fields and escapes", "0::/a b\n", `35 24 0:29 / /c\040g rw shared:9 master:1 - cgroup2 none rw` + "\n", "2 /c g/a b"},
		{"a path with a colon", "0::/a:b\n", unified, "2 /sys/fs/cgroup/a:b"},
		{"nothing", "", "", ""},
	} {
		var got []string
		for _, tr := range trees(c.cgroups, c.mounts) {
			kind := "2"
			for _, k := range tr.controllers {
				if k != "rw" && k != "xattr" {
					kind = k
					break
				}
			}
			got = append(got, kind+" "+tr.dir)
		}
		if s := strings.Join(got, ", "); s != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, s, c.want)
		}
	}
}

func TestCounter(t *testing.T) {
	const events = "low 0\nhigh 1\nmax 12\noom 3\noom_kill 2\noom_group_kill 1\n"
	for name, want := range map[string]string{"max": "12", "oom": "3", "oom_kill": "2", "kill": "", "oom_": ""} {
		if got := counter(events, name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	if got := counter("oom_kill_disable 0\nunder_oom 0\noom_kill 7", "oom_kill"); got != "7" {
		t.Errorf("version 1: got %q, want 7", got)
	}
}

func TestUsed(t *testing.T) {
	const stat = "usage_usec 1500000\nuser_usec 1\nsystem_usec 2\n"
	for _, c := range []struct {
		v2      bool
		content string
		want    time.Duration
		bad     bool
	}{
		{false, "1500000000\n", 1500 * time.Millisecond, false}, {true, stat, 1500 * time.Millisecond, false},
		{false, "0", 0, false}, {false, "", 0, true}, {false, stat, 0, true}, {true, "1500000\n", 0, true},
		{false, "-1", 0, true}, {false, "9223372036854775807", 1<<63 - 1, false}, {false, "9223372036854775808", 0, true},
		{true, "usage_usec 9223372036854776\n", 0, true}, {true, "usage_usec 9223372036854775\n", 9223372036854775 * time.Microsecond, false},
	} {
		if got, err := used(c.v2, c.content); got != c.want || (err != nil) != c.bad {
			t.Errorf("%v %q: got %v, %v", c.v2, c.content, got, err)
		}
	}
}

func FuzzTrees(f *testing.F) {
	f.Add("4:memory:/m\n0::/h\n", memory1+unified)
	f.Add("0::/../x", `1 2 0:3 /a\0 /b\04 rw - cgroup2 c rw`)
	f.Add("::\n0:", "- - cgroup\n1 2 3 4 5 6 - cgroup")
	f.Fuzz(func(t *testing.T, cgroups, mounts string) {
		for _, tr := range trees(cgroups, mounts) {
			if tr.v2 == (tr.controllers != nil) {
				t.Errorf("%+v is of neither version", tr)
			}
			if tr.dir != path.Clean(tr.dir) {
				t.Errorf("%q climbs", tr.dir)
			}
		}
	})
}
