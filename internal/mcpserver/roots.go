package mcpserver

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tether-sandbox/tether"
	"github.com/tether-sandbox/tether/fact"
	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/policy"
	"github.com/tether-sandbox/tether/tool"
)

// newProtocol is the version from which a server may not ask a client by
// itself, but only by the result of a call.
const newProtocol = "2026-07-28"

// rootsKey names our question in such a result.
const rootsKey = "roots"

// rootsPatience is how long a client may take to say its roots.
const rootsPatience = 5 * time.Second

// base is what holds without the client's roots. It is looked at while the
// client still says hello.
type base struct {
	options tether.Options
	done    chan struct{}
	err     error // why it cannot be planned
}

func look(o tether.Options) *base {
	b := &base{options: o, done: make(chan struct{})}
	go func() {
		defer close(b.done)
		b.err = plannable(o)
	}()
	return b
}

// plannable says why a session's policy cannot be planned, if so: a workspace
// that is refused is refused there. Nothing is recorded.
func plannable(o tether.Options) error {
	o.Session, o.Approver = "", nil
	s, err := tether.Open(context.Background(), o)
	if err != nil {
		return err
	}
	defer s.Close()
	_, err = s.Explain(context.Background(), tether.Command{})
	return err
}

// ready returns the tools of the connection's session, which the first call
// opens. It may have to ask the client for its roots; from a client of the new
// protocol by a result that makes it call again.
func (s *server) ready(ctx context.Context, req *mcp.CallToolRequest) (*tool.Tools, *mcp.CallToolResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tools != nil || s.err != nil {
		return s.tools, nil, s.err
	}
	var roots []string
	if caps := req.ClientCapabilities(); caps != nil && caps.RootsV2 != nil {
		answer := req.Params.InputResponses[rootsKey]
		if req.ProtocolVersion() < newProtocol {
			wait, cancel := context.WithTimeout(ctx, rootsPatience)
			defer cancel()
			// A client that does not say has no roots.
			if r, err := req.Session.ListRoots(wait, &mcp.ListRootsParams{}); err == nil {
				answer = r
			}
		} else if answer == nil {
			return nil, &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{rootsKey: &mcp.ListRootsParams{}}}, nil
		}
		if r, ok := answer.(*mcp.ListRootsResult); ok {
			roots = folders(r.Roots)
		}
	}
	if ctx.Err() != nil {
		return nil, nil, ctx.Err() // the next call tries again
	}
	<-s.base.done
	o, err := s.choose(roots)
	if err == nil {
		s.session, err = s.open(ctx, o, canAsk(req))
	}
	if s.err = err; err == nil {
		s.tools = tool.New(s.session)
	}
	return s.tools, nil, s.err
}

// open opens the connection's session.
func (s *server) open(ctx context.Context, o tether.Options, ask bool) (*tether.Session, error) {
	o.KeepReady, o.KeepTmp, o.By = true, true, fact.Program
	o.Session = s.base.options.Session // also one that was made up
	if o.Approver == nil && ask {
		o.Approver = asker{}
	}
	session, err := tether.Open(ctx, o)
	if err == nil && s.options.Accept != nil {
		if err = s.options.Accept(session); err != nil {
			session.Close()
			return nil, err
		}
	}
	return session, err
}

// choose says how the session is opened for a client with these roots.
func (s *server) choose(roots []string) (tether.Options, error) {
	b := s.base
	if fault.CodeOf(b.err) == fault.SandboxBadWorkspace && len(s.options.RootsUnder) > 0 {
		for _, r := range roots {
			if !inAny(s.options.RootsUnder, r) {
				continue
			}
			o, err := s.options.At(r)
			if err == nil {
				err = plannable(o)
			}
			return o, err
		}
		return tether.Options{}, fault.Wrap(fault.SandboxBadWorkspace, "no root of the client lies in a folder that --roots-under names", b.err).
			WithHint("tether mcp -C DIR, or open a folder below " + strings.Join(s.options.RootsUnder, " or "))
	}
	pol := b.options.Policy
	inside := narrower(pol.Workspace, roots)
	if b.err != nil || len(inside) == 0 || pol.Profile == policy.FullAccess {
		return b.options, b.err
	}
	o, err := s.options.At(inside[0])
	if err != nil {
		return o, err
	}
	if pol.Profile == policy.ReadOnly {
		o.Policy.Read = append(o.Policy.Read, inside[1:]...)
	} else {
		o.Policy.Write = append(o.Policy.Write, inside[1:]...)
	}
	// Whatever the folder's own policy file says, nothing gets wider by it.
	o.Policy = policy.Meet(o.Policy, pol)
	return o, plannable(o)
}

// folders returns the roots that are folders here, by their real paths.
func folders(roots []*mcp.Root) []string {
	var list []string
	for _, r := range roots {
		if r == nil {
			continue
		}
		u, err := url.Parse(r.URI)
		if err != nil || u.Scheme != "file" || u.Host != "" && u.Host != "localhost" || !filepath.IsAbs(u.Path) {
			continue
		}
		real, err := filepath.EvalSymlinks(u.Path)
		if err != nil {
			continue
		}
		if info, err := os.Stat(real); err == nil && info.IsDir() {
			list = append(list, real)
		}
	}
	return list
}

// narrower returns the roots that lie in the workspace, if all that the client
// works on there is less than the workspace.
func narrower(workspace string, roots []string) []string {
	real, err := filepath.EvalSymlinks(workspace)
	if err != nil {
		return nil
	}
	var list []string
	for _, r := range roots {
		switch {
		case within(r, real):
			return nil // it works on the whole of it
		case within(real, r):
			list = append(list, r)
		}
	}
	return list
}

// inAny says whether a real path lies in one of the folders.
func inAny(dirs []string, path string) bool {
	for _, d := range dirs {
		if real, err := filepath.EvalSymlinks(d); err == nil && within(real, path) {
			return true
		}
	}
	return false
}

// within says whether path is dir or lies below it. Both are real paths.
func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}
