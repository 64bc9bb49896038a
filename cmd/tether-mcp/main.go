// Command tether-mcp is what tether mcp becomes: the tools of package tool for a
// client of the Model Context Protocol, on standard input and output. It takes
// the flags of tether run that make a policy. As "tether-mcp fetch" it is what
// tether fetch becomes.
//
// It is a program of its own so that no other start of tether pays for what the
// protocol's library and net/http bring along; see docs/decisions.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/tether-sandbox/tether"
	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/flagset"
	"github.com/tether-sandbox/tether/internal/mcpserver"
	"github.com/tether-sandbox/tether/internal/world/local/stream"
)

// version is set by the linker for releases.
var version = "dev"

// exitOurs is the exit status of a failure of ours.
const exitOurs = 125

func main() {
	tether.Inner()
	// Whatever prints by mistake must not end up between messages.
	out := os.Stdout
	os.Stdout = os.Stderr
	if len(os.Args) > 1 && os.Args[1] == fetchName {
		code, err := fetch(os.Args[2:], os.Stdin, out, os.Stderr)
		switch {
		case errors.Is(err, flagset.ErrHelp):
			code = 0
		case err != nil:
			flagset.Tell(os.Stderr, err)
		}
		os.Exit(code)
	}
	err := serve(os.Args[1:], os.Stdin, out)
	switch {
	case errors.Is(err, flagset.ErrHelp):
	case err != nil:
		flagset.Tell(os.Stderr, err)
		os.Exit(exitOurs)
	}
}

func serve(args []string, in, out *os.File) error {
	f := flagset.New("mcp")
	f.Operands = ""
	f.AddSession()
	var under []string
	f.Set.Func("roots-under", "when the client starts us in / or a home, take its first root in `DIR` as the workspace (repeatable)", f.Coded(func(s string) error {
		if rest, ok := strings.CutPrefix(s, "~/"); ok { // no shell has read a client's configuration
			s = filepath.Join(os.Getenv("HOME"), rest)
		}
		dir, err := filepath.Abs(s)
		if info, serr := os.Stat(dir); err == nil && (s == "" || serr != nil || !info.IsDir()) {
			return fault.New(fault.UsageInvalid, "--roots-under "+strconv.Quote(s)+" is no folder that is there").WithHint("mkdir -p DIR, or name another folder that holds your projects")
		}
		under = append(under, dir)
		return err
	}))
	rest, err := f.Parse(args, out)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return fault.New(fault.UsageInvalid, "tether mcp takes no argument "+strconv.Quote(rest[0])).WithHint("tether mcp -h")
	}
	if stream.IsTerminal(in) {
		fmt.Fprintln(os.Stderr, "tether: an MCP client speaks to this on stdin and stdout, and starts it: claude mcp add tether -- tether mcp (Ctrl-D ends it)")
	}
	// A broken pipe is an end like others, and no reason to leave at once.
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	return mcpserver.Serve(ctx, in, out, mcpserver.Options{
		Version: version, Workspace: f.Workspace, RootsUnder: under, Accept: f.Accept,
		At: func(workspace string) (tether.Options, error) { return f.At(workspace).Options() },
	})
}
