// Package flagset reads the flags from which every verb that makes a policy gets
// it, puts them on top of the policy files, and opens a session under both. The
// programs of this module share it, so that a flag means the same everywhere.
package flagset

import (
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/tether-sandbox/tether"
	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/policyfile"
	"github.com/tether-sandbox/tether/policy"
)

// ErrHelp says that help was asked for and given.
var ErrHelp = errors.New("help was printed")

// Flags are the flags of one verb. A verb adds its own to Set before Parse.
type Flags struct {
	// Set holds all flags; Operands is what help says comes after them.
	Set      *flag.FlagSet
	Operands string
	// Fetches says that the verb starts no command; see Help.
	Fetches bool
	// Workspace is absolute after Parse.
	Workspace string
	NoSandbox bool
	// Session names the session in which everything is recorded; see
	// AddSession. Open makes up a name where NewSession stands there, and where
	// a policy file asks for an audit.
	Session string
	// Looks says that nothing will be run, so that no session begins.
	Looks bool
	// Approver, if there is one, returns who is asked in a recorded session;
	// it may return nil.
	Approver func() tether.Approver
	// Origins say, after Open, which layer set what.
	Origins policyfile.Origins

	changes []policyfile.Change // what the command line says about the policy
	wrong   error               // what is wrong with the value of a flag
	network string              // as it was said already
}

// New returns the flags of a verb.
func New(verb string) *Flags {
	f := &Flags{Set: flag.NewFlagSet(verb, flag.ContinueOnError), Operands: " [--] CMD [ARG...]"}
	f.Set.SetOutput(io.Discard)
	f.Set.Usage = func() {}

	f.Set.Func("p", "the same as --profile `PROFILE`", f.rule("profile", same))
	f.Set.Func("profile", "`PROFILE`: read-only, workspace-write (default) or full-access", f.rule("profile", same))
	f.Set.Func("C", "the same as --workspace `DIR`", f.Named("workspace", &f.Workspace))
	f.Set.Func("workspace", "`DIR` that the work is about (default: the current folder)", f.Named("workspace", &f.Workspace))

	f.Set.Func("network", "`MODE`: gated (default: public hosts, and what rules allow), open (the host's) or none", f.rule("network", same))
	f.Set.BoolFunc("no-network", "no network but a private loopback", f.Coded(func(s string) error {
		if s != "true" {
			return fault.New(fault.UsageInvalid, "--no-network takes no value").WithHint("--network gated")
		}
		return f.rule("network", same)(policy.Offline.String())
	}))
	f.Set.Func("allow-host", "also let out `RULE`: a name, *.name, address or network, each with :PORTS (repeatable)", f.rule("allow-host", same))
	f.Set.Func("deny-host", "never let out `RULE` (repeatable)", f.rule("deny-host", same))
	f.Set.Func("only-host", "let out `RULE` instead of public hosts (repeatable)", f.rule("only-host", same))
	f.Set.Func("sni", "`WHICH` names TLS may show under --only-host: listed (default) or any, also none", f.rule("sni", same))
	f.Set.Func("upstream", "reach public hosts through the HTTP proxy `URL`, or environment: what HTTPS_PROXY says", f.rule("upstream", same))
	f.Set.Func("publish", "let the host reach `PORT` inside, at a loopback address that is printed (repeatable)", f.rule("publish", same))
	f.Set.Func("fetch", "`WHAT` tether fetch may reach: public, listed or none (default: as the network)", f.rule("fetch", same))
	f.Set.Func("allow-read", "also show `PATH`, read-only (repeatable)", f.rule("allow-read", absolute))
	f.Set.Func("allow-write", "also show `PATH`, writable (repeatable)", f.rule("allow-write", absolute))
	f.Set.Func("reads", "show `PATH` instead of the system's folders (repeatable), or system (default)", func(s string) error {
		if s == "system" {
			return f.rule("reads", same)(s)
		}
		return f.rule("reads", absolute)(s)
	})
	f.Set.Func("protect", "also hide files that match `GLOB` (repeatable)", f.rule("protect", same))
	f.Set.Func("lock", "also keep files that match `GLOB` from being changed (repeatable)", f.rule("lock", same))
	f.Set.Func("allow-config", "lift the lock of `PATH`, which the host runs unasked (repeatable)", f.rule("allow-config", same))

	f.Set.Func("env", "pass variable `NAME`, or set it by NAME=VALUE (repeatable)", f.rule("env", same))
	f.Set.Func("redact", "keep the value of variable `NAME`, of 16 bytes or more, out of all output (repeatable)", f.rule("redact", same))
	f.Set.Func("home", "`HOME`: workspace (default) or private", f.rule("home", same))
	f.Set.BoolFunc("nested", "let the command build sandboxes (bwrap, browsers); write and secrets are then Partial", f.rule("nested", same))
	f.Set.BoolFunc("no-scrub", "pass the whole environment (full-access only)", f.rule("no-scrub", same))
	f.Set.Func("commands", "`WHICH` commands read-only may start: inspection (default) or any", f.rule("commands", same))

	f.Set.Func("timeout", "end the command after `TIME`, such as 90s or 5m (default: never; 2m where output is captured)", f.rule("timeout", same))
	f.Set.Func("max-output", "keep `SIZE` of stdout and of stderr where they are captured: --json, mcp (default: 1M)", f.rule("max-output", same))
	f.Set.Func("max-memory", "limit the memory of the whole tree to `SIZE`", f.rule("max-memory", same))
	f.Set.Func("max-file-size", "limit each written file to `SIZE`", f.rule("max-file-size", same))
	f.Set.Func("max-procs", "allow at most `N` processes and threads (default: 4096)", f.rule("max-procs", same))
	f.Set.Func("max-open-files", "allow each process at most `N` open files", f.rule("max-open-files", same))
	f.Set.Func("max-cpu", "end the command after `TIME` of processor time, in whole seconds", f.rule("max-cpu", same))
	f.Set.Func("max-scratch", "limit each private folder, such as /tmp and /dev/shm, to `SIZE`", f.rule("max-scratch", same))
	f.Set.Func("min-free-disk", "end the command when a disk it writes has less than `SIZE` left (default: 1G)", f.rule("min-free-disk", same))

	f.Set.Func("provider", "`NAME`: auto (default), native, bwrap, landlock, seatbelt (macOS) or guard", f.rule("provider", same))
	f.Set.Func("accept", "take less than required: process=partial, say (`GUARANTEE=GRADE`, repeatable)", f.rule("accept", same))
	f.Set.BoolVar(&f.NoSandbox, "no-sandbox", false, "run with no sandbox at all; time, output and environment rules still hold")
	return f
}

