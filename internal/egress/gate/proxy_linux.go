package gate

import (
	"net"

	"github.com/tether-sandbox/tether/internal/host"
)

// ServeProxy serves a listener for a proxy's clients, and those on the command's
// loopback that lead to the host's. The descriptors are the gate's from then on.
func (g *Gate) ServeProxy(proxy int, local []int) error {
	l, err := listener(proxy)
	if err != nil {
		return err
	}
	g.ServeProxyOn(l)
	for _, fd := range local {
		l, err := listener(fd)
		if err != nil {
			return err
		}
		g.accept(l, g.forward)
	}
	return nil
}

// forward leads a connection to the command's own loopback on to the host's. It
// was let in already, so that a refusal comes as a reset.
func (g *Gate) forward(c *net.TCPConn) {
	port := unmapped(c.LocalAddr()).Port()
	server, err := g.dialLocal(port)
	if err != nil {
		reset(c)
		g.drop(c)
		return
	}
	defer g.carried.leave()
	g.pass(c, server, host.Host{}, port, nil)
}
