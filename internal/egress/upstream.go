package egress

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/host"
	"github.com/tether-sandbox/tether/policy"
)

// Conn is a connection whose two halves can be closed one by one.
type Conn interface {
	net.Conn
	CloseWrite() error
}

// Upstream is a proxy of the caller's network through which public hosts are
// reached. The rules judge every connection before it is asked for anything; it
// resolves the names, so that the addresses of those are not judged here.
//
// Rules that open what is not public (an address, localhost) are dialled past
// it, and so is what the caller exempts by NO_PROXY: there addresses are judged
// as ever. The zero value, and a nil pointer, chain nothing.
type Upstream struct {
	web, rest *host.Proxy // for port 80, and for the other ports; nil is none
	exempt    []exemption
}

// exemption is one entry of NO_PROXY.
type exemption struct {
	all    bool
	prefix netip.Prefix
	name   string
	below  bool // only what lies below the name
	port   uint16
}

// UpstreamOf returns the proxies that a policy chains: none, one by its URL, or
// those that the caller's environment names in http_proxy (for port 80),
// https_proxy, all_proxy and no_proxy, in small letters or capitals. The error
// is POLICY_INVALID, and shows no credentials.
func UpstreamOf(n policy.Network, environ []string) (*Upstream, error) {
	if n.Upstream == "" || n.Mode != policy.Gated {
		return nil, nil
	}
	if n.Upstream != policy.UpstreamEnvironment {
		p, err := host.ParseProxy(n.Upstream)
		if err != nil {
			return nil, unreadable("upstream", err)
		}
		return &Upstream{web: &p, rest: &p}, nil
	}
	read := func(name string) (string, string) {
		for _, name := range []string{name, strings.ToUpper(name)} {
			for _, kv := range environ {
				if value, ok := strings.CutPrefix(kv, name+"="); ok && value != "" {
					return name, value
				}
			}
		}
		return "", ""
	}
	proxy := func(names ...string) (*host.Proxy, error) {
		for _, name := range names {
			name, value := read(name)
			if value == "" {
				continue
			}
			p, err := host.ParseProxy(value)
			if err != nil {
				return nil, unreadable("the variable "+name, err)
			}
			return &p, nil
		}
		return nil, nil
	}
	var u Upstream
	var err error
	if u.rest, err = proxy("https_proxy", "all_proxy"); err != nil {
		return nil, err
	}
	if u.web, err = proxy("http_proxy", "all_proxy"); err != nil {
		return nil, err
	}
	_, list := read("no_proxy")
	for _, s := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' }) {
		if e, ok := parseExemption(s); ok {
			u.exempt = append(u.exempt, e)
		}
	}
	return &u, nil
}

func unreadable(where string, err error) error {
	hint := ""
	if e, ok := err.(*host.Error); ok {
		hint = e.Hint
	}
	return fault.New(fault.PolicyInvalid, where+": "+err.Error()).WithHint(hint)
}

// parseExemption reads *, an address, a network, a name with what lies below it,
// or .name for that alone; all but networks may have a port. What it cannot read
// exempts nothing.
func parseExemption(s string) (e exemption, ok bool) {
	if s == "*" {
		return exemption{all: true}, true
	}
	if p, err := netip.ParsePrefix(s); err == nil {
		return exemption{prefix: p.Masked()}, true
	}
	s = strings.TrimPrefix(s, "*")
	if name, port, err := net.SplitHostPort(s); err == nil {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return e, false
		}
		s, e.port = name, uint16(n)
	}
	s, e.below = strings.CutPrefix(s, ".")
	h, err := host.Parse(s)
	if err != nil {
		return e, false
	}
	if e.name = h.Name; h.Addr.IsValid() {
		e.prefix = netip.PrefixFrom(h.Addr, h.Addr.BitLen())
	}
	return e, true
}

func (e exemption) holds(name string, addr netip.Addr, port uint16) bool {
	switch {
	case e.port != 0 && e.port != port:
		return false
	case e.all:
		return true
	case e.prefix.IsValid():
		return name == "" && e.prefix.Contains(addr)
	}
	return name != "" && (name == e.name && !e.below || host.Below(name, e.name))
}

// proxy returns the proxy for a host, nil for one that is dialled past it. Port
// 0 stands for one that is not known yet.
func (u *Upstream) proxy(name string, addr netip.Addr, port uint16) *host.Proxy {
	if u == nil || host.IsLocal(name) || host.IsMetadata(name) || name == "" && host.ClassOf(addr) != host.Public {
		return nil
	}
	for _, e := range u.exempt {
		if e.holds(name, addr, port) {
			return nil
		}
	}
	const http = 80
	if port == http || port == 0 && u.rest == nil {
		return u.web
	}
	return u.rest
}

