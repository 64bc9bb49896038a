package tether

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/tether-sandbox/tether/policy"
)

// draw draws a policy that is valid.
func draw(t *rapid.T, label string) policy.Policy {
	some := func(name string, from ...string) []string {
		var out []string
		for _, x := range from {
			if rapid.Bool().Draw(t, label+" "+name+" "+x) {
				out = append(out, x)
			}
		}
		return out
	}
	p := policy.Default(rapid.SampledFrom([]string{"/w", "/w", "/w/sub"}).Draw(t, label+" workspace"))
	p = p.WithProfile(rapid.SampledFrom([]policy.Profile{policy.ReadOnly, policy.WorkspaceWrite, policy.FullAccess}).Draw(t, label+" profile"))
	p.Read = some("read", "/a", "/a/b", "/c", "/usr/share")
	p.Env = policy.Env{Pass: some("pass", "A", "B"), Set: map[string]string{"X": rapid.SampledFrom([]string{"1", "2"}).Draw(t, label+" x")}}
	p.Commands = rapid.SampledFrom([]policy.Commands{policy.Inspection, policy.Any}).Draw(t, label+" commands")
	p.Limits.Processes = rapid.Int64Range(0, 3).Draw(t, label+" processes")
	if p.Profile == policy.FullAccess {
		p.Env.NoScrub = rapid.Bool().Draw(t, label+" no-scrub")
		return p
	}
	if p.Profile == policy.WorkspaceWrite {
		p.Write = some("write", "/a", "/c/d")
	}
	p.Protect = policy.Protect{Hidden: some("hidden", "*.x", "y"), Locked: some("locked", "z"), AllowConfig: some("config", ".vscode")}
	if rapid.Bool().Draw(t, label+" scoped") {
		p.Reads = policy.Reads{Only: some("only", "/usr/bin", "/opt/x")}
	}
	p.Network.Mode = rapid.SampledFrom([]policy.NetworkMode{policy.Offline, policy.Gated, policy.Open}).Draw(t, label+" network")
	if p.Network.Mode == policy.Gated {
		p.Network.Public = rapid.Bool().Draw(t, label+" public")
		p.Network.Allow = some("allow", "a.example:443", "b.example:443")
	}
	return p
}

// TestWithinLaw: what goes on with a session lies within what was asked for now
// and within what the session began with, and can be run.
func TestWithinLaw(t *testing.T) {
	whole := 0
	rapid.Check(t, func(t *rapid.T) {
		given, began := draw(t, "given"), draw(t, "began")
		if rapid.IntRange(0, 4).Draw(t, "alike") == 0 {
			began = given // two that are drawn apart seldom lie in one another
		}
		for _, p := range []policy.Policy{given, began} {
			if err := p.Validate(); err != nil {
				t.Skip(err)
			}
		}
		got, all := within(given, began)
		if all {
			whole++
		}
		if got.Commands > given.Commands || got.Commands > began.Commands || got.Env.Set["X"] != given.Env.Set["X"] {
			t.Fatalf("got %+v of %+v", got, given)
		}
		for _, bound := range []policy.Policy{given, began} {
			if !neutral(got).Within(neutral(bound)) {
				t.Fatalf("got\n%+v, want it within\n%+v", got, bound)
			}
		}
		if got.Env.NoScrub && (!given.Env.NoScrub || !began.Env.NoScrub) {
			t.Fatalf("got %+v of %+v and %+v", got.Env, given.Env, began.Env)
		}
		same, all := within(given, given)
		if !all || same.Workspace != given.Workspace {
			t.Fatal("a policy is not within itself")
		}
		if got.Workspace == "" {
			return // nothing in common; refused when something is to run
		}
		for _, mode := range []policy.Profile{policy.ReadOnly, policy.WorkspaceWrite, policy.FullAccess} {
			now := inMode(got, mode)
			if mode != policy.FullAccess && (now.Network.Mode > given.Network.Mode || now.Network.Mode > began.Network.Mode) {
				t.Fatalf("%v: the network is %v", mode, now.Network.Mode)
			}
			if err := now.Validate(); err != nil {
				t.Fatalf("%v: %v: %+v", mode, err, now)
			}
		}
	})
	if whole == 0 {
		t.Error("no two policies lay in one another")
	}
}
