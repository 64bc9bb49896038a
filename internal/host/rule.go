package host

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Rule names hosts and ports. Exactly one of Name and Prefix is set.
type Rule struct {
	// Name is a name; with Wild it stands for every name below it, and not for
	// itself.
	Name string
	Wild bool
	// Prefix is an address or a network.
	Prefix netip.Prefix
	// Ports are in order and do not touch; nil means that none was named.
	Ports []Span
}

// Span is the ports from First to Last.
type Span struct{ First, Last uint16 }

// MaxPorts is how many ports one rule names at most.
const MaxPorts = 64

// ParseRule reads a rule: a name, *.name, an address or a network in CIDR form,
// and after a colon the ports, such as 443, 80,443 or 3000-3010. An IPv6 address
// or network with ports stands in brackets.
//
// The error is an *Error. What could match nothing, everything, or something
// else than it seems to is refused.
func ParseRule(s string) (Rule, error) {
	const hint = "write it like example.com, *.example.com:8443 or 192.0.2.0/24:443"
	if s == "" || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		if right := spelledRight(s); right != "" {
			return Rule{}, wrong("the rule "+strconv.Quote(s)+" has blanks in it", right)
		}
		return Rule{}, wrong("the rule "+strconv.Quote(s)+" names no host", hint)
	}
	if first, _, many := strings.Cut(s, ","); many && strings.ContainsAny(s[len(first):], ".*") && !strings.ContainsAny(s[len(first):], "[]") {
		return Rule{}, wrong("the rule "+strconv.Quote(s)+" is about more than one host", "write a rule for each of them, such as "+first)
	}
	if strings.Contains(s, "://") {
		right := spelledRight(s)
		if right == "" {
			right = hint
		}
		return Rule{}, wrong("the rule "+strconv.Quote(s)+" is a URL, and paths and schemes are not looked at", right)
	}
	if _, ok := parsePorts(strings.TrimPrefix(s, ":")); ok {
		return Rule{}, wrong("the rule "+strconv.Quote(s)+" has a port and no host", "write it like localhost:"+strings.TrimPrefix(s, ":"))
	}
	subject, ports, err := cutPorts(s)
	if err != nil {
		return Rule{}, err
	}
	r := Rule{Ports: ports}
	bare := strings.TrimSuffix(strings.TrimPrefix(subject, "["), "]")
	if address, length, ok := strings.Cut(bare, "/"); ok {
		r.Prefix, err = parsePrefix(s, address, length)
		return r, err
	}
	if strings.Contains(subject, "*") {
		return wildRule(r, s, subject)
	}
	h, err := Parse(subject)
	if err != nil {
		if e, ok := err.(*Error); ok && e.Hint == "" {
			e.Hint = hint
		}
		return Rule{}, err
	}
	if r.Name = h.Name; h.Addr.IsValid() {
		r.Prefix = netip.PrefixFrom(h.Addr, h.Addr.BitLen())
	}
	return r, nil
}

func wildRule(r Rule, s, subject string) (Rule, error) {
	if strings.Trim(subject, "*.") == "" {
		return Rule{}, wrong("the rule "+strconv.Quote(s)+" would match every host", "leave it out: --network gated reaches public hosts, --no-network none")
	}
	name, ok := strings.CutPrefix(subject, "*.")
	if !ok || strings.Contains(name, "*") {
		return Rule{}, wrong("in the rule "+strconv.Quote(s)+" the * does not stand for whole labels at the front", "write it like *.example.com")
	}
	h, err := Parse(name)
	if err != nil {
		return Rule{}, err
	}
	if h.Name == "" {
		return Rule{}, wrong("in the rule "+strconv.Quote(s)+" a * stands before an address", "write the network in CIDR form, such as 192.0.2.0/24")
	}
	r.Name, r.Wild = h.Name, true
	return r, nil
}

// cutPorts splits a rule into what it is about and its ports.
func cutPorts(s string) (subject string, ports []Span, err error) {
	i := strings.LastIndexByte(s, ':')
	switch {
	case strings.HasPrefix(s, "["):
		end := strings.IndexByte(s, ']')
		if end < 0 || end+1 < len(s) && s[end+1] != ':' {
			return "", nil, wrong("the rule "+strconv.Quote(s)+" has no closing bracket in the right place", "write it like [2001:db8::1]:443")
		}
		if end+1 == len(s) {
			return s, nil, nil
		}
		i = end + 1
	case i < 0, strings.IndexByte(s, ':') != i: // none, or an IPv6 address
		return s, nil, nil
	}
	ports, ok := parsePorts(s[i+1:])
	if !ok {
		return "", nil, wrong("the rule "+strconv.Quote(s)+" has no good port after its colon",
			"write ports like "+s[:i]+":443, :80,443 or :3000-3010, at most "+strconv.Itoa(MaxPorts)+" of them")
	}
	return s[:i], ports, nil
}

