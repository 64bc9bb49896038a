package supervise

import (
	"encoding/binary"
	"os"
	"syscall"

	"github.com/tether-sandbox/tether/internal/enforce/inner"
)

// reached is the answer to one request for a connection.
type reached struct {
	file *os.File
	err  error
}

// Connect connects to a server on the command's own loopback. The error is the
// errno that a client inside would see.
func (p *Process) Connect(port uint16) (*os.File, error) {
	c := make(chan reached, 1)
	p.mu.Lock()
	if p.reached == nil {
		p.reached = map[uint32]chan<- reached{}
	}
	p.number++
	number := p.number
	p.reached[number] = c
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.reached, number)
		p.mu.Unlock()
	}()
	b := binary.LittleEndian.AppendUint16([]byte{inner.Reach}, port)
	if _, err := p.control.Write(binary.LittleEndian.AppendUint32(b, number)); err != nil {
		return nil, err
	}
	select {
	case r := <-c:
		return r.file, r.err
	case <-p.over:
		return nil, syscall.ECONNREFUSED
	}
}

// hand hands an answer to whoever waits for it.
func (p *Process) hand(m inner.Message, fds []int) {
	p.mu.Lock()
	c := p.reached[m.Status]
	delete(p.reached, m.Status)
	p.mu.Unlock()
	switch {
	case c == nil:
		closeAll(fds)
	case m.Errno != 0:
		c <- reached{err: syscall.Errno(m.Errno)}
	default:
		c <- reached{file: os.NewFile(uintptr(fds[0]), "reached")}
	}
}
