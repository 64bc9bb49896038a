package secrets

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestGitName(t *testing.T) {
	for name, want := range map[string]int{
		"HEAD": sawHead, "head": sawHead, "Objects": sawObjects, "refs": sawRefs, "commondir": sawCommon, "COMMONDIR": sawCommon,
		".git": sawGit, ".GIT": sawGit, ".g\u200cit": sawGit, "\u200bHEAD": sawHead, "ref\u017f": sawRefs, "object\u017f": sawObjects,
		"": 0, "HEADS": 0, "hea": 0, "refs2": 0, "object": 0, "commondir2": 0, "git": 0, ".gitx": 0, "HEÄD": 0, "\xffHEAD": 0,
	} {
		ascii := true
		for i := range len(name) {
			ascii = ascii && name[i] < 0x80
		}
		if got := gitName([]byte(name), ascii); got != want {
			t.Errorf("%q: got %d, want %d", name, got, want)
		}
	}
}

// A directory is a repository to git by HEAD and by what is there, or elsewhere,
// of objects and refs.
func TestWalkFindsBareRepositories(t *testing.T) {
	for _, c := range []struct {
		names []string
		want  bool
	}{
		{[]string{"HEAD", "objects/", "refs/"}, true},
		{[]string{"HEAD", "objects", "refs"}, true}, // executable files do for git
		{[]string{"HEAD", "commondir"}, true},
		{[]string{"HEAD/", "commondir/"}, true}, // whoever reads them finds out
		{[]string{"head", "Objects/", "REFS/"}, true},
		{[]string{"HEAD", "commondir", "objects/"}, true},
		{[]string{"HEAD", "objects/"}, false},
		{[]string{"HEAD", "refs/"}, false},
		{[]string{"HEAD"}, false},
		{[]string{"commondir", "objects/", "refs/"}, false},
	} {
		root, state := tempRoot(t), privateFolder(t)
		dir := filepath.Join(root, "d")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, n := range c.names {
			var err error
			if n[len(n)-1] == '/' {
				err = os.Mkdir(filepath.Join(dir, n), 0o755)
			} else {
				err = os.WriteFile(filepath.Join(dir, n), nil, 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		found, err := Walk(context.Background(), root, Rules{})
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.Contains(found.With(Bare), dir); got != c.want {
			t.Errorf("%q: got %v, want %v", c.names, got, c.want)
		}
		// Remembered, it is the same.
		rules := builtinRules(t)
		for range 2 {
			res := findCached(t, state, -1<<40, rules, root)
			if got := slices.Contains(res.BareRepos, dir); got != c.want {
				t.Errorf("%q, remembered: got %v, want %v", c.names, got, c.want)
			}
		}
	}
}
