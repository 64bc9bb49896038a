package supervise

import (
	"errors"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/enforce/inner"
)

// Process is a program that is, or becomes, an inner stage.
type Process struct {
	program Program
	pid     int
	control *os.File
	// steps is what a joiner reads, covering holds whoever has it read.
	steps    *os.File
	covering sync.Mutex
	// started is closed when the program runs or serr says why it does not;
	// done when it is gone.
	started, done chan struct{}
	serr, werr    error
	// cpus are the processors that the command may use; see elsewhere.
	cpus []int
	// explain turns a failure that the inner stage reports into an error.
	explain func(inner.Message) error
	// terminal is the job's; terr is what it failed with.
	terminal func(*os.File) ([3]*os.File, error)
	terr     error
	// gate is the job's, order what it asks for.
	gate  func(enforce.GateSockets, string) error
	order *enforce.GateOrder

	// ready is closed when the first message is in, over when the last is.
	ready, over chan struct{}
	first, last inner.Message
	// met and full are the limits that it was told of.
	met  enforce.Met
	full string

	mu   sync.Mutex
	gone bool
	// reached are those that wait for a connection, by number.
	reached map[uint32]chan<- reached
	// covered are those that wait for masks, by number.
	covered map[uint32]chan<- inner.Message
	number  uint32

	joining joining
}

// Launch starts a program, which must become the inner stage, and does not wait
// for it. explain turns a failure that the inner stage reports into an error for
// people.
func Launch(program Program, explain func(inner.Message) error) (*Process, error) {
	return launch(program, explain, elsewhere)
}

// launch is Launch with a choice of where the program begins.
func launch(program Program, explain func(inner.Message) error, where func() ([]int, func())) (*Process, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fault.Wrap(fault.IsolationUnavailable, "no control socket", err)
	}
	if err := unix.SetNonblock(pair[0], true); err != nil {
		unix.Close(pair[0])
		unix.Close(pair[1])
		return nil, fault.Wrap(fault.IsolationUnavailable, "no control socket", err)
	}
	p := &Process{program: program, control: os.NewFile(uintptr(pair[0]), "control"), explain: explain,
		started: make(chan struct{}), done: make(chan struct{}), ready: make(chan struct{}), over: make(chan struct{})}
	go p.supervise(os.NewFile(uintptr(pair[1]), "control"), where)
	return p, nil
}

// Begin gives the inner stage its order and the command's descriptors. An error
// means that the program could not be started, or is gone already.
func (p *Process) Begin(job *enforce.Job) error {
	p.terminal, p.gate, p.order = job.Terminal, job.Gate, job.Order.Gate
	if job.Order.Terminal && job.Terminal == nil {
		return fault.New(fault.Internal, "nobody takes the terminal")
	}
	<-p.started
	if p.serr != nil {
		return p.serr
	}
	if job.Enter != nil {
		if err := job.Enter(p.pid); err != nil {
			return err
		}
	}
	job.Order.CPUs = p.cpus
	file, err := Memory("tether-order", job.Order.Encode())
	if err != nil {
		return fault.Wrap(fault.IsolationUnavailable, "no memory file for the order", err)
	}
	defer file.Close()
	go p.listen()
	fds := []int{int(file.Fd())}
	if !job.Order.Terminal {
		fds = append(fds, numbers(job.Stdio)...)
	}
	return unlessGone(p.Pass(fds))
}

func numbers(stdio [3]*os.File) []int {
	return []int{int(stdio[0].Fd()), int(stdio[1].Fd()), int(stdio[2].Fd())}
}

// Discard ends a process that was launched and is not needed.
func (p *Process) Discard() {
	go func() {
		<-p.started
		p.Kill()
		p.control.Close()
	}()
}

// PID is the process id, on the host, of the program that was started.
func (p *Process) PID() int { return p.pid }

// Beside is part of enforce.Process, for a program that is the inner stage itself.
func (p *Process) Beside() []int {
	if n := int(p.first.Status); p.first.Kind == inner.Started && n > 0 {
		return []int{p.pid, n}
	}
	return []int{p.pid}
}

// Memory returns a file in memory with content, at its start.
func Memory(name string, content []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), name)
	if _, err := f.Write(content); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// supervise starts the inner stage and waits for it, from one thread that
