package fetch

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/host"
)

const maxURL = 8 << 10

// parseURL reads an absolute http or https URL. Its host comes back in the one
// spelling that is judged, dialled and sent.
func parseURL(s string) (*url.URL, error) {
	bad := func(why string) error {
		return fault.New(fault.UsageInvalid, "this is not an address that can be fetched: "+why).WithHint("tether fetch https://example.com/page")
	}
	if len(s) > maxURL {
		return nil, bad("it is longer than " + strconv.Itoa(maxURL) + " bytes")
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] == 0x7f || s[i] == '\\' {
			return nil, bad("it holds a blank, a control character or a backslash")
		}
	}
	u, err := url.Parse(s)
	if err != nil {
		return nil, bad("it cannot be parsed")
	}
	return u, checkURL(u, bad)
}

func checkURL(u *url.URL, bad func(string) error) error {
	switch {
	case u.Scheme == "":
		return bad("it does not begin with http:// or https://")
	case u.Scheme != "http" && u.Scheme != "https":
		return fault.New(fault.EgressDenied, "only http and https are fetched, not "+u.Scheme).WithHint("tether fetch https://example.com/page")
	case u.Opaque != "" || u.Host == "":
		return bad("it names no host")
	case u.User != nil:
		return bad("it holds a user name, which is easily taken for the host; send a header instead")
	}
	h, err := host.Parse(u.Hostname())
	if strings.HasPrefix(u.Host, "[") && err == nil && !h.Addr.IsValid() {
		return bad("what stands in brackets is no address")
	}
	if err != nil {
		e := fault.New(fault.EgressDenied, err.Error())
		if h, ok := err.(*host.Error); ok && h.Hint != "" {
			return e.WithHint(h.Hint)
		}
		return e
	}
	port := u.Port()
	if port == "" {
		u.Host = h.String()
		return nil
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return bad("its port is not a number between 1 and 65535")
	}
	u.Host = h.Join(uint16(n))
	return nil
}

// redirect returns the request that resp asks for instead of req, or nil where
// resp is the answer.
//
// Another origin gets none of the caller's headers, and no body. A step from
// https down to http is not followed.
func redirect(req *http.Request, resp *http.Response) (*http.Request, error) {
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return nil, nil
	}
	location := resp.Header.Get("Location")
	if location == "" {
		return nil, nil
	}
	bad := func(why string) error {
		return fault.New(fault.FetchFailed, "a redirect of "+req.URL.Host+" leads nowhere: "+why)
	}
	if len(location) > maxURL {
		return nil, bad("its address is too long")
	}
	ref, err := url.Parse(location)
	if err != nil {
		return nil, bad("its address cannot be parsed")
	}
	u := req.URL.ResolveReference(ref)
	if u.Fragment == "" {
		u.Fragment = req.URL.Fragment
	}
	if err := checkURL(u, bad); err != nil {
		return nil, err
	}
	if req.URL.Scheme == "https" && u.Scheme == "http" {
		return nil, fault.New(fault.EgressDenied, "a redirect leads from https to "+u.Scheme+"://"+u.Host+", where anybody on the way could answer").
			WithHint("fetch that address itself if it is meant")
	}
	method, body := req.Method, ""
	keep := resp.StatusCode == http.StatusTemporaryRedirect || resp.StatusCode == http.StatusPermanentRedirect
	same := u.Scheme == req.URL.Scheme && hostPort(u) == hostPort(req.URL)
	switch {
	case method == http.MethodPost && !keep:
		method = http.MethodGet
	case method == http.MethodPost && !same:
		return nil, fault.New(fault.EgressDenied, "a redirect asks to send the body to another host, "+u.Host).
			WithHint("send it there if it is meant")
	}
	next := newRequest(method, u, body)
	if req.GetBody != nil && keep {
		next.GetBody, next.ContentLength = req.GetBody, req.ContentLength
		if next.Body, err = req.GetBody(); err != nil {
			return nil, bad("its body is gone")
		}
	}
	if same {
		next.Header = req.Header.Clone()
		if method != req.Method {
			next.Header.Del("Content-Type")
		}
	} else if agent := req.Header.Get("User-Agent"); agent != "" {
		next.Header.Set("User-Agent", agent)
	}
	return next, nil
}

func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Hostname() + ":" + port
}
