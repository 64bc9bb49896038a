package cgroup

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/internal/enforce/cgroup/systemd"
)

// Place is where the caller may make groups.
type Place struct {
	memory, pids, time spot
	// manager, when not nil, makes a place for one command.
	manager *systemd.Manager

	why error // of memory
}

// spot is a folder in which a group with one controller can be made.
type spot struct {
	dir string // empty: there is none
	// home is the group in which the caller is, or will be.
	home string
	v2   bool
	// leave says that the caller must first move into a group of its own: in
	// version 2 a group with limited children has no processes itself.
	leave bool
}

// ownName is the group that the caller moves to.
const ownName = "tether-own"

// Find says where the caller may make groups. It changes nothing.
func Find() Place {
	cgroups, err := os.ReadFile("/proc/self/cgroup")
	mounts, merr := os.ReadFile("/proc/self/mountinfo")
	if err = errors.Join(err, merr); err != nil {
		return Place{why: err}
	}
	p := find(trees(string(cgroups), string(mounts)), booted())
	if (p.memory.dir == "" || p.time.dir == "") && booted() {
		p.ask()
	}
	return p
}

// booted says whether systemd runs the machine (sd_booted(3)).
func booted() bool {
	_, err := os.Stat("/run/systemd/system")
	return err == nil
}

// Way is how to type a command, such as "tether run --max-memory 1G -- CMD", so
// that memory can be limited for it; empty where none is known. A systemd that
// could do it has been asked.
func Way(command string) string {
	if booted() || os.Geteuid() == 0 {
		return ""
	}
	return "sudo " + command // the command itself runs as the workspace's owner
}

func find(all []tree, managed bool) Place {
	p := Place{why: errors.New("there are no control groups with a memory controller")}
	for _, t := range all {
		if t.v2 {
			p.second(t.dir, managed)
			continue
		}
		for _, c := range []struct {
			name string
			at   *spot
		}{{"memory", &p.memory}, {"pids", &p.pids}, {"cpuacct", &p.time}} {
			if !slices.Contains(t.controllers, c.name) || c.at.dir != "" {
				continue
			}
			if mayUse(t.dir) {
				*c.at = spot{dir: t.dir, home: t.dir}
			} else if c.name == "memory" {
				p.why = errors.New(t.dir + " is not the caller's")
			}
		}
	}
	return p
}

// second looks for a place in a version 2 tree: beside the caller, in a folder
// that already limits its children, or in the caller's own, if nobody else is in
// it.
func (p *Place) second(dir string, managed bool) {
	for _, at := range []spot{{dir: filepath.Dir(dir), home: dir, v2: true},
		{dir: dir, home: filepath.Join(dir, ownName), v2: true, leave: true}} {
		has := "cgroup.subtree_control"
		if at.leave {
			has = "cgroup.controllers"
		}
		raw, err := os.ReadFile(filepath.Join(at.dir, has))
		list := strings.Fields(string(raw))
		memory, pids := slices.Contains(list, "memory") && p.memory.dir == "", slices.Contains(list, "pids") && p.pids.dir == ""
		switch {
		case err != nil || !memory && !pids:
			continue
		case !mayUse(at.dir):
			p.why = errors.New(at.dir + " is not the caller's")
			continue
		case !at.leave && managed && filepath.Base(dir) != ownName:
			continue // systemd's, and not delegated to us
		case at.leave && (root(at.dir) || !alone(at.dir)):
			p.why = errors.New("others than the caller run in " + at.dir)
			continue
		}
		if memory {
			p.memory = at
		}
		if pids {
			p.pids = at
		}
		if p.time.dir == "" {
			p.time = at // which is counted without a controller
		}
	}
}

// mayUse says whether the caller may make groups in a folder, and move its own
// processes into them.
func mayUse(dir string) bool {
	return unix.Access(dir, unix.W_OK) == nil && unix.Access(filepath.Join(dir, "cgroup.procs"), unix.W_OK) == nil
}

// root says whether a folder is the top of the machine's tree, the only one
// without a type.
func root(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "cgroup.type"))
	return err != nil
}

// alone says whether nobody is in a group but the caller and what it started.
func alone(dir string) bool {
	pids, err := members(dir)
	return err == nil && len(pids) > 0 && !slices.ContainsFunc(pids, func(pid int) bool { return !ours(pid) })
}

func members(dir string) ([]int, error) {
	raw, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return nil, err
	}
	var pids []int
	for word := range strings.FieldsSeq(string(raw)) {
		pid, err := strconv.Atoi(word)
		if err != nil {
			return nil, err
		}
		pids = append(pids, pid)
	}
	return pids, nil
}

// ours says whether a process is the caller or descends from it.
func ours(pid int) bool {
	for depth := 0; pid > 1 && depth < 1000; depth++ {
		if pid == os.Getpid() {
			return true
		}
		raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil {
			return false
		}
		// The name before it may hold anything: it ends with the last bracket.
		f := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
		if len(f) < 2 {
			return false
		}
		if pid, err = strconv.Atoi(f[1]); err != nil {
			return false
		}
	}
	return pid == os.Getpid()
}

// Memory says whether memory can be limited; Why says why not.
func (p Place) Memory() bool { return p.memory.dir != "" || p.manager != nil }

// Processes says whether processes can be limited without asking systemd.
func (p Place) Processes() bool { return p.pids.dir != "" }

// Time says whether processor time can be counted.
func (p Place) Time() bool { return p.time.dir != "" || p.manager != nil }

// Asks says whether it takes systemd to limit what is wanted.
func (p Place) Asks(w Want) bool {
	return p.manager != nil && (w.Memory > 0 && p.memory.dir == "" || w.Time && p.time.dir == "")
}

// Means says in words by what memory can be limited; empty where it cannot.
func (p Place) Means() string {
	switch {
	case p.memory.dir == "" && p.manager != nil:
		return "a scope that systemd makes"
	case p.memory.dir == "":
		return ""
	case p.memory.v2:
		return "control groups of version 2"
	}
	return "control groups of version 1"
}

// Why says why memory cannot be limited, if it cannot.
func (p Place) Why() error { return p.why }
