// Package gate serves the network of one sandbox: it answers its questions for
// names, lets in the connections that the rules allow, and refuses the rest at
// once. Two data paths lead to it, a pair of interfaces and a proxy; both ask
// the same rules, and dial with the same dialer.
//
// A name gets an address of its own that means nothing outside of the session,
// so that a connection to it says exactly which name was meant. The name is
// resolved by the host's resolver, and only if some rule allows it.
package gate

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tether-sandbox/tether/internal/egress"
)

// Options are what a gate is made of.
type Options struct {
	Rules *egress.Rules
	// Resolver resolves allowed names; nil is the host's own.
	Resolver egress.Resolver
	// Upstream, when not nil, is the proxy through which public hosts are reached.
	Upstream *egress.Upstream
	// Secret is what a client of the proxy must know.
	Secret string
	// Denied, when not nil, is told of each connection that the rules refuse, at
	// once, so that somebody may change them for the next try; see Rule. It must
	// not block. A name that a rule could allow has an address then, though it
	// is not resolved, so that the port that is wanted of it becomes known.
	Denied func(egress.Denial)
	// Guard, when not nil, is put before each server that a client speaks to in
	// clear text. A *fault.Error that its Write or Close fails with is told as a
	// denial, and the connection ends.
	Guard func(to io.Writer) io.WriteCloser
}

// Gate is the gate of one sandbox.
type Gate struct {
	dial   egress.Dialer // with the rules of the beginning; see dialer
	law    atomic.Pointer[egress.Rules]
	ports  atomic.Pointer[[]uint16] // that it listens on, once it serves; a proxy's are nil: all
	told   func(egress.Denial)
	secret string
	guard  func(to io.Writer) io.WriteCloser
	names  names
	log    log

	ctx    context.Context
	cancel context.CancelFunc
	slots  chan struct{} // one for each question that is being answered

	// carried are the connections that have an other end, or are about to; callers
	// those to the proxy and to the resolver, whatever they have asked for yet.
	carried, callers bound

	mu     sync.Mutex
	closed bool
	open   map[io.Closer]struct{}
}

// mostQuestions is how many questions for names are answered at once.
const mostQuestions = 128

// New returns a gate that serves nothing yet.
func New(o Options) *Gate {
	g := &Gate{told: o.Denied, secret: o.Secret, guard: o.Guard, slots: make(chan struct{}, mostQuestions), open: map[io.Closer]struct{}{}}
	g.carried.most = carriedOf(openFiles())
	g.callers.most = g.carried.most + mostQuestions
	g.ctx, g.cancel = context.WithCancel(context.Background())
	g.dial = egress.Dialer{Resolver: &cache{from: o.Resolver}, Upstream: o.Upstream, Denied: g.denied, Timeout: 2 * time.Minute}
	g.law.Store(o.Rules)
	return g
}

// Rule puts other rules in force, for what is asked from now on; what passes
// already is let be. Ports on which the gate does not listen stay closed.
func (g *Gate) Rule(r *egress.Rules) { g.law.Store(r) }

// Listens says whether connections to a port of other hosts are held, so that
// rules can open it.
func (g *Gate) Listens(port uint16) bool {
	ports := g.ports.Load()
	return ports != nil && (*ports == nil || slices.Contains(*ports, port))
}

func (g *Gate) rules() *egress.Rules { return g.law.Load() }

// dialer is one that dials under the rules of this moment.
func (g *Gate) dialer() *egress.Dialer {
	d := g.dial
	d.Rules = g.rules()
	return &d
}

func (g *Gate) denied(d egress.Denial) {
	g.log.add(d)
	if g.told != nil {
		g.told(d)
	}
}

// keep has c closed together with the gate; false says that it is closed
// already.
func (g *Gate) keep(c io.Closer) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		c.Close()
		return false
	}
	g.open[c] = struct{}{}
	return true
}

func (g *Gate) drop(c io.Closer) {
	c.Close()
	g.mu.Lock()
	delete(g.open, c)
	g.mu.Unlock()
}

