package egress

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"testing"

	"github.com/tether-sandbox/tether/fault"
)

// TestJudgeOwn: a public address of the host itself is opened by a rule about
// addresses, whatever leads there, and one among several spoils the set.
func TestJudgeOwn(t *testing.T) {
	const own, own6, other = "93.184.216.34", "2606:2800::1", "93.184.216.35"
	names := &book{names: map[string][][]string{"own.test.": {{own}}, "own6.test.": {{own6}}, "mixed.test.": {{other, own}}, "other.test.": {{other}}}}
	for _, tt := range []struct {
		public bool
		allow  []string
		name   string
		addr   string
		port   uint16
		remedy string // of the denial; empty where it is allowed
	}{
		{true, nil, "other.test", "", 443, ""},
		{true, nil, "", other, 443, ""},
		{true, nil, "own.test", "", 443, "--allow-host " + own},
		{true, nil, "own6.test", "", 8443, "--allow-host [" + own6 + "]:8443"},
		{true, nil, "mixed.test", "", 443, "--allow-host " + own},
		{true, nil, "", own, 22, "--allow-host " + own + ":22"},
		{true, nil, "", own6, 80, "--allow-host " + own6},
		{true, nil, "", "::ffff:" + own, 80, "--allow-host " + own},
		{true, nil, own, "", 80, "--allow-host " + own},
		{true, []string{"own.test"}, "own.test", "", 443, "--allow-host " + own},
		{true, []string{"*.test"}, "own.test", "", 443, "--allow-host " + own},
		{true, []string{own}, "own.test", "", 443, ""},
		{true, []string{own}, "", own, 443, ""},
		{true, []string{own}, "", own, 22, "--allow-host " + own + ":22"},
		{true, []string{own + ":22"}, "", own, 443, "--allow-host " + own},
		{true, []string{"93.184.216.0/24"}, "mixed.test", "", 443, ""},
		{true, []string{"2606:2800::/32"}, "", own6, 443, ""},
		{false, []string{"own.test"}, "own.test", "", 443, "--allow-host " + own},
		{false, []string{"own.test", own}, "own.test", "", 443, ""},
	} {
		asked := 0
		d := Dialer{Rules: rules(t, tt.public, tt.allow, nil), Resolver: names, Own: func(a netip.Addr) (bool, error) {
			asked++
			return a == addrOf(own) || a == addrOf(own6), nil
		}}
		_, err := d.Judge(t.Context(), tt.name, addrOf(tt.addr), tt.port)
		if got := fault.HintOf(err); got != tt.remedy || IsDenied(err) != (tt.remedy != "") {
			t.Errorf("public %v, allow %v: %q %s %d: got %v with %q, want %q", tt.public, tt.allow, tt.name, tt.addr, tt.port, err, got, tt.remedy)
		}
		d.Own = func(netip.Addr) (bool, error) { return false, errors.New("the kernel does not say") }
		if _, err := d.Judge(t.Context(), "other.test", netip.Addr{}, 443); tt.public && !slices.Contains(tt.allow, "93.184.216.0/24") && !IsDenied(err) {
			t.Errorf("nobody knows whether it is one: %v", err)
		}
	}
	private := Dialer{Rules: rules(t, true, nil, nil).WithPrivate(), Own: func(netip.Addr) (bool, error) { return true, nil }}
	if _, err := private.Judge(t.Context(), "", addrOf(own), 443); err != nil {
		t.Errorf("the switch that opens the loopback: %v", err)
	}
}

// TestOwnIsAskedForPublic: what only a rule about addresses opens needs no
// second look.
func TestOwnIsAskedForPublic(t *testing.T) {
	port, came := hears(t, "127.0.0.1:0")
	d := Dialer{Rules: rules(t, true, []string{"127.0.0.1:" + strconv.Itoa(int(port))}, nil), Own: func(netip.Addr) (bool, error) {
		t.Error("asked for what only a rule about addresses opens")
		return true, nil
	}}
	c, err := d.Dial(t.Context(), "", addrOf("127.0.0.1"), port, "")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, c)
	c.Close()
	if came() != 1 {
		t.Error("nobody came")
	}
}

// TestIsOwn asks the host for its own addresses, and for some that are nobody's.
func TestIsOwn(t *testing.T) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Fatal("the host has no address, not even a loopback")
	}
	for _, a := range all {
		ip, ok := netip.AddrFromSlice(a.(*net.IPNet).IP)
		if !ok || ip.Unmap().IsLinkLocalUnicast() { // which means something only with an interface
			continue
		}
		if own, err := isOwn(ip); err != nil || !own {
			t.Errorf("%v: %v, %v", ip, own, err)
		}
	}
	for _, a := range []string{"203.0.113.77", "2001:db8::77", "93.184.216.34", "2606:2800::34"} {
		if own, err := isOwn(addrOf(a)); err != nil || own {
			t.Errorf("%s: %v, %v", a, own, err)
		}
	}
}

func BenchmarkIsOwn(b *testing.B) {
	for b.Loop() {
		if _, err := isOwn(netip.AddrFrom4([4]byte{93, 184, 216, 34})); err != nil {
			b.Fatal(err)
		}
	}
}
