package cgroup

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/internal/enforce/cgroup/systemd"
	"github.com/tether-sandbox/tether/internal/enforce/inner"
)

// unifiedAt is where systemd mounts the tree of version 2, when it is the only one.
const unifiedAt = "/sys/fs/cgroup"

// ask looks whether systemd can be asked for a place: the user's own, which has
// been given controllers, or for root the machine's.
func (p *Place) ask() {
	uid := os.Geteuid()
	own := unifiedAt
	if n := strconv.Itoa(uid); uid != 0 {
		own += "/user.slice/user-" + n + ".slice/user@" + n + ".service"
	}
	raw, err := os.ReadFile(own + "/cgroup.controllers")
	if err != nil {
		p.why = fmt.Errorf("%w; and no systemd of the user's runs", p.why)
		return
	}
	if list := strings.Fields(string(raw)); !slices.Contains(list, "memory") || !slices.Contains(list, "pids") {
		p.why = fmt.Errorf("%w; and systemd does not give memory and pids to %s", p.why, own)
		return
	}
	m, err := systemd.Find(uid, os.Getenv("XDG_RUNTIME_DIR"))
	if err != nil {
		p.why = fmt.Errorf("%w; and systemd cannot be asked: %w", p.why, err)
		return
	}
	p.manager = &m
}

// move has systemd make a scope for a process and what it has started, and makes
// the group in it. The caller stays where it is.
func (g *Group) move(pid int) error {
	if err := g.Remove(); err != nil { // of a provider that was tried before
		return err
	}
	var err error
	if g.holder, err = hold(); err != nil {
		return err
	}
	const tries = 3
	for try := 1; ; try++ {
		s := systemd.Scope{Unit: prefix + rand.Text() + ".scope", Description: "a command that Tether limits", PIDs: []uint32{uint32(g.holder.pid)}}
		for _, n := range withChildren(pid, 0) {
			s.PIDs = append(s.PIDs, uint32(n))
		}
		if err := g.manager.Start(s); err != nil {
			return err
		}
		dir, err := moved(pid, s.Unit)
		if err != nil {
			return err
		}
		// They move one by one, in any order, and nobody moves once there are groups
		// below; what was started before its parent moved, and not seen, does not.
		for _, n := range append(withChildren(pid, 0), g.holder.pid) {
			if _, merr := moved(n, s.Unit); err == nil && merr != nil && stands("/proc/"+strconv.Itoa(n)) {
				err = merr
			}
		}
		if err == nil {
			at := spot{dir: dir, home: filepath.Join(dir, ownName), v2: true, leave: true}
			return g.make(Place{memory: at, pids: at, time: at})
		}
		if try == tries {
			return err
		}
	}
}

// holder is a process that does nothing, and keeps a scope from going before what
// has happened in it was read: it goes when nobody is in it any more, and with it
// all groups. It ends when we do.
type holder struct {
	pid int
	end *os.File
}

func hold() (*holder, error) {
	theirs, end, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	pid, err := syscall.ForkExec("/proc/self/exe", []string{inner.Name, inner.Holder},
		&syscall.ProcAttr{Dir: "/", Env: []string{"GOGC=off"}, Files: []uintptr{theirs.Fd()}, Sys: &syscall.SysProcAttr{Setsid: true}})
	if err != nil {
		end.Close()
		return nil, err
	}
	return &holder{pid, end}, nil
}

func (h *holder) letGo() {
	h.end.Close()
	for {
		if _, err := unix.Wait4(h.pid, nil, 0, nil); !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// withChildren lists a process and all below it.
func withChildren(pid, depth int) []int {
	out := []int{pid}
	const deepest = 100
	tasks, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/task")
	if err != nil || depth > deepest {
		return out
	}
	for _, t := range tasks {
		raw, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/task/" + t.Name() + "/children")
		for word := range strings.FieldsSeq(string(raw)) {
			if n, err := strconv.Atoi(word); err == nil {
				out = append(out, withChildren(n, depth+1)...)
			}
		}
	}
	return out
}

// moved waits until a process is in a scope, and returns the scope's folder.
func moved(pid int, unit string) (string, error) {
	const patience = 3 * time.Second
	for begin, nap := time.Now(), time.Millisecond; ; nap = min(2*nap, 50*time.Millisecond) {
		raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
		if err != nil {
			return "", err
		}
		for line := range strings.SplitSeq(string(raw), "\n") {
			if path, ok := strings.CutPrefix(line, "0::"); ok && filepath.Base(path) == unit {
				return filepath.Join(unifiedAt, path), nil
			}
		}
		if time.Since(begin) > patience {
			return "", errors.New("systemd took the task on, and did not move the command")
		}
		time.Sleep(nap)
	}
}
