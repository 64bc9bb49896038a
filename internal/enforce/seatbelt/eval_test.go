package seatbelt_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// This is an evaluator of profiles, written from the public descriptions of the
// language and for tests alone. It knows the operations and filters that the
// profiles use and refuses all others, so that a slip of the pen is an error.

// node is an atom, a string or a list.
type node struct {
	atom, str string
	isString  bool
	list      []node
}

// profile is a parsed profile.
type profile []rule

type rule struct {
	allow   bool
	ops     []string
	filters []node
}

// query is one thing that a process asks for.
type query struct {
	op string
	// name is a path, the name of a service, a setting or a shared object, or
	// the port on the loopback or "ADDRESS:PORT".
	name string
	// target is self, same-sandbox or others.
	target string
	// own says that the terminal was opened inside.
	own bool
}

var operations = []string{"default", "process-fork", "process-exec", "process-info-pidinfo", "signal",
	"file-read-data", "file-read-metadata", "file-read-xattr", "file-write-data", "file-write-create", "file-write-unlink",
	"file-write-mode", "file-write-owner", "file-write-xattr", "file-write-flags", "file-write-times", "file-link", "file-clone",
	"file-map-executable", "file-ioctl", "pseudo-tty", "mach-lookup", "mach-register", "sysctl-read", "sysctl-write",
	"ipc-posix-shm-read-data", "ipc-posix-shm-write-create", "ipc-posix-shm-write-data", "ipc-posix-shm-write-unlink",
	"ipc-posix-sem", "network-outbound", "network-inbound", "network-bind", "system-socket", "appleevent-send", "lsopen",
	"user-preference-read", "user-preference-write", "iokit-open", "job-creation"}

var families = []string{"file-write*", "file-read*", "process-exec*", "process-info*"}

func parseProfile(text string) (profile, error) {
	p := &reader{s: text}
	var out profile
	for {
		p.space()
		if p.at == len(p.s) {
			break
		}
		n, err := p.node()
		if err != nil {
			return nil, err
		}
		if len(n.list) < 2 {
			return nil, fmt.Errorf("no form: %+v", n)
		}
		switch head := n.list[0].atom; head {
		case "version":
			if len(out) != 0 || n.list[1].atom != "1" {
				return nil, fmt.Errorf("version")
			}
		case "allow", "deny":
			r := rule{allow: head == "allow"}
			for _, a := range n.list[1:] {
				switch {
				case a.atom != "" && len(r.filters) == 0:
					if !slices.Contains(operations, a.atom) && !slices.Contains(families, a.atom) {
						return nil, fmt.Errorf("unknown operation %q", a.atom)
					}
					r.ops = append(r.ops, a.atom)
				case a.list != nil:
					if _, err := match(a, query{}); err != nil {
						return nil, err
					}
					r.filters = append(r.filters, a)
				default:
					return nil, fmt.Errorf("misplaced %+v", a)
				}
			}
			if len(r.ops) == 0 {
				return nil, fmt.Errorf("a rule without operations")
			}
			out = append(out, r)
		default:
			return nil, fmt.Errorf("unknown form %q", head)
		}
	}
	if len(out) == 0 || out[0].allow || !slices.Equal(out[0].ops, []string{"default"}) {
		return nil, fmt.Errorf("the default is not denial")
	}
	return out, nil
}

type reader struct {
	s  string
	at int
}

func (r *reader) space() {
	for r.at < len(r.s) {
		switch c := r.s[r.at]; {
		case c == ';':
			for r.at < len(r.s) && r.s[r.at] != '\n' {
				r.at++
			}
		case c == ' ' || c == '\n' || c == '\t' || c == '\r':
			r.at++
		default:
			return
		}
	}
}

func (r *reader) node() (node, error) {
	r.space()
	if r.at == len(r.s) {
		return node{}, fmt.Errorf("it ends early")
	}
	switch c := r.s[r.at]; {
	case c == '(':
		r.at++
		n := node{list: []node{}}
		for {
			r.space()
			if r.at == len(r.s) {
				return n, fmt.Errorf("a list without an end")
			}
			if r.s[r.at] == ')' {
				r.at++
				return n, nil
			}
			m, err := r.node()
			if err != nil {
				return n, err
			}
			n.list = append(n.list, m)
		}
	case c == ')':
		return node{}, fmt.Errorf("a list without a beginning")
	case c == '"':
		return r.str(true)
	case c == '#' && strings.HasPrefix(r.s[r.at:], `#"`):
		r.at++
		return r.str(false)
	}
	from := r.at
	for r.at < len(r.s) && !strings.ContainsRune(" \n\t\r();\"", rune(r.s[r.at])) {
		r.at++
	}
	return node{atom: r.s[from:r.at]}, nil
}

