package filegate

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/plan"
	"github.com/tether-sandbox/tether/policy"
)

// place is a workspace, a folder outside of it and a /tmp.
type place struct {
	t testing.TB
	// top holds all of them, w is the workspace.
	top, w, out, tmp string
	pol              policy.Policy
}

const secret = "S3NTINEL-0451"

func newPlace(t testing.TB) *place {
	t.Helper()
	// Not below /tmp, which is a root of its own.
	top, err := os.MkdirTemp("/var/tmp", "filegate-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = filepath.WalkDir(top, func(path string, d os.DirEntry, _ error) error {
			if d != nil && d.IsDir() {
				_ = os.Chmod(path, 0o700)
			}
			return nil
		})
		_ = os.RemoveAll(top)
	})
	_ = os.Chmod(top, 0o755)
	p := &place{t: t, top: top, w: top + "/w", out: top + "/out", tmp: top + "/tmp"}
	for _, dir := range []string{p.w, p.out, p.tmp, top + "/home", top + "/state"} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	p.pol = policy.Default(p.w)
	return p
}

func (p *place) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return p.w + "/" + name
}

// write makes a file of the host.
func (p *place) write(name, content string) {
	p.t.Helper()
	path := p.path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) link(target, name string) {
	p.t.Helper()
	if err := os.Symlink(target, p.path(name)); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) hardlink(target, name string) {
	p.t.Helper()
	if err := os.Link(p.path(target), p.path(name)); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) sh(script string) {
	p.t.Helper()
	cmd := exec.Command("sh", "-ec", script)
	cmd.Dir = p.w
	cmd.Env = append(os.Environ(), "W="+p.w, "OUT="+p.out, "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@e",
		"GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@e", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*")
	if out, err := cmd.CombinedOutput(); err != nil {
		p.t.Fatalf("%s: %v\n%s", script, err, out)
	}
}

func (p *place) read(name string) string {
	p.t.Helper()
	raw, err := os.ReadFile(p.path(name))
	if err != nil {
		p.t.Fatal(err)
	}
	return string(raw)
}

func (p *place) absent(name string) {
	p.t.Helper()
	if _, err := os.Lstat(p.path(name)); !errors.Is(err, os.ErrNotExist) {
		p.t.Errorf("%s exists and must not (%v)", name, err)
	}
}

func (p *place) resolve() *plan.Plan {
	p.t.Helper()
	got, err := plan.Resolve(context.Background(), p.pol, plan.Host{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid()),
		Home: p.top + "/home", Homes: []string{p.top + "/home"}, StateDir: p.top + "/state/tether", ConfigDir: p.top + "/config/tether"}, "")
	if err != nil {
		p.t.Fatal(err)
	}
	return got
}

// gate opens a gate on the place as it is now.
func (p *place) gate() *gate {
	p.t.Helper()
	g, err := Open(p.resolve(), Options{Tmp: p.tmp})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { g.Close() })
	return &gate{g, p}
}

// gate is a Gate with assertions.
type gate struct {
	*Gate
	p *place
}

func (g *gate) view(path string) (string, error) {
	r, err := g.View(ViewRequest{Path: path})
	return r.Text, err
}

func (g *gate) put(path, text string) error {
	_, err := g.Write(WriteRequest{Path: path, Text: text})
	return err
}

// shows fails unless path is viewed and holds text.
func (g *gate) shows(path, text string) {
	g.p.t.Helper()
	if got, err := g.view(path); err != nil || !strings.Contains(got, text) {
		g.p.t.Errorf("view %.80q: got %.80q (%v), want %q in it", path, got, err, text)
	}
}

// takes fails unless path can be written.
func (g *gate) takes(path string) {
	g.p.t.Helper()
	if err := g.put(path, "new\n"); err != nil {
		g.p.t.Errorf("write %.80q: got %v, want that it is allowed", path, err)
	}
}

// denied fails unless err is a refusal with a reason and a hint, and without
// the secret.
func (g *gate) denied(what, path string, err error) {
	g.p.t.Helper()
	if fault.CodeOf(err) != fault.SandboxViolation {
		g.p.t.Errorf("%s %.80q: got %v, want SANDBOX_VIOLATION", what, path, err)
		return
	}
	if fault.HintOf(err) == "" {
		g.p.t.Errorf("%s %.80q: %v has no hint", what, path, err)
	}
	if strings.Contains(err.Error()+fault.HintOf(err), secret) {
		g.p.t.Errorf("%s %.80q: the answer holds the secret: %v", what, path, err)
	}
}

func (g *gate) noView(paths ...string) {
	g.p.t.Helper()
	for _, path := range paths {
		_, err := g.view(path)
		g.denied("view", path, err)
	}
}

func (g *gate) noWrite(paths ...string) {
	g.p.t.Helper()
	for _, path := range paths {
		g.denied("write", path, g.put(path, "new\n"))
		if _, err := g.Replace(ReplaceRequest{Path: path, Old: "a", New: "b"}); fault.CodeOf(err) != fault.SandboxViolation && fault.CodeOf(err) != fault.FileNotFound {
			g.p.t.Errorf("replace %.80q: got %v, want SANDBOX_VIOLATION", path, err)
		}
	}
}

func (g *gate) code(err error, want fault.Code) {
	g.p.t.Helper()
	if got := fault.CodeOf(err); got != want {
		g.p.t.Errorf("got %v, want %s", err, want)
	}
}
