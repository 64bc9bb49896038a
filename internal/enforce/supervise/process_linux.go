package supervise

import (
	"errors"
	"io"
	"os"
	"os/exec"
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
	cmd     *exec.Cmd
	control *os.File
	done    chan struct{}
	werr    error
	// Explain turns a failure that the inner stage reports into an error.
	explain func(inner.Message) error

	// ready is closed when the first message is in, over when the last is.
	ready, over chan struct{}
	first, last inner.Message

	mu   sync.Mutex
	gone bool
}

// Start starts cmd, which must become the inner stage, with the control socket
// and the order as its first extra descriptors. explain turns a failure that
// the inner stage reports into an error for people.
func Start(cmd *exec.Cmd, order *enforce.Order, explain func(inner.Message) error) (*Process, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fault.Wrap(fault.IsolationUnavailable, "no control socket", err)
	}
	theirs := os.NewFile(uintptr(pair[1]), "control")
	defer theirs.Close()
	if err := unix.SetNonblock(pair[0], true); err != nil {
		unix.Close(pair[0])
		return nil, fault.Wrap(fault.IsolationUnavailable, "no control socket", err)
	}
	p := &Process{cmd: cmd, control: os.NewFile(uintptr(pair[0]), "control"), explain: explain,
		done: make(chan struct{}), ready: make(chan struct{}), over: make(chan struct{})}
	file, err := Memory("tether-order", order.Encode())
	if err != nil {
		p.control.Close()
		return nil, fault.Wrap(fault.IsolationUnavailable, "no memory file for the order", err)
	}
	defer file.Close()
	cmd.ExtraFiles = append([]*os.File{theirs, file}, cmd.ExtraFiles...)
	started := make(chan error)
	go p.supervise(started)
	if err := <-started; err != nil {
		p.control.Close()
		return nil, err
	}
	go p.listen()
	return p, nil
}

// PID is the process id, on the host, of the program that was started.
func (p *Process) PID() int { return p.cmd.Process.Pid }

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
func (p *Process) supervise(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	p.werr = p.cmd.Wait()
	p.mu.Lock()
	p.gone = true
	p.mu.Unlock()
	close(p.done)
}

// Pass hands descriptors to the inner stage.
func (p *Process) Pass(fds []int) error {
	conn, err := p.control.SyscallConn()
	if err != nil {
		return err
	}
	for rest := fds; len(rest) > 0; {
		n := min(len(rest), inner.TreesPerPacket)
		var serr error
		if err := conn.Write(func(fd uintptr) bool {
			serr = unix.Sendmsg(int(fd), []byte{'T'}, unix.UnixRights(rest[:n]...), nil, unix.MSG_NOSIGNAL)
			return !errors.Is(serr, unix.EAGAIN)
		}); err != nil {
			return err
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
	if !p.gone {
		_ = p.cmd.Process.Kill()
	}
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

// Wait returns when the inner stage, and with it everything inside, is gone.
func (p *Process) Wait() (enforce.Ended, error) {
	<-p.over
	<-p.done
	switch p.last.Kind {
	case inner.Exited:
		return enforce.Ended{Status: p.last.Status}, nil
	case inner.NoExec:
		return enforce.Ended{NoExec: int(p.last.Errno)}, nil
	case inner.Failed:
		return enforce.Ended{}, p.explain(p.last)
	case inner.Started:
		// Killed from outside: by us, or by somebody else.
		return enforce.Ended{Status: uint32(syscall.SIGKILL)}, nil
	}
	return enforce.Ended{}, fault.Wrap(fault.IsolationUnavailable, "the inner stage ended before the command started", p.werr)
}

// listen reads what the inner stage says until it closes its end.
func (p *Process) listen() {
	defer close(p.over)
	defer p.control.Close()
	b := make([]byte, 1<<16)
	for {
		n, err := p.control.Read(b)
		if n == 0 || err != nil {
			if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
				p.Kill()
			}
			break
		}
		m, err := inner.DecodeMessage(b[:n])
		if err != nil {
			p.Kill()
			break
		}
		p.last = m
		if p.first.Kind == 0 {
			p.first = m
			close(p.ready)
		}
	}
	if p.first.Kind == 0 {
		close(p.ready)
	}
}
