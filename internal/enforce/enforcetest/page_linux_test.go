package enforcetest_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/tether-sandbox/tether/internal/enforce/enforcetest"
)

var update = flag.Bool("update", false, "write docs/attacks.md and the matrix in SECURITY.md anew")

// The lines of SECURITY.md between which the matrix stands.
const (
	matrixBegin = "<!-- attacks: made by go test ./internal/enforce/enforcetest -run TestPages -update -->\n"
	matrixEnd   = "<!-- attacks end -->\n"
)

// TestPages holds what the documents say of the attacks to the table, which
// TestAttacks and TestLifecycle hold to what happens.
func TestPages(t *testing.T) {
	attacks, providers := enforcetest.Attacks(), enforcetest.Providers()
	rows := map[string]bool{}
	for _, row := range enforcetest.Rows() {
		rows[row] = true
	}
	known := map[string]bool{}
	for _, p := range providers {
		known[p.Name] = true
	}
	names := map[string]bool{}
	for _, a := range attacks {
		if names[a.Name] || !rows[a.Guarantee] || strings.ContainsAny(a.Name, "|\n") {
			t.Errorf("%q of %q: twice, of no guarantee, or not for a table", a.Name, a.Guarantee)
		}
		names[a.Name] = true
		for p, why := range a.Limits {
			if !known[p] || why == "" || strings.ContainsAny(why, "|\n") {
				t.Errorf("%q: the limit %q of %q", a.Name, why, p)
			}
		}
	}
	if len(attacks) < 100 {
		t.Errorf("only %d attacks", len(attacks))
	}

	list := fmt.Sprintf(`# Attacks

Made from the table by `+"`go test ./internal/enforce/enforcetest -run TestPages -update`"+`. Each of the %d attacks is carried out for real, on
every provider that a machine has, as root and as an ordinary user, and first without Tether, to show that the door is there. *Held*:
it must not succeed; a *limit* succeeds, for the reason given. A door that is open to root alone is tried, and must stay closed, for
ordinary users, too.

`, len(attacks)) + enforcetest.List(attacks, providers)
	compare(t, "../../../docs/attacks.md", list)

	const path = "../../../SECURITY.md"
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok1 := strings.Cut(string(raw), matrixBegin)
	_, after, ok2 := strings.Cut(rest, matrixEnd)
	if !ok1 || !ok2 {
		t.Fatalf("SECURITY.md has no %q and %q", matrixBegin, matrixEnd)
	}
	compare(t, path, before+matrixBegin+enforcetest.Matrix(attacks, providers)+matrixEnd+after)
}

func compare(t *testing.T, path, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s is not what the table says (%v): go test ./internal/enforce/enforcetest -run TestPages -update", path, err)
	}
}
