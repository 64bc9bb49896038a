package gate

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/tether-sandbox/tether/internal/host"
)

// nameTTL is how long a client may keep the address of a name, which never
// changes within a session. Whether the name still leads anywhere may.
const nameTTL = 30

// typeSVCB and typeHTTPS are asked for by browsers beside addresses (RFC 9460).
const (
	typeSVCB  dnsmessage.Type = 64
	typeHTTPS dnsmessage.Type = 65
)

// answerDNS answers one question for a name; nil is no answer at all, for what is
// no question. A name that is not allowed does not exist.
func (g *Gate) answerDNS(ctx context.Context, query []byte) []byte {
	var p dnsmessage.Parser
	h, err := p.Start(query)
	if err != nil || h.Response {
		return nil
	}
	reply := dnsmessage.Header{ID: h.ID, Response: true, OpCode: h.OpCode, RecursionDesired: h.RecursionDesired, RecursionAvailable: true}
	q, err := p.Question()
	if err != nil {
		reply.RCode = dnsmessage.RCodeFormatError
		return pack(reply, nil, nil)
	}
	if _, err := p.Question(); !errors.Is(err, dnsmessage.ErrSectionDone) {
		reply.RCode = dnsmessage.RCodeFormatError
		return pack(reply, nil, nil)
	}
	if h.OpCode != 0 || q.Class != dnsmessage.ClassINET {
		reply.RCode = dnsmessage.RCodeNotImplemented
		return pack(reply, &q, nil)
	}
	var body dnsmessage.ResourceBody
	reply.RCode, body = g.resource(ctx, q)
	return pack(reply, &q, body)
}

func pack(h dnsmessage.Header, q *dnsmessage.Question, body dnsmessage.ResourceBody) []byte {
	m := dnsmessage.Message{Header: h}
	if q != nil {
		m.Questions = []dnsmessage.Question{*q}
	}
	if body != nil {
		m.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET, TTL: nameTTL}, Body: body}}
	}
	b, err := m.Pack()
	if err != nil {
		return nil
	}
	return b
}

func (g *Gate) resource(ctx context.Context, q dnsmessage.Question) (dnsmessage.RCode, dnsmessage.ResourceBody) {
	name := strings.TrimSuffix(q.Name.String(), ".")
	if q.Type == dnsmessage.TypePTR {
		return g.reverse(name)
	}
	parsed, err := host.Parse(name)
	if err != nil || parsed.Name == "" {
		return dnsmessage.RCodeNameError, nil
	}
	switch q.Type {
	case dnsmessage.TypeA, dnsmessage.TypeAAAA, typeSVCB, typeHTTPS:
	default:
		// Only addresses are resolved: what else a zone holds is not for the
		// rules to judge.
		return dnsmessage.RCodeNotImplemented, nil
	}
	four, six, err := g.families(ctx, parsed.Name)
	if err != nil {
		if dns, ok := errors.AsType[*net.DNSError](err); ok && !dns.IsNotFound || ctx.Err() != nil {
			return dnsmessage.RCodeServerFailure, nil
		}
		return dnsmessage.RCodeNameError, nil
	}
	v4, v6, ok := g.names.of(parsed.Name)
	if !ok {
		return dnsmessage.RCodeServerFailure, nil
	}
	if host.IsLocal(parsed.Name) { // the sandbox's own, where the ports that lead out are, too
		v4, v6 = netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()
	}
	switch {
	case four && q.Type == dnsmessage.TypeA:
		return dnsmessage.RCodeSuccess, &dnsmessage.AResource{A: v4.As4()}
	case six && q.Type == dnsmessage.TypeAAAA:
		return dnsmessage.RCodeSuccess, &dnsmessage.AAAAResource{AAAA: v6.As16()}
	}
	return dnsmessage.RCodeSuccess, nil
}

// families says which addresses a name gets.
func (g *Gate) families(ctx context.Context, name string) (four, six bool, err error) {
	if g.told != nil {
		if v := g.rules().MayResolve(name); !v.Allow && v.Remedy != "" {
			return true, false, nil
		}
	}
	return g.dialer().Families(ctx, name)
}

// reverse says which name one of our addresses stands for, and nothing of any
// other: the question would tell a resolver where the command goes.
func (g *Gate) reverse(name string) (dnsmessage.RCode, dnsmessage.ResourceBody) {
	labels, ok := strings.CutSuffix(strings.ToLower(name), ".in-addr.arpa")
	parts := strings.Split(labels, ".")
	if !ok || len(parts) != 4 {
		return dnsmessage.RCodeNameError, nil
	}
	var b [4]byte
	for i, p := range parts {
		v, err := strconv.ParseUint(p, 10, 8)
		if err != nil {
			return dnsmessage.RCodeNameError, nil
		}
		b[3-i] = byte(v)
	}
	known, _ := g.names.name(netip.AddrFrom4(b))
	n, err := dnsmessage.NewName(known + ".")
	if known == "" || err != nil {
		return dnsmessage.RCodeNameError, nil
	}
	return dnsmessage.RCodeSuccess, &dnsmessage.PTRResource{PTR: n}
}

// serveDNSTCP answers questions over a connection, one after the other.
func (g *Gate) serveDNSTCP(c *net.TCPConn) {
	defer g.drop(c)
	const patience = 30 * time.Second
	var size [2]byte
	for {
		_ = c.SetDeadline(time.Now().Add(patience))
		if _, err := io.ReadFull(c, size[:]); err != nil {
			return
		}
		query := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(c, query); err != nil {
			return
		}
		if !g.slot() {
			return
		}
		out := g.answerDNS(g.ctx, query)
		<-g.slots
		if out == nil {
			return
		}
		if _, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(out))), out...)); err != nil {
			return
		}
	}
}

// slot waits for its turn; false says that the gate is closed.
func (g *Gate) slot() bool {
	select {
	case g.slots <- struct{}{}:
		return true
	case <-g.ctx.Done():
		return false
	}
}
