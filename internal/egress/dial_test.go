package egress

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/tether-sandbox/tether/fault"
)

// book is a resolver that keeps its questions; each one takes the next answer.
type book struct {
	mu    sync.Mutex
	names map[string][][]string
	asked []string
}

func (b *book) LookupNetIP(_ context.Context, _, name string) ([]netip.Addr, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked = append(b.asked, name)
	answers := b.names[name]
	if len(answers) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
	}
	if len(answers) > 1 {
		b.names[name] = answers[1:]
	}
	var out []netip.Addr
	for _, s := range answers[0] {
		out = append(out, netip.MustParseAddr(s))
	}
	return out, nil
}

// hears listens on loopback and counts who comes.
func hears(t *testing.T, address string) (port uint16, came func() int) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	var mu sync.Mutex
	n := 0
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			n++
			mu.Unlock()
			_, _ = io.WriteString(c, "HOSTDATA")
			c.Close()
		}
	}()
	_, p, _ := net.SplitHostPort(l.Addr().String())
	v, _ := strconv.ParseUint(p, 10, 16)
	return uint16(v), func() int { mu.Lock(); defer mu.Unlock(); return n }
}

func TestDial(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	port, came := hears(t, "127.0.0.1:0")
	p := strconv.Itoa(int(port))
	names := &book{names: map[string][][]string{
		"ok.test.": {{"127.0.0.1"}}, "mixed.test.": {{"127.0.0.1", "10.0.0.1"}}, "later.test.": {{"127.0.0.1"}, {"127.0.0.2"}},
		"clothes.test.": {{"::ffff:127.0.0.1"}},
	}}
	var denials []Denial
	d := &Dialer{Rules: rules(t, false, []string{"ok.test:" + p, "mixed.test:" + p, "later.test:" + p, "clothes.test:" + p, "gone.test:" + p, "127.0.0.1:" + p, "localhost:" + p}, nil),
		Resolver: names, Denied: func(x Denial) { denials = append(denials, x) }}
	for _, name := range []string{"ok.test", "OK.test.", "later.test", "clothes.test", "127.0.0.1", "localhost", "[::ffff:127.0.0.1]"} {
		c, err := d.DialContext(ctx, "tcp", name+":"+p)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if b, err := io.ReadAll(c); err != nil || string(b) != "HOSTDATA" {
			t.Errorf("%s: %q, %v", name, b, err)
		}
		c.Close()
	}
	before := came()
	if before != 7 {
		t.Fatalf("%d connections came", before)
	}
	if len(denials) != 0 {
		t.Fatalf("denials: %v", denials)
	}
	for _, tt := range []struct{ name, hint string }{
		{"mixed.test", "--allow-host 10.0.0.1:" + p}, {"later.test", "--allow-host 127.0.0.2:" + p}, {"other.test", "--allow-host other.test:" + p},
		{"127.0.0.2", "--allow-host 127.0.0.2:" + p}, {"2130706433", ""}, {"evil.test\x00.ok.test", ""}, {"", ""},
	} {
		_, err := d.DialContext(ctx, "tcp", net.JoinHostPort(tt.name, p))
		if !IsDenied(err) || fault.HintOf(err) != tt.hint {
			t.Errorf("%q: got %v with %q, want a denial with %q", tt.name, err, fault.HintOf(err), tt.hint)
		}
	}
	if _, err := d.DialContext(ctx, "udp", "ok.test:"+p); !IsDenied(err) {
		t.Errorf("udp: %v", err)
	}
	var dns *net.DNSError
	if _, err := d.DialContext(ctx, "tcp", "gone.test:"+p); !errors.As(err, &dns) || !dns.IsNotFound {
		t.Errorf("gone.test: %v", err)
	}
	if _, err := d.DialContext(ctx, "tcp6", "ok.test:"+p); !errors.As(err, &dns) {
		t.Errorf("the other family: %v", err)
	}
	if came() != before {
		t.Error("a denied connection came")
	}
	for _, name := range names.asked {
		if name == "other.test." || name == "localhost." {
			t.Errorf("%s was asked for", name)
		}
	}
}

// TestDialRaces: a dead address costs its head start and no more, and the error
// of all is the first one's.
func TestDialRaces(t *testing.T) {
	port, _ := hears(t, "127.0.0.1:0")
	p := strconv.Itoa(int(port))
	names := &book{names: map[string][][]string{"two.test.": {{"127.0.0.3", "127.0.0.1"}}, "dead.test.": {{"127.0.0.3", "127.0.0.4"}}}}
	d := &Dialer{Rules: rules(t, false, []string{"two.test:" + p, "dead.test:" + p, "127.0.0.0/8:" + p}, nil), Resolver: names}
	c, err := d.DialContext(t.Context(), "tcp", "two.test:"+p)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if _, err := d.DialContext(t.Context(), "tcp", "dead.test:"+p); err == nil || IsDenied(err) {
		t.Errorf("got %v", err)
	}
}
