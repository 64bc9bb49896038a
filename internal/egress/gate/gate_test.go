package gate

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/tether-sandbox/tether/internal/egress"
	"github.com/tether-sandbox/tether/policy"
)

func gateFor(t testing.TB, n policy.Network, names map[string]string) (*Gate, *book) {
	t.Helper()
	n.Mode = policy.Gated
	rules, err := egress.Compile(n)
	if err != nil {
		t.Fatal(err)
	}
	b := &book{names: names}
	g := New(Options{Rules: rules, Resolver: b, Secret: "secret"})
	t.Cleanup(g.Close)
	return g, b
}

// book is a resolver that keeps its questions.
type book struct {
	mu    sync.Mutex
	names map[string]string
	asked []string
}

func (b *book) LookupNetIP(_ context.Context, _, name string) ([]netip.Addr, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked = append(b.asked, name)
	var out []netip.Addr
	for _, a := range strings.Fields(b.names[name]) {
		out = append(out, netip.MustParseAddr(a))
	}
	if out == nil {
		return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
	}
	return out, nil
}

func question(t testing.TB, name string, kind dnsmessage.Type) []byte {
	t.Helper()
	m := dnsmessage.Message{Header: dnsmessage.Header{ID: 7, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name), Type: kind, Class: dnsmessage.ClassINET}}}
	b, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestAnswerDNS(t *testing.T) {
	g, b := gateFor(t, policy.Network{Public: true, Deny: []string{"denied.test"}},
		map[string]string{"ok.test.": "93.184.216.34", "six.test.": "2606:2800::1", "both.test.": "93.184.216.34 2606:2800::1"})
	ask := func(name string, kind dnsmessage.Type) (dnsmessage.RCode, string) {
		var m dnsmessage.Message
		if err := m.Unpack(g.answerDNS(t.Context(), question(t, name, kind))); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if m.ID != 7 || !m.Response || len(m.Questions) != 1 || m.Questions[0].Name.String() != name {
			t.Errorf("%s: not an answer to it: %+v", name, m)
		}
		if len(m.Answers) == 0 {
			return m.RCode, ""
		}
		switch r := m.Answers[0].Body.(type) {
		case *dnsmessage.AResource:
			return m.RCode, netip.AddrFrom4(r.A).String()
		case *dnsmessage.AAAAResource:
			return m.RCode, netip.AddrFrom16(r.AAAA).String()
		case *dnsmessage.PTRResource:
			return m.RCode, r.PTR.String()
		}
		return m.RCode, "?"
	}
	const A, AAAA, none, refused = dnsmessage.TypeA, dnsmessage.TypeAAAA, dnsmessage.RCodeNameError, dnsmessage.RCodeNotImplemented
	for _, tt := range []struct {
		name string
		kind dnsmessage.Type
		code dnsmessage.RCode
		want string
	}{
		{"ok.test.", A, 0, "198.18.1.0"}, {"OK.tEst.", A, 0, "198.18.1.0"}, {"ok.test.", AAAA, 0, ""}, {"six.test.", A, 0, ""},
		{"six.test.", AAAA, 0, "fd7e:7e74:6874:6573::1"}, {"both.test.", A, 0, "198.18.1.2"}, {"both.test.", AAAA, 0, "fd7e:7e74:6874:6573::2"},
		{"denied.test.", A, none, ""}, {"gone.test.", A, none, ""}, {"localhost.", A, none, ""}, {"metadata.google.internal.", A, none, ""},
		{"127.0.0.1.", A, none, ""}, {"ok.test.", dnsmessage.TypeTXT, refused, ""}, {"ok.test.", typeHTTPS, 0, ""},
		{"0.1.18.198.in-addr.arpa.", dnsmessage.TypePTR, 0, "ok.test."}, {"1.0.0.127.in-addr.arpa.", dnsmessage.TypePTR, none, ""},
		{"8.8.8.8.in-addr.arpa.", dnsmessage.TypePTR, none, ""},
	} {
		if code, got := ask(tt.name, tt.kind); code != tt.code || got != tt.want {
			t.Errorf("%s %v: got %v %s, want %v %s", tt.name, tt.kind, code, got, tt.code, tt.want)
		}
	}
	for _, name := range b.asked {
		if name != "ok.test." && name != "six.test." && name != "both.test." && name != "gone.test." {
			t.Errorf("%s was asked for", name)
		}
	}
	for i, name := range []string{"ok.test", "six.test", "both.test"} {
		v4, v6, _ := g.names.of(name)
		for _, a := range []netip.Addr{v4, v6} {
			if got, ours := g.names.name(a); got != name || !ours {
				t.Errorf("%d: %v stands for %q", i, a, got)
			}
		}
	}
	if name, ours := g.names.name(netip.MustParseAddr("198.18.200.1")); name != "" || !ours {
		t.Errorf("an address that no name has: %q %v", name, ours)
	}
	if _, ours := g.names.name(netip.MustParseAddr("198.20.0.1")); ours {
		t.Error("the range has no end")
	}
}

