package egress

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tether-sandbox/tether/policy"
)

// proxy is a proxy on the loopback that keeps what it was asked for. Whatever
// the name, it is the server.
type proxy struct {
	mu     sync.Mutex
	asked  []string
	port   int
	answer string // in place of a tunnel
}

func (p *proxy) targets() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.asked, " ")
}

func newProxy(t *testing.T, c *tls.Config, user string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{port: l.Addr().(*net.TCPAddr).Port}
	if c != nil {
		l = tls.NewListener(l, c)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				r := bufio.NewReader(c)
				var target, auth string
				for n := 0; ; n++ {
					line, err := r.ReadString('\n')
					if err != nil || line == "\r\n" {
						break
					}
					if n == 0 {
						target = strings.Fields(line)[1]
					}
					if v, ok := strings.CutPrefix(line, "Proxy-Authorization: Basic "); ok {
						b, _ := base64.StdEncoding.DecodeString(strings.TrimSpace(v))
						auth = string(b)
					}
				}
				p.mu.Lock()
				p.asked = append(p.asked, target)
				answer := p.answer
				p.mu.Unlock()
				switch {
				case auth != user:
					answer = "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n"
				case answer == "":
					answer = "HTTP/1.1 200 OK\r\nVia: x\r\n\r\nHELLO " // the server speaks first
				}
				_, _ = io.WriteString(c, answer)
				_, _ = io.Copy(c, r)
			}()
		}
	}()
	return p
}

func TestUpstream(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		DNSNames: []string{"proxy.test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SSL_CERT_FILE", file)
	secure := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}

	const password = "pa:ss@word-0123456789"
	for _, kind := range []string{"http", "https"} {
		var c *tls.Config
		if kind == "https" {
			c = secure
		}
		p := newProxy(t, c, "me:"+password)
		at := func(credentials string) []string {
			return []string{"HTTPS_PROXY=" + kind + "://" + credentials + "127.0.0.1:" + strconv.Itoa(p.port), "https_proxy=", "NO_PROXY=direct.test, .below.test,10.0.0.0/8"}
		}
		const good = "me:pa%3Ass%40word-0123456789@"
		var denials []Denial
		dial := func(env []string, name string, addr string, port uint16) (Conn, error) {
			n := policy.Network{Mode: policy.Gated, Public: true, Upstream: policy.UpstreamEnvironment, Deny: []string{"denied.test"}, Allow: []string{"10.0.0.5:5432", "named.test:5433", "127.0.0.1:9", "127.0.0.1:" + strconv.Itoa(p.port)}}
			u, err := UpstreamOf(n, env)
			if err != nil {
				t.Fatal(err)
			}
			rules, err := Compile(n)
			if err != nil {
				t.Fatal(err)
			}
			denials = nil
			d := Dialer{Rules: rules, Upstream: u, Resolver: nowhere{}, Denied: func(x Denial) { denials = append(denials, x) }, Timeout: 3 * time.Second}
			var a netip.Addr
			if addr != "" {
				a = netip.MustParseAddr(addr)
			}
			return d.Dial(context.Background(), name, a, port, "")
		}
		conn, err := dial(at(good), "Only.Proxy.test.", "", 443)
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		_, _ = io.WriteString(conn, "echo")
		_ = conn.CloseWrite()
		if b, err := io.ReadAll(conn); string(b) != "HELLO echo" || err != nil {
			t.Errorf("%s: got %q, %v", kind, b, err)
		}
		conn.Close()
		if conn, err = dial(at(good), "", "8.8.8.8", 443); err != nil {
			t.Errorf("%s: a public address: %v", kind, err)
		} else {
			conn.Close()
		}
		if conn, err = dial(at(good), "named.test", "", 5433); err != nil {
			t.Errorf("%s: a port of a name: %v", kind, err)
		} else {
			conn.Close()
		}
		if got := p.targets(); got != "only.proxy.test:443 8.8.8.8:443 named.test:5433" {
			t.Errorf("%s: the proxy was asked for %q", kind, got)
		}
		// What it must never hear of.
		for _, x := range []struct {
			name, addr string
			port       uint16
			denied     bool
		}{{"denied.test", "", 443, true}, {"localhost", "", 443, true}, {"metadata.google.internal", "", 80, true}, {"", "10.0.0.6", 443, true},
			{"", "169.254.169.254", 80, true}, {"ok.test", "", 25, true}, {"ok.test", "", 5432, true}, {"ok.test", "", 5433, true}, {"direct.test", "", 443, false}, {"a.below.test", "", 443, false},
			{"", "127.0.0.1", 9, false}, {"", "127.0.0.1", uint16(p.port), true}, {"ok.test", "", 80, false}} {
			conn, err := dial(at(good), x.name, x.addr, x.port)
			if err == nil {
				conn.Close()
				t.Errorf("%s: %+v is reached", kind, x)
			}
			if IsDenied(err) != x.denied {
				t.Errorf("%s: %+v: %v", kind, x, err)
			}
		}
		if got := p.targets(); got != "only.proxy.test:443 8.8.8.8:443 named.test:5433" {
			t.Errorf("%s: the proxy was asked for %q", kind, got)
		}
		// What the proxy says, and that no credentials are in it.
		for answer, want := range map[string]string{"": "does not take the credentials (407)", "HTTP/1.1 403 No\r\n\r\n": "refuses it (403)",
			"SSH-2.0\r\n\r\n": "does not answer as a proxy does", "HTTP/1.1 200": "does not answer as a proxy does"} {
			credentials := good
			if answer == "" {
				credentials = "me:WRONG@"
			}
			p.mu.Lock()
			p.answer = answer
			p.mu.Unlock()
			if strings.HasSuffix(answer, "200") { // and then nothing more
				p.answer = "HTTP/1.1 200 " + strings.Repeat("x", mostAnswer)
			}
			_, err := dial(at(credentials), "ok.test", "", 443)
			if !IsDenied(err) || len(denials) != 1 || !strings.Contains(denials[0].Rule, want) || strings.Contains(err.Error()+denials[0].Rule, "WRONG") {
				t.Errorf("%s: %q: %v, %+v", kind, answer, err, denials)
			}
		}
		p.answer = "HTTP/1.1 504 Slow\r\n\r\n"
		if _, err := dial(at(good), "ok.test", "", 443); err == nil || IsDenied(err) || len(denials) != 0 {
			t.Errorf("%s: 504: %v %v", kind, err, denials)
		}
	}
	_, err = UpstreamOf(policy.Network{Mode: policy.Gated, Upstream: policy.UpstreamEnvironment}, []string{"ALL_PROXY=socks5://me:SECRET@h:1"})
	if err == nil || strings.Contains(err.Error(), "SECRET") {
		t.Errorf("a proxy of another kind: %v", err)
	}
}