// lives as long: the parent-death signal follows the thread that cloned.
func (p *Process) supervise(theirs *os.File, where func() ([]int, func())) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cpus, back := where()
	p.pid, p.serr = p.program.Start(theirs)
	back()
	p.cpus = cpus
	theirs.Close()
	if p.serr != nil {
		p.gone = true
		p.control.Close()
		close(p.started)
		close(p.done)
		return
	}
	close(p.started)
	p.program.Await()
	p.mu.Lock()
	p.gone = true
	p.werr = p.program.Bury()
	p.mu.Unlock()
	p.joining.end()
	close(p.done)
}

// Pass hands descriptors to the inner stage.
func (p *Process) Pass(fds []int) error {
	conn, err := p.control.SyscallConn()
	if err != nil {
		return os.ErrClosed
	}
	for rest := fds; len(rest) > 0; {
		n := min(len(rest), inner.TreesPerPacket)
		var serr error
		if err := conn.Write(func(fd uintptr) bool {
			serr = unix.Sendmsg(int(fd), []byte{'T'}, unix.UnixRights(rest[:n]...), nil, unix.MSG_NOSIGNAL)
			return !errors.Is(serr, unix.EAGAIN)
		}); err != nil {
			// The one thing that can be wrong here, told by an error of a package
			// that is not ours to name.
			return os.ErrClosed
		}
		if serr != nil {
			return serr
		}
		rest = rest[n:]
	}
	return nil
}

// Signal sends sig to the command's process group, or to every process.
func (p *Process) Signal(sig int, all bool) {
	whom := byte(inner.ToCommand)
	if all {
		whom = inner.ToAll
	}
	_, _ = p.control.Write([]byte{whom, byte(sig)})
}

// Kill ends the inner stage, and the kernel everything with it.
func (p *Process) Kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pid != 0 && !p.gone {
		_ = syscall.Kill(p.pid, syscall.SIGKILL)
	}
}

// HangUp lets the inner stage end everything inside, and then itself, as it does
// when we are gone. For programs that are not the first process of the
// namespaces themselves: when those are killed, what is inside dies later than
// they do, or not at all. What does not end by itself is killed after all.
func (p *Process) HangUp() { p.HangUpIn(time.Second) }

// HangUpIn is HangUp with its own patience.
func (p *Process) HangUpIn(patience time.Duration) {
	if conn, err := p.control.SyscallConn(); err == nil {
		_ = conn.Control(func(fd uintptr) { _ = unix.Shutdown(int(fd), unix.SHUT_WR) })
	}
	time.AfterFunc(patience, p.Kill)
}

// Ready returns once the command runs or its program could not be executed.
// An error means that nothing of it ran; the process is then gone.
func (p *Process) Ready() error {
	<-p.ready
	switch p.first.Kind {
	case inner.Started, inner.NoExec:
		return nil
	}
	_, err := p.Wait()
	return err
}

// Heard says whether the inner stage has reported anything. It is meaningful
// after Ready.
func (p *Process) Heard() bool { return p.first.Kind != 0 }

// Wait returns when every process of the command is gone. The inner stage, which
// has nothing more to do then, may take a moment longer, as the kernel takes its
// namespaces apart.
func (p *Process) Wait() (enforce.Ended, error) {
	<-p.over
	if p.last.Kind == inner.Exited {
		return enforce.Ended{Status: p.last.Status, Met: p.met, Full: p.full}, nil
	}
	<-p.done
	if p.terr != nil {
		return enforce.Ended{}, p.terr
	}
	switch p.last.Kind {
	case inner.NoExec:
		return enforce.Ended{NoExec: int(p.last.Errno)}, nil
	case inner.Failed, inner.Changed:
		return enforce.Ended{}, p.explain(p.last)
	case inner.Started:
		// Killed from outside: by us, or by somebody else.
		return enforce.Ended{Status: uint32(syscall.SIGKILL), Met: p.met, Full: p.full}, nil
	}
	return enforce.Ended{}, fault.Wrap(fault.IsolationUnavailable, "the inner stage ended before the command started", p.werr)
}

// Gone is closed when the program that was started is gone.
func (p *Process) Gone() <-chan struct{} { return p.done }
