package oracle

import (
	"encoding/binary"
	"math/rand/v2"
	"net"
	"net/netip"
	"testing"
	_ "unsafe" // go:linkname

	"github.com/stripe/smokescreen/pkg/smokescreen"

	"github.com/tether-sandbox/tether/internal/egress"
	"github.com/tether-sandbox/tether/internal/host"
	"github.com/tether-sandbox/tether/policy"
)

// classifyAddr is smokescreen's verdict on an address before it dials it. It is
// not exported, and the proxy around it cannot be asked without dialling.
//
//go:linkname classifyAddr github.com/stripe/smokescreen/pkg/smokescreen.classifyAddr
func classifyAddr(config *smokescreen.Config, addr *net.TCPAddr) int

// The kinds of verdict that open an address (ipType); all others close it.
const allowDefault, allowUserConfigured = 0, 1

// explained are the classes that base public keeps closed and smokescreen opens,
// each with why. There must be none the other way round.
var explained = map[host.Class]string{
	host.Unspecified:   "0.0.0.0/8 is this network: some kernels take all of it for their own; smokescreen closes 0.0.0.0 alone",
	host.Metadata:      "168.63.129.16 is a public address that Azure answers within; smokescreen leaves it to a rule",
	host.Benchmarking:  "never on the internet, and used by fake-address resolvers and by our own gate",
	host.Documentation: "never on the internet",
	host.Reserved:      "protocol assignments, 240/4 and unallocated IPv6 are no hosts; some private networks use them",
	host.SixToFour:     "192.88.99.0/24 leads to the nearest 6to4 relay; of 2002::/16 both think alike",
	host.Mapped:        "::a.b.c.d and ::ffff:0:a.b.c.d carry an IPv4 address past a table of IPv6",
	host.NAT64:         "64:ff9b:1::/48 is the local translator's; smokescreen knows the well-known prefix alone",
	host.ISATAP:        "carries an IPv4 address in any network's interface identifier",
	host.Private:       "fec0::/10, site-local, is deprecated and still routed inside some sites",
}

func TestSmokescreen(t *testing.T) {
	config := smokescreen.NewConfig()
	rules, err := egress.Compile(policy.Network{Mode: policy.Gated, Public: true})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[host.Class]int{}
	same, open := 0, 0
	check := func(a netip.Addr) {
		verdict := classifyAddr(config, net.TCPAddrFromAddrPort(netip.AddrPortFrom(a, 443)))
		theirs := verdict == allowDefault || verdict == allowUserConfigured
		ours := rules.Decide("", a, 443, egress.TCP).Allow
		if byName := rules.Decide("name.test", a, 443, egress.TCP).Allow; byName != ours {
			t.Errorf("%v: allowed %v by a name, %v without", a, byName, ours)
		}
		switch class := host.ClassOf(a); {
		case ours == theirs:
			same++
			if ours {
				open++
			}
		case ours:
			t.Errorf("%v, %v: we open what smokescreen closes (%d)", a, class, verdict)
		case explained[class] == "":
			t.Errorf("%v, %v: smokescreen opens it, and nothing says why we do not", a, class)
		default:
			seen[class]++
		}
	}
	// Both edges of every block that either knows, and what lies beside them.
	for _, s := range []string{"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "100.100.100.200/32", "127.0.0.0/8", "168.63.129.16/32", "169.254.0.0/16",
		"169.254.169.254/32", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24",
		"203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4", "255.255.255.255/32", "::/128", "::1/128", "::/96", "::ffff:0:0:0/96", "::ffff:0:0/96", "64:ff9b::/96",
		"64:ff9b:1::/48", "100::/64", "2000::/3", "2001::/23", "2001::/32", "2001:2::/48", "2001:db8::/32", "2002::/16", "3fff::/20", "fc00::/7",
		"fd00:ec2::254/128", "fe80::/10", "fec0::/10", "ff00::/8", "2600:0:0:0:0:5efe::/96", "2606:4700::/32", "8.8.8.0/24"} {
		p := netip.MustParsePrefix(s)
		first, last := p.Addr(), p.Addr().AsSlice()
		for i := p.Bits(); i < len(last)*8; i++ {
			last[i/8] |= 0x80 >> (i % 8)
		}
		end, _ := netip.AddrFromSlice(last)
		for _, a := range []netip.Addr{first, first.Next(), first.Prev(), end, end.Prev(), end.Next()} {
			if a.IsValid() {
				check(a)
				check(a.Unmap())
			}
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 200000 {
		var b [16]byte
		binary.BigEndian.PutUint64(b[:], random.Uint64())
		binary.BigEndian.PutUint64(b[8:], random.Uint64())
		check(netip.AddrFrom4([4]byte(b[:4])))
		check(netip.AddrFrom16(b))
		b[0] = 0x20 | b[0]&0x1f // global unicast
		check(netip.AddrFrom16(b))
	}
	if same == 0 || open == 0 {
		t.Fatalf("nothing was compared: %d alike, %d of them open", same, open)
	}
	for class := range explained {
		if seen[class] == 0 {
			t.Errorf("%v: what is explained makes no difference", class)
		}
	}
	t.Logf("%d alike, %d of them open; closed by us alone: %v", same, open, seen)
}
