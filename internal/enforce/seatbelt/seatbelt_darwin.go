package seatbelt

import (
	"crypto/rand"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/enforce"
)

// patience is how long the profile may take to be compiled and applied.
const patience = 10 * time.Second

// Find says whether the system's sandbox-exec is there to be trusted.
func Find() error {
	info, err := os.Stat(Program)
	if err == nil {
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok || !info.Mode().IsRegular() || st.Uid != 0 || info.Mode().Perm()&0o022 != 0 {
			err = errors.New("it can be changed by others than root")
		}
	}
	if err != nil {
		return fault.Wrap(fault.SandboxUnavailable, "no "+Program+" to be trusted", err)
	}
	return nil
}

// Start starts a job under the profile that lies in a file, which nobody but the
// caller may be able to change; empty, with no sandbox at all. The profile can
// be removed once the process is ready.
func Start(profile string, job enforce.Job) (enforce.Process, error) {
	o := &job.Order
	if profile != "" {
		if err := Find(); err != nil {
			return nil, err
		}
	}
	program, err := lookup(o.Argv[0], o.Dir, o.Env, executable)
	if err != nil {
		errno, ok := errors.AsType[syscall.Errno](err)
		if !ok {
			errno = syscall.ENOENT
		}
		return notRun(errno), nil
	}
	said, say, err := os.Pipe()
	if err != nil {
		return nil, fault.Wrap(fault.IsolationUnavailable, "cannot make a pipe", err)
	}
	marker := Marker + "=" + rand.Text()
	args := arguments(profile, o.Limits, append([]string{program}, o.Argv[1:]...))
	cmd := &exec.Cmd{Path: args[0], Args: args, Dir: o.Dir, Env: append(o.Env[:len(o.Env):len(o.Env)], marker),
		ExtraFiles: []*os.File{say}, SysProcAttr: &syscall.SysProcAttr{Setsid: true, Setctty: o.Terminal}}
	// Assigned one by one: a nil file in an interface would be a file.
	cmd.Stdin, cmd.Stdout, cmd.Stderr = job.Stdio[0], job.Stdio[1], job.Stdio[2]
	err = cmd.Start()
	say.Close()
	if err != nil {
		said.Close()
		return nil, fault.Wrap(fault.IsolationUnavailable, "cannot start "+args[0], err)
	}
	p := &process{cmd: cmd, tree: tree{leader: cmd.Process.Pid, marker: marker}, said: said, gone: make(chan struct{})}
	if err := p.guard(); err != nil {
		p.Kill()
		_ = cmd.Wait()
		said.Close()
		return nil, fault.Wrap(fault.IsolationUnavailable, "cannot start what ends the command when we are gone", err)
	}
	go p.reap()
	return p, nil
}

func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return errors.Unwrap(err)
	case info.IsDir() || info.Mode().Perm()&0o111 == 0:
		return syscall.EACCES
	}
	return nil
}

// process is a command in its session.
type process struct {
	cmd  *exec.Cmd
	tree tree
	said *os.File
	word *os.File // to the guard

	mu   sync.Mutex
	done bool // the leader is reaped: its number may be somebody else's

	ended enforce.Ended
	err   error
	gone  chan struct{}
}

// guard starts a process in a session of its own that ends the command's when we
// are gone.
func (p *process) guard() error {
	hear, word, err := os.Pipe()
	if err != nil {
		return err
	}
	defer hear.Close()
	g := &exec.Cmd{Path: "/bin/sh", Args: []string{"sh", "-c", watch, "sh", strconv.Itoa(p.tree.leader)}, Env: []string{}, Dir: "/",
		Stdin: hear, SysProcAttr: &syscall.SysProcAttr{Setsid: true}}
	if err := g.Start(); err != nil {
		word.Close()
		return err
	}
	p.word = word
	go func() { _ = g.Wait() }()
	return nil
}

// reap waits for the command, ends what it left, and lets the guard go.
func (p *process) reap() {
	defer close(p.gone)
	// The leader stays a zombie, and its number ours, until all else is dead.
	// Where that cannot be waited for, the rest is ended after it.
	awaited := p.tree.await() == nil
	if awaited {
		p.tree.kill()
	}
	err := p.cmd.Wait()
	if !awaited {
		p.tree.kill()
	}
	p.mu.Lock()
	p.done = true
	p.mu.Unlock()
	_, _ = p.word.WriteString("over\n")
	p.word.Close()
	if ws, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok {
		p.ended.Status = uint32(ws)
	} else if p.err == nil {
		p.err = err
	}
}

// PID is that of sandbox-exec, which becomes the command.
func (p *process) PID() int { return p.tree.leader }

// Signal sends sig to the command's process group, or to all that is found of
// it.
func (p *process) Signal(sig int, all bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done {
		return
	}
	_ = syscall.Kill(-p.tree.leader, syscall.Signal(sig))
	if all {
		for _, pid := range p.tree.members() {
			_ = syscall.Kill(pid, syscall.Signal(sig))
		}
	}
}

// Connect refuses: the command listens on the host's own loopback.
func (p *process) Connect(uint16) (*os.File, error) {
	return nil, fault.Wrap(fault.SandboxUnavailable, "there is no loopback of its own on this system", errors.ErrUnsupported)
}

// Cover adds nothing: a profile is what it is from the start.
func (p *process) Cover([]enforce.Step) (enforce.Coverage, error) {
	return enforce.Coverage{}, enforce.ErrStands
}

// Kill ends every process that is found.
func (p *process) Kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.done {
		p.tree.kill()
	}
}

// Ready returns once the profile holds and the command is about to be executed.
func (p *process) Ready() error {
	defer p.said.Close()
	_ = p.said.SetReadDeadline(time.Now().Add(patience))
	var b [1]byte
	if n, _ := p.said.Read(b[:]); n == 1 && b[0] == 'r' {
		return nil
	}
	p.Kill()
	<-p.gone
	return fault.New(fault.IsolationUnavailable, Program+" did not apply the profile, or the system's shell cannot run under it").
		WithHint("tether doctor")
}

// Wait returns when the command and what is found of its processes is gone.
func (p *process) Wait() (enforce.Ended, error) {
	<-p.gone
	return p.ended, p.err
}

// Beside is empty: no process of ours counts with the command's.
func (p *process) Beside() []int { return nil }

// Gone is closed when they are reaped, too.
func (p *process) Gone() <-chan struct{} { return p.gone }
