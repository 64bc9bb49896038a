package gate

import (
	"net"
	"strconv"
	"testing"
)

func TestHostPorts(t *testing.T) {
	for _, c := range []struct{ low, high, first, last, many int }{
		{0, 0, 61000, 65535, 4536},
		{32768, 60999, 61000, 65535, 4536}, // what Linux comes with
		{32768, 61000, 61001, 65535, 4535},
		{61000, 65535 - enough, 65535 - enough + 1, 65535, enough},
		{61000, 65535 - enough + 1, 61000, 65535, 4536}, // too few are left
		{1024, 65535, 61000, 65535, 4536},
	} {
		p := hostPorts(c.low, c.high)
		if len(p) != c.many || p[0] != c.first || p[len(p)-1] != c.last {
			t.Errorf("%d to %d: got %d ports, %d to %d", c.low, c.high, len(p), p[0], p[len(p)-1])
		}
	}
}

// A port that somebody has on another address is not taken.
func TestListenHost(t *testing.T) {
	l, err := ListenHost()
	if err != nil {
		t.Fatal(err)
	}
	_, text, err := net.SplitHostPort(l.Addr().String())
	port, aerr := strconv.Atoi(text)
	if err != nil || aerr != nil || port < hostFirst {
		t.Fatalf("listens on %s", l.Addr())
	}
	if unused(port) == nil {
		t.Errorf("%d seems unused while we listen there", port)
	}
	l.Close()
	if err := unused(port); err != nil {
		t.Errorf("control: after that: %v", err)
	}
	for _, addr := range []string{"127.0.0.2", "::1", "0.0.0.0", "::"} {
		l, err := net.Listen("tcp", net.JoinHostPort(addr, text))
		if err != nil {
			t.Logf("%s: %v", addr, err)
			continue
		}
		if unused(port) == nil {
			t.Errorf("%d seems unused, and %s listens there", port, addr)
		}
		l.Close()
	}
}