// Chains says whether a host is reached through the proxy.
func (u *Upstream) Chains(name string, addr netip.Addr, port uint16) bool {
	return u.proxy(name, addr, port) != nil
}

// String names the proxies, without credentials; empty where there is none.
func (u *Upstream) String() string {
	switch {
	case u == nil || u.rest == nil && u.web == nil:
		return ""
	case u.rest == nil:
		return u.web.String()
	case u.web == nil || *u.web == *u.rest:
		return u.rest.String()
	}
	return u.rest.String() + " and " + u.web.String()
}

// AtProxy says whether a host that is reached through a proxy may be one of the
// proxies itself, as far as its port tells: whoever may speak to a proxy could ask
// it for what the rules refuse, and where a name leads only the proxy knows. Then
// nothing must be said there that a proxy would take for a question: no more than
// TLS, and requests of HTTP for a path.
//
// Blind says that such a proxy is itself spoken to by TLS, so that nobody sees
// what it is asked for.
func (u *Upstream) AtProxy(name string, addr netip.Addr, port uint16) (at, blind bool) {
	if !u.Chains(name, addr, port) {
		return false, false
	}
	for _, p := range []*host.Proxy{u.web, u.rest} {
		if p != nil && p.Port == port {
			at, blind = true, blind || p.TLS
		}
	}
	return at, blind
}

// itself says whether a host is one of the proxies, by its name, its address, or
// an address that both have as far as they are resolved here. See AtProxy for
// what leads there only where the proxy resolves it.
func (d *Dialer) itself(ctx context.Context, to host.Host, port uint16) bool {
	const patience = 2 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, p := range []*host.Proxy{d.Upstream.web, d.Upstream.rest} {
		if p == nil || p.Port != port {
			continue
		}
		if p.At == to {
			return true
		}
		theirs := d.addresses(ctx, p.At)
		if slices.ContainsFunc(d.addresses(ctx, to), func(a netip.Addr) bool { return slices.Contains(theirs, a) }) {
			return true
		}
	}
	return false
}

// beforeProxy judges what a proxy would be asked for by what is known here: a
// name, an address, and the hosts file, but no resolver. Direct says that it is
// an address of this host itself that a rule opens, which no proxy is asked for.
func (d *Dialer) beforeProxy(ctx context.Context, to host.Host, port uint16) (direct bool, err error) {
	if to.Name == "" {
		if err := d.judgeOwn("", to.Addr, port); err != nil {
			return false, err
		}
		if own, err := d.isOwn(to.Addr); own && err == nil {
			return true, nil
		}
	} else if v := d.Rules.DecideName(to.Name, port); !v.Allow {
		return false, d.refuse(Denial{Name: to.Name, Port: port, Proto: TCP, Verdict: v})
	}
	const https = 443 // refused there, a proxy at that port would close the web
	if _, blind := d.Upstream.AtProxy(to.Name, to.Addr, port); blind && port != https {
		return false, d.refuse(Denial{Name: to.Name, Addr: to.Addr, Port: port, Proto: TCP, Verdict: Verdict{Rule: "it may lead to the upstream proxy itself, whose port it is"}})
	}
	if to.Name == "" {
		return false, nil
	}
	known, _ := inFiles(ctx, "ip", to.Name)
	for _, a := range known {
		if err := d.judgeOwn(to.Name, a.Unmap(), port); err != nil {
			return false, err
		}
	}
	return false, nil
}

// addresses returns those that a host has, as far as can be found out here.
func (d *Dialer) addresses(ctx context.Context, h host.Host) []netip.Addr {
	if h.Addr.IsValid() {
		return []netip.Addr{h.Addr.Unmap()}
	}
	r := d.Resolver
	if r == nil {
		r = System{}
	}
	addrs, err := r.LookupNetIP(ctx, "ip", h.Name+".")
	if err != nil {
		return nil
	}
	for i, a := range addrs {
		addrs[i] = a.Unmap()
	}
	return addrs
}

