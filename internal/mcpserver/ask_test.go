//go:build linux

package mcpserver

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tether-sandbox/tether"
	"github.com/tether-sandbox/tether/fact"
	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/policy"
)

// person is a client whose user gives one answer to every question.
func person(answer *mcp.ElicitResult, asked *atomic.Pointer[string], times *atomic.Int32) *mcp.Client {
	return newClient(&mcp.ClientOptions{ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		asked.Store(&r.Params.Message)
		times.Add(1)
		return answer, nil
	}})
}

func TestAsking(t *testing.T) {
	yes := func(scope string) *mcp.ElicitResult {
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"allow": scope}}
	}
	readOnly := at(func(p *policy.Policy) { p.Profile = policy.ReadOnly })
	const command = "python3 -c 'print(40+2)'"
	for _, v := range versions {
		for _, c := range []struct {
			name   string
			answer *mcp.ElicitResult
			want   string
			code   fault.Code
			times  int32 // that two calls ask
		}{
			{"once", yes("once"), "\n\n42\n", "", 2},
			{"for the session", yes("session"), "\n\n42\n", "", 1},
			{"no", yes("no"), "the answer was no", fault.ApprovalDenied, 2},
			{"declined", &mcp.ElicitResult{Action: "decline"}, "the answer was no", fault.ApprovalDenied, 2},
			{"dismissed", &mcp.ElicitResult{Action: "cancel"}, "the answer was no", fault.ApprovalDenied, 2},
			{"declined, with a yes", &mcp.ElicitResult{Action: "decline", Content: map[string]any{"allow": "session"}}, "the answer was no", fault.ApprovalDenied, 2},
		} {
			var asked atomic.Pointer[string]
			var times atomic.Int32
			s := connect(t, Options{Workspace: workspace(t), At: readOnly}, v, person(c.answer, &asked, &times))
			for range 2 {
				r := call(t, s, "bash", map[string]any{"command": command, "why": "to\nknow"})
				if !strings.Contains(text(r), c.want) || code(r) != c.code {
					t.Errorf("%s, %s: got %q", v, c.name, text(r))
				}
			}
			if n := times.Load(); n != c.times {
				t.Errorf("%s, %s: asked %d times, want %d", v, c.name, n, c.times)
			}
			if q := asked.Load(); q == nil || !strings.Contains(*q, "40+2") || !strings.Contains(*q, `wanted: "to\nknow"`) {
				t.Errorf("%s, %s: asked %v", v, c.name, q)
			}
		}
		// A yes opens what was asked for, and nothing that the kernel closes.
		var asked atomic.Pointer[string]
		var times atomic.Int32
		w := workspace(t)
		s := connect(t, Options{Workspace: w, At: readOnly}, v, person(yes("session"), &asked, &times))
		call(t, s, "bash", map[string]any{"command": "touch x; cat .env"})
		if _, err := os.Stat(filepath.Join(w, "x")); err == nil || times.Load() != 1 {
			t.Errorf("%s: asked %d times, and something was written: %v", v, times.Load(), err)
		}
		r := call(t, s, "edit", map[string]any{"action": "view", "path": ".env"})
		if code(r) != fault.SandboxViolation || times.Load() != 1 {
			t.Errorf("%s: a hidden file: asked %d times, %q", v, times.Load(), text(r))
		}
		// Who cannot ask is refused as before.
		s = connect(t, Options{Workspace: workspace(t), At: readOnly}, v, nil)
		if r := call(t, s, "bash", map[string]any{"command": command}); code(r) != fault.CommandDenied {
			t.Errorf("%s: nobody to ask: got %q", v, text(r))
		}
	}
}

