package local

import (
	"testing"

	"github.com/tether-sandbox/tether/internal/plan"
	"github.com/tether-sandbox/tether/policy"
)

func TestFolders(t *testing.T) {
	for _, c := range []struct {
		name          string
		environ       []string
		state, config string
	}{
		{"nothing said", nil, "/h/.local/state/tether", "/h/.config/tether"},
		{"both said", []string{"XDG_STATE_HOME=/s", "XDG_CONFIG_HOME=/c"}, "/s/tether", "/c/tether"},
		{"relative ones are ignored", []string{"XDG_STATE_HOME=s", "XDG_CONFIG_HOME=./c"}, "/h/.local/state/tether", "/h/.config/tether"},
		{"empty ones are ignored", []string{"XDG_STATE_HOME=", "XDG_CONFIG_HOME="}, "/h/.local/state/tether", "/h/.config/tether"},
		{"names that only end or begin so", []string{"MY_XDG_STATE_HOME=/s", "XDG_STATE_HOMES=/s"}, "/h/.local/state/tether", "/h/.config/tether"},
	} {
		if state, config := Folders("/h", c.environ); state != c.state || config != c.config {
			t.Errorf("%s: got %s and %s, want %s and %s", c.name, state, config, c.state, c.config)
		}
	}
}

func TestLookup(t *testing.T) {
	env := []string{"A=1", "AB=2", "", "NOVALUE", "EMPTY=", "A=3", "EQ=a=b"}
	for name, want := range map[string]string{"A": "1", "AB": "2", "B": "", "NOVALUE": "", "EMPTY": "", "EQ": "a=b", "": ""} {
		if got := lookup(env, name); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}

// TestCacheKeys: a private cache belongs to one workspace under one policy.
// What runs under another width never finds what was left there, while time and
// output limits are no width.
func TestCacheKeys(t *testing.T) {
	base := func() policy.Policy { return policy.Default("/w") }
	seen := map[string]string{policyKey(base()): "the default"}
	for name, change := range map[string]func(*policy.Policy){
		"read-only":       func(p *policy.Policy) { p.Profile = policy.ReadOnly },
		"a read root":     func(p *policy.Policy) { p.Read = []string{"/r"} },
		"a write root":    func(p *policy.Policy) { p.Write = []string{"/r"} },
		"no network":      func(p *policy.Policy) { p.Network.Mode = policy.Offline },
		"a listed base":   func(p *policy.Policy) { p.Network.Public = false },
		"a variable":      func(p *policy.Policy) { p.Env.Pass = []string{"X"} },
		"a value":         func(p *policy.Policy) { p.Env.Set = map[string]string{"X": "1"} },
		"another value":   func(p *policy.Policy) { p.Env.Set = map[string]string{"X": "2"} },
		"listed reads":    func(p *policy.Policy) { p.Reads = policy.Reads{Only: []string{"/usr"}} },
		"more hidden":     func(p *policy.Policy) { p.Protect.Hidden = []string{"*.x"} },
		"a lifted lock":   func(p *policy.Policy) { p.Protect.AllowConfig = []string{".vscode"} },
		"a private home":  func(p *policy.Policy) { p.Home = policy.HomePrivate },
		"a lower promise": func(p *policy.Policy) { p.Accept = map[policy.Guarantee]policy.Grade{policy.Secrets: policy.None} },
	} {
		p := base()
		change(&p)
		key := policyKey(p)
		if other, taken := seen[key]; taken {
			t.Errorf("%s shares the cache of %s", name, other)
		}
		seen[key] = name
	}
	limited := base()
	limited.Limits = policy.Limits{Time: 5, OutputBytes: 6}
	if policyKey(limited) != policyKey(base()) {
		t.Error("limits of time and output give another cache")
	}
	plans := map[string]plan.Plan{
		"one":             {Workspace: plan.Root{Path: "/w", Dev: 1, Ino: 2}},
		"another path":    {Workspace: plan.Root{Path: "/v", Dev: 1, Ino: 2}},
		"another folder":  {Workspace: plan.Root{Path: "/w", Dev: 1, Ino: 3}},
		"another device":  {Workspace: plan.Root{Path: "/w", Dev: 2, Ino: 2}},
		"another user":    {Workspace: plan.Root{Path: "/w", Dev: 1, Ino: 2}, Identity: plan.Identity{UID: 7}},
		"digits that run": {Workspace: plan.Root{Path: "/w", Dev: 11, Ino: 2}},
	}
	keys := map[string]string{}
	for name, p := range plans {
		key := workspaceKey(&p)
		if other, taken := keys[key]; taken {
			t.Errorf("%s has the key of %s", name, other)
		}
		keys[key] = name
	}
}
