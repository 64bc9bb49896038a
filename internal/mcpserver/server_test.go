//go:build linux

package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tether-sandbox/tether"
	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/policy"
)

func call(t testing.TB, s *mcp.ClientSession, name string, args map[string]any) *mcp.CallToolResult {
	t.Helper()
	r, err := s.CallTool(soon(t), &mcp.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		t.Fatalf("%s %v: %v", name, args, err)
	}
	return r
}

func text(r *mcp.CallToolResult) string {
	if len(r.Content) != 1 {
		return ""
	}
	return r.Content[0].(*mcp.TextContent).Text
}

// code is the code of a refusal, from the structured part.
func code(r *mcp.CallToolResult) fault.Code {
	m, _ := r.StructuredContent.(map[string]any)
	e, _ := m["error"].(map[string]any)
	c, _ := e["code"].(string)
	return fault.Code(c)
}

func TestBehaviours(t *testing.T) {
	type args = map[string]any
	for _, v := range versions {
		t.Run(v, func(t *testing.T) {
			w := workspace(t)
			s := connect(t, Options{Version: "1", Workspace: w, At: at(nil)}, v, nil)
			if got := s.InitializeResult().ProtocolVersion; got != v {
				t.Fatalf("got version %s", got)
			}
			for _, c := range []struct {
				tool string
				args args
				want string
				code fault.Code
			}{
				{"bash", args{"command": "cat note.txt; pwd"}, "exit 0\n\none\ntwo\n" + w + "\n", ""},
				{"bash", args{"command": "exit 3"}, "exit 3", ""},
				{"bash", args{"command": "cat .env"}, "exit 1", ""},
				{"bash", args{"command": "sleep 9", "timeout": 0.1}, "exit 124", ""},
				{"bash", args{"command": "touch p", "cwd": "/"}, "SANDBOX_VIOLATION", fault.SandboxViolation},
				{"bash", args{"command": "true", "root": "/"}, "USAGE_INVALID", fault.UsageInvalid},
				{"bash", args{}, "command is missing", fault.UsageInvalid},
				{"edit", args{"action": "write", "path": "new", "text": "x"}, "created new", ""},
				{"edit", args{"action": "view", "path": "new"}, "x", ""},
				{"edit", args{"action": "view", "path": ".env"}, "hint: ", fault.SandboxViolation},
				{"edit", args{"action": "view", "path": "../x"}, "hint: ", fault.SandboxViolation},
				{"edit", args{"action": "search", "pattern": "TOKEN"}, "0 matches", ""},
			} {
				r := call(t, s, c.tool, c.args)
				if !strings.Contains(text(r), c.want) || code(r) != c.code || r.IsError != (c.code != "") || r.StructuredContent == nil {
					t.Errorf("%s %v: got %q, %+v, error %v; want %q, %q", c.tool, c.args, text(r), r.StructuredContent, r.IsError, c.want, c.code)
				}
				if all, err := json.Marshal(r); err != nil || strings.Contains(string(all), secret) {
					t.Errorf("%s %v: the secret is seen (%v)", c.tool, c.args, err)
				}
			}
			// What is no tool's call is an error of the protocol.
			_, err := s.CallTool(soon(t), &mcp.CallToolParams{Name: "telnet"})
			if e := (*jsonrpc.Error)(nil); !errors.As(err, &e) || e.Code != jsonrpc.CodeInvalidParams {
				t.Errorf("an unknown tool: got %v", err)
			}
		})
	}
}

func TestAnnotations(t *testing.T) {
	for _, c := range []struct {
		profile policy.Profile
		reads   bool
	}{{policy.WorkspaceWrite, false}, {policy.ReadOnly, true}} {
		s := connect(t, Options{Workspace: workspace(t), At: at(func(p *policy.Policy) { p.Profile = c.profile })}, "", nil)
		r, err := s.ListTools(soon(t), nil)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, tool := range r.Tools {
			names = append(names, tool.Name)
			a := tool.Annotations
			if tool.Name == "fetch" { // reads the web, whatever the policy lets it
				if !a.ReadOnlyHint || *a.DestructiveHint || !*a.OpenWorldHint || tool.OutputSchema == nil || tool.Description == "" {
					t.Errorf("%v, fetch: got %+v", c.profile, a)
				}
				continue
			}
			if a.ReadOnlyHint != c.reads || *a.DestructiveHint == c.reads || *a.OpenWorldHint || tool.OutputSchema == nil || tool.Description == "" {
				t.Errorf("%v, %s: got %+v", c.profile, tool.Name, a)
			}
		}
		if strings.Join(names, " ") != "bash edit fetch" {
			t.Errorf("got %q", names)
		}
		if !strings.Contains(s.InitializeResult().Instructions, c.profile.String()) {
			t.Errorf("got instructions %q", s.InitializeResult().Instructions)
		}
	}
}

