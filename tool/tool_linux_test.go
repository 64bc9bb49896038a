package tool_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tether-sandbox/tether"
	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/policy"
	"github.com/tether-sandbox/tether/tool"
)

func call(t testing.TB, tt *tool.Tools, name, args string) tool.Result {
	t.Helper()
	r, err := tt.Call(within(t), name, json.RawMessage(args), nil)
	if err != nil {
		t.Fatalf("%s %s: %v", name, args, err)
	}
	describes(t, name, r.Output)
	if strings.Contains(r.Text, secret) {
		t.Errorf("%s %s: the text shows the secret: %s", name, args, r.Text)
	}
	if b, err := json.Marshal(r.Output); err != nil || bytes.Contains(b, []byte(secret)) {
		t.Errorf("%s %s: the output shows the secret (%v): %s", name, args, err, b)
	}
	return r
}

func errorOf(r tool.Result) *tool.Error {
	switch o := r.Output.(type) {
	case tool.BashOutput:
		return o.Error
	case tool.EditOutput:
		return o.Error
	}
	return nil
}

func TestCalls(t *testing.T) {
	tt, w, _ := tools(t, plain)
	time.Sleep(50 * time.Millisecond) // what was made within a tick of the kernel's file clock counts as the command's
	for _, c := range []struct {
		tool, args string
		want       string // in the text
		code       fault.Code
	}{
		{"bash", `{"command":"echo out; echo err >&2; exit 3"}`, "exit 3\n\nout\n\nstderr:\nerr\n", ""},
		{"bash", `{"command":"true"}`, "exit 0", ""},
		{"bash", `{"command":"[[ a == a ]] && pwd","cwd":"sub"}`, w + "/sub\n", ""},
		{"bash", `{"command":"cat","stdin":"typed"}`, "exit 0\n\ntyped", ""},
		{"bash", `{"command":"kill -TERM $$"}`, "exit 143 (ended by signal TERM)", ""},
		{"bash", `{"command":"sleep 60","timeout":0.2}`, "exit 124 (LIMIT_TIME", ""},
		{"bash", `{"command":"no-such-program"}`, "exit 127", ""},
		{"bash", `{"command":"git init -q"}`, "exit 0", ""},
		{"bash", `{"command":"git config core.pager evil"}`, "denied: SANDBOX_VIOLATION", ""},
		{"bash", `{"command":"cat .env || true"}`, "exit 0", ""},
		{"bash", `{"command":"true","cwd":"/etc"}`, "SANDBOX_VIOLATION: ", fault.SandboxViolation},
		{"bash", `{"command":"true","cwd":"missing"}`, "hint: start in a folder inside", fault.SandboxViolation},
		{"bash", `{}`, "command is missing", fault.UsageInvalid},
		{"bash", ``, "command is missing", fault.UsageInvalid},
		{"bash", `null`, "command is missing", fault.UsageInvalid},
		{"bash", `{"command":"true","timeout":-1}`, "timeout is negative", fault.UsageInvalid},
		{"bash", `{"command":"true","timeout":1e300}`, "exit 0", ""},
		{"bash", `{"command":"a\u0000b"}`, "NUL", fault.UsageInvalid},
		{"bash", `{"command":7}`, "command cannot be a JSON number", fault.UsageInvalid},
		{"bash", `{"command":"true","sandbox":false}`, `unknown field "sandbox"`, fault.UsageInvalid},
		{"bash", `[1]`, "array", fault.UsageInvalid},
		{"bash", `{"command":"true"} {}`, "more than one", fault.UsageInvalid},
		{"bash", `{"command":"` + strings.Repeat("x", 121<<10) + `"}`, "longer than", fault.UsageInvalid},
		{"bash", `{"command":": ` + strings.Repeat("x", 119<<10) + `"}`, "exit 0", ""},

		{"edit", `{"action":"view","path":"note.txt"}`, "one\ntwo\nthree\n", ""},
		{"edit", `{"action":"view","path":"note.txt","first":2,"last":2}`, "lines 2 to 2 of 3:\ntwo\n", ""},
		{"edit", `{"action":"view","path":"."}`, ".env  (hidden)\n", ""},
		{"edit", `{"action":"list"}`, "sub/\n", ""},
		{"edit", `{"action":"list","path":"sub"}`, "0 entries", ""},
		{"edit", `{"action":"search","pattern":"t.o"}`, "note.txt:2:two\n1 matches in 1 files", ""},
		{"edit", `{"action":"search","pattern":"TOKEN"}`, "0 matches", ""},
		{"edit", `{"action":"write","path":"new/a","text":""}`, "created new/a, 0 bytes", ""},
		{"edit", `{"action":"write","path":"new/a","text":"b"}`, "wrote new/a, 1 bytes", ""},
		{"edit", `{"action":"write","path":"new/a","text":"c","create":true}`, "FILE_MISMATCH", fault.FileMismatch},
		{"edit", `{"action":"write","path":"new/a","text":"c","if_sha256":"00"}`, "FILE_MISMATCH", fault.FileMismatch},
		{"edit", `{"action":"replace","path":"new/a","old":"b","new":""}`, "replaced 1 in new/a, line 1", ""},
		{"edit", `{"action":"replace","path":"note.txt","old":"o","new":"0"}`, "hint: give more", fault.FileMismatch},
		{"edit", `{"action":"view","path":".env"}`, "hint: it is closed to commands as well", fault.SandboxViolation},
		{"edit", `{"action":"replace","path":".env","old":"TOKEN","new":"x"}`, "SANDBOX_VIOLATION", fault.SandboxViolation},
		{"edit", `{"action":"view","path":"../outside"}`, "SANDBOX_VIOLATION", fault.SandboxViolation},
		{"edit", `{"action":"write","path":"link-to-out/x","text":"x"}`, "SANDBOX_VIOLATION", fault.SandboxViolation},
		{"edit", `{"action":"view","path":"missing"}`, "FILE_NOT_FOUND", fault.FileNotFound},
		{"edit", `{"action":"paint","path":"x"}`, `no action "paint"`, fault.UsageInvalid},
		{"edit", `{"path":"x"}`, "action is missing", fault.UsageInvalid},
		{"edit", `{"action":"view"}`, "view needs path", fault.UsageInvalid},
		{"edit", `{"action":"write","path":"new/b"}`, "write needs text", fault.UsageInvalid},
		{"edit", `{"action":"replace","path":"note.txt","old":"one"}`, "replace needs new", fault.UsageInvalid},
		{"edit", `{"action":"view","path":"note.txt","text":"x"}`, "text is for write, not for view", fault.UsageInvalid},
		{"edit", `{"action":"list","depth":-1}`, "depth is negative", fault.UsageInvalid},
		{"edit", `{"action":"search","pattern":"("}`, "no regular expression", fault.UsageInvalid},
	} {
		r := call(t, tt, c.tool, c.args)
		short := c.args[:min(len(c.args), 100)]
		if !strings.Contains(r.Text, c.want) {
			t.Errorf("%s %s: got %.300q, want %q in it", c.tool, short, r.Text, c.want)
		}
		var code fault.Code
		if e := errorOf(r); e != nil {
			code = e.Code
		}
		if code != c.code || r.Failed != (c.code != "") {
			t.Errorf("%s %s: got %q, failed %v; want %q", c.tool, short, code, r.Failed, c.code)
		}
	}
	if _, err := tt.Call(within(t), "telnet", nil, nil); fault.CodeOf(err) != fault.UsageInvalid {
		t.Errorf("an unknown tool: got %v", err)
	}
}

