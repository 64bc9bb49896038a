package gate

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tether-sandbox/tether/internal/host"
	"github.com/tether-sandbox/tether/internal/redact"
	"github.com/tether-sandbox/tether/policy"
)

func TestCarriedOf(t *testing.T) {
	for files, want := range map[uint64]int32{0: fewestCarried, 256: fewestCarried, 352: 16, 358: 17, 1024: 128, 4096: 640, 6399: 1023, 6400: 1024, 1 << 20: 1024, 1<<64 - 1: 1024} {
		if got := carriedOf(files); got != want {
			t.Errorf("%d files: got %d, want %d", files, got, want)
		}
	}
	if openFiles() < 64 {
		t.Errorf("%d open files", openFiles())
	}
}

// TestBound: one connection more than there is place for is refused by name, and
// let in when another has ended; whoever asks for nothing is bounded, too.
func TestBound(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go func() {
		for {
			c, err := server.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c); c.Close() }()
		}
	}()
	to := server.Addr().String()
	g, _ := gateFor(t, policy.Network{Allow: []string{to}}, nil)
	g.carried.most, g.callers.most = 2, 4
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g.accept(l, g.called(g.proxy))
	call := func() net.Conn {
		t.Helper()
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		_ = c.SetDeadline(time.Now().Add(20 * time.Second))
		return c
	}
	ask := func(c net.Conn) int {
		t.Helper()
		_, _ = io.WriteString(c, "CONNECT "+to+" HTTP/1.1\r\nProxy-Authorization: Basic "+basic("secret")+"\r\n\r\n")
		r, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		return r.StatusCode
	}
	first, second := call(), call()
	if a, b := ask(first), ask(second); a != 200 || b != 200 {
		t.Fatalf("control: two: %d, %d", a, b)
	}
	if got := ask(call()); got != 403 {
		t.Errorf("a third one: %d", got)
	}
	list, _ := g.Denials()
	host, port, _ := net.SplitHostPort(to)
	if len(list) != 1 || list[0].String() != host+" port "+port || !strings.Contains(list[0].Rule, "no more than "+strconv.Itoa(2)+" connections are carried at once") {
		t.Errorf("denials: %+v", list)
	}
	for g.callers.n.Load() > 2 {
		time.Sleep(time.Millisecond)
	}
	idle := []net.Conn{call(), call()}
	for g.callers.n.Load() < 4 {
		time.Sleep(time.Millisecond)
	}
	if c, err := net.Dial("tcp", l.Addr().String()); err == nil { // it may be reset that soon
		_ = c.SetDeadline(time.Now().Add(20 * time.Second))
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("a fifth caller is served: %v", err)
		}
		c.Close()
	}
	for _, c := range append(idle, second) {
		c.Close()
	}
	for g.callers.n.Load() > 1 || g.carried.n.Load() > 1 {
		time.Sleep(time.Millisecond)
	}
	if got := ask(call()); got != 200 {
		t.Errorf("after one has ended: %d", got)
	}
}

// TestMemory: what a connection that waits costs, times as many as there may be,
// stays within what a busy gate may have: 32 MB, and twice that where each is
// HTTP in clear text that is judged request by request.
func TestMemory(t *testing.T) {
	m := redact.New([]redact.Value{{Name: "TOKEN", Text: "tok-0123456789-abcdefghij"}})
	used := func() uint64 {
		var s runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&s)
		return s.HeapInuse + s.StackInuse
	}
	for _, tt := range []struct {
		what   string
		n      policy.Network
		guard  bool
		say    []byte
		mostMB uint64
	}{
		{"clear text", policy.Network{Public: true}, true, []byte("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"), 32},
		{"without a guard", policy.Network{Public: true}, false, []byte("x"), 32},
		{"TLS", policy.Network{Public: true}, true, helloOf(t, "a.test"), 32},
		{"clear text, listed", policy.Network{Allow: []string{"a.test"}}, true, []byte("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"), 64},
	} {
		// What else the process does counts, too: the least of several looks is it.
		var got uint64
		for try := range 3 {
			if n := waiting(t, m, tt.n, tt.guard, tt.say, used); try == 0 || n < got {
				got = n
			}
			if got <= tt.mostMB {
				break
			}
		}
		if got > tt.mostMB {
			t.Errorf("%s: %d connections would have %d MB, more than %d", tt.what, mostCarried, got, tt.mostMB)
		}
	}
}

// waiting tells how many megabytes as many connections take as a gate carries, by
// a few that wait.
func waiting(t *testing.T, m *redact.Matcher, n policy.Network, guard bool, say []byte, used func() uint64) uint64 {
	t.Helper()
	g, _ := gateFor(t, n, nil)
	if guard {
		g.guard = func(w io.Writer) io.WriteCloser { return m.Guard(w) }
	}
	const few = 128
	before := used()
	var all []net.Conn
	for range few {
		client, inner := ends(t)
		outer, server := ends(t)
		all = append(all, client, server)
		go g.pass(inner, outer, host.Host{Name: "a.test"}, 80, nil)
		if _, err := client.Write(say); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(server, make([]byte, len(say))); err != nil {
			t.Fatal(err)
		}
	}
	got := (max(used(), before) - before) * mostCarried / few >> 20
	for _, c := range all {
		c.Close()
	}
	g.Close()
	return got
}
