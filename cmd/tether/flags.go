package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/tether-sandbox/tether"
	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/policyfile"
	"github.com/tether-sandbox/tether/policy"
)

// errHelp says that help was asked for and given.
var errHelp = errors.New("help was printed")

// flags are the flags of every verb that makes a policy.
type flags struct {
	set *flag.FlagSet

	// changes are what the command line says about the policy.
	changes   []policyfile.Change
	wrong     error              // what is wrong with the value of a flag
	network   string             // as it was said already
	origins   policyfile.Origins // after open
	noSandbox bool
	json      bool
	report    string
	verbose   bool
	workspace string
}

// newFlags returns the flags of a verb.
func newFlags(name string) *flags {
	f := &flags{set: flag.NewFlagSet(name, flag.ContinueOnError)}
	f.set.SetOutput(io.Discard)
	f.set.Usage = func() {}

	f.set.Func("p", "the same as --profile", f.rule("profile", same))
	f.set.Func("profile", "`PROFILE`: read-only, workspace-write (default) or full-access", f.rule("profile", same))
	f.set.StringVar(&f.workspace, "C", "", "the same as --workspace")
	f.set.StringVar(&f.workspace, "workspace", "", "`DIR` that the work is about (default: the current folder)")

	f.set.Func("network", "`MODE`: open (the host's network) or none", f.rule("network", same))
	f.set.BoolFunc("no-network", "no network but a private loopback", func(string) error {
		return f.rule("network", same)(policy.Offline.String())
	})
	f.set.Func("allow-read", "also show `PATH`, read-only (repeatable)", f.rule("allow-read", absolute))
	f.set.Func("allow-write", "also show `PATH`, writable (repeatable)", f.rule("allow-write", absolute))
	f.set.Func("reads", "show exactly `PATH` of the machine instead of the system's folders (repeatable), or system", func(s string) error {
		if s == "system" {
			return f.rule("reads", same)(s)
		}
		return f.rule("reads", absolute)(s)
	})
	f.set.Func("protect", "also hide files that match `GLOB` (repeatable)", f.rule("protect", same))
	f.set.Func("lock", "also keep files that match `GLOB` from being changed (repeatable)", f.rule("lock", same))
	f.set.Func("allow-config", "let `PATH`, which the host runs unasked, be changed (repeatable)", f.rule("allow-config", same))

	f.set.Func("env", "pass variable `NAME`, or set it by NAME=VALUE (repeatable)", f.rule("env", same))
	f.set.Func("home", "`HOME`: workspace (default) or private", f.rule("home", same))
	f.set.BoolFunc("no-scrub", "pass the whole environment (full-access only)", f.rule("no-scrub", same))
	f.set.Func("commands", "what read-only may start, `WHICH`: inspection (default) or any", f.rule("commands", same))

	f.set.Func("timeout", "end the command after `TIME`, such as 90s or 5m", f.rule("timeout", same))
	f.set.Func("max-output", "keep at most `SIZE` of stdout and of stderr (with --json)", f.rule("max-output", same))
	f.set.Func("max-memory", "limit the memory of the whole tree to `SIZE`", f.rule("max-memory", same))
	f.set.Func("max-file-size", "limit each written file to `SIZE`", f.rule("max-file-size", same))
	f.set.Func("max-procs", "allow at most `N` processes and threads", f.rule("max-procs", same))

	f.set.Func("provider", "`NAME`: auto (default), native, bwrap or guard", f.rule("provider", same))
	f.set.Func("accept", "accept `GUARANTEE=GRADE` where the machine cannot do better (repeatable)", f.rule("accept", same))
	f.set.BoolVar(&f.noSandbox, "no-sandbox", false, "run with no sandbox at all; time, output and environment rules still hold")
	f.set.BoolVar(&f.json, "json", false, "print one JSON object with the output and the report")
	f.set.StringVar(&f.report, "report", "", "write the report as JSON to `FILE`")
	f.set.BoolVar(&f.verbose, "v", false, "print the report on stderr")
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
func (f *flags) rule(key string, change func(string) (string, error)) func(string) error {
	return func(s string) (err error) {
		// The flag package keeps only the text of an error.
		defer func() { f.wrong = err }()
		if s == "" {
			return fault.New(fault.PolicyInvalid, "an empty value means nothing")
		}
		s, err = change(s)
		if err != nil {
			return err
		}
		if key == "network" {
			if f.network != "" && f.network != s {
				return fault.New(fault.PolicyInvalid, "the network cannot be both "+f.network+" and "+s).WithHint("--network " + s + ", or --network " + f.network)
			}
			f.network = s
		}
		c, err := policyfile.Flag(key, s)
		f.changes = append(f.changes, c)
		return err
	}
}

// parse reads the flags and returns what follows them.
func (f *flags) parse(args []string, out io.Writer) ([]string, error) {
	err := f.set.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		f.help(out)
		return nil, errHelp
	case err != nil:
		if f.wrong != nil {
			return nil, f.wrong
		}
		return nil, fault.New(fault.UsageInvalid, strings.TrimPrefix(err.Error(), "flag provided but not defined: ")+
			notDefined(err)).WithHint("tether " + f.set.Name() + " -h")
	}
	if f.workspace == "" {
		dir, err := os.Getwd()
		if err != nil {
			return nil, fault.Wrap(fault.SandboxBadWorkspace, "the current folder is gone", err)
		}
		f.workspace = dir
	}
	if f.workspace, err = filepath.Abs(f.workspace); err != nil {
		return nil, fault.Wrap(fault.SandboxBadWorkspace, "cannot name the workspace", err)
	}
	return f.set.Args(), nil
}

