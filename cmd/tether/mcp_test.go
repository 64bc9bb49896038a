package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tether-sandbox/tether/internal/need"
)

// rpc is a client of tether mcp, written by hand: one JSON object on each line.
type rpc struct {
	t      *testing.T
	cmd    *exec.Cmd
	in     io.WriteCloser
	said   chan rpcMessage
	stderr strings.Builder
}

type rpcMessage struct {
	Version string `json:"jsonrpc"`
	ID      any    `json:"id"`
	Method  string
	Params  struct{ Message string }
	Result  struct {
		Tools   []struct{ Name string }
		IsError bool
		Content []struct{ Text string }
		Output  map[string]any `json:"structuredContent"`
	}
	Error *struct {
		Code    int
		Message string
	}
}

const rpcHello = `{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"by hand","version":"1"}}}` + "\n" +
	`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"

// mcp starts tether mcp in the jail's workspace and says hello.
func (j *jail) mcp(flags ...string) *rpc {
	j.t.Helper()
	t := j.t.(*testing.T)
	cmd := j.command()
	cmd.Args = append([]string{binary, "mcp"}, append(cmd.Args[2:], flags...)...)
	c := &rpc{t: t, cmd: cmd, said: make(chan rpcMessage, 1000)}
	cmd.Stderr = &c.stderr
	var err error
	if c.in, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.in.Close(); _ = cmd.Process.Kill(); _ = cmd.Wait() })
	go func() {
		defer close(c.said)
		lines := bufio.NewReaderSize(out, 1<<20)
		for {
			line, err := lines.ReadBytes('\n')
			if len(line) == 0 && err != nil {
				return
			}
			var m rpcMessage
			if err := json.Unmarshal(line, &m); err != nil || m.Version != "2.0" {
				t.Errorf("stdout has more than the protocol: %q", line)
			}
			c.said <- m
		}
	}()
	c.say(rpcHello)
	c.answer("hello")
	return c
}

func (c *rpc) say(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, text); err != nil {
		c.t.Fatal(err)
	}
}

// ask sends a call of a tool; the arguments are JSON.
func (c *rpc) ask(id, tool, args string) {
	c.t.Helper()
	c.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{"progressToken":%q}}}`+"\n", id, tool, args, id))
}

// next returns the next message.
func (c *rpc) next() rpcMessage {
	c.t.Helper()
	select {
	case m, ok := <-c.said:
		if !ok {
			c.t.Fatalf("the server has ended: %s", c.stderr.String())
		}
		return m
	case <-time.After(30 * time.Second):
		c.t.Fatal("the server says nothing")
	}
	return rpcMessage{}
}

// answer returns the answer to a request, and passes over what comes before.
func (c *rpc) answer(id string) rpcMessage {
	c.t.Helper()
	for {
		if m := c.next(); m.ID == id && m.Method == "" {
			return m
		}
	}
}

func (m rpcMessage) text() string {
	if len(m.Result.Content) != 1 {
		return ""
	}
	return m.Result.Content[0].Text
}

func (m rpcMessage) code() any {
	e, _ := m.Result.Output["error"].(map[string]any)
	return e["code"]
}

// end closes the input and waits.
func (c *rpc) end() {
	c.t.Helper()
	c.in.Close()
	for range c.said {
	}
	if err := c.cmd.Wait(); err != nil || c.stderr.Len() > 0 {
		c.t.Errorf("it ended with %v, stderr %q", err, c.stderr.String())
	}
}

// holder is a command that ignores signals, with a child in another session that
// holds the named pipe "held".
const holder = `trap '' TERM INT HUP; (setsid sh -c 'trap \"\" TERM; exec sleep 300' >held) & sleep 300`

// pipe makes that pipe.
func (j *jail) pipe() {
	j.t.Helper()
	j.mustHost("mkfifo held; chmod 666 held")
	j.own()
}

// holds says whether a process still holds the pipe.
func (j *jail) holds() bool {
	f, err := os.OpenFile(filepath.Join(j.w, "held"), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		j.t.Fatal(err)
	}
	defer f.Close()
	_ = f.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	_, err = f.Read(make([]byte, 1))
	return err != io.EOF // the end says that nobody can write
}

func (j *jail) eventually(what string, cond func() bool) {
	j.t.Helper()
	for end := time.Now().Add(20 * time.Second); !cond(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			j.t.Fatalf("%s does not come about", what)
		}
	}
}

