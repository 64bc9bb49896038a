package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/flagset"
	"github.com/tether-sandbox/tether/internal/policyfile"
	"github.com/tether-sandbox/tether/policy"
)

const policyUsage = `usage: tether policy show [flags]      the policy that holds under these flags, and who set what
       tether policy check FILE       whether a policy file is right and can be held by this build;
                                      says nothing if so
       tether policy trust [--yes]    let the workspace's file, as it is now, widen; --revoke takes it back
`

func policyVerb(args []string, std stdio) (int, error) {
	if len(args) == 0 {
		return 0, fault.New(fault.UsageInvalid, "policy needs one more word: show, check or trust").WithHint("tether policy -h")
	}
	switch args[0] {
	case "show":
		return policyShow(args[1:], std)
	case "check":
		return policyCheck(args[1:], std)
	case "trust":
		return policyTrust(args[1:], std)
	case "-h", "--help", "help":
		fmt.Fprint(std.out, policyUsage)
		return 0, nil
	}
	return 0, fault.New(fault.UsageInvalid, fmt.Sprintf("tether policy cannot %q; it can show, check and trust", args[0])).
		WithHint("tether policy -h")
}

func policyShow(args []string, std stdio) (int, error) {
	f := newFlags("policy show")
	f.Operands = ""
	rest, err := f.Parse(args, std.out)
	if err == nil && len(rest) > 0 {
		err = fault.New(fault.UsageInvalid, "tether policy show takes no argument "+strconv.Quote(rest[0])).WithHint("tether policy show")
	}
	if err != nil {
		return f.failed(err, std)
	}
	e, err := f.Effective()
	if err != nil {
		return f.failed(err, std)
	}
	if f.json {
		return 0, writeJSON(std.out, jsonPolicy{e.Policy, e.Provider, e.Approval, e.Fetch, e.Audit, originObjects(e.Origins)})
	}
	fmt.Fprint(std.out, policyfile.Render(e))
	return 0, nil
}

// jsonPolicy is a policy as --json prints it. Fields are only ever added.
type jsonPolicy struct {
	// Policy is what holds, with the names of package policy.
	Policy policy.Policy `json:"policy"`
	// Provider, Approval, Fetch and Audit are the keys of these names.
	Provider string `json:"provider,omitempty"`
	Approval string `json:"approval,omitempty"`
	Fetch    string `json:"fetch,omitempty"`
	Audit    bool   `json:"audit,omitempty"`
	// Origins say for each rule that is not built in where it comes from.
	Origins []jsonOrigin `json:"origins"`
}

type jsonOrigin struct {
	// Key and Value are the rule.
	Key   string `json:"key"`
	Value string `json:"value"`
	// Layer is a file, or the flags; Line stands in the file.
	Layer string `json:"layer"`
	Line  int    `json:"line,omitempty"`
}

func originObjects(origins policyfile.Origins) []jsonOrigin {
	out := make([]jsonOrigin, 0, len(origins))
	for _, o := range origins {
		out = append(out, jsonOrigin{o.Key, o.Value, o.Layer, o.Line})
	}
	return out
}

// originLines says for each rule that a layer set which one it was.
func originLines(origins policyfile.Origins) []string {
	var lines []string
	for _, o := range origins {
		line := fmt.Sprintf("%-14s %s", o.Key, strings.TrimSpace(o.Value+"  ("+o.Layer))
		if o.Line > 0 {
			line += ":" + strconv.Itoa(o.Line)
		}
		lines = append(lines, line+")")
	}
	return lines
}

