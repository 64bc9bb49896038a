package flagset

import (
	"flag"
	"strings"
	"testing"
)

// Every flag that a policy is made of stands in help once, under a title, and
// fits into a line.
func TestHelpGroups(t *testing.T) {
	f := New("run")
	f.AddSession()
	in := map[string]int{}
	for _, g := range groups() {
		for _, name := range strings.Fields(g.names) {
			in[name]++
			if f.Set.Lookup(name) == nil {
				t.Errorf("%s: there is no flag %q", g.title, name)
			}
		}
	}
	f.Set.VisitAll(func(fl *flag.Flag) {
		if n := in[fl.Name]; n != 1 && short(fl.Name) == "" {
			t.Errorf("--%s stands in %d groups", fl.Name, n)
		}
	})
	var out strings.Builder
	f.Help(&out)
	for line := range strings.Lines(out.String()) {
		if len(line) > 124 {
			t.Errorf("%d columns: %s", len(line)-1, line)
		}
	}
}
