//go:build linux

package tether_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tether-sandbox/tether"
	"github.com/tether-sandbox/tether/fact"
	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/policy"
)

var ctx = context.Background()

// house is a workspace and a state folder of its own.
type house struct {
	t       testing.TB
	w       string
	environ []string
}

func newHouse(t testing.TB) *house {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	h := &house{t: t, w: filepath.Join(top, "w"), environ: []string{"PATH=" + os.Getenv("PATH"), "XDG_STATE_HOME=" + filepath.Join(top, "state"),
		"XDG_CONFIG_HOME=" + filepath.Join(top, "config")}}
	if err := os.Mkdir(h.w, 0o755); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *house) state() string { return h.environ[1][len("XDG_STATE_HOME="):] + "/tether" }

func (h *house) options(id string) tether.Options {
	o := tether.Options{Policy: policy.Default(h.w), Session: id, Environ: h.environ, By: fact.Person,
		Default: fact.Default{Preset: fact.PresetWorkspaceWrite, Origin: fact.Settings}}
	o.Policy.Network.Mode = policy.Offline
	return o
}

func (h *house) open(id string, changes ...func(*tether.Options)) *tether.Session {
	h.t.Helper()
	o := h.options(id)
	for _, c := range changes {
		c(&o)
	}
	s, err := tether.Open(ctx, o)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { s.Close() })
	return s
}

func (h *house) sessions() *tether.Sessions {
	h.t.Helper()
	s, err := tether.OpenSessions(h.environ)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { s.Close() })
	return s
}

// facts returns what a session's log holds, verified.
func (h *house) facts(id string) []fact.Fact {
	h.t.Helper()
	var all []fact.Fact
	for r, err := range h.sessions().Facts(id) {
		if err != nil {
			h.t.Fatal(err)
		}
		all = append(all, r.Fact)
	}
	return all
}

func kinds(facts []fact.Fact) string {
	var list []string
	for _, f := range facts {
		list = append(list, string(f.Kind))
	}
	return strings.Join(list, " ")
}

func (h *house) write(name, text string) {
	h.t.Helper()
	if err := os.WriteFile(filepath.Join(h.w, name), []byte(text), 0o644); err != nil {
		h.t.Fatal(err)
	}
}

func wants(t testing.TB, what string, err error, code fault.Code) {
	t.Helper()
	if fault.CodeOf(err) != code {
		t.Errorf("%s: got %v, want %q", what, err, code)
	}
}

// answers is an approver that says the same to every question.
type answers struct {
	tether.Answer
	mu    sync.Mutex
	asked []tether.Question
}

func (a *answers) Approve(_ context.Context, q tether.Question) (tether.Answer, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = append(a.asked, q)
	return a.Answer, nil
}

func always(scope fact.Scope) *answers {
	return &answers{Answer: tether.Answer{Scope: scope, By: fact.Person}}
}