func TestProgress(t *testing.T) {
	for _, v := range versions {
		var mu sync.Mutex
		var told []string
		var last float64
		heard := make(chan struct{}, 100)
		client := newClient(&mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			mu.Lock()
			defer mu.Unlock()
			if r.Params.ProgressToken != "token" || r.Params.Progress <= last {
				t.Errorf("got %+v after %v", r.Params, last)
			}
			told, last = append(told, r.Params.Message), r.Params.Progress
			heard <- struct{}{}
		}})
		w := workspace(t)
		s := connect(t, Options{Workspace: w, At: at(nil)}, v, client)
		go func() {
			<-heard
			_ = os.WriteFile(filepath.Join(w, "go-on"), nil, 0o644)
		}()
		p := &mcp.CallToolParams{Name: "bash", Arguments: map[string]any{
			"command": `echo first; until [ -e go-on ]; do sleep 0.05; done; printf 'se\303'; sleep 0.3; printf '\251cond\n'; sleep 0.5`}}
		p.SetProgressToken("token")
		r, err := s.CallTool(soon(t), p)
		if err != nil || text(r) != "exit 0\n\nfirst\nseécond\n" {
			t.Fatalf("%s: got %v, %v", v, r, err)
		}
		mu.Lock()
		if got := strings.Join(told, "|"); got != "first|seécond" {
			t.Errorf("%s: told %q", v, got)
		}
		mu.Unlock()
	}
}

func TestProgressIsBounded(t *testing.T) {
	block := make(chan struct{})
	var got []string
	p := newProgress(func(text string, _ int64) { <-block; got = append(got, text) })
	watch := p.watch()
	begin := time.Now()
	for range 1000 {
		watch([]byte(strings.Repeat("x", 10000) + "\n"))
		p.mu.Lock()
		if len(p.pending) > maxProgress {
			t.Fatalf("%d bytes wait", len(p.pending))
		}
		p.mu.Unlock()
	}
	if d := time.Since(begin); d > 5*time.Second {
		t.Errorf("a client that does not listen held the command up for %v", d)
	}
	close(block)
	p.end()
	for _, g := range got {
		if len(g) > maxProgress {
			t.Errorf("%d bytes at once", len(g))
		}
	}
}

// held says whether a process inside still holds a named pipe of the workspace
// open: its other end would wait, otherwise it sees the end at once.
func held(t testing.TB, path string) bool {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n, err := syscall.Read(int(f.Fd()), make([]byte, 1))
	return n != 0 || err != nil
}

// stubborn is a command that ignores signals, with a child in another session
// that holds a named pipe.
const stubborn = `trap "" TERM INT HUP; (setsid sh -c 'trap "" TERM; exec sleep 300' >held) & sleep 300`

// fifo makes the pipe, and a channel that is closed once the child holds it.
func fifo(t testing.TB, w string) (path string, taken chan struct{}) {
	t.Helper()
	path, taken = filepath.Join(w, "held"), make(chan struct{})
	if err := syscall.Mkfifo(path, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	go func() {
		if f, err := os.Open(path); err == nil {
			f.Close()
		}
		close(taken)
	}()
	return path, taken
}

func TestCancellation(t *testing.T) {
	for _, v := range versions {
		w := workspace(t)
		path, taken := fifo(t, w)
		s := connect(t, Options{Workspace: w, At: at(nil)}, v, nil)
		ctx, cancel := context.WithCancel(soon(t))
		go func() {
			<-taken
			if !held(t, path) {
				t.Error("control: the command does not hold its pipe")
			}
			cancel()
		}()
		if _, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "bash", Arguments: map[string]any{"command": stubborn}}); !errors.Is(err, context.Canceled) {
			t.Fatalf("%s: got %v", v, err)
		}
		for end := time.Now().Add(10 * time.Second); held(t, path); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: the command lives", v)
			}
		}
		if got := text(call(t, s, "bash", map[string]any{"command": "echo on"})); got != "exit 0\n\non\n" {
			t.Errorf("%s: afterwards got %q", v, got)
		}
	}
}

