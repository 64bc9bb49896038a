package policyfile_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/policyfile"
	"github.com/tether-sandbox/tether/policy"
)

type failer interface {
	Helper()
	Fatalf(string, ...any)
}

// again renders e, reads it back and wants the same.
func again(t failer, e policyfile.Effective) {
	t.Helper()
	text := policyfile.Render(e)
	l, err := policyfile.Parse("rendered", []byte(text))
	if err != nil {
		t.Fatalf("%v (%s)\n%s", err, fault.HintOf(err), text)
	}
	l.Trusted = true
	got, err := policyfile.Apply(base(), l)
	if err != nil {
		t.Fatalf("%v (%s)\n%s", err, fault.HintOf(err), text)
	}
	if g, w := plain(got), plain(e); !reflect.DeepEqual(g, w) {
		t.Fatalf("%s\ngot  %+v\nwant %+v", text, g, w)
	}
	if !reflect.DeepEqual(got.Policy.Canonical(), e.Policy.Canonical()) {
		t.Fatalf("%s\nallows something else: %+v", text, got.Policy)
	}
}

// plain forgets the order of lists, their repeats, and what says nothing.
func plain(e policyfile.Effective) policyfile.Effective {
	e.Origins, e.FetchNetwork = nil, policy.Network{}
	p := &e.Policy
	for _, list := range []*[]string{&p.Reads.Only, &p.Read, &p.Write, &p.Protect.Hidden, &p.Protect.Locked,
		&p.Protect.AllowConfig, &p.Network.Allow, &p.Network.Deny, &p.Env.Pass, &p.Env.Redact} {
		*list = slices.Compact(slices.Sorted(slices.Values(*list)))
		if len(*list) == 0 {
			*list = nil
		}
	}
	p.Network.Publish = slices.Compact(slices.Sorted(slices.Values(p.Network.Publish)))
	if len(p.Network.Publish) == 0 {
		p.Network.Publish = nil
	}
	if p.Network.Mode != policy.Gated {
		p.Network.Public = false
	}
	if len(p.Env.Set) == 0 {
		p.Env.Set = nil
	}
	if len(p.Accept) == 0 {
		p.Accept = nil
	}
	return e
}

func TestRenderRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { again(t, effective().Draw(t, "effective")) })
}

// effective draws what passes Validate, in /w.
func effective() *rapid.Generator[policyfile.Effective] {
	return rapid.Custom(func(t *rapid.T) policyfile.Effective {
		l := policyfile.Layer{Name: "drawn", Changes: changes().Draw(t, "changes"), Trusted: true}
		e, err := policyfile.Apply(base(), l)
		if err != nil {
			t.Skip(err.Error())
		}
		return e
	})
}

// TestRenderNames every rule's layer.
func TestRenderNamesLayers(t *testing.T) {
	e := apply(t,
		user(t, "allow-read = [\"/a\"]\ntimeout = \"5m\"\nprotect = [\"*.x\"]\n[set-env]\nV = \"1\""),
		foreign(t, "protect = [\"*.y\"]\nhome = \"private\""),
		flags(t, "timeout 60s", "allow-read /b", "env W"))
	got := policyfile.Render(e)
	for _, want := range []string{
		"# workspace \"/w\"\n",
		"profile = \"workspace-write\"  # built in\n",
		"allow-read = [\n  \"/a\",  # user.toml:1\n  \"/b\",  # flags\n]\n",
		"protect = [\n  \"*.x\",  # user.toml:3\n  \"*.y\",  # .tether/policy.toml:1\n]\n",
		"timeout = \"1m0s\"  # flags\n",
		"home = \"private\"  # .tether/policy.toml:2\n",
		"  \"W\",  # flags\n", "  \"V=1\",  # user.toml:5\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got\n%s\nwant in it %s", got, want)
		}
	}
	if got != policyfile.Render(e) {
		t.Error("the order is not stable")
	}
	again(t, e)
}

func TestRenderOddText(t *testing.T) {
	e := policyfile.Effective{Policy: base()}
	e.Policy.Read = []string{"/a\"b\\c\n\t\x1b[31m\u202e/é/\U0001F600", "/#x"}
	e.Policy.Env.Set = map[string]string{"home": "h", "A": "a\x7f\u0085"}
	again(t, e)
	if s := policyfile.Render(e); strings.ContainsAny(s, "\x1b\x7f\u0085\u202e") {
		t.Errorf("control characters reach the terminal: %q", s)
	}
	e.Policy.Read = []string{"/bad\xff", "/good"}
	text := policyfile.Render(e)
	l := parse(t, "f", text)
	l.Trusted = true
	if got := apply(t, l).Policy.Read; !reflect.DeepEqual(got, []string{"/good"}) {
		t.Errorf("got %q from\n%s", got, text)
	}
}