func parsePorts(s string) ([]Span, bool) {
	var list []Span
	total := 0
	for part := range strings.SplitSeq(s, ",") {
		first, last, ranged := strings.Cut(part, "-")
		a, ok := parsePort(first)
		b := a
		if ranged {
			var ok2 bool
			b, ok2 = parsePort(last)
			ok = ok && ok2
		}
		if !ok || b < a {
			return nil, false
		}
		if total += int(b-a) + 1; total > MaxPorts {
			return nil, false
		}
		list = append(list, Span{a, b})
	}
	slices.SortFunc(list, func(x, y Span) int { return int(x.First) - int(y.First) })
	out := list[:1]
	for _, p := range list[1:] {
		last := &out[len(out)-1]
		if int(p.First) <= int(last.Last)+1 {
			last.Last = max(last.Last, p.Last)
			continue
		}
		out = append(out, p)
	}
	return out, true
}

func parsePort(s string) (uint16, bool) {
	if s == "" || len(s) > 5 || s[0] == '0' || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseUint(s, 10, 16)
	return uint16(n), err == nil
}

func parsePrefix(s, address, length string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(address + "/" + length)
	if err != nil {
		if _, aerr := netip.ParseAddr(address); aerr == nil && length != "" {
			return netip.Prefix{}, wrong("the rule "+strconv.Quote(s)+" is not a network", "write it like 192.0.2.0/24 or [2001:db8::/32]:443")
		}
		if right := spelledRight(s); right != "" {
			return netip.Prefix{}, wrong("the rule "+strconv.Quote(s)+" has a path, and paths are not looked at", right)
		}
		return netip.Prefix{}, wrong("the rule "+strconv.Quote(s)+" is not a network", "write it like 192.0.2.0/24 or [2001:db8::/32]:443")
	}
	if p.Addr().Is4In6() {
		return netip.Prefix{}, wrong("the rule "+strconv.Quote(s)+" is an IPv4 network in IPv6 clothes", "write it like 192.0.2.0/24")
	}
	if m := p.Masked(); m != p {
		return netip.Prefix{}, wrong("the network "+strconv.Quote(p.String())+" has bits behind its length", "write "+m.String()+", or the address "+p.Addr().String())
	}
	return p, nil
}

// String is the one spelling of r: ParseRule reads it as r again.
func (r Rule) String() string {
	var subject string
	switch {
	case r.Prefix.IsValid() && r.Prefix.IsSingleIP():
		subject = r.Prefix.Addr().String()
	case r.Prefix.IsValid():
		subject = r.Prefix.String()
	case r.Wild:
		subject = "*." + r.Name
	default:
		subject = r.Name
	}
	if len(r.Ports) == 0 {
		return subject
	}
	b := []byte(bracket(subject) + ":")
	for i, p := range r.Ports {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendUint(b, uint64(p.First), 10)
		if p.Last != p.First {
			b = strconv.AppendUint(append(b, '-'), uint64(p.Last), 10)
		}
	}
	return string(b)
}

// MatchName says whether r names a name, which must be in its one spelling.
func (r Rule) MatchName(name string) bool {
	if r.Name == "" || name == "" {
		return false
	}
	if r.Wild {
		return Below(name, r.Name)
	}
	return name == r.Name
}

// MatchAddr says whether r names an address.
func (r Rule) MatchAddr(a netip.Addr) bool {
	return r.Prefix.IsValid() && r.Prefix.Contains(a.Unmap())
}

// Exact says whether r names one name or one address.
func (r Rule) Exact() bool {
	return r.Name != "" && !r.Wild || r.Prefix.IsValid() && r.Prefix.IsSingleIP()
}

// MatchPort says whether r names a port; none is what a rule without ports means.
func (r Rule) MatchPort(port uint16, none func(uint16) bool) bool {
	if len(r.Ports) == 0 {
		return none(port)
	}
	return slices.ContainsFunc(r.Ports, func(s Span) bool { return s.First <= port && port <= s.Last })
}
