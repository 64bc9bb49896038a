package local

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/plan"
	"github.com/tether-sandbox/tether/policy"
)

// published are the listeners by which the host reaches servers of a command.
type published struct {
	mu        sync.Mutex
	listeners map[uint16]net.Listener
	conns     map[net.Conn]struct{}
	closed    bool
}

// publish listens for the ports that the policy publishes, on a loopback address
// that is the workspace's own and stays the same: what a browser keeps for it, it
// gives to no other server of the user's.
func publish(p *plan.Plan, kind enforce.Kind, told func(uint16, string)) (*published, error) {
	l := &published{listeners: map[uint16]net.Listener{}, conns: map[net.Conn]struct{}{}}
	if p.Policy.Network.Mode == policy.Open || kind == enforce.Unconfined || kind == enforce.Guard {
		return l, nil // it is the host's network
	}
	for _, port := range p.Policy.Network.Publish {
		at := netip.AddrPortFrom(ownLoopback(p), port)
		listener, err := net.Listen("tcp4", at.String())
		if err != nil {
			l.close()
			return nil, fault.Wrap(fault.SandboxUnavailable, "port "+fmt.Sprint(port)+" cannot be published at "+at.String(), err).
				WithHint("end the other run in this workspace, or leave out --publish")
		}
		l.listeners[port] = listener
		if told != nil {
			told(port, at.String())
		}
	}
	return l, nil
}

// ownLoopback is an address of 127.0.0.0/8 for a workspace, away from those in
// common use.
func ownLoopback(p *plan.Plan) netip.Addr {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d:%d:%d", p.Identity.HostUID, p.Workspace.Dev, p.Workspace.Ino))
	return netip.AddrFrom4([4]byte{127, 64 + sum[0]%128, sum[1], 1 + sum[2]%250})
}

// serve leads connections on to the command.
func (l *published) serve(proc enforce.Process) {
	for port, listener := range l.listeners {
		go func() {
			for {
				c, err := listener.Accept()
				if err != nil {
					return
				}
				go l.join(c, proc, port)
			}
		}()
	}
}

func (l *published) join(host net.Conn, proc enforce.Process, port uint16) {
	if !l.keep(host) {
		return
	}
	defer l.drop(host)
	file, err := proc.Connect(port)
	if err != nil {
		if t, ok := host.(*net.TCPConn); ok {
			_ = t.SetLinger(0) // the host's client sees a reset
		}
		return
	}
	inside, err := conn(file)
	if err != nil || !l.keep(inside) {
		return
	}
	defer l.drop(inside)
	done := make(chan struct{})
	one := func(to, from net.Conn) {
		_, _ = io.Copy(to, from)
		if t, ok := to.(*net.TCPConn); ok {
			_ = t.CloseWrite()
		}
	}
	go func() {
		one(host, inside)
		close(done)
	}()
	one(inside, host)
	<-done
}

func conn(file *os.File) (net.Conn, error) {
	defer file.Close()
	return net.FileConn(file)
}

func (l *published) keep(c net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		c.Close()
		return false
	}
	l.conns[c] = struct{}{}
	return true
}

func (l *published) drop(c net.Conn) {
	c.Close()
	l.mu.Lock()
	delete(l.conns, c)
	l.mu.Unlock()
}

func (l *published) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for _, listener := range l.listeners {
		listener.Close()
	}
	for c := range l.conns {
		c.Close()
	}
}