func TestMCP(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.plant(".env")
		j.write("plain", "plain\n")
		j.pipe()
		c := j.mcp("--no-network")

		c.say(`{"jsonrpc":"2.0","id":"list","method":"tools/list"}` + "\n")
		if m := c.answer("list"); len(m.Result.Tools) != 3 {
			t.Errorf("got %+v", m)
		}
		c.ask("ok", "bash", `{"command":"cat plain; cat .env"}`)
		if m := c.answer("ok"); !strings.HasPrefix(m.text(), "exit 1\n") || !strings.Contains(m.text(), "\nplain\n") ||
			m.Result.IsError || strings.Contains(fmt.Sprint(m), j.secret) {
			t.Errorf("got %+v", m)
		}
		c.ask("no", "edit", `{"action":"view","path":".env"}`)
		if m := c.answer("no"); !m.Result.IsError || m.code() != "SANDBOX_VIOLATION" || !strings.Contains(m.text(), "hint: ") ||
			strings.Contains(fmt.Sprint(m), j.secret) {
			t.Errorf("got %+v", m)
		}
		c.ask("out", "bash", `{"command":"touch x","cwd":"`+j.out+`"}`)
		if m := c.answer("out"); !m.Result.IsError || m.code() != "SANDBOX_VIOLATION" {
			t.Errorf("got %+v", m)
		}

		c.ask("slow", "bash", `{"command":"echo started; `+holder+`"}`)
		if m := c.next(); m.Method != "notifications/progress" || m.Params.Message != "started" {
			t.Errorf("got %+v", m)
		}
		j.eventually("that the command holds its pipe", j.holds)
		c.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"slow"}}` + "\n")
		if m := c.answer("slow"); !m.Result.IsError || m.code() != "CANCELLED" {
			t.Errorf("got %+v", m)
		}
		if j.holds() {
			t.Error("what was cancelled lives")
		}
		c.ask("on", "bash", `{"command":"echo on"}`)
		if m := c.answer("on"); !strings.HasPrefix(m.text(), "exit 0\n") || !strings.HasSuffix(m.text(), "\n\non\n") {
			t.Errorf("got %+v", m)
		}
		c.end()
	})
}

// TestMCPClientKilled kills a client, which holds both pipes, while a command
// runs.
func TestMCPClientKilled(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.pipe()
		server := j.command()
		server.Args = append([]string{binary, "mcp"}, append(server.Args[2:], "--no-network")...)
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		r2, w2, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		client := exec.Command("sh", "-c", `printf '%s' "$0"; exec sleep 300`, rpcHello+
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"bash","arguments":{"command":"`+holder+`"}}}`+"\n")
		client.Stdout, client.Stdin = w, r2
		server.Stdin, server.Stdout = r, w2
		for _, c := range []*exec.Cmd{server, client} {
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
		}
		for _, f := range []*os.File{r, w, r2, w2} {
			f.Close()
		}
		j.eventually("that the command holds its pipe", j.holds)
		_ = client.Process.Kill()
		ended := make(chan error, 1)
		go func() { ended <- server.Wait() }()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("the server ended with %v", err)
			}
		case <-time.After(20 * time.Second):
			t.Fatal("the server lives")
		}
		if j.holds() {
			t.Error("the command lives")
		}
	})
}

// TestMCPTerminated ends the server by a signal while a command runs.
func TestMCPTerminated(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.pipe()
		c := j.mcp("--no-network")
		c.ask("slow", "bash", `{"command":"`+holder+`"}`)
		j.eventually("that the command holds its pipe", j.holds)
		if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		for range c.said {
		}
		if err := c.cmd.Wait(); err != nil || c.stderr.Len() > 0 {
			t.Errorf("it ended with %v, %q", err, c.stderr.String())
		}
		if j.holds() {
			t.Error("the command lives")
		}
	})
}

