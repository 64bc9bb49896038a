package bwrap

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/enforce/inner"
	"github.com/tether-sandbox/tether/internal/enforce/supervise"
	"github.com/tether-sandbox/tether/internal/machine"
	"github.com/tether-sandbox/tether/internal/plan"
)

// places are where a bwrap is taken from: fixed paths that only root can
// change. PATH is never asked, since a workspace may lie on it.
var places = [...]string{"/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap", "/run/current-system/sw/bin/bwrap"}

// Find returns the system's bwrap, or an error that says why there is none to
// be trusted.
func Find() (string, error) {
	var last error
	for _, p := range places {
		err := trusted(p)
		if err == nil {
			return p, nil
		}
		if !errors.Is(err, os.ErrNotExist) {
			last = err
		}
	}
	if last == nil {
		last = errors.New("it is not installed")
	}
	return "", fault.Wrap(fault.SandboxUnavailable, "no bwrap to be trusted", last).
		WithHint(cmp.Or(machine.Install("bubblewrap"), "install bubblewrap"))
}

// withSize is the first version that limits folders in memory.
const withSize = 800

func trusted(path string) error {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return os.ErrNotExist
	}
	info, err := os.Stat(real)
	if err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok || !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file", path)
	case st.Uid != 0 || info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("%s can be changed by others than root", path)
	case info.Mode()&(os.ModeSetuid|os.ModeSetgid) != 0:
		return fmt.Errorf("%s is set-uid: it would run with root's rights", path)
	}
	return errors.Join(rooted(filepath.Dir(path)), rooted(filepath.Dir(real)))
}

// rooted refuses a folder in which, or above which, somebody but root could put
// something else in a program's place.
func rooted(dir string) error {
	for ; ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return err
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		// Where the sticky bit is set only an owner moves a thing away, and
		// that is root all the way down.
		open := info.Mode().Perm()&0o022 != 0 && info.Mode()&os.ModeSticky == 0
		if !ok || st.Uid != 0 || open {
			return fmt.Errorf("%s can be changed by others than root", dir)
		}
		if dir == "/" {
			return nil
		}
	}
}

// Start starts a job through bwrap. stubs is a folder of ours for the stand-ins
// of tracked hidden files.
func Start(id plan.Identity, network bool, stubs string, job enforce.Job) (enforce.Process, error) {
	if id.Idmapped {
		return nil, fault.New(fault.SandboxUnavailable, "bwrap cannot map root's own workspace to an unused id").
			WithHint("--provider native")
	}
	path, err := Find()
	if err != nil {
		return nil, err
	}
	version, err := versionOf(path)
	if err != nil {
		return nil, err
	}
	if job.Order.Limits.ScratchBytes > 0 && version < withSize {
		return nil, fault.New(fault.SandboxUnavailable, path+" is too old to limit folders in memory").WithHint("--provider native")
	}
	files := &handover{next: 3 + 1} // after the control socket
	defer files.close()
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return nil, fault.Wrap(fault.IsolationUnavailable, "cannot open our own program", err)
	}
	files.own(self)
	exe := files.add(self)
	stand := &standIns{dir: stubs}
	host := Host{Exists: present, Data: files.data,
		Stub: func(size, mtime int64, mode uint32) (string, error) { return stand.file(size, mtime, mode) },
		Size: version >= withSize, DisableUserns: version >= 800}
	var absent []string
	if id.Root {
		// bwrap runs as the workspace's owner, who cannot look into root's
		// own folders.
		reach, err := reachable(job.Order.Steps, id.HostUID, id.HostGID)
		if err != nil {
			return nil, fault.Wrap(fault.IsolationUnavailable, "cannot tell what the workspace's owner can reach", err)
		}
		host.Exists = func(path string) bool { return reach[path] }
		absent = Unreachable(job.Order.Steps, host.Exists)
		job.Order.Steps = Reachable(job.Order.Steps, host.Exists)
		stand = &standIns{temporary: true}
	}
	args, err := Arguments(job.Order.Steps, network, host)
	if err != nil {
		stand.remove()
		return nil, err
	}
	job.Order.Build = false
	job.Order.Steps = Expected(job.Order.Steps)
	list := files.data([]byte(strings.Join(args, "\x00") + "\x00"))
	if files.err != nil {
		stand.remove()
		return nil, fault.Wrap(fault.IsolationUnavailable, "cannot hand the plan to bwrap", files.err)
	}
	complaint := &firstBytes{}
	cmd := &exec.Cmd{Path: path, Dir: "/", Env: []string{},
		Args: []string{"bwrap", "--args", strconv.Itoa(list), "--", "/proc/self/fd/" + strconv.Itoa(exe), inner.Name},
		// bwrap's own messages, bounded; its output is nobody's. The command's
		// descriptors go to the inner stage, past bwrap.
		Stderr: complaint, WaitDelay: time.Second,
		ExtraFiles: files.files,
		// A process group of its own, so that a signal from the caller's terminal
		// comes to us alone. No parent-death signal: a bwrap that dies between
		// the fork and its last word to the child leaves one that waits for ever
		// (containers/bubblewrap#730). Alive it always comes to its end: when we
		// are gone, the inner stage finds its control socket closed.
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true}}
	if id.Root {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: id.HostUID, Gid: id.HostGID}
	}
	p, err := supervise.Launch(&supervise.Indirect{Cmd: cmd}, explain)
	if err == nil {
		p.Joins(inner.Identity{Change: id.Root, UID: id.HostUID, GID: id.HostGID})
		if err = p.Begin(&job); err != nil {
			p.Discard()
		}
	}
	if err != nil {
		stand.remove()
		return nil, fault.Wrap(fault.IsolationUnavailable, "cannot start "+path, err)
	}
	masks := len(job.Order.Steps)
	return &process{Process: p, path: path, complaint: complaint, stand: stand, absent: absent, credential: cmd.SysProcAttr.Credential,
		// bwrap's time grows with the square of the number of mounts.
		patience: 2*time.Second + time.Duration(masks*masks)*time.Microsecond*4}, nil
}

