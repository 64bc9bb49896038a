package gate

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"github.com/tether-sandbox/tether/internal/egress"
)

// cache remembers answers for a few seconds: a client asks for a name and then
// dials it. Every dial judges the addresses anew.
type cache struct {
	from egress.Resolver
	mu   sync.Mutex
	held map[string]*answer
}

type answer struct {
	done  chan struct{}
	until time.Time
	addrs []netip.Addr
	err   error
}

const (
	cacheTime = 5 * time.Second
	mostHeld  = 1024
)

// LookupNetIP is part of egress.Resolver.
func (c *cache) LookupNetIP(ctx context.Context, network, name string) ([]netip.Addr, error) {
	c.mu.Lock()
	a := c.held[name]
	if a == nil || !a.until.IsZero() && time.Now().After(a.until) {
		if len(c.held) >= mostHeld || c.held == nil {
			c.held = map[string]*answer{}
		}
		a = &answer{done: make(chan struct{})}
		c.held[name] = a
		go c.ask(a, network, name)
	}
	c.mu.Unlock()
	select {
	case <-a.done:
		return append([]netip.Addr(nil), a.addrs...), a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (c *cache) ask(a *answer, network, name string) {
	const patience = 15 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	from := c.from
	if from == nil {
		from = egress.System{}
	}
	a.addrs, a.err = from.LookupNetIP(ctx, network, name)
	c.mu.Lock()
	a.until = time.Now().Add(cacheTime)
	c.mu.Unlock()
	close(a.done)
}