func FuzzAnswerDNS(f *testing.F) {
	g, _ := gateFor(f, policy.Network{Public: true}, map[string]string{"ok.test.": "93.184.216.34"})
	f.Add(question(f, "ok.test.", dnsmessage.TypeA))
	f.Add(question(f, "0.1.18.198.in-addr.arpa.", dnsmessage.TypePTR))
	f.Add([]byte{0, 7, 1, 0, 0, 2})
	f.Fuzz(func(t *testing.T, b []byte) {
		out := g.answerDNS(t.Context(), b)
		if out == nil {
			return
		}
		if len(b) < 12 || !bytes.Equal(out[:2], b[:2]) || out[2]&0x80 == 0 {
			t.Fatalf("%x is answered by %x", b, out)
		}
	})
}

// helloOf is the first message of a real client.
func helloOf(t testing.TB, name string) []byte {
	t.Helper()
	client, server := net.Pipe()
	defer client.Close()
	defer server.Close()
	go func() { _ = tls.Client(client, &tls.Config{ServerName: name, InsecureSkipVerify: true}).Handshake() }()
	b := make([]byte, 16<<10)
	n, err := server.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	return b[:n]
}

func TestHello(t *testing.T) {
	whole := helloOf(t, "name.test")
	for n := range len(whole) {
		if _, done, ok := readHello(whole[:n]); done || !ok {
			t.Fatalf("the first %d of %d bytes are enough", n, len(whole))
		}
	}
	if h, done, ok := readHello(whole); !done || !ok || h.name != "name.test" || h.encrypted {
		t.Errorf("got %+v %v %v", h, done, ok)
	}
	if h, done, ok := readHello(helloOf(t, "192.0.2.1")); !done || !ok || h.name != "" {
		t.Errorf("without a name: got %+v %v %v", h, done, ok)
	}
	// The same in two records.
	half := len(whole) / 2
	record := func(b []byte) []byte { return append([]byte{0x16, 3, 1, byte(len(b) >> 8), byte(len(b))}, b...) }
	split := append(record(whole[5:half]), record(whole[half:])...)
	if h, done, ok := readHello(split); !done || !ok || h.name != "name.test" {
		t.Errorf("in two records: got %+v %v %v", h, done, ok)
	}
	// A hidden name, by an extension of its own at the end.
	more := append(bytes.Clone(whole), 0xfe, 0x0d, 0, 0)
	grow := func(at, n int) {
		v := 0
		for _, c := range more[at : at+n] {
			v = v<<8 | int(c)
		}
		for i := range n {
			more[at+i] = byte((v + 4) >> (8 * (n - 1 - i)))
		}
	}
	grow(3, 2)
	grow(6, 3)
	at := 5 + 4 + 34
	at += 1 + int(more[at])
	at += 2 + int(binary.BigEndian.Uint16(more[at:]))
	at += 1 + int(more[at])
	grow(at, 2)
	if h, done, ok := readHello(more); !done || !ok || !h.encrypted || h.name != "name.test" {
		t.Errorf("with a hidden name: got %+v %v %v", h, done, ok)
	}
	for _, bad := range [][]byte{{0x17, 3, 1, 0, 1, 1}, {0x16, 3, 1, 0, 0}, {0x16, 3, 1, 0, 4, 2, 0, 0, 0}, {0x16, 3, 1, 0, 4, 1, 0xff, 0, 0}, {0x16, 3, 1, 0xff, 0xff}} {
		if _, done, ok := readHello(bad); !done || ok {
			t.Errorf("%x is a greeting", bad)
		}
	}
}

