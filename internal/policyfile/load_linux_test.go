package policyfile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/policyfile"
	"github.com/tether-sandbox/tether/policy"
)

// place is a user with a workspace.
type place struct {
	t                                               *testing.T
	state, config, workspace, userFile, foreignFile string
}

func newPlace(t *testing.T) place {
	t.Helper()
	top := t.TempDir()
	p := place{t: t, state: top + "/state/tether", config: top + "/config/tether", workspace: top + "/w"}
	p.userFile, p.foreignFile = p.config+"/policy.toml", p.workspace+"/.tether/policy.toml"
	for _, d := range []string{p.config, p.workspace + "/.tether"} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
		p.must(os.Chmod(d, 0o755))
	}
	return p
}

func (p place) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p place) write(path, text string) {
	p.t.Helper()
	p.must(os.WriteFile(path, []byte(text), 0o644))
	p.must(os.Chmod(path, 0o644)) // whatever the umask is
}

// load loads, and must not take long: nothing here may block.
func (p place) load() ([]policyfile.Layer, error) {
	p.t.Helper()
	type answer struct {
		layers []policyfile.Layer
		err    error
	}
	done := make(chan answer, 1)
	go func() {
		l, err := policyfile.Load(p.state, p.config, p.workspace)
		done <- answer{l, err}
	}()
	select {
	case a := <-done:
		return a.layers, a.err
	case <-time.After(10 * time.Second):
		p.t.Fatal("Load blocks")
		return nil, nil
	}
}

const narrow = "protect = [\"*.x\"]\n"

func TestLoad(t *testing.T) {
	p := newPlace(t)
	if l, err := p.load(); len(l) != 0 || err != nil {
		t.Fatalf("no file: got %+v, %v", l, err)
	}
	p.write(p.userFile, "timeout = \"5m\"\n")
	p.write(p.foreignFile, narrow)
	l, err := p.load()
	if err != nil || len(l) != 2 {
		t.Fatalf("got %+v, %v", l, err)
	}
	if !l[0].Trusted || l[0].Workspace || l[0].Name != p.userFile {
		t.Errorf("the user's layer: got %+v", l[0])
	}
	if l[1].Trusted || !l[1].Workspace || l[1].Name != p.foreignFile || string(l[1].Content) != narrow {
		t.Errorf("the workspace's layer: got %+v", l[1])
	}
	// Folders that are not there, or that nobody has named.
	for _, x := range [][3]string{{"", "", p.workspace + "/none"}, {p.state, p.config + "/none", p.workspace + "/none"}} {
		if l, err := policyfile.Load(x[0], x[1], x[2]); len(l) != 0 || err != nil {
			t.Errorf("Load(%q): got %+v, %v", x, l, err)
		}
	}
	p.write(p.userFile, "protct = []\n")
	if _, err := p.load(); err == nil || !strings.Contains(err.Error(), p.userFile+":1:1: ") {
		t.Errorf("a wrong file: got %v", err)
	}
}

