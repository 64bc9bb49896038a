package secrets

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/need"
	"github.com/tether-sandbox/tether/policy"
	"golang.org/x/sys/unix"
)

func builtinRules(t testing.TB) Rules {
	t.Helper()
	r, err := RulesOf(policy.Protect{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// tempRoot returns a canonical temporary folder.
func tempRoot(t testing.TB) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// plant makes files, with their folders, below root. A name that ends in "/"
// is a folder; content "-> x" makes a symbolic link to x, "= x" a hard link to
// x below root, "|" a FIFO.
func plant(t testing.TB, root string, files ...string) {
	t.Helper()
	for i := 0; i < len(files); i += 2 {
		path, content := filepath.Join(root, files[i]), files[i+1]
		var err error
		if strings.HasSuffix(files[i], "/") {
			err = os.MkdirAll(path, 0o755)
		} else if err = os.MkdirAll(filepath.Dir(path), 0o755); err == nil {
			switch {
			case strings.HasPrefix(content, "-> "):
				err = os.Symlink(content[3:], path)
			case strings.HasPrefix(content, "= "):
				err = os.Link(filepath.Join(root, content[2:]), path)
			case content == "|":
				err = unix.Mkfifo(path, 0o600)
			default:
				err = os.WriteFile(path, []byte(content), 0o644)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func find(t testing.TB, roots ...string) Result {
	t.Helper()
	var rs []Root
	for _, r := range roots {
		rs = append(rs, Root{r})
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	res, err := Find(ctx, rs, builtinRules(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// covers spells masks relative to root: "path" for a file, "path=" for a stub,
// "path/" for a folder.
func covers(root string, masks []Mask) []string {
	out := []string{}
	for _, m := range masks {
		out = append(out, strings.TrimPrefix(m.Path, root+"/")+map[MaskKind]string{MaskFile: "", MaskStub: "=", MaskDir: "/"}[m.Kind])
	}
	slices.Sort(out)
	return out
}

func TestFindCovers(t *testing.T) {
	key, cert := keyPEM, certPEM
	for _, c := range []struct {
		name  string
		files []string
		want  []string
	}{
		{"nothing", []string{"main.go", "x", "README.md", "x"}, []string{}},
		{"at the top", []string{".env", "S"}, []string{".env"}},
		{"deep and under ignored folders",
			[]string{".gitignore", "*", "a/b/c/d/e/f/g/h/i/j/.env", "S", "node_modules/p/.env", "S", "vendor/q/.env", "S", "target/r/.env", "S"},
			[]string{"a/b/c/d/e/f/g/h/i/j/.env", "node_modules/p/.env", "target/r/.env", "vendor/q/.env"}},
		{"without case", []string{".ENV", "S", "Server.PEM", key, "ID_RSA", "S"}, []string{".ENV", "ID_RSA", "Server.PEM"}},
		{"templates and public files",
			[]string{".env.example", "x", ".env.sample", "x", ".env.template", "x", "id_rsa.pub", "x", "known_hosts", "x", ".env.local", "S"},
			[]string{".env.local"}},
		{"by content", []string{"a.pem", cert, "b.pem", key, "c.pem", cert + key, "d.key", "", "e.key", "S"}, []string{"b.pem", "c.pem", "e.key"}},
		{"hard link", []string{".env", "S", "notes.txt", "= .env", "d/other", "= .env", "innocent", "S"}, []string{".env", "d/other", "notes.txt"}},
		{"hard link to a private key", []string{"k.pem", key, "a.txt", "= k.pem", "c.pem", cert, "b.txt", "= c.pem"}, []string{"a.txt", "k.pem"}},
		{"hard link with every name hidden", []string{".env", "S", "sub/.env", "= .env"}, []string{".env", "sub/.env"}},
		{"folders with such names", []string{".env/bin/activate", "x", "x.pem/", "", "keys.key/in.txt", "x", "id_rsa/.env", "S"}, []string{"id_rsa/.env"}},
		{"folder that is hidden whole", []string{".ssh/id_rsa", "S", ".ssh/config", "S", "a/.SSH/x.pem", key}, []string{".ssh/", "a/.SSH/"}},
		{"a file called .ssh", []string{".ssh", "S"}, []string{".ssh"}},
		{"dangling links", []string{".env", "-> nowhere", "a.pem", "-> /nix/store/x/.env", "b.key", "-> b.key", "c.pem", "-> b.key/x"}, []string{}},
		{"link to a file inside", []string{".env", "-> conf/settings", "conf/settings", "S", "conf/other", "x"}, []string{"conf/settings"}},
		{"link through a linked folder", []string{".env", "-> l/settings", "l", "-> conf", "conf/settings", "S"}, []string{"conf/settings"}},
		{"link to a public file", []string{"ca.pem", "-> certs/bundle", "certs/bundle", cert}, []string{}},
		{"link to a private file", []string{"my.pem", "-> certs/bundle", "certs/bundle", key}, []string{"certs/bundle"}},
		{"link to a hard-linked file", []string{".env", "-> one", "one", "S", "two", "= one"}, []string{"one", "two"}},
		{"link to a folder", []string{".env", "-> conf", "conf/x", "x", "a/.ssh", "-> ../keys", "keys/k", "S"}, []string{"keys/"}},
		{"link to the root itself", []string{".ssh", "-> .", "x", "x"}, []string{}},
		{"FIFO", []string{".env", "|", "a.pem", "|", "b.key", "-> pipe", "pipe", "|"}, []string{".env", "a.pem", "pipe"}},
		{"strange names", []string{"sp ace/.env", "S", "q'\"/.env", "S", "n\nl/.env\n", "S", "$(x)/.env", "S", "-d/.env", "S", "\U0001f511/.env", "S", "\xff\xfe/.env\xff", "S"},
			[]string{"$(x)/.env", "-d/.env", "n\nl/.env\n", "q'\"/.env", "sp ace/.env", "\U0001f511/.env", "\xff\xfe/.env\xff"}},
		{"editors' side files", []string{".env~", "S", ".env.swp", "S", ".#.env", "S", "#.env#", "S", "tls.pem.bak", key, "id_rsa.old", "S"},
			[]string{"#.env#", ".#.env", ".env.swp", ".env~", "id_rsa.old", "tls.pem.bak"}},
		{"branch called like a key",
			[]string{".git/HEAD", "ref: refs/heads/release.key\n", ".git/objects/", "", ".git/refs/heads/release.key", strings.Repeat("a1", 20) + "\n",
				".git/logs/refs/heads/release.key", strings.Repeat("0", 40) + " " + strings.Repeat("a", 40) + " A <a@b> 1 +0000\tcommit: x\n",
				".git/worktrees/w/logs/x.key", strings.Repeat("b", 40) + "\n", "refs/heads/release.key", strings.Repeat("a1", 20) + "\n",
				".git/refs/heads/no.key", "S\n", ".git/info/x.key", strings.Repeat("a1", 20) + "\n"},
			[]string{".git/info/x.key", ".git/refs/heads/no.key", "refs/heads/release.key"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := tempRoot(t)
			plant(t, root, c.files...)
			slices.Sort(c.want)
			res := find(t, root)
			if got := covers(root, res.Masks); !slices.Equal(got, c.want) {
				t.Errorf("masks: got %q, want %q", got, c.want)
			}
			for _, m := range res.Masks { // a mask names what exists, exactly
				var st unix.Stat_t
				if err := unix.Lstat(m.Path, &st); err != nil || st.Dev != m.Dev || st.Ino != m.Ino {
					t.Errorf("mask %q: got %d:%d, want %d:%d (%v)", m.Path, m.Dev, m.Ino, st.Dev, st.Ino, err)
				}
			}
			if len(res.Unreadable)+len(res.Odd) != 0 {
				t.Errorf("got unreadable %q, odd %q", res.Unreadable, res.Odd)
			}
		})
	}
}

func TestFindFollowsAbsoluteLinksBackInside(t *testing.T) {
	root, outside := tempRoot(t), tempRoot(t)
	plant(t, outside, "back", "-> "+root, "secret", "S")
	plant(t, root, "one", "S", "two", "S", ".env", "-> "+root+"/one", ".env.b", "-> "+outside+"/back/two",
		"c.pem", "-> "+outside+"/secret", "d.pem", "-> "+root, "plain", "-> "+outside+"/secret")
	res := find(t, root)
	if got, want := covers(root, res.Masks), []string{"one", "two"}; !slices.Equal(got, want) {
		t.Errorf("masks: got %q, want %q", got, want)
	}
	var got []string
	for _, l := range res.Outside {
		got = append(got, strings.TrimPrefix(l.Path, root+"/")+" "+l.Target)
	}
	if want := []string{"c.pem " + outside + "/secret", "d.pem " + root}; !slices.Equal(got, want) {
		t.Errorf("outside: got %q, want %q", got, want)
	}
}

func TestFindAcrossRoots(t *testing.T) {
	a, b := tempRoot(t), tempRoot(t)
	plant(t, a, ".env", "S", "x.pem", "-> "+b+"/target")
	plant(t, b, "target", "S", "id_rsa", "S", "single", "x")
	if err := os.Link(filepath.Join(a, ".env"), filepath.Join(b, "alias")); err != nil {
		t.Fatal(err)
	}
	res := find(t, a, b, b, filepath.Join(b, "single"), filepath.Join(b, "id_rsa"))
	want := []string{a + "/.env", b + "/alias", b + "/id_rsa", b + "/target"}
	slices.Sort(want)
	if got := covers("-", res.Masks); !slices.Equal(got, want) {
		t.Errorf("masks: got %q, want %q", got, want)
	}
	// Below one root only, the alias in the other is nobody's business.
	if got, want := covers(b, find(t, b).Masks), []string{"id_rsa"}; !slices.Equal(got, want) {
		t.Errorf("masks: got %q, want %q", got, want)
	}
	// A root that is one file is judged, and found as an alias.
	if got, want := covers(b, find(t, filepath.Join(b, "alias"), a).Masks), []string{a + "/.env", "alias", b + "/target"}; len(got) != 2 {
		t.Errorf("masks: got %q, want the first two of %q", got, want)
	}
}

func TestFindHidesARootByItsName(t *testing.T) {
	root := tempRoot(t)
	plant(t, root, ".ssh/config", "S", ".envdir/x", "x")
	res := find(t, filepath.Join(root, ".ssh"), filepath.Join(root, ".envdir"))
	if got, want := covers(root, res.Masks), []string{".ssh/"}; !slices.Equal(got, want) {
		t.Errorf("masks: got %q, want %q", got, want)
	}
}

func TestFindUserPatterns(t *testing.T) {
	root := tempRoot(t)
	plant(t, root, "a/Private/x", "S", "conf/prod.yml", "S", "conf/dev.yml", "x", "b/conf/prod.yml", "x", "build.lock", "x")
	rules, err := RulesOf(policy.Protect{Hidden: []string{"private", "conf/prod.*"}, Locked: []string{"*.lock"}})
	if err != nil {
		t.Fatal(err)
	}
	res, err := Find(context.Background(), []Root{{root}}, rules, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := covers(root, res.Masks), []string{"a/Private/", "conf/prod.yml"}; !slices.Equal(got, want) {
		t.Errorf("masks: got %q, want %q", got, want)
	}
	if want := []string{root + "/build.lock"}; !slices.Equal(res.Locked, want) {
		t.Errorf("locked: got %q, want %q", res.Locked, want)
	}
	if _, err := RulesOf(policy.Protect{Hidden: []string{"["}}); fault.CodeOf(err) != fault.PolicyInvalid {
		t.Errorf("bad pattern: got %v, want %s", err, fault.PolicyInvalid)
	}
}

func TestFindReportsTheRest(t *testing.T) {
	root := tempRoot(t)
	plant(t, root, "repo/.git/HEAD", "x", "repo/.git/objects/", "", "repo/.git/refs/", "",
		"sub/.git", "gitdir: ../x", "bare/HEAD", "x", "bare/objects/", "", "bare/refs/", "", "almost/HEAD", "x", "almost/refs/", "",
		".vscode/tasks.json", "x", "repo/.mcp.json", "x", "linked/.git", "-> ../repo/.git")
	l, err := net.Listen("unix", filepath.Join(root, "s.sock"))
	if err != nil {
		t.Skip(err) // the temporary folder's path is too long for a socket
	}
	defer l.Close()
	res := find(t, root)
	rel := func(paths []string) (out []string) {
		for _, p := range paths {
			out = append(out, strings.TrimPrefix(p, root+"/"))
		}
		return out
	}
	for _, c := range []struct {
		what      string
		got, want []string
	}{
		{"sockets", rel(res.Sockets), []string{"s.sock"}},
		{"bare", rel(res.BareRepos), []string{"bare", "repo/.git"}},
		{"locked", rel(res.Locked), []string{".vscode", "repo/.mcp.json"}},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s: got %q, want %q", c.what, c.got, c.want)
		}
	}
	var git []string
	for _, e := range res.GitEntries {
		git = append(git, fmt.Sprint(strings.TrimPrefix(e.Path, root+"/"), " ", e.Type))
	}
	if want := []string{fmt.Sprint("linked/.git ", Symlink), fmt.Sprint("repo/.git ", Directory), fmt.Sprint("sub/.git ", Regular)}; !slices.Equal(git, want) {
		t.Errorf("git: got %q, want %q", git, want)
	}
}

// TestFindMasksUnreadableFoldersWhole covers the owner who closes a folder, and
// can open it again from inside.
func TestFindMasksUnreadableFoldersWhole(t *testing.T) {
	need.Ordinary(t)
	root := tempRoot(t)
	plant(t, root, "none/.env", "S", "none/x/y", "x", "list/.env", "S", "list/x/y", "x", "list/ok.txt", "x", "search/.env", "S",
		"open/.env", "S", "file.pem", certPEM, "deep/a/none/.env", "S", "plainlist/a", "x")
	if got := covers(root, find(t, root).Masks); len(got) != 5 {
		t.Fatalf("control: got %q, want 5 masks while all is readable", got)
	}
	for path, mode := range map[string]os.FileMode{"none": 0, "list": 0o444, "search": 0o111, "deep/a/none": 0, "file.pem": 0, "plainlist": 0o444} {
		path = filepath.Join(root, path)
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.Chmod(path, 0o755) })
	}
	res := find(t, root)
	want := []string{"deep/a/none/", "file.pem", "list/", "none/", "open/.env", "search/"}
	if got := covers(root, res.Masks); !slices.Equal(got, want) {
		t.Errorf("masks: got %q, want %q", got, want)
	}
	if got := len(res.Unreadable); got != 4 {
		t.Errorf("unreadable: got %q, want 4", res.Unreadable)
	}
}

func TestFindFailsClosed(t *testing.T) {
	root := tempRoot(t)
	plant(t, root, "link", "-> .", "d/x", "x")
	for _, path := range []string{root + "/missing", root + "/link", "relative", ""} {
		if _, err := Find(context.Background(), []Root{{path}}, Rules{}, nil); fault.CodeOf(err) != fault.SandboxBadWorkspace {
			t.Errorf("root %q: got %v, want %s", path, err, fault.SandboxBadWorkspace)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for range 10 {
		if _, err := Find(ctx, []Root{{root}}, Rules{}, nil); !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v, want %v", err, context.Canceled)
		}
	}
}

func TestFindUsesTheCache(t *testing.T) {
	root, state := tempRoot(t), tempRoot(t)
	if err := os.Chmod(state, 0o700); err != nil {
		t.Fatal(err)
	}
	plant(t, root, "a.pem", certPEM, "b.pem", keyPEM)
	run := func() Stats {
		t.Helper()
		c := OpenCache(state)
		res, err := Find(context.Background(), []Root{{root}}, builtinRules(t), c)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := covers(root, res.Masks), []string{"b.pem"}; !slices.Equal(got, want) {
			t.Errorf("masks: got %q, want %q", got, want)
		}
		if err := c.Save(); err != nil {
			t.Fatal(err)
		}
		return res.Stats
	}
	if s := run(); s.Read != 2 || s.Cached != 0 {
		t.Errorf("first: got %+v, want 2 read", s)
	}
	if s := run(); s.Read != 2 {
		t.Errorf("still young: got %+v, want 2 read", s)
	}
	time.Sleep(settled + 50*time.Millisecond)
	if s := run(); s.Read != 2 {
		t.Errorf("settled: got %+v, want 2 read", s)
	}
	if s := run(); s.Read != 0 || s.Cached != 2 {
		t.Errorf("remembered: got %+v, want 2 cached", s)
	}
	// The same size and modification time, another content.
	st, err := os.Stat(root + "/a.pem")
	if err != nil {
		t.Fatal(err)
	}
	padded := keyPEM + strings.Repeat("\n", max(0, len(certPEM)-len(keyPEM)))
	if err := os.WriteFile(root+"/a.pem", []byte(padded)[:len(certPEM)], 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(root+"/a.pem", st.ModTime(), st.ModTime()); err != nil {
		t.Fatal(err)
	}
	res, err := Find(context.Background(), []Root{{root}}, builtinRules(t), OpenCache(state))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := covers(root, res.Masks), []string{"a.pem", "b.pem"}; !slices.Equal(got, want) {
		t.Errorf("after a change that hides its time: got %q, want %q", got, want)
	}
}
