package gate

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/host"
	"github.com/tether-sandbox/tether/internal/redact"
	"github.com/tether-sandbox/tether/policy"
)

// ends are the two ends of a connection on loopback.
func ends(t *testing.T) (near, far *net.TCPConn) {
	t.Helper()
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if near, err = net.DialTCP("tcp", nil, l.Addr().(*net.TCPAddr)); err != nil {
		t.Fatal(err)
	}
	if far, err = l.AcceptTCP(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []*net.TCPConn{near, far} {
		t.Cleanup(func() { c.Close() })
		_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	}
	return near, far
}

// TestGuarded: what a client sends in clear text passes the guard, whatever the
// base is; what it sends by TLS does not, because nothing would be found.
func TestGuarded(t *testing.T) {
	const secret = "tok-0123456789-abcdefghij"
	m := redact.New([]redact.Value{{Name: "TOKEN", Text: secret}})
	guard := func(w io.Writer) io.WriteCloser { return m.Guard(w) }
	hello := string(helloOf(t, "a.test"))
	get := func(path string) string { return "GET " + path + " HTTP/1.1\r\nHost: a.test\r\n\r\n" }
	for _, c := range []struct {
		what    string
		public  bool
		guard   func(io.Writer) io.WriteCloser
		early   string
		say     []string
		refused bool
	}{
		{"harmless", true, guard, "", []string{get("/")}, false},
		{"without a guard", true, nil, "", []string{get("/?" + secret)}, false},
		{"HTTP", true, guard, "", []string{get("/?k=" + secret)}, true},
		{"in two parts", true, guard, "", []string{"GET /?k=" + secret[:9], secret[9:] + " HTTP/1.1\r\n\r\n"}, true},
		{"sent early", true, guard, get("/?k=" + secret), nil, true},
		{"another protocol", true, guard, "", []string{"A", "UTH " + secret + "\n"}, true},
		{"TLS", true, guard, "", []string{hello + secret}, false},
		{"TLS in parts", true, guard, "", []string{hello[:1], hello[1:40], hello[40:], secret}, false},
		{"TLS, sent early", true, guard, hello[:7], []string{hello[7:] + secret}, false},
		{"begins with a byte of TLS", true, guard, "", []string{"\x16" + secret}, true},
		{"begins like TLS", true, guard, "", []string{"\x16\x03\x01" + secret}, true},
		{"begins like TLS, early", true, guard, "\x16\x03\x01\x00\x40\x01" + secret, nil, true},
		{"a record of TLS that is no first message", true, guard, "", []string{"\x16\x03\x01\x00\x1d\x02\x00\x00\x19" + secret}, true},
		{"begins like TLS, harmless", true, guard, "", []string{"\x16\x03\x01\x40\x00\x01\x00\x3f\xfc hello"}, false},
		{"HTTP, listed", false, guard, "", []string{get("/?k=" + secret)}, true},
		{"harmless, listed", false, guard, "", []string{get("/")}, false},
		{"another protocol, listed", false, guard, "", []string{"\x00\x01" + secret}, true},
	} {
		n := policy.Network{Public: c.public}
		if !c.public {
			n.Allow = []string{"a.test"}
		}
		g, _ := gateFor(t, n, nil)
		g.guard = c.guard
		client, inner := ends(t)
		outer, server := ends(t)
		done := make(chan struct{})
		go func() {
			g.pass(inner, outer, host.Host{Name: "a.test"}, 80, []byte(c.early))
			close(done)
		}()
		for _, s := range c.say {
			if _, err := io.WriteString(client, s); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Millisecond)
		}
		_ = client.CloseWrite()
		got, err := io.ReadAll(server)
		server.Close()
		client.Close()
		<-done
		list, _ := g.Denials()
		if c.refused {
			if strings.Contains(string(got), secret) || len(list) != 1 || list[0].Code != fault.EgressSecret || !strings.Contains(list[0].Rule, "TOKEN") || list[0].Name != "a.test" {
				t.Errorf("%s: the server got %q (%v), denials %+v", c.what, got, err, list)
			}
			continue
		}
		if want := c.early + strings.Join(c.say, ""); string(got) != want && !(strings.Contains(c.what, "listed") && len(got) > 0) || err != nil || len(list) != 0 {
			t.Errorf("%s: the server got %q (%v), denials %+v; want %q", c.what, got, err, list, want)
		}
	}
}

// TestPause: what begins like TLS and then waits for an answer gets it.
func TestPause(t *testing.T) {
	g, _ := gateFor(t, policy.Network{Public: true}, nil)
	m := redact.New([]redact.Value{{Name: "TOKEN", Text: "tok-0123456789-abcdefghij"}})
	g.guard = func(w io.Writer) io.WriteCloser { return m.Guard(w) }
	client, inner := ends(t)
	outer, server := ends(t)
	go g.pass(inner, outer, host.Host{Name: "a.test"}, 80, nil)
	const asks, answer = "\x16\x03\x01\x40\x00\x01 asks", "answers"
	if _, err := io.WriteString(client, asks); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, len(asks))
	if _, err := io.ReadFull(server, b); err != nil || string(b) != asks {
		t.Fatalf("the server got %q, %v", b, err)
	}
	_, _ = io.WriteString(server, answer)
	if _, err := io.ReadFull(client, b[:len(answer)]); err != nil || string(b[:len(answer)]) != answer {
		t.Errorf("the client got %q, %v", b, err)
	}
}