func TestUnfitFiles(t *testing.T) {
	mode := func(path string, m os.FileMode) func(p place) {
		return func(p place) {
			p.must(os.Chmod(strings.NewReplacer("CONFIG", p.config, "W", p.workspace).Replace(path), m))
		}
	}
	swap := func(pick func(p place) string, with func(p place, path string) error) func(p place) {
		return func(p place) {
			p.must(os.Remove(pick(p)))
			p.must(with(p, pick(p)))
		}
	}
	mine := func(p place) string { return p.userFile }
	theirs := func(p place) string { return p.foreignFile }
	link := func(p place, path string) error {
		p.write(p.workspace+"/target", narrow)
		return os.Symlink(p.workspace+"/target", path)
	}
	hard := func(p place, path string) error {
		p.write(p.workspace+"/target", narrow)
		return os.Link(p.workspace+"/target", path)
	}
	fifo := func(_ place, path string) error { return unix.Mkfifo(path, 0o644) }
	folder := func(_ place, path string) error { return os.Mkdir(path, 0o755) }
	dangling := func(_ place, path string) error { return os.Symlink("/nonexistent/x", path) }
	socket := func(_ place, path string) error { return unix.Mknod(path, unix.S_IFSOCK|0o644, 0) }
	for _, c := range []struct {
		name   string
		change func(p place)
		want   string
	}{
		{"group may write the user's", mode("CONFIG/policy.toml", 0o664), "others can write it"},
		{"all may write the user's", mode("CONFIG/policy.toml", 0o646), "others can write it"},
		{"others may replace the user's", mode("CONFIG", 0o777), "others can replace it"},
		{"the user's is a link", swap(mine, link), "it is a link to a file"},
		{"the user's link leads nowhere", swap(mine, dangling), "cannot read"},
		{"the user's has another name", swap(mine, hard), "another name"},
		{"the user's is a pipe", swap(mine, fifo), "not a regular file"},
		{"the user's is a folder", swap(mine, folder), "not a regular file"},
		{"the workspace's is a link", swap(theirs, link), "it is a link"},
		{"the workspace's has another name", swap(theirs, hard), "another name"},
		{"the workspace's is a pipe", swap(theirs, fifo), "not a regular file"},
		{"the workspace's is a folder", swap(theirs, folder), "not a regular file"},
		{"the workspace's is a socket", swap(theirs, socket), "not a regular file"},
		{"the workspace's folder is a link", func(p place) {
			p.must(os.Rename(p.workspace+"/.tether", p.workspace+"/other"))
			p.must(os.Symlink("other", p.workspace+"/.tether"))
		}, "it is not a folder"},
		{"the workspace's folder is a file", func(p place) {
			p.must(os.RemoveAll(p.workspace + "/.tether"))
			p.write(p.workspace+"/.tether", narrow)
		}, "it is not a folder"},
		{"the workspace's belongs to a stranger", func(p place) {
			if os.Geteuid() != 0 {
				p.t.Skip("only root can give a file away")
			}
			p.must(os.Chown(p.foreignFile, 54321, 54321))
		}, "neither to you nor to the owner"},
		{"the user's belongs to a stranger", func(p place) {
			if os.Geteuid() != 0 {
				p.t.Skip("only root can give a file away")
			}
			p.must(os.Chown(p.userFile, 54321, 54321))
		}, "belongs to somebody else"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlace(t)
			p.write(p.userFile, narrow)
			p.write(p.foreignFile, narrow)
			if l, err := p.load(); len(l) != 2 || err != nil {
				t.Fatalf("control: got %d layers, %v", len(l), err)
			}
			c.change(p)
			_, err := p.load()
			if fault.CodeOf(err) != fault.PolicyInvalid || !strings.Contains(err.Error(), c.want) || fault.HintOf(err) == "" {
				t.Errorf("got %v (%s), want %s", err, fault.HintOf(err), c.want)
			}
		})
	}
}

// TestOwnerOfTheWorkspace may write its file: root works in the folders of
// others.
func TestOwnerOfTheWorkspace(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file away")
	}
	p := newPlace(t)
	p.write(p.foreignFile, narrow)
	p.must(os.Chown(p.workspace, 54321, 54321))
	p.must(os.Chown(p.foreignFile, 54321, 54321))
	if l, err := p.load(); len(l) != 1 || err != nil {
		t.Errorf("got %d layers, %v", len(l), err)
	}
}

const wide = "allow-read = [\"/srv\"]\n"

func (p place) trusted() bool {
	p.t.Helper()
	l, err := p.load()
	if err != nil || len(l) != 1 {
		p.t.Fatalf("got %d layers, %v", len(l), err)
	}
	_, err = policyfile.Apply(policy.Default(p.workspace), l...)
	if (err == nil) != l[0].Trusted {
		p.t.Errorf("trusted is %v, and applying gives %v", l[0].Trusted, err)
	}
	return l[0].Trusted
}