// TestAskingForAPath has an edit outside of the workspace that a person allows.
func TestAskingForAPath(t *testing.T) {
	for _, v := range versions {
		var asked atomic.Pointer[string]
		var times atomic.Int32
		answer := &mcp.ElicitResult{Action: "accept", Content: map[string]any{"allow": "session"}}
		w, other := workspace(t), workspace(t)
		s := connect(t, Options{Workspace: w, At: at(nil)}, v, person(answer, &asked, &times))
		for range 2 {
			r := call(t, s, "edit", map[string]any{"action": "view", "path": other + "/note.txt"})
			if text(r) != "one\ntwo\n" {
				t.Errorf("%s: got %q", v, text(r))
			}
		}
		if q := asked.Load(); q == nil || !strings.Contains(*q, "allow: to read "+other+"/note.txt") {
			t.Errorf("%s: asked %v", v, q)
		}
		if r := call(t, s, "edit", map[string]any{"action": "view", "path": other + "/.env"}); !r.IsError || strings.Contains(text(r), secret) {
			t.Errorf("%s: a hidden file: got %q", v, text(r))
		}
	}
}

// TestRecorded has a session of a client in the log, with who allowed what.
func TestRecorded(t *testing.T) {
	var asked atomic.Pointer[string]
	var times atomic.Int32
	answer := &mcp.ElicitResult{Action: "accept", Content: map[string]any{"allow": "once"}}
	id := tether.NewSessionID()
	o := Options{Workspace: workspace(t), At: func(w string) (tether.Options, error) {
		o, err := at(func(p *policy.Policy) { p.Profile = policy.ReadOnly })(w)
		o.Session = id
		return o, err
	}}
	s := connect(t, o, "2025-11-25", person(answer, &asked, &times))
	if !strings.Contains(s.InitializeResult().Instructions, id) {
		t.Errorf("got %q", s.InitializeResult().Instructions)
	}
	call(t, s, "bash", map[string]any{"command": "cat note.txt"})
	call(t, s, "bash", map[string]any{"command": "python3 -c 'print(1)'"})
	store, err := tether.OpenSessions(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	st, err := store.State(id)
	if err != nil {
		t.Fatal(err)
	}
	if len(st.Grants) != 1 || st.Grants[0].By != fact.Person || !st.Grants[0].Spent {
		t.Errorf("got grants %+v", st.Grants)
	}
}

func TestPlain(t *testing.T) {
	for in, want := range map[string]string{"a b": "a b", "": "", "a\nb": `"a\nb"`, "\x1b[2J": `"\x1b[2J"`, `say "x"`: `"say \"x\""`, "\u202e": `"\u202e"`} {
		if got := plain(in); got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
}

// TestAskingForAHost has a command that was refused a host: the person is asked
// while it runs, once. A client of the new protocol is asked by ending the call,
// which would run the command a second time, and so is not asked. The answer here
// is no, so that nobody dials.
func TestAskingForAHost(t *testing.T) {
	for _, v := range versions {
		w := workspace(t)
		asked := filepath.Join(w, "asked")
		var times atomic.Int32
		client := newClient(&mcp.ClientOptions{ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			times.Add(1)
			if !strings.Contains(r.Params.Message, "allow: to reach 192.0.2.1:80") {
				t.Errorf("%s: asked %q", v, r.Params.Message)
			}
			return &mcp.ElicitResult{Action: "decline"}, os.WriteFile(asked, nil, 0o600)
		}})
		s := connect(t, Options{Workspace: w, At: at(func(p *policy.Policy) { p.Network = policy.Network{Mode: policy.Gated, Public: true} })}, v, client)
		script := `python3 -c 'import socket; socket.create_connection(("192.0.2.1", 80), 5)' 2>/dev/null || echo refused
			for i in $(seq 40); do [ -e asked ] && echo during && break; sleep 0.05; done; rm -f ran-again; mv ran ran-again 2>/dev/null; touch ran; false`
		want := int32(1)
		if v == newProtocol {
			want = 0
		}
		r := call(t, s, "bash", map[string]any{"command": script})
		if !strings.Contains(text(r), "refused") || strings.Contains(text(r), "during") != (want == 1) || times.Load() != want {
			t.Errorf("%s: asked %d times, want %d: %q", v, times.Load(), want, text(r))
		}
		if _, err := os.Stat(filepath.Join(w, "ran-again")); err == nil {
			t.Errorf("%s: the command ran twice", v)
		}
		if want == 1 { // and not about the same host again
			call(t, s, "bash", map[string]any{"command": script})
			if times.Load() != want {
				t.Errorf("%s: asked %d times", v, times.Load())
			}
		}
	}
}
