package need

import "testing"

func TestRequired(t *testing.T) {
	for _, c := range []struct {
		list, feature string
		want          bool
	}{
		{"", "bwrap", false},
		{"all", "bwrap", true},
		{"all,-casefold", "bwrap", true},
		{"all,-casefold", "casefold", false},
		{"-bwrap", "bwrap", false},
		{"userns, bwrap", "bwrap", true},
		{"userns,bwrapx", "bwrap", false},
	} {
		if got := required(c.list, c.feature); got != c.want {
			t.Errorf("required(%q, %q): got %v, want %v", c.list, c.feature, got, c.want)
		}
	}
}
