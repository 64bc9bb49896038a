// Package need lets a test require a kernel feature or a real program.
//
// A missing one skips the test on a laptop, with the reason, and fails it
// where TETHER_NEED names the feature, as it does in CI: "all" names every one,
// and "-feature" takes one out of them that the machines there cannot have. A suite
// that skips what it cannot check must never look like one that checked it.
package need

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Missing ends the test because feature is not at hand: as a failure when
// TETHER_NEED requires it, as a skip otherwise.
func Missing(t testing.TB, feature, why string) {
	t.Helper()
	if required(os.Getenv("TETHER_NEED"), feature) {
		t.Fatalf("need: %s is required here but missing: %s", feature, why)
	}
	t.Skipf("need: %s is missing: %s", feature, why)
}

// Program returns the absolute path of a program that the test runs for real.
func Program(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		Missing(t, name, err.Error())
	}
	return path
}

// Root requires that the test runs as uid 0.
func Root(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("need: runs as root only (the suite runs as root and as an ordinary user)")
	}
}

// Ordinary requires that the test does not run as uid 0.
func Ordinary(t testing.TB) {
	t.Helper()
	if os.Geteuid() == 0 {
		t.Skip("need: runs as an ordinary user only (the suite runs as root and as an ordinary user)")
	}
}

func required(list, feature string) bool {
	needed := false
	for f := range strings.SplitSeq(list, ",") {
		switch f = strings.TrimSpace(f); f {
		case "-" + feature:
			return false
		case "all", feature:
			needed = true
		}
	}
	return needed
}
