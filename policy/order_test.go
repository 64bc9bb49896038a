package policy_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tether-sandbox/tether/policy"
)

// Small universes, so that drawn policies meet often.
var (
	somePaths = []string{"/", "/w", "/w/a", "/w/a/b", "/w-x", "/usr", "/usr/lib", "/etc", "/var", "/var/lib",
		"/var/lib/x", "/var/spool/x", "~", "~/p", "/home/u"}
	someConfig = []string{".vscode", ".vscode/tasks.json", "/w/a/.vscode", "/w/a/.vscode/x", "~/p/.idea", ".idea"}
	someNames  = []string{"*.a", "*.b", "x/**"}
	someRules  = []string{"a.example", "b.example:443", "c.example:5432", "10.0.0.0/8", "localhost"}
	someVars   = []string{"A", "B"}
)

func few[T any](g *rapid.Generator[T]) *rapid.Generator[[]T] { return rapid.SliceOfN(g, 0, 3) }

func oneOf[T any](list ...T) *rapid.Generator[T] { return rapid.SampledFrom(list) }

// someProxies are upstream proxies; two of them are one.
var someProxies = []string{"", "", policy.UpstreamEnvironment, "http://p.example:3128", "HTTP://P.example:3128/"}

// valid draws a policy that passes Validate.
func valid() *rapid.Generator[policy.Policy] {
	return rapid.Custom(func(t *rapid.T) policy.Policy {
		draw := func(name string, from []string) []string { return few(rapid.SampledFrom(from)).Draw(t, name) }
		p := policy.Policy{
			Profile:   oneOf(policy.ReadOnly, policy.WorkspaceWrite, policy.WorkspaceWrite, policy.FullAccess).Draw(t, "profile"),
			Workspace: oneOf("/w", "/w/a", "/w/a/b", "/usr/lib", "/var/lib/x", "~/p").Draw(t, "workspace"),
			Reads:     policy.Reads{System: rapid.Bool().Draw(t, "system")},
			Read:      draw("read", somePaths),
			Commands:  oneOf(policy.Inspection, policy.Any).Draw(t, "commands"),
			Nested:    rapid.Bool().Draw(t, "nested"),
			Home:      oneOf(policy.HomePrivate, policy.HomeWorkspace).Draw(t, "home"),
			Limits: policy.Limits{
				Time:         oneOf[time.Duration](0, 1, policy.BuiltinTime, time.Hour).Draw(t, "time"),
				OutputBytes:  oneOf[int64](0, 5, policy.BuiltinOutputBytes, 1<<30).Draw(t, "output"),
				Processes:    oneOf[int64](0, 7, 9, policy.BuiltinProcesses, policy.BuiltinProcesses+1).Draw(t, "processes"),
				FileBytes:    oneOf[int64](0, 7).Draw(t, "file"),
				OpenFiles:    oneOf[int64](0, 16, 20).Draw(t, "open"),
				CPU:          oneOf[time.Duration](0, time.Second).Draw(t, "cpu"),
				ScratchBytes: oneOf[int64](0, 7).Draw(t, "scratch"),
				FreeDisk:     oneOf[int64](0, 1, policy.BuiltinFreeDisk, 1<<40, 1<<63-1).Draw(t, "free disk"),
			},
			Env: policy.Env{Pass: draw("pass", someVars), Redact: draw("redact", someVars)},
		}
		if rapid.Bool().Draw(t, "sets") {
			p.Env.Set = map[string]string{"A": oneOf("1", "2").Draw(t, "value")}
		}
		p.Network = policy.Network{
			Mode:    oneOf(policy.Offline, policy.Gated, policy.Gated, policy.Open).Draw(t, "mode"),
			Public:  rapid.Bool().Draw(t, "public"),
			Publish: few(oneOf[uint16](80, 81)).Draw(t, "publish"),
		}
		if p.Network.Mode == policy.Gated {
			p.Network.Allow, p.Network.Deny = draw("allow", someRules), draw("deny", someRules)
			p.Network.AnySNI = rapid.Bool().Draw(t, "any sni")
			p.Network.Upstream = rapid.SampledFrom(someProxies).Draw(t, "upstream")
		}
		for range rapid.IntRange(0, 2).Draw(t, "accepted") {
			if p.Accept == nil {
				p.Accept = map[policy.Guarantee]policy.Grade{}
			}
			p.Accept[rapid.SampledFrom(policy.Guarantees[:]).Draw(t, "guarantee")] = oneOf(policy.None, policy.Partial, policy.Complete).Draw(t, "grade")
		}
		p.Protect.AllowConfig = draw("config", someConfig)
		if p.Profile == policy.FullAccess {
			p.Network.Mode, p.Network.Allow, p.Network.Deny, p.Network.AnySNI = policy.Open, nil, nil, false
			p.Network.Upstream = ""
			p.Env.NoScrub = rapid.Bool().Draw(t, "noscrub")
			return p
		}
		p.Protect.Hidden, p.Protect.Locked = draw("hidden", someNames), draw("locked", someNames)
		if p.Profile == policy.WorkspaceWrite {
			p.Write = draw("write", somePaths)
		}
		if !p.Reads.System {
			p.Reads.Only = draw("only", somePaths)
		}
		return p
	})
}

