package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/tether-sandbox/tether"
	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/policy"
)

// errHelp says that help was asked for and given.
var errHelp = errors.New("help was printed")

// flags are the flags of every verb that makes a policy.
type flags struct {
	set *flag.FlagSet

	policy    policy.Policy
	provider  string
	noSandbox bool
	json      bool
	report    string
	verbose   bool
	workspace string
}

// newFlags returns the flags of a verb. They fill a policy that starts as the
// default one.
func newFlags(name string) *flags {
	f := &flags{set: flag.NewFlagSet(name, flag.ContinueOnError), policy: policy.Default("")}
	f.set.SetOutput(io.Discard)
	f.set.Usage = func() {}
	p := &f.policy

	profile := func(s string) (err error) { p.Profile, err = policy.ParseProfile(s); return err }
	f.set.Func("p", "the same as --profile", profile)
	f.set.Func("profile", "`PROFILE`: read-only, workspace-write (default) or full-access", profile)
	f.set.StringVar(&f.workspace, "C", "", "the same as --workspace")
	f.set.StringVar(&f.workspace, "workspace", "", "`DIR` that the work is about (default: the current folder)")

	f.set.Func("network", "`MODE`: open (the host's network) or none", func(s string) (err error) {
		p.Network.Mode, err = policy.ParseNetworkMode(s)
		return err
	})
	f.set.BoolFunc("no-network", "no network but a private loopback", func(string) error {
		p.Network.Mode = policy.Offline
		return nil
	})
	f.set.Func("allow-read", "also show `PATH`, read-only (repeatable)", list(&p.Read, absolute))
	f.set.Func("allow-write", "also show `PATH`, writable (repeatable)", list(&p.Write, absolute))
	f.set.Func("reads", "show exactly `PATH` of the machine instead of the system's folders (repeatable)", func(s string) error {
		p.Reads.System = false
		return list(&p.Reads.Only, absolute)(s)
	})
	f.set.Func("protect", "also hide files that match `GLOB` (repeatable)", list(&p.Protect.Hidden, same))
	f.set.Func("lock", "also keep files that match `GLOB` from being changed (repeatable)", list(&p.Protect.Locked, same))
	f.set.Func("allow-config", "let `PATH`, which the host runs unasked, be changed (repeatable)", list(&p.Protect.AllowConfig, same))

	f.set.Func("env", "pass variable `NAME`, or set it by NAME=VALUE (repeatable)", func(s string) error {
		v, err := policy.ParseEnv(s)
		if err == nil {
			p.Env.Add(v)
		}
		return err
	})
	f.set.Func("home", "`HOME`: workspace (default) or private", func(s string) (err error) {
		p.Home, err = policy.ParseHome(s)
		return err
	})
	f.set.BoolVar(&p.Env.NoScrub, "no-scrub", false, "pass the whole environment (full-access only)")
	f.set.Func("commands", "what read-only may start, `WHICH`: inspection (default) or any", func(s string) (err error) {
		p.Commands, err = policy.ParseCommands(s)
		return err
	})

	f.set.Func("timeout", "end the command after `TIME`, such as 90s or 5m", func(s string) (err error) {
		p.Limits.Time, err = policy.ParseDuration(s)
		return err
	})
	size := func(to *int64) func(string) error {
		return func(s string) (err error) { *to, err = policy.ParseSize(s); return err }
	}
	f.set.Func("max-output", "keep at most `SIZE` of stdout and of stderr (with --json)", size(&p.Limits.OutputBytes))
	f.set.Func("max-memory", "limit the memory of the whole tree to `SIZE`", size(&p.Limits.MemoryBytes))
	f.set.Func("max-file-size", "limit each written file to `SIZE`", size(&p.Limits.FileBytes))
	f.set.Func("max-procs", "allow at most `N` processes and threads", func(s string) error {
		n, err := strconv.ParseInt(s, 10, 32)
		if err != nil || n <= 0 {
			return fault.New(fault.PolicyInvalid, "a number of processes is a positive whole number, not "+strconv.Quote(s)).
				WithHint("--max-procs 200")
		}
		p.Limits.Processes = n
		return nil
	})

	f.set.StringVar(&f.provider, "provider", "", "`NAME`: auto (default), native, bwrap or guard")
	f.set.Func("accept", "accept `GUARANTEE=GRADE` where the machine cannot do better (repeatable)", func(s string) error {
		g, grade, err := policy.ParseAccept(s)
		if err != nil {
			return err
		}
		if p.Accept == nil {
			p.Accept = map[policy.Guarantee]policy.Grade{}
		}
		p.Accept[g] = grade
		return nil
	})
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

func list(to *[]string, change func(string) (string, error)) func(string) error {
	return func(s string) error {
		if s == "" {
			return fault.New(fault.PolicyInvalid, "an empty value means nothing")
		}
		s, err := change(s)
		*to = append(*to, s)
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
		if e, ok := errors.AsType[*fault.Error](err); ok {
			return nil, e
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
	if f.policy.Workspace, err = filepath.Abs(f.workspace); err != nil {
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
	fmt.Fprintf(out, "usage: tether %s [flags] [--] CMD [ARG...]\n\n", f.set.Name())
	f.set.VisitAll(func(fl *flag.Flag) {
		name, text := flag.UnquoteUsage(fl)
		dash := "--"
		if len(fl.Name) == 1 {
			dash = "-"
		}
		fmt.Fprintf(out, "  %-28s %s\n", strings.TrimSpace(dash+fl.Name+" "+name), text)
	})
}

// open opens a session under the flags.
func (f *flags) open() (*tether.Session, error) {
	if f.policy.Network.Mode == policy.Gated {
		return nil, fault.New(fault.SandboxUnavailable, "the gate is not part of this build").
			WithHint("--network none, or --network open to share the host's network")
	}
	return tether.Open(background, tether.Options{Policy: f.policy, Provider: f.provider, NoSandbox: f.noSandbox})
}
