package gitmeta

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tether-sandbox/tether/internal/need"
)

// world is a workspace, a quarantine and real git, outside of any sandbox.
type world struct {
	t        testing.TB
	top      string // holds all of it, nothing else of the machine
	ws       string
	ward     string
	git      string
	snapshot Snapshot
}

func newWorld(t testing.TB) *world {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, top: top, ws: filepath.Join(top, "ws"), ward: filepath.Join(top, "state/quarantine")}
	w.git = need.Program(t, "git")
	if err := os.Mkdir(w.ws, 0o755); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) env() []string {
	return []string{
		"PATH=/usr/bin:/bin", "HOME=" + w.top + "/home", "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org", "GIT_EDITOR=true", "GIT_PAGER=cat",
		"GIT_ALLOW_PROTOCOL=file", "GIT_CEILING_DIRECTORIES=" + w.top, "PWN=" + w.pwn(),
		"TOP=" + w.top, "WS=" + w.ws,
	}
}

// try runs a script in a folder of the workspace.
func (w *world) try(script string) (string, error) {
	cmd := exec.Command("/bin/sh", "-ec", script)
	cmd.Dir, cmd.Env = w.ws, w.env()
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (w *world) sh(script string) string {
	w.t.Helper()
	out, err := w.try(script)
	if err != nil {
		w.t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return out
}

func (w *world) pwn() string { return filepath.Join(w.top, "PWN") }

// fires runs a host's command and says whether what was planted ran.
func (w *world) fires(script string) bool {
	os.Remove(w.pwn())
	_, _ = w.try(script) // its own status does not matter
	_, err := os.Lstat(w.pwn())
	os.Remove(w.pwn())
	return err == nil
}

// search walks the way the plan does: no links, no descent into .git.
func (w *world) search() Search {
	s := Search{Workspace: w.ws, Home: w.top + "/home", Homes: []string{w.top + "/home"}}
	err := filepath.WalkDir(w.ws, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if DotGit(d.Name()) {
			s.GitEntries = append(s.GitEntries, p)
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if d.IsDir() && BareLooking(func(n string) bool { return has(p, n) }) {
			s.Bare = append(s.Bare, p)
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

func (w *world) discover() []Repo {
	w.t.Helper()
	repos, err := Discover(w.search())
	if err != nil {
		w.t.Fatal(err)
	}
	return repos
}

func (w *world) take() {
	w.t.Helper()
	var err error
	if w.snapshot, err = Take(w.ws, w.discover()); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) settle() []Finding {
	w.t.Helper()
	found, err := Settle(w.snapshot, w.discover(), w.ward)
	if err != nil {
		w.t.Fatal(err)
	}
	return found
}

func (w *world) write(path, text string, mode fs.FileMode) {
	w.t.Helper()
	path = filepath.Join(w.ws, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) read(path string) string {
	w.t.Helper()
	raw, err := os.ReadFile(filepath.Join(w.ws, path))
	if err != nil {
		w.t.Fatal(err)
	}
	return string(raw)
}

func (w *world) rel(path string) string { return strings.TrimPrefix(path, w.ws+"/") }

// got renders findings as "action path".
func (w *world) got(found []Finding) []string {
	var out []string
	for _, f := range found {
		out = append(out, f.Action+" "+w.rel(f.Path))
	}
	slices.Sort(out)
	return out
}
