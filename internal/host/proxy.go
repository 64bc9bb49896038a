package host

import (
	"net/url"
	"strconv"
	"strings"
)

// Proxy is an HTTP proxy.
type Proxy struct {
	// TLS says that the proxy itself is spoken to by TLS.
	TLS  bool
	At   Host
	Port uint16
	// User and Password are empty for a proxy that wants none.
	User, Password string
}

// String is the one spelling of p, without its credentials.
func (p Proxy) String() string {
	scheme := "http://"
	if p.TLS {
		scheme = "https://"
	}
	return scheme + p.At.Join(p.Port)
}

// ParseProxy reads a proxy as the variables of common programs hold one:
// http://USER:PASSWORD@HOST:PORT, or https://; without a scheme it is http, and
// without a port 80 or 443. The error, an *Error, shows nothing that may be a
// credential.
func ParseProxy(s string) (Proxy, error) {
	const hint = "write it like http://proxy.example:3128"
	var p Proxy
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok {
		scheme, rest = "http", s
	}
	p.Port = 80
	switch strings.ToLower(scheme) {
	case "http":
	case "https":
		p.TLS, p.Port = true, 443
	default:
		return Proxy{}, wrong("a proxy of the kind "+strconv.Quote(strings.ToLower(scheme))+" cannot be chained", "name one that speaks HTTP: http://proxy.example:3128")
	}
	rest = strings.TrimSuffix(rest, "/")
	if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		user, password, _ := strings.Cut(rest[:i], ":")
		var err, perr error
		p.User, err = url.PathUnescape(user)
		p.Password, perr = url.PathUnescape(password)
		if err != nil || perr != nil || strings.ContainsAny(p.User+p.Password, "\r\n\x00") {
			return Proxy{}, wrong("the credentials of the proxy cannot be read", "write special characters like %40")
		}
		rest = rest[i+1:]
	}
	bad := wrong("the address of the proxy cannot be read", hint)
	if strings.ContainsAny(rest, "/?#") {
		return Proxy{}, bad
	}
	name := rest
	if i := strings.LastIndexByte(rest, ':'); i > strings.LastIndexByte(rest, ']') {
		port, ok := parsePort(rest[i+1:])
		if !ok {
			return Proxy{}, bad
		}
		name, p.Port = rest[:i], port
	}
	var err error
	if p.At, err = Parse(name); err != nil {
		return Proxy{}, bad
	}
	return p, nil
}