// process adds to a supervised process what bwrap said when it failed.
type process struct {
	*supervise.Process
	path      string
	complaint *firstBytes
	stand     *standIns
	absent    []string // what its ids do not reach, and is not shown
	patience  time.Duration
	// credential is what bwrap runs as, nil for us.
	credential *syscall.Credential
}

// Ready reports what bwrap said when it failed, and does not wait for ever for
// a bwrap that hangs, or never comes to an end.
func (p *process) Ready() error {
	stop := hurry(p.PID(), p.patience, p.Process.Kill)
	err := p.Process.Ready()
	stop()
	p.stand.remove()
	if err == nil || p.Heard() {
		return err
	}
	e := fault.New(fault.IsolationUnavailable, p.path+" could not build the sandbox: "+p.complaint.line())
	if strings.HasPrefix(p.complaint.line(), "bwrap: ") && refused(p.path, p.credential) {
		e.Err = enforce.ErrMachine
	}
	return e.WithHint("tether doctor")
}

// Cover leaves out what lies where nothing is shown.
func (p *process) Cover(steps []enforce.Step) (enforce.Coverage, error) {
	steps = slices.DeleteFunc(slices.Clone(steps), func(s enforce.Step) bool {
		return slices.ContainsFunc(p.absent, func(dir string) bool { return strings.HasPrefix(s.Dst, dir+"/") })
	})
	return p.Process.Cover(steps)
}

// refused says whether bwrap cannot make its namespaces here, whatever a plan
// holds: it is asked for no more than those.
func refused(path string, id *syscall.Credential) bool {
	const patience = time.Second
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	complaint := &firstBytes{}
	cmd := exec.CommandContext(ctx, path, "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--cap-drop", "ALL",
		"--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--", "true")
	cmd.Env, cmd.Dir, cmd.WaitDelay, cmd.Stderr = []string{}, "/", 100*time.Millisecond, complaint
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: id}
	err := cmd.Run()
	line := complaint.line()
	// That there is no such program inside says that the rest was built.
	return err != nil && ctx.Err() == nil && strings.HasPrefix(line, "bwrap: ") && !strings.HasPrefix(line, "bwrap: execvp ")
}

// Kill ends what is inside by way of the inner stage: bwrap's own process is not
// the first of the namespaces, and would be gone before they are.
func (p *process) Kill() { p.HangUp() }

// Beside adds the inner stage, which is bwrap's only child.
func (p *process) Beside() []int {
	own := strconv.Itoa(p.PID())
	list, _ := os.ReadFile("/proc/" + own + "/task/" + own + "/children")
	out := []int{p.PID()}
	for word := range strings.FieldsSeq(string(list)) {
		if n, err := strconv.Atoi(word); err == nil {
			out = append(out, n)
		}
	}
	return out
}

// Wait returns when everything is gone, bwrap's own process included.
func (p *process) Wait() (enforce.Ended, error) {
	ended, err := p.Process.Wait()
	<-p.Gone()
	return ended, err
}

