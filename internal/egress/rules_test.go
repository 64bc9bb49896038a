package egress

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/policy"
)

func rules(t testing.TB, public bool, allow, deny []string) *Rules {
	t.Helper()
	r, err := Compile(policy.Network{Mode: policy.Gated, Public: public, Allow: allow, Deny: deny})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func addrOf(s string) netip.Addr {
	if s == "" {
		return netip.Addr{}
	}
	return netip.MustParseAddr(s)
}

func TestDecide(t *testing.T) {
	const pub, pub6 = "93.184.216.34", "2606:2800::1"
	list := func(s ...string) []string { return s }
	for _, tt := range []struct {
		public      bool
		allow, deny []string
		name, addr  string
		port        uint16
		want        bool
		remedy      string
	}{
		// Base public.
		{true, nil, nil, "example.com", "", 443, true, ""},
		{true, nil, nil, "example.com", pub, 443, true, ""},
		{true, nil, nil, "example.com", pub6, 22, true, ""},
		{true, nil, nil, "", pub, 9418, true, ""},
		{true, nil, nil, "example.com", pub, 5432, false, "--allow-host example.com:5432"},
		{true, nil, nil, "example.com", "", 5432, false, "--allow-host example.com:5432"},
		{true, nil, nil, "", pub6, 25, false, "--allow-host [2606:2800::1]:25"},
		{true, nil, nil, "example.com", "10.0.0.1", 443, false, "--allow-host 10.0.0.1"},
		{true, nil, nil, "", "127.0.0.1", 8080, false, "--allow-host 127.0.0.1:8080"},
		{true, nil, nil, "localhost", "", 8080, false, "--allow-host localhost:8080"},
		{true, nil, nil, "a.localhost", "", 80, false, "--allow-host a.localhost"},
		{true, nil, nil, "metadata.google.internal", "", 80, false, "--allow-host metadata.google.internal"},
		{true, nil, nil, "", "169.254.169.254", 80, false, "--allow-host 169.254.169.254"},
		{true, nil, nil, "", "2130706433", 80, false, ""},
		{true, nil, nil, "2130706433", "", 80, false, ""},
		{true, nil, nil, "127.0.0.1.", "", 80, false, "--allow-host 127.0.0.1"},
		{true, nil, nil, "::ffff:7f00:1", "", 80, false, "--allow-host 127.0.0.1"},
		{true, nil, nil, "", "64:ff9b::8.8.8.8", 443, false, "--allow-host 64:ff9b::808:808"},
		// Rules on top of it.
		{true, list("db.example:5432"), nil, "db.example", pub, 5432, true, ""},
		{true, list("db.example:5432"), nil, "db.example", "10.0.0.5", 5432, false, "--allow-host 10.0.0.5:5432"},
		{true, list("10.0.0.5:5432"), nil, "db.example", "", 5432, true, ""},
		{true, list("10.0.0.5:5432"), nil, "db.example", "10.0.0.5", 5432, true, ""},
		{true, list("10.0.0.5:5432"), list("10.0.0.0/8"), "db.example", "", 5432, false, "--allow-host db.example:5432"},
		{true, list("10.0.0.0/8:5432"), list("10.0.0.5"), "db.example", "", 5432, true, ""},
		{true, list("10.0.0.5:5432"), list("10.0.0.5:22"), "db.example", "", 5432, true, ""},
		{true, list("10.0.0.5:5432"), nil, "db.example", "10.0.0.6", 5432, false, "--allow-host db.example:5432"},
		{true, list("10.0.0.5:5432"), nil, "", "10.0.0.5", 5432, true, ""},
		{true, list("10.0.0.5:5432"), nil, "", "10.0.0.5", 5433, false, "--allow-host 10.0.0.5:5433"},
		{true, list("10.0.0.0/8"), nil, "", "10.9.9.9", 80, true, ""},
		{true, list("10.0.0.0/8"), nil, "", "10.9.9.9", 22, false, "--allow-host 10.9.9.9:22"},
		{true, list("localhost:3000"), nil, "localhost", "127.0.0.1", 3000, true, ""},
		{true, list("localhost:3000"), nil, "LOCALHOST.", "::1", 3000, true, ""},
		{true, list("localhost:3000"), nil, "localhost", "10.0.0.1", 3000, false, ""},
		{true, list("localhost:3000"), nil, "localhost", "127.0.0.1", 3001, false, "--allow-host localhost:3001"},
		{true, list("localhost:3000"), nil, "evil.example", "127.0.0.1", 3000, false, "--allow-host evil.example:3000"},
		{true, list("localhost:8080"), nil, "evil.example", "127.0.0.1", 8080, false, "--allow-host 127.0.0.1:8080"},
		{true, list("localhost:3000"), nil, "", "127.0.0.1", 3000, false, "--allow-host 127.0.0.1:3000"},
		{true, list("*.localhost"), nil, "a.localhost", "127.0.0.1", 80, false, "--allow-host a.localhost"},
		// Metadata is opened by its own name or address, by nothing wider.
		{true, list("169.254.0.0/16"), nil, "", "169.254.169.254", 80, false, "--allow-host 169.254.169.254"},
		{true, list("169.254.0.0/16"), nil, "", "169.254.1.1", 80, true, ""},
		{true, list("169.254.169.254"), nil, "", "169.254.169.254", 80, true, ""},
		{true, list("*.google.internal"), nil, "metadata.google.internal", "", 80, false, "--allow-host metadata.google.internal"},
		{true, list("metadata.google.internal"), nil, "metadata.google.internal", "169.254.169.254", 80, false, "--allow-host 169.254.169.254"},
		{true, list("metadata.google.internal", "169.254.169.254"), nil, "metadata.google.internal", "169.254.169.254", 80, true, ""},
		// What carries an address is judged by both.
		{true, list("64:ff9b::/96"), nil, "example.com", "64:ff9b::8.8.8.8", 443, true, ""},
		{true, list("64:ff9b::/96"), nil, "example.com", "64:ff9b::a9fe:a9fe", 80, false, "--allow-host 169.254.169.254"},
		{true, list("2002::/16", "127.0.0.1"), nil, "", "2002:7f00:1::", 80, true, ""},
		{true, list("198.18.0.0/15"), nil, "example.com", "198.18.0.7", 443, true, ""}, // fake addresses of the host's own resolver
		// A list.
		{false, nil, nil, "example.com", "", 443, false, "--allow-host example.com"},
		{false, nil, nil, "", pub, 443, false, "--allow-host " + pub},
		{false, list("example.com"), nil, "Example.COM.", pub, 443, true, ""},
		{false, list("example.com"), nil, "example.com", pub, 80, true, ""},
		{false, list("example.com"), nil, "example.com", pub, 22, false, "--allow-host example.com:22"},
		{false, list("example.com"), nil, "example.com..", "", 443, false, ""},
		{false, list("example.com"), nil, "www.example.com", pub, 443, false, "--allow-host www.example.com"},
		{false, list("example.com"), nil, "", pub, 443, false, "--allow-host " + pub},
		{false, list("*.example.org"), nil, "xexample.org", "", 443, false, "--allow-host xexample.org"},
		{false, list("*.example.org"), nil, "c2VjcmV0.example.org", pub, 443, true, ""},
		{false, list("10.0.0.5"), nil, "db.example", "", 443, false, "--allow-host db.example"},
		{false, list("apple.com"), nil, "аpple.com", "", 443, false, "--allow-host xn--pple-43d.com"},
		// Deny beats allow, on all ports unless it names some.
		{true, nil, list("bad.example"), "BAD.example.", "", 443, false, ""},
		{true, nil, list("bad.example"), "bad.example", pub, 8443, false, ""},
		{true, list("bad.example"), list("bad.example"), "bad.example", pub, 443, false, ""},
		{true, nil, list("bad.example:22"), "bad.example", pub, 443, true, ""},
		{true, nil, list("bad.example:22"), "bad.example", pub, 22, false, ""},
		{true, nil, list("93.184.216.0/24"), "good.example", pub, 443, false, ""},
		{true, nil, list("93.184.216.0/24"), "", pub, 443, false, ""},
		{true, list("64:ff9b::/96"), list("8.8.8.8"), "", "64:ff9b::8.8.8.8", 443, false, ""},
	} {
		var addr netip.Addr
		if a, err := netip.ParseAddr(tt.addr); err == nil {
			addr = a
		}
		v := rules(t, tt.public, tt.allow, tt.deny).Decide(tt.name, addr, tt.port, TCP)
		if v.Allow != tt.want || v.Remedy != tt.remedy {
			t.Errorf("public %v, allow %v, deny %v: %q %s %d: got %+v, want %v with %q",
				tt.public, tt.allow, tt.deny, tt.name, tt.addr, tt.port, v, tt.want, tt.remedy)
		}
		if v.Rule == "" {
			t.Errorf("%q %s %d: no reason", tt.name, tt.addr, tt.port)
		}
	}
	for _, p := range []Proto{Other, UDP, ICMP, 9} {
		if v := rules(t, true, nil, nil).Decide("example.com", netip.Addr{}, 443, p); v.Allow {
			t.Errorf("%v passes", p)
		}
	}
	for _, r := range []*Rules{nil, {}} {
		if r.Decide("example.com", netip.Addr{}, 443, TCP).Allow || r.Ports() != nil || r.MayResolve("example.com").Allow {
			t.Error("zero rules allow something")
		}
	}
	if off, err := Compile(policy.Network{}); err != nil || off.Decide("example.com", netip.Addr{}, 443, TCP).Allow {
		t.Errorf("without a network something is allowed: %v", err)
	}
}

// TestPrivate: the one switch opens what is private, and never metadata.
func TestPrivate(t *testing.T) {
	r := rules(t, true, nil, nil).WithPrivate()
	for _, a := range []string{"127.0.0.1", "::1", "10.0.0.1", "192.168.1.1", "fd00::1", "100.64.0.1", "198.18.0.1", "169.254.1.1", "64:ff9b::a00:1"} {
		if v := r.Decide("", addrOf(a), 8080, TCP); !v.Allow {
			t.Errorf("%s: %+v", a, v)
		}
		if v := r.Decide("x.example", addrOf(a), 8080, TCP); !v.Allow {
			t.Errorf("by name %s: %+v", a, v)
		}
	}
	if v := r.Decide("localhost", addrOf("127.0.0.1"), 80, TCP); !v.Allow {
		t.Errorf("localhost: %+v", v)
	}
	for _, a := range []string{"169.254.169.254", "fd00:ec2::254", "100.100.100.200", "169.254.170.2", "0.0.0.0", "::", "224.0.0.1", "240.0.0.1",
		"2002:7f00:1::", "64:ff9b::a9fe:a9fe", "::127.0.0.1"} {
		if r.Decide("", addrOf(a), 80, TCP).Allow || r.Decide("x.example", addrOf(a), 80, TCP).Allow {
			t.Errorf("%s is open", a)
		}
	}
	if r.Decide("metadata.google.internal", netip.Addr{}, 80, TCP).Allow {
		t.Error("metadata is open by name")
	}
}

func TestCompileRefuses(t *testing.T) {
	for _, rule := range []string{"", ",", "  ", "*", "https://example.com/", "example.com/path", "exa*mple.com"} {
		for _, n := range []policy.Network{{Mode: policy.Gated, Allow: []string{rule}}, {Mode: policy.Gated, Deny: []string{rule}}} {
			if r, err := Compile(n); fault.CodeOf(err) != fault.PolicyInvalid || fault.HintOf(err) == "" || r != nil {
				t.Errorf("%q: got %v, %v", rule, r, err)
			}
		}
	}
	many := []string{"a:1000-1031", "a:2000-2031", "a:3000"}
	if _, err := Compile(policy.Network{Mode: policy.Gated, Allow: many}); fault.CodeOf(err) != fault.PolicyInvalid {
		t.Errorf("65 ports: %v", err)
	}
	if _, err := Compile(policy.Network{Mode: policy.Gated, Allow: many[:2]}); err != nil {
		t.Errorf("64 ports: %v", err)
	}
}

func TestPorts(t *testing.T) {
	if got, want := rules(t, true, []string{"a:5432", "b", "c:21-23"}, nil).Ports(), []uint16{21, 22, 23, 80, 443, 5432, 8080, 8443, 9418}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := rules(t, false, nil, nil).Ports(); got != nil {
		t.Errorf("an empty list has ports: %v", got)
	}
	r := rules(t, false, []string{"a:5432", "localhost:3000", "127.0.0.1:5173", "[::1]:81", "10.0.0.1:9"}, nil)
	if got, want := r.Local(), []uint16{81, 3000, 5173}; !slices.Equal(got, want) {
		t.Errorf("local: got %v, want %v", got, want)
	}
}

var (
	someRules = []string{"a.example", "b.example:22", "*.example:8080", "10.0.0.0/8:22-23", "10.0.0.1", "8.8.8.8:53", "localhost:3000", "127.0.0.1:3000",
		"169.254.169.254", "64:ff9b::/96", "fd00::/8:443", "*.b.example", "metadata.goog", "::1"}
	someNames = []string{"", "a.example", "b.example", "x.b.example", "localhost", "a.localhost", "metadata.goog", "10.0.0.1", "A.EXAMPLE.", "bad..name"}
	someAddrs = []string{"", "10.0.0.1", "10.1.0.1", "8.8.8.8", "127.0.0.1", "169.254.169.254", "64:ff9b::8.8.8.8", "64:ff9b::10.0.0.1", "fd00::1",
		"2606:2800::1", "::ffff:10.0.0.1", "0.0.0.0", "::1"}
	somePorts = []uint16{22, 23, 53, 80, 443, 3000, 8080, 0}
)

func drawNetwork(t *rapid.T, label string) policy.Network {
	one := rapid.SampledFrom(someRules)
	return policy.Network{Mode: policy.Gated, Public: rapid.Bool().Draw(t, label+" public"),
		Allow: rapid.SliceOfN(one, 0, 4).Draw(t, label+" allow"), Deny: rapid.SliceOfN(one, 0, 2).Draw(t, label+" deny")}
}

func questions(do func(name string, addr netip.Addr, port uint16)) {
	for _, n := range someNames {
		for _, a := range someAddrs {
			for _, p := range somePorts {
				do(n, addrOf(a), p)
			}
		}
	}
}

func fixed(s string) string { return strings.Replace(s, "fd00::/8:443", "[fd00::/8]:443", 1) }

func compiled(t interface{ Fatal(...any) }, n policy.Network) *Rules {
	for i := range n.Allow {
		n.Allow[i] = fixed(n.Allow[i])
	}
	for i := range n.Deny {
		n.Deny[i] = fixed(n.Deny[i])
	}
	r, err := Compile(n)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestDecideLaws: a rule to allow never narrows, one to deny never widens, and
// beats every one to allow; what is not allowed by name never is with an address.
func TestDecideLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawNetwork(t, "n")
		more := n
		more.Allow = append(slices.Clone(n.Allow), rapid.SampledFrom(someRules).Draw(t, "one more"))
		less := n
		denied := rapid.SampledFrom(someRules).Draw(t, "one denied")
		less.Deny = append(slices.Clone(n.Deny), denied)
		alone := policy.Network{Mode: policy.Gated, Allow: []string{denied}}
		r, wide, narrow, only := compiled(t, n), compiled(t, more), compiled(t, less), compiled(t, alone)
		questions(func(name string, addr netip.Addr, port uint16) {
			v := r.Decide(name, addr, port, TCP)
			if v.Allow && !wide.Decide(name, addr, port, TCP).Allow {
				t.Errorf("%q %v %d: a rule to allow closed it", name, addr, port)
			}
			if w := narrow.Decide(name, addr, port, TCP); w.Allow && (!v.Allow || only.Decide(name, addr, port, TCP).Allow) {
				t.Errorf("%q %v %d: open although denied: %+v", name, addr, port, w)
			}
			if v.Allow && addr.IsValid() && name != "" && name != "10.0.0.1" && !r.Decide(name, netip.Addr{}, port, TCP).Allow {
				t.Errorf("%q %v %d: open with the address and not by name", name, addr, port)
			}
			if v.Allow && !slices.Contains(r.Ports(), port) {
				t.Errorf("%q %v %d: open on a port that is not listed", name, addr, port)
			}
			if v.Allow && name != "" && !r.MayResolve(name).Allow && !addr.IsValid() && name != "10.0.0.1" {
				t.Errorf("%q %d: may be dialled and not resolved", name, port)
			}
		})
	})
}

// TestMeetIsNeverWider: what two policies make together allows nothing that one
// of them does not, and a policy within another neither.
func TestMeetIsNeverWider(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, q := policy.Default("/w"), policy.Default("/w")
		p.Network, q.Network = drawNetwork(t, "p"), drawNetwork(t, "q")
		rp, rq := compiled(t, p.Network), compiled(t, q.Network)
		m := policy.Meet(p, q)
		rm := compiled(t, m.Network)
		within := p.Within(q)
		questions(func(name string, addr netip.Addr, port uint16) {
			byP, byQ := rp.Decide(name, addr, port, TCP).Allow, rq.Decide(name, addr, port, TCP).Allow
			if v := rm.Decide(name, addr, port, TCP); v.Allow && !(byP && byQ) {
				t.Errorf("%q %v %d: the meet %+v allows it (%s); p: %v, q: %v", name, addr, port, m.Network, v.Rule, byP, byQ)
			}
			if within && byP && !byQ {
				t.Errorf("%q %v %d: p lies within q, and allows more", name, addr, port)
			}
		})
	})
}
