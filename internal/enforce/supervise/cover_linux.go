package supervise

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/enforce/inner"
)

// Cover makes sure that masks and locks hold in the world of a command that
// runs: by a joiner, which is started when it is first asked to, even for no steps,
// where the inner stage has handed its world over. os.ErrClosed says that it is
// over.
func (p *Process) Cover(steps []enforce.Step) (enforce.Coverage, error) {
	j, err := p.joining.joiner()
	if err != nil {
		return enforce.Coverage{}, err
	}
	c, err := j.cover(steps)
	if errors.Is(err, os.ErrClosed) {
		err = p.joining.lost(j)
	}
	return c, err
}

// cover asks a joiner.
func (p *Process) cover(steps []enforce.Step) (enforce.Coverage, error) {
	order := enforce.Order{Steps: steps}
	p.covering.Lock() // until it has answered, since there is one file
	defer p.covering.Unlock()
	if err := p.write(order.Encode()); err != nil {
		return enforce.Coverage{}, err
	}
	c := make(chan inner.Message, 1)
	p.mu.Lock()
	if p.covered == nil {
		p.covered = map[uint32]chan<- inner.Message{}
	}
	p.number++
	number := p.number
	p.covered[number] = c
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.covered, number)
		p.mu.Unlock()
	}()
	if err := p.ask(binary.LittleEndian.AppendUint32([]byte{inner.Cover}, number)); err != nil {
		return enforce.Coverage{}, err
	}
	select {
	case m := <-c:
		return coverage(m)
	case <-p.over:
		return enforce.Coverage{}, os.ErrClosed
	}
}

func coverage(m inner.Message) (enforce.Coverage, error) {
	switch {
	case m.Errno != 0:
		return enforce.Coverage{}, fmt.Errorf("%s: %w", m.What, syscall.Errno(m.Errno))
	}
	c, err := inner.DecodeCoverage([]byte(m.What))
	return enforce.Coverage{Done: int(c.Done), Changed: int(c.Changed), Failed: int(c.Failed), Why: c.Why}, err
}

// write makes content what a joiner reads.
func (p *Process) write(content []byte) error {
	if err := p.steps.Truncate(0); err != nil {
		return err
	}
	_, err := p.steps.WriteAt(content, 0)
	return err
}

// ask sends a request.
func (p *Process) ask(request []byte) error {
	conn, err := p.control.SyscallConn()
	if err != nil {
		return os.ErrClosed
	}
	var serr error
	if err := conn.Write(func(fd uintptr) bool {
		serr = unix.Sendmsg(int(fd), request, nil, nil, unix.MSG_NOSIGNAL)
		return !errors.Is(serr, unix.EAGAIN)
	}); err != nil || errors.Is(serr, syscall.EPIPE) || errors.Is(serr, syscall.ECONNRESET) {
		return os.ErrClosed
	}
	return serr
}

// tellCovered hands an answer to whoever waits for it.
func (p *Process) tellCovered(m inner.Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.covered[m.Status]; c != nil {
		delete(p.covered, m.Status)
		c <- m
	}
}
