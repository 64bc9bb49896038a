package local

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/egress"
	"github.com/tether-sandbox/tether/internal/egress/gate"
	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/mountinfo"
	"github.com/tether-sandbox/tether/internal/plan"
	"github.com/tether-sandbox/tether/internal/world"
	"github.com/tether-sandbox/tether/policy"
)

// netOf says which network a policy asks for.
func netOf(p policy.Policy) enforce.Net {
	switch p.Network.Mode {
	case policy.Open:
		return enforce.HostNet
	case policy.Gated:
		return enforce.GatedNet
	}
	return enforce.OwnNet
}

// outlet is a run's way out: the gate, once the inner stage has made its
// sockets. A run without one has a nil gate and no order.
type outlet struct {
	rules    *egress.Rules
	secret   string
	guard    func(to io.Writer) io.WriteCloser
	upstream *egress.Upstream
	set      map[string]string // what the policy sets itself
	denied   func(egress.Denial, *gate.Gate)

	gate *gate.Gate
	link enforce.GateLink
	why  string
}

func newOutlet(p *plan.Plan, c world.Command) (*outlet, error) {
	if p.Policy.Network.Mode != policy.Gated || c.Provider == enforce.Unconfined || c.Provider == enforce.Guard {
		return &outlet{}, nil
	}
	rules, err := egress.Compile(p.Policy.Network)
	if err != nil {
		return nil, err
	}
	var secret [16]byte
	if _, err := rand.Read(secret[:]); err != nil {
		return nil, err
	}
	return &outlet{guard: c.Guard, upstream: c.Upstream, denied: c.Denied, rules: rules, secret: hex.EncodeToString(secret[:]), set: p.Policy.Env.Set}, nil
}

// order is what the inner stage is asked for.
func (o *outlet) order() *enforce.GateOrder {
	if o.rules == nil {
		return nil
	}
	return &enforce.GateOrder{Ports: o.rules.Ports(), Local: o.rules.Local(), Env: o.env(enforce.ProxyPort)}
}

// env is the environment by which a proxy is found, but for what the policy sets
// itself.
func (o *outlet) env(port int) []string {
	return slices.DeleteFunc(gate.ProxyEnv(port, o.secret), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		_, set := o.set[name]
		return set
	})
}

// hostEnv is env for a command that shares the host's loopback: what is there is
// asked for like any other host.
func (o *outlet) hostEnv(port uint16) []string {
	return slices.DeleteFunc(o.env(int(port)), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return strings.EqualFold(name, "no_proxy")
	})
}

// serveHost begins to serve a proxy on the host's loopback. Who does not know the
// secret gets nothing.
func (o *outlet) serveHost() (port uint16, err error) {
	l, err := gate.ListenHost()
	if err != nil {
		return 0, fault.Wrap(fault.SandboxUnavailable, "the gate cannot listen on the loopback", err)
	}
	o.begin(enforce.Proxy, "there is no network of its own under provider landlock")
	o.gate.ServeProxyOn(l)
	return l.Addr().(*net.TCPAddr).AddrPort().Port(), nil
}

// serve begins to serve the sockets that the inner stage made.
func (o *outlet) serve(s enforce.GateSockets, why string) error {
	o.begin(s.Link, why)
	if s.Link == enforce.Proxy {
		return o.gate.ServeProxy(s.Proxy, s.Near.Listeners)
	}
	return o.gate.ServePair(gate.Pair{Far: gate.Side(s.Far), DNS: s.DNS, DNSTCP: s.DNSTCP, UDP4: s.UDP4, UDP6: s.UDP6,
		ICMP4: s.ICMP4, ICMP6: s.ICMP6, Near: gate.Side(s.Near), Ports: o.rules.Ports(), Local: o.rules.Local(), Mark: enforce.GateMark})
}

// begin makes a gate in the place of one that an earlier provider left.
func (o *outlet) begin(link enforce.GateLink, why string) {
	o.close()
	options := gate.Options{Rules: o.rules, Upstream: o.upstream, Secret: o.secret, Guard: o.guard}
	var g *gate.Gate
	if o.denied != nil {
		options.Denied = func(d egress.Denial) { o.denied(d, g) }
	}
	g = gate.New(options)
	o.gate, o.link, o.why = g, link, why
}

func (o *outlet) close() {
	if o.gate != nil {
		o.gate.Close()
	}
}

// report says what was refused, and by which link the gate was reached.
func (o *outlet) report(out *world.Outcome) {
	if o.gate == nil {
		return
	}
	var more int
	out.Link, out.LinkWhy = o.link, o.why
	if out.Refused, more = o.gate.Denials(); more > 0 {
		out.Notes = append(out.Notes, fmt.Sprintf("the gate refused %d more connections than are listed", more))
	}
	for i := range out.Grades {
		g := &out.Grades[i]
		if g.Guarantee != policy.NetworkGuarantee {
			continue
		}
		if name := o.upstream.String(); name != "" {
			g.Means += ", through the upstream proxy " + name
		}
		switch o.link {
		case enforce.Veth:
			g.Means += " (veth: every program's connections)"
		case enforce.Proxy:
			g.Means += " (proxy: programs that know of proxies; for others nothing leads out, because " + o.why + ")"
		}
	}
}

// showNames lets the command's resolver ask the gate, and the gate alone: names
// of the host's own files are resolved outside, if rules allow them.
func showNames(p *plan.Plan) {
	resolv := "nameserver " + enforce.GateAddr + "\noptions timeout:3 attempts:2\n"
	if raw, err := os.ReadFile("/etc/resolv.conf"); err == nil {
		for line := range strings.Lines(string(raw)) {
			if f := strings.Fields(line); len(f) > 1 && (f[0] == "search" || f[0] == "domain") {
				resolv += strings.Join(f, " ") + "\n"
			}
		}
	}
	hosts := "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n"
	if name, err := os.Hostname(); err == nil && name != "" && !strings.ContainsAny(name, " \t\n#") {
		hosts += "127.0.1.1 " + name + "\n"
	}
	show(p, "/etc/resolv.conf", resolv)
	show(p, "/etc/hosts", hosts)
}

// show puts content in the place of a file of the host, or where none is shown.
func show(p *plan.Plan, path, content string) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		real = path
	}
	covered := func(path string) bool {
		return slices.ContainsFunc(p.Views, func(v plan.View) bool {
			return v.Target() == path || !v.File && strings.HasPrefix(path, v.Target()+"/")
		})
	}
	switch {
	case err == nil && covered(real) && nameless(real):
		p.Notes = append(p.Notes, plan.Note{What: path + " stays inside as it is: it is a bind mount whose source was replaced, and nothing can be mounted on it; " +
			"a name that it holds leads to an address, which rules by name do not open"})
	case err == nil && covered(real):
		p.Locks = append(p.Locks, plan.Lock{Path: real, Content: []byte(content), Why: "names are resolved by the gate"})
	case !covered(path):
		p.Files = append(p.Files, plan.File{Path: path, Content: []byte(content)})
	}
}

// nameless says whether nothing can be mounted on a canonical path, because what
// is mounted there has lost its name.
func nameless(path string) bool {
	var stat unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, 0, &stat)
	if err == nil && stat.Attributes_mask&unix.STATX_ATTR_MOUNT_ROOT != 0 && stat.Attributes&unix.STATX_ATTR_MOUNT_ROOT == 0 {
		return false // nothing is, as nearly everywhere
	}
	table, err := os.ReadFile("/proc/self/mountinfo")
	return err == nil && mountinfo.Nameless(string(table), path)
}
