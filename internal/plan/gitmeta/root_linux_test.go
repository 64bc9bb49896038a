package gitmeta

import (
	"os"
	"path/filepath"
	"testing"
)

// A root whose parent is a link by now leads elsewhere: nothing there is touched,
// neither at the end nor during the command. Control: without the link it is.
func TestRootBehindLink(t *testing.T) {
	for _, linked := range []bool{false, true} {
		w := newWorld(t)
		w.ws = filepath.Join(w.top, "a/ws")
		victim := filepath.Join(w.top, "victim/ws")
		for _, dir := range []string{w.ws, victim} {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		w.sh("git init -q . && rm -rf .git/hooks; git init -q " + victim + " && rm -rf " + victim + "/.git/hooks")
		w.take()
		theirs := filepath.Join(victim, ".git/hooks/pre-commit")
		w.sh("mkdir -p " + filepath.Dir(theirs) + " .git/hooks; : > " + theirs + "; : > .git/hooks/pre-commit; chmod 755 " + theirs + "; mkdir " + victim + "/shut")
		if linked {
			w.sh("mv ../../a ../../b; ln -s victim ../../a")
		}
		repos := w.discover()
		if err := os.Chmod(filepath.Join(victim, "shut"), 0); err != nil {
			t.Fatal(err)
		}
		early := NewEarly(w.snapshot, w.ward)
		_, _, errEarly := early.Settle([]string{filepath.Join(w.ws, ".git")})
		_, errAway := early.TakeAway(w.ws, []Finding{{Path: filepath.Join(w.ws, ".git/hooks/pre-commit"), Kind: KindHook}})
		_, errEnd := Settle(w.snapshot, repos, w.ward)
		OpenUp(w.ws, []string{filepath.Join(w.ws, "shut")}, func(_, _ uint64) bool { return false })
		for what, err := range map[string]error{"early": errEarly, "take away": errAway, "settle": errEnd, "reachable": Reachable(w.ws)} {
			if (err != nil) != linked {
				t.Errorf("linked %v: %s: %v", linked, what, err)
			}
		}
		if _, err := os.Lstat(theirs); err != nil {
			t.Errorf("linked %v: the other's hook: %v", linked, err)
		}
		if st, err := os.Stat(filepath.Join(victim, "shut")); err != nil || st.Mode().Perm() != 0 {
			t.Errorf("linked %v: the other's folder: %v, %v", linked, st.Mode(), err)
		}
		if _, err := os.Lstat(filepath.Join(w.ws, ".git/hooks/pre-commit")); (err == nil) != linked {
			t.Errorf("linked %v: control: our hook: %v", linked, err)
		}
	}
}
