package typo

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestNearest(t *testing.T) {
	words := []string{"read-only", "workspace-write", "full-access", "ask"}
	for s, want := range map[string]string{
		"readonly": "read-only", "Read_Only": "read-only", "red-only": "read-only", "workspace": "workspace-write", "wor": "workspace-write",
		"wo": "", "full acess": "full-access", "aks": "", "asks": "ask", "": "", "vm": "", "nothing-such": "",
		strings.Repeat("x", 50): "",
	} {
		if got := Nearest(s, words); got != want {
			t.Errorf("%q: got %q, want %q", s, got, want)
		}
	}
}

func TestDistanceLaws(t *testing.T) {
	text := rapid.StringOfN(rapid.RuneFrom([]rune("abc")), 0, 8, -1)
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := text.Draw(t, "a"), text.Draw(t, "b"), text.Draw(t, "c")
		if distance(a, a) != 0 || distance(a, b) != distance(b, a) || distance(a, c) > distance(a, b)+distance(b, c) || distance(a, "") != len(a) {
			t.Fatalf("%q %q %q", a, b, c)
		}
	})
}