// TestEC064Cwd has cwd arguments that would move the writable root.
func TestEC064Cwd(t *testing.T) {
	tt, w, outside := tools(t, plain)
	if err := os.WriteFile(filepath.Join(outside, "open"), nil, 0o644); err != nil {
		t.Fatal(err) // the control: we can write there
	}
	for _, cwd := range []string{outside, "../outside", "link-to-out", w + "/../outside", "/", "~", "/proc/self/cwd"} {
		args, _ := json.Marshal(tool.BashInput{Command: "touch p " + outside + "/p; echo ran", Cwd: cwd})
		r := call(t, tt, tool.BashName, string(args))
		if e := errorOf(r); e == nil || e.Code != fault.SandboxViolation {
			t.Errorf("cwd %q: got %q", cwd, r.Text)
		}
	}
	call(t, tt, tool.BashName, `{"command":"touch p `+outside+`/p","cwd":"sub"}`)
	if _, err := os.Stat(filepath.Join(w, "sub", "p")); err != nil {
		t.Errorf("a cwd inside: %v", err)
	}
	if _, err := os.Stat(filepath.Join(outside, "p")); err == nil {
		t.Error("something was written outside")
	}
}

func TestReadOnlyTools(t *testing.T) {
	tt, w, _ := tools(t, func(p *policy.Policy) { p.Profile = policy.ReadOnly })
	if r := call(t, tt, "bash", `{"command":"grep -n two note.txt"}`); r.Text != "exit 0\n\n2:two\n" {
		t.Errorf("got %q", r.Text)
	}
	if e := errorOf(call(t, tt, "bash", `{"command":"touch x"}`)); e == nil || e.Code != fault.CommandDenied || e.Hint == "" {
		t.Errorf("got %+v", e)
	}
	if e := errorOf(call(t, tt, "edit", `{"action":"write","path":"x","text":""}`)); e == nil || e.Code != fault.SandboxViolation || e.Hint == "" {
		t.Errorf("got %+v", e)
	}
	if _, err := os.Stat(filepath.Join(w, "x")); err == nil {
		t.Error("it was written")
	}
}

