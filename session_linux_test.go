package tether_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tether-sandbox/tether"
	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/policy"
)

var update = flag.Bool("update", false, "write testdata/*.golden anew")

// open opens a session in a fresh folder.
func open(t testing.TB, change func(*tether.Options)) (s *tether.Session, dir string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	o := tether.Options{Policy: policy.Default(dir)}
	o.Policy.Network.Mode = policy.Offline
	change(&o)
	s, err = tether.Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, dir
}

func plain(*tether.Options) {}

func run(t testing.TB, s *tether.Session, shell string) tether.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	res, err := s.Run(ctx, tether.Command{Shell: shell})
	if err != nil {
		t.Fatalf("%q: %v", shell, err)
	}
	return res
}

func TestEmbedMissing(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), forgetful+"=1")
	out, err := cmd.CombinedOutput()
	if want := "EMBED_MISSING call tether.Inner() first in main\n"; err != nil || string(out) != want {
		t.Errorf("got %q, %v; want %q", out, err, want)
	}
}

func TestOpenRefuses(t *testing.T) {
	ok := policy.Default("/home/u/w")
	for _, c := range []struct {
		name string
		o    tether.Options
		want fault.Code
	}{
		{"the zero policy", tether.Options{}, fault.PolicyInvalid},
		{"a workspace without a profile", tether.Options{Policy: policy.Policy{Workspace: "/w"}}, fault.PolicyInvalid},
		{"the whole machine", tether.Options{Policy: policy.Default("/")}, fault.SandboxBadWorkspace},
		{"an unknown provider", tether.Options{Policy: ok, Provider: "magic"}, fault.PolicyInvalid},
		{"no provider by the name of none", tether.Options{Policy: ok, Provider: "none"}, fault.PolicyInvalid},
		{"a provider of another build", tether.Options{Policy: ok, Provider: "seatbelt"}, fault.SandboxUnavailable},
	} {
		s, err := tether.Open(context.Background(), c.o)
		if s != nil || fault.CodeOf(err) != c.want {
			t.Errorf("%s: got %v, want %s", c.name, err, c.want)
		}
		if hint := fault.HintOf(err); hint == "" || strings.Contains(hint, "no-sandbox") {
			t.Errorf("%s: got the hint %q", c.name, hint)
		}
	}
}

