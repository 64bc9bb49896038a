package secrets

import (
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// youngRepo is a repository whose index is as young as its files.
func youngRepo(t *testing.T, init ...string) string {
	t.Helper()
	root := tempRoot(t)
	gitIn(t, root, append([]string{"init", "-q"}, init...)...)
	plant(t, root, ".env", "S3NTINEL", "a/b.txt", "text\n", "old", "old\n")
	if err := os.Symlink("b.txt", filepath.Join(root, "a/link")); err != nil {
		t.Fatal(err)
	}
	past := time.Now().Add(-time.Hour)
	if err := os.Chtimes(filepath.Join(root, "old"), past, past); err != nil {
		t.Fatal(err)
	}
	gitIn(t, root, "add", "-A")
	// The index's own time is all that matters: give it that of the files.
	same(t, root)
	return root
}

// same makes the index as old as .env.
func same(t *testing.T, root string) {
	t.Helper()
	st, err := os.Stat(filepath.Join(root, ".env"))
	if err != nil {
		t.Fatal(err)
	}
	at := time.Unix(st.ModTime().Unix(), 0)
	if err := os.Chtimes(filepath.Join(root, ".git/index"), at, at); err != nil {
		t.Fatal(err)
	}
}

// youngest returns the names that git would read again.
func youngest(t *testing.T, root string) []string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, ".git/index"))
	if err != nil {
		t.Fatal(err)
	}
	st, err := os.Stat(filepath.Join(root, ".git/index"))
	if err != nil {
		t.Fatal(err)
	}
	list, err := racyEntries(raw, st.ModTime().Unix())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range list {
		names = append(names, e.name)
	}
	return names
}

func trust(root string, hidden ...string) error {
	return TrustIndex(context.Background(), filepath.Join(root, ".git"), root, hidden)
}

func TestTrustIndex(t *testing.T) {
	for _, init := range [][]string{nil, {"--object-format=sha256"}} {
		root := youngRepo(t, init...)
		if got := youngest(t, root); !slices.Contains(got, ".env") || !slices.Contains(got, "a/link") || slices.Contains(got, "old") {
			t.Fatalf("control: young entries: got %q, want .env and a/link and not old", got)
		}
		// Control: git reads such a file again, whatever its times say.
		if err := os.WriteFile(filepath.Join(root, "a/b.txt"), []byte("TEXT\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := trust(root, "a/other"); err != nil {
			t.Fatalf("no hidden file is young: got %v", err)
		}
		if err := os.WriteFile(filepath.Join(root, "a/b.txt"), []byte("text\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		before, _ := os.ReadFile(filepath.Join(root, ".git/index"))
		if err := trust(root, ".env"); err != nil {
			t.Fatalf("%v: got %v", init, err)
		}
		if after, _ := os.ReadFile(filepath.Join(root, ".git/index")); !slices.Equal(before, after) {
			t.Error("the index's content changed")
		}
		if got := youngest(t, root); slices.Contains(got, ".env") {
			t.Errorf("still young: %q", got)
		}
		if _, err := os.Lstat(filepath.Join(root, ".git/index.lock")); err == nil {
			t.Error("the lock was left behind")
		}
		if got := gitIn(t, root, "diff", "--name-only"); got != "" {
			t.Errorf("git diff: got %q, want nothing", got)
		}
		// What changes now is seen.
		time.Sleep(time.Second)
		if err := os.WriteFile(filepath.Join(root, ".env"), []byte("S3NTINEX"), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := gitIn(t, root, "diff", "--name-only"); got != ".env\n" {
			t.Errorf("git diff after a change: got %q, want .env", got)
		}
	}
}

// A file that was really changed within the second stays one that git reads.
func TestTrustIndexModified(t *testing.T) {
	for _, name := range []string{".env", "a/b.txt"} {
		root := youngRepo(t)
		path := filepath.Join(root, name)
		st, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		raw, _ := os.ReadFile(path)
		if err := os.WriteFile(path, []byte(strings.Repeat("x", len(raw))), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, st.ModTime(), st.ModTime()); err != nil {
			t.Fatal(err)
		}
		if err := trust(root, ".env"); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s modified: got %v, want an error that names it", name, err)
		}
		if got := gitIn(t, root, "-c", "core.trustctime=false", "-c", "core.checkStat=minimal", "diff", "--name-only"); got != name+"\n" {
			t.Errorf("%s modified: git diff: got %q, want it shown", name, got)
		}
	}
}

// A change that git sees by size alone is no reason to give up.
func TestTrustIndexOtherSize(t *testing.T) {
	root := youngRepo(t)
	if err := os.WriteFile(filepath.Join(root, "a/b.txt"), []byte("longer text\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(root, "a/link")); err != nil {
		t.Fatal(err)
	}
	if err := trust(root, ".env"); err != nil {
		t.Fatal(err)
	}
	if got := gitIn(t, root, "diff", "--name-only"); got != "a/b.txt\na/link\n" {
		t.Errorf("git diff: got %q, want both changes", got)
	}
}

func TestTrustIndexLeavesAlone(t *testing.T) {
	cases := []struct {
		name, want string
		spoil      func(t *testing.T, root string)
	}{
		{"git at work", "index.lock", func(t *testing.T, root string) { plant(t, root, ".git/index.lock", "") }},
		{"split", "split", func(t *testing.T, root string) { gitIn(t, root, "update-index", "--split-index"); same(t, root) }},
		{"from the future", "future", func(t *testing.T, root string) {
			at := time.Now().Add(time.Hour)
			if err := os.Chtimes(filepath.Join(root, ".env"), at, at); err != nil {
				t.Fatal(err)
			}
			gitIn(t, root, "add", ".env")
		}},
		{"filtered", "differs", func(t *testing.T, root string) {
			plant(t, root, "crlf.env", "a\r\nb\r\n")
			gitIn(t, root, "-c", "core.autocrlf=true", "add", "crlf.env")
			same(t, root)
		}},
		{"damaged", "index", func(t *testing.T, root string) { plant(t, root, ".git/index", "DIRC") }},
		{"a link", "symbolic", func(t *testing.T, root string) {
			if err := os.Rename(filepath.Join(root, ".git/index"), filepath.Join(root, "i")); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink("../i", filepath.Join(root, ".git/index")); err != nil {
				t.Fatal(err)
			}
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			root := youngRepo(t)
			c.spoil(t, root)
			before, err := os.Stat(filepath.Join(root, ".git/index"))
			if err != nil {
				t.Fatal(err)
			}
			if err := trust(root, ".env", "crlf.env"); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error about %q", err, c.want)
			}
			if after, _ := os.Stat(filepath.Join(root, ".git/index")); !after.ModTime().Equal(before.ModTime()) {
				t.Error("the index's time changed")
			}
		})
	}
}

func FuzzRacyEntries(f *testing.F) {
	raw := binary.BigEndian.AppendUint32([]byte("DIRC"), 2)
	f.Add(append(binary.BigEndian.AppendUint32(raw, 0), make([]byte, 20)...), int64(0))
	f.Fuzz(func(t *testing.T, index []byte, written int64) {
		list, err := racyEntries(index, written)
		for _, e := range list {
			if err != nil || e.sec < uint32(written) || len(e.sum) != 20 && len(e.sum) != 32 {
				t.Fatalf("got %+v with %v", e, err)
			}
		}
	})
}
