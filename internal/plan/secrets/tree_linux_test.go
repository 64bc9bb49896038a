package secrets

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/tether-sandbox/tether/internal/need"
	"github.com/tether-sandbox/tether/policy"
)

// findCached is find with what is remembered in state.
func findCached(t testing.TB, state string, settle time.Duration, rules Rules, root string) Result {
	t.Helper()
	c := OpenCache(state)
	c.settle = settle
	res, err := Find(context.Background(), []Root{{root}}, rules, c)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Save(); err != nil {
		t.Fatal(err)
	}
	return res
}

func privateFolder(t testing.TB) string {
	t.Helper()
	dir := tempRoot(t)
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestRememberedFoldersChangeNothing is a law: with a memory, after whatever
// changes, Find returns what it returns without one.
func TestRememberedFoldersChangeNothing(t *testing.T) {
	const settle = 25 * time.Millisecond
	root, state := tempRoot(t), privateFolder(t)
	rules := builtinRules(t)
	r := rand.New(rand.NewPCG(1, 2))
	names := []string{".env", "a.pem", "k.key", ".ssh", ".git", "HEAD", "objects", "refs", "commondir", "src", "lib", "x.txt", ".vscode", "deep", "deeper"}
	listed, all := 0, 0
	for round := range 120 {
		dirs := []string{root}
		filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
			if err == nil && d.IsDir() && d.Name() != ".ssh" {
				dirs = append(dirs, path)
			}
			return nil
		})
		pick := func() string { return filepath.Join(dirs[r.IntN(len(dirs))], names[r.IntN(len(names))]) }
		for range 1 + r.IntN(4) {
			switch path := pick(); r.IntN(9) {
			case 0, 1, 2:
				os.MkdirAll(path, 0o755)
			case 3:
				os.WriteFile(path, []byte(certPEM), 0o644)
			case 4:
				os.WriteFile(path, []byte(keyPEM), 0o644)
			case 5:
				os.Symlink(pick(), path)
			case 6:
				os.Link(pick(), path)
			case 7:
				os.Rename(pick(), path)
			default:
				if r.IntN(4) == 0 {
					os.RemoveAll(path)
				}
			}
		}
		if round%2 == 0 {
			time.Sleep(settle + 10*time.Millisecond)
		}
		want := find(t, root)
		got := findCached(t, state, settle, rules, root)
		listed, all = listed+got.Stats.Listed, all+got.Stats.Dirs
		if got.Stats.Dirs != want.Stats.Dirs || got.Stats.Files != want.Stats.Files {
			t.Fatalf("round %d: counts: got %+v, want %+v", round, got.Stats, want.Stats)
		}
		got.Stats, want.Stats = Stats{}, Stats{}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("round %d: got %+v, want %+v", round, got, want)
		}
	}
	if listed*2 > all {
		t.Errorf("control: listed %d of %d folders, want less than half: nothing was remembered", listed, all)
	}
}

func TestRememberedFoldersNeedTheSameRules(t *testing.T) {
	root, state := tempRoot(t), privateFolder(t)
	plant(t, root, "a/b/plain", "x", "c/plain", "x")
	time.Sleep(50 * time.Millisecond)
	run := func(p policy.Protect) Result {
		t.Helper()
		rules, err := RulesOf(p)
		if err != nil {
			t.Fatal(err)
		}
		return findCached(t, state, 25*time.Millisecond, rules, root)
	}
	run(policy.Protect{})
	if res := run(policy.Protect{}); res.Stats.Listed != 0 {
		t.Fatalf("control: got %d listed, want none", res.Stats.Listed)
	}
	if res := run(policy.Protect{Hidden: []string{"plain"}}); len(res.Masks) != 2 {
		t.Errorf("got masks %q, want 2", covers(root, res.Masks))
	}
	if res := run(policy.Protect{Hidden: []string{"a/b/plain"}}); len(res.Masks) != 1 {
		t.Errorf("got masks %q, want 1", covers(root, res.Masks))
	}
}

// TestRememberedFolderClosed: its owner closes a folder that is remembered.
func TestRememberedFolderClosed(t *testing.T) {
	need.Ordinary(t)
	root, state := tempRoot(t), privateFolder(t)
	plant(t, root, "a/.env", "S", "a/b/x", "x", "c/.env", "S", ".env", "S")
	time.Sleep(50 * time.Millisecond)
	findCached(t, state, 25*time.Millisecond, builtinRules(t), root)
	for path, mode := range map[string]os.FileMode{"a": 0, "c": 0o444} {
		path = filepath.Join(root, path)
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.Chmod(path, 0o755) })
	}
	for range 3 {
		res := findCached(t, state, 0, builtinRules(t), root)
		if got, want := fmt.Sprint(covers(root, res.Masks)), "[.env a/ c/]"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	// The root itself: what it holds cannot be reached, so it is masked whole.
	if err := os.Chmod(root, 0o444); err != nil {
		t.Fatal(err)
	}
	res := findCached(t, state, 0, builtinRules(t), root)
	os.Chmod(root, 0o755)
	if len(res.Masks) != 1 || res.Masks[0].Path != root || res.Masks[0].Kind != MaskDir {
		t.Errorf("got %+v, want the root alone", res.Masks)
	}
}

func TestAliasesWithoutInodesInEntries(t *testing.T) {
	root := tempRoot(t)
	plant(t, root, ".env", "S", "d/notes", "= .env", "d/other", "x")
	f := &finder{rules: builtinRules(t), roots: []string{root}}
	if err := f.searchRoot(context.Background(), root); err != nil {
		t.Fatal(err)
	}
	for i := range f.hits {
		f.hits[i].exact = false
	}
	if !f.wantAliases() || !f.aliases.every {
		t.Fatal("got no search of every entry")
	}
	clear(f.aliases.inodes)
	if err := f.findAliases(context.Background()); err != nil {
		t.Fatal(err)
	}
	f.mask()
	if got, want := fmt.Sprint(covers(root, f.out.Masks)), "[.env d/notes]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