// leads is a resolver with a few names.
type leads map[string]string

func (l leads) LookupNetIP(ctx context.Context, network, name string) ([]netip.Addr, error) {
	if a, ok := l[name]; ok {
		return []netip.Addr{netip.MustParseAddr(a)}, nil
	}
	return nowhere{}.LookupNetIP(ctx, network, name)
}

// TestUpstreamItself: nobody speaks to the proxy through itself, by whichever
// name or address of it.
func TestUpstreamItself(t *testing.T) {
	p := newProxy(t, nil, "")
	n := policy.Network{Mode: policy.Gated, Public: true, Upstream: "http://proxy.test:" + strconv.Itoa(p.port)}
	for _, name := range []string{"proxy.test", "alias.test", "other.test", "127.0.0.1"} {
		n.Allow = append(n.Allow, name+":"+strconv.Itoa(p.port))
	}
	u, err := UpstreamOf(n, nil)
	if err != nil {
		t.Fatal(err)
	}
	rules, err := Compile(n)
	if err != nil {
		t.Fatal(err)
	}
	d := Dialer{Rules: rules, Upstream: u, Resolver: leads{"proxy.test.": "127.0.0.1", "alias.test.": "::ffff:127.0.0.1", "other.test.": "192.0.2.1"}, Timeout: 3 * time.Second}
	for name, want := range map[string]bool{"proxy.test": true, "Proxy.test.": true, "alias.test": true, "127.0.0.1": true, "other.test": false} {
		c, err := d.Dial(t.Context(), name, netip.Addr{}, uint16(p.port), "")
		if err == nil {
			c.Close()
		}
		if (err != nil) != want || want && !strings.Contains(err.Error(), "the upstream proxy itself") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := p.targets(); got != "other.test:"+strconv.Itoa(p.port) {
		t.Errorf("the proxy was asked for %q", got)
	}
}

// TestAtProxy: what may be a proxy itself is known by its port alone.
func TestAtProxy(t *testing.T) {
	env := func(web, rest string) []string {
		return []string{"http_proxy=" + web, "https_proxy=" + rest, "no_proxy=direct.test"}
	}
	for _, tt := range []struct {
		env       []string
		name      string
		addr      string
		port      uint16
		at, blind bool
	}{
		{env("http://p.test:8080", "http://p.test:8080"), "a.test", "", 8080, true, false},
		{env("http://p.test:8080", "http://p.test:8080"), "a.test", "", 443, false, false},
		{env("http://p.test:8080", "http://p.test:8080"), "", "93.184.216.34", 8080, true, false},
		{env("http://p.test:8080", "http://p.test:8080"), "direct.test", "", 8080, false, false},
		{env("http://p.test:8080", "http://p.test:8080"), "localhost", "", 8080, false, false},
		{env("http://p.test:8080", "http://p.test:8080"), "", "10.0.0.5", 8080, false, false},
		{env("http://p.test:8080", "http://q.test:3128"), "a.test", "", 8080, true, false}, // asked of the other one
		{env("http://p.test", "http://q.test:3128"), "a.test", "", 80, true, false},
		{env("http://p.test:8443", "https://q.test:8443"), "a.test", "", 8443, true, true},
		{env("", "https://q.test:8443"), "a.test", "", 8443, true, true},
		{env("", "https://q.test"), "a.test", "", 443, true, true},
		{env("http://p.test:8080", ""), "a.test", "", 8080, false, false}, // dialled past it
	} {
		u, err := UpstreamOf(policy.Network{Mode: policy.Gated, Upstream: policy.UpstreamEnvironment}, tt.env)
		if err != nil {
			t.Fatal(err)
		}
		if at, blind := u.AtProxy(tt.name, addrOf(tt.addr), tt.port); at != tt.at || blind != tt.blind {
			t.Errorf("%+v: got %v, %v", tt, at, blind)
		}
	}
	for port, want := range map[string]string{"8443": "whose port it is", "443": "cannot be reached: there is no such host"} {
		n := policy.Network{Mode: policy.Gated, Public: true, Upstream: "https://q.test:" + port}
		u, err := UpstreamOf(n, nil)
		if err != nil {
			t.Fatal(err)
		}
		d := Dialer{Rules: rules(t, true, nil, nil), Upstream: u, Resolver: nowhere{}, Own: func(netip.Addr) (bool, error) { return false, nil }}
		for _, to := range []string{"a.test:", "93.184.216.34:"} {
			if _, err := d.DialContext(t.Context(), "tcp", to+port); !IsDenied(err) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s%s: %v", to, port, err)
			}
		}
	}
}

