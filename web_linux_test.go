package tether

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/fetch"
	"github.com/tether-sandbox/tether/policy"
)

// names is a resolver that knows a few names and keeps its questions.
type names struct {
	mu    sync.Mutex
	known map[string][]string
	asked []string
}

func (n *names) LookupNetIP(_ context.Context, _, name string) ([]netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked = append(n.asked, name)
	var out []netip.Addr
	for _, s := range n.known[strings.TrimSuffix(name, ".")] {
		out = append(out, netip.MustParseAddr(s))
	}
	if out == nil {
		return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
	}
	return out, nil
}

// surf is a session whose workspace holds a secret, and a server on loopback
// that counts who comes.
type surf struct {
	*Session
	names *names
	port  string
	mu    sync.Mutex
	came  int
}

const surfSecret = "sk_live_4eC39HqLyjWDarjtT1zdp7dc"

func surfing(t *testing.T, network policy.Network, environ ...string) *surf {
	t.Helper()
	w := t.TempDir()
	if err := os.WriteFile(filepath.Join(w, ".env"), []byte("STRIPE_KEY="+surfSecret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	pol := policy.Default(w)
	pol.Network = policy.Network{}
	s, err := Open(t.Context(), Options{Policy: pol, Fetch: &network, Environ: append(os.Environ(), environ...)})
	if err != nil {
		t.Fatal(err)
	}
	f := &surf{Session: s, names: &names{known: map[string][]string{}}}
	s.resolver = f.names
	handler := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		f.came++
		f.mu.Unlock()
		fmt.Fprintf(rw, "HOSTDATA %s %s", surfSecret, r.URL.Path)
	})
	l, err := net.Listen("tcp", ":0") // all addresses, both families
	if err != nil {
		t.Fatal(err)
	}
	server := &httptest.Server{Listener: l, Config: &http.Server{Handler: handler}}
	server.Start()
	t.Cleanup(server.Close)
	_, f.port, _ = net.SplitHostPort(l.Addr().String())
	return f
}

func (f *surf) get(t *testing.T, url string) (*fetch.Response, error) {
	t.Helper()
	w, err := f.Web(t.Context(), url)
	if err != nil {
		return nil, err
	}
	defer w.Done(nil)
	c := fetch.Client{Dial: w.DialContext, Secret: w.Secret, Time: 5 * time.Second}
	return c.Do(t.Context(), fetch.Request{URL: strings.ReplaceAll(url, "PORT", f.port)})
}

// denied wants every address refused, although all lead to the server without
// us or nowhere, and nobody to come.
func (f *surf) denied(t *testing.T, urls ...string) {
	t.Helper()
	before := f.came
	for _, u := range urls {
		if _, err := f.get(t, u); fault.CodeOf(err) != fault.EgressDenied {
			t.Errorf("%s: got %v, want %s", u, err, fault.EgressDenied)
		}
	}
	if f.came != before {
		t.Errorf("%d requests came", f.came-before)
	}
}

// reachable proves that the server answers there without us.
func (f *surf) reachable(t *testing.T, hosts ...string) {
	t.Helper()
	for _, h := range hosts {
		c, err := net.DialTimeout("tcp", net.JoinHostPort(h, f.port), 5*time.Second)
		if err != nil {
			t.Fatalf("control: %s: %v", h, err)
		}
		c.Close()
	}
}

func public() policy.Network { return policy.Network{Mode: policy.Gated, Public: true} }

// EC-117: loopback in whatever numbers.
func TestEC117(t *testing.T) {
	f := surfing(t, public())
	f.reachable(t, "127.0.0.1", "127.255.255.254")
	f.denied(t, "http://127.0.0.1:PORT/", "http://2130706433:PORT/", "http://0x7f000001:PORT/", "http://0x7f.1:PORT/", "http://0177.0.0.1:PORT/", "http://127.1:PORT/",
		"http://127.0.0.1.:PORT/", "http://0:PORT/", "http://127.255.255.254:PORT/", "http://１２７.0.0.1:PORT/")
	if len(f.names.asked) != 0 {
		t.Errorf("asked for %v", f.names.asked)
	}
}

// EC-118: the unspecified address.
func TestEC118(t *testing.T) {
	f := surfing(t, public())
	f.reachable(t, "0.0.0.0", "::")
	f.denied(t, "http://0.0.0.0:PORT/", "http://[::]:PORT/", "http://[::ffff:0.0.0.0]:PORT/")
}

// EC-119: IPv4 in the clothes of IPv6.
func TestEC119(t *testing.T) {
	f := surfing(t, public())
	f.reachable(t, "::ffff:127.0.0.1")
	f.denied(t, "http://[::ffff:127.0.0.1]:PORT/", "http://[::ffff:7f00:1]:PORT/", "http://[0:0:0:0:0:ffff:a9fe:a9fe]:PORT/", "http://[0:0:0:0:0:ffff:7f00:1]:PORT/")
}

