package gate

import (
	"bufio"
	"context"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/egress"
	"github.com/tether-sandbox/tether/internal/host"
)

// proxyUser is the name that goes with the secret.
const proxyUser = "tether"

// sshVariable holds the credentials for the command by which ssh finds its way.
const sshVariable = "TETHER_PROXY_BASIC"

// ProxyEnv is the environment by which common programs find the proxy.
func ProxyEnv(port int, secret string) []string {
	at := "127.0.0.1:" + strconv.Itoa(port)
	web, socks := "http://"+proxyUser+":"+secret+"@"+at, "socks5h://"+proxyUser+":"+secret+"@"+at
	const own = "localhost,127.0.0.1,::1"
	// ssh knows of no proxies. The shell reads the answer's head byte by byte, so
	// that nothing of the server's is lost. It takes the secret from a variable:
	// arguments are seen by every user of a machine.
	head := "CONNECT %h:%p HTTP/1.1\\r\\nHost: %h:%p\\r\\nProxy-Authorization: Basic \\$" + sshVariable + "\\r\\n\\r\\n"
	ssh := `ssh -o ProxyCommand='bash -c "exec 3<>/dev/tcp/127.0.0.1/` + strconv.Itoa(port) + `; printf \"` + head + `\" >&3; ` +
		`read -r -u 3 v s x; while read -r -u 3 l && [ \${#l} -gt 1 ]; do :; done; [ \"\$s\" = 200 ] || exit 1; cat <&3 & exec cat >&3"'`
	return []string{
		"http_proxy=" + web, "https_proxy=" + web, "HTTP_PROXY=" + web, "HTTPS_PROXY=" + web,
		"all_proxy=" + socks, "ALL_PROXY=" + socks, "no_proxy=" + own, "NO_PROXY=" + own,
		"NODE_USE_ENV_PROXY=1", "GIT_SSH_COMMAND=" + ssh, sshVariable + "=" + basic(secret),
		"JAVA_TOOL_OPTIONS=-DsocksProxyHost=127.0.0.1 -DsocksProxyPort=" + strconv.Itoa(port) +
			" -Djava.net.socks.username=" + proxyUser + " -Djava.net.socks.password=" + secret,
	}
}

func basic(secret string) string {
	return base64.StdEncoding.EncodeToString([]byte(proxyUser + ":" + secret))
}

// ServeProxyOn serves a listener for a proxy's clients, which is the gate's from
// then on.
func (g *Gate) ServeProxyOn(l net.Listener) {
	g.ports.Store(new([]uint16)) // a client can ask for any port
	g.accept(l, g.called(g.proxy))
}

// helloTime is how long a client has to say what it wants.
const helloTime = 30 * time.Second

// proxy serves one client of the proxy: HTTP or SOCKS5, by its first byte.
func (g *Gate) proxy(c *net.TCPConn) {
	_ = c.SetReadDeadline(time.Now().Add(helloTime))
	r := bufio.NewReaderSize(c, 16<<10)
	b, err := r.Peek(1)
	switch {
	case err != nil:
	case b[0] == 5:
		g.socks(c, r)
		return
	case b[0] < ' ': // SOCKS4 among others: it has no names in its first form
	default:
		g.httpProxy(c, r)
		return
	}
	g.drop(c)
}

// httpProxy serves one request: a tunnel, or one in absolute form, after which
// the connection ends. So every request is one that was judged.
func (g *Gate) httpProxy(c *net.TCPConn, r *bufio.Reader) {
	q, err := readRequest(r)
	if err != nil {
		g.say(c, 400, "malformed request")
		return
	}
	if !g.knows(q) {
		g.say(c, 407, "the proxy's secret is missing; it stands in the variable https_proxy")
		return
	}
	if q.method == "CONNECT" {
		to, port, err := authority(q.target, 0)
		if err != nil || port == 0 {
			g.say(c, 403, string(fault.EgressDenied)+": "+strconv.Quote(q.target)+" names no host and port")
			return
		}
		server, err := g.dialHost(to, port)
		if err != nil {
			g.sayErr(c, err)
			return
		}
		defer g.carried.leave()
		if _, err := io.WriteString(c, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
			server.Close()
			g.drop(c)
			return
		}
		g.tunnel(c, r, server, to, port)
		return
	}
	g.absolute(c, r, q)
}

