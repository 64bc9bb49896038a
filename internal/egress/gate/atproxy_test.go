package gate

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/tether-sandbox/tether/internal/egress"
	"github.com/tether-sandbox/tether/internal/host"
	"github.com/tether-sandbox/tether/policy"
)

// TestAtProxy: at the port of an upstream proxy nobody asks a proxy for anything,
// under either base. What a server is asked there goes on.
func TestAtProxy(t *testing.T) {
	hello := string(helloOf(t, "a.test"))
	const get, evil = "GET / HTTP/1.1\r\nHost: a.test:8080\r\n\r\n", "CONNECT evil.test:443 HTTP/1.1\r\nHost: a.test:8080\r\n\r\n"
	for _, tt := range []struct {
		say, got string
	}{
		{get, get},
		{get + get, get + get},
		{hello + "rest", hello + "rest"},
		{evil, ""},
		{"connect evil.test:443 HTTP/1.0\r\n\r\n", ""},
		{"\r\n" + evil, ""},
		{get + evil, get},
		{"GET http://evil.test/ HTTP/1.1\r\nHost: a.test:8080\r\n\r\n", ""},
		{"GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n", ""},
		{"GET / HTTP/1.1\r\nHost: 10.0.0.5\r\n\r\n", ""},
		{"\x05\x01\x00", ""},
		{"\x04\x01\x01\xbb\x5d\xb8\xd8\x22\x00", ""},
		{"\x16\x03\x01\x00\x1d\x02\x00\x00\x19" + evil, ""},
		{"SSH-2.0-x\r\n", ""},
		{"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", ""},
		{"GET / HTTP/1.1\r\nHost: a.test:8080\r\nUpgrade: x\r\n\r\n\x00" + evil, "GET / HTTP/1.1\r\nHost: a.test:8080\r\nUpgrade: x\r\n\r\n"},
	} {
		for _, n := range []policy.Network{{Public: true, Deny: []string{"evil.test"}}, {Allow: []string{"a.test:8080"}}} {
			n.Mode, n.Upstream = policy.Gated, "http://proxy.test:8080"
			up, err := egress.UpstreamOf(n, nil)
			if err != nil {
				t.Fatal(err)
			}
			g, _ := gateFor(t, n, nil)
			g.dial.Upstream = up
			client, inner := ends(t)
			outer, server := ends(t)
			done := make(chan struct{})
			go func() {
				g.pass(inner, outer, host.Host{Name: "a.test"}, 8080, nil)
				close(done)
			}()
			_, _ = io.WriteString(client, tt.say)
			time.Sleep(10 * time.Millisecond)
			_ = client.CloseWrite()
			got, _ := io.ReadAll(server)
			server.Close()
			client.Close()
			<-done
			list, _ := g.Denials()
			if refused := tt.got != tt.say; string(got) != tt.got && !refused || refused && !strings.HasPrefix(tt.got, string(got)) || refused != (len(list) > 0) {
				t.Errorf("public %v: %q: the server got %q, want %q, denials %+v", n.Public, tt.say, got, tt.got, list)
			}
		}
	}
}