// TestJudgeHello: a name that is missing or hidden needs the policy's word, and
// one that can be read must be allowed whatever the policy says of those.
func TestJudgeHello(t *testing.T) {
	for _, tt := range []struct {
		h           hello
		good        bool
		listed, any bool // whether it passes
		remedy      string
	}{
		{hello{name: "a.test"}, true, true, true, ""},
		{hello{name: "B.test."}, true, true, true, ""},
		{hello{name: "evil.test"}, true, false, false, "--allow-host evil.test"},
		{hello{name: "10.0.0.5"}, true, false, false, "--allow-host 10.0.0.5"},
		{hello{}, true, false, true, anyName},
		{hello{encrypted: true}, true, false, true, anyName},
		{hello{name: "a.test", encrypted: true}, true, false, true, anyName},
		{hello{name: "front.test", encrypted: true}, true, false, true, anyName},
		{hello{name: "a b"}, true, false, false, noList},
		{hello{}, false, false, false, noList},
	} {
		for _, anySNI := range []bool{false, true} {
			g, _ := gateFor(t, policy.Network{Allow: []string{"a.test", "b.test"}, AnySNI: anySNI}, nil)
			err := (&inspector{gate: g, name: "a.test", port: 443, listed: true}).judgeHello(tt.h, tt.good)
			want := tt.listed && !anySNI || tt.any && anySNI
			if (err == nil) != want {
				t.Errorf("%+v, any %v: got %v, want %v", tt.h, anySNI, err, want)
			}
			if list, _ := g.Denials(); !want && (len(list) != 1 || list[0].Remedy != tt.remedy) {
				t.Errorf("%+v, any %v: denials %+v", tt.h, anySNI, list)
			}
		}
	}
}

func FuzzHello(f *testing.F) {
	f.Add(helloOf(f, "name.test"))
	f.Add([]byte{0x16, 3, 1, 0, 4, 1, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		if h, done, ok := readHello(b); h.name != "" && (!done || !ok) {
			t.Fatalf("a name of nothing: %+v", h)
		}
		_ = look(b)
	})
}

func TestLook(t *testing.T) {
	for s, want := range map[string]kind{"": unclear, "\x16": unclear, "\x16\x03": tlsKind, "\x16\x02": opaque, "GET ": httpKind, "GE": unclear, "get / ": unclear,
		"SSH-2.0-x": unclear, "SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n": opaque, "003egit-upload-pack /p.git\x00host=h\x00": opaque, " GET": unclear, "PRI * HTTP/2.0": httpKind,
		"\x00\x00\x00\x08": opaque, "*1\r\n$4\r\n": opaque, "PING\r\n": opaque, "l\x00\x0b": opaque, "@RSYNCD: 31.0\n": opaque, "AMQP\x00": opaque,
		// What some server takes for a request.
		"\r\n": unclear, "\r\nGET / HTTP/1.1\r\n": httpKind, "\nGET ": httpKind, " GET / HTTP/1.1\r\n": httpKind, "get / HTTP/1.1\r\n": httpKind, "get / HTTP/1.1\r": unclear,
		"X-Y / HTTP/1.1\n": httpKind, "GET\t/\thttp/1.1\n": httpKind, "ABCDEFGHIJKLMNOPQRSTUVWX / HTTP/1.1\r\n": httpKind,
		strings.Repeat("\r\n", mostHead): httpKind, strings.Repeat("a", mostHead+1): httpKind} {
		if got := look([]byte(s)); got != want {
			t.Errorf("%q: got %d, want %d", s, got, want)
		}
	}
}