func same(s string) (string, error) { return s, nil }

// absolute makes a path of the command line absolute, as the shell's user
// means it: from the current folder.
func absolute(s string) (string, error) {
	if s == "" || strings.HasPrefix(s, "~/") {
		return s, nil
	}
	return filepath.Abs(s)
}

// rule reads a flag that has the name and the meaning of a key of the policy
// file.
func (f *Flags) rule(key string, change func(string) (string, error)) func(string) error {
	return f.Coded(func(s string) (err error) {
		if s == "" {
			return empty(key)
		}
		if s == "--" {
			return fault.New(fault.UsageInvalid, "--"+key+" is followed by -- instead of a value").WithHint("tether " + f.Set.Name() + " -h")
		}
		s, err = change(s)
		if err != nil {
			return err
		}
		if key == "network" {
			if f.network != "" && f.network != s {
				return fault.New(fault.PolicyInvalid, "the network cannot be both "+f.network+" and "+s).WithHint("--network " + s)
			}
			f.network = s
		}
		c, err := policyfile.Flag(key, s)
		f.changes = append(f.changes, c)
		return err
	})
}

// Named reads a flag into to that is no rule. An empty value, as of a variable
// that is not set, would be as if the flag had not been typed, and is refused.
func (f *Flags) Named(name string, to *string) func(string) error {
	return f.Coded(func(s string) error {
		if s == "" {
			return empty(name)
		}
		*to = s
		return nil
	})
}

// Coded keeps the error with which read refuses a value, of which the flag
// package keeps only the text.
func (f *Flags) Coded(read func(string) error) func(string) error {
	return func(s string) error {
		f.wrong = read(s)
		return f.wrong
	}
}

func empty(name string) error {
	return fault.New(fault.PolicyInvalid, "an empty value of --"+name+" means nothing").
		WithHint("leave out --" + name + ", or look whether a variable in its value is set")
}

// Parse reads the flags and returns what follows them.
func (f *Flags) Parse(args []string, out io.Writer) ([]string, error) {
	err := f.Set.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		f.Help(out)
		return nil, ErrHelp
	case err != nil:
		if f.wrong != nil {
			return nil, f.wrong
		}
		return nil, Wrong(f.Set, err)
	}
	if f.Workspace == "" {
		dir, err := os.Getwd()
		if err != nil {
			return nil, fault.Wrap(fault.SandboxBadWorkspace, "the current folder is gone", err).
				WithHint("cd to a project's folder, or name one: tether " + f.Set.Name() + " -C DIR")
		}
		f.Workspace = dir
	}
	if f.Workspace, err = filepath.Abs(f.Workspace); err != nil {
		return nil, fault.Wrap(fault.SandboxBadWorkspace, "cannot name the workspace", err)
	}
	return f.Set.Args(), nil
}

// base is the policy of a user who says nothing.
func (f *Flags) base() policy.Policy { return policy.Default(f.Workspace) }

// layers reads the policy files and puts the flags on top of them.
func (f *Flags) layers() ([]policyfile.Layer, error) {
	state, config, err := Folders()
	if err != nil {
		return nil, err
	}
	layers, err := policyfile.Load(state, config, f.Workspace)
	return append(layers, policyfile.Flags(f.changes)), err
}

// Effective returns what the policy files and the flags come to.
func (f *Flags) Effective() (policyfile.Effective, error) {
	layers, err := f.layers()
	if err != nil {
		return policyfile.Effective{}, err
	}
	return policyfile.Apply(f.base(), layers...)
}

// At returns the same flags for another workspace.
func (f *Flags) At(workspace string) *Flags {
	g := *f
	g.Workspace = workspace
	return &g
}

// Refusal is why every run under a policy is refused, and the key it is about.
type Refusal struct {
	Key string
	Err error
}

// NotInThisBuild lists what a policy asks for that this build cannot do, or not
// on this machine.
func NotInThisBuild(e policyfile.Effective) []Refusal {
	var out []Refusal
	if _, err := tether.Open(context.Background(), tether.Options{Policy: e.Policy}); fault.CodeOf(err) == fault.LimitUnenforceable {
		out = append(out, Refusal{"max-memory", err})
	}
	return out
}