// EC-122: metadata by name and by address, also where private addresses are
// open.
func TestEC122(t *testing.T) {
	urls := []string{"http://169.254.169.254/", "http://169.254.169.254:80/", "http://169.254.169.254./", "http://0xa9fea9fe/", "http://metadata.google.internal/",
		"http://METADATA.google.internal./", "http://instance-data/", "http://[fd00:ec2::254]/", "http://100.100.100.200/", "http://169.254.170.2/", "http://[::ffff:169.254.169.254]/",
		"http://rebound.test/"}
	for what, f := range map[string]*surf{"public": surfing(t, public()), "private": surfing(t, public(), "TETHER_WEB_ALLOW_PRIVATE=1"),
		"a wide rule": surfing(t, policy.Network{Mode: policy.Gated, Public: true, Allow: []string{"169.254.0.0/16", "100.64.0.0/10", "fd00::/8", "*.google.internal"}})} {
		f.names.known["rebound.test"] = []string{"169.254.169.254"}
		t.Run(what, func(t *testing.T) { f.denied(t, urls...) })
	}
	// Control: what private opens is open.
	f := surfing(t, public(), "TETHER_WEB_ALLOW_PRIVATE=1")
	if _, err := f.get(t, "http://127.0.0.1:PORT/"); err != nil || f.came != 1 {
		t.Errorf("control: %v", err)
	}
	w, err := f.Web(t.Context(), "http://127.0.0.1/")
	if err != nil || !slices.Equal(w.Widened(), []string{"TETHER_WEB_ALLOW_PRIVATE opens private addresses to fetch"}) {
		t.Errorf("the widening is not told: %v", err)
	}
}

// EC-124: names that mean loopback, or lead there.
func TestEC124(t *testing.T) {
	f := surfing(t, public())
	f.reachable(t, "127.0.0.1", "::1")
	f.fetch.Allow = []string{"*.test:" + f.port} // a rule by name opens public addresses only
	for name, to := range map[string][]string{"inner.test": {"127.0.0.1"}, "mixed.test": {"93.184.216.34", "::1"}, "private.test": {"10.0.0.1"}} {
		f.names.known[name] = to
	}
	f.denied(t, "http://localhost:PORT/", "http://LOCALHOST.:PORT/", "http://foo.localhost:PORT/", "http://ip6-localhost:PORT/", "http://inner.test:PORT/",
		"http://mixed.test:PORT/", "http://private.test:PORT/")
}

// TestWebModes: what the policy says of fetching holds, whatever the network.
func TestWebModes(t *testing.T) {
	for _, n := range []policy.Network{{}, {Mode: policy.Offline, Public: true, Allow: []string{"localhost"}}} {
		f := surfing(t, n)
		if _, err := f.get(t, "http://localhost:PORT/"); fault.CodeOf(err) != fault.EgressDenied || fault.HintOf(err) != "--fetch public" {
			t.Errorf("%+v: got %v", n, err)
		}
	}
	f := surfing(t, policy.Network{Mode: policy.Gated})
	f.names.known["a.test"] = []string{"93.184.216.34"}
	f.denied(t, "http://a.test/", "http://93.184.216.34/", "http://localhost:PORT/")
	if len(f.names.asked) != 0 {
		t.Errorf("names that are not listed were asked for: %v", f.names.asked)
	}
	open := surfing(t, policy.Network{Mode: policy.Open})
	open.denied(t, "http://localhost:PORT/", "http://10.0.0.1/")
	allowed := surfing(t, public())
	allowed.fetch.Allow = []string{"localhost:" + allowed.port}
	r, err := allowed.get(t, "http://localhost:PORT/x")
	if err != nil || !strings.HasPrefix(string(r.Body), "HOSTDATA") {
		t.Fatalf("localhost on purpose: %+v, %v", r, err)
	}
	allowed.denied(t, "http://localhost:1/", "http://169.254.169.254/")
	w, err := allowed.Web(t.Context(), "http://localhost/")
	if err != nil {
		t.Fatal(err)
	}
	if got := w.Redact(string(r.Body)); got != "HOSTDATA [REDACTED:STRIPE_KEY] /x" || len(w.Redacted()) != 1 {
		t.Errorf("redacted: got %q, %v", got, w.Redacted())
	}
	before := allowed.came
	if _, err := allowed.get(t, "http://localhost:PORT/?k="+surfSecret); fault.CodeOf(err) != fault.EgressSecret || allowed.came != before {
		t.Errorf("a secret: got %v", err)
	}
}

// TestGatheredOnce: what was read is kept as long as nothing changed.
func TestGatheredOnce(t *testing.T) {
	f := surfing(t, public(), "DEPLOY_TOKEN=tok-0123456789-abcdefghij")
	open := func() *redactor {
		t.Helper()
		w, err := f.Web(t.Context(), "http://a.test/")
		if err != nil {
			t.Fatal(err)
		}
		w.Done(nil)
		if got, want := w.Redact("a tok-0123456789-abcdefghij b"), "a [REDACTED:DEPLOY_TOKEN] b"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		return w.red
	}
	first := open()
	if second := open(); second.gathered != first.gathered || second == first {
		t.Error("the same secrets were gathered again, or their counts are shared")
	}
	env := filepath.Join(f.Policy().Workspace, ".env")
	if err := os.WriteFile(env, []byte("OTHER=xk_live_0000000000000000abcd99\nPASSWORD=another-one-entirely\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	changed := open()
	if changed.gathered == first.gathered {
		t.Fatal("a change was not seen")
	}
	if got := changed.text("x another-one-entirely " + surfSecret); got != "x [REDACTED:PASSWORD] "+surfSecret {
		t.Errorf("got %q", got)
	}
}