// sloppy draws what no Validate has seen.
func sloppy() *rapid.Generator[policy.Policy] {
	bad := append([]string{"", "w", "../x", "/w/../x", "/w//a/", "\x00", "/\x00", "~u", "./~", "."}, somePaths...)
	return rapid.Custom(func(t *rapid.T) policy.Policy {
		p := valid().Draw(t, "valid")
		list := func(name string) []string { return few(rapid.SampledFrom(bad)).Draw(t, name) }
		p.Profile = policy.Profile(rapid.IntRange(-1, 4).Draw(t, "any profile"))
		p.Workspace = rapid.SampledFrom(bad).Draw(t, "any workspace")
		p.Read, p.Write, p.Reads.Only, p.Protect.AllowConfig = list("r"), list("w"), list("o"), list("c")
		p.Protect.Hidden, p.Network.Deny, p.Network.Allow, p.Env.Pass = list("h"), list("d"), list("a"), list("e")
		p.Network.AnySNI = rapid.Bool().Draw(t, "any name")
		p.Network.Upstream = rapid.SampledFrom(append([]string{"socks5://x", "http://u:p@x"}, someProxies...)).Draw(t, "any upstream")
		p.Network.Mode = policy.NetworkMode(rapid.IntRange(-1, 3).Draw(t, "any mode"))
		p.Home = policy.Home(rapid.IntRange(-1, 2).Draw(t, "any home"))
		p.Commands = policy.Commands(rapid.IntRange(-1, 2).Draw(t, "any commands"))
		p.Limits.MemoryBytes = oneOf[int64](-1, 0, 1).Draw(t, "any memory")
		p.Env.NoScrub = rapid.Bool().Draw(t, "any noscrub")
		p.Accept = map[policy.Guarantee]policy.Grade{
			policy.Guarantee(rapid.IntRange(-1, 8).Draw(t, "any guarantee")): policy.Grade(rapid.IntRange(-1, 4).Draw(t, "any grade")),
		}
		return p
	})
}

func same(p, q policy.Policy) bool { return reflect.DeepEqual(p.Canonical(), q.Canonical()) }

func TestDrawnPoliciesAreValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := valid().Draw(t, "p")
		if err := p.Validate(); err != nil {
			t.Fatalf("%v: %+v", err, p)
		}
	})
}

