package tether

import (
	"testing"

	"github.com/tether-sandbox/tether/policy"
)

// TestStandings: a guarantee is raised by what raises it by itself, and by what
// makes a better provider work.
func TestStandings(t *testing.T) {
	weak := Report{Grades: []Grade{{Guarantee: policy.Write, Grade: policy.Partial, Reason: "w"}, {Guarantee: policy.Read, Grade: policy.Complete}}}
	facts := []Fact{{What: "a", Fix: "fix native", Blocks: []string{"native"}}, {What: "b", Fix: "fix limits", Raises: []policy.Guarantee{policy.LimitsGuarantee}},
		{What: "c", Good: true, Fix: "no need", Blocks: []string{"native"}}, {What: "d", Fix: "fix landlock", Blocks: []string{"landlock"}}}
	get := func(list []Standing, g policy.Guarantee) Standing {
		for _, s := range list {
			if s.Guarantee == g {
				return s
			}
		}
		t.Fatalf("%s is not in %v", g, list)
		return Standing{}
	}
	list := standings(facts, []Provider{{Name: "native"}, {Name: "landlock", Works: true, Report: &weak}})
	if s := get(list, policy.Write); s.Grade != policy.Partial || s.Provider != "landlock" || s.Reason != "w" || s.Raise != "fix native" {
		t.Errorf("write: got %+v, want it raised by native", s)
	}
	if s := get(list, policy.Read); s.Raise != "" {
		t.Errorf("read: got %+v, want nothing to raise", s)
	}
	list = standings(facts, []Provider{{Name: "native"}, {Name: "landlock"}})
	if s := get(list, policy.LimitsGuarantee); s.Grade != policy.None || s.Provider != "" || s.Raise != "fix native\nfix limits\nfix landlock" {
		t.Errorf("limits: got %+v, want all fixes", s)
	}
}

// TestHarmless: what is in the way of what works is not.
func TestHarmless(t *testing.T) {
	facts := []Fact{{What: "a", Fix: "x", Blocks: []string{"native", "bwrap"}}, {What: "b", Fix: "x", Blocks: []string{"landlock"}}}
	harmless(facts, []Provider{{Name: "native"}, {Name: "landlock", Works: true}})
	if facts[0].Good || facts[1].Good {
		t.Errorf("got %+v, want nothing changed: native does not work", facts)
	}
	harmless(facts, []Provider{{Name: "native", Works: true}})
	if !facts[0].Good || facts[0].Fix != "" || facts[1].Good {
		t.Errorf("got %+v, want the first alone taken for harmless", facts)
	}
}