// TestMCPProgram looks for the second program beside the first, and nowhere
// else.
func TestMCPProgram(t *testing.T) {
	j := newJail(t, "native")
	copyTo := func(dir, name string) {
		t.Helper()
		raw, err := os.ReadFile(filepath.Join(filepath.Dir(binary), name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), raw, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	alone, bin := filepath.Join(j.out, "alone"), filepath.Join(j.out, "bin")
	for _, d := range []string{alone, bin, filepath.Join(j.w, "bin")} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	copyTo(alone, "tether")
	planted := "#!/bin/sh\necho PLANTED\n"
	for _, f := range []string{"tether-mcp", "bin/tether-mcp"} {
		if err := os.Chmod(j.write(f, planted), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	try := func(program string) result {
		t.Helper()
		cmd := exec.Command(program, "mcp", "-C", j.w)
		cmd.Dir, cmd.Env = j.w, append(append([]string{}, j.env...), "PATH=.:"+j.w+"/bin:"+os.Getenv("PATH"))
		cmd.Stdin = strings.NewReader(rpcHello)
		return finishCommand(t, cmd)
	}
	missing := func(program string) {
		t.Helper()
		r := try(program)
		if r.exit != exitOurs || !strings.HasPrefix(r.stderr, "tether: MCP_MISSING: ") || !strings.Contains(r.stderr, "hint: go install ") || r.stdout != "" {
			t.Errorf("%s: got %d, %q, %q", program, r.exit, r.stdout, r.stderr)
		}
	}
	missing(filepath.Join(alone, "tether"))
	// A link beside it leads who knows where.
	if err := os.Symlink(filepath.Join(j.w, "tether-mcp"), filepath.Join(alone, "tether-mcp")); err != nil {
		t.Fatal(err)
	}
	missing(filepath.Join(alone, "tether"))
	// Control: beside it, also when it is reached through a link.
	copyTo(bin, "tether")
	copyTo(bin, "tether-mcp")
	link := filepath.Join(alone, "linked")
	if err := os.Symlink(filepath.Join(bin, "tether"), link); err != nil {
		t.Fatal(err)
	}
	for _, program := range []string{filepath.Join(bin, "tether"), link} {
		if r := try(program); r.exit != 0 || !strings.Contains(r.stdout, `"serverInfo"`) {
			t.Errorf("%s: got %d, %s", program, r.exit, r.all())
		}
	}
}

// TestMCPProgramIsOwn has our programs in the workspace: neither can be
// replaced, and what comes in the place of one that is missing is taken away.
func TestMCPProgramIsOwn(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		for _, f := range []string{"tether", "tether-mcp"} {
			raw, err := os.ReadFile(filepath.Join(filepath.Dir(binary), f))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(j.write("bin/"+f, string(raw)), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		run := func(script string) result {
			cmd := j.command("--", "sh", "-c", script)
			cmd.Path = filepath.Join(j.w, "bin", "tether")
			return finishCommand(t, cmd)
		}
		if r := run("echo ok >bin/other; for f in tether tether-mcp; do echo x >bin/$f; mv bin/$f bin/y; done"); r.exit == 0 {
			t.Errorf("got %s", r.all())
		}
		for _, f := range []string{"tether", "tether-mcp"} {
			if info, err := os.Stat(filepath.Join(j.w, "bin", f)); err != nil || info.Size() < 1000 {
				t.Errorf("%s was changed: %v", f, err)
			}
		}
		if _, err := os.Stat(filepath.Join(j.w, "bin", "other")); err != nil {
			t.Errorf("control: the folder is writable: %v", err)
		}
		if err := os.Remove(filepath.Join(j.w, "bin", "tether-mcp")); err != nil {
			t.Fatal(err)
		}
		r := run("printf '#!/bin/sh\n' >bin/tether-mcp; chmod 755 bin/tether-mcp; test -x bin/tether-mcp && echo PLANTED")
		if !strings.Contains(r.stdout, "PLANTED") || !strings.Contains(r.stderr, "tether-mcp") {
			t.Errorf("got %s", r.all())
		}
		if _, err := os.Lstat(filepath.Join(j.w, "bin", "tether-mcp")); err == nil {
			t.Error("what was planted lies there")
		}
		edit := exec.Command(filepath.Join(j.w, "bin", "tether"), "edit", "write", "bin/tether-mcp", "-C", j.w)
		edit.Env, edit.Dir, edit.Stdin = j.env, j.w, strings.NewReader("x")
		if r := finishCommand(t, edit); r.exit != exitOurs || !strings.Contains(r.stderr, "SANDBOX_VIOLATION") {
			t.Errorf("edit: got %d, %s", r.exit, r.all())
		}
	})
}

func TestMCPFlags(t *testing.T) {
	j := newJail(t, "native")
	for _, c := range []struct {
		args []string
		exit int
		want string
	}{
		{[]string{"-h"}, 0, "--roots-under"},
		{[]string{"--paint"}, exitOurs, "USAGE_INVALID"},
		{[]string{"extra"}, exitOurs, "takes no argument"},
		{[]string{"--roots-under", "nowhere"}, exitOurs, "is no folder that is there"},
		{[]string{"--roots-under", ""}, exitOurs, "is no folder that is there"},
		{[]string{"--profile", "wide"}, exitOurs, "POLICY_INVALID"},
	} {
		cmd := exec.Command(binary, append([]string{"mcp"}, c.args...)...)
		cmd.Env, cmd.Dir = j.env, j.w
		if r := finishCommand(t, cmd); r.exit != c.exit || !strings.Contains(r.all(), c.want) || c.exit != 0 && r.stdout != "" {
			t.Errorf("%q: got %d, %q, %q", c.args, r.exit, r.stdout, r.stderr)
		}
	}
}

// inspector is the version of the client that is not built on the same library.
const inspector = "1.0.3"

// TestMCPInspector lists and calls every tool with the protocol's own inspector.
func TestMCPInspector(t *testing.T) {
	node := need.Program(t, "node")
	cache, err := os.UserCacheDir()
	if err != nil {
		need.Missing(t, "inspector", err.Error())
	}
	cli := filepath.Join(cache, "tether-tests", "inspector-"+inspector, "node_modules/@modelcontextprotocol/inspector/cli/build/cli.js")
	if _, err := os.Stat(cli); err != nil {
		need.Missing(t, "inspector", "script/setup installs it: "+err.Error())
	}
	j := newJail(t, "native")
	j.plant(".env")
	j.write("plain", "plain\n")
	j.own()
	inspect := func(args ...string) (out struct {
		Tools []struct {
			Name        string
			InputSchema map[string]any
		}
		IsError           bool
		Content           []struct{ Text string }
		StructuredContent map[string]any
	}) {
		t.Helper()
		cmd := exec.Command(node, append([]string{cli, "--cli", binary, "mcp", "-C", j.w, "--no-network"}, args...)...)
		cmd.Env, cmd.Dir = j.env, j.w
		for _, kv := range j.env { // it hands a few variables on by itself
			if strings.HasPrefix(kv, "XDG_") {
				cmd.Args = append(cmd.Args[:3:3], append([]string{"-e", kv}, cmd.Args[3:]...)...)
			}
		}
		r := finishCommand(t, cmd)
		_, text, _ := strings.Cut(r.stdout, "{")
		if err := json.Unmarshal([]byte("{"+text), &out); err != nil {
			t.Fatalf("%q: %v: %s", args, err, r.all())
		}
		if strings.Contains(r.all(), j.secret) {
			t.Errorf("%q shows the secret", args)
		}
		return out
	}
	list := inspect("--method", "tools/list")
	if len(list.Tools) != 3 {
		t.Fatalf("got %+v", list)
	}
	calls := map[string][]string{
		"bash":  {"command=cat plain"},
		"edit":  {"action=view", "path=plain"},
		"fetch": {"url=http://127.0.0.1:1/"}, // refused: there is no network
	}
	for _, tool := range list.Tools {
		args := []string{"--method", "tools/call", "--tool-name", tool.Name}
		for _, a := range calls[tool.Name] {
			args = append(args, "--tool-arg", a)
		}
		r := inspect(args...)
		if tool.Name == "fetch" {
			if !r.IsError || len(r.Content) != 1 || !strings.HasPrefix(r.Content[0].Text, "EGRESS_DENIED: ") {
				t.Errorf("fetch: got %+v", r)
			}
			continue
		}
		if r.IsError || len(r.Content) != 1 || !strings.HasSuffix(r.Content[0].Text, "plain\n") || r.StructuredContent == nil {
			t.Errorf("%s: got %+v", tool.Name, r)
		}
	}
	r := inspect("--method", "tools/call", "--tool-name", "edit", "--tool-arg", "action=view", "--tool-arg", "path=.env")
	if !r.IsError || !strings.Contains(r.Content[0].Text, "SANDBOX_VIOLATION") {
		t.Errorf("a hidden file: got %+v", r)
	}
}