// TestRecorded: one command, from the API to the log.
func TestRecorded(t *testing.T) {
	h := newHouse(t)
	h.write(".env", "TOKEN=x\n")
	s := h.open("one")
	res := run(t, s, "echo kept > /tmp/x; exit 3")
	if res.Exit != 3 || res.Unrecorded != "" {
		t.Fatalf("got %+v", res)
	}
	facts := h.facts("one")
	if got, want := kinds(facts), "session/start permission/preset command/intent command/outcome"; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
	in, out := facts[2], facts[3]
	if in.ID == "" || in.ID != out.ID || out.Exit != 3 || !strings.Contains(in.What, "exit 3") || in.Path != h.w {
		t.Errorf("got %+v and %+v", in, out)
	}
	if v, err := h.sessions().Verify("one", ""); err != nil || v.Facts != 4 {
		t.Errorf("got %+v, %v", v, err)
	}
	// A second part of the session sees the same /tmp, and so does edit.
	two := h.open("one")
	if res := run(t, two, "cat /tmp/x"); res.Stdout != "kept\n" {
		t.Errorf("got %q, want the session's /tmp", res.Stdout+res.Stderr)
	}
	files, err := two.Files(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	if v, err := files.View(tether.ViewRequest{Path: "/tmp/x"}); err != nil || v.Text != "kept\n" {
		t.Errorf("edit: got %q, %v", v.Text, err)
	}
	if _, err := files.Write(tether.WriteRequest{Path: "/tmp/y", Text: "by edit\n"}); err != nil {
		t.Error(err)
	}
	if res := run(t, s, "cat /tmp/y"); res.Stdout != "by edit\n" {
		t.Errorf("got %q", res.Stdout+res.Stderr)
	}
	_, err = files.View(tether.ViewRequest{Path: ".env"})
	wants(t, "a hidden file", err, fault.SandboxViolation)
	last := h.facts("one")
	if f := last[len(last)-1]; f.Kind != fact.Denial || f.Code != fault.SandboxViolation {
		t.Errorf("got %+v, want the denial", f)
	}
	// Another session has another /tmp, and nothing of this one's.
	if res := run(t, h.open("other"), "ls /tmp | wc -l"); strings.TrimSpace(res.Stdout) != "0" {
		// The workspace may lie below /tmp, and has a place there.
		if res := run(t, h.open("other"), "cat /tmp/x /tmp/y"); res.Exit == 0 {
			t.Errorf("got %q", res.Stdout)
		}
	}
	// Without a session nothing is recorded at all.
	plain := newHouse(t)
	run(t, plain.open(""), "true")
	if _, err := os.Stat(plain.state() + "/sessions"); err == nil {
		t.Error("an unrecorded run opened a store")
	}
}

// TestCancelledIsRecorded: what the caller took back is no fault of ours in the
// log.
func TestCancelledIsRecorded(t *testing.T) {
	h := newHouse(t)
	for id, end := range map[string]func() (context.Context, context.CancelFunc){
		"cancelled": func() (context.Context, context.CancelFunc) { return context.WithCancel(ctx) },
		"late":      func() (context.Context, context.CancelFunc) { return context.WithTimeout(ctx, time.Second) },
	} {
		short, cancel := end()
		if id == "cancelled" {
			time.AfterFunc(time.Second, cancel)
		}
		_, err := h.open(id).Run(short, tether.Command{Args: []string{"sleep", "60"}})
		cancel()
		if err == nil {
			t.Errorf("%s: no error", id)
		}
		facts := h.facts(id)
		if f := facts[len(facts)-1]; f.Kind != fact.Outcome || f.Code != fault.Cancelled {
			t.Errorf("%s: got %+v, want an outcome with %s", id, f, fault.Cancelled)
		}
	}
}

// TestTmpIsSafe: what a session's /tmp may hold does nothing on the host.
func TestTmpIsSafe(t *testing.T) {
	for _, provider := range []string{"native", "bwrap"} {
		t.Run(provider, func(t *testing.T) {
			h := newHouse(t)
			if provider == "bwrap" {
				if _, err := os.Stat("/usr/bin/bwrap"); err != nil {
					t.Skip("need: bwrap is missing")
				}
				if os.Geteuid() == 0 {
					// bwrap runs as the workspace's owner, see docs/decisions.
					if err := os.Chown(h.w, 54321, 54321); err != nil {
						t.Fatal(err)
					}
					for dir := filepath.Dir(h.w); dir != "/tmp" && dir != "/"; dir = filepath.Dir(dir) {
						_ = os.Chmod(dir, 0o755)
					}
				}
			}
			s := h.open("tmp", func(o *tether.Options) { o.Provider = provider })
			res := run(t, s, `grep ' /tmp ' /proc/self/mountinfo; cp /bin/true /tmp/p && /tmp/p && echo runs
				chmod 4755 /tmp/p; mknod /tmp/null c 1 3; ln -s /etc /tmp/etc; mkfifo /tmp/f; mkdir -p /tmp/ro/x && chmod 0 /tmp/ro`)
			line, _, _ := strings.Cut(res.Stdout, "\n")
			for _, flag := range []string{"nosuid", "nodev"} {
				if !strings.Contains(line, flag) {
					t.Errorf("the mount lacks %s: %s", flag, line)
				}
			}
			if !strings.Contains(res.Stdout, "runs") {
				t.Errorf("control: a program in /tmp runs inside: %s", res.Stdout+res.Stderr)
			}
			info, err := os.Stat(filepath.Join(h.state(), "private", "tmp"))
			if err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("got %v, %v; want a folder that only its owner can enter", info, err)
			}
			if _, err := os.Lstat(filepath.Join(h.state(), "private", "tmp", "tmp", "null")); err == nil {
				t.Error("a device came to be")
			}
			// read-only gives no writable /tmp.
			ro := h.open("ro", func(o *tether.Options) {
				o.Provider, o.Policy.Profile, o.Policy.Commands, o.Default = provider, policy.ReadOnly, policy.Any, fact.Default{}
			})
			if res := run(t, ro, "touch /tmp/x"); res.Exit == 0 {
				t.Error("read-only writes to /tmp")
			}
			// What lies in the way of the workspace's place is put aside.
			if strings.HasPrefix(h.w, "/tmp/") {
				top := strings.SplitN(h.w, "/", 4)[2]
				run(t, s, "mv /tmp/"+top+" /tmp/away; ln -s /etc /tmp/"+top)
				if res := run(t, s, "pwd"); res.Stdout != h.w+"\n" {
					t.Errorf("got %q, want the workspace still", res.Stdout+res.Stderr)
				}
			}
			store := h.sessions()
			if err := store.Remove("tmp"); fault.CodeOf(err) != fault.UsageInvalid {
				t.Errorf("in use: got %v", err)
			}
			s.Close()
			if err := store.Remove("tmp"); err != nil {
				t.Error(err)
			}
			if _, err := os.Lstat(filepath.Join(h.state(), "private", "tmp")); err == nil {
				t.Error("the session's /tmp is still there")
			}
			if _, err := os.Lstat("/etc/passwd"); err != nil {
				t.Fatal("a link was followed out of it")
			}
		})
	}
}