// TestMeetLaws holds for every policy, also one that Validate would refuse.
func TestMeetLaws(t *testing.T) {
	laws := func(g *rapid.Generator[policy.Policy]) func(*rapid.T) {
		return func(t *rapid.T) {
			p, q, r := g.Draw(t, "p"), g.Draw(t, "q"), g.Draw(t, "r")
			before := p.Canonical()
			m := policy.Meet(p, q)
			if !m.Within(p) {
				t.Errorf("Meet is wider than p: %+v", m)
			}
			if !m.Within(q) {
				t.Errorf("Meet is wider than q: %+v", m)
			}
			if !same(m, policy.Meet(q, p)) {
				t.Errorf("not commutative: got %+v and %+v", m.Canonical(), policy.Meet(q, p).Canonical())
			}
			if a, b := policy.Meet(m, r), policy.Meet(p, policy.Meet(q, r)); !same(a, b) {
				t.Errorf("not associative: got %+v and %+v", a.Canonical(), b.Canonical())
			}
			if !same(policy.Meet(p, p), p) {
				t.Errorf("not idempotent: got %+v, want %+v", policy.Meet(p, p).Canonical(), p.Canonical())
			}
			if !same(policy.Meet(m, p), m) {
				t.Errorf("meeting twice changes it: got %+v, want %+v", policy.Meet(m, p).Canonical(), m.Canonical())
			}
			if got := p.Canonical(); !reflect.DeepEqual(got, before) {
				t.Errorf("p was changed: got %+v, want %+v", got, before)
			}
			if c := before.Canonical(); !reflect.DeepEqual(c, before) {
				t.Errorf("Canonical is not a normal form: got %+v, then %+v", before, c)
			}
			if !before.Within(p) {
				t.Errorf("the canonical form is wider: %+v", before)
			}
			if !(policy.Policy{}).Within(p) {
				t.Error("Policy{} is not within p")
			}
			for _, m := range []policy.Policy{policy.Meet(p, policy.Policy{}), policy.Meet(policy.Policy{}, p)} {
				if !reflect.DeepEqual(m, policy.Policy{}) {
					t.Errorf("meeting with Policy{}: got %+v", m)
				}
			}
			for _, x := range []policy.Policy{policy.Meet(m, r), r} {
				if x.Within(p) && x.Within(q) && !x.Within(m) {
					t.Errorf("not the greatest: %+v is within both, not within %+v", x, m)
				}
			}
		}
	}
	t.Run("valid", rapid.MakeCheck(laws(valid())))
	t.Run("sloppy", rapid.MakeCheck(laws(sloppy())))
}

func TestWithinLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, q, r := valid().Draw(t, "p"), valid().Draw(t, "q"), valid().Draw(t, "r")
		// Chains would be rare among independent policies.
		chain := []policy.Policy{policy.Meet(policy.Meet(p, q), r), policy.Meet(p, q), p, q, policy.Meet(q, r), r, p.Canonical()}
		for _, a := range chain {
			if !a.Within(a) {
				t.Errorf("not reflexive: %+v", a)
			}
			for _, b := range chain {
				if (a.Within(b) && b.Within(a)) != same(a, b) {
					t.Errorf("within each other: %v, but the same form: %v: %+v, %+v", a.Within(b) && b.Within(a), same(a, b), a, b)
				}
				if a.Within(b) && !same(policy.Meet(a, b), a) {
					t.Errorf("a lies within b, but meets it in something else: %+v, %+v", a, b)
				}
				for _, c := range chain {
					if a.Within(b) && b.Within(c) && !a.Within(c) {
						t.Errorf("not transitive: %+v, %+v, %+v", a, b, c)
					}
				}
			}
		}
	})
}

// TestOrderMeansPermission compares with an oracle that asks what a policy
// allows, one question at a time, and knows nothing of sets.
func TestOrderMeansPermission(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, q := valid().Draw(t, "p"), valid().Draw(t, "q")
		m := policy.Meet(p, q)
		if m.Workspace != "" {
			if err := m.Validate(); err != nil {
				t.Errorf("the meet of valid policies is not: %v: %+v", err, m)
			}
		}
		in := p.Within(q)
		inP, inQ, inM, inC := answers(p), answers(q), answers(m), answers(p.Canonical())
		for question, byP := range inP {
			byQ := inQ[question]
			if in && byP && !byQ {
				t.Errorf("%s: p lies within q, but q forbids it", question)
			}
			if inM[question] && !(byP && byQ) {
				t.Errorf("%s: the meet allows it; p: %v, q: %v", question, byP, byQ)
			}
			if !inM[question] && byP && byQ {
				t.Errorf("%s: both allow it, the meet %+v does not", question, m)
			}
			if inC[question] != byP {
				t.Errorf("%s: p: %v, its canonical form: %v", question, byP, inC[question])
			}
		}
		for _, g := range policy.Guarantees {
			if m.Required(g) != max(p.Required(g), q.Required(g)) && m.Profile != policy.FullAccess {
				t.Errorf("%v: the meet requires %v; p: %v, q: %v", g, m.Required(g), p.Required(g), q.Required(g))
			}
		}
	})
}