// chain asks a proxy for a connection to a host that was judged.
func (d *Dialer) chain(ctx context.Context, p *host.Proxy, to host.Host, port uint16) (Conn, error) {
	failed := func(why string) error {
		x := Denial{Name: to.Name, Addr: to.Addr, Port: port, Proto: TCP, Verdict: Verdict{Rule: "the upstream proxy " + p.String() + " " + why}}
		return d.refuse(x)
	}
	c, err := d.reach(ctx, p)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, failed("cannot be reached: " + reason(err))
	}
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	status, err := ask(c, p, to.Join(port))
	if !stop() && err == nil {
		err = ctx.Err()
	}
	switch {
	case ctx.Err() != nil:
		err = ctx.Err()
	case err != nil:
		err = failed("does not answer as a proxy does: " + reason(err))
	case status/100 == 2:
		return c, nil
	case status == 407 && p.User == "":
		err = failed("wants credentials (407)")
	case status == 407:
		err = failed("does not take the credentials (407)")
	case status == 504:
		err = errUnanswered
	case status/100 == 5:
		err = errors.New("the upstream proxy does not reach it (" + strconv.Itoa(status) + ")")
	default:
		err = failed("refuses it (" + strconv.Itoa(status) + ")")
	}
	c.Close()
	return nil, err
}

// errUnanswered is for a host that does not answer the proxy.
var errUnanswered error = unanswered{}

type unanswered struct{}

func (unanswered) Error() string   { return "the host does not answer the upstream proxy" }
func (unanswered) Timeout() bool   { return true }
func (unanswered) Temporary() bool { return true }

// reason says what went wrong at a proxy, without the address of a resolver that
// was asked for it.
func reason(err error) string {
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		switch {
		case dns.IsNotFound:
			return "there is no such host"
		case dns.IsTimeout:
			return "no resolver answers"
		}
		return "its name cannot be resolved"
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err
	}
	return err.Error()
}

// reach connects to a proxy, which is the caller's own choice and not judged.
func (d *Dialer) reach(ctx context.Context, p *host.Proxy) (Conn, error) {
	addrs := []netip.Addr{p.At.Addr}
	if p.At.Name != "" {
		r := d.Resolver
		if r == nil {
			r = System{}
		}
		var err error
		if addrs, err = r.LookupNetIP(ctx, "ip", p.At.Name+"."); err != nil {
			return nil, err
		}
		if len(addrs) == 0 {
			return nil, errors.New("it has no address")
		}
		for i, a := range addrs {
			addrs[i] = a.Unmap()
		}
	}
	c, err := race(ctx, addrs, p.Port)
	if err != nil || !p.TLS {
		if err != nil {
			return nil, err
		}
		return c, nil
	}
	t := tls.Client(c, &tls.Config{ServerName: p.At.String(), NextProtos: []string{"http/1.1"}})
	if err := t.HandshakeContext(ctx); err != nil {
		c.Close()
		return nil, err
	}
	return t, nil
}

// mostAnswer bounds the head of a proxy's answer.
const mostAnswer = 16 << 10

// ask asks for a tunnel and returns the status of the answer. Nothing that comes
// after the answer's head is read.
func ask(c Conn, p *host.Proxy, target string) (status int, err error) {
	head := "CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\n"
	if p.User != "" || p.Password != "" {
		head += "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(p.User+":"+p.Password)) + "\r\n"
	}
	if _, err := io.WriteString(c, head+"\r\n"); err != nil {
		return 0, err
	}
	// A server may speak first, and what it says is the client's to read.
	return readStatus(bufio.NewReaderSize(oneByOne{c}, 16))
}

// oneByOne reads no byte before it is wanted.
type oneByOne struct{ io.Reader }

func (o oneByOne) Read(b []byte) (int, error) { return o.Reader.Read(b[:min(1, len(b))]) }

// readStatus reads the head of an answer up to its empty line.
func readStatus(r *bufio.Reader) (status int, err error) {
	var line []byte
	for n, first := 0, true; n < mostAnswer; n++ {
		b, err := r.ReadByte()
		switch {
		case err == io.EOF:
			return 0, io.ErrUnexpectedEOF
		case err != nil:
			return 0, err
		case b != '\n':
			line = append(line, b)
			continue
		}
		text := strings.TrimSuffix(string(line), "\r")
		line = line[:0]
		if first {
			first = false
			version, rest, _ := strings.Cut(text, " ")
			code, _, _ := strings.Cut(rest, " ")
			s, err := strconv.Atoi(code)
			if version != "HTTP/1.1" && version != "HTTP/1.0" || err != nil || len(code) != 3 || s < 200 {
				return 0, errors.New("its answer is no HTTP/1 answer")
			}
			status = s
		} else if text == "" {
			return status, nil
		}
	}
	return 0, errors.New("its answer is too long")
}
