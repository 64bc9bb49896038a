package host

import (
	"net/netip"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"example.com", "example.com"}, {"EXAMPLE.com.", "example.com"}, {"a_b.example", "a_b.example"},
		{"bücher.example", "xn--bcher-kva.example"}, {"BÜCHER.example", "xn--bcher-kva.example"},
		{"xn--bcher-kva.example", "xn--bcher-kva.example"}, {"example。com", "example.com"},
		{"ｅｘａｍｐｌｅ.com", "example.com"},
		{"аpple.com", "xn--pple-43d.com"}, // a Cyrillic letter: another name than apple.com
		{"faß.de", "xn--fa-hia.de"},
		{"127.0.0.1", "127.0.0.1"}, {"127.0.0.1.", "127.0.0.1"}, {"１２７.0.0.1", "127.0.0.1"},
		{"[::1]", "::1"}, {"::1", "::1"}, {"[::ffff:127.0.0.1]", "127.0.0.1"}, {"::FFFF:7f00:1", "127.0.0.1"},
		{"[0:0:0:0:0:ffff:a9fe:a9fe]", "169.254.169.254"}, {"2001:DB8::1", "2001:db8::1"},
		{"1.2.3.4.example", "1.2.3.4.example"}, {"0xa.example", "0xa.example"},
	} {
		h, err := Parse(tt.in)
		if err != nil || h.String() != tt.want {
			t.Errorf("%q: got %q, %v, want %q", tt.in, h, err, tt.want)
		}
	}
	for _, tt := range []struct{ in, hint string }{
		{"", ""}, {".", ""}, {"a..b", ""}, {"example.com..", "write it as example.com"}, {".example.com", "write it as example.com"},
		{"-a.example", ""}, {"a-.example", ""}, {strings.Repeat("a", 64) + ".example", ""},
		{strings.Repeat("a.", 127) + "ab", ""}, {"a b", ""}, {"a\x00.example", ""}, {"a%00b", ""}, {"a\n.example", ""},
		{"a\\b", ""}, {"user@example.com", "write it as example.com"}, {"*.example.com", ""},
		{"2130706433", "write it as 127.0.0.1"}, {"0x7f000001", "write it as 127.0.0.1"}, {"0x7f.1", "write it as 127.0.0.1"},
		{"0177.0.0.1", "write it as 127.0.0.1"}, {"127.1", "write it as 127.0.0.1"}, {"0", "write it as 0.0.0.0"},
		{"1.2.3.4.5", "write a host name"}, {"256.1.1.1", "write a host name"}, {"example.123", "write a host name"},
		{"example.0x1f", "write a host name"}, {"99999999999999999999999999", "write a host name"},
		{"fe80::1%eth0", "leave out %eth0"}, {"[::1", ""}, {"[example.com]", ""}, {"[1.2.3.4]", ""}, {"::1]", ""}, {"1:2", ""},
		{"\xff.example", ""},
	} {
		h, err := Parse(tt.in)
		if err == nil {
			t.Errorf("%q: got %q, want an error", tt.in, h)
			continue
		}
		if hint := err.(*Error).Hint; tt.hint != "" && !strings.HasPrefix(hint, tt.hint) {
			t.Errorf("%q: hint %q, want %q", tt.in, hint, tt.hint)
		}
	}
}

