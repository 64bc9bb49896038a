package gitmeta

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// What was there before is not taken back because the folder around it was moved,
// above all not when nothing more is kept: it was locked, and would be gone.
func TestEarlyLeavesWhatWasThere(t *testing.T) {
	w := newWorld(t)
	w.sh("git init -q other; rm -rf other/.git/hooks; git -C other config core.sshCommand 'ssh -v'")
	w.write("other/.git/hooks/pre-push", "theirs", 0o755)
	w.take()
	config := w.read("other/.git/config")
	early := NewEarly(w.snapshot, w.ward)
	early.entries = 0
	w.sh("mv other o2")
	w.write("o2/.git/hooks/pre-commit", "planted", 0o755)
	w.write("o2/.git/config.worktree", "[core]\n\tfsmonitor = x\n", 0o644)
	found, _, err := early.Settle([]string{filepath.Join(w.ws, "o2/.git")})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := w.got(found), []string{"removed o2/.git/hooks/pre-commit", "rewritten o2/.git/config.worktree"}; !slices.Equal(got, want) {
		t.Errorf("did %q, want %q", got, want)
	}
	if got := w.read("o2/.git/hooks/pre-push"); got != "theirs" {
		t.Errorf("their hook says %q", got)
	}
	if got := w.read("o2/.git/config"); got != config {
		t.Errorf("their configuration says %q", got)
	}
	// The end still looks at it, and keeps it.
	if got := w.got(w.settle()); !slices.Contains(got, "quarantined o2/.git/hooks/pre-push") {
		t.Errorf("the end did %q", got)
	}
	// Changed, it is theirs no longer.
	w.write("o2/.git/hooks/pre-push", "planted", 0o755)
	if found, _, _ := early.Settle([]string{filepath.Join(w.ws, "o2/.git")}); !slices.Equal(w.got(found), []string{"removed o2/.git/hooks/pre-push"}) {
		t.Errorf("a changed one: %q", w.got(found))
	}
}

// Nothing is touched but the file that was judged, whatever took its place.
func TestEarlyTouchesWhatWasJudged(t *testing.T) {
	for _, swapped := range []bool{false, true} {
		w := newWorld(t)
		w.sh("git init -q a; git init -q b; rm -rf a/.git/hooks b/.git/hooks")
		w.write("b/.git/hooks/pre-push", "theirs", 0o755)
		w.write("b/.git/config.worktree", "[core]\n\tfsmonitor = x\n", 0o644)
		w.take()
		w.write("a/.git/hooks/pre-push", "planted", 0o755)
		w.write("a/.git/config.worktree", "[core]\n\tfsmonitor = x\n", 0o644)
		early := NewEarly(w.snapshot, w.ward)
		s, err := openAfter(w.ws, nil, w.ward)
		if err != nil {
			t.Fatal(err)
		}
		defer s.close()
		s.before, s.early = w.snapshot.Items, early
		s.gitDir(filepath.Join(w.ws, "a/.git"), 0)
		todo := compare(w.snapshot, s.items)
		if swapped {
			w.sh("mv a c; mv b a")
		}
		found, err := s.carryOut(todo, w.ward)
		want := []string{"quarantined a/.git/hooks/pre-push", "rewritten a/.git/config.worktree"}
		if swapped {
			want = nil
		}
		if err != nil || !slices.Equal(w.got(done(found)), want) {
			t.Errorf("swapped %v: did %q, %v, want %q", swapped, w.got(found), err, want)
		}
		if _, err := os.Lstat(filepath.Join(w.ws, "a/.git/hooks/pre-push")); (err == nil) != swapped {
			t.Errorf("swapped %v: a/.git/hooks/pre-push: %v", swapped, err)
		}
	}
}