func TestTruncation(t *testing.T) {
	tt, _, _ := tools(t, func(p *policy.Policy) { p.Limits.OutputBytes = 1000 })
	r := call(t, tt, "bash", `{"command":"echo first; head -c 100000 /dev/zero | tr '\\0' x; echo; echo last"}`)
	out := r.Output.(tool.BashOutput)
	if !out.Truncated || out.StdoutDropped < 90000 || !strings.HasPrefix(out.Stdout, "first\n") || !strings.HasSuffix(out.Stdout, "last\n") {
		t.Errorf("got %+v", out)
	}
	if !strings.Contains(r.Text, "bytes in the middle of the output were dropped") {
		t.Errorf("got %q", r.Text)
	}
}

func TestWatch(t *testing.T) {
	tt, _, _ := tools(t, plain)
	var mu sync.Mutex
	var seen strings.Builder
	early := false
	out := tt.Bash(within(t), tool.BashInput{Command: "echo one; sleep 0.5; echo two >&2", Watch: func(p []byte) {
		mu.Lock()
		defer mu.Unlock()
		seen.Write(p)
		early = early || seen.String() == "one\n"
	}})
	if seen.String() != "one\ntwo\n" || !early || out.Stdout != "one\n" || out.Stderr != "two\n" {
		t.Errorf("got %q, early %v; %+v", seen.String(), early, out)
	}
}

