package policyfile_test

import (
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/policyfile"
	"github.com/tether-sandbox/tether/policy"
)

func TestLayersOnTopOfEachOther(t *testing.T) {
	gated := policy.Network{Mode: policy.Gated, Public: true}
	for _, c := range []struct {
		name           string
		user, own, cmd string // own is the workspace's file, trusted
		check          func(p policy.Policy) (got, want any)
	}{
		{"a scalar is replaced", `timeout = "5m"`, `timeout = "4m"`, "timeout 3m",
			func(p policy.Policy) (any, any) { return p.Limits.Time, 3 * time.Minute }},
		{"the last flag counts", ``, ``, "timeout 3m;timeout 2m",
			func(p policy.Policy) (any, any) { return p.Limits.Time, 2 * time.Minute }},
		{"lists grow, without repeats", `protect = ["a"]`, `protect = ["b", "a"]`, "protect c;protect a",
			func(p policy.Policy) (any, any) { return p.Protect.Hidden, []string{"a", "b", "c"} }},
		{"reads are replaced", `reads = ["/a"]`, ``, "reads /b;reads /c",
			func(p policy.Policy) (any, any) { return p.Reads, policy.Reads{Only: []string{"/b", "/c"}} }},
		{"reads of the same folder again", `reads = ["/a", "/b"]`, ``, "reads /b",
			func(p policy.Policy) (any, any) { return p.Reads, policy.Reads{Only: []string{"/b"}} }},
		{"back to the system's", `reads = ["/a"]`, ``, "reads system",
			func(p policy.Policy) (any, any) { return p.Reads, policy.Reads{System: true} }},
		{"reads nothing", `reads = []`, ``, "",
			func(p policy.Policy) (any, any) { return p.Reads, policy.Reads{} }},
		{"variables one by one", `env = ["A=1", "B=1", "P"]`, "[set-env]\nA = \"2\"", "env A=3;env Q",
			func(p policy.Policy) (any, any) {
				return p.Env, policy.Env{Pass: []string{"P", "Q"}, Set: map[string]string{"A": "3", "B": "1"}}
			}},
		{"accept by guarantee", `accept = ["secrets=none", "write=partial"]`, ``, "accept secrets=partial",
			func(p policy.Policy) (any, any) {
				return p.Accept, map[policy.Guarantee]policy.Grade{policy.Secrets: policy.Partial, policy.Write: policy.Partial}
			}},
		{"gated is public", `network = "gated"`, ``, "", func(p policy.Policy) (any, any) { return p.Network, gated }},
		{"unless listed", "network = \"gated\"\nonly-host = [\"a\"]", ``, "allow-host b",
			func(p policy.Policy) (any, any) {
				return p.Network, policy.Network{Mode: policy.Gated, Allow: []string{"a", "b"}}
			}},
		{"or listed as nothing", "network = \"gated\"\nonly-host = []", ``, "",
			func(p policy.Policy) (any, any) { return p.Network, policy.Network{Mode: policy.Gated} }},
		{"the base is replaced, what is added stays", "network = \"gated\"\nonly-host = [\"a\", \"b\"]\nallow-host = [\"c\"]", `only-host = ["b"]`, "",
			func(p policy.Policy) (any, any) {
				return p.Network, policy.Network{Mode: policy.Gated, Allow: []string{"c", "b"}}
			}},
		{"gated again keeps the base", "network = \"gated\"\nonly-host = [\"a\"]", ``, "network gated",
			func(p policy.Policy) (any, any) {
				return p.Network, policy.Network{Mode: policy.Gated, Allow: []string{"a"}}
			}},
		{"no network whatever a file allows", "network = \"gated\"\nallow-host = [\"a\"]\ndeny-host = [\"b\"]\nonly-host = [\"c\"]", ``, "network none",
			func(p policy.Policy) (any, any) { return p.Network, policy.Network{} }},
		{"a denial without network", `network = "none"`, `deny-host = ["b"]`, "",
			func(p policy.Policy) (any, any) { return p.Network, policy.Network{} }},
		{"open whatever a file allows", "network = \"gated\"\nallow-host = [\"a\"]\nonly-host = []", ``, "network open",
			func(p policy.Policy) (any, any) { return p.Network, policy.Network{Mode: policy.Open} }},
		{"read-only for once", `allow-write = ["/a"]`, ``, "profile read-only",
			func(p policy.Policy) (any, any) {
				return [2][]string{p.Read, p.Write}, [2][]string{{"/a"}, nil}
			}},
		{"read-only and back", `allow-write = ["/a"]`, `profile = "read-only"`, "profile workspace-write",
			func(p policy.Policy) (any, any) {
				return [2][]string{p.Read, p.Write}, [2][]string{nil, {"/a"}}
			}},
		{"full access opens the network", "network = \"gated\"\nallow-host = [\"a\"]", `network = "open"`, "profile full-access",
			func(p policy.Policy) (any, any) { return p.Network, policy.Network{Mode: policy.Open} }},
		{"an alias", `profile = "danger-full-access"`, ``, "",
			func(p policy.Policy) (any, any) { return p.Profile, policy.FullAccess }},
	} {
		t.Run(c.name, func(t *testing.T) {
			own := foreign(t, c.own)
			own.Trusted = true
			var words []string
			if c.cmd != "" {
				words = strings.Split(c.cmd, ";")
			}
			e := apply(t, user(t, c.user), own, flags(t, words...))
			if got, want := c.check(e.Policy); !reflect.DeepEqual(got, want) {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

// TestContradictionsAcrossLayers are refused, not settled in silence.
func TestContradictionsAcrossLayers(t *testing.T) {
	for _, c := range []struct{ user, own, cmd, want string }{
		{`deny-host = ["a"]`, ``, "network open", "user.toml:1:14: the rule to deny"},
		{`network = "none"`, ``, "allow-host a", "the rule to allow \"a\" would not be enforced, because the network is none"},
		{`protect = ["*.x"]`, ``, "profile full-access", "user.toml:1:12: full access protects no file"},
		{`network = "none"`, ``, "profile full-access", "user.toml:1:1: full access cannot hold the network none"},
		{`profile = "read-only"`, ``, "allow-write /x", "a read-only policy has the write root"},
		{``, ``, "reads system;reads /x", "at once"},
	} {
		_, err := policyfile.Apply(base(), user(t, c.user), foreign(t, c.own), flags(t, strings.Split(c.cmd, ";")...))
		if fault.CodeOf(err) != fault.PolicyInvalid || !strings.Contains(err.Error(), c.want) || fault.HintOf(err) == "" {
			t.Errorf("%q, then %q: got %v, want %s", c.user, c.cmd, err, c.want)
		}
	}
}

func TestForeignFile(t *testing.T) {
	// Each text would hold if the file were trusted: that door opens first.
	for _, c := range []struct{ user, text, refused string }{
		{``, `deny-host = []`, ""},
		{``, `protect = ["*.x"]`, ""},
		{``, `lock = ["deploy/**"]`, ""},
		{``, `timeout = "60s"`, ""},
		{``, `timeout = "3m"`, "timeout \"3m\""}, // built in are 120 s
		{`timeout = "5m"`, `timeout = "5m"`, ""},
		{`timeout = "5m"`, `timeout = "301s"`, "timeout"},
		{``, `max-output = "1M"`, ""},
		{``, `max-output = "2M"`, "max-output"},
		{``, `max-procs = 5`, ""},
		{`max-procs = 4`, `max-procs = 5`, "max-procs"},
		{``, `max-file-size = "1T"`, ""},
		{``, `network = "none"`, ""},
		{``, `network = "gated"`, ""},
		{`network = "none"`, `network = "gated"`, "network"},
		{`network = "gated"`, `network = "open"`, "network"},
		{`network = "gated"`, `only-host = []`, ""},
		{`network = "gated"`, `only-host = ["a.example"]`, ""},
		{`network = "gated"`, `only-host = ["a.example:5432"]`, "only-host"},
		{`network = "gated"`, `only-host = ["10.0.0.1"]`, "only-host"},
		{`network = "gated"`, `only-host = ["localhost:8080"]`, "only-host"},
		{"network = \"gated\"\nonly-host = [\"a.example\", \"b.example\"]", `only-host = ["a.example"]`, ""},
		{`network = "gated"`, `allow-host = ["a.example"]`, "allow-host"},
		{"network = \"gated\"\nallow-host = [\"a.example\"]", `allow-host = ["a.example"]`, ""},
		{`network = "gated"`, `deny-host = ["a.example"]`, ""},
		{``, `sni = "any"`, "sni"},
		{`sni = "any"`, `sni = "any"`, ""},
		{`sni = "any"`, `sni = "listed"`, ""},
		{``, `upstream = "environment"`, "upstream"},
		{`upstream = "environment"`, `upstream = "environment"`, ""},
		{`upstream = "environment"`, `upstream = "http://p"`, "upstream"},
		{``, `publish = [80]`, "publish"},
		{``, `fetch = "public"`, "fetch"},
		{``, `profile = "read-only"`, ""},
		{`profile = "read-only"`, `profile = "workspace-write"`, "profile"},
		{``, `profile = "full-access"`, "profile"},
		{``, `commands = "inspection"`, ""},
		{``, `commands = "any"`, "commands"}, // says nothing here, but much under read-only
		{``, `home = "private"`, ""},
		{`home = "private"`, `home = "workspace"`, "home"},
		{``, `allow-read = ["/srv"]`, "allow-read"},
		{`allow-read = ["/srv"]`, `allow-read = ["/srv"]`, ""},
		{``, `allow-write = ["/srv"]`, "allow-write"},
		{``, `allow-config = [".vscode"]`, "allow-config"},
		{``, `reads = ["/usr/lib"]`, ""},
		{``, `reads = []`, ""},
		{``, `reads = ["/srv"]`, "reads"},
		{`reads = ["/usr"]`, `reads = "system"`, "reads"},
		{`reads = ["/srv"]`, `reads = ["/srv/x"]`, ""},
		{``, `env = ["TOKEN"]`, "env"},
		{``, `env = ["A=1"]`, "env"},
		{``, "[set-env]\nA = \"1\"", "set-env"},
		{`env = ["A=1"]`, "[set-env]\nA = \"2\"", "set-env"},
		{`env = ["A=1"]`, "[set-env]\nA = \"1\"", ""},
		{``, `accept = ["secrets=partial"]`, "accept"},
		{`accept = ["secrets=partial"]`, `accept = ["secrets=complete"]`, ""},
		{``, `accept = ["ipc=complete"]`, ""},
		{``, `provider = "bwrap"`, "provider"},
		{``, `approval = "never"`, ""},
		{`approval = "never"`, `approval = "ask"`, "approval"},
		{``, `audit = true`, ""},
		{`audit = true`, `audit = false`, "audit"},
		{`profile = "full-access"`, `no-scrub = true`, "no-scrub"},
		{``, `no-scrub = false`, ""},
	} {
		t.Run(c.user+";"+c.text, func(t *testing.T) {
			l := foreign(t, c.text)
			l.Trusted = true
			if _, err := policyfile.Apply(base(), user(t, c.user), l); err != nil {
				t.Fatalf("control: trusted it must hold: %v", err)
			}
			l.Trusted = false
			_, err := policyfile.Apply(base(), user(t, c.user), l)
			switch {
			case c.refused == "" && err != nil:
				t.Errorf("got %v, want none", err)
			case c.refused != "" && err == nil:
				t.Error("got no error")
			case c.refused != "":
				if fault.CodeOf(err) != fault.PolicyInvalid || fault.HintOf(err) != "tether policy trust" ||
					!strings.Contains(err.Error(), ": "+c.refused) || !strings.Contains(err.Error(), ".tether/policy.toml:") {
					t.Errorf("got %v (%s), want a refusal of %s", err, fault.HintOf(err), c.refused)
				}
			}
		})
	}
}

// TestSmuggled: what is void under the layers below must not come to life under
// the flags above.
func TestSmuggled(t *testing.T) {
	for _, c := range []struct{ user, text, cmd string }{
		{`profile = "full-access"`, `reads = ["/home/u"]`, "profile workspace-write"},
		{`profile = "full-access"`, `accept = ["secrets=none"]`, "profile workspace-write"},
		{``, `accept = ["limits=none"]`, "max-procs 5"},
		{``, "network = \"gated\"\nonly-host = [\"evil.example:5432\"]", "network gated"},
	} {
		l := foreign(t, c.text)
		l.Trusted = true
		if _, err := policyfile.Apply(base(), user(t, c.user), l, flags(t, c.cmd)); err != nil {
			t.Fatalf("control: trusted it must hold: %v", err)
		}
		l.Trusted = false
		_, err := policyfile.Apply(base(), user(t, c.user), l, flags(t, c.cmd))
		if fault.CodeOf(err) != fault.PolicyInvalid || fault.HintOf(err) != "tether policy trust" {
			t.Errorf("%s under %s: got %v", c.text, c.cmd, err)
		}
	}
}

// changes draws changes as a file or the command line makes them.
func changes() *rapid.Generator[[]policyfile.Change] {
	pool := map[string][]string{
		"profile": {"read-only", "workspace-write", "full-access"}, "commands": {"inspection", "any"},
		"reads": {"system", "/usr", "/usr/lib", "/srv", ""}, "allow-read": {"/srv", "/usr/lib", "~/x", "/w/a"},
		"allow-write": {"/srv/out", "/srv", "~/x"}, "protect": {"*.a", "x/**"}, "lock": {"*.a", "*.b"},
		"allow-config": {".vscode", ".idea/x"}, "network": {"none", "gated", "open"},
		"only-host": {"a.example", "b.example:22", "A.example", ""}, "allow-host": {"a.example", "c.example"}, "deny-host": {"a.example", "d.example"},
		"sni": {"any", "listed"}, "upstream": {"environment", "http://p.example:3128"}, "publish": {"80", "81"}, "fetch": {"public"}, "env": {"A", "B", "A=1", "A=2"}, "set-env": {"A=1", "C=x"}, "redact": {"A", "B"},
		"home": {"private", "workspace"}, "no-scrub": {"true", "false"}, "nested": {"true", "false"}, "timeout": {"1s", "120s", "5m"},
		"max-output": {"1", "1M", "1G"}, "max-procs": {"1", "9"}, "max-memory": {"1M", "2T"}, "max-file-size": {"3"},
		"max-open-files": {"16", "99"}, "max-cpu": {"1s", "5m"}, "max-scratch": {"1M", "9G"}, "min-free-disk": {"2G", "1M"},
		"provider": {"auto", "native", "guard"}, "accept": {"secrets=none", "secrets=complete", "ipc=partial", "ipc=none", "limits=none", "network=partial"},
		"approval": {"ask", "never"}, "audit": {"true", "false"},
	}
	names := strings.Fields(`profile commands reads allow-read allow-write protect lock allow-config network only-host allow-host deny-host sni upstream
		publish fetch env set-env redact home no-scrub nested timeout max-output max-procs max-memory max-file-size max-open-files max-cpu
		max-scratch min-free-disk provider accept approval audit`)
	return rapid.Custom(func(t *rapid.T) []policyfile.Change {
		var out []policyfile.Change
		for i := range rapid.IntRange(0, 5).Draw(t, "count") {
			key := rapid.SampledFrom(names).Draw(t, "key"+strconv.Itoa(i))
			value := rapid.SampledFrom(pool[key]).Draw(t, "value"+strconv.Itoa(i))
			if value == "" {
				out = append(out, policyfile.Change{Key: key, Empty: true, Line: i + 1, Column: 1})
				continue
			}
			c, err := policyfile.Flag(key, value)
			if err != nil {
				t.Fatalf("%s %s: %v", key, value, err)
			}
			c.Line, c.Column = i+1, 1
			out = append(out, c)
		}
		return out
	})
}

// TestForeignFileNarrowsByLaw: whatever the user and the flags say, with a file
// that nobody trusts no more may happen than without it. Whatever its single
// changes are, it holds also for the policy that the user's file alone makes.
func TestForeignFileNarrowsByLaw(t *testing.T) {
	held, refusals := 0, 0
	law := func(t *rapid.T) {
		mine := policyfile.Layer{Name: "user", Changes: changes().Draw(t, "user"), Trusted: true}
		theirs := policyfile.Layer{Name: "workspace", Changes: changes().Draw(t, "workspace"), Workspace: true}
		typed := policyfile.Flags(changes().Draw(t, "flags"))
		for _, around := range [][]policyfile.Layer{{}, {typed}} {
			without, err := policyfile.Apply(base(), append([]policyfile.Layer{mine}, around...)...)
			if err != nil {
				continue
			}
			e, err := policyfile.Apply(base(), append([]policyfile.Layer{mine, theirs}, around...)...)
			if err != nil {
				refusals++
				continue
			}
			held++
			if !e.Policy.Within(without.Policy) {
				t.Fatalf("wider: %+v\nthan %+v", e.Policy, without.Policy)
			}
			met := policy.Meet(without.Policy, e.Policy)
			if !reflect.DeepEqual(met.Canonical(), e.Policy.Canonical()) {
				t.Fatalf("got  %+v\nwant what both allow, %+v", e.Policy.Canonical(), met.Canonical())
			}
			if without.Audit && !e.Audit || without.Approval == "never" && e.Approval != "never" ||
				e.Fetch != without.Fetch || e.Provider != without.Provider {
				t.Fatalf("settings: got %+v, want at most %+v", e, without)
			}
		}
	}
	// With -short one round draws too few files to see both ends.
	for round := 0; round < 20 && (held < 20 || refusals < 20) && !t.Failed(); round++ {
		rapid.Check(t, law)
	}
	if held < 20 || refusals < 20 {
		t.Errorf("%d files held and %d were refused: that tests little", held, refusals)
	}
}

// TestOriginsAreComplete: every rule has the layer that a look at the layers
// finds, and a policy without layers has none.
func TestOriginsAreComplete(t *testing.T) {
	if e := apply(t); len(e.Origins) != 0 || !reflect.DeepEqual(e.Policy, base()) {
		t.Errorf("no layers: got %+v", e)
	}
	rapid.Check(t, func(t *rapid.T) {
		l := policyfile.Layer{Name: "drawn", Changes: changes().Draw(t, "changes"), Trusted: true}
		e, err := policyfile.Apply(base(), l)
		if err != nil {
			t.Skip()
		}
		for _, c := range e.Policy.Protect.Hidden {
			if o, ok := e.Origins.Of("protect", c); !ok || o.Layer != "drawn" {
				t.Fatalf("protect %s has no origin", c)
			}
		}
		if o, ok := e.Origins.Of("profile", ""); ok && o.Value != e.Policy.Profile.String() {
			t.Fatalf("got the profile %s from %+v", e.Policy.Profile, o)
		}
	})
}

// TestSharedSlices: applying never writes into the base.
func TestSharedSlices(t *testing.T) {
	b := base()
	b.Read = append(make([]string, 0, 8), "/a")
	b.Env.Set = map[string]string{"A": "0"}
	b.Accept = map[policy.Guarantee]policy.Grade{policy.Read: policy.Partial}
	l := user(t, "allow-read = [\"/b\"]\nenv = [\"A=1\"]\naccept = [\"read=none\"]")
	if _, err := policyfile.Apply(b, l); err != nil {
		t.Fatal(err)
	}
	if got := b.Read[:2][1]; got != "" || b.Env.Set["A"] != "0" || b.Accept[policy.Read] != policy.Partial {
		t.Errorf("the base was written: %q %v %v", got, b.Env.Set, b.Accept)
	}
}

// TestFetchNetwork: what fetch may reach is its own word, where it has one.
func TestFetchNetwork(t *testing.T) {
	gated := policy.Network{Mode: policy.Gated, Public: true, Allow: []string{"a.example"}, Deny: []string{"b.example"}}
	rules := "allow-host = [\"a.example\"]\ndeny-host = [\"b.example\"]\n"
	for _, c := range []struct {
		text string
		want policy.Network
	}{
		{"network = \"gated\"\n" + rules, gated},
		{"network = \"none\"\n", policy.Network{}},
		{"network = \"none\"\nfetch = \"public\"\n" + rules, gated},
		{"network = \"none\"\nfetch = \"listed\"\n" + rules, policy.Network{Mode: policy.Gated, Allow: gated.Allow, Deny: gated.Deny}},
		{"network = \"gated\"\nfetch = \"listed\"\n" + rules, policy.Network{Mode: policy.Gated, Allow: gated.Allow, Deny: gated.Deny}},
		{"network = \"gated\"\nfetch = \"none\"\n" + rules, policy.Network{}},
		{"network = \"open\"\n", policy.Network{Mode: policy.Open}},
		{"network = \"open\"\nfetch = \"none\"\n", policy.Network{}},
		{"network = \"open\"\nfetch = \"listed\"\n", policy.Network{Mode: policy.Gated}},
	} {
		e, err := policyfile.Apply(base(), user(t, c.text))
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if !reflect.DeepEqual(e.FetchNetwork, c.want) {
			t.Errorf("%s: got %+v, want %+v", c.text, e.FetchNetwork, c.want)
		}
	}
	// A workspace's file may only turn it down.
	for text, ok := range map[string]bool{`fetch = "none"`: true, `fetch = "public"`: false, `fetch = "listed"`: false} {
		l := user(t, text)
		l.Trusted = false
		if _, err := policyfile.Apply(base(), l); (err == nil) != ok {
			t.Errorf("%s: got %v", text, err)
		}
	}
}
