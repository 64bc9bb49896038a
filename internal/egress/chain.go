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
	"strconv"
	"strings"
	"time"

	"github.com/tether-sandbox/tether/internal/host"
)

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
