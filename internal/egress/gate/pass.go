package gate

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/egress"
	"github.com/tether-sandbox/tether/internal/host"
)

// pass carries an allowed connection to its end. Where the rules list names, the
// name that the client gives inside of it must be allowed as well: an allowed
// host that serves others, as those of large providers do, must not lead there.
//
// Towards what may be an upstream proxy itself nothing goes that is neither TLS
// nor a request for a path.
func (g *Gate) pass(client *net.TCPConn, server egress.Conn, to host.Host, port uint16, early []byte) {
	up := g.dial.Upstream
	i := inspector{gate: g, name: to.Name, addr: to.Addr, port: port, early: early, listed: to.Name != "" && g.rules().Listed()}
	i.atProxy, _ = up.AtProxy(to.Name, to.Addr, port)
	// A proxy's address is not that of the host.
	if addr, ok := server.RemoteAddr().(*net.TCPAddr); ok && !up.Chains(to.Name, to.Addr, port) {
		i.addr = addr.AddrPort().Addr().Unmap()
	}
	looks := i.listed || i.atProxy
	if !looks && g.guard != nil {
		g.relay(client, server, i.watch)
		return
	}
	if !looks {
		if len(early) > 0 {
			if _, err := server.Write(early); err != nil {
				reset(server)
			}
		}
		g.relay(client, server, io.Copy)
		return
	}
	g.relay(client, server, i.copy)
}

// inspector looks at what a client says first.
type inspector struct {
	gate  *Gate
	name  string
	addr  netip.Addr
	port  uint16
	early []byte
	// listed says that names inside are judged, atProxy that no proxy must be asked.
	listed, atProxy bool
}

// watch carries what the client says, past the guard unless it is TLS: not what
// begins like TLS, but a whole first message that can be read as one.
func (i *inspector) watch(to io.Writer, from io.Reader) (int64, error) {
	client, ok := from.(*net.TCPConn)
	if !ok {
		return 0, errRefused
	}
	said, secure, err := i.opening(client)
	if err != nil || len(said) == 0 {
		return 0, err
	}
	if secure {
		return i.rest(to, client, said)
	}
	return 0, i.guarded(to, func(to io.Writer) error {
		_, err := i.rest(to, client, said)
		return err
	})
}

// opening reads what the client says first, and whether it is a TLS client's
// first message. Nothing at all and no error is a client that says nothing.
func (i *inspector) opening(client *net.TCPConn) (said []byte, secure bool, err error) {
	const (
		handshake = 0x16
		// pause is how long the rest of a message is waited for: other protocols
		// may begin like one, and wait for an answer.
		pause = time.Second
	)
	said = i.early
	b := make([]byte, 16<<10)
	defer func() { _ = client.SetReadDeadline(time.Time{}) }()
	for {
		if len(said) > 0 {
			if said[0] != handshake || len(said) > mostHello+1024 {
				return said, false, nil
			}
			if _, done, good := readHello(said); done {
				return said, good, nil
			}
			_ = client.SetReadDeadline(time.Now().Add(pause))
		}
		n, err := client.Read(b)
		said = append(said, b[:n]...)
		switch {
		case n > 0, err == nil:
		case errors.Is(err, io.EOF), len(said) > 0 && isTimeout(err):
			return said, false, nil
		default:
			return nil, false, err
		}
	}
}

// guarded lets carry write to to, past the guard, if there is one.
func (i *inspector) guarded(to io.Writer, carry func(to io.Writer) error) error {
	if i.gate.guard == nil {
		return carry(to)
	}
	w := i.gate.guard(to)
	err := carry(struct{ io.Writer }{w})
	if cerr := w.Close(); err == nil {
		err = cerr
	}
	if e, ok := errors.AsType[*fault.Error](err); ok {
		i.gate.denied(egress.Denial{Name: i.name, Addr: i.addr, Port: i.port, Proto: egress.TCP, Code: e.Code,
			Verdict: egress.Verdict{Rule: "what is sent there in clear text: " + e.What}})
		return errRefused
	}
	return err
}

var errRefused = errors.New("refused by what it says inside")

// copy carries what the client says to the server.
func (i *inspector) copy(to io.Writer, from io.Reader) (int64, error) {
	client, ok := from.(*net.TCPConn)
	if !ok {
		return 0, errRefused
	}
	said := i.early
	b := make([]byte, 16<<10)
	for {
		switch look(said) {
		case opaque:
			if i.atProxy {
				return 0, i.refuse("it is neither TLS nor HTTP", "")
			}
			return 0, i.guarded(to, func(to io.Writer) error {
				_, err := i.rest(to, client, said)
				return err
			})
		case tlsKind:
			h, done, good := readHello(said)
			if !done && len(said) <= mostHello+1024 {
				break
			}
			if err := i.judgeHello(h, done && good); err != nil {
				const fatal, accessDenied = 2, 49
				_, _ = client.Write([]byte{0x15, 3, 3, 0, 2, fatal, accessDenied})
				return 0, err
			}
			return i.rest(to, client, said)
		case httpKind:
			return 0, i.guarded(to, func(to io.Writer) error { return i.requests(to, client, said) })
		}
		n, err := client.Read(b)
		said = append(said, b[:n]...)
		if errors.Is(err, io.EOF) {
			return i.rest(to, client, said)
		}
		if err != nil {
			return 0, err
		}
	}
}

