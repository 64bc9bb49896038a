// Package fetch gets one document from the web: http and https, a bounded
// number of bytes in a bounded time, through a dialer that somebody else
// judges with.
//
// Every connection is a new one, made by the dialer with the name of the URL,
// so the rules see the first address and that of every redirect alike. What a
// page asks for beyond HTTP (refresh, scripts, frames) is not followed.
//
// All bounds hold against a peer that means harm: [Client.Time] over
// everything, [Client.Bytes] after decoding, header lines of 256 KiB including
// all interim answers, ten redirects. Only gzip and deflate are asked for and
// decoded, once.
package fetch

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tether-sandbox/tether/fault"
)

// The built-in limits.
const (
	DefaultBytes = 10 << 20
	DefaultTime  = 30 * time.Second

	maxHeader    = 256 << 10
	maxRedirects = 10
	maxRequest   = 1 << 20
)

// Client fetches. Its zero value dials nothing.
type Client struct {
	// Dial makes every connection; its errors with a code come back as they are.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Secret finds a secret in a text that is to be sent, and names it; nil
	// finds none.
	Secret func(text string) (name string, found bool)
	// TLS is used for https; nil is the system's. It is for tests.
	TLS *tls.Config
	// Agent is the User-Agent.
	Agent string
	// Bytes and Time bound one fetch; zero are the built-in ones.
	Bytes int64
	Time  time.Duration
}

// Request asks for one document.
type Request struct {
	URL string
	// Method is GET, HEAD or POST; empty is GET, or POST with a Body.
	Method string
	// Header goes to the host of URL only.
	Header map[string]string
	// Body is sent with POST.
	Body string
	// Raw leaves the body as it came, apart from its transfer and content
	// coding.
	Raw bool
}

// Response is what came.
type Response struct {
	// URL is the final address; Redirects are those before it.
	URL       string
	Redirects []string
	Status    int
	// Type is the media type, as declared or else by its first bytes.
	Type string
	// Size counts the bytes of the body, decoded.
	Size int64
	// Form says what Body is.
	Form Form
	// Body is UTF-8 unless Form is Raw or Binary.
	Body []byte
	// Charset is what a text was converted from.
	Charset string
	// Truncated: a page was so large that only its beginning was converted.
	Truncated bool
}

// Form is the form of a body.
type Form string

// The forms.
const (
	Raw      Form = "raw"      // as it came
	Text     Form = "text"     // a text, in UTF-8
	Markdown Form = "markdown" // made from HTML
	Binary   Form = "binary"   // not a text; as it came
)

// Do fetches. A status that tells of an error is a Response. An error is a
// *fault.Error: what Dial says, EGRESS_DENIED for a scheme or redirect that is
// not followed, EGRESS_SECRET, LIMIT_RESPONSE, LIMIT_TIME, FETCH_FAILED and
// USAGE_INVALID. When ctx ends, the error is that of ctx.
func (c *Client) Do(ctx context.Context, r Request) (*Response, error) {
	limit := c.Time
	if limit == 0 {
		limit = DefaultTime
	}
	tooLong := fault.New(fault.LimitTime, fmt.Sprintf("the fetch took longer than %v", limit))
	bounded, cancel := context.WithTimeoutCause(ctx, limit, tooLong)
	defer cancel()
	res, err := c.follow(bounded, r)
	switch {
	case err == nil:
		return res, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case bounded.Err() != nil:
		return nil, tooLong
	}
	return nil, coded(err)
}

// coded makes an error of the network one with a code.
func coded(err error) error {
	if e, ok := errors.AsType[*fault.Error](err); ok {
		return e
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err // the URL may be long, and is known
	}
	return fault.Wrap(fault.FetchFailed, "the request failed", err)
}

// follow sends the request and follows its redirects.
func (c *Client) follow(ctx context.Context, r Request) (*Response, error) {
	req, err := c.request(r)
	if err != nil {
		return nil, err
	}
	t := &http.Transport{
		DialContext:            c.Dial,
		TLSClientConfig:        c.TLS,
		DisableKeepAlives:      true, // no connection is used for what was not judged
		DisableCompression:     true, // see decode
		MaxResponseHeaderBytes: maxHeader,
	}
	if c.Dial == nil {
		t.DialContext = func(context.Context, string, string) (net.Conn, error) {
			return nil, fault.New(fault.EgressDenied, "nothing may be dialled")
		}
	}
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true)
	defer t.CloseIdleConnections()
	var seen []string
	for {
		if err := c.keepsSecrets(req); err != nil {
			return nil, err
		}
		resp, err := t.RoundTrip(req.WithContext(ctx))
		if err != nil {
			return nil, err
		}
		next, err := redirect(req, resp)
		if next == nil && err == nil {
			defer resp.Body.Close()
			res, err := c.read(ctx, resp, r.Raw)
			if err != nil {
				return nil, err
			}
			res.Redirects = seen
			return res, nil
		}
		resp.Body.Close()
		if err != nil {
			return nil, err
		}
		if seen = append(seen, req.URL.String()); len(seen) > maxRedirects {
			return nil, fault.New(fault.FetchFailed, fmt.Sprintf("there were more than %d redirects", maxRedirects))
		}
		req = next
	}
}