// knows says whether a request shows the secret.
func (g *Gate) knows(q *request) bool {
	values := q.all("Proxy-Authorization")
	if len(values) != 1 {
		return false
	}
	kind, value, _ := strings.Cut(values[0], " ")
	return strings.EqualFold(kind, "Basic") && subtle.ConstantTimeCompare([]byte(value), []byte(basic(g.secret))) == 1
}

// absolute serves a request in absolute form.
func (g *Gate) absolute(c *net.TCPConn, r *bufio.Reader, q *request) {
	const scheme = "http://"
	if len(q.target) < len(scheme) || !strings.EqualFold(q.target[:len(scheme)], scheme) {
		g.say(c, 400, "the request names no http address")
		return
	}
	rest := q.target[len(scheme):]
	path := "/"
	at := rest
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		at, path = rest[:i], rest[i:]
	}
	if strings.Contains(path, "#") {
		g.say(c, 400, "the request names a fragment")
		return
	}
	if path[0] == '?' {
		path = "/" + path
	}
	to, port, err := authority(at, 80)
	if err != nil {
		g.say(c, 403, string(fault.EgressDenied)+": "+strconv.Quote(at)+" is no host")
		return
	}
	size, err := q.body()
	if err != nil || len(q.all("Host")) > 1 {
		g.say(c, 400, "the request can be read in two ways")
		return
	}
	server, err := g.dialHost(to, port)
	if err != nil {
		g.sayErr(c, err)
		return
	}
	defer g.carried.leave()
	q.drop("Host", "Connection", "Proxy-Connection", "Proxy-Authorization", "Keep-Alive", "Upgrade", "TE", "Trailer", "HTTP2-Settings")
	name := to.Join(port)
	if port == 80 {
		name = strings.TrimSuffix(name, ":80")
	}
	q.fields = append([]field{{"Host", name}}, append(q.fields, field{"Connection", "close"})...)
	if !g.keep(server) {
		g.drop(c)
		return
	}
	defer g.drop(c)
	defer g.drop(server)
	_ = c.SetReadDeadline(time.Time{})
	go func() {
		i := inspector{gate: g, name: to.Name, addr: to.Addr, port: port}
		err := i.guarded(server, func(to io.Writer) error {
			if _, err := to.Write(q.write(path)); err != nil {
				return err
			}
			return size.copy(to, r)
		})
		if errors.Is(err, errRefused) {
			g.say(c, 403, string(fault.EgressSecret)+": the request holds a secret")
		}
		if err != nil {
			reset(server)
		}
	}()
	_, _ = io.Copy(c, server)
	_ = c.CloseWrite()
}

// dialHost is reach for a name or an address.
func (g *Gate) dialHost(h host.Host, port uint16) (egress.Conn, error) {
	return g.reach(h.Name, h.Addr, port)
}

// tunnel carries a connection whose client may have sent something already.
func (g *Gate) tunnel(c *net.TCPConn, r *bufio.Reader, server egress.Conn, to host.Host, port uint16) {
	_ = c.SetReadDeadline(time.Time{})
	early, _ := r.Peek(r.Buffered())
	g.pass(c, server, to, port, append([]byte(nil), early...))
}

func (g *Gate) sayErr(c *net.TCPConn, err error) {
	switch {
	case egress.IsDenied(err):
		text := err.Error()
		if hint := fault.HintOf(err); hint != "" {
			text += "; hint: " + hint
		}
		g.say(c, 403, text)
	case isTimeout(err):
		g.say(c, 504, "the host does not answer")
	default:
		g.say(c, 502, "the host cannot be reached: "+err.Error())
	}
}

// say answers in place of a server, and ends.
func (g *Gate) say(c *net.TCPConn, status int, text string) {
	reason := map[int]string{400: "Bad Request", 403: "Forbidden", 407: "Proxy Authentication Required", 502: "Bad Gateway", 504: "Gateway Timeout"}[status]
	head := "HTTP/1.1 " + strconv.Itoa(status) + " " + reason + "\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n"
	if status == 407 {
		head += "Proxy-Authenticate: Basic realm=\"tether\"\r\n"
	}
	text = "tether: " + text + "\n"
	_ = c.SetWriteDeadline(time.Now().Add(helloTime))
	_, _ = io.WriteString(c, head+"Content-Length: "+strconv.Itoa(len(text))+"\r\n\r\n"+text)
	g.linger(c)
}

