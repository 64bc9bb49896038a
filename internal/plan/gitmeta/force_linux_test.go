package gitmeta

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/tether-sandbox/tether/internal/need"
)

// across puts the ward on another file system than the workspace.
func (w *world) across() {
	w.t.Helper()
	shm, err := os.MkdirTemp("/dev/shm", "tether-test-")
	if err != nil {
		w.t.Skipf("no second file system: %v", err)
	}
	w.t.Cleanup(func() { os.RemoveAll(shm) })
	var a, b unix.Stat_t
	if unix.Stat(shm, &a) != nil || unix.Stat(w.ws, &b) != nil || a.Dev == b.Dev {
		w.t.Skip("no second file system")
	}
	w.ward = filepath.Join(shm, "q")
}

// Folders of git's in every mode give up what was planted in them, and have
// their modes back if they could be listed and searched.
func TestSettleThroughModes(t *testing.T) {
	need.Ordinary(t)
	for _, c := range []struct {
		modes string
		after os.FileMode // of .git/hooks
	}{
		{"chmod 555 .git/hooks", 0o555},
		{"chmod 500 .git/hooks .git", 0o500},
		{"chmod 444 .git/hooks", 0o744},
		{"chmod 0 .git/hooks", 0o700},
		{"chmod 111 .git/hooks .git", 0o711},
		{"chmod 555 .git/hooks; chmod 111 .git/hooks/pre-commit", 0o555},
	} {
		for _, far := range []bool{false, true} {
			w := newWorld(t)
			if far {
				w.across()
			}
			t.Cleanup(func() { _, _ = w.try(`chmod -R u+rwx .`) })
			w.sh(repoSetup)
			w.take()
			w.sh(hook + ` >.git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; ` + c.modes)
			found := w.settle()
			if got, want := w.got(found), []string{"quarantined .git/hooks/pre-commit"}; !slices.Equal(got, want) {
				t.Errorf("%s: got %q, want %q", c.modes, got, want)
				continue
			}
			if _, err := os.Lstat(found[0].QuarantinedTo); err != nil || exists(filepath.Join(w.ws, ".git/hooks/pre-commit")) {
				t.Errorf("%s: the hook is not in quarantine: %v", c.modes, err)
			}
			if fi, err := os.Stat(filepath.Join(w.ws, ".git/hooks")); err != nil || fi.Mode().Perm() != c.after {
				t.Errorf("%s: got %v, %v, want mode %o", c.modes, fi, err, c.after)
			}
		}
	}
}

// What was closed before the command stays closed and is not taken for new.
func TestClosedBefore(t *testing.T) {
	need.Ordinary(t)
	w := newWorld(t)
	w.sh(repoSetup + `; ` + hook + ` >.git/hooks/pre-commit; git init -q n; chmod 0 .git/hooks n/.git/config`)
	w.take()
	if got := w.settle(); len(got) != 0 {
		t.Errorf("got %+v, want nothing", got)
	}
	for _, p := range []string{".git/hooks", "n/.git/config"} {
		if fi, err := os.Lstat(filepath.Join(w.ws, p)); err != nil || fi.Mode().Perm() != 0 {
			t.Errorf("%s: got %v, %v, want it closed", p, fi, err)
		}
	}
	w.sh(`chmod 700 .git/hooks`)
}

