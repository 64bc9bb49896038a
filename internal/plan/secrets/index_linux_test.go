package secrets

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tether-sandbox/tether/internal/need"
)

// gitIn runs git in dir, deaf to the user's own configuration.
func gitIn(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command(need.Program(t, "git"), args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// indexCases are repositories by what makes their index special.
var indexCases = []struct {
	name string
	init []string
	then [][]string
}{
	{"version 2", nil, nil},
	{"version 3", nil, [][]string{{"add", "-N", "later/.env"}, {"update-index", "--skip-worktree", "b"}}},
	{"version 4", nil, [][]string{{"update-index", "--index-version", "4"}}},
	{"SHA-256", []string{"--object-format=sha256"}, nil},
	{"SHA-256 version 4", []string{"--object-format=sha256"}, [][]string{{"update-index", "--index-version", "4"}}},
	{"split", nil, [][]string{{"update-index", "--split-index"}, {"rm", "-q", "--cached", "gone/.env"}, {"add", "-f", "later/.env"}, {"update-index", "--chmod=+x", ".env"}}},
	{"split version 4", nil, [][]string{{"update-index", "--index-version", "4"}, {"update-index", "--split-index"}, {"rm", "-q", "--cached", "gone/.env"}, {"add", "-f", "later/.env"}}},
	{"split SHA-256", []string{"--object-format=sha256"}, [][]string{{"update-index", "--split-index"}, {"rm", "-q", "--cached", "gone/.env"}}},
	{"without a checksum", nil, [][]string{{"config", "index.skipHash", "true"}, {"add", "-f", "later/.env"}}},
	{"extensions", nil, [][]string{{"update-index", "--untracked-cache"}, {"commit", "-qm", "x"}, {"status"}}},
	{"fresh", nil, [][]string{{"rm", "-rq", "--cached", "."}}},
}

func indexRepo(t testing.TB, init []string, then [][]string) string {
	t.Helper()
	root := tempRoot(t)
	gitIn(t, root, append([]string{"init", "-q"}, init...)...)
	plant(t, root, ".gitignore", "never/\n", ".env", "S", "a/b/.env", "S", "gone/.env", "S", "later/.env", "S", "never/.env", "S",
		"b", "x", "\xff\n\u00e9/.env", "S", strings.Repeat("long/", 40)+".env", "S")
	gitIn(t, root, "add", "--", ".", ":!later")
	for _, args := range then {
		gitIn(t, root, args...)
	}
	return root
}

func TestTrackedAgreesWithGit(t *testing.T) {
	for _, c := range indexCases {
		t.Run(c.name, func(t *testing.T) {
			root := indexRepo(t, c.init, c.then)
			want := []string{}
			for name := range strings.SplitSeq(gitIn(t, root, "ls-files", "-z"), "\x00") {
				if strings.HasSuffix(name, ".env") {
					want = append(want, filepath.Join(root, name))
				}
			}
			slices.Sort(want)
			res := find(t, root)
			if len(res.Masks) != 7 || len(res.Odd) != 0 {
				t.Fatalf("control: got masks %q and odd %q, want 7 masks", covers(root, res.Masks), res.Odd)
			}
			if got := res.TrackedSecrets; !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
			for _, m := range res.Masks {
				st, err := os.Lstat(m.Path)
				if err != nil {
					t.Fatal(err)
				}
				if stub := slices.Contains(want, m.Path); stub != (m.Kind == MaskStub) || m.Size != 1 || !m.MTime.Equal(st.ModTime()) {
					t.Errorf("mask %q: got %+v", m.Path, m)
				}
			}
		})
	}
}

func TestTrackedInWorktreesAndSubmodules(t *testing.T) {
	root := tempRoot(t)
	for _, repo := range []string{"main", "lib"} {
		gitIn(t, root, "init", "-q", repo)
		plant(t, root, repo+"/.env", "S")
		gitIn(t, root+"/"+repo, "add", ".env")
		gitIn(t, root+"/"+repo, "commit", "-qm", "x")
	}
	gitIn(t, root+"/main", "worktree", "add", "-q", "../tree")
	gitIn(t, root+"/main", "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", root+"/lib", "lib")
	plant(t, root, "main/lib/.env.local", "S", "tree/.env.local", "S", "other/.git", "gitdir: ../nowhere\n", "other/.env", "S",
		"odd/.git/index", "DIRCodd", "odd/.env", "S")
	res := find(t, root)
	want := []string{"lib/.env=", "main/.env=", "main/lib/.env.local", "main/lib/.env=", "odd/.env", "other/.env", "tree/.env.local", "tree/.env="}
	slices.Sort(want)
	if got := covers(root, res.Masks); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if want := []string{root + "/odd/.git"}; !slices.Equal(res.Odd, want) {
		t.Errorf("odd: got %q, want %q", res.Odd, want)
	}
}

// TestTrackedSparse: git keeps a folder outside the cone as one entry.
func TestTrackedSparse(t *testing.T) {
	root := indexRepo(t, nil, [][]string{{"commit", "-qm", "x"}, {"sparse-checkout", "set", "--cone", "--sparse-index", "a"}})
	if got := gitIn(t, root, "ls-files", "--sparse"); !strings.Contains(got, "gone/\n") {
		need.Missing(t, "sparse index", "this git has none")
	}
	if got, want := find(t, root).TrackedSecrets, []string{root + "/.env", root + "/a/b/.env"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTrackedRefusesDamage(t *testing.T) {
	root := indexRepo(t, nil, nil)
	index, err := os.ReadFile(root + "/.git/index")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{".env": true}
	if got, err := Tracked(index, nil, want); err != nil || !got[".env"] {
		t.Fatalf("control: got %v, %v", got, err)
	}
	for n := range len(index) {
		if got, err := Tracked(index[:n], nil, want); err == nil || len(got) != 0 {
			t.Fatalf("first %d bytes: got %v, %v, want an error", n, got, err)
		}
	}
	more := slices.Clone(index)
	binary.BigEndian.PutUint32(more[8:], 1<<31)
	if got, err := Tracked(more, nil, want); err == nil || len(got) != 0 {
		t.Errorf("false count: got %v, %v, want an error", got, err)
	}
	split := indexRepo(t, nil, [][]string{{"update-index", "--split-index"}})
	if index, err = os.ReadFile(split + "/.git/index"); err != nil {
		t.Fatal(err)
	}
	if got, err := Tracked(index, func(string) []byte { return nil }, want); err == nil || len(got) != 0 {
		t.Errorf("no shared part: got %v, %v, want an error", got, err)
	}
}

func FuzzTracked(f *testing.F) {
	for _, c := range indexCases {
		root := indexRepo(f, c.init, c.then)
		index, err := os.ReadFile(root + "/.git/index")
		if err != nil {
			f.Fatal(err)
		}
		var shared []byte
		if list, _ := filepath.Glob(root + "/.git/sharedindex.*"); len(list) > 0 {
			if shared, err = os.ReadFile(list[0]); err != nil {
				f.Fatal(err)
			}
		}
		f.Add(index, shared)
	}
	want := map[string]bool{".env": true, "a/b/.env": true, "gone/.env": true}
	f.Fuzz(func(t *testing.T, index, shared []byte) {
		got, err := Tracked(index, func(string) []byte { return shared }, want)
		if err != nil && len(got) != 0 {
			t.Fatalf("got %v with %v", got, err)
		}
		for name := range got {
			if !want[name] {
				t.Fatalf("got %q, which nobody asked for", name)
			}
		}
	})
}
