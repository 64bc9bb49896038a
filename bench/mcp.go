package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// client is a client of tether mcp, as small as it gets.
type client struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	last int
}

func dial(tether, dir string, flags ...string) (*client, error) {
	cmd := exec.Command(tether, append([]string{"mcp", "-C", dir}, flags...)...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &client{cmd: cmd, in: in, out: bufio.NewReaderSize(out, 1<<20)}
	if _, err := c.request("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}`); err != nil {
		return nil, err
	}
	_, err = io.WriteString(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
	return c, err
}

// request waits for the answer to a request.
func (c *client) request(method, params string) ([]byte, error) {
	c.last++
	if _, err := fmt.Fprintf(c.in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", c.last, method, params); err != nil {
		return nil, err
	}
	return c.out.ReadBytes('\n')
}

// call calls a tool, which must not be refused.
func (c *client) call(tool, args string) error {
	answer, err := c.request("tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, args))
	if err != nil {
		return err
	}
	var m struct {
		Result *struct{ IsError bool }
	}
	if err := json.Unmarshal(answer, &m); err != nil || m.Result == nil || m.Result.IsError {
		return fmt.Errorf("%s %s: %v: %s", tool, args, err, answer)
	}
	return nil
}

func (c *client) close() {
	c.in.Close()
	_ = c.cmd.Wait()
}

// session measures what the size of a workspace costs in a session, whose watch
// stands: the search before a command and the look after it, when nothing happened
// and when the command before wrote into 100 folders.
func (b bench) session() error {
	w, err := b.tree()
	if err != nil {
		return err
	}
	small := filepath.Join(b.top, "mcp")
	call := func(dir, command string) (subject, func(), error) {
		c, err := dial(b.tether, dir, "--no-network")
		if err != nil {
			return subject{}, nil, err
		}
		do := func() error { return c.call("bash", `{"command":"`+command+`"}`) }
		for range 4 { // the watch is begun after the first
			if err := do(); err != nil {
				c.close()
				return subject{}, nil, err
			}
			time.Sleep(time.Second)
		}
		return subject{do: do, pause: 100 * time.Millisecond}, c.close, nil
	}
	subjects := []subject{{name: "bwrap ... true there", argv: append(bwrapArgs(w, false), "true"), dir: w}}
	for _, x := range []struct{ name, dir, command string }{
		{"bash true through MCP in an empty workspace", small, "true"},
		{"bash true through MCP there", w, "true"},
		{"touching 100 folders there", w, "for i in d1/*; do : > $i/new; done"},
	} {
		s, end, err := call(x.dir, x.command)
		if err != nil {
			return err
		}
		defer end()
		s.name = x.name
		subjects = append(subjects, s)
	}
	m, err := inTurns(20, subjects)
	if err != nil {
		return err
	}
	table("a session in 100,000 files in 10,000 folders", subjects, m, 0)
	fmt.Printf("  the search and the look afterwards cost %.1f ms\n", m[2]-m[1])
	return nil
}

// mcp compares a call through MCP with a run and with bwrap, and counts edits.
func (b bench) mcp() error {
	w := filepath.Join(b.top, "mcp")
	if err := os.MkdirAll(w, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(w, "note"), []byte("one\ntwo\n"), 0o644); err != nil {
		return err
	}
	c, err := dial(b.tether, w, "--no-network")
	if err != nil {
		return err
	}
	defer c.close()
	bash := func() error { return c.call("bash", `{"command":"true"}`) }
	subjects := []subject{
		{name: "bwrap ... true", argv: append(bwrapArgs(w, false), "true"), dir: w},
		{name: "tether run -- true", argv: []string{b.tether, "run", "--no-network", "--", "true"}, dir: w},
		{name: "bash true through MCP, after a pause", do: bash, pause: 100 * time.Millisecond},
		{name: "bash true through MCP, at once", do: bash},
	}
	m, err := inTurns(40, subjects)
	if err != nil {
		return err
	}
	table("a command through MCP", subjects, m, 0)
	if err := b.session(); err != nil {
		return err
	}
	for _, x := range []struct{ name, args string }{
		{"views", `{"action":"view","path":"note"}`},
		{"writes", `{"action":"write","path":"note","text":"one\ntwo\n"}`},
		{"searches", `{"action":"search","pattern":"t.o"}`},
	} {
		n, begin := 0, time.Now()
		for ; time.Since(begin) < time.Second; n++ {
			if err := c.call("edit", x.args); err != nil {
				return err
			}
		}
		fmt.Printf("  %-40s %10.0f per second\n", x.name+" through MCP", float64(n)/time.Since(begin).Seconds())
	}
	return nil
}