func TestRunRefuses(t *testing.T) {
	s, dir := open(t, plain)
	for _, c := range []struct {
		name string
		c    tether.Command
		want fault.Code
	}{
		{"nothing", tether.Command{}, fault.UsageInvalid},
		{"two commands", tether.Command{Args: []string{"true"}, Shell: "true"}, fault.UsageInvalid},
		{"a NUL byte", tether.Command{Args: []string{"echo", "a\x00b"}}, fault.UsageInvalid},
		{"a start folder outside", tether.Command{Shell: "touch ran", Dir: "/usr"}, fault.SandboxViolation},
		{"a missing start folder", tether.Command{Shell: "touch ran", Dir: "nowhere"}, fault.SandboxViolation},
	} {
		if res, err := s.Run(context.Background(), c.c); fault.CodeOf(err) != c.want {
			t.Errorf("%s: got %+v, %v; want %s", c.name, res, err, c.want)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
		t.Error("a command that was refused ran")
	}
	gone, _ := open(t, func(o *tether.Options) { o.Policy.Workspace += "/gone" })
	if _, err := gone.Run(context.Background(), tether.Command{Shell: "true"}); fault.CodeOf(err) != fault.SandboxBadWorkspace {
		t.Errorf("a missing workspace: got %v, want %s", err, fault.SandboxBadWorkspace)
	}
}

func TestOutcomes(t *testing.T) {
	s, dir := open(t, plain)
	if err := os.WriteFile(filepath.Join(dir, "text"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		c       tether.Command
		outcome tether.Outcome
		exit    int
		signal  string
	}{
		{tether.Command{Shell: "true"}, tether.Exited, 0, ""},
		{tether.Command{Shell: "exit 7"}, tether.Exited, 7, ""},
		{tether.Command{Shell: "exit 255"}, tether.Exited, 255, ""},
		{tether.Command{Shell: "kill -KILL $$"}, tether.Signaled, 137, "KILL"},
		{tether.Command{Shell: "kill -USR1 $$"}, tether.Signaled, 138, "USR1"},
		{tether.Command{Args: []string{"no-such-program"}}, tether.NotFound, 127, ""},
		{tether.Command{Args: []string{"./missing/x"}}, tether.NotFound, 127, ""},
		{tether.Command{Args: []string{"./text"}}, tether.NotExecutable, 126, ""},
		{tether.Command{Args: []string{dir}}, tether.NotExecutable, 126, ""},
	} {
		res, err := s.Run(context.Background(), c.c)
		if err != nil || res.Outcome != c.outcome || res.Exit != c.exit || res.Signal != c.signal {
			t.Errorf("%+v: got %s %d %q, %v; want %s %d %q", c.c, res.Outcome, res.Exit, res.Signal, err, c.outcome, c.exit, c.signal)
		}
	}
}

// TestCancelKillsTheTree: when Run returns nothing of the command is alive,
// however deep it hid.
func TestCancelKillsTheTree(t *testing.T) {
	for name, change := range map[string]func(*tether.Options){
		"confined": plain,
		"no sandbox": func(o *tether.Options) {
			o.NoSandbox = true
			o.Policy.Network.Mode = policy.Open
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, dir := open(t, change)
			beat := filepath.Join(dir, "beat")
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			go func() {
				defer cancel()
				for range 1000 {
					if info, err := os.Stat(beat); err == nil && info.Size() > 3 {
						return
					}
					time.Sleep(5 * time.Millisecond)
				}
			}()
			begin := time.Now()
			_, err := s.Run(ctx, tether.Command{Shell: `trap '' TERM INT HUP
(setsid sh -c 'trap "" TERM INT HUP; while :; do echo x >> beat; sleep 0.01; done' &) & sleep 300`})
			if !errors.Is(err, context.Canceled) || fault.CodeOf(err) != fault.Cancelled {
				t.Fatalf("got %v, want that it was canceled", err)
			}
			if took := time.Since(begin); took > 20*time.Second {
				t.Errorf("it took %v", took)
			}
			before, err := os.Stat(beat)
			if err != nil {
				t.Fatalf("control: the command never ran: %v", err)
			}
			time.Sleep(150 * time.Millisecond)
			if after, err := os.Stat(beat); err != nil || after.Size() != before.Size() {
				t.Errorf("a process of the command still writes (%v)", err)
			}
		})
	}
}

func TestTimeLimit(t *testing.T) {
	s, _ := open(t, func(o *tether.Options) { o.Policy.Limits.Time = 300 * time.Millisecond })
	begin := time.Now()
	res := run(t, s, "echo before; sleep 300; echo after")
	if res.Outcome != tether.TimedOut || res.Exit != 124 || !res.TimedOut || res.Stdout != "before\n" {
		t.Errorf("got %s %d %v %q, want %s 124 true and what came before", res.Outcome, res.Exit, res.TimedOut, res.Stdout, tether.TimedOut)
	}
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
	if res := run(t, s, "true"); res.TimedOut || res.Outcome != tether.Exited {
		t.Errorf("a quick command: got %+v", res)
	}
}

// TestOutputLimit: of too much output the head and the tail are kept, each
// stream by itself.
func TestOutputLimit(t *testing.T) {
	const limit = 4000
	s, _ := open(t, func(o *tether.Options) { o.Policy.Limits.OutputBytes = limit })
	fill := func(n int) string { return fmt.Sprintf("head -c %d /dev/zero | tr '\\0' x", n) }
	for _, c := range []struct {
		name, shell string
		cut         bool
	}{
		{"less", "printf HEAD; " + fill(limit-8) + "; printf TAIL", false},
		{"one more", "printf HEAD; " + fill(limit-7) + "; printf TAIL", true},
		{"far more", "printf HEAD; " + fill(3<<20) + "; printf TAIL", true},
		{"far more on stderr", "{ printf HEAD; " + fill(3<<20) + "; printf TAIL; } >&2", true},
	} {
		res := run(t, s, c.shell)
		out, other := res.Stdout, res.Stderr
		if strings.Contains(c.name, "stderr") {
			out, other = other, out
		}
		if res.Exit != 0 || res.Truncated != c.cut || other != "" {
			t.Errorf("%s: exit %d, truncated %v, %d bytes on the other stream; want 0, %v, none", c.name, res.Exit, res.Truncated, len(other), c.cut)
		}
		if !strings.HasPrefix(out, "HEAD") || !strings.HasSuffix(out, "TAIL") || len(out) > limit+100 {
			t.Errorf("%s: got %d bytes, %.20q ... %q; want head and tail of at most %d", c.name, len(out), out, out[max(0, len(out)-20):], limit)
		}
	}
}

func TestDefaultLimits(t *testing.T) {
	if tether.DefaultTime != policy.BuiltinTime || tether.DefaultOutput != policy.BuiltinOutputBytes {
		t.Errorf("got %v and %d, want those of the policy: %v and %d", tether.DefaultTime, tether.DefaultOutput, policy.BuiltinTime, policy.BuiltinOutputBytes)
	}
	s, _ := open(t, plain)
	fill := func(n int) string { return fmt.Sprintf("head -c %d /dev/zero | tr '\\0' x", n) }
	if res := run(t, s, fill(tether.DefaultOutput)); res.Truncated || len(res.Stdout) != tether.DefaultOutput {
		t.Errorf("the limit itself: truncated %v, %d bytes", res.Truncated, len(res.Stdout))
	}
	if res := run(t, s, fill(tether.DefaultOutput+1)); !res.Truncated {
		t.Errorf("one more: truncated %v, %d bytes", res.Truncated, len(res.Stdout))
	}
}

// TestWriters: output that has somewhere to go is neither capped nor kept.
func TestWriters(t *testing.T) {
	s, _ := open(t, func(o *tether.Options) { o.Policy.Limits.OutputBytes = 10 })
	var out, errs bytes.Buffer
	res, err := s.Run(context.Background(), tether.Command{Shell: "cat; seq 1 1000; echo e >&2", Stdin: strings.NewReader("in\n"), Stdout: &out, Stderr: &errs})
	if err != nil || res.Stdout != "" || res.Stderr != "" || res.Truncated {
		t.Fatalf("got %+v, %v; want nothing kept", res, err)
	}
	if !strings.HasPrefix(out.String(), "in\n1\n") || !strings.HasSuffix(out.String(), "1000\n") || errs.String() != "e\n" {
		t.Errorf("got %d bytes, %q on stderr", out.Len(), errs.String())
	}
	res, err = s.Run(context.Background(), tether.Command{Shell: "cat | wc -c"})
	if err != nil || strings.TrimSpace(res.Stdout) != "0" {
		t.Errorf("without an input: got %q, %v; want an empty one", res.Stdout, err)
	}
}

// TestConcurrent: a session is safe for concurrent use.
func TestConcurrent(t *testing.T) {
	s, _ := open(t, plain)
	var wg sync.WaitGroup
	for n := range 6 {
		wg.Go(func() {
			res, err := s.Run(context.Background(), tether.Command{Shell: fmt.Sprintf("echo %d; exit %d", n, n)})
			if err != nil || res.Exit != n || res.Stdout != fmt.Sprintf("%d\n", n) {
				t.Errorf("command %d: got %+v, %v", n, res, err)
			}
		})
	}
	wg.Wait()
}

// outside makes a file beside the workspace and returns it.
func outside(t *testing.T, dir string) string {
	t.Helper()
	out := t.TempDir()
	if err := os.Chmod(out, 0o755); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(out, "made")
}

// TestNoSandbox: nothing is confined, nothing is claimed, and the rest of the
// rules hold.
func TestNoSandbox(t *testing.T) {
	t.Setenv("SOME_API_KEY", "very-secret")
	for name, change := range map[string]func(*tether.Options){
		"no sandbox":  func(o *tether.Options) { o.NoSandbox = true },
		"full access": func(o *tether.Options) { o.Policy = o.Policy.WithProfile(policy.FullAccess) },
	} {
		t.Run(name, func(t *testing.T) {
			s, dir := open(t, change)
			if err := os.WriteFile(filepath.Join(dir, ".env"), []byte("shown\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			made := outside(t, dir)
			res := run(t, s, "cat .env; echo x > "+made+"; env; sleep 300 & exit 5")
			if res.Exit != 5 || !strings.HasPrefix(res.Stdout, "shown\n") {
				t.Errorf("got exit %d: %q", res.Exit, res.Stdout+res.Stderr)
			}
			if _, err := os.Stat(made); err != nil {
				t.Errorf("control: %v", err)
			}
			if strings.Contains(res.Stdout, "very-secret") {
				t.Error("the environment was not scrubbed")
			}
			if res.Report.Provider != "none" || res.Report.Overall != policy.None {
				t.Errorf("the report says %s, %s; want none, None", res.Report.Provider, res.Report.Overall)
			}
			for _, g := range res.Report.Grades {
				if g.Grade != policy.None {
					t.Errorf("the report claims %s %s", g.Guarantee, g.Grade)
				}
			}
		})
	}
	// The other edge: with a sandbox all of that is closed.
	s, dir := open(t, plain)
	if err := os.WriteFile(filepath.Join(dir, ".env"), []byte("shown\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	made := outside(t, dir)
	res := run(t, s, "cat .env; echo x > "+made+"; env")
	if strings.Contains(res.Stdout, "shown") || strings.Contains(res.Stdout, "very-secret") || res.Report.Overall != policy.Complete {
		t.Errorf("confined: got %q, overall %s", res.Stdout, res.Report.Overall)
	}
	if _, err := os.Stat(made); err == nil {
		t.Error("confined: a file was made outside")
	}
}

// TestGuardProvider: the guard holds nothing, so it is taken only by those who
// accept that by name; then it still refuses what it can tell.
func TestGuardProvider(t *testing.T) {
	all := []policy.Guarantee{policy.Read, policy.Write, policy.Secrets, policy.NetworkGuarantee, policy.Process}
	guard := func(accept ...policy.Guarantee) func(*tether.Options) {
		return func(o *tether.Options) {
			o.Provider = "guard"
			o.Policy.Accept = map[policy.Guarantee]policy.Grade{}
			for _, g := range accept {
				o.Policy.Accept[g] = policy.None
			}
		}
	}
	for n := range len(all) {
		s, dir := open(t, guard(append(append([]policy.Guarantee{}, all[:n]...), all[n+1:]...)...))
		_, err := s.Run(context.Background(), tether.Command{Args: []string{"touch", "ran"}})
		if fault.CodeOf(err) != fault.SandboxUnavailable || !strings.Contains(fault.HintOf(err), "--accept "+all[n].String()+"=None") {
			t.Errorf("without %s: got %v (%s), want %s and how to accept it", all[n], err, fault.HintOf(err), fault.SandboxUnavailable)
		}
		if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
			t.Errorf("without %s: the command ran", all[n])
		}
	}
	s, _ := open(t, guard(all...))
	res, err := s.Run(context.Background(), tether.Command{Args: []string{"echo", "ran"}})
	if err != nil || res.Stdout != "ran\n" || res.Report.Provider != "guard" || res.Report.Overall != policy.None {
		t.Errorf("accepted: got %+v, %v", res, err)
	}
	if _, err := s.Run(context.Background(), tether.Command{Args: []string{"cat", "/etc/shadow"}}); fault.CodeOf(err) != fault.CommandDenied {
		t.Errorf("what it can tell: got %v, want %s", err, fault.CommandDenied)
	}
}

// TestReadOnly: the inspection allowlist, and the kernel behind it.
func TestReadOnly(t *testing.T) {
	s, dir := open(t, func(o *tether.Options) { o.Policy.Profile = policy.ReadOnly })
	if _, err := s.Run(context.Background(), tether.Command{Args: []string{"touch", "made"}}); fault.CodeOf(err) != fault.CommandDenied {
		t.Errorf("a command that is not for inspection: got %v, want %s", err, fault.CommandDenied)
	}
	if res, err := s.Run(context.Background(), tether.Command{Args: []string{"ls"}}); err != nil || res.Exit != 0 {
		t.Errorf("one that is: got %+v, %v", res, err)
	}
	any, dir2 := open(t, func(o *tether.Options) { o.Policy.Profile, o.Policy.Commands = policy.ReadOnly, policy.Any })
	if res := run(t, any, "touch made"); res.Exit == 0 {
		t.Errorf("any command: got %+v, want that the kernel stops it", res)
	}
	for _, d := range []string{dir, dir2} {
		if _, err := os.Stat(filepath.Join(d, "made")); err == nil {
			t.Errorf("%s: a file was made", d)
		}
	}
}

// TestJSONShape holds the form that programs read: fields are added, never
// changed.
func TestJSONShape(t *testing.T) {
	full := tether.Result{
		Outcome: tether.Signaled, Exit: 137, Signal: "KILL", TimedOut: true, Truncated: true, Duration: time.Second,
		Report: tether.Report{Provider: "native", Overall: policy.Partial, Hidden: 2,
			Grades:  []tether.Grade{{Guarantee: policy.NetworkGuarantee, Grade: policy.None, Required: policy.Complete, Means: "m", Reason: "r"}},
			Tried:   []string{"native: x"},
			Widened: []string{"w"}, Notes: []tether.Note{{What: "n", Hint: "h"}}},
		Denials:  []tether.Denial{{What: "w", Rule: "r", Code: fault.CommandDenied, Remedy: "m"}},
		Findings: []tether.Finding{{Path: "/w/.git/hooks/x", Kind: "git-hook", What: "w", Action: "quarantined", Quarantined: "/q/x"}},
		Stdout:   "out", Stderr: "err",
	}
	s, _ := open(t, plain)
	empty := run(t, s, "true")
	empty.Report = tether.Report{}
	var got bytes.Buffer
	for _, r := range []tether.Result{full, empty} {
		e := json.NewEncoder(&got)
		e.SetIndent("", "  ")
		if err := e.Encode(r); err != nil {
			t.Fatal(err)
		}
	}
	const path = "testdata/result.golden"
	if *update {
		if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || got.String() != string(want) {
		t.Errorf("got\n%s\nwant\n%s(%v; go test . -update)", got.String(), want, err)
	}
}

// children counts our own children.
func children(t testing.TB) int {
	t.Helper()
	n := 0
	lists, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil || len(lists) == 0 {
		t.Fatalf("cannot list children: %v", err)
	}
	for _, l := range lists {
		raw, _ := os.ReadFile(l) // a thread may be gone
		n += len(strings.Fields(string(raw)))
	}
	return n
}

// TestKeepReady has an inner stage waiting between commands, and none after
// Close.
func TestKeepReady(t *testing.T) {
	before := children(t)
	settles := func(want int) {
		t.Helper()
		for end := time.Now().Add(5 * time.Second); children(t) != want; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%d children, want %d", children(t), want)
			}
		}
	}
	s, dir := open(t, func(o *tether.Options) { o.KeepReady = true })
	for i := range 3 {
		if i == 2 { // the owner decides under which ids a command runs
			if os.Geteuid() == 0 {
				if err := os.Chown(dir, 54321, 54321); err != nil {
					t.Fatal(err)
				}
			}
		}
		if res := run(t, s, "echo $$ >f; cat f; ls /proc | grep -c '^[0-9]'"); res.Exit != 0 {
			t.Fatalf("got %+v", res)
		}
		settles(before + 1)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if res, err := s.Run(context.Background(), tether.Command{Args: []string{"true"}}); err != nil || res.Exit != 0 {
				t.Errorf("got %+v, %v", res, err)
			}
		})
	}
	wg.Wait()
	s.Close()
	settles(before)
	if res := run(t, s, "true"); res.Exit != 0 {
		t.Errorf("got %+v", res)
	}
	settles(before)
}