// TestTurns: what may change in a turn, and what not.
func TestTurns(t *testing.T) {
	h := newHouse(t)
	s, other := h.open("turns"), h.open("turns")
	person, model := tether.Request{By: fact.Person}, tether.Request{By: fact.Model}
	if err := s.StartTurn(ctx, "first"); err != nil {
		t.Fatal(err)
	}
	wants(t, "a second turn of one part", s.StartTurn(ctx, "again"), fault.UsageInvalid)
	for _, who := range []tether.Request{person, model} {
		wants(t, "narrow in a turn", other.EnterMode(ctx, policy.ReadOnly, who), fault.SandboxNarrowDenied)
		wants(t, "the same", s.EnterMode(ctx, policy.WorkspaceWrite, who), "")
	}
	wants(t, "never in a turn", s.SetApproval(ctx, fact.Never, person), fault.SandboxNarrowDenied)
	wants(t, "widen", s.EnterMode(ctx, policy.FullAccess, model), fault.ApprovalDenied)
	run(t, s, "true")
	if err := s.EndTurn(ctx); err != nil {
		t.Fatal(err)
	}
	wants(t, "narrow by the model", s.EnterMode(ctx, policy.ReadOnly, model), fault.SandboxNarrowDenied)
	if err := other.EnterMode(ctx, policy.ReadOnly, person); err != nil {
		t.Fatal(err)
	}
	_, err := s.Run(ctx, tether.Command{Args: []string{"touch", "x"}})
	wants(t, "after another part narrowed", err, fault.ApprovalDenied)
	p, err := s.Permissions()
	if err != nil || p.Mode != policy.ReadOnly || p.Preset != fact.Custom && p.Preset != fact.PresetReadOnly {
		t.Errorf("got %+v, %v", p, err)
	}
	for _, f := range h.facts("turns") {
		if f.Kind == fact.Intent && f.Turn == "" {
			t.Errorf("%+v is in no turn", f)
		}
		if f.Time.IsZero() {
			t.Errorf("%+v has no time", f)
		}
	}
	// Enforcement is checked before a turn starts; control needs none.
	bare := h.open("bare", func(o *tether.Options) { o.Provider = "guard" })
	wants(t, "a turn that nothing confines", bare.StartTurn(ctx, ""), fault.SandboxUnavailable)
	if st, err := bare.State(); err != nil || st.InTurn() || st.Started {
		t.Errorf("got %+v, %v; want that no turn began", st, err)
	}
	wants(t, "control without a turn", bare.SelectPreset(ctx, fact.PresetReadOnly, person), "")
}