// policyCheck tells every error of a file, one a line, as other failures are
// told.
func policyCheck(args []string, std stdio) (int, error) {
	set := flag.NewFlagSet("policy check", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.Usage = func() {}
	switch err := set.Parse(args); {
	case err == flag.ErrHelp:
		fmt.Fprint(std.out, policyUsage)
		return 0, nil
	case err != nil:
		return 0, flagset.Wrong(set, err)
	case set.NArg() != 1:
		return 0, fault.New(fault.UsageInvalid, "policy check needs one file").WithHint("tether policy check .tether/policy.toml")
	}
	name := set.Arg(0)
	content, err := readFile(name)
	if err != nil {
		return 0, err
	}
	e, errs := policyfile.Check(name, content)
	status := 0
	for _, err := range errs {
		status = finish(exitOurs, err)(std.err)
	}
	if status != 0 {
		return status, nil
	}
	// Right, and of no use here: better said now than by the first run.
	for _, r := range flagset.NotInThisBuild(e) {
		at := name
		for _, o := range e.Origins {
			if o.Key == r.Key && o.Line > 0 {
				at = name + ":" + strconv.Itoa(o.Line)
			}
		}
		fmt.Fprintf(std.err, "tether: note: %s: every run under this is refused: %s\n", printable(at), flagset.Message(r.Err))
	}
	return 0, nil
}

// readFile reads a file that the user named, up to a size that no policy file
// has.
func readFile(name string) ([]byte, error) {
	const hint = "name a policy file, such as .tether/policy.toml"
	info, err := os.Stat(name)
	if err == nil && !info.Mode().IsRegular() {
		return nil, fault.New(fault.FileUnfit, name+" is not a regular file").WithHint(hint)
	}
	var content []byte
	if err == nil && info.Size() <= 1<<20 {
		content, err = os.ReadFile(name)
	} else if err == nil {
		return nil, fault.New(fault.FileUnfit, name+" is far larger than a policy file").WithHint(hint)
	}
	if err != nil {
		return nil, fault.Wrap(fault.FileNotFound, "cannot read "+name, err).WithHint(hint)
	}
	return content, nil
}

func policyTrust(args []string, std stdio) (int, error) {
	set := flag.NewFlagSet("policy trust", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	yes := set.Bool("yes", false, "do not ask")
	revoke := set.Bool("revoke", false, "forget what was trusted in this workspace")
	var dir string
	set.StringVar(&dir, "C", ".", "the same as --workspace `DIR`")
	set.StringVar(&dir, "workspace", ".", "`DIR` whose .tether/policy.toml is meant (default: the current folder)")
	if err := parseSimple(set, args, std.out); err != nil {
		return 0, err
	}
	workspace, err := filepath.Abs(dir)
	if err != nil {
		return 0, fault.Wrap(fault.SandboxBadWorkspace, "cannot name the workspace", err)
	}
	state, config, err := flagset.Folders()
	if err != nil {
		return 0, err
	}
	if *revoke {
		return 0, policyfile.Untrust(state, workspace)
	}
	layers, err := policyfile.Load(state, config, workspace)
	if err != nil {
		return 0, err
	}
	if len(layers) == 0 || !layers[len(layers)-1].Workspace {
		return 0, fault.New(fault.FileNotFound, "the workspace has no .tether/policy.toml").WithHint("tether policy trust -C DIR")
	}
	l, below := layers[len(layers)-1], layers[:len(layers)-1]
	if l.Trusted {
		fmt.Fprintln(std.out, printable(l.Name), "is trusted as it is")
		return 0, nil
	}
	wide, err := policyfile.Widenings(policy.Default(workspace), below, l)
	if err != nil {
		return 0, err
	}
	if len(wide) == 0 {
		fmt.Fprintln(std.out, printable(l.Name), "only narrows and holds without trust; trusted, it may do the same under wider flags")
	} else {
		fmt.Fprintln(std.out, printable(l.Name), "would allow more:")
		for _, c := range wide {
			fmt.Fprintf(std.out, "  line %d: %s\n", c.Line, printable(c.String()))
		}
	}
	if !*yes {
		if !isTerminal(std.in) {
			return 0, fault.New(fault.ApprovalDenied, "there is no terminal to ask on").WithHint("tether policy trust --yes")
		}
		fmt.Fprint(std.out, "Trust exactly this content? [y/N] ")
		answer, _ := bufio.NewReader(io.LimitReader(std.in, 1024)).ReadString('\n')
		if a := strings.ToLower(strings.TrimSpace(answer)); a != "y" && a != "yes" {
			return 0, fault.New(fault.ApprovalDenied, "nothing was trusted").WithHint("tether policy trust --yes")
		}
	}
	return 0, policyfile.Trust(state, workspace, l.Content)
}