// answers asks p everything that the universes can ask.
func answers(p policy.Policy) map[string]bool {
	full := p.Profile == policy.FullAccess
	writable := []string{}
	if p.Profile == policy.WorkspaceWrite {
		writable = append(writable, p.Write...)
		writable = append(writable, p.Workspace)
	}
	readable := slices.Concat(p.Read, p.Write, p.Reads.Only, []string{p.Workspace})
	a := map[string]bool{"run any command": p.Profile > policy.ReadOnly || p.Commands == policy.Any}
	for _, path := range append([]string{"/tmp", "/w/a/b/c", "/usr/lib/x", "/var/spool", "/opt", "/home"}, somePaths...) {
		listed := lies(path, readable)
		shown := p.Reads.System && lies(path, policy.SystemRoots())
		a["write "+path] = full || lies(path, writable)
		a["read "+path] = full || listed || shown
		a["read secrets of "+path] = full || shown && !listed
	}
	for _, c := range someConfig {
		a["change "+c] = full || lies(c, p.Protect.AllowConfig)
	}
	for _, n := range someNames {
		a["see "+n] = full || !slices.Contains(p.Protect.Hidden, n)
		a["change "+n] = a["see "+n] && (full || !slices.Contains(p.Protect.Locked, n))
	}
	gated := p.Network.Mode == policy.Gated
	open := p.Network.Mode == policy.Open
	a["reach the host"] = open
	a["reach the public"] = open || gated && p.Network.Public
	a["hide a name in TLS"] = open || gated && (p.Network.Public || p.Network.AnySNI)
	for _, u := range []string{policy.UpstreamEnvironment, "http://p.example:3128"} {
		a["chain to "+u] = open || gated && strings.TrimSuffix(strings.ToLower(p.Network.Upstream), "/") == u
	}
	for _, r := range someRules {
		based := p.Network.Public && strings.HasSuffix(strings.TrimSuffix(r, ":443"), ".example")
		a["reach "+r] = open || gated && (based || slices.Contains(p.Network.Allow, r)) && !slices.Contains(p.Network.Deny, r)
		a["reach denied "+r] = open || gated && !slices.Contains(p.Network.Deny, r)
	}
	for _, port := range []uint16{80, 81} {
		a["publish "+string(rune(port))] = open || slices.Contains(p.Network.Publish, port)
	}
	for _, v := range someVars {
		a["pass "+v] = p.Env.NoScrub || slices.Contains(p.Env.Pass, v)
		for _, value := range []string{"1", "2"} {
			got, ok := p.Env.Set[v]
			a["set "+v+"="+value] = ok && got == value
		}
	}
	a["work in a home"] = p.Home == policy.HomeWorkspace
	limit, bytes := p.Limits.Time, p.Limits.OutputBytes
	if limit == 0 {
		limit = policy.BuiltinTime
	}
	if bytes == 0 {
		bytes = policy.BuiltinOutputBytes
	}
	for _, d := range []time.Duration{1, policy.BuiltinTime, time.Hour} {
		a["take "+d.String()] = limit >= d
	}
	a["print 6"], a["print 1M"], a["print 1G"] = bytes >= 6, bytes >= 1<<20, bytes >= 1<<30
	a["fork 8"] = p.Limits.Processes == 0 || p.Limits.Processes >= 8
	a["fork 10"] = p.Limits.Processes == 0 || p.Limits.Processes >= 10
	a["fork more than built in"] = p.Limits.Processes > policy.BuiltinProcesses
	a["big files"] = p.Limits.FileBytes == 0
	a["17 open files"] = p.Limits.OpenFiles == 0 || p.Limits.OpenFiles >= 17
	a["long work"] = p.Limits.CPU == 0
	free := p.Limits.FreeDisk
	if free == 0 {
		free = policy.BuiltinFreeDisk - 1
	}
	for _, n := range []int64{1, 1 << 20, policy.BuiltinFreeDisk - 1, policy.BuiltinFreeDisk, 1 << 41} {
		a["leave "+policy.SizeText(n)] = free <= n
	}
	a["much scratch"] = p.Limits.ScratchBytes == 0
	return a
}