// TestDefaults: defaults reach a session only as long as it has no word of its
// own.
func TestDefaults(t *testing.T) {
	h := newHouse(t)
	mode := func(s *tether.Session) policy.Profile {
		t.Helper()
		p, err := s.Permissions()
		if err != nil {
			t.Fatal(err)
		}
		return p.Mode
	}
	with := func(p fact.Preset) func(*tether.Options) {
		return func(o *tether.Options) { o.Default = fact.Default{Preset: p, Origin: fact.Settings} }
	}
	if got := mode(h.open("blank", with(fact.PresetReadOnly))); got != policy.ReadOnly {
		t.Errorf("got %v", got)
	}
	if got := mode(h.open("blank", with(fact.PresetWorkspaceWrite))); got != policy.WorkspaceWrite {
		t.Errorf("another default before anything happened: got %v", got)
	}
	s := h.open("begun", with(fact.PresetWorkspaceWrite))
	run(t, s, "true")
	if got := mode(h.open("begun", with(fact.PresetReadOnly))); got != policy.WorkspaceWrite {
		t.Errorf("a default reached a session that has begun: %v", got)
	}
	chosen := func(o *tether.Options) { o.Default, o.Policy.Profile = fact.Default{Never: true}, policy.ReadOnly }
	h.open("chosen", chosen)
	for range 2 {
		p, err := h.open("chosen", with(fact.PresetFullAccess)).Permissions()
		if err != nil || p.Mode != policy.ReadOnly || p.Approval != fact.Never {
			t.Errorf("got %+v, %v", p, err)
		}
	}
	// What a session is opened with on purpose is asked for.
	if got := mode(h.open("begun", chosen)); got != policy.ReadOnly {
		t.Errorf("got %v, want the narrower mode that was asked for", got)
	}
	o := h.options("begun")
	o.Default = fact.Default{}
	_, err := tether.Open(ctx, o)
	wants(t, "a wider one", err, fault.ApprovalDenied)
}

// TestOtherWorld: a session does not move.
func TestOtherWorld(t *testing.T) {
	h := newHouse(t)
	h.open("here").Close()
	o := h.options("here")
	o.Policy.Workspace = filepath.Join(h.w, "sub")
	if err := os.Mkdir(o.Policy.Workspace, 0o755); err != nil {
		t.Fatal(err)
	}
	before := len(h.facts("here"))
	_, err := tether.Open(ctx, o)
	wants(t, "another workspace", err, fault.SandboxSplitWorld)
	if after := len(h.facts("here")); after != before {
		t.Errorf("%d facts were recorded", after-before)
	}
}

// TestWithinTheBeginning: who goes on with a session cannot have more than it
// began with.
func TestWithinTheBeginning(t *testing.T) {
	h := newHouse(t)
	out := filepath.Join(filepath.Dir(h.w), "out")
	if err := os.Mkdir(out, 0o755); err != nil {
		t.Fatal(err)
	}
	run(t, h.open("s"), "true")
	s := h.open("s", func(o *tether.Options) {
		o.Policy.Write, o.Policy.Network.Mode, o.Policy.Env.Set = []string{out}, policy.Open, map[string]string{"MINE": "value"}
	})
	if p := s.Policy(); !s.Narrowed() || len(p.Write) > 0 || p.Network.Mode != policy.Offline || p.Env.Set["MINE"] != "value" {
		t.Errorf("got %+v, narrowed %v", p, s.Narrowed())
	}
	if res := run(t, s, "touch "+out+"/x || echo no; echo $MINE"); res.Stdout != "no\nvalue\n" {
		t.Errorf("got %q", res.Stdout+res.Stderr)
	}
	for _, f := range h.facts("s") {
		if strings.Contains(f.Policy, "MINE") {
			t.Error("a variable's value stands in the log")
		}
	}
	if h.open("s").Narrowed() {
		t.Error("the same policy counts as a wider one")
	}
}