// A configuration that the command closed is judged by what it says.
func TestClosedConfiguration(t *testing.T) {
	need.Ordinary(t)
	w := newWorld(t)
	w.sh(repoSetup)
	w.take()
	w.sh(monitor + `; chmod 200 .git/config; chmod 555 .git`)
	if got, want := w.got(w.settle()), []string{"rewritten .git/config"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	w.sh(`chmod 755 .git; chmod 644 .git/config`)
	if c := w.read(".git/config"); strings.Contains(c, "fsmonitor") || !strings.Contains(c, "bare") {
		t.Errorf("configuration: got %q, want the harmless rest", c)
	}
}

// Nothing in the way of the temporary file matters: its name cannot be known.
func TestTemporaryNames(t *testing.T) {
	w := newWorld(t)
	w.sh(repoSetup)
	w.take()
	w.sh(monitor + `; echo mine >$TOP/file; ln -s $TOP/file .git/config.tether-new; mkdir .git/config.tether`)
	if got, want := w.got(w.settle()), []string{"rewritten .git/config"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if raw, err := os.ReadFile(filepath.Join(w.top, "file")); err != nil || string(raw) != "mine\n" {
		t.Errorf("the file behind the link: got %q, %v", raw, err)
	}
	if names, _ := filepath.Glob(filepath.Join(w.ws, ".git/config.tether-*")); len(names) != 1 {
		t.Errorf("left over: got %q", names)
	}
}

func TestTakeAway(t *testing.T) {
	for _, far := range []bool{false, true} {
		for _, plant := range []string{`mkdir p; echo x >p/x`, `mkdir p; mkfifo p/f; chmod 0 p`, `echo x >p; chmod 0 p`, `mkfifo p`, `ln -s $TOP/outside p`,
			`truncate -s 1T p`, `echo x >p; ln p q`, `echo x >p; chmod 555 .`} {
			w := newWorld(t)
			if far {
				w.across()
			}
			outside := filepath.Join(w.top, "outside")
			if err := os.Mkdir(outside, 0o755); err != nil {
				t.Fatal(err)
			}
			w.sh(plant)
			path := filepath.Join(w.ws, "p")
			found, err := TakeAway(w.ws, []Finding{{Path: path, What: "planted"}, {Path: filepath.Join(w.ws, "absent"), What: "planted"}}, w.ward)
			if err != nil || len(found) != 2 || found[0].Action == Reported || found[1].Action != Reported {
				t.Errorf("%s, across %v: got %+v, %v", plant, far, found, err)
				continue
			}
			if exists(path) {
				t.Errorf("%s, across %v: it is still there", plant, far)
			}
			if _, err := os.Lstat(found[0].QuarantinedTo); err != nil {
				t.Errorf("%s, across %v: got %+v, %v, want it kept, or told of", plant, far, found[0], err)
			}
			if fi, err := os.Stat(outside); err != nil || fi.Mode().Perm() != 0o755 {
				t.Errorf("%s: outside: got %v, %v", plant, fi, err)
			}
			if fi, err := os.Stat(filepath.Join(w.ws, "q")); err == nil && fi.Mode().Perm() != 0o644 {
				t.Errorf("%s: the file's other name: got %v", plant, fi)
			}
			w.sh(`chmod -R u+rwx .`)
		}
	}
}

// What nothing helps against is an error that says how to go on.
func TestImmovable(t *testing.T) {
	w := newWorld(t)
	w.sh(repoSetup)
	w.take()
	w.sh(hook + ` >.git/hooks/pre-commit; chmod +x .git/hooks/pre-commit`)
	if out, err := w.try(`chattr +i .git/hooks/pre-commit`); err != nil {
		t.Skipf("files cannot be made immutable here: %s", out)
	}
	defer w.sh(`chattr -i .git/hooks/pre-commit 2>/dev/null || :`)
	found, err := Settle(w.snapshot, w.discover(), w.ward)
	if !errors.Is(err, ErrLeft) || len(found) != 1 || found[0].Action != Reported {
		t.Errorf("got %+v, %v, want one report and ErrLeft", found, err)
	}
	w.sh(`chattr -i .git/hooks/pre-commit`)
	if got, want := w.got(w.settle()), []string{"quarantined .git/hooks/pre-commit"}; !slices.Equal(got, want) {
		t.Errorf("then: got %q, want %q", got, want)
	}
}

func TestOpenUp(t *testing.T) {
	need.Ordinary(t)
	w := newWorld(t)
	w.sh(`mkdir -p a/b/c k/l; ln -s $TOP a/b/out; chmod 0 a/b/c; chmod 311 a/b; chmod 0 a; chmod 0 k/l k`)
	var k unix.Stat_t
	if err := unix.Lstat(filepath.Join(w.ws, "k"), &k); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(w.top)
	if err != nil {
		t.Fatal(err)
	}
	keep := func(dev, ino uint64) bool { return dev == k.Dev && ino == k.Ino }
	if !OpenUp(w.ws, []string{filepath.Join(w.ws, "a"), filepath.Join(w.ws, "k"), w.top}, keep) {
		t.Error("got nothing changed, want two folders opened")
	}
	if out, err := w.try(`ls a/b/c && ! ls k`); err != nil {
		t.Errorf("got %s, %v, want a open and k closed", out, err)
	}
	if fi, err := os.Stat(w.top); err != nil || fi.Mode() != before.Mode() {
		t.Errorf("outside: got %v, %v", fi, err)
	}
	if OpenUp(w.ws, []string{filepath.Join(w.ws, "a")}, keep) {
		t.Error("again: got changes, want none")
	}
	w.sh(`chmod -R u+rwx k`)
}

// A snapshot comes back from JSON as it was, whatever the names in it.
func TestSnapshotRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		path := rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 12), func(b []byte) string { return "/" + string(b) })
		s := Snapshot{Workspace: path.Draw(rt, "workspace"), Items: map[string]Item{}}
		for range rapid.IntRange(0, 4).Draw(rt, "items") {
			s.Items[path.Draw(rt, "path")] = Item{Role: RoleHook, Type: 'f', Exec: rapid.Bool().Draw(rt, "exec"), Sum: digest("x"), Keys: []string{digest("k")}}
		}
		if rapid.Bool().Draw(rt, "more") {
			s.Hooks, s.Includes, s.Commons, s.Closed = []HookDir{{path.Draw(rt, "hooks"), true}}, []string{path.Draw(rt, "include")}, []string{path.Draw(rt, "common")}, []string{"1:2"}
		}
		raw, err := json.Marshal(s)
		if err != nil {
			rt.Fatal(err)
		}
		var back Snapshot
		if err := json.Unmarshal(raw, &back); err != nil || !reflect.DeepEqual(s, back) {
			rt.Fatalf("got %+v, %v, want %+v", back, err, s)
		}
	})
}

func FuzzSnapshot(f *testing.F) {
	f.Add([]byte(`{"workspace":"Lw==","items":[{"path":"L/8=","role":2,"type":102,"sum":"x"}],"hooks":[{"path":"Lw=="}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var s, back Snapshot
		if json.Unmarshal(raw, &s) != nil {
			return
		}
		again, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(again, &back); err != nil || len(back.Items) != len(s.Items) || back.Workspace != s.Workspace {
			t.Errorf("got %+v, %v, want %+v", back, err, s)
		}
	})
}

func TestShellWord(t *testing.T) {
	w := newWorld(t)
	for _, s := range []string{"plain", "a b", "it's", "$(x)`y`", "new\nline", "\xff\\'\x1b", "\u202e"} {
		if out := w.sh("bash -c " + shellWord("printf %s "+shellWord(s))); out != s {
			t.Errorf("%q: got %q", s, out)
		}
	}
}