// linger ends a connection so that what was said arrives: a client that is still
// sending would get a reset in its place.
func (g *Gate) linger(c *net.TCPConn) {
	defer g.drop(c)
	_ = c.CloseWrite()
	_ = c.SetReadDeadline(time.Now().Add(time.Second))
	_, _ = io.Copy(io.Discard, io.LimitReader(c, 1<<20))
}

// Answers of SOCKS5 (RFC 1928).
const (
	socksOK, socksFailed, socksDenied, socksUnreachable, socksRefused, socksTimeout, socksCommand, socksKind = 0, 1, 2, 4, 5, 6, 7, 8
)

// socks serves a client of SOCKS5 that knows the secret.
func (g *Gate) socks(c *net.TCPConn, r *bufio.Reader) {
	to, port, code := g.socksHello(c, r)
	if code < 0 {
		g.drop(c)
		return
	}
	var server egress.Conn
	if code == socksOK {
		var err error
		if server, err = g.dialHost(to, port); err != nil {
			code = socksCode(err)
		} else {
			defer g.carried.leave()
		}
	}
	if _, err := c.Write([]byte{5, byte(code), 0, 1, 0, 0, 0, 0, 0, 0}); err != nil || code != socksOK {
		if server != nil {
			server.Close()
		}
		g.linger(c)
		return
	}
	g.tunnel(c, r, server, to, port)
}

func socksCode(err error) int {
	switch {
	case egress.IsDenied(err):
		return socksDenied
	case isTimeout(err):
		return socksTimeout
	case errors.Is(err, syscall.ECONNREFUSED):
		return socksRefused
	case errors.Is(err, context.Canceled):
		return socksFailed
	}
	return socksUnreachable
}

// socksHello reads what a client wants. A code below zero is no answer.
func (g *Gate) socksHello(c *net.TCPConn, r *bufio.Reader) (to host.Host, port uint16, code int) {
	const byPassword, none = 2, 0xff
	methods, err := sized(r, 1)
	if err != nil {
		return to, 0, -1
	}
	if !strings.Contains(string(methods), string(rune(byPassword))) {
		_, _ = c.Write([]byte{5, none})
		return to, 0, -1
	}
	if _, err := c.Write([]byte{5, byPassword}); err != nil {
		return to, 0, -1
	}
	user, err := sized(r, 1)
	if err != nil {
		return to, 0, -1
	}
	password, err := sized(r, 0)
	good := err == nil && string(user) == proxyUser && subtle.ConstantTimeCompare(password, []byte(g.secret)) == 1
	if !good {
		_, _ = c.Write([]byte{1, 1})
		return to, 0, -1
	}
	if _, err := c.Write([]byte{1, 0}); err != nil {
		return to, 0, -1
	}
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil || head[0] != 5 {
		return to, 0, -1
	}
	code = socksOK
	var bad error
	switch head[3] {
	case 1:
		var b [4]byte
		_, err = io.ReadFull(r, b[:])
		to.Addr = netip.AddrFrom4(b)
	case 4:
		var b [16]byte
		_, err = io.ReadFull(r, b[:])
		to.Addr = netip.AddrFrom16(b).Unmap()
	case 3:
		var name []byte
		if name, err = sized(r, 0); err == nil {
			to, bad = host.Parse(string(name))
		}
	default:
		return to, 0, socksKind
	}
	var p [2]byte
	if err == nil {
		_, err = io.ReadFull(r, p[:])
	}
	port = binary.BigEndian.Uint16(p[:])
	switch {
	case err != nil:
		return to, 0, -1
	case bad != nil:
		g.denied(egress.Denial{Name: "a malformed name", Port: port, Proto: egress.TCP, Verdict: egress.Verdict{Rule: bad.Error()}})
		return to, 0, socksDenied
	case head[1] != 1: // CONNECT; the others listen, or carry UDP
		return to, 0, socksCommand
	case port == 0:
		return to, 0, socksDenied
	}
	return to, port, code
}

// sized reads skip bytes, a length and as many bytes.
func sized(r *bufio.Reader, skip int) ([]byte, error) {
	if _, err := r.Discard(skip); err != nil {
		return nil, err
	}
	n, err := r.ReadByte()
	if err != nil {
		return nil, err
	}
	b := make([]byte, n)
	_, err = io.ReadFull(r, b)
	return b, err
}
