package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/internal/enforce/cgroup/systemd"
)

// Group is the group of one command: a folder, or one for each controller in
// version 1.
type Group struct {
	memory, pids, time *folder

	want Want
	// manager, when not nil, is asked for a scope when a process enters; holder
	// holds it.
	manager *systemd.Manager
	holder  *holder
	none    error // why there is no group, where one can be done without

	most  int64 // of memory, as it was taken
	all   []*folder
	alarm *os.File // readable when memory has run out, in version 1
	rang  atomic.Bool
}

// folder is a group's folder in one tree. It stays locked as long as whoever made
// it lives: one that is not is nobody's, and removed by the next.
type folder struct {
	dir  string
	home string // the caller's
	v2   bool
	lock *os.File
}

// prefix begins the names of groups.
const prefix = "tether-"

// Make makes a group that limits what is wanted. What it cannot limit is an
// error, and then there is no group.
//
// Where systemd has to be asked for it, that is done when a process enters.
func (p Place) Make(w Want) (*Group, error) {
	g := &Group{want: w}
	if p.Asks(w) {
		g.manager = p.manager
		return g, nil
	}
	if err := g.make(p); err != nil {
		_ = g.Remove()
		return nil, err
	}
	return g, nil
}

func (g *Group) make(p Place) (err error) {
	w := g.want
	if w.Memory > 0 {
		if g.memory, err = g.in(p.memory); err != nil {
			return err
		}
		if err = g.limitMemory(w.Memory); err != nil {
			return err
		}
	}
	if w.Processes > 0 {
		if g.pids, err = g.in(p.pids); err != nil {
			return err
		}
		if err = g.pids.write("pids.max", strconv.FormatInt(w.Processes, 10)); err != nil {
			return err
		}
	}
	if w.Time {
		if g.time, err = g.in(p.time); err != nil {
			return err
		}
		if _, err = g.Used(); err != nil {
			return err
		}
	}
	return nil
}

// Used is the processor time that all who are, or were, in the group have used
// there.
func (g *Group) Used() (time.Duration, error) {
	name := "cpuacct.usage"
	if g.time.v2 {
		name = "cpu.stat"
	}
	return used(g.time.v2, g.time.read(name))
}

// Times says whether the group counts processor time.
func (g *Group) Times() bool { return g != nil && g.time != nil }

// in makes the group's folder at a spot, if it has none there.
func (g *Group) in(at spot) (*folder, error) {
	if at.dir == "" {
		return nil, errors.New("no control group is to be had")
	}
	for _, f := range g.all {
		if filepath.Dir(f.dir) == at.dir {
			return f, nil
		}
	}
	if at.leave {
		if err := leave(at.dir); err != nil {
			return nil, err
		}
	}
	prune(at.dir)
	const tries = 10
	for try := 1; ; try++ {
		dir, err := os.MkdirTemp(at.dir, prefix)
		if err != nil {
			return nil, err
		}
		lock, err := os.Open(dir)
		if err == nil {
			err = unix.Flock(int(lock.Fd()), unix.LOCK_EX)
			if err == nil && stands(dir) {
				f := &folder{dir: dir, home: at.home, v2: at.v2, lock: lock}
				g.all = append(g.all, f)
				return f, nil
			}
			lock.Close()
		}
		// Somebody took it for one that is nobody's before it was locked.
		if try == tries {
			return nil, errors.Join(err, errors.New("groups in "+at.dir+" do not stay"))
		}
	}
}

func stands(dir string) bool {
	_, err := os.Stat(dir)
	return err == nil
}

// leave moves the caller, and what it started, into a group of its own, and lets
// others there be limited by what there is of memory and pids.
func leave(dir string) error {
	own := filepath.Join(dir, ownName)
	if err := os.Mkdir(own, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	const tries = 10
	for range tries {
		pids, err := members(dir)
		if err != nil {
			return err
		}
		if len(pids) == 0 {
			break
		}
		for _, pid := range pids {
			if !ours(pid) {
				return fmt.Errorf("others than the caller run in %s", dir)
			}
			if err := enter(own, pid); err != nil && !errors.Is(err, unix.ESRCH) {
				return err
			}
		}
	}
	raw, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return err
	}
	var limit []string
	for _, c := range [...]string{"memory", "pids"} {
		if slices.Contains(strings.Fields(string(raw)), c) {
			limit = append(limit, "+"+c)
		}
	}
	return os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte(strings.Join(limit, " ")), 0)
}

// prune removes the groups whose makers died. One that still has processes stays.
func prune(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), prefix) || e.Name() == ownName {
			continue
		}
		at := filepath.Join(dir, e.Name())
		f, err := os.Open(at)
		if err != nil {
			continue
		}
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			_ = unix.Rmdir(at) // refused while anybody is in it
		}
		f.Close()
	}
}