// TestReason: what is told of a proxy names no resolver.
func TestReason(t *testing.T) {
	for want, err := range map[string]error{"there is no such host": &net.DNSError{IsNotFound: true, Server: "192.0.2.53:53"},
		"no resolver answers":         &net.DNSError{IsTimeout: true, Server: "192.0.2.53:53", Err: "i/o timeout"},
		"its name cannot be resolved": &net.DNSError{Server: "192.0.2.53:53", Err: "dial udp 192.0.2.53:53: connect: network is unreachable"},
		"connection refused":          &net.OpError{Op: "dial", Addr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)}, Err: errors.New("connection refused")}} {
		if got := reason(err); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// nowhere knows of no name but the loopback's.
type nowhere struct{}

func (nowhere) LookupNetIP(_ context.Context, _, name string) ([]netip.Addr, error) {
	return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
}

func TestExemptions(t *testing.T) {
	for _, tt := range []struct {
		list, name, addr string
		port             uint16
		exempt           bool
	}{
		{"*", "a.test", "", 443, true}, {"a.test", "a.test", "", 443, true}, {"a.test", "x.a.test", "", 443, true}, {"a.test", "xa.test", "", 443, false},
		{".a.test", "a.test", "", 443, false}, {".a.test", "x.a.test", "", 443, true}, {"*.a.test", "x.a.test", "", 443, true},
		{"a.test:80", "a.test", "", 80, true}, {"a.test:80", "a.test", "", 443, false}, {"A.TEST.", "a.test", "", 443, true},
		{"8.8.8.0/24", "", "8.8.8.8", 443, true}, {"8.8.8.0/24", "", "8.8.9.8", 443, false}, {"8.8.8.8", "", "8.8.8.8", 443, true},
		{"8.8.8.8:53", "", "8.8.8.8", 443, false}, {"[2606:4700::1]:443", "", "2606:4700::1", 443, true}, {"", "a.test", "", 443, false},
		{"x, ,b.test c.test", "c.test", "", 443, true}, {":::, a.test:x", "a.test", "", 443, false},
	} {
		u, err := UpstreamOf(policy.Network{Mode: policy.Gated, Upstream: policy.UpstreamEnvironment},
			[]string{"http_proxy=http://p.test", "https_proxy=http://p.test", "no_proxy=" + tt.list})
		if err != nil {
			t.Fatal(err)
		}
		var a netip.Addr
		if tt.addr != "" {
			a = netip.MustParseAddr(tt.addr)
		}
		if got := !u.Chains(tt.name, a, tt.port); got != tt.exempt {
			t.Errorf("%+v: got %v", tt, got)
		}
	}
}

// FuzzStatus: whatever a proxy says, only an answer's head is read, and nothing
// after it.
func FuzzStatus(f *testing.F) {
	f.Add("HTTP/1.1 200 OK\r\n\r\nrest")
	f.Add("HTTP/1.0 407\n\n")
	f.Fuzz(func(t *testing.T, s string) {
		in := strings.NewReader(s)
		status, err := readStatus(bufio.NewReaderSize(oneByOne{in}, 16))
		if err != nil {
			return
		}
		read := s[:len(s)-in.Len()]
		if status < 200 || status > 999 || !strings.HasPrefix(read, "HTTP/1.") || !strings.HasSuffix(read, "\n") || strings.Count(read, "\n\n") > 1 {
			t.Fatalf("%q: %d", s, status)
		}
	})
}
