package enforce_test

import (
	"reflect"
	"testing"

	"github.com/tether-sandbox/tether/internal/enforce"
)

func TestOpenings(t *testing.T) {
	bind := func(dst string, f enforce.Flags) enforce.Step {
		return enforce.Step{Do: enforce.Bind, Src: dst, Dst: dst, Flags: f}
	}
	open := func(paths ...string) []enforce.Opening {
		var out []enforce.Opening
		for _, p := range paths {
			out = append(out, enforce.Opening{Path: p, Devices: p == "/dev"})
		}
		return out
	}
	for _, c := range []struct {
		name  string
		steps []enforce.Step
		want  []enforce.Opening
	}{
		{"nothing", nil, nil},
		{"what every world has", enforce.Foundation(), open("/dev", "/proc")},
		{"a view", []enforce.Step{bind("/usr", enforce.ReadOnly), bind("/w", 0)}, open("/w")},
		{"a scratch folder", []enforce.Step{{Do: enforce.Tmpfs, Dst: "/tmp"}}, open("/tmp")},
		{"a sealed one", []enforce.Step{{Do: enforce.Tmpfs, Dst: "/root"}, {Do: enforce.Seal, Dst: "/root"}}, nil},
		{"a later mount at the same place", []enforce.Step{{Do: enforce.Tmpfs, Dst: "/w"}, bind("/w", enforce.ReadOnly)}, nil},
		{"a later one that is writable", []enforce.Step{bind("/w", enforce.ReadOnly), {Do: enforce.Tmpfs, Dst: "/w"}}, open("/w")},
		{"what hides, locks and pins", []enforce.Step{bind("/w", 0), {Do: enforce.MaskFile, Dst: "/w/.env"}, {Do: enforce.Cover, Dst: "/w/home"},
			{Do: enforce.Self, Dst: "/w/.git/config", Flags: enforce.ReadOnly}, {Do: enforce.Self, Dst: "/w/.git"}, {Do: enforce.File, Dst: "/w/f"}}, open("/w")},
		{"a file", []enforce.Step{bind("/w/one", enforce.IsFile)}, open("/w/one")},
		{"one place once", []enforce.Step{bind("/w", 0), bind("/w", 0)}, open("/w")},
	} {
		if got := enforce.Openings(c.steps); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
}
