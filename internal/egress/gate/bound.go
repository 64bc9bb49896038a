package gate

import (
	"net/netip"
	"strconv"
	"sync/atomic"

	"github.com/tether-sandbox/tether/internal/egress"
)

// bound counts what is there at once, up to a number.
type bound struct {
	n    atomic.Int32
	most int32
}

// enter says whether there is a place. Whoever got one gives it back by leave.
func (b *bound) enter() bool {
	if b.n.Add(1) > b.most {
		b.n.Add(-1)
		return false
	}
	return true
}

func (b *bound) leave() { b.n.Add(-1) }

const (
	// mostCarried is how many connections one gate carries at once: as many as
	// one program can have under the usual limit of 1,024 open files.
	mostCarried = 1024
	// perCarried is how many descriptors one needs: two ends, and a pipe each way.
	perCarried = 6
	// spare descriptors are for what else this process does.
	spare = 256
	// fewestCarried is what a gate carries whatever the limit.
	fewestCarried = 16
)

// carriedOf says how many connections are carried at once where so many files may
// be open.
func carriedOf(files uint64) int32 {
	if files >= spare+mostCarried*perCarried {
		return mostCarried
	}
	return max(fewestCarried, (int32(files)-spare)/perCarried)
}

// full is the denial of a connection that there is no place for.
func (g *Gate) full(name string, addr netip.Addr, port uint16) error {
	rule := "no more than " + strconv.Itoa(int(g.carried.most)) + " connections are carried at once"
	if g.carried.most < mostCarried {
		rule += ", because of the limit of open files (ulimit -n)"
	}
	d := egress.Denial{Name: name, Addr: addr, Port: port, Proto: egress.TCP, Verdict: egress.Verdict{Rule: rule}}
	g.log.add(d) // no rule refuses it
	return d.Err()
}

// reach dials a name, or an address when name is empty, if there is a place for one
// more connection. Without an error the place is taken until carried.leave.
func (g *Gate) reach(name string, addr netip.Addr, port uint16) (egress.Conn, error) {
	if !g.carried.enter() {
		return nil, g.full(name, addr, port)
	}
	c, err := g.dialer().Dial(g.ctx, name, addr, port, "")
	if err != nil {
		g.carried.leave()
	}
	return c, err
}
