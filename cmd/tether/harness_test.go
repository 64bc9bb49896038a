package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tether-sandbox/tether"
	"github.com/tether-sandbox/tether/internal/need"
)

// binary is the real program, built once for all tests of this package, with
// tether-mcp beside it.
var binary string

// containVariable makes the test binary put a container's filter round itself
// and become the program that its arguments name.
const containVariable = "TETHER_TEST_CONTAIN"

func TestMain(m *testing.M) {
	tether.Inner() // tests of the library start this very program again
	if os.Getenv("TETHER_TEST_SERVER") != "" {
		serveInternet()
	}
	if os.Getenv(containVariable) != "" {
		contain()
	}
	dir, err := os.MkdirTemp("", "tether-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	binary = filepath.Join(dir, "tether")
	build := exec.Command("go", "build", "-o", dir+"/", ".", "../tether-mcp")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
		os.Exit(1)
	}
	for _, d := range []string{dir, binary, binary + "-mcp"} {
		_ = os.Chmod(d, 0o755)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// jail is one workspace, one folder outside of it, and one provider: what most
// cases start from. The home is a folder of its own whose account is not ours,
// so that nothing of the real one is touched; Tether's state lies in it.
type jail struct {
	t        testing.TB
	provider string
	// w is the workspace and out a folder outside that the user can write.
	w, out string
	// state is where Tether keeps its own files.
	state string
	// secret is what must never be seen: a random string. It is too short to be
	// redacted, which would keep a hole from being seen.
	secret string
	flags  []string
	env    []string
}

// foreignUID owns the workspaces of root's tests with bwrap: bwrap cannot map
// root's own files to an unused id, see docs/decisions.
const foreignUID = 54321

// providers runs f once for each kernel provider, in a fresh jail; with
// TETHER_TEST_PROVIDER for that one alone.
func providers(t *testing.T, f func(t *testing.T, j *jail)) {
	t.Helper()
	eachProvider(t, func(*testing.T) {}, f)
}

// together is providers for tests that mostly wait, and that look at nothing but
// their own jail: they wait side by side.
func together(t *testing.T, f func(t *testing.T, j *jail)) {
	t.Helper()
	eachProvider(t, (*testing.T).Parallel, f)
}

func eachProvider(t *testing.T, begin func(*testing.T), f func(t *testing.T, j *jail)) {
	t.Helper()
	for _, p := range []string{"native", "bwrap", "landlock"} {
		if only := os.Getenv("TETHER_TEST_PROVIDER"); only != "" && p != only || p == "landlock" && !underLandlock(t) {
			continue
		}
		t.Run(p, func(t *testing.T) {
			begin(t)
			if p == "bwrap" {
				need.Program(t, "bwrap")
			}
			f(t, newJail(t, p))
		})
	}
}

func newJail(t testing.TB, provider string) *jail {
	t.Helper()
	top, err := os.MkdirTemp("", "tether-case-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = filepath.WalkDir(top, func(path string, d os.DirEntry, err error) error {
			if d != nil && d.IsDir() {
				_ = os.Chmod(path, 0o700)
			}
			return nil
		})
		if err := os.RemoveAll(top); err != nil {
			t.Errorf("clean up: %v", err)
		}
	})
	_ = os.Chmod(top, 0o755)
	j := &jail{t: t, provider: provider, w: filepath.Join(top, "w"), out: filepath.Join(top, "out"),
		state: filepath.Join(top, "state"), secret: fmt.Sprintf("S3NTINEL%07x", rand.Uint32()>>4)}
	for _, d := range []string{j.w, j.out, j.state} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if provider == "landlock" {
		j.write(filepath.Join(j.state, "tether/policy.toml"), acceptWalls)
	}
	j.env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "LANG=C.UTF-8", "TERM=dumb",
		"XDG_STATE_HOME=" + j.state, "XDG_CONFIG_HOME=" + j.state}
	return j
}

// own gives the workspace to the user that the command will run as. Call it
// after the fixture is complete; run and start do so by themselves.
func (j *jail) own() {
	if os.Geteuid() != 0 || j.provider != "bwrap" {
		return
	}
	_ = filepath.WalkDir(j.w, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		// Once only: it would change what says when a file last changed.
		if info, err := d.Info(); err == nil && uidOf(info) != foreignUID {
			_ = os.Lchown(path, foreignUID, foreignUID)
		}
		return nil
	})
	_ = os.Chown(j.state, foreignUID, foreignUID)
}

// result is how a run of the real program ended.
type result struct {
	stdout, stderr string
	exit           int
	took           time.Duration
}

func (r result) all() string { return r.stdout + r.stderr }

// command prepares `tether run` with the jail's provider and flags.
func (j *jail) command(args ...string) *exec.Cmd {
	j.own()
	words := []string{"run", "--provider", j.provider, "-C", j.w}
	words = append(append(words, j.flags...), args...)
	cmd := exec.Command(binary, words...)
	cmd.Env, cmd.Dir = j.env, j.w
	return cmd
}

