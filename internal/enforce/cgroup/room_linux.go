package cgroup

import (
	"math"
	"os"
	"path"
	"strconv"
	"strings"
)

// Room is how many more processes and threads the groups allow in which the caller
// is; math.MaxInt64 where nothing bounds them, or nothing of it is to be seen.
// It looks where control groups usually are mounted.
func Room() int64 {
	raw, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return math.MaxInt64
	}
	return roomIn(string(raw), left)
}

// roomIn asks for what is left in each group of a /proc/self/cgroup.
func roomIn(cgroups string, left func(dir string) int64) int64 {
	room := int64(math.MaxInt64)
	for line := range strings.SplitSeq(cgroups, "\n") {
		f := strings.SplitN(line, ":", 3)
		if len(f) < 3 {
			continue
		}
		var top string
		switch {
		case f[0] == "0" && f[1] == "":
			top = "/sys/fs/cgroup"
		case strings.Contains(","+f[1]+",", ",pids,"):
			top = "/sys/fs/cgroup/pids"
		default:
			continue
		}
		// Clean takes a way up out of it, where our group is outside of what is
		// mounted; then the top is what there is.
		for dir := path.Join(top, path.Clean("/"+f[2])); ; dir = path.Dir(dir) {
			room = min(room, left(dir))
			if dir == top {
				break
			}
		}
	}
	return room
}

// left is what one group allows.
func left(dir string) int64 {
	most, err := number(path.Join(dir, "pids.max"))
	if err != nil {
		return math.MaxInt64 // "max", or none
	}
	now, err := number(path.Join(dir, "pids.current"))
	if err != nil {
		return math.MaxInt64
	}
	return max(most-now, 0)
}

func number(file string) (int64, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(raw)), 10, 64)
}