func notDefined(err error) string {
	if strings.HasPrefix(err.Error(), "flag provided but not defined: ") {
		return " is not a flag of this verb"
	}
	return ""
}

func (f *flags) help(out io.Writer) {
	operands := " [--] CMD [ARG...]"
	if f.set.Name() == showVerb {
		operands = ""
	}
	fmt.Fprintf(out, "usage: tether %s [flags]%s\n\n", f.set.Name(), operands)
	f.set.VisitAll(func(fl *flag.Flag) {
		name, text := flag.UnquoteUsage(fl)
		dash := "--"
		if len(fl.Name) == 1 {
			dash = "-"
		}
		fmt.Fprintf(out, "  %-28s %s\n", strings.TrimSpace(dash+fl.Name+" "+name), text)
	})
}

// base is the policy of a user who says nothing.
func (f *flags) base() policy.Policy { return policy.Default(f.workspace) }

// layers reads the policy files and puts the flags on top of them.
func (f *flags) layers() ([]policyfile.Layer, error) {
	state, config, err := ownFolders()
	if err != nil {
		return nil, err
	}
	layers, err := policyfile.Load(state, config, f.workspace)
	return append(layers, policyfile.Flags(f.changes)), err
}

// effective returns what the policy files and the flags come to.
func (f *flags) effective() (policyfile.Effective, error) {
	layers, err := f.layers()
	if err != nil {
		return policyfile.Effective{}, err
	}
	return policyfile.Apply(f.base(), layers...)
}

// open opens a session under the policy files and the flags.
func (f *flags) open() (*tether.Session, error) {
	e, err := f.effective()
	if err != nil {
		return nil, err
	}
	switch {
	case e.Policy.Network.Mode == policy.Gated:
		return nil, fault.New(fault.SandboxUnavailable, "the gate is not part of this build").
			WithHint("--network none, or --network open to share the host's network")
	case e.Audit:
		return nil, fault.New(fault.StoreUnavailable, "the policy asks for a durable log, which is not part of this build").
			WithHint("leave out audit = true")
	}
	f.origins = e.Origins
	return tether.Open(background, tether.Options{Policy: e.Policy, Provider: e.Provider, NoSandbox: f.noSandbox})
}
