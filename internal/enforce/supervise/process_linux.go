package supervise

import (
	"errors"
	"io"
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
}

// Launch starts a program, which must become the inner stage, and does not wait
// for it. explain turns a failure that the inner stage reports into an error for
// people.
func Launch(program Program, explain func(inner.Message) error) (*Process, error) {
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
	go p.supervise(os.NewFile(uintptr(pair[1]), "control"))
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
			return fault.Wrap(fault.IsolationUnavailable, "the limits could not be put in place", err)
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
func (p *Process) supervise(theirs *os.File) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cpus, back := elsewhere()
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

// ReadyIn kills the process when it is not ready in time.
func (p *Process) ReadyIn(patience time.Duration) error {
	timer := time.AfterFunc(patience, p.Kill)
	defer timer.Stop()
	return p.Ready()
}

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

// receive reads one message, and the descriptors that it may carry.
func (p *Process) receive(b []byte) (n int, fds []int, err error) {
	conn, err := p.control.SyscallConn()
	if err != nil {
		return 0, nil, err
	}
	oob := make([]byte, unix.CmsgSpace(4*mostSockets))
	got := 0
	var rerr error
	err = conn.Read(func(fd uintptr) bool {
		for {
			if n, got, _, _, rerr = unix.Recvmsg(int(fd), b, oob, unix.MSG_CMSG_CLOEXEC); !errors.Is(rerr, unix.EINTR) {
				return !errors.Is(rerr, unix.EAGAIN)
			}
		}
	})
	if err = errors.Join(err, rerr); err != nil || got == 0 {
		return n, nil, err
	}
	messages, err := unix.ParseSocketControlMessage(oob[:got])
	if err != nil || len(messages) != 1 {
		return n, nil, errors.Join(err, errors.New("malformed control message"))
	}
	if fds, err = unix.ParseUnixRights(&messages[0]); err != nil {
		return n, nil, err
	}
	return n, fds, nil
}

// mostSockets is how many descriptors one message carries at most (the kernel's
// SCM_MAX_FD).
const mostSockets = 253

// serveGate lets the gate serve its sockets, and says so when it does.
func (p *Process) serveGate(m inner.Message, fds []int) error {
	link := enforce.NoLink
	if len(m.Step) == 1 {
		link = enforce.GateLink(m.Step[0])
	}
	if p.gate == nil || p.order == nil {
		closeAll(fds)
		return fault.New(fault.Internal, "a gate that nobody asked for")
	}
	s, err := enforce.Unpack(p.order, link, m.Status == 1, fds)
	if err != nil {
		closeAll(fds)
		return fault.Wrap(fault.Internal, "the gate", err)
	}
	if err := p.gate(s, m.What); err != nil {
		return err
	}
	_, err = p.control.Write([]byte{inner.GateServes})
	return unlessGone(err)
}

// unlessGone passes an error on, unless the inner stage is gone, and perhaps our
// end closed for that: it says why by what it said last.
func unlessGone(err error) error {
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

func closeAll(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}

// handOver answers with the command's descriptors when the inner stage has
// opened a terminal.
func (p *Process) handOver(master *os.File) error {
	if p.terminal == nil {
		master.Close()
		return fault.New(fault.Internal, "a terminal that nobody asked for")
	}
	stdio, err := p.terminal(master)
	if err != nil {
		return err
	}
	return unlessGone(p.Pass(numbers(stdio)))
}

// fits says whether a message may carry so many descriptors.
func fits(m inner.Message, n int) bool {
	switch m.Kind {
	case inner.Gate:
		return true
	case inner.Terminal:
		return n == 1
	case inner.Reached:
		return n == 1 && m.Errno == 0 || n == 0 && m.Errno != 0
	}
	return n == 0
}

// listen reads what the inner stage says until it closes its end.
func (p *Process) listen() {
	defer close(p.over)
	defer p.control.Close()
	b := make([]byte, inner.MaxMessage)
	for reset := false; ; {
		n, fds, err := p.receive(b)
		if errors.Is(err, syscall.ECONNRESET) && !reset {
			// It went without having read all that we sent, which is told once and
			// before what it said last.
			reset = true
			continue
		}
		if n == 0 || err != nil {
			if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
				p.Kill()
			}
			break
		}
		m, err := inner.DecodeMessage(b[:n])
		if err == nil && !fits(m, len(fds)) {
			err = errors.New("descriptors out of place")
		}
		if err != nil {
			closeAll(fds)
			p.Kill()
			break
		}
		if m.Kind == inner.Reached {
			p.hand(m, fds)
			continue
		}
		if m.Kind == inner.Limited {
			p.met |= enforce.Met(m.Status)
			if m.What != "" {
				p.full = m.What
			}
			continue
		}
		if m.Kind == inner.Covered {
			p.tellCovered(m)
			continue
		}
		if m.Kind == inner.Gate {
			if p.terr = p.serveGate(m, fds); p.terr != nil {
				p.Kill()
				break
			}
			continue
		}
		if m.Kind == inner.Terminal {
			if p.terr = p.handOver(os.NewFile(uintptr(fds[0]), "terminal")); p.terr != nil {
				p.Kill()
				break
			}
			continue
		}
		p.last = m
		if m.Kind == inner.Exited {
			break
		}
		if p.first.Kind == 0 {
			p.first = m
			close(p.ready)
		}
	}
	if p.first.Kind == 0 {
		close(p.ready)
	}
}
