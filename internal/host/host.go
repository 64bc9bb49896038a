// Package host holds the one spelling of host names, addresses and the rules
// about them, and says of an address what kind it is. It is pure: nothing is
// looked up.
//
// A name is judged in the form in which it is dialled: lower-case ASCII, one
// trailing dot cut off, other letters mapped and encoded as UTS 46 has it. Two
// names that look alike are two names.
package host

import (
	"errors"
	"net/netip"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// Error says what is wrong with a host or a rule, and how it is spelled right.
type Error struct{ What, Hint string }

func (e *Error) Error() string { return e.What }

func wrong(what, hint string) error { return &Error{what, hint} }

// Host is a name or an address: exactly one of the two is set.
type Host struct {
	Name string
	Addr netip.Addr
}

// String is the one spelling of h, without brackets.
func (h Host) String() string {
	if h.Addr.IsValid() {
		return h.Addr.String()
	}
	return h.Name
}

// Join returns host:port as it is typed.
func (h Host) Join(port uint16) string {
	return bracket(h.String()) + ":" + strconv.Itoa(int(port))
}

func bracket(s string) string {
	if strings.Contains(s, ":") {
		return "[" + s + "]"
	}
	return s
}

// Parse reads a host as people and URLs write it: a name, an IPv4 address in
// four decimal parts, or an IPv6 address with or without brackets. An IPv4
// address in IPv6 clothes (::ffff:127.0.0.1) is that IPv4 address. Refused are
// the old number forms (2130706433, 0x7f.1, 127.1), which some resolvers take
// for addresses, and zones (fe80::1%eth0), which name an interface.
//
// The error is an *Error.
func Parse(s string) (Host, error) { return parse(s, true) }

func parse(s string, mapped bool) (Host, error) {
	if strings.HasPrefix(s, "[") || strings.Contains(s, ":") {
		return parse6(s)
	}
	bare := strings.TrimSuffix(s, ".")
	if a, err := netip.ParseAddr(bare); err == nil {
		return Host{Addr: a}, nil
	}
	name, err := normal(bare)
	if err != nil {
		return Host{}, err
	}
	if name != bare && mapped {
		return parse(name, false) // full-width digits make an address, too
	}
	if looksNumeric(name) {
		hint := "write a host name, or an address such as 192.0.2.1"
		if a, ok := numeric(name); ok {
			hint = "write it as " + a.String()
		}
		return Host{}, wrong(strconv.Quote(s)+" is neither a host name nor an address in its usual form", hint)
	}
	return Host{Name: name}, nil
}

func parse6(s string) (Host, error) {
	const hint = "write it like [2001:db8::1]"
	inner, open := strings.CutPrefix(s, "[")
	if open {
		var closed bool
		if inner, closed = strings.CutSuffix(inner, "]"); !closed {
			return Host{}, wrong(strconv.Quote(s)+" has no closing bracket", hint)
		}
	}
	a, err := netip.ParseAddr(inner)
	if err != nil || !a.Is6() {
		return Host{}, wrong(strconv.Quote(s)+" is not an IPv6 address", hint)
	}
	if a.Zone() != "" {
		return Host{}, wrong(strconv.Quote(s)+" names an interface by its zone", "leave out %"+a.Zone())
	}
	return Host{Addr: a.Unmap()}, nil
}

// normal returns the form of a name in which it is dialled.
func normal(s string) (string, error) {
	ascii := true
	for i := range len(s) {
		ascii = ascii && s[i] < 0x80
	}
	if !ascii {
		mapped, err := idna.Lookup.ToASCII(s)
		if err == nil && !utf8.ValidString(s) {
			err = errors.New("it is not UTF-8")
		}
		if err != nil {
			return "", wrong(strconv.Quote(s)+" is not a host name: "+strings.TrimPrefix(err.Error(), "idna: "), "")
		}
		s = mapped
	}
	s = strings.ToLower(s) // ASCII by now
	const longest = 253    // RFC 1035, in text
	if s == "" || len(s) > longest {
		return "", wrong(strconv.Quote(s)+" is not a host name: it has no letters, or more than 253", "")
	}
	for label := range strings.SplitSeq(s, ".") {
		if !goodLabel(label) {
			return "", wrong(strconv.Quote(s)+" is not a host name", spelledRight(s))
		}
	}
	return s, nil
}

// goodLabel takes the underscore, too, which is in use.
func goodLabel(l string) bool {
	if l == "" || len(l) > 63 || l[0] == '-' || l[len(l)-1] == '-' {
		return false
	}
	for i := range len(l) {
		c := l[i]
		if !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_') {
			return false
		}
	}
	return true
}

