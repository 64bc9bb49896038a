// Package mcpserver gives the tools of a session to a client of the Model
// Context Protocol, over two streams, through the official SDK.
//
// One connection has one session, and that one policy, which is fixed before
// the first call: by whoever started the server, and by the client's roots,
// which can only narrow it. When the client is gone, or the context ends,
// every call is cancelled and the whole process tree of each command killed
// before Serve returns.
//
// What the policy refuses is the result of a call, marked as an error, with a
// code, the reason and a hint. Protocol errors are for what is no call of a
// tool that exists.
package mcpserver

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tether-sandbox/tether"
	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/policy"
	"github.com/tether-sandbox/tether/tool"
)

// Options say what is served.
type Options struct {
	// Version is Tether's.
	Version string
	// Workspace is the folder that the server was started for.
	Workspace string
	// RootsUnder are folders. Where Workspace is one that is refused, such as
	// / or a home, because the client starts its servers there, the client's
	// first root in one of these becomes the workspace.
	RootsUnder []string
	// At returns how a session about a workspace is opened. Its approver, if
	// there is none, is the client's user, where the client can ask.
	At func(workspace string) (tether.Options, error)
	// Accept, when set, refuses a session that was opened and is not what was
	// wanted.
	Accept func(*tether.Session) error
}

// maxRunning is how many calls work at once; the others wait.
const maxRunning = 8

// patience is how long Serve waits for calls that were cancelled. What is left
// then, ends with the process.
const patience = 10 * time.Second

// server is one connection.
type server struct {
	options Options
	running chan struct{}
	conn    *conn

	// base is what holds before the client says anything.
	base *base

	mu      sync.Mutex
	session *tether.Session
	tools   *tool.Tools
	err     error // why there is no session, for good
}

// Serve speaks MCP on in and out until in ends or ctx does. Nothing else is
// ever written to out. It fails, before anything is written, if the policy
// cannot be made at all.
func Serve(ctx context.Context, in io.Reader, out io.Writer, o Options) error {
	start, err := o.At(o.Workspace)
	if err != nil {
		return err
	}
	s := &server{options: o, running: make(chan struct{}, maxRunning), conn: newConn(in, out)}
	s.base = look(start)
	defer s.close()
	defer context.AfterFunc(ctx, func() { s.conn.Close() })()

	m := mcp.NewServer(&mcp.Implementation{Name: "tether", Title: "Tether", Version: o.Version}, &mcp.ServerOptions{
		Instructions: instructions(start),
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
	})
	for _, spec := range tool.Specs(start.Policy) {
		m.AddTool(&mcp.Tool{Name: spec.Name, Title: spec.Title, Description: spec.Description,
			InputSchema: spec.Input, OutputSchema: spec.Output,
			Annotations: &mcp.ToolAnnotations{Title: spec.Title, ReadOnlyHint: spec.ReadOnly,
				DestructiveHint: &spec.Destructive, OpenWorldHint: &spec.OpenWorld}}, s.call)
	}
	done := make(chan error, 1)
	go func() { done <- m.Run(context.WithoutCancel(ctx), s.conn) }()
	select {
	case err = <-done:
	case <-s.conn.stop:
		select {
		case err = <-done:
		case <-time.After(patience):
		}
	}
	if s.conn.over() {
		return nil // the client left, or we were told to: both are an end as it should be
	}
	return err
}

// over says whether the input has ended or was ended.
func (c *conn) over() bool {
	select {
	case <-c.stop:
		return true
	default:
		return false
	}
}

func instructions(o tether.Options) string {
	pol := o.Policy
	text := fmt.Sprintf("Commands and file edits run under a policy that the operating system enforces (profile %s, network %s). It cannot be changed from here.", pol.Profile, pol.Network.Mode)
	if pol.Profile == policy.FullAccess {
		text = "Commands and file edits run unconfined (profile full-access)."
	}
	if o.Session != "" {
		text += " Everything is recorded in the session " + o.Session + "."
	}
	return text + " When something is refused, the result says why and what the user can do about it; tell the user instead of trying another way."
}

func (s *server) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	<-s.base.done
	if s.session != nil {
		s.session.Close()
	}
}

// call is every tool's handler.
func (s *server) call(ctx context.Context, req *mcp.CallToolRequest) (result *mcp.CallToolResult, err error) {
	name := req.Params.Name
	defer func() {
		if fail := recover(); fail != nil {
			result, err = answer(tool.Refused(name, fault.New(fault.Internal, fmt.Sprint(fail)))), nil
		}
	}()
	select {
	case s.running <- struct{}{}:
		defer func() { <-s.running }()
	case <-ctx.Done():
		return answer(tool.Refused(name, ctx.Err())), nil
	}
	tools, ask, err := s.ready(ctx, req)
	switch {
	case err != nil:
		return answer(tool.Refused(name, err)), nil
	case ask != nil:
		return ask, nil
	}
	p, asks := follow(ctx, req), &asking{req: req}
	r, err := tools.Call(context.WithValue(ctx, askingKey{}, asks), name, req.Params.Arguments, p.watch())
	p.end()
	switch {
	case err != nil:
		return nil, err
	case r.Failed && asks.put != nil:
		return &mcp.CallToolResult{InputRequests: asks.put}, nil
	}
	return answer(r), nil
}

func answer(r tool.Result) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: r.Text}}, StructuredContent: r.Output, IsError: r.Failed}
}
