package local

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tether-sandbox/tether/internal/plan/gitmeta"
)

// tally is what was taken back while a command ran, each place once however often
// the command made it.
type tally struct {
	found []gitmeta.Finding
	times map[tallied]int
	more  map[string]int
}

type tallied struct{ path, kind, action string }

func (t *tally) add(f gitmeta.Finding) {
	if t.times == nil {
		t.times, t.more = map[tallied]int{}, map[string]int{}
	}
	key := tallied{f.Path, f.Kind, f.Action}
	switch {
	case t.times[key] > 0:
		t.times[key]++
	case len(t.found) < mostOfKind:
		t.found = append(t.found, f)
		t.times[key] = 1
	default:
		t.more[f.Kind]++
	}
}

// list returns it. What is too much to be listed is counted, as at root.
func (t *tally) list(root string) []gitmeta.Finding {
	out := slices.Clone(t.found)
	for i := range out {
		f := &out[i]
		if n := t.times[tallied{f.Path, f.Kind, f.Action}]; n > 1 {
			f.What += fmt.Sprintf(", %d times", n)
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(t.more)) {
		out = append(out, gitmeta.Finding{Path: root, Kind: kind, What: fmt.Sprintf("%d more of this kind in it, while the command ran", t.more[kind]),
			Action: gitmeta.Removed})
	}
	return out
}
