package policyfile_test

import (
	"strings"
	"testing"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/policyfile"
	"github.com/tether-sandbox/tether/policy"
)

// base is what every test starts from: the built-in policy of a workspace.
func base() policy.Policy { return policy.Default("/w") }

func parse(t *testing.T, name, text string) policyfile.Layer {
	t.Helper()
	l, err := policyfile.Parse(name, []byte(text))
	if err != nil {
		t.Fatalf("%s: %v (%s)", name, err, fault.HintOf(err))
	}
	return l
}

// user, foreign and flags make the three layers.
func user(t *testing.T, text string) policyfile.Layer {
	l := parse(t, "user.toml", text)
	l.Trusted = true
	return l
}

func foreign(t *testing.T, text string) policyfile.Layer {
	l := parse(t, ".tether/policy.toml", text)
	l.Workspace = true
	return l
}

func flags(t *testing.T, words ...string) policyfile.Layer {
	t.Helper()
	var changes []policyfile.Change
	for _, w := range words {
		key, value, _ := strings.Cut(w, " ")
		c, err := policyfile.Flag(key, value)
		if err != nil {
			t.Fatalf("flag %s: %v", w, err)
		}
		changes = append(changes, c)
	}
	return policyfile.Flags(changes)
}

func apply(t *testing.T, layers ...policyfile.Layer) policyfile.Effective {
	t.Helper()
	e, err := policyfile.Apply(base(), layers...)
	if err != nil {
		t.Fatalf("%v (%s)", err, fault.HintOf(err))
	}
	return e
}