// FuzzRequest compares with the parser of net/http: what we read, it reads as
// the same request, with one host and the same body.
func FuzzRequest(f *testing.F) {
	for _, s := range []string{"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "POST http://a/b HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nT: v\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
		"GET / HTTP/1.1\nHost: a\n\n", "GET / HTTP/1.1\r\nHost : a\r\n\r\n", "CONNECT a:1 HTTP/1.0\r\n\r\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bufio.NewReaderSize(bytes.NewReader(b), 16<<10)
		q, err := readRequest(r)
		if err != nil {
			return
		}
		h, port, herr := q.host()
		size, serr := q.body()
		if herr != nil || serr != nil {
			return
		}
		var ours bytes.Buffer
		if size.copy(&ours, r) != nil {
			return
		}
		again, err := http.ReadRequest(bufio.NewReader(io.MultiReader(bytes.NewReader(q.write(q.target)), &ours)))
		if err != nil {
			return // stricter than we are
		}
		if again.Method != q.method || len(again.Header.Values("Content-Length")) > 1 {
			t.Fatalf("%q: %s is read as %s", b, q.method, again.Method)
		}
		if strings.HasPrefix(q.target, "/") {
			other, p, err := authority(again.Host, 80)
			if err != nil || other != h || p != port {
				t.Fatalf("%q: host %v %d is read as %q", b, h, port, again.Host)
			}
		}
		_, err = io.Copy(io.Discard, again.Body)
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("%q: body: %v", b, err)
		}
	})
}

func TestFirst(t *testing.T) {
	src, dst := netip.MustParseAddrPort("198.18.0.2:40000"), netip.MustParseAddrPort("93.184.216.34:443")
	tcp := make([]byte, 24)
	binary.BigEndian.PutUint16(tcp, src.Port())
	binary.BigEndian.PutUint16(tcp[2:], dst.Port())
	binary.BigEndian.PutUint32(tcp[4:], 1000)
	tcp[12], tcp[13] = 6<<4, flagSYN
	f, ok := firstOf(src.Addr(), dst.Addr(), tcp)
	if !ok || f.flow != (flow{src, dst}) {
		t.Fatalf("got %+v %v", f, ok)
	}
	check := func(packet []byte) (netip.Addr, netip.Addr, []byte) {
		s, d, seg, ok := cut4(packet)
		if !ok {
			t.Fatalf("%x is no packet", packet)
		}
		pseudo := sum(sum(0, s.AsSlice()), d.AsSlice())
		pseudo = sum(pseudo, []byte{0, 6, 0, 0, 0, byte(len(seg))})
		if sum(pseudo, seg) != 0xffff {
			t.Errorf("%x: its checksum is wrong", packet)
		}
		return s, d, seg
	}
	if s, d, seg := check(again(f)); s != src.Addr() || d != dst.Addr() || !bytes.Equal(seg[:16], tcp[:16]) || seg[13] != flagSYN {
		t.Errorf("again: %v %v %x", s, d, seg)
	}
	s, d, seg := check(refusal(f))
	if s != dst.Addr() || d != src.Addr() || binary.BigEndian.Uint32(seg[8:]) != 1001 || seg[13] != flagRST|flagACK ||
		binary.BigEndian.Uint16(seg) != 443 || binary.BigEndian.Uint16(seg[2:]) != 40000 {
		t.Errorf("refusal: %v %v %x", s, d, seg)
	}
	for _, flags := range []byte{flagSYN | flagACK, flagACK, flagRST, flagSYN | flagRST, flagSYN | flagFIN, 0} {
		tcp[13] = flags
		if _, ok := firstOf(src.Addr(), dst.Addr(), tcp); ok {
			t.Errorf("flags %x are a first packet", flags)
		}
	}
	six := netip.MustParseAddr("fd7e::2")
	tcp[13] = flagSYN
	f6, _ := firstOf(six, netip.MustParseAddr("2606:2800::1"), tcp)
	if p := again(f6); len(p) != ip6Header+len(tcp) || p[0]>>4 != 6 || p[6] != 6 {
		t.Errorf("IPv6: %x", p)
	}
}

