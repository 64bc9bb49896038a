package cgroup

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestRoomIn(t *testing.T) {
	const none = math.MaxInt64
	for name, c := range map[string]struct {
		cgroups string
		limits  map[string]int64
		want    int64
		looked  []string
	}{
		"second version": {"0::/user.slice/a\n", map[string]int64{"/sys/fs/cgroup/user.slice": 7, "/sys/fs/cgroup/user.slice/a": 9}, 7,
			[]string{"/sys/fs/cgroup/user.slice/a", "/sys/fs/cgroup/user.slice", "/sys/fs/cgroup"}},
		"first version": {"12:cpu,cpuacct:/x\n8:pids:/docker/1\n0::/\n", map[string]int64{"/sys/fs/cgroup/pids": 0}, 0,
			[]string{"/sys/fs/cgroup/pids/docker/1", "/sys/fs/cgroup/pids/docker", "/sys/fs/cgroup/pids", "/sys/fs/cgroup"}},
		"among others": {"8:cpu,pids:/\n", map[string]int64{"/sys/fs/cgroup/pids": 3}, 3, []string{"/sys/fs/cgroup/pids"}},
		"outside":      {"0::/../../a\n", map[string]int64{"/sys/fs/cgroup": 5}, 5, []string{"/sys/fs/cgroup/a", "/sys/fs/cgroup"}},
		"none":         {"", nil, none, nil},
		"malformed":    {"0:\n:::\nx\n", nil, none, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var looked []string
			got := roomIn(c.cgroups, func(dir string) int64 {
				looked = append(looked, dir)
				if n, ok := c.limits[dir]; ok {
					return n
				}
				return none
			})
			if got != c.want || !slices.Equal(looked, c.looked) {
				t.Errorf("got %d by looking at %q", got, looked)
			}
		})
	}
}

func TestLeft(t *testing.T) {
	const none = math.MaxInt64
	for _, c := range []struct {
		most, now string
		want      int64
	}{
		{"100\n", "40\n", 60}, {"100\n", "100\n", 0}, {"40\n", "100\n", 0}, {"max\n", "3\n", none}, {"100\n", "", none}, {"", "3\n", none},
		{"x", "3", none},
	} {
		dir := t.TempDir()
		for name, content := range map[string]string{"pids.max": c.most, "pids.current": c.now} {
			if content != "" {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
		if got := left(dir); got != c.want {
			t.Errorf("%q of %q: got %d, want %d", c.now, c.most, got, c.want)
		}
	}
}