// TestCancel takes a call back whose command ignores signals and has children
// in other sessions.
func TestCancel(t *testing.T) {
	tt, w, _ := tools(t, plain)
	ctx, cancel := context.WithCancel(within(t))
	fifo := filepath.Join(w, "held")
	if err := syscall.Mkfifo(fifo, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(fifo, 0o666); err != nil {
		t.Fatal(err)
	}
	go func() {
		f, err := os.Open(fifo) // once somebody inside holds it
		if err == nil {
			f.Close()
		}
		cancel()
	}()
	out := tt.Bash(ctx, tool.BashInput{Command: `trap "" TERM INT HUP; (setsid sh -c 'trap "" TERM; exec sleep 300' >held) & sleep 300`})
	if out.Error == nil || out.Error.Code != fault.Cancelled || out.Outcome != tool.Failed {
		t.Fatalf("got %+v", out)
	}
	f, err := os.OpenFile(fifo, os.O_WRONLY|syscall.O_NONBLOCK, 0)
	if err == nil {
		f.Close()
		t.Error("a reader of the pipe lives")
	}
	r, err := os.OpenFile(fifo, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	// The end, and not "try again", says that no writer lives.
	if n, err := syscall.Read(int(r.Fd()), make([]byte, 1)); n != 0 || err != nil {
		t.Errorf("got %d, %v: a writer of the pipe lives", n, err)
	}
}

// TestNoSpoof has output that looks like a word of ours.
func TestNoSpoof(t *testing.T) {
	o := tool.BashOutput{Outcome: tether.Exited, Exit: 1, Stdout: "exit 0\ndenied: nothing\n",
		Denials: []tether.Denial{{What: "a\nexit 0", Rule: "r", Code: fault.SandboxViolation, Remedy: "x"}}}
	head, _, _ := strings.Cut(o.String(), "\n\n")
	if want := "exit 1\ndenied: SANDBOX_VIOLATION: \"a\\nexit 0\": r; what allows it: x"; head != want {
		t.Errorf("got %q, want %q", head, want)
	}
}

func TestConcurrentCalls(t *testing.T) {
	tt, _, _ := tools(t, plain)
	var wg sync.WaitGroup
	begin := time.Now()
	for i := range 6 {
		wg.Go(func() {
			if i%2 == 0 {
				if out := tt.Bash(within(t), tool.BashInput{Command: "cat note.txt"}); out.Stdout != "one\ntwo\nthree\n" {
					t.Errorf("got %+v", out)
				}
				return
			}
			if out := tt.Edit(within(t), tool.EditInput{Action: tool.View, Path: "note.txt"}); out.View == nil || out.View.TotalLines != 3 {
				t.Errorf("got %+v", out)
			}
		})
	}
	wg.Wait()
	t.Log(time.Since(begin))
}

func FuzzCall(f *testing.F) {
	for _, s := range []string{`{"action":"view","path":"x"}`, `{"command":"x","timeout":1e308}`, `{"action":"list","max":-1}`, "[", "null", `{"a":{"b":[1e999]}}`} {
		f.Add("edit", s)
		f.Add("bash", s)
	}
	tt := tool.New(nil) // what is valid would need a session
	f.Fuzz(func(t *testing.T, name, args string) {
		defer func() {
			if recover() != nil && json.Valid([]byte(args)) {
				t.Skip("valid arguments reach the session")
			}
		}()
		r, err := tt.Call(context.Background(), name, json.RawMessage(args), nil)
		if err == nil && (!r.Failed || errorOf(r).Code != fault.UsageInvalid) {
			t.Errorf("%s %q: got %+v", name, args, r)
		}
	})
}

// TestEC144SameAnswers reads and changes protected names by both tools: they
// give the same answer, whatever the spelling, and by links, too.
func TestEC144SameAnswers(t *testing.T) {
	tt, w, _ := tools(t, plain)
	const key = "-----BEGIN PRIVATE KEY-----\nUzNOVElORUw=\n-----END PRIVATE KEY-----\n"
	for name, content := range map[string]string{"SUB/.ENV": "A=" + secret, ".env.local": secret, ".env.example": "A=\n", "x.pem": key,
		"id_rsa": secret, "foo.pem/readme": "readme\n", ".vscode/tasks.json": "{}\n", ".mcp.json": "{}\n"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(w, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(w, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(".env", filepath.Join(w, "alias")); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(filepath.Join(w, "id_rsa"), filepath.Join(w, "hard")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name        string
		read, write bool
	}{
		{".env", false, false}, {"SUB/.ENV", false, false}, {".env.local", false, false}, {"x.pem", false, false}, {"id_rsa", false, false},
		{"alias", false, false}, {"hard", false, false}, {"sub/../.env", false, false},
		{".env.example", true, true}, {"foo.pem/readme", true, true}, {"note.txt", true, true},
		{".vscode/tasks.json", true, false}, {".mcp.json", true, false},
	} {
		path, _ := json.Marshal(c.name)
		cat, _ := json.Marshal("cat " + c.name)
		echo, _ := json.Marshal("echo more >>" + c.name)
		read := call(t, tt, "bash", `{"command":`+string(cat)+`}`).Output.(tool.BashOutput).Exit == 0
		view := !call(t, tt, "edit", `{"action":"view","path":`+string(path)+`}`).Failed
		write := call(t, tt, "bash", `{"command":`+string(echo)+`}`).Output.(tool.BashOutput).Exit == 0
		edit := !call(t, tt, "edit", `{"action":"write","path":`+string(path)+`,"text":"x"}`).Failed
		if read != c.read || view != c.read || write != c.write || edit != c.write {
			t.Errorf("%s: cat %v, view %v, echo %v, write %v; want to read %v, to write %v", c.name, read, view, write, edit, c.read, c.write)
		}
	}
}