// lies tells by components whether path lies in one of roots.
func lies(path string, roots []string) bool {
	split := func(s string) []string {
		parts := strings.FieldsFunc(s, func(r rune) bool { return r == '/' })
		if strings.HasPrefix(s, "/") || s == "~" || strings.HasPrefix(s, "~/") {
			return append([]string{"/"}, parts...)
		}
		return parts
	}
	return slices.ContainsFunc(roots, func(root string) bool {
		a, b := split(path), split(root)
		return len(b) > 0 && len(a) >= len(b) && slices.Equal(a[:len(b)], b)
	})
}

func TestWithinEdges(t *testing.T) {
	base := policy.Default("/w")
	base.Network = policy.Network{Mode: policy.Open}
	gated := base
	gated.Network = policy.Network{Mode: policy.Gated, Public: true, Allow: []string{"A.example"}, Publish: []uint16{80}}
	with := func(p policy.Policy, change func(*policy.Policy)) policy.Policy { change(&p); return p }
	for _, tt := range []struct {
		name string
		p, q policy.Policy
		want bool // p within q
		back bool // q within p
	}{
		{"itself", base, base, true, true},
		{"profiles", base.WithProfile(policy.ReadOnly), base, true, false},
		{"full access", base, base.WithProfile(policy.FullAccess), true, false},
		{"a folder and its namesake", with(base, func(p *policy.Policy) { p.Write = []string{"/x-y"} }),
			with(base, func(p *policy.Policy) { p.Write = []string{"/x"} }), false, false},
		{"a folder below", with(base, func(p *policy.Policy) { p.Write = []string{"/x/y"} }),
			with(base, func(p *policy.Policy) { p.Write = []string{"/x/"} }), true, false},
		{"write what may be read", with(base, func(p *policy.Policy) { p.Read = []string{"/x"} }),
			with(base, func(p *policy.Policy) { p.Write = []string{"/x"} }), true, false},
		{"system folder", with(base, func(p *policy.Policy) { p.Read = []string{"/usr/share"} }), base, true, false},
		{"spool", with(base, func(p *policy.Policy) { p.Read = []string{"/var/spool/x"} }), base, false, true},
		{"around system folders", with(base, func(p *policy.Policy) { p.Read = []string{"/var"} }), base, false, false},
		{"system folder in /var", with(base, func(p *policy.Policy) { p.Read = []string{"/var/lib/x"} }), base, true, false},
		{"no system folder", with(base, func(p *policy.Policy) { p.Read = []string{"/dev"} }), base, false, true},
		{"list and system", with(base, func(p *policy.Policy) { p.Reads = policy.Reads{Only: []string{"/usr"}} }), base, true, false},
		{"system and /", base, with(base, func(p *policy.Policy) { p.Reads = policy.Reads{Only: []string{"/"}} }), false, false},
		{"home is somewhere", with(base, func(p *policy.Policy) { p.Read = []string{"~/x"} }),
			with(base, func(p *policy.Policy) { p.Read = []string{"/home"} }), false, false},
		{"home is in /", with(base.WithProfile(policy.ReadOnly), func(p *policy.Policy) { p.Reads = policy.Reads{Only: []string{"~/x"}} }),
			with(base, func(p *policy.Policy) { p.Reads = policy.Reads{Only: []string{"/"}} }), true, false},
		{"hidden", with(base, func(p *policy.Policy) { p.Protect.Hidden = []string{"x"} }), base, true, false},
		{"hidden and locked", with(base, func(p *policy.Policy) { p.Protect.Hidden = []string{"x"} }),
			with(base, func(p *policy.Policy) { p.Protect.Locked = []string{"x"} }), true, false},
		{"lifted lock", base, with(base, func(p *policy.Policy) { p.Protect.AllowConfig = []string{".vscode"} }), true, false},
		{"lifted lock below", with(base, func(p *policy.Policy) { p.Protect.AllowConfig = []string{".vscode/x"} }),
			with(base, func(p *policy.Policy) { p.Protect.AllowConfig = []string{"./.vscode"} }), true, false},
		{"gated in open", gated, base, true, false},
		{"offline in gated", with(base, func(p *policy.Policy) { p.Network = policy.Network{} }),
			with(gated, func(p *policy.Policy) { p.Network.Deny = []string{"x"} }), true, false},
		{"case of a rule", with(gated, func(p *policy.Policy) { p.Network.Allow = []string{"a.EXAMPLE"} }), gated, true, true},
		{"a rule that the base holds", with(gated, func(p *policy.Policy) { p.Network.Allow = []string{"b", "c:22"} }), gated, true, true},
		{"a list below the public base", with(gated, func(p *policy.Policy) {
			p.Network.Public, p.Network.Allow = false, []string{"b.example", "*.c.example:8080"}
		}), gated, true, false},
		{"a list with more than the base", with(gated, func(p *policy.Policy) {
			p.Network.Public, p.Network.Allow = false, []string{"localhost:3000"}
		}), gated, false, false},
		{"one rule more", with(gated, func(p *policy.Policy) { p.Network.Allow = []string{"a.example", "b:5432"} }), gated, false, true},
		{"one denial more", with(gated, func(p *policy.Policy) { p.Network.Deny = []string{"b"} }), gated, true, false},
		{"denied rule", with(gated, func(p *policy.Policy) {
			p.Network.Allow = []string{"a.example", "b:5432"}
			p.Network.Deny = []string{"B:5432"}
		}), gated, true, false},
		{"any name in TLS", with(gated, func(p *policy.Policy) {
			p.Network.Public, p.Network.Allow, p.Network.AnySNI = false, []string{"b.example"}, true
		}), with(gated, func(p *policy.Policy) { p.Network.Public, p.Network.Allow = false, []string{"b.example"} }), false, true},
		{"any name within the public base", with(gated, func(p *policy.Policy) {
			p.Network.Public, p.Network.Allow, p.Network.AnySNI = false, []string{"b.example"}, true
		}), gated, true, false},
		{"any name with the public base", with(gated, func(p *policy.Policy) { p.Network.AnySNI = true }), gated, true, true},
		{"an upstream proxy", with(gated, func(p *policy.Policy) { p.Network.Upstream = "environment" }), gated, false, true},
		{"another one", with(gated, func(p *policy.Policy) { p.Network.Upstream = "environment" }),
			with(gated, func(p *policy.Policy) { p.Network.Upstream = "http://p" }), false, false},
		{"published port", with(gated, func(p *policy.Policy) { p.Network.Publish = []uint16{80, 81} }), gated, false, true},
		{"passed variable", base, with(base, func(p *policy.Policy) { p.Env.Pass = []string{"A"} }), true, false},
		{"other value", with(base, func(p *policy.Policy) { p.Env.Set = map[string]string{"A": "1"} }),
			with(base, func(p *policy.Policy) { p.Env.Set = map[string]string{"A": "2"} }), false, false},
		{"home", with(base, func(p *policy.Policy) { p.Home = policy.HomePrivate }), base, true, false},
		{"built-in time", with(base, func(p *policy.Policy) { p.Limits.Time = policy.BuiltinTime }), base, true, true},
		{"built-in processes", with(base, func(p *policy.Policy) {
			p.Limits.Processes = policy.BuiltinProcesses
			p.Accept = map[policy.Guarantee]policy.Grade{policy.LimitsGuarantee: policy.None}
		}), base, true, true},
		{"more processes", with(base, func(p *policy.Policy) { p.Limits.Processes = policy.BuiltinProcesses + 1 }), base, false, false},
		{"fewer open files", with(base, func(p *policy.Policy) { p.Limits.OpenFiles = 20 }), base, true, false},
		{"less processor time", with(base, func(p *policy.Policy) { p.Limits.CPU = 1 }), base, true, false},
		{"less scratch space", with(base, func(p *policy.Policy) { p.Limits.ScratchBytes = 1 }), base, true, false},
		{"built-in disk", with(base, func(p *policy.Policy) { p.Limits.FreeDisk = policy.BuiltinFreeDisk }), base, true, false},
		{"a fuller disk", with(base, func(p *policy.Policy) { p.Limits.FreeDisk = 1 << 20 }), base, false, true},
		{"more time", with(base, func(p *policy.Policy) { p.Limits.Time = policy.BuiltinTime + 1 }), base, false, true},
		{"a memory limit, accepted unenforced", with(base, func(p *policy.Policy) {
			p.Limits.MemoryBytes = 1
			p.Accept = map[policy.Guarantee]policy.Grade{policy.LimitsGuarantee: policy.None}
		}), base, true, false},
		{"a lower requirement", base, with(base, func(p *policy.Policy) {
			p.Accept = map[policy.Guarantee]policy.Grade{policy.Secrets: policy.Partial}
		}), true, false},
		{"another workspace that may be read", with(base.WithProfile(policy.ReadOnly), func(p *policy.Policy) { p.Workspace = "/x" }),
			with(base, func(p *policy.Policy) { p.Read = []string{"/x"} }), true, false},
		{"malformed", with(base, func(p *policy.Policy) { p.Limits.Time = -1 }), base, false, false},
		{"relative root in q", base, with(base, func(p *policy.Policy) { p.Read = []string{"x"} }), true, false},
		{"nothing, whatever else it says", with(policy.Policy{}, func(p *policy.Policy) { p.Write = []string{"/"} }),
			base, true, false},
	} {
		if got := tt.p.Within(tt.q); got != tt.want {
			t.Errorf("%s: p within q: got %v, want %v", tt.name, got, tt.want)
		}
		if got := tt.q.Within(tt.p); got != tt.back {
			t.Errorf("%s: q within p: got %v, want %v", tt.name, got, tt.back)
		}
	}
}

