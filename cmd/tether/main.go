// Command tether runs what an AI agent wants to do under one policy that the
// operating system enforces. See README.md.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tether-sandbox/tether"
	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/flagset"
	"github.com/tether-sandbox/tether/internal/typo"
)

// version is set by the linker for releases.
var version = "dev"

// exitOurs is the exit status of a failure of ours, as opposed to the
// command's own status.
const exitOurs = 125

const usage = `usage: tether VERB [flags] [-- CMD [ARG...]]

  run [flags] [--] CMD [ARG...]   run one command, confined
  sh [flags] [-c CMD]             a confined shell, for programs that start $SHELL
  edit view|write|replace|list|search PATH
                                  read and change files under the same policy
  fetch [flags] URL               get a document from the web under the same policy
  mcp [flags]                     the same tools for an agent: an MCP server on stdio
  explain [flags] [-- CMD]        what would hold for a command, without running it
  policy show|check|trust         the policy that holds, and the files that it comes from
  session list|show|log|verify|mode|preset|grant|revoke|rm
                                  what recorded sessions were allowed and did
  why [ID]                        what a recorded session was refused last, and the way out
  doctor [--fix] [--json]         how strong each guarantee is here, and how to raise it
  clean [--quarantine]            remove this user's caches, and the /tmp of each session
  version                         print the version

tether VERB -h lists the flags of a verb. Exit status: the command's own;
128+n after signal n; 124 our time limit; 125 a failure of ours; 126 and 127 as
shells use them.
`

// verb is one verb of the command line. It returns the exit status.
type verb func(args []string, std stdio) (int, error)

type stdio struct {
	in       *os.File
	out, err *os.File
}

func main() {
	tether.Inner()
	os.Exit(run(os.Args, stdio{os.Stdin, os.Stdout, os.Stderr}))
}

func run(args []string, std stdio) int {
	verbs := map[string]verb{"run": runVerb, "sh": shVerb, "explain": explainVerb, "edit": editVerb, "policy": policyVerb, "session": sessionVerb, "why": whyVerb, "doctor": doctorVerb,
		"clean": cleanVerb, "fetch": fetchVerb, "mcp": mcpVerb, "version": versionVerb}
	// As a shell: through a link that is called so, or with a shell's own flag.
	name := strings.TrimPrefix(filepath.Base(args[0]), "-")
	if name == "tether-sh" {
		return finish(shVerb(args[1:], std))(std.err)
	}
	if len(args) < 2 {
		fmt.Fprint(std.err, usage)
		return exitOurs
	}
	switch first := args[1]; {
	case first == "help" && len(args) == 3 && verbs[args[2]] != nil && args[2] != "version":
		return finish(verbs[args[2]]([]string{"-h"}, std))(std.err)
	case first == "-h" || first == "--help" || first == "help":
		fmt.Fprint(std.out, usage)
		return 0
	case first == "--version":
		return finish(versionVerb(nil, std))(std.err)
	case first == "-c" || first == "-lc" || first == "-l" || first == "-ic":
		return finish(shVerb(args[1:], std))(std.err)
	case verbs[first] != nil:
		return finish(verbs[first](args[2:], std))(std.err)
	default:
		names := []string{}
		for n := range verbs {
			names = append(names, n)
		}
		slices.Sort(names)
		rest := args[1:]
		if first == "--" {
			rest = rest[1:]
		}
		hint := "tether run -- " + tether.CommandLine(rest)
		what := fmt.Sprintf("there is no verb %q; there are %s", first, strings.Join(names, ", "))
		if near := typo.Nearest(first, names); near != "" {
			hint = "tether " + tether.CommandLine(append([]string{near}, args[2:]...))
		} else if strings.HasPrefix(first, "-") && first != "--" {
			what, hint = "flags come after the verb, and "+first+" before it", "tether run "+first+" -- CMD"
		} else if slices.Contains(rest, "--") { // it was meant as a verb
			hint = "tether help"
		}
		err := fault.New(fault.UsageInvalid, what).WithHint(hint)
		return finish(exitOurs, err)(std.err)
	}
}

// finish prints an error as every failure of ours is printed and returns the
// exit status.
func finish(status int, err error) func(io.Writer) int {
	return func(w io.Writer) int {
		if err == nil {
			return status
		}
		if errors.Is(err, flagset.ErrHelp) {
			return 0
		}
		flagset.Tell(w, err)
		if status == 0 {
			status = exitOurs
		}
		return status
	}
}

// printable keeps what would act on a terminal out of foreign text.
func printable(s string) string { return flagset.Printable(s) }

func versionVerb(_ []string, std stdio) (int, error) {
	_, err := fmt.Fprintln(std.out, "tether", version)
	return 0, err
}