// looksNumeric says whether a name ends in a number, so that a URL parser or
// inet_aton takes it for an address (WHATWG URL, "ends in a number").
func looksNumeric(name string) bool {
	last := name[strings.LastIndexByte(name, '.')+1:]
	if _, err := strconv.ParseUint(last, 10, 64); err == nil || strings.Trim(last, "0123456789") == "" {
		return true
	}
	hex, ok := strings.CutPrefix(last, "0x")
	return ok && strings.Trim(hex, "0123456789abcdef") == ""
}

// numeric reads what inet_aton(3) reads.
func numeric(s string) (netip.Addr, bool) {
	parts := strings.Split(s, ".")
	if len(parts) > 4 {
		return netip.Addr{}, false
	}
	var v uint64
	for i, p := range parts {
		if strings.Contains(p, "_") {
			return netip.Addr{}, false
		}
		base := 10
		if hex, ok := strings.CutPrefix(p, "0x"); ok {
			p, base = "0"+hex, 16
		} else if len(p) > 1 && p[0] == '0' {
			base = 8
		}
		n, err := strconv.ParseUint(p, base, 32)
		width := 8
		if i == len(parts)-1 {
			width = 8 * (5 - len(parts))
		}
		if err != nil || n >= 1<<width {
			return netip.Addr{}, false
		}
		v = v<<width | n
	}
	return netip.AddrFrom4([4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)}), true
}

// spelledRight guesses what was meant by something with more than a host in it.
func spelledRight(s string) string {
	guess := strings.TrimSpace(s)
	if _, rest, ok := strings.Cut(guess, "://"); ok {
		guess = rest
	}
	guess, _, _ = strings.Cut(guess, "/")
	if i := strings.LastIndexByte(guess, '@'); i >= 0 {
		guess = guess[i+1:]
	}
	guess = strings.Trim(guess, ".")
	if guess == s || guess == "" {
		return ""
	}
	if h, err := parse(guess, true); err == nil {
		return "write it as " + h.String()
	}
	return ""
}

// Below says whether name lies below the domain, by whole labels.
func Below(name, domain string) bool {
	return len(name) > len(domain)+1 && name[len(name)-len(domain)-1] == '.' && strings.HasSuffix(name, domain)
}

// IsLocal says whether a name means the loopback of whoever resolves it
// (RFC 6761, and what /etc/hosts usually holds).
func IsLocal(name string) bool {
	switch name {
	case "localhost", "localhost.localdomain", "localhost6", "localhost6.localdomain6", "ip6-localhost", "ip6-loopback":
		return true
	}
	return Below(name, "localhost")
}

// IsMetadata says whether a name is one under which a cloud hands credentials to
// its machines.
func IsMetadata(name string) bool {
	switch name {
	case "metadata", "metadata.google.internal", "metadata.goog", // Google
		"instance-data", "instance-data.ec2.internal", // Amazon
		"metadata.azure.internal", "metadata.tencentyun.com", "api.metadata.cloud.ibm.com",
		"metadata.packet.net", "metadata.platformequinix.com", "rancher-metadata":
		return true
	}
	return false
}
