package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/tether-sandbox/tether"
	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/flagset"
	"github.com/tether-sandbox/tether/internal/world/local/stream"
)

// background is the context of the whole program: signals reach the command
// and not us.
var background = context.Background()

func runVerb(args []string, std stdio) (int, error) {
	f := newRunFlags("run")
	argv, err := f.Parse(args, std.out)
	if err == nil && len(argv) == 0 {
		err = fault.New(fault.UsageInvalid, "no command was given").WithHint("tether run -- CMD [ARG...]")
	}
	if err != nil {
		return f.failed(err, std)
	}
	return f.run(tether.Command{Args: argv}, std)
}

// enforcedByNobody is the provider that only reads command lines. Whoever names
// it has accepted that; whoever reads the output may not know.
const enforcedByNobody = "guard"

// unconfined is what --no-sandbox and full-access run with.
const unconfined = "none"

// run runs one command under the flags and tells how it went.
func (f *flags) run(c tether.Command, std stdio) (int, error) {
	named := f.Session == flagset.NewSession
	s, err := f.Open(background)
	if err != nil {
		return f.failed(err, std)
	}
	defer s.Close()
	if named {
		fmt.Fprintln(std.err, "tether: session", s.ID())
	}
	to, err := f.openReport(s.Policy())
	if err != nil {
		return f.failed(err, std)
	}
	if !f.json && !f.quiet {
		for _, line := range f.Idle() {
			fmt.Fprintln(std.err, "tether:", printable(line))
		}
	}
	c.Stdin = std.in
	if !f.json {
		c.Stdout, c.Stderr, c.Stream = std.out, std.err, true
	}
	signals := make(chan os.Signal, 8)
	for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		if !signal.Ignored(sig) { // as nohup(1) has it
			signal.Notify(signals, sig)
		}
	}
	c.Signals = signals
	c.Published = func(port uint16, address string) {
		fmt.Fprintf(std.err, "tether: port %d inside is %s here\n", port, address)
	}
	res, err := s.Run(background, c)
	signal.Stop(signals) // from here on they are for us again
	if err != nil {
		return f.failed(err, std, res.Findings...)
	}
	if err := f.tell(c, res, to, std); err != nil {
		return 0, err
	}
	if res.Signal == "INT" && !f.json {
		interrupted(res, std)
	}
	return res.Exit, nil
}

// failed tells of a failure of ours, and of what was found all the same, in the
// form that was asked for.
func (f *flags) failed(err error, std stdio, found ...tether.Finding) (int, error) {
	if errors.Is(err, flagset.ErrHelp) {
		return 0, err
	}
	if n := f.asker.interrupted(); n > 0 {
		// As a shell tells of a signal. What was asked for did not happen.
		finish(0, err)(std.err)
		return 128 + n, nil
	}
	if !f.json {
		for _, line := range findingLines(found) {
			fmt.Fprintln(std.err, "tether:", line)
		}
		return exitOurs, err
	}
	_ = writeJSON(std.out, jsonFailure{"failed", exitOurs, append([]tether.Finding{}, found...),
		errorObject(err)})
	return exitOurs, nil
}

// errorObject is a failure of ours as --json prints it.
func errorObject(err error) jsonError {
	return jsonError{fault.CodeOf(err), fault.TextOf(err), fault.HintOf(err)}
}

// tell prints what is worth knowing after a command.
func (f *flags) tell(c tether.Command, res tether.Result, to *reportFile, std stdio) error {
	if f.json {
		if err := writeJSON(std.out, jsonResult{Result: res, Seconds: res.Duration.Seconds()}); err != nil {
			return err
		}
	}
	if to != nil {
		brief := res
		brief.Stdout, brief.Stderr = "", ""
		if err := to.write(jsonResult{Result: brief, Seconds: res.Duration.Seconds()}); err != nil {
			return err
		}
	}
	switch {
	case res.Outcome == tether.NotFound:
		finish(0, notFound(f.Workspace, c.Args))(std.err)
	case res.Outcome == tether.NotExecutable:
		finish(0, notExecutable(f.Workspace, c.Args[0]))(std.err)
	case res.TimedOut:
		finish(0, fault.New(fault.LimitTime, "the time limit ended the command").WithHint("--timeout "+longer(res.Duration)))(std.err)
	}
	if res.Report.Provider == enforcedByNobody || res.Report.Provider == unconfined {
		fmt.Fprintf(std.err, "tether: nothing confined this command (provider %s, overall %s)\n", res.Report.Provider, res.Report.Overall)
	}
	if f.verbose {
		printReport(std.err, res.Report)
		for _, x := range res.Findings {
			fmt.Fprintln(std.err, printable("  found: "+x.Path+": "+x.What+" ("+x.Action+")"))
		}
	}
	if res.Unrecorded != "" {
		fmt.Fprintln(std.err, "tether:", printable("the command ran, and how it ended is not recorded: "+res.Unrecorded))
	}
	const most = 20 // a program that tries every address must not bury the rest
	for i, d := range res.Denials {
		if i == most {
			fmt.Fprintf(std.err, "tether: %d more things were refused; --json lists them\n", len(res.Denials)-most)
			break
		}
		finish(0, fault.New(d.Code, d.What+": "+d.Rule).WithHint(d.Remedy))(std.err)
	}
	for _, line := range findingLines(res.Findings) {
		fmt.Fprintln(std.err, "tether:", line)
	}
	if line := redacted(res.Report.Redacted); line != "" && !f.json && !(isTerminal(std.out) && isTerminal(std.err)) {
		fmt.Fprintln(std.err, "tether:", line)
	}
	if line := receipt(res); line != "" && !f.json && !f.quiet && isTerminal(std.err) {
		fmt.Fprintln(std.err, "tether:", printable(line))
	}
	return nil
}