func TestMeetWorkspace(t *testing.T) {
	at := func(workspace string, write ...string) policy.Policy {
		p := policy.Default(workspace)
		p.Write = write
		return p
	}
	for _, tt := range []struct {
		name  string
		p, q  policy.Policy
		want  string
		write string
	}{
		{"the same", at("/w"), at("/w/"), "/w", ""},
		{"deeper", at("/w"), at("/w/a"), "/w/a", ""},
		{"deeper, the other way round", at("/w/a"), at("/w"), "/w/a", ""},
		{"in a root of the other", at("/x", "/y"), at("/w", "/x"), "/x", ""},
		{"both in both", at("/x", "/w"), at("/w", "/x"), "/x", "/w"},
		{"in neither", at("/x", "/y"), at("/w", "/y"), "", "/y"},
		{"readable is not writable", at("/x"), at("/x").WithProfile(policy.ReadOnly), "/x", ""},
	} {
		m := policy.Meet(tt.p, tt.q)
		if got := strings.Join(m.Write, ","); m.Workspace != tt.want || got != tt.write {
			t.Errorf("%s: got %q with the write roots %q, want %q and %q", tt.name, m.Workspace, got, tt.want, tt.write)
		}
	}
}

// TestMeetKeepsBuiltInLimits: a surface without a time limit of its own must
// not get one from two policies that name none.
func TestMeetKeepsBuiltInLimits(t *testing.T) {
	p := policy.Default("/w")
	if got := policy.Meet(p, p).Limits; got != (policy.Limits{}) {
		t.Errorf("got %+v, want zeros", got)
	}
	q := p
	q.Limits.Time = time.Hour
	if got := policy.Meet(p, q).Limits.Time; got != policy.BuiltinTime {
		t.Errorf("got %v, want %v spelled out", got, policy.BuiltinTime)
	}
}

func TestSystemRootsIsACopy(t *testing.T) {
	policy.SystemRoots()[0] = "/x"
	if slices.Contains(policy.SystemRoots(), "/x") {
		t.Error("a caller changed the list")
	}
}