func explain(m inner.Message) error {
	if m.Kind == inner.Changed {
		return fault.Wrap(fault.IsolationUnavailable, "inside bwrap: "+m.What, plan.ErrChanged)
	}
	return fault.New(fault.IsolationUnavailable, "inside bwrap: "+m.What)
}

// versionOf asks a trusted bwrap for its version, as major*10000+minor*100;
// zero is the answer of one that does not say. One that hangs is an error.
func versionOf(path string) (int, error) {
	const patience = 1500 * time.Millisecond
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	answer := &firstBytes{}
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.Env, cmd.Dir, cmd.WaitDelay, cmd.Stdout = []string{}, "/", 100*time.Millisecond, answer
	err := cmd.Run()
	if ctx.Err() != nil {
		return 0, fault.New(fault.IsolationUnavailable, path+" does not even tell its version in time").
			WithHint("tether doctor")
	}
	var major, minor int
	if err != nil {
		return 0, nil
	}
	if _, err := fmt.Sscanf(answer.line(), "bubblewrap %d.%d", &major, &minor); err != nil {
		return 0, nil
	}
	return major*10000 + minor*100, nil
}

// present says whether a path may be there: only a clear no is a no, since what
// is believed to be gone gets no mask.
func present(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// standIns are the files that stand for hidden ones that git tracks.
type standIns struct {
	// dir holds them. Temporary ones lie where the workspace's owner can reach
	// them, and go as soon as bwrap has mounted them.
	dir       string
	temporary bool
}

func (s *standIns) remove() {
	if s.temporary && s.dir != "" {
		_ = os.RemoveAll(s.dir)
	}
}

// file returns a sparse file with a size, a time and the execute bits of a mode
// that nobody can open. It says nothing of the file that it stands for, and is kept for the next run.
func (s *standIns) file(size, mtime int64, mode uint32) (string, error) {
	if s.temporary && s.dir == "" {
		dir, err := os.MkdirTemp("/run", "tether-")
		if err == nil {
			s.dir, err = dir, os.Chmod(dir, 0o711)
		}
		if err != nil {
			return "", fault.Wrap(fault.IsolationUnavailable, "cannot make a stand-in file", err)
		}
	}
	dir := s.dir
	path := filepath.Join(dir, fmt.Sprintf("%d-%d-%o", size, mtime, mode&0o111))
	if info, err := os.Lstat(path); err == nil && info.Size() == size && info.ModTime().UnixNano() == mtime {
		return path, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fault.Wrap(fault.IsolationUnavailable, "cannot make a stand-in file", err)
	}
	f, err := os.CreateTemp(dir, ".new-*")
	if err != nil {
		return "", fault.Wrap(fault.IsolationUnavailable, "cannot make a stand-in file", err)
	}
	defer f.Close()
	t := time.Unix(0, mtime)
	if err := errors.Join(f.Truncate(size), os.Chtimes(f.Name(), t, t), f.Chmod(os.FileMode(mode&0o111)), os.Rename(f.Name(), path)); err != nil {
		return "", fault.Wrap(fault.IsolationUnavailable, "cannot make a stand-in file", err)
	}
	return path, nil
}

// handover collects the descriptors that cross to bwrap.
type handover struct {
	files []*os.File
	owned []*os.File
	next  int
	err   error
}

func (h *handover) add(f *os.File) int {
	h.files = append(h.files, f)
	h.next++
	return h.next - 1
}

func (h *handover) own(f *os.File) { h.owned = append(h.owned, f) }

func (h *handover) data(content []byte) int {
	f, err := supervise.Memory("tether-data", content)
	if err == nil {
		_, err = f.Seek(0, 0)
		h.own(f)
	}
	if err != nil {
		h.err = errors.Join(h.err, err)
		return -1
	}
	return h.add(f)
}

func (h *handover) close() {
	for _, f := range h.owned {
		f.Close()
	}
}

// firstBytes keeps the first of what is written to it and drops the rest.
type firstBytes struct {
	mu   sync.Mutex
	kept []byte
}

func (w *firstBytes) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if room := 4096 - len(w.kept); room > 0 {
		w.kept = append(w.kept, b[:min(room, len(b))]...)
	}
	return len(b), nil
}

func (w *firstBytes) line() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	line, _, _ := bytes.Cut(bytes.TrimSpace(w.kept), []byte("\n"))
	line = slices.Clone(line)
	if len(line) == 0 {
		return "it ended, or hung, without a word"
	}
	return strings.ToValidUTF8(string(line), "?")
}