// run runs shell text inside and waits for it.
func (j *jail) run(script string, flags ...string) result {
	j.t.Helper()
	return j.built(finishCommand(j.t, j.command(append(flags, "--", "sh", "-c", script)...)))
}

// built ends the test when the sandbox could not be built at all: nothing that
// did not run proves a denial.
func (j *jail) built(r result) result {
	j.t.Helper()
	if r.exit == exitOurs && (strings.Contains(r.stderr, "tether: ISOLATION_UNAVAILABLE") || strings.Contains(r.stderr, "tether: SANDBOX_UNAVAILABLE")) {
		j.t.Fatalf("the sandbox was not built: %s", r.stderr)
	}
	return r
}

// argv runs one command inside.
func (j *jail) argv(words ...string) result {
	j.t.Helper()
	return j.built(finishCommand(j.t, j.command(append([]string{"--"}, words...)...)))
}

// report runs shell text inside with --json and returns the object.
func (j *jail) report(script string, flags ...string) map[string]any {
	j.t.Helper()
	r := finishCommand(j.t, j.command(append(append([]string{"--json"}, flags...), "--", "sh", "-c", script)...))
	var out map[string]any
	if err := json.Unmarshal([]byte(r.stdout), &out); err != nil {
		j.t.Fatalf("--json printed %q and on stderr %q: %v", r.stdout, r.stderr, err)
	}
	return out
}

// host runs shell text in the workspace without Tether: fixtures and controls.
func (j *jail) host(script string) result {
	j.t.Helper()
	cmd := exec.Command("sh", "-c", script)
	cmd.Dir = j.w
	cmd.Env = append([]string{"W=" + j.w, "OUT=" + j.out, "SECRET=" + j.secret, "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@e", "GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@e",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*"}, j.env...)
	return finishCommand(j.t, cmd)
}

// mustHost is host for what cannot fail.
func (j *jail) mustHost(script string) result {
	j.t.Helper()
	r := j.host(script)
	if r.exit != 0 {
		j.t.Fatalf("host: %s: exit %d: %s", script, r.exit, r.all())
	}
	return r
}

// write makes a file, and its folders, on the host.
func (j *jail) write(name, content string) string {
	j.t.Helper()
	path := name
	if !filepath.IsAbs(path) {
		path = filepath.Join(j.w, name)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		j.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		j.t.Fatal(err)
	}
	return path
}

// plant writes the secret into files of the workspace.
func (j *jail) plant(names ...string) {
	j.t.Helper()
	for _, n := range names {
		j.write(n, j.secret+"\n")
	}
}

// noSecret fails when the secret shows in a result.
func (j *jail) noSecret(r result) {
	j.t.Helper()
	if strings.Contains(r.all(), j.secret) {
		j.t.Errorf("the secret was seen: %s", r.all())
	}
}

// opens is the control of a denial: without Tether, script prints want.
func (j *jail) opens(script, want string) {
	j.t.Helper()
	if r := j.host(script); !strings.Contains(r.all(), want) {
		j.t.Fatalf("control: without Tether %q must show %q; got exit %d: %s", script, want, r.exit, r.all())
	}
}

// unchanged fails when a file is not byte-identical to content.
func (j *jail) unchanged(path, content string) {
	j.t.Helper()
	if !filepath.IsAbs(path) {
		path = filepath.Join(j.w, path)
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != content {
		j.t.Errorf("%s: got %q (%v), want it unchanged: %q", path, got, err, content)
	}
}

// absent fails when path exists.
func (j *jail) absent(path string) {
	j.t.Helper()
	if !filepath.IsAbs(path) {
		path = filepath.Join(j.w, path)
	}
	if _, err := os.Lstat(path); err == nil {
		j.t.Errorf("%s exists and must not", path)
	}
}

// finishCommand runs a prepared command with a bound on its time.
func finishCommand(t testing.TB, cmd *exec.Cmd) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if cmd.Stdout == nil {
		cmd.Stdout = &stdout
	}
	if cmd.Stderr == nil {
		cmd.Stderr = &stderr
	}
	cmd.WaitDelay = 5 * time.Second
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(90*time.Second, func() { _ = cmd.Process.Kill() })
	err := cmd.Wait()
	if !timer.Stop() {
		t.Fatalf("%v took more than 90 s", cmd.Args)
	}
	r := result{stdout: stdout.String(), stderr: stderr.String(), took: time.Since(begin)}
	if cmd.ProcessState == nil {
		t.Fatalf("%v: %v", cmd.Args, err)
	}
	r.exit = cmd.ProcessState.ExitCode()
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		r.exit = 128 + int(ws.Signal())
	}
	return r
}