func TestTrust(t *testing.T) {
	p := newPlace(t)
	p.write(p.foreignFile, wide)
	if p.trusted() {
		t.Fatal("trusted before anybody said so")
	}
	p.must(policyfile.Trust(p.state, p.workspace, []byte(wide)))
	if !p.trusted() {
		t.Fatal("not trusted afterwards")
	}
	p.write(p.foreignFile, wide+"\n")
	if p.trusted() {
		t.Error("another content is trusted")
	}
	p.write(p.foreignFile, wide)
	if !p.trusted() {
		t.Error("the trusted content came back and is not trusted")
	}
	records, _ := filepath.Glob(p.state + "/trust/*")
	if len(records) != 1 {
		t.Fatalf("got the files %v, want one", records)
	}
	if info, err := os.Stat(records[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v, want mode 0600", info.Mode(), err)
	}
	// Another folder at the same path, and the same one at another path.
	p.must(os.Rename(p.workspace, p.workspace+"-old"))
	p.must(os.MkdirAll(p.workspace+"/.tether", 0o755))
	p.write(p.foreignFile, wide)
	if p.trusted() {
		t.Error("another folder at the path is trusted")
	}
	if ok, err := policyfile.Trusted(p.state, p.workspace+"-old", []byte(wide)); ok || err != nil {
		t.Errorf("the folder elsewhere: got %v, %v", ok, err)
	}
	p.must(os.RemoveAll(p.workspace))
	p.must(os.Rename(p.workspace+"-old", p.workspace))
	if !p.trusted() {
		t.Error("the folder came back and is not trusted")
	}
	p.must(os.Symlink(p.workspace, p.workspace+"-link"))
	if ok, err := policyfile.Trusted(p.state, p.workspace+"-link", []byte(wide)); !ok || err != nil {
		t.Errorf("through a link to the workspace: got %v, %v", ok, err)
	}
	p.must(policyfile.Untrust(p.state, p.workspace))
	if p.trusted() {
		t.Error("trusted after it was taken back")
	}
	p.must(policyfile.Untrust(p.state, p.workspace)) // again
}

func TestBadStore(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(p place, path string) error
	}{
		{"no JSON", func(p place, path string) error { return os.WriteFile(path, []byte("x"), 0o600) }},
		{"empty", func(p place, path string) error { return os.Truncate(path, 0) }},
		{"large", func(p place, path string) error { return os.Truncate(path, 1<<30) }},
		{"another workspace's", func(p place, path string) error {
			text, err := os.ReadFile(path)
			p.must(err)
			return os.WriteFile(path, []byte(strings.Replace(string(text), p.workspace, p.workspace+"x", 1)), 0o600)
		}},
		{"readable by others", func(p place, path string) error { return os.Chmod(path, 0o640) }},
		{"a link", func(p place, path string) error {
			p.must(os.Rename(path, path+".real"))
			return os.Symlink(path+".real", path)
		}},
		{"a pipe", func(p place, path string) error {
			p.must(os.Remove(path))
			return unix.Mkfifo(path, 0o600)
		}},
		{"a folder", func(p place, path string) error {
			p.must(os.Remove(path))
			return os.Mkdir(path, 0o700)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlace(t)
			p.write(p.foreignFile, wide)
			p.must(policyfile.Trust(p.state, p.workspace, []byte(wide)))
			if !p.trusted() {
				t.Fatal("control: not trusted")
			}
			records, _ := filepath.Glob(p.state + "/trust/*.json")
			p.must(c.spoil(p, records[0]))
			if p.trusted() {
				t.Error("trusted on the word of a spoilt record")
			}
			ok, err := policyfile.Trusted(p.state, p.workspace, []byte(wide))
			if ok || fault.CodeOf(err) != fault.StoreCorrupt || fault.HintOf(err) == "" {
				t.Errorf("got %v, %v", ok, err)
			}
			// The refusal says why nothing is trusted.
			l, _ := p.load()
			_, err = policyfile.Apply(policy.Default(p.workspace), l...)
			if err == nil || !strings.Contains(err.Error(), "nothing is trusted here") {
				t.Errorf("got %v", err)
			}
			// A file that only narrows needs no store.
			p.write(p.foreignFile, narrow)
			l, err = p.load()
			if err == nil {
				_, err = policyfile.Apply(policy.Default(p.workspace), l...)
			}
			if err != nil {
				t.Errorf("a narrowing file: got %v", err)
			}
			if c.name != "a folder" {
				p.must(policyfile.Trust(p.state, p.workspace, []byte(wide)))
				p.write(p.foreignFile, wide)
				if !p.trusted() {
					t.Error("trusting anew does not repair it")
				}
			}
		})
	}
}

// TestTrustRace: readers see one record or the other, never half of one.
func TestTrustRace(t *testing.T) {
	p := newPlace(t)
	p.write(p.foreignFile, wide)
	p.must(policyfile.Trust(p.state, p.workspace, []byte(wide)))
	done := make(chan error, 1)
	go func() {
		var err error
		for i := 0; i < 50 && err == nil; i++ {
			err = policyfile.Trust(p.state, p.workspace, []byte(wide))
		}
		done <- err
	}()
	for range 200 {
		if ok, err := policyfile.Trusted(p.state, p.workspace, []byte(wide)); !ok || err != nil {
			t.Fatalf("got %v, %v", ok, err)
		}
	}
	p.must(<-done)
}

// TestUserLink: a link to what the user cannot write, as package managers make
// it, is fine for an ordinary user. The account's own files are not.
func TestUserLink(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root can write everything")
	}
	p := newPlace(t)
	p.must(os.Symlink("/etc/hostname", p.userFile))
	_, err := p.load()
	if err != nil && !strings.Contains(err.Error(), p.userFile+":1:") {
		t.Errorf("got %v, want it to be read", err)
	}
}