func TestRoots(t *testing.T) {
	home := workspace(t) // stands for a home: policies about it are refused
	projects := filepath.Join(home, "projects")
	for _, d := range []string{"p/sub", "q"} {
		if err := os.MkdirAll(filepath.Join(projects, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc", filepath.Join(projects, "etc")); err != nil {
		t.Fatal(err)
	}
	w := workspace(t)
	for _, c := range []struct {
		name      string
		workspace string
		under     []string
		roots     []string
		script    string
		want      string
		code      fault.Code
	}{
		{"none", w, nil, nil, "pwd", w, ""},
		{"the same", w, nil, []string{w}, "pwd; touch b/x", w, ""},
		{"wider", w, nil, []string{filepath.Dir(w)}, "pwd; touch b/x", w, ""},
		{"elsewhere", w, nil, []string{projects}, "pwd; touch b/x", w, ""},
		{"narrower", w, nil, []string{w + "/a"}, "pwd; cat in.txt; touch x ../b/y0", w + "/a\nin a", ""},
		{"two narrower ones", w, nil, []string{w + "/a", w + "/b"}, "pwd; touch ../b/x && echo both; touch ../y", w + "/a\nboth", ""},
		{"one narrower, one wider", w, nil, []string{w + "/a", "/"}, "pwd", w, ""},
		{"no folder", w, nil, []string{w + "/missing", w + "/note.txt"}, "pwd", w, ""},
		{"started in /", "/", []string{projects}, []string{"/etc", projects + "/q"}, "pwd", projects + "/q", ""},
		{"started in /, none fits", "/", []string{projects}, []string{"/etc", home, projects + "/../b"}, "pwd", "", fault.SandboxBadWorkspace},
		{"started in /, a link out", "/", []string{projects}, []string{projects + "/etc"}, "pwd", "", fault.SandboxBadWorkspace},
		{"started in /, no list", "/", nil, []string{projects + "/q"}, "pwd", "", fault.SandboxBadWorkspace},
		{"started in /, no roots", "/", []string{projects}, nil, "pwd", "", fault.SandboxBadWorkspace},
	} {
		for _, v := range versions {
			client := newClient(nil)
			for _, r := range c.roots {
				client.AddRoots(&mcp.Root{URI: "file://" + r})
			}
			s := connect(t, Options{Workspace: c.workspace, RootsUnder: c.under, At: at(nil)}, v, client)
			r := call(t, s, "bash", map[string]any{"command": "(" + c.script + ") 2>/dev/null"})
			if code(r) != c.code {
				t.Errorf("%s, %s: got %q", c.name, v, text(r))
				continue
			}
			out, _ := r.StructuredContent.(map[string]any)["stdout"].(string)
			if strings.TrimSpace(out) != c.want {
				t.Errorf("%s, %s: got %q, want %q", c.name, v, out, c.want)
			}
			if c.code != "" && !strings.Contains(text(r), "hint: ") {
				t.Errorf("%s: no hint in %q", c.name, text(r))
			}
		}
		for _, x := range []string{w + "/y", w + "/b/y0"} {
			if _, err := os.Stat(x); err == nil {
				t.Errorf("%s: %s was written", c.name, x)
			}
		}
	}
	if _, err := os.Stat(w + "/b/x"); err != nil {
		t.Errorf("control: a workspace that was not narrowed is written: %v", err)
	}
}

// TestRootsCannotWiden has a policy file in the narrower folder that would.
func TestRootsCannotWiden(t *testing.T) {
	w, outside := workspace(t), workspace(t)
	client := newClient(nil)
	client.AddRoots(&mcp.Root{URI: "file://" + w + "/a"})
	o := Options{Workspace: w, At: func(dir string) (tether.Options, error) {
		o, err := at(nil)(dir)
		if dir != w {
			o.Policy.Write = []string{outside}
			o.Policy.Network.Mode = policy.Open
		}
		return o, err
	}}
	s := connect(t, o, "", client)
	r := call(t, s, "bash", map[string]any{"command": "touch " + outside + "/x || echo refused; cut -d: -f1 /proc/net/dev"})
	if out := text(r); !strings.Contains(out, "refused") || !strings.Contains(out, "    lo\n") || strings.Contains(out, "eth") {
		t.Errorf("got %q", out)
	}
}

func TestPolicyThatCannotBe(t *testing.T) {
	bad := Options{Workspace: "/", At: func(string) (tether.Options, error) {
		return tether.Options{}, fault.New(fault.PolicyInvalid, "no")
	}}
	if err := Serve(soon(t), strings.NewReader(""), os.Stderr, bad); fault.CodeOf(err) != fault.PolicyInvalid {
		t.Errorf("got %v", err)
	}
}

// TestTogether has more calls at once than may work at once.
func TestTogether(t *testing.T) {
	s := connect(t, Options{Workspace: workspace(t), At: at(nil)}, "", nil)
	var wg sync.WaitGroup
	for range maxRunning + 4 {
		wg.Go(func() {
			if got := text(call(t, s, "bash", map[string]any{"command": "cat note.txt"})); got != "exit 0\n\none\ntwo\n" {
				t.Errorf("got %q", got)
			}
		})
	}
	wg.Wait()
}