// request builds the first request.
func (c *Client) request(r Request) (*http.Request, error) {
	u, err := parseURL(r.URL)
	if err != nil {
		return nil, err
	}
	method := strings.ToUpper(r.Method)
	switch {
	case method == "" && r.Body != "":
		method = http.MethodPost
	case method == "":
		method = http.MethodGet
	case method != http.MethodGet && method != http.MethodHead && method != http.MethodPost:
		return nil, fault.New(fault.UsageInvalid, "the method is GET, HEAD or POST").WithHint("use a command, such as curl, for others")
	}
	if r.Body != "" && method != http.MethodPost {
		return nil, fault.New(fault.UsageInvalid, "a body goes with POST only").WithHint("--method POST")
	}
	if len(r.Body) > maxRequest {
		return nil, fault.New(fault.UsageInvalid, fmt.Sprintf("the body is longer than %d bytes", maxRequest))
	}
	req := newRequest(method, u, r.Body)
	for name, value := range r.Header {
		name = textproto.CanonicalMIMEHeaderKey(name)
		if slices.Contains(ownHeaders(), name) {
			return nil, fault.New(fault.UsageInvalid, "the header "+name+" is set by Tether").WithHint("leave it out")
		}
		if !goodHeader(name, value) {
			return nil, fault.New(fault.UsageInvalid, "a header is a name and one line of text").WithHint(`--header "Name: value"`)
		}
		req.Header.Set(name, value)
	}
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", c.Agent)
	}
	return req, nil
}

func newRequest(method string, u *url.URL, body string) *http.Request {
	req := &http.Request{Method: method, URL: u, Host: u.Host, Header: http.Header{}, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
	if body != "" {
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(body)), nil }
		req.Body, _ = req.GetBody()
		req.ContentLength = int64(len(body))
	}
	req.Header.Set("Accept", "text/markdown, text/html;q=0.9, text/plain;q=0.9, application/json;q=0.9, */*;q=0.8")
	req.Header.Set("Accept-Encoding", "gzip, deflate")
	return req
}

// ownHeaders frame the message, or say what we can decode.
func ownHeaders() []string {
	return []string{"Host", "Content-Length", "Transfer-Encoding", "Te", "Trailer", "Connection", "Keep-Alive", "Upgrade",
		"Proxy-Connection", "Accept-Encoding", "Expect"}
}

func goodHeader(name, value string) bool {
	for i := range len(name) {
		if c := name[i]; c <= ' ' || c >= 0x7f || strings.IndexByte(`"(),/:;<=>?@[\]{}`, c) >= 0 {
			return false
		}
	}
	return name != "" && !strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}

// keepsSecrets refuses a request that holds a secret anywhere.
func (c *Client) keepsSecrets(req *http.Request) error {
	if c.Secret == nil {
		return nil
	}
	type text struct{ where, what string }
	texts := []text{{"the address", req.URL.String()}}
	if plain, err := url.PathUnescape(texts[0].what); err == nil {
		texts = append(texts, text{"the address, decoded,", plain})
	}
	for _, name := range slices.Sorted(maps.Keys(req.Header)) {
		texts = append(texts, text{"the header " + name, strings.Join(req.Header[name], "\n")})
	}
	if req.GetBody != nil {
		body, _ := req.GetBody()
		var b bytes.Buffer
		_, _ = b.ReadFrom(body)
		texts = append(texts, text{"the body", b.String()})
	}
	for _, t := range texts {
		if name, found := c.Secret(t.what); found {
			return fault.New(fault.EgressSecret, t.where+" of a request to "+req.URL.Host+" holds a secret, "+name).
				WithHint("leave it out, or run a command that gets the variable: tether run --env NAME -- CMD")
		}
	}
	return nil
}