func (f *folder) write(name, value string) error {
	file, err := os.OpenFile(filepath.Join(f.dir, name), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString(value)
	return errors.Join(err, file.Close())
}

func (f *folder) number(name string) (int64, error) { return strconv.ParseInt(f.read(name), 10, 64) }

func (f *folder) read(name string) string {
	raw, _ := os.ReadFile(filepath.Join(f.dir, name))
	return strings.TrimSpace(string(raw))
}

// limitMemory limits memory and swap together, and looks whether that stands.
func (g *Group) limitMemory(most int64) error {
	f := g.memory
	limit, value := "memory.limit_in_bytes", strconv.FormatInt(most, 10)
	steps := [][2]string{{limit, value}, {"memory.memsw.limit_in_bytes", value}, {"memory.swappiness", "0"}}
	if f.v2 {
		limit = "memory.max"
		steps = [][2]string{{limit, value}, {"memory.swap.max", "0"}, {"memory.oom.group", "1"}}
	}
	for _, s := range steps {
		// Kernels that do not count swap have no file for it.
		if err := f.write(s[0], s[1]); err != nil && (s[0] == limit || !errors.Is(err, os.ErrNotExist)) {
			return err
		}
	}
	var err error
	if g.most, err = f.number(limit); err != nil || g.most > most {
		return fmt.Errorf("%s did not take %d", filepath.Join(f.dir, limit), most)
	}
	if f.v2 {
		return nil
	}
	return g.listen()
}

// listen asks a version 1 group to tell when memory has run out: it kills only
// one process then, and a command is not to go on without a part of it.
func (g *Group) listen() error {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return err
	}
	g.alarm = os.NewFile(uintptr(fd), "memory alarm")
	control, err := os.Open(filepath.Join(g.memory.dir, "memory.oom_control"))
	if err != nil {
		return err
	}
	defer control.Close()
	return g.memory.write("cgroup.event_control", strconv.Itoa(fd)+" "+strconv.Itoa(int(control.Fd())))
}

// Watch calls kill when memory has run out, where the kernel does not kill all of
// the group by itself.
func (g *Group) Watch(kill func()) {
	if g == nil || g.alarm == nil {
		return
	}
	alarm, dir := g.alarm, g.memory.dir
	go func() {
		var b [8]byte
		// It also goes off when the group is removed.
		if n, err := alarm.Read(b[:]); n == len(b) && err == nil && stands(dir) {
			g.rang.Store(true)
			kill()
		}
	}()
}

// Enter moves a process into the group, with all that it has started. It may be
// called again, for another process, when the first has come to nothing. If
// nothing is to be limited, and time cannot be counted, that is no error: see
// [Group.None].
func (g *Group) Enter(pid int) error {
	if g.manager != nil {
		err := g.move(pid)
		if err != nil && g.want.Memory == 0 && g.want.Processes == 0 {
			_ = g.Remove()
			g.none = err
			return nil
		}
		if err != nil {
			return err
		}
	}
	return g.enter(pid)
}

func (g *Group) enter(pid int) error {
	for _, f := range g.all {
		if err := enter(f.dir, pid); err != nil {
			return err
		}
	}
	// What it starts from now on is inside already.
	tasks, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/task")
	if err != nil {
		return err
	}
	for _, t := range tasks {
		raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/task/" + t.Name() + "/children")
		if err != nil {
			if stands("/proc/" + strconv.Itoa(pid) + "/task/" + t.Name()) {
				return err
			}
			continue // the thread has ended, and its children are another's
		}
		for word := range strings.FieldsSeq(string(raw)) {
			child, err := strconv.Atoi(word)
			if err == nil {
				err = g.enter(child)
			}
			if err != nil && stands("/proc/"+word) {
				return err
			}
		}
	}
	return nil
}

func enter(dir string, pid int) error {
	f, err := os.OpenFile(filepath.Join(dir, "cgroup.procs"), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(strconv.Itoa(pid))
	return errors.Join(err, f.Close())
}

// Only lets the group limit exactly so many processes and threads, of all in it
// but these processes, which go back to where the caller is. Their memory is then
// no longer the group's, nor is their processor time, where one folder is for all.
func (g *Group) Only(most int64, but []int) error {
	for _, pid := range but {
		if err := enter(g.pids.home, pid); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
	}
	return g.pids.write("pids.max", strconv.FormatInt(most, 10))
}

// None is why systemd gave no group to count time in, if it did not.
func (g *Group) None() error {
	if g == nil {
		return nil
	}
	return g.none
}

// Counts says whether the group limits processes, or will.
func (g *Group) Counts() bool {
	return g != nil && (g.pids != nil || g.manager != nil && g.want.Processes > 0)
}

// Events says what has happened so far.
func (g *Group) Events() Events {
	e := Events{Killed: g.rang.Load()}
	if g.memory != nil {
		name, limit := "memory.oom_control", "memory.limit_in_bytes"
		if g.memory.v2 {
			name, limit = "memory.events", "memory.max"
		}
		now, err := g.memory.number(limit)
		e.Lost = err != nil || now > g.most
		n := counter(g.memory.read(name), "oom_kill")
		e.Killed = e.Killed || n != "" && n != "0"
	}
	if g.pids != nil {
		n := counter(g.pids.read("pids.events"), "max")
		e.Refused = n != "" && n != "0"
	}
	return e
}

// Remove kills what is left in the group and removes it.
func (g *Group) Remove() error {
	if g == nil {
		return nil
	}
	var errs []error
	for _, f := range g.all {
		errs = append(errs, f.remove())
	}
	g.all, g.memory, g.pids, g.time = nil, nil, nil, nil
	if g.holder != nil {
		g.holder.letGo()
		g.holder = nil
	}
	if g.alarm != nil {
		g.alarm.Close()
		g.alarm = nil
	}
	return errors.Join(errs...)
}

func (f *folder) remove() error {
	defer f.lock.Close()
	const patience = 2 * time.Second
	for begin, nap := time.Now(), 100*time.Microsecond; ; nap *= 2 {
		err := unix.Rmdir(f.dir)
		if err == nil || errors.Is(err, unix.ENOENT) {
			return nil
		}
		if !errors.Is(err, unix.EBUSY) || time.Since(begin) > patience {
			return fmt.Errorf("cannot remove %s: %w", f.dir, err)
		}
		f.kill()
		time.Sleep(nap) // the dead leave it a moment after they were waited for
	}
}

// kill kills every process of the group.
func (f *folder) kill() {
	if f.write("cgroup.kill", "1") == nil {
		return
	}
	pids, _ := members(f.dir)
	for _, pid := range pids {
		if pid > 0 { // zero is one that our process namespace does not show
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
}