func TestParseRule(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"Example.COM.", "example.com"}, {"example.com:443", "example.com:443"}, {"*.Example.com:8443", "*.example.com:8443"},
		{"*.com", "*.com"}, {"a.example:443,80", "a.example:80,443"}, {"a.example:3000-3002,3003,3001", "a.example:3000-3003"},
		{"10.0.0.0/8", "10.0.0.0/8"}, {"10.0.0.0/8:5432", "10.0.0.0/8:5432"}, {"10.0.0.1/32", "10.0.0.1"}, {"10.0.0.1:22", "10.0.0.1:22"},
		{"::1", "::1"}, {"[::1]", "::1"}, {"[::1]:3000", "[::1]:3000"}, {"fd00::/8", "fd00::/8"}, {"[fd00::/8]:443", "[fd00::/8]:443"},
		{"::ffff:10.0.0.1", "10.0.0.1"}, {"localhost:3000", "localhost:3000"}, {"bücher.example", "xn--bcher-kva.example"},
		{"a.example:65535", "a.example:65535"}, {"a.example:1", "a.example:1"},
	} {
		r, err := ParseRule(tt.in)
		if err != nil || r.String() != tt.want {
			t.Errorf("%q: got %q, %v, want %q", tt.in, r, err, tt.want)
		}
	}
	for _, tt := range []struct{ in, hint string }{
		{"", "write it like"}, {" ", "write it like"}, {",", ""}, {" example.com ", "write it as example.com"},
		{"https://example.com/", "write it as example.com"}, {"https://u:p@example.com/x", "write it as example.com"},
		{"example.com/path", "write it as example.com"}, {"*", "leave it out"}, {"*.", "leave it out"}, {"exa*mple.com", "write it like *."},
		{"*example.com", "write it like *."}, {"*.*.example.com", "write it like *."}, {"a.*.example", "write it like *."},
		{"*.10.0.0.1", "write the network"}, {"10.0.0.1/8", "write 10.0.0.0/8"}, {"10.0.0.0/33", "write it like"}, {"10.0.0.0/", "write it as 10.0.0.0"},
		{"a.example:", "write ports"}, {"3000", "write it like localhost:3000"}, {"a.example,b.example", "write a rule for each of them, such as a.example"},
		{"*.a.example:80,443,b.example", "write a rule for each"}, {":3000", "write it like localhost:3000"}, {"65536", "write it as 0.1.0.0"}, {"a.example:0", "write ports"}, {"a.example:65536", "write ports"}, {"a.example:080", "write ports"},
		{"a.example:http", "write ports"}, {"a.example:1-65", "write ports"}, {"a.example:5-4", "write ports"}, {"a.example:+5", "write ports"},
		{"a.example:443,", "write ports"}, {"a.example:*", "write ports"}, {"[::1]x", ""}, {"[::1", ""}, {"127.1", "write it as 127.0.0.1"},
		{"::ffff:10.0.0.0/104", "write it like"}, {"fe80::1%eth0", "leave out"}, {"a\x00b.example", ""},
	} {
		r, err := ParseRule(tt.in)
		if err == nil {
			t.Errorf("%q: got %q, want an error", tt.in, r)
			continue
		}
		if hint := err.(*Error).Hint; !strings.HasPrefix(hint, tt.hint) {
			t.Errorf("%q: hint %q, want %q", tt.in, hint, tt.hint)
		}
	}
	if _, err := ParseRule("a.example:1-64"); err != nil {
		t.Errorf("64 ports: %v", err)
	}
}

// TestMatchName: labels have borders.
func TestMatchName(t *testing.T) {
	for _, tt := range []struct {
		rule, name string
		want       bool
	}{
		{"example.com", "example.com", true}, {"example.com", "www.example.com", false}, {"example.com", "evil-example.com", false},
		{"example.com", "notexample.com", false}, {"example.com", "example.com.evil.test", false},
		{"*.example.org", "a.example.org", true}, {"*.example.org", "a.b.example.org", true}, {"*.example.org", "example.org", false},
		{"*.example.org", "xexample.org", false}, {"*.example.org", "evilexample.org", false}, {"*.example.org", ".example.org", false},
		{"10.0.0.0/8", "example.org", false}, {"example.org", "", false},
	} {
		r, err := ParseRule(tt.rule)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.MatchName(tt.name); got != tt.want {
			t.Errorf("%s and %s: got %v", tt.rule, tt.name, got)
		}
	}
}