// str reads a string. In a plain one a backslash gives the usual letters their
// meaning and takes it from all else; a regular expression keeps it.
func (r *reader) str(escapes bool) (node, error) {
	var b strings.Builder
	for r.at++; r.at < len(r.s); r.at++ {
		switch c := r.s[r.at]; {
		case c == '"':
			r.at++
			return node{str: b.String(), isString: true}, nil
		case c == '\\' && escapes:
			if r.at++; r.at == len(r.s) {
				return node{}, fmt.Errorf("a string without an end")
			}
			switch c := r.s[r.at]; c {
			case 'n':
				b.WriteByte('\n')
			case 't':
				b.WriteByte('\t')
			case 'r':
				b.WriteByte('\r')
			case '"', '\\':
				b.WriteByte(c)
			default:
				return node{}, fmt.Errorf("an escape that nobody should need: %q", c)
			}
		default:
			b.WriteByte(c)
		}
	}
	return node{}, fmt.Errorf("a string without an end")
}

// match says whether a filter takes a query.
func match(n node, q query) (bool, error) {
	if len(n.list) < 2 {
		return false, fmt.Errorf("no filter: %+v", n)
	}
	head, args := n.list[0].atom, n.list[1:]
	arg := func() string { return args[0].str }
	quoted := len(args) == 1 && args[0].isString
	switch head {
	case "require-all", "require-any":
		all := true
		any := false
		for _, a := range args {
			ok, err := match(a, q)
			if err != nil {
				return false, err
			}
			all, any = all && ok, any || ok
		}
		return head == "require-all" && all || head == "require-any" && any, nil
	case "require-not":
		ok, err := match(args[0], q)
		return !ok, err
	case "literal", "path-literal", "global-name", "sysctl-name", "ipc-posix-name":
		if quoted {
			return q.name == arg(), nil
		}
	case "subpath":
		if quoted {
			return q.name == arg() || strings.HasPrefix(q.name, strings.TrimSuffix(arg(), "/")+"/"), nil
		}
	case "sysctl-name-prefix":
		if quoted {
			return strings.HasPrefix(q.name, arg()), nil
		}
	case "regex", "ipc-posix-name-regex":
		if quoted {
			re, err := regexp.Compile(arg())
			return err == nil && re.MatchString(q.name), err
		}
	case "extension":
		if quoted && arg() == "com.apple.sandbox.pty" {
			return q.own, nil
		}
	case "target":
		if args[0].atom == "same-sandbox" {
			return q.target == "self" || q.target == "same-sandbox", nil
		}
	case "socket-domain":
		return q.name == args[0].atom, nil
	case "remote", "local":
		if len(args) == 2 && args[0].atom == "ip" && args[1].isString {
			at := args[1].str
			host, port, ok := strings.Cut(q.name, ":")
			wantHost, wantPort, _ := strings.Cut(at, ":")
			return ok && !strings.HasPrefix(q.name, "/") && (wantHost == "*" || wantHost == host) && (wantPort == "*" || wantPort == port), nil
		}
		if len(args) == 2 && args[0].atom == "unix-socket" {
			ok, err := match(args[1], q)
			return ok && strings.HasPrefix(q.name, "/"), err
		}
	}
	return false, fmt.Errorf("unknown filter %+v", n)
}

func (r rule) takes(q query) bool {
	for _, f := range r.filters {
		if ok, err := match(f, q); err == nil && ok {
			return true
		}
	}
	return len(r.filters) == 0
}

// allows answers a query, and says whether both readings of the language agree:
// by the order of the text alone, and with members before their family.
func (p profile) allows(q query) (allow, agree bool) {
	if !slices.Contains(operations, q.op) {
		panic("unknown operation " + q.op)
	}
	levels := []string{q.op}
	for _, f := range families {
		if strings.HasPrefix(q.op, strings.TrimSuffix(f, "*")) {
			levels = append(levels, f)
		}
	}
	levels = append(levels, "default")
	for _, r := range p[1:] {
		if slices.ContainsFunc(r.ops, func(op string) bool { return slices.Contains(levels, op) }) && r.takes(q) {
			allow = r.allow
		}
	}
	for _, level := range levels {
		verdict, found := false, false
		for _, r := range p {
			if slices.Contains(r.ops, level) && r.takes(q) {
				verdict, found = r.allow, true
			}
		}
		if found {
			return allow, allow == verdict
		}
	}
	panic("there is no default")
}
