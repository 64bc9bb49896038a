// Package cgroup holds one command's memory and processes together in a group of
// its own, below a folder of the kernel's control groups that the caller may use:
// version 2 where it is delegated, and version 1 controllers where only those
// exist. It makes no group that the caller's own limits do not bound as well, and
// leaves none behind.
//
// On machines that systemd runs it keeps to what systemd delegates
// (https://systemd.io/CGROUP_DELEGATION): a scope or service with Delegate=yes in
// which nothing runs but the caller.
package cgroup

import (
	"errors"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tether-sandbox/tether/internal/mountinfo"
)

// Want is what a group limits; zero limits nothing.
type Want struct {
	// Memory is in bytes, and bounds swap as well.
	Memory int64
	// Processes counts threads.
	Processes int64
	// Time counts what is used of the processors; it limits nothing, see
	// [Group.Used].
	Time bool
}

// Events are what has happened in a group.
type Events struct {
	// Killed says that the kernel killed for want of memory.
	Killed bool
	// Refused says that a process or thread was not made for the limit.
	Refused bool
	// Lost says that somebody has lifted the limit of memory.
	Lost bool
}

// tree is one tree of groups, and where the caller is in it.
type tree struct {
	// v2 says that controllers are those of files, and not these.
	v2          bool
	controllers []string
	// dir is the caller's own folder.
	dir string
}

// trees reads /proc/self/cgroup and /proc/self/mountinfo. A tree in which the
// caller's own folder is not to be seen is left out.
func trees(cgroups, mounts string) []tree {
	var out []tree
	for line := range strings.SplitSeq(mounts, "\n") {
		before, after, ok := strings.Cut(line, " - ")
		at, kind := strings.Fields(before), strings.Fields(after)
		if !ok || len(at) < 6 || len(kind) < 3 {
			continue
		}
		t := tree{v2: kind[0] == "cgroup2"}
		if !t.v2 && kind[0] != "cgroup" {
			continue
		}
		if !t.v2 {
			t.controllers = strings.Split(kind[2], ",")
		}
		rest, ok := t.own(cgroups, mountinfo.Unescape(at[3]))
		if !ok {
			continue
		}
		t.dir = path.Join(mountinfo.Unescape(at[4]), rest)
		out = append(out, t)
	}
	return out
}

// own returns the caller's folder relative to a mount of root.
func (t *tree) own(cgroups, root string) (string, bool) {
	for line := range strings.SplitSeq(cgroups, "\n") {
		f := strings.SplitN(line, ":", 3)
		if len(f) < 3 || t.v2 != (f[0] == "0" && f[1] == "") {
			continue
		}
		if !t.v2 && !sameTree(strings.Split(f[1], ","), t.controllers) {
			continue
		}
		if slices.Contains(strings.Split(f[2], "/"), "..") {
			return "", false // outside of our cgroup namespace
		}
		if root == "/" {
			return f[2], true
		}
		rest, ok := strings.CutPrefix(f[2], root)
		return rest, ok && (rest == "" || rest[0] == '/')
	}
	return "", false
}

// sameTree says whether the controllers of a line are among a mount's options.
func sameTree(controllers, options []string) bool {
	for _, c := range controllers {
		if c == "" || !slices.Contains(options, c) {
			return false
		}
	}
	return true
}

// counter returns the number after a name in a file of such lines.
func counter(content, name string) string {
	for line := range strings.SplitSeq(content, "\n") {
		if n, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.TrimSpace(n)
		}
	}
	return ""
}

// used reads the processor time of a group: cpuacct.usage of version 1, which is
// in nanoseconds, or cpu.stat.
func used(v2 bool, content string) (time.Duration, error) {
	word, unit := strings.TrimSpace(content), time.Nanosecond
	if v2 {
		word, unit = counter(content, "usage_usec"), time.Microsecond
	}
	n, err := strconv.ParseInt(word, 10, 64)
	if err != nil || n < 0 || n > int64(1<<63-1)/int64(unit) {
		return 0, errors.New("cannot read the processor time of a control group")
	}
	return time.Duration(n) * unit, nil
}