// TestClassOf looks at both edges of every block, from inside and from outside.
func TestClassOf(t *testing.T) {
	for _, tt := range []struct {
		before, first, last, after string
		class                      Class
	}{
		{"", "0.0.0.0", "0.255.255.255", "1.0.0.0", Unspecified},
		{"9.255.255.255", "10.0.0.0", "10.255.255.255", "11.0.0.0", Private},
		{"100.63.255.255", "100.64.0.0", "100.127.255.255", "100.128.0.0", CGNAT},
		{"100.100.100.199", "100.100.100.200", "100.100.100.200", "100.100.100.201", Metadata},
		{"126.255.255.255", "127.0.0.0", "127.255.255.255", "128.0.0.0", Loopback},
		{"168.63.129.15", "168.63.129.16", "168.63.129.16", "168.63.129.17", Metadata},
		{"169.253.255.255", "169.254.0.0", "169.254.255.255", "169.255.0.0", LinkLocal},
		{"169.254.169.253", "169.254.169.254", "169.254.169.254", "169.254.169.255", Metadata},
		{"169.254.170.1", "169.254.170.2", "169.254.170.2", "169.254.170.3", Metadata},
		{"169.254.170.22", "169.254.170.23", "169.254.170.23", "169.254.170.24", Metadata},
		{"169.254.0.22", "169.254.0.23", "169.254.0.23", "169.254.0.24", Metadata},
		{"169.254.42.41", "169.254.42.42", "169.254.42.42", "169.254.42.43", Metadata},
		{"172.15.255.255", "172.16.0.0", "172.31.255.255", "172.32.0.0", Private},
		{"191.255.255.255", "192.0.0.0", "192.0.0.255", "192.0.1.0", Reserved},
		{"192.0.0.191", "192.0.0.192", "192.0.0.192", "192.0.0.193", Metadata},
		{"192.0.1.255", "192.0.2.0", "192.0.2.255", "192.0.3.0", Documentation},
		{"192.88.98.255", "192.88.99.0", "192.88.99.255", "192.88.100.0", SixToFour},
		{"192.167.255.255", "192.168.0.0", "192.168.255.255", "192.169.0.0", Private},
		{"198.17.255.255", "198.18.0.0", "198.19.255.255", "198.20.0.0", Benchmarking},
		{"198.51.99.255", "198.51.100.0", "198.51.100.255", "198.51.101.0", Documentation},
		{"203.0.112.255", "203.0.113.0", "203.0.113.255", "203.0.114.0", Documentation},
		{"223.255.255.255", "224.0.0.0", "239.255.255.255", "240.0.0.0", Multicast},
		{"239.255.255.255", "240.0.0.0", "255.255.255.255", "", Reserved},

		{"", "::", "::", "::1", Unspecified},
		{"::", "::1", "::1", "::2", Loopback},
		{"::1", "::2", "::ffff:ffff", "::1:0:0", Mapped},
		{"::fffe:ffff:ffff:ffff", "::ffff:0:0:0", "::ffff:0:ffff:ffff", "::ffff:1:0:0", Mapped},
		{"64:ff9a:ffff:ffff:ffff:ffff:ffff:ffff", "64:ff9b::", "64:ff9b::ffff:ffff", "64:ff9b::1:0:0", NAT64},
		{"64:ff9b:0:ffff:ffff:ffff:ffff:ffff", "64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff", "64:ff9b:2::", NAT64},
		{"1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "2000::", "2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "2001::", Public},
		{"2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "2001::", "2001:0:ffff:ffff:ffff:ffff:ffff:ffff", "2001:1::", Teredo},
		{"2001:0:ffff:ffff:ffff:ffff:ffff:ffff", "2001:1::", "2001:1:ffff:ffff:ffff:ffff:ffff:ffff", "2001:2::", Reserved},
		{"2001:1:ffff:ffff:ffff:ffff:ffff:ffff", "2001:2::", "2001:2:0:ffff:ffff:ffff:ffff:ffff", "2001:2:1::", Benchmarking},
		{"2001:2:0:ffff:ffff:ffff:ffff:ffff", "2001:2:1::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff", "2001:200::", Reserved},
		{"2001:db7:ffff:ffff:ffff:ffff:ffff:ffff", "2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", "2001:db9::", Documentation},
		{"2001:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "2002::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "2003::", SixToFour},
		{"3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff", "3fff:1000::", Documentation},
		{"3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "4000::", "fbff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "fc00::", Reserved},
		{"fbff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "fe00::", Private},
		{"fd00:ec2::253", "fd00:ec2::254", "fd00:ec2::254", "fd00:ec2::255", Metadata},
		{"fd00:ec2::22", "fd00:ec2::23", "fd00:ec2::23", "fd00:ec2::24", Metadata},
		{"fd20:ce::253", "fd20:ce::254", "fd20:ce::254", "fd20:ce::255", Metadata},
		{"fd00:42::41", "fd00:42::42", "fd00:42::42", "fd00:42::43", Metadata},
		{"fd00:c1::a9fe:a9fd", "fd00:c1::a9fe:a9fe", "fd00:c1::a9fe:a9fe", "fd00:c1::a9fe:a9ff", Metadata},
		{"fe7f:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "fec0::", LinkLocal},
		{"fe80::a9fe:a9fd", "fe80::a9fe:a9fe", "fe80::a9fe:a9fe", "fe80::a9fe:a9ff", Metadata},
		{"febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "ff00::", Private},
		{"feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "", Multicast},
	} {
		for _, in := range []string{tt.first, tt.last} {
			if got := ClassOf(netip.MustParseAddr(in)); got != tt.class {
				t.Errorf("%s: got %v, want %v", in, got, tt.class)
			}
		}
		for _, out := range []string{tt.before, tt.after} {
			if out != "" && ClassOf(netip.MustParseAddr(out)) == tt.class && tt.class != Reserved {
				t.Errorf("%s: got %v as well", out, tt.class)
			}
		}
	}
	for _, tt := range []struct {
		addr, inside string
		class        Class
	}{
		{"64:ff9b::a9fe:a9fe", "169.254.169.254", NAT64}, {"64:ff9b:1::a9fe:a9fe", "169.254.169.254", NAT64},
		{"2002:7f00:1::", "127.0.0.1", SixToFour}, {"::127.0.0.1", "127.0.0.1", Mapped}, {"::ffff:0:127.0.0.1", "127.0.0.1", Mapped},
		{"2001:0:4136:e378:8000:63bf:3fff:fdd2", "192.0.2.45", Teredo}, {"::5efe:10.0.0.1", "10.0.0.1", ISATAP},
		{"2600::5efe:10.0.0.1", "10.0.0.1", ISATAP}, {"2600::200:5efe:10.0.0.1", "10.0.0.1", ISATAP},
		{"fe80::5efe:10.0.0.1", "10.0.0.1", ISATAP},
	} {
		a := netip.MustParseAddr(tt.addr)
		inside, ok := Embedded(a)
		if ClassOf(a) != tt.class || !ok || inside != netip.MustParseAddr(tt.inside) {
			t.Errorf("%s: got %v carrying %v, want %v carrying %s", tt.addr, ClassOf(a), inside, tt.class, tt.inside)
		}
	}
	for addr, class := range map[string]Class{"::ffff:127.0.0.1": Loopback, "::ffff:a9fe:a9fe": Metadata, "::ffff:8.8.8.8": Public,
		"8.8.8.8": Public, "2606:4700::1111": Public, "fe80::1%eth0": LinkLocal, "2606:4700::1%lo": LinkLocal} {
		if got := ClassOf(netip.MustParseAddr(addr)); got != class {
			t.Errorf("%s: got %v, want %v", addr, got, class)
		}
	}
	if ClassOf(netip.Addr{}) != Unknown {
		t.Error("no address has a class")
	}
}

// FuzzParse: what is read prints back as itself, and stays what it is.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"example.com", "[::1]", "bücher.example", "127.0.0.1", "0x7f.1", "a..b", "１２７.0.0.1", "::ffff:1.2.3.4", "xn--a", "*.a"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		h, err := Parse(s)
		if err != nil {
			if _, ok := err.(*Error); !ok {
				t.Fatalf("%T", err)
			}
			return
		}
		if (h.Name == "") == !h.Addr.IsValid() {
			t.Fatalf("%q: both or neither: %+v", s, h)
		}
		again, err := Parse(h.String())
		if err != nil || again != h {
			t.Fatalf("%q is read as %+v, which is read as %+v, %v", s, h, again, err)
		}
		for i := range len(h.Name) {
			if c := h.Name[i]; c >= 0x80 || c <= ' ' || 'A' <= c && c <= 'Z' || strings.IndexByte("/:@%\\*", c) >= 0 {
				t.Fatalf("%q is read as %q", s, h.Name)
			}
		}
		if a, err := netip.ParseAddr(h.Name); err == nil {
			t.Fatalf("%q is read as a name that is the address %v", s, a)
		}
	})
}

// FuzzParseRule: what is read prints back as itself.
func FuzzParseRule(f *testing.F) {
	for _, s := range []string{"example.com", "*.example.com:443", "10.0.0.0/8:1-3,9", "[fd00::/8]:443", "::1", "https://a/b", "*", "a:0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := ParseRule(s)
		if err != nil {
			if e, ok := err.(*Error); !ok || e.What == "" {
				t.Fatalf("%q: %v", s, err)
			}
			return
		}
		again, err := ParseRule(r.String())
		if err != nil || again.String() != r.String() {
			t.Fatalf("%q is read as %q, which is read as %q, %v", s, r, again, err)
		}
		if (r.Name == "") == !r.Prefix.IsValid() {
			t.Fatalf("%q: both or neither: %+v", s, r)
		}
	})
}