// Close ends everything that goes through the gate.
func (g *Gate) Close() {
	g.cancel()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	for c := range g.open {
		c.Close()
	}
	g.open = map[io.Closer]struct{}{}
}

// Denials returns what was refused, each once, in order, and how much more there
// was than is kept.
func (g *Gate) Denials() (list []Refused, more int) { return g.log.all() }

// called serves those that come without having been held, as long as there are
// not too many.
func (g *Gate) called(serve func(*net.TCPConn)) func(*net.TCPConn) {
	return func(c *net.TCPConn) {
		if !g.callers.enter() {
			_ = g.full("the gate", netip.Addr{}, 0)
			reset(c)
			g.drop(c)
			return
		}
		defer g.callers.leave()
		serve(c)
	}
}

// accept serves a listener until it is closed.
func (g *Gate) accept(l net.Listener, serve func(*net.TCPConn)) {
	if !g.keep(l) {
		return
	}
	go func() {
		defer g.drop(l)
		for {
			c, err := l.Accept()
			if err != nil {
				if g.ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
					return
				}
				time.Sleep(5 * time.Millisecond) // out of descriptors, for a moment
				continue
			}
			if t, ok := c.(*net.TCPConn); ok && g.keep(t) {
				go serve(t)
			}
		}
	}()
}

// relay carries bytes both ways until both ends are done. An end that only stops
// sending goes on to receive; one that breaks breaks the other. What the client
// says is carried by say.
func (g *Gate) relay(client *net.TCPConn, server egress.Conn, say func(io.Writer, io.Reader) (int64, error)) {
	if !g.keep(server) {
		g.drop(client)
		return
	}
	defer g.drop(client)
	defer g.drop(server)
	done := make(chan struct{})
	var ended atomic.Int32
	one := func(to, from egress.Conn, carry func(io.Writer, io.Reader) (int64, error)) {
		_, err := carry(to, from)
		if errors.Is(err, errRefused) { // the client has been told, and may read it
			reset(server)
			g.linger(client)
			return
		}
		if err != nil {
			reset(to)
			reset(from)
			return
		}
		if ended.Add(1) == 1 { // the second end is closed as a whole at once
			_ = to.CloseWrite()
		}
	}
	go func() {
		one(client, server, io.Copy)
		close(done)
	}()
	one(server, client, say)
	<-done
}

// reset ends a connection as one that broke.
func reset(c egress.Conn) {
	switch c := c.(type) {
	case *net.TCPConn:
		_ = c.SetLinger(0)
	case *tls.Conn: // to an upstream proxy
		if t, ok := c.NetConn().(*net.TCPConn); ok {
			_ = t.SetLinger(0)
			t.Close()
			return
		}
	}
	c.Close()
}

// dialLocal is reach for the host's own loopback, by whichever name the rules open
// it.
func (g *Gate) dialLocal(port uint16) (egress.Conn, error) {
	if g.rules().Decide("localhost", netip.Addr{}, port, egress.TCP).Allow {
		return g.reach("localhost", netip.Addr{}, port)
	}
	addr := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	if !g.rules().Decide("", addr, port, egress.TCP).Allow {
		addr = netip.IPv6Loopback()
	}
	return g.reach("", addr, port)
}

// refused records a denial that no dial was needed for.
func (g *Gate) refused(name string, addr netip.Addr, port uint16, proto egress.Proto) error {
	d := egress.Denial{Name: name, Addr: addr, Port: port, Proto: proto}
	if name != "" {
		d.Addr = netip.Addr{}
	}
	if d.Verdict = g.rules().Decide(name, d.Addr, port, proto); d.Allow {
		// No rule is against it: the gate does not listen there.
		d.Verdict = egress.Verdict{Rule: "the gate does not listen on this port"}
	}
	g.denied(d)
	return d.Err()
}

// isTimeout says whether nobody answered.
func isTimeout(err error) bool {
	n, ok := errors.AsType[net.Error](err)
	return ok && n.Timeout() || errors.Is(err, context.DeadlineExceeded)
}
