package walls

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/enforce/inner"
	"github.com/tether-sandbox/tether/internal/enforce/landlock"
	"github.com/tether-sandbox/tether/internal/enforce/supervise"
	"github.com/tether-sandbox/tether/internal/plan"
	"github.com/tether-sandbox/tether/policy"
)

// Start starts a job in a plan's walls. private is an empty folder of this run
// that nobody else can enter or change and the command's ids can pass; it is
// the caller's to remove.
// gate is the one port of TCP that can be connected to, zero for none; who asks
// for one has the filter leave TCP open.
func Start(p *plan.Plan, private string, gate uint16, job enforce.Job) (enforce.Process, error) {
	if _, err := landlock.ABI(); err != nil {
		return nil, err
	}
	w, order, err := world(p, private)
	if err == nil {
		err = build(w.Steps, private, order)
	}
	if err != nil {
		return nil, err
	}
	job.Order.Steps = w.Steps[slices.IndexFunc(w.Steps, func(s enforce.Step) bool { return s.Do == enforce.Allow }):]
	job.Order.Env, job.Order.Walls = w.Env, order
	order.Gate = gate
	program := &supervise.Direct{Path: "/proc/self/exe", Args: []string{inner.Name}, Env: []string{"GOGC=off"},
		Sys: &syscall.SysProcAttr{Setsid: true}}
	s, err := supervise.Launch(program, explain)
	if err != nil {
		return nil, err
	}
	if err := s.Begin(&job); err != nil {
		s.Discard()
		return nil, fault.Wrap(fault.IsolationUnavailable, "cannot start the supervisor", err)
	}
	return process{s}, nil
}

// Steps are what Start would carry out, with private in the place of the run's
// folder.
func Steps(p *plan.Plan, private string) ([]enforce.Step, error) {
	w, _, err := world(p, private)
	return w.Steps, err
}

// world translates a plan on this machine.
func world(p *plan.Plan, private string) (World, *enforce.WallsOrder, error) {
	order := &enforce.WallsOrder{Change: p.Identity.Root, UID: p.Identity.HostUID, GID: p.Identity.HostGID}
	host := Host{Private: private, List: list, NoState: p.Identity.Root && !p.Identity.Idmapped}
	if p.Identity.Idmapped {
		// No file system can be shown under other ids here: the command stays uid
		// 0, with nothing of its rights but that it owns what root owns.
		order.UID, order.GID = 0, p.Identity.GID
	}
	if order.UID == 0 {
		closed, err := rootsOwn(p, order.GID)
		if err != nil {
			return World{}, nil, err
		}
		host.Closed = closed
	}
	order.AnyTCP = p.Policy.Network.Mode == policy.Open
	w, err := Translate(p, host)
	return w, order, err
}

// process is one whose tree no namespace holds together.
type process struct{ *supervise.Process }

// patience is how long a supervisor may take to bury a tree.
const patience = 10 * time.Second

// Kill lets the supervisor end what is inside, and then itself: nobody else
// finds it all.
func (p process) Kill() { p.HangUpIn(patience) }

func explain(m inner.Message) error {
	if m.Kind == inner.Changed {
		return fault.Wrap(fault.IsolationUnavailable, m.What, plan.ErrChanged)
	}
	return fault.New(fault.IsolationUnavailable, "inside the walls: "+m.What)
}

// build makes the private places, and the file that must turn out closed.
func build(steps []enforce.Step, private string, order *enforce.WallsOrder) error {
	cannot := func(err error) error {
		return fault.Wrap(fault.SandboxUnavailable, "cannot make the private folder of the run", err)
	}
	root, err := os.OpenRoot(private)
	if err != nil {
		return cannot(err)
	}
	defer root.Close()
	const closed = "closed"
	order.Closed = filepath.Join(private, closed)
	steps = append([]enforce.Step{{Do: enforce.File, Dst: order.Closed, Mode: 0o444}}, steps...)
	for i := range steps {
		s := &steps[i]
		if s.Do == enforce.Allow {
			break
		}
		path, ok := strings.CutPrefix(s.Dst, private+"/")
		if !ok {
			// A folder that is kept, such as the caches: it is the caller's own.
			if err := os.MkdirAll(s.Dst, 0o700); err != nil {
				return cannot(err)
			}
			continue
		}
		parent := filepath.Dir(path)
		if err := root.MkdirAll(parent, 0o755); err != nil {
			return cannot(err)
		}
		if s.Do == enforce.File {
			err = root.WriteFile(path, s.Content, 0o444)
		} else if err = root.MkdirAll(path, 0o755); err == nil {
			err = root.Chmod(path, mode(s.Mode))
		}
		if err != nil {
			return cannot(err)
		}
	}
	if !order.Change {
		return nil
	}
	err = fs.WalkDir(root.FS(), ".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || path == "." {
			return err
		}
		return root.Lchown(path, int(order.UID), int(order.GID))
	})
	if err != nil {
		return cannot(err)
	}
	return nil
}

func mode(m uint32) os.FileMode {
	out := os.FileMode(m & 0o777)
	if m&0o1000 != 0 {
		out |= os.ModeSticky
	}
	return out
}

func list(dir string) ([]Entry, error) {
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	entries, err := f.ReadDir(-1)
	if err != nil {
		return nil, err
	}
	out := make([]Entry, 0, len(entries))
	for _, e := range entries {
		var st unix.Stat_t
		if unix.Fstatat(int(f.Fd()), e.Name(), &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
			continue // gone, or closed to us
		}
		kind := st.Mode & unix.S_IFMT
		out = append(out, Entry{Name: e.Name(), Dir: kind == unix.S_IFDIR, Link: kind == unix.S_IFLNK, Dev: st.Dev, Ino: st.Ino})
	}
	return out, nil
}
