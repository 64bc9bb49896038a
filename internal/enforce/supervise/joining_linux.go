package supervise

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/enforce/inner"
)

// joining is what a process knows of the joiner that covers places in its world.
// The zero value has none.
type joining struct {
	id *inner.Identity // nil for a process that hands no world over

	mu sync.Mutex
	// world is the mount namespace, and what masks are made of if the inner stage
	// built it; empty where nothing was handed over.
	world []*os.File
	// process is the joiner, nil before it is needed and when it was lost.
	process *Process
	over    bool
}

// Joins says that the inner stage hands its world over, and which ids a joiner
// takes on before it goes there. Called before Begin.
func (p *Process) Joins(id inner.Identity) { p.joining.id = &id }

// into says which world it is. The descriptors are the callee's.
func (j *joining) into(fds []int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.over || j.world != nil {
		closeAll(fds)
		return
	}
	for _, fd := range fds {
		j.world = append(j.world, os.NewFile(uintptr(fd), "world"))
	}
}

// joiner returns the joiner, which it starts if there is none.
func (j *joining) joiner() (*Process, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.over:
		return nil, os.ErrClosed
	case len(j.world) == 0:
		return nil, enforce.ErrStands
	case j.process != nil:
		return j.process, nil
	}
	steps, theirs, err := shared()
	if err != nil {
		return nil, err
	}
	files := make([]*os.File, 0, len(j.world)+1)
	for i, f := range j.world {
		again, err := dup(f)
		if err != nil {
			return nil, errors.Join(err, steps.Close(), theirs.Close())
		}
		if files = append(files, again); i == 0 {
			files = append(files, theirs)
		}
	}
	word := inner.Joiner
	if len(j.world) > 1 {
		word = inner.OurJoiner
	}
	// Not on another processor alone: it stays longer than it takes to start.
	p, err := launch(&Direct{Path: "/proc/self/exe", Args: []string{inner.Name, word}, Env: []string{"GOGC=off"},
		Files: files, Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}}, nil,
		func() ([]int, func()) { return nil, func() {} })
	if err != nil {
		return nil, errors.Join(err, steps.Close())
	}
	<-p.started
	if p.serr != nil {
		return nil, errors.Join(p.serr, steps.Close())
	}
	p.steps = steps
	go p.listen()
	if _, err := p.control.Write(j.id.Encode()); err != nil {
		p.HangUp()
		return nil, err
	}
	j.process = p
	return p, nil
}

// shared makes a file in memory that a joiner may only read.
func shared() (ours, theirs *os.File, err error) {
	if ours, err = Memory("tether-steps", nil); err != nil {
		return nil, nil, err
	}
	if theirs, err = os.Open(fmt.Sprintf("/proc/self/fd/%d", ours.Fd())); err != nil {
		return nil, nil, errors.Join(err, ours.Close())
	}
	return ours, theirs, nil
}

func dup(f *os.File) (*os.File, error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	fd := -1
	cerr := conn.Control(func(n uintptr) { fd, err = unix.FcntlInt(n, unix.F_DUPFD_CLOEXEC, 3) })
	if err := errors.Join(cerr, err); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

// lost says why a joiner does not answer any more. One that was there may be
// started again.
func (j *joining) lost(p *Process) error {
	p.HangUp()
	<-p.done
	<-p.over // it may have said why
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.over:
		return os.ErrClosed
	case p.last.Kind == inner.Failed:
		return fmt.Errorf("%w: %s", enforce.ErrStands, p.last.What)
	}
	if j.process == p {
		j.process = nil
	}
	return errors.New("the joiner ended")
}

// hangUp lets the joiner end, and the world with it.
func (j *joining) hangUp() *Process {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.over = true
	for _, f := range j.world {
		f.Close()
	}
	j.world = nil
	if j.process != nil {
		j.process.HangUp()
	}
	return j.process
}

// end returns when there is no joiner any more.
func (j *joining) end() {
	if p := j.hangUp(); p != nil {
		<-p.done
	}
}