// longer is a time limit that is worth trying next: twice as long, in whole
// seconds.
func longer(d time.Duration) string {
	return max(time.Second, (2 * d).Round(time.Second)).String()
}

// jsonResult is a result as --json prints it. Fields are only ever added.
type jsonResult struct {
	tether.Result
	// Seconds is how long the run took, in seconds.
	Seconds float64 `json:"duration"`
}

// jsonFailure is what --json prints instead when nothing ran, or nothing is
// known of its end, because we failed. Fields are only ever added.
type jsonFailure struct {
	// Outcome is failed.
	Outcome string `json:"outcome"`
	// Exit is 125.
	Exit int `json:"exit"`
	// Findings are what was found all the same.
	Findings []tether.Finding `json:"findings"`
	// Error is what went wrong.
	Error jsonError `json:"error"`
}

type jsonError struct {
	// Code is a stable one, see codes.md.
	Code fault.Code `json:"code"`
	// What happened, without the code.
	What string `json:"what"`
	// Hint is the exact thing to type, empty where there is no way out.
	Hint string `json:"hint"`
}

func writeJSON(w io.Writer, v any) error {
	if err := encode(w, v); err != nil {
		return fault.Wrap(fault.OutputLost, "it was done, and the result could not be written", reason(err))
	}
	return nil
}

func encode(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// findingLines says what the command left that was moved away. What was only
// reported is counted in the receipt.
func findingLines(findings []tether.Finding) []string {
	var lines []string
	for _, f := range findings {
		if f.Action == "reported" {
			continue
		}
		line := fmt.Sprintf("%s: %s; it was %s", f.Path, f.What, f.Action)
		if f.Quarantined != "" {
			line += " (kept at " + f.Quarantined + ")"
		}
		lines = append(lines, printable(line))
	}
	return lines
}

// redacted says what a program that reads the output must know: it is not what
// the command wrote.
func redacted(list []tether.Redaction) string {
	if len(list) == 0 {
		return ""
	}
	const most = 5
	var names []string
	for _, r := range list[:min(len(list), most)] {
		names = append(names, fmt.Sprintf("%s (%d)", r.Name, r.Count))
	}
	if n := len(list) - most; n > 0 {
		names = append(names, fmt.Sprintf("%d more", n))
	}
	return "the output was changed: [REDACTED:NAME] stands for the secrets " + strings.Join(names, ", ")
}

// receipt is the one line that says what was worth knowing.
func receipt(res tether.Result) string {
	var parts []string
	add := func(n int, one, many string) {
		switch {
		case n == 1:
			parts = append(parts, "1 "+one)
		case n > 1:
			parts = append(parts, fmt.Sprintf("%d %s", n, many))
		}
	}
	var later []string
	var links, repos int
	for _, f := range res.Findings {
		switch {
		case f.Action != "reported":
		case f.Kind == "symlink":
			links++
		case f.Kind == "git-repository":
			repos++
		default:
			later = append(later, f.Path)
		}
	}
	add(res.Report.Hidden, "secret hidden", "secrets hidden")
	marks := 0
	for _, r := range res.Report.Redacted {
		marks += r.Count
	}
	add(marks, "secret redacted in the output", "secrets redacted in the output")
	add(len(res.Denials), "thing refused", "things refused")
	add(len(later), "changed file runs later on the host", "changed files run later on the host")
	const most = 3
	if len(later) > most {
		later = append(later[:most], "...")
	}
	if len(later) > 0 {
		parts[len(parts)-1] += ": " + strings.Join(later, ", ")
	}
	add(links, "new link leads out of the workspace", "new links lead out of the workspace")
	add(repos, "new git repository", "new git repositories")
	return strings.Join(parts, "; ") // names in a part have commas between them
}

func printReport(w io.Writer, r tether.Report) {
	fmt.Fprintf(w, "tether: provider %s, overall %s\n", r.Provider, r.Overall)
	for _, g := range r.Grades {
		line := fmt.Sprintf("  %-8s %-8s %s", g.Guarantee, g.Grade, g.Means)
		if g.Reason != "" {
			line += " (" + g.Reason + ")"
		}
		fmt.Fprintln(w, printable(line))
	}
	for _, t := range r.Tried {
		fmt.Fprintln(w, "  tried", printable(t))
	}
	for _, x := range r.Widened {
		fmt.Fprintln(w, "  widened:", printable(x))
	}
	for _, n := range r.Notes {
		line := "  note: " + n.What
		if n.Hint != "" {
			line += " (" + n.Hint + ")"
		}
		fmt.Fprintln(w, printable(line))
	}
}

func isTerminal(f *os.File) bool { return stream.IsTerminal(f) }