func (i *inspector) rest(to io.Writer, client *net.TCPConn, said []byte) (int64, error) {
	if _, err := to.Write(said); err != nil {
		return 0, err
	}
	if _, ok := to.(*net.TCPConn); ok {
		return io.Copy(to, client) // by the kernel
	}
	return io.CopyBuffer(to, struct{ io.Reader }{client}, make([]byte, 8<<10)) // many may wait at once
}

func (i *inspector) judgeHello(h hello, good bool) error {
	switch {
	case !good:
		return i.refuse("its TLS cannot be read", noList)
	case !i.listed:
		return nil
	case i.gate.rules().AnySNI() && (h.encrypted || h.name == ""):
		return nil // a name beside a hidden one is only that of whoever unwraps it
	case h.encrypted:
		return i.refuse("its TLS may hide another name, and only listed hosts are allowed", anyName)
	case h.name == "":
		return i.refuse("its TLS names no host, and only listed hosts are allowed", anyName)
	}
	parsed, err := host.Parse(h.name)
	if err != nil {
		return i.refuse("its TLS names something that is no host", noList)
	}
	return i.judge(parsed, "its TLS")
}

// judge judges the name that a client gives inside of a connection.
func (i *inspector) judge(h host.Host, what string) error {
	if h.Name == i.name {
		return nil
	}
	v := i.gate.rules().Decide(h.Name, h.Addr, i.port, egress.TCP)
	if v.Allow {
		return nil
	}
	v.Rule = what + " on a connection to " + i.name + " names this host, and " + v.Rule
	i.gate.denied(egress.Denial{Name: h.Name, Addr: h.Addr, Port: i.port, Proto: egress.TCP, Verdict: v})
	return errRefused
}

// The ways out of a refusal that is about no host.
const (
	anyName = "--sni any"
	noList  = "--network gated without --only-host"
)

// refuse tells what no rule about hosts would allow; remedy is the flag that does.
func (i *inspector) refuse(why, remedy string) error {
	if i.atProxy { // and then none does
		why, remedy = why+", at the port of the upstream proxy", ""
	}
	i.gate.denied(egress.Denial{Name: i.name, Port: i.port, Proto: egress.TCP, Verdict: egress.Verdict{Rule: why, Remedy: remedy}})
	return errRefused
}

// requests carries requests of HTTP/1, each of which is judged. Once the client
// has asked for another protocol and speaks it the rest is carried as it is.
func (i *inspector) requests(to io.Writer, client *net.TCPConn, said []byte) error {
	r := bufio.NewReaderSize(io.MultiReader(strings.NewReader(string(said)), client), 16<<10)
	for n := 0; ; n++ {
		unclear := func(err error) error {
			if n > 0 {
				return nil // what was asked before is answered, and then it ends
			}
			return i.unclear(client, err)
		}
		q, err := readRequest(r)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if errors.Is(err, errHead) {
			return unclear(i.refuse("its HTTP can be read in two ways, or is HTTP/2 without TLS", noList))
		}
		if err != nil {
			return err
		}
		h, _, err := q.host()
		size, serr := q.body()
		if err != nil || serr != nil || q.method == "CONNECT" || !strings.HasPrefix(q.target, "/") && q.target != "*" {
			return unclear(i.refuse("its HTTP can be read in two ways", noList))
		}
		if err := i.judge(h, "its HTTP"); err != nil {
			return unclear(err)
		}
		if _, err := to.Write(q.write(q.target)); err != nil {
			return err
		}
		if err := size.copy(to, r); err != nil {
			return err
		}
		if len(q.all("Upgrade")) > 0 && !moreHTTP(r) {
			if i.atProxy {
				return i.refuse("it is neither TLS nor HTTP", "")
			}
			_, err := io.Copy(to, r)
			return err
		}
	}
}

// moreHTTP says whether a client that has asked for another protocol goes on with
// HTTP, as it must when the server did not hear of the other one.
func moreHTTP(r *bufio.Reader) bool {
	for n := 1; ; n = r.Buffered() + 1 {
		_, err := r.Peek(n)
		said, _ := r.Peek(r.Buffered())
		switch k := lookText(said); {
		case errors.Is(err, bufio.ErrBufferFull):
			return true // and refused, as a line that is too long
		case k == unclear && err == nil:
		case k == unclear && len(said) > 0, k == httpKind:
			return true
		default:
			return false
		}
	}
}

// unclear tells an HTTP client that it was refused.
func (i *inspector) unclear(client *net.TCPConn, err error) error {
	const text = "tether: EGRESS_DENIED: the request names a host that is not allowed\n"
	_ = client.SetWriteDeadline(time.Now().Add(time.Second))
	_, _ = io.WriteString(client, "HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Type: text/plain\r\n\r\n"+text)
	return err
}