// TestGrants: what each grant opens, for how long, and what none does.
func TestGrants(t *testing.T) {
	h := newHouse(t)
	out := filepath.Join(filepath.Dir(h.w), "out")
	if err := os.Mkdir(out, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"f": "granted\n", ".env": "TOKEN=x\n"} {
		if err := os.WriteFile(filepath.Join(out, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	person := tether.Request{By: fact.Person, Why: "for the test"}
	s := h.open("g")
	read := "cat " + out + "/f"
	closed := func(what string, s *tether.Session) {
		t.Helper()
		if res := run(t, s, read); res.Exit == 0 {
			t.Errorf("%s: %q was shown", what, res.Stdout)
		}
	}
	grant := func(s *tether.Session, g fact.Grant) string {
		t.Helper()
		id, err := s.Grant(ctx, g, person)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	closed("before", s)
	grant(s, fact.Grant{Path: out, Scope: fact.Once})
	if res := run(t, s, read); res.Stdout != "granted\n" {
		t.Errorf("once: got %q", res.Stdout+res.Stderr)
	}
	closed("once is over", s)
	id := grant(s, fact.Grant{Path: out, Write: true, Scope: fact.Session})
	if res := run(t, s, read+"; touch "+out+"/new && cat "+out+"/.env"); !strings.HasPrefix(res.Stdout, "granted\n") || strings.Contains(res.Stdout, "TOKEN") {
		t.Errorf("got %q", res.Stdout+res.Stderr)
	}
	if _, err := os.Stat(out + "/new"); err != nil {
		t.Error(err)
	}
	if err := s.Revoke(ctx, id, person); err != nil {
		t.Fatal(err)
	}
	closed("revoked", s)
	grant(s, fact.Grant{Path: out, Scope: fact.Session, Expires: time.Now().Add(300 * time.Millisecond)})
	time.Sleep(350 * time.Millisecond)
	closed("expired", s)

	_, err := s.Grant(ctx, fact.Grant{Path: out + "/.env", Scope: fact.Session}, person)
	wants(t, "a hidden file", err, fault.ApprovalDenied)
	_, err = s.Grant(ctx, fact.Grant{Path: h.state(), Write: true, Scope: fact.Session}, person)
	wants(t, "what the plan refuses", err, fault.SandboxViolation)
	_, err = s.Grant(ctx, fact.Grant{Path: out, Scope: fact.Session}, tether.Request{By: fact.Model})
	wants(t, "by the model", err, fault.ApprovalDenied)
	closed("refused", s)

	// For the project: in later sessions, too, until it is revoked anywhere.
	id = grant(s, fact.Grant{Path: out, Scope: fact.Project})
	late := h.open("late")
	if res := run(t, late, read); res.Exit != 0 {
		t.Errorf("the project's grant: got %q", res.Stderr)
	}
	if err := late.Revoke(ctx, id, person); err != nil {
		t.Fatal(err)
	}
	closed("revoked in another session", s)
	closed("a session after that", h.open("after"))
	list, err := h.sessions().List()
	if err != nil || slices.ContainsFunc(list, func(i tether.SessionInfo) bool { return strings.HasPrefix(i.ID, "project-") }) {
		t.Errorf("got %v, %v", list, err)
	}
}

// TestAsk: questions, and what happens to the answers.
func TestAsk(t *testing.T) {
	h := newHouse(t)
	readOnly := func(a tether.Approver) func(*tether.Options) {
		return func(o *tether.Options) { o.Policy.Profile, o.Default, o.Approver = policy.ReadOnly, fact.Default{}, a }
	}
	touch := tether.Command{Args: []string{"touch", "x"}, Why: "to see"}
	_, err := h.open("nobody", readOnly(nil)).Run(ctx, touch)
	wants(t, "nobody to ask", err, fault.ApprovalDenied)
	if hint := fault.HintOf(err); hint != "tether session grant nobody -- touch x" {
		t.Errorf("got the hint %q", hint)
	}
	no := always("")
	_, err = h.open("no", readOnly(no)).Run(ctx, touch)
	wants(t, "the answer no", err, fault.ApprovalDenied)
	if len(no.asked) != 1 || !slices.Equal(no.asked[0].Grant.Command, touch.Args) || no.asked[0].Code != fault.CommandDenied || no.asked[0].Why != "to see" {
		t.Errorf("got %+v", no.asked)
	}
	if got := kinds(h.facts("no")); !strings.HasSuffix(got, "ask denial") {
		t.Errorf("got %s", got)
	}
	once := always(fact.Once)
	s := h.open("once", readOnly(once))
	for n := 1; n <= 2; n++ {
		if res, err := s.Run(ctx, touch); err != nil || res.Exit == 0 || len(once.asked) != n {
			t.Errorf("run %d: got exit %d, %v, %d questions; want that the kernel stops the write", n, res.Exit, err, len(once.asked))
		}
	}
	session := always(fact.Session)
	s = h.open("session", readOnly(session))
	for range 2 {
		if _, err := s.Run(ctx, touch); err != nil || len(session.asked) != 1 {
			t.Errorf("got %v, %d questions", err, len(session.asked))
		}
	}
	if _, err := s.Run(ctx, tether.Command{Args: []string{"touch", "y"}}); err != nil || len(session.asked) != 2 {
		t.Errorf("another command: got %v, %d questions", err, len(session.asked))
	}
	// A wider mode, wanted by the model.
	wants(t, "a wider mode", s.EnterMode(ctx, policy.WorkspaceWrite, tether.Request{By: fact.Model}), "")
	if res, err := s.Run(ctx, touch); err != nil || res.Exit != 0 {
		t.Errorf("got %+v, %v", res, err)
	}
	// never: no question.
	if err := s.SetApproval(ctx, fact.Never, tether.Request{By: fact.Person}); err != nil {
		t.Fatal(err)
	}
	n := len(session.asked)
	wants(t, "under never", s.EnterMode(ctx, policy.FullAccess, tether.Request{By: fact.Model}), fault.ApprovalDenied)
	if len(session.asked) != n {
		t.Error("a question was put under never")
	}
	// A path, after the denial of an edit; not what is hidden or locked.
	out := filepath.Join(filepath.Dir(h.w), "out.txt")
	if err := os.WriteFile(out, []byte("outside\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	h.write(".env", "x")
	paths := always(fact.Once)
	files, err := h.open("paths", func(o *tether.Options) { o.Approver = paths }).Files(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	for n := 1; n <= 2; n++ {
		if v, err := files.View(tether.ViewRequest{Path: out}); err != nil || v.Text != "outside\n" || len(paths.asked) != n || paths.asked[n-1].Grant.Path != out {
			t.Errorf("got %q, %v, %+v", v.Text, err, paths.asked)
		}
	}
	n = len(paths.asked)
	_, err = files.View(tether.ViewRequest{Path: ".env"})
	wants(t, "hidden", err, fault.SandboxViolation)
	_, err = files.Write(tether.WriteRequest{Path: ".git/hooks/x", Text: "x"})
	wants(t, "locked", err, fault.SandboxViolation)
	_, err = files.View(tether.ViewRequest{Path: h.state() + "/log.key"})
	wants(t, "Tether's own", err, fault.SandboxViolation)
	if len(paths.asked) != n {
		t.Errorf("asked for what no grant opens: %+v", paths.asked[n:])
	}
	// An approver that waits is left when the caller gives up.
	short, cancel := context.WithCancel(ctx)
	defer cancel()
	_, err = h.open("slow", readOnly(approverFunc(func(c context.Context) (tether.Answer, error) {
		cancel()
		<-c.Done()
		return tether.Answer{Scope: fact.Session}, nil
	}))).Run(short, touch)
	wants(t, "too late", err, fault.ApprovalDenied)
}

type approverFunc func(context.Context) (tether.Answer, error)

func (f approverFunc) Approve(c context.Context, _ tether.Question) (tether.Answer, error) {
	return f(c)
}

// TestDiscreet: what commands do not get of the environment never enters a fact.
func TestDiscreet(t *testing.T) {
	h := newHouse(t)
	const secret = "hunter2-correct-horse"
	h.environ = append(h.environ, "SOME_API_KEY="+secret)
	s := h.open("d")
	run(t, s, "echo "+secret)
	// A hidden file's, as it is and in another spelling.
	h.write(".env", "TOKEN=tok-0123456789abcdefXYZ\n")
	run(t, s, "true tok-0123456789abcdefXYZ "+base64.StdEncoding.EncodeToString([]byte("tok-0123456789abcdefXYZ")))
	if err := s.StartTurn(ctx, "with "+secret); err != nil {
		t.Fatal(err)
	}
	_, err := s.Grant(ctx, fact.Grant{Command: []string{"echo", secret}, Scope: fact.Session}, tether.Request{By: fact.Person, Why: secret})
	wants(t, "a grant that holds it", err, fault.PolicyInvalid)
	raw, err := os.ReadFile(filepath.Join(h.state(), "sessions", "d.log"))
	if err != nil || !strings.Contains(string(raw), "echo [REDACTED:SOME_API_KEY]") {
		t.Errorf("control: %v: %s", err, raw)
	}
	for _, x := range []string{secret, "tok-0123456789abcdefXYZ", base64.StdEncoding.EncodeToString([]byte("tok-0123456789abcdefXYZ"))} {
		if strings.Contains(string(raw), x) {
			t.Errorf("%s stands in the log", x)
		}
	}
	if n := strings.Count(string(raw), "REDACTED:TOKEN"); n < 1 {
		t.Errorf("control: the hidden file's value was met %d times: %s", n, raw)
	}
}

// TestLoginName: a login name stands in paths, and makes no secret of them, also
// before anything was planned.
func TestLoginName(t *testing.T) {
	h := newHouse(t)
	h.environ = append(h.environ, "USER=a-long-login", "LOGNAME=a-long-login", "OTHER=another-value")
	s := h.open("d")
	dir := filepath.Join(filepath.Dir(h.w), "a-long-login")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Grant(ctx, fact.Grant{Path: dir, Scope: fact.Once}, tether.Request{By: fact.Person}); err != nil {
		t.Error(err)
	}
	_, err := s.Grant(ctx, fact.Grant{Command: []string{"echo", "another-value"}, Scope: fact.Session}, tether.Request{By: fact.Person})
	wants(t, "control", err, fault.PolicyInvalid)
}

// TestManyHosts: grants of hosts never add up to what no command could run under.
func TestManyHosts(t *testing.T) {
	h := newHouse(t)
	s := h.open("d", func(o *tether.Options) { o.Policy.Network = policy.Default(h.w).Network })
	var err error
	given := 0
	for ; given < 100 && err == nil; given++ {
		_, err = s.Grant(ctx, fact.Grant{Host: fmt.Sprintf("a.test:%d", 9000+given), Scope: fact.Session}, tether.Request{By: fact.Person})
	}
	wants(t, "too many ports", err, fault.PolicyInvalid)
	if given < 40 {
		t.Errorf("control: only %d were given", given)
	}
	if _, err := s.Explain(ctx, tether.Command{Args: []string{"true"}}); err != nil {
		t.Error(err)
	}
}

// TestRefusedLeavesTmp: what is refused, and would be offered, changes nothing in
// the session's /tmp.
func TestRefusedLeavesTmp(t *testing.T) {
	h := newHouse(t)
	s := h.open("d", func(o *tether.Options) {
		o.Approver = approverFunc(func(context.Context) (tether.Answer, error) { return tether.Answer{}, nil })
	})
	// The host has something of that name, which could be granted.
	host, err := os.CreateTemp("/tmp", "tether-link-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(host.Name())
	host.Close()
	run(t, s, "ln -s /etc/passwd "+host.Name())
	f, err := s.Files(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	_, err = f.View(tether.ViewRequest{Path: host.Name()})
	if err == nil {
		t.Error("control: it is refused")
	}
	link := filepath.Join(h.state(), "private", "d", "tmp", filepath.Base(host.Name()))
	if to, err := os.Readlink(link); err != nil || to != "/etc/passwd" {
		t.Errorf("got %q, %v; want the link as it was", to, err)
	}
}

// TestLongTexts: whatever its length, a command is recorded.
func TestLongTexts(t *testing.T) {
	h := newHouse(t)
	run(t, h.open("long"), ": "+strings.Repeat("x\xff", 60<<10))
	if f := h.facts("long")[2]; f.Kind != fact.Intent || len(f.What) > 4*fact.MaxText {
		t.Errorf("got %s of %d bytes", f.Kind, len(f.What))
	}
}

// TestManyParts: two sessions at once never touch each other, and many parts of
// one session write one log.
func TestManyParts(t *testing.T) {
	h := newHouse(t)
	var wg sync.WaitGroup
	for n := range 6 {
		id := fmt.Sprintf("s%d", n%2)
		s := h.open(id)
		wg.Go(func() {
			for k := range 3 {
				res, err := s.Run(ctx, tether.Command{Shell: fmt.Sprintf("echo %s-%d-%d", id, n, k)})
				if err != nil || res.Unrecorded != "" {
					t.Errorf("got %v, %s", err, res.Unrecorded)
				}
			}
		})
	}
	wg.Wait()
	for _, id := range []string{"s0", "s1"} {
		intents, open := 0, map[string]bool{}
		for _, f := range h.facts(id) {
			switch f.Kind {
			case fact.Intent:
				intents++
				if open[f.ID] || !strings.Contains(f.What, id) {
					t.Errorf("%s holds %+v", id, f)
				}
				open[f.ID] = true
			case fact.Outcome:
				delete(open, f.ID)
			}
		}
		if intents != 9 || len(open) > 0 {
			t.Errorf("%s: %d intents, %d without an outcome", id, intents, len(open))
		}
	}
}

// TestKeepTmp: a session that is not recorded can keep its /tmp until Close, and
// what the dead leave is taken away.
func TestKeepTmp(t *testing.T) {
	h := newHouse(t)
	keep := func(o *tether.Options) { o.KeepTmp = true }
	s := h.open("", keep)
	run(t, s, "echo kept > /tmp/x")
	if res := run(t, s, "cat /tmp/x"); res.Stdout != "kept\n" {
		t.Errorf("got %q", res.Stdout+res.Stderr)
	}
	files, err := s.Files(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	if v, err := files.View(tether.ViewRequest{Path: "/tmp/x"}); err != nil || v.Text != "kept\n" {
		t.Errorf("edit: got %q, %v", v.Text, err)
	}
	if res := run(t, h.open("", keep), "cat /tmp/x"); res.Exit == 0 {
		t.Error("another session sees it")
	}
	private := filepath.Join(h.state(), "private")
	dead := filepath.Join(private, "Held-dead")
	if err := os.MkdirAll(dead+"/tmp", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dead+"/lock", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	names := func() []string {
		entries, err := os.ReadDir(private)
		if err != nil {
			t.Fatal(err)
		}
		var list []string
		for _, e := range entries {
			list = append(list, e.Name())
		}
		return list
	}
	if got := names(); len(got) != 3 {
		t.Errorf("control: got %v", got)
	}
	third := h.open("", keep)
	if got := names(); len(got) != 3 || slices.Contains(got, "Held-dead") {
		t.Errorf("got %v, want that of the dead removed and the others there", got)
	}
	if res := run(t, s, "cat /tmp/x"); res.Stdout != "kept\n" {
		t.Errorf("that of the living was touched: %q", res.Stdout+res.Stderr)
	}
	s.Close()
	third.Close()
	if got := names(); len(got) != 1 {
		t.Errorf("after Close: got %v", got)
	}
}

// TestManyFacts: however much a command leaves, and however long its texts are,
// its outcome is recorded.
func TestManyFacts(t *testing.T) {
	h := newHouse(t)
	s := h.open("many")
	dir := strings.Repeat("\x01", 200)
	res := run(t, s, `for d in a b c d; do mkdir -p "$d/`+dir+`/`+dir+`/`+dir+`"; for n in $(seq 60); do mkdir "$d/`+dir+`/`+dir+`/`+dir+`/$n"; echo x > "$d/`+dir+`/`+dir+`/`+dir+`/$n/Makefile"; done; done`)
	if res.Exit != 0 || len(res.Findings) < 200 || res.Unrecorded != "" {
		t.Fatalf("got exit %d, %d findings, unrecorded %q", res.Exit, len(res.Findings), res.Unrecorded)
	}
	if got := strings.Count(kinds(h.facts("many")), string(fact.Finding)); got != 100 {
		t.Errorf("%d findings were recorded", got)
	}
	long := strings.Repeat("\x01", 100<<10)
	res, err := s.Run(ctx, tether.Command{Args: []string{"true", long}, Why: long})
	if err != nil || res.Unrecorded != "" {
		t.Errorf("got %v, %q", err, res.Unrecorded)
	}
	_, err = h.open("ro", func(o *tether.Options) { o.Policy.Profile, o.Default = policy.ReadOnly, fact.Default{} }).
		Run(ctx, tether.Command{Args: []string{"touch", long}, Why: long})
	wants(t, "a long command that is refused", err, fault.ApprovalDenied)
	facts := h.facts("ro")
	if last := facts[len(facts)-1]; last.Kind != fact.Denial {
		t.Errorf("got %s", kinds(facts))
	}
}