func FuzzFirst(f *testing.F) {
	f.Add(append([]byte{0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8}, make([]byte, 20)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		src, dst, payload, ok := cut4(b)
		if !ok {
			return
		}
		if f, ok := firstOf(src, dst, payload); ok {
			for _, p := range [][]byte{again(f), refusal(f)} {
				if _, _, _, ok := cut4(p); !ok {
					t.Fatalf("%x makes %x", b, p)
				}
			}
		}
		if m := prohibited4(b); sum(0, m) != 0xffff {
			t.Fatalf("%x: wrong checksum", m)
		}
	})
}

// TestDenialsAreBounded: each once, and no more than are kept.
func TestDenialsAreBounded(t *testing.T) {
	g, _ := gateFor(t, policy.Network{Public: true}, nil)
	for i := range 3 * mostDenials {
		_ = g.refused("", netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), 80, egress.TCP)
		_ = g.refused("", netip.MustParseAddr("10.9.9.9"), 80, egress.TCP)
	}
	list, more := g.Denials()
	if len(list) != mostDenials || more != 2*mostDenials+1 || list[1].Times != 3*mostDenials {
		t.Errorf("got %d and %d more; the repeated one %d times", len(list), more, list[1].Times)
	}
}

// TestRule: rules that are put in force hold for what is asked from then on, and a
// name that a rule could allow is resolved only then.
func TestRule(t *testing.T) {
	listed := func(hosts ...string) *egress.Rules {
		r, err := egress.Compile(policy.Network{Mode: policy.Gated, Allow: hosts, Deny: []string{"never.test"}})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	b := &book{names: map[string]string{"a.test.": "93.184.216.34", "b.test.": "93.184.216.34", "never.test.": "93.184.216.34"}}
	var told []egress.Denial
	g := New(Options{Rules: listed("a.test"), Resolver: b, Denied: func(d egress.Denial) { told = append(told, d) }})
	defer g.Close()
	if g.Listens(443) {
		t.Error("it listens before it serves")
	}
	ask := func(name string) dnsmessage.RCode {
		var m dnsmessage.Message
		if err := m.Unpack(g.answerDNS(t.Context(), question(t, name, dnsmessage.TypeA))); err != nil {
			t.Fatal(err)
		}
		return m.RCode
	}
	for name, want := range map[string]dnsmessage.RCode{"a.test.": 0, "b.test.": 0, "never.test.": dnsmessage.RCodeNameError} {
		if got := ask(name); got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
	if len(b.asked) != 1 || b.asked[0] != "a.test." {
		t.Errorf("resolved %q", b.asked)
	}
	if len(told) != 1 || told[0].Name != "never.test" {
		t.Errorf("told of %v", told)
	}
	judge := func() bool {
		_, err := g.dialer().Judge(t.Context(), "b.test", netip.Addr{}, 443)
		return err == nil
	}
	if judge() || len(told) != 2 || told[1].Port != 443 {
		t.Errorf("b.test is allowed too early, or nobody was told: %v", told)
	}
	g.Rule(listed("a.test", "b.test"))
	if !judge() {
		t.Error("b.test is not allowed by the new rules")
	}
}
