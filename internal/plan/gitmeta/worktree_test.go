package gitmeta

import (
	"os"
	"path/filepath"
	"testing"
)

func TestWithoutWorktree(t *testing.T) {
	top := t.TempDir()
	g := filepath.Join(top, ".git/modules/lib")
	for dir, pointer := range map[string]string{"lib": "../.git/modules/lib", "abs": g, "other": "../.git/modules/elsewhere", "none": "", "odd": "no pointer"} {
		if err := os.MkdirAll(filepath.Join(top, dir), 0o755); err != nil {
			t.Fatal(err)
		}
		text := "gitdir: " + pointer + "\n"
		switch dir {
		case "none":
			continue
		case "odd":
			text = pointer
		}
		if err := os.WriteFile(filepath.Join(top, dir, ".git"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(g, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, raw, want string
		changed         bool
	}{
		{"relative", "[core]\n\tbare = false\n\tworktree = ../../../lib\n[user]\n\tname = x\n", "[core]\n\tbare = false\n\t\n[user]\n\tname = x\n", true},
		{"absolute", "[core]\n\tworktree = " + top + "/abs\n", "[core]\n\t\n", true},
		{"twice the same", "[core]\n\tworktree = ../../../lib\n\tworktree = ../../../lib\n", "[core]\n\t\n\t\n", true},
		{"none", "[core]\n\tbare = false\n", "", false},
		{"a tree that points elsewhere", "[core]\n\tworktree = ../../../other\n", "", false},
		{"a tree that points nowhere", "[core]\n\tworktree = ../../../none\n", "", false},
		{"a tree with something else", "[core]\n\tworktree = ../../../odd\n", "", false},
		{"no tree", "[core]\n\tworktree = ../../../absent\n", "", false},
		{"one of two elsewhere", "[core]\n\tworktree = ../../../lib\n\tworktree = ../../../other\n", "", false},
		{"another key", "[core \"x\"]\n\tworktree = ../../../lib\n", "", false},
		{"broken", "[core\n", "", false},
	} {
		got, changed := withoutWorktree([]byte(c.raw), g)
		want := c.want
		if !c.changed {
			want = c.raw
		}
		if changed != c.changed || string(got) != want {
			t.Errorf("%s: got %q, %v, want %q, %v", c.name, got, changed, want, c.changed)
		}
	}
}
