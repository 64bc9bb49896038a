package tool

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/tether-sandbox/tether"
	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/policy"
)

const bashText = "Run a shell command in the workspace. The operating system confines it: it sees the workspace and the system's folders, not the user's home or secrets such as .env. It has no terminal, and nothing that it starts outlives the call." + refusedText

// BashInput asks for a command.
type BashInput struct {
	Command string `json:"command" doc:"shell command, for bash -c"`
	// Cwd is the folder to start in. It moves no root.
	Cwd string `json:"cwd,omitempty" doc:"folder to start in, relative to the workspace or absolute inside it (default: the workspace); it changes nothing of what may be written"`
	// Timeout is in seconds. It only shortens the policy's limit.
	Timeout float64 `json:"timeout,omitempty" doc:"seconds after which the command is ended; cannot exceed the policy's limit, which is the default"`
	Stdin   string  `json:"stdin,omitempty" doc:"text that the command reads (default: an empty input)"`
	Why     string  `json:"why,omitempty" doc:"one line on what it is for; the user sees it if an approval is needed"`

	// Watch, when not nil, is shown the output as it comes, as in
	// [tether.Command].
	Watch func(p []byte) `json:"-"`
}

// Failed is the outcome of a call with an [Error]; the others are package
// tether's.
const Failed tether.Outcome = "failed"

// BashOutput is how a command ended.
type BashOutput struct {
	Outcome tether.Outcome `json:"outcome" enum:"exited,signaled,timed-out,not-found,not-executable,failed" doc:"whose status exit is; failed: nothing is known to have run to its end, see error"`
	Exit    int            `json:"exit" doc:"the command's status; 128+n for signal n; 124 for the time limit; 125 with error"`
	Signal  string         `json:"signal,omitempty"`
	Seconds float64        `json:"duration" doc:"seconds"`
	Stdout  string         `json:"stdout"`
	Stderr  string         `json:"stderr"`
	// Truncated: of a stream only the beginning and the end are there.
	Truncated     bool  `json:"truncated" doc:"the middle of stdout or stderr was dropped; a line in the text says where"`
	StdoutDropped int64 `json:"stdout_dropped,omitempty" doc:"bytes"`
	StderrDropped int64 `json:"stderr_dropped,omitempty" doc:"bytes"`

	Denials  []tether.Denial  `json:"denials,omitempty" doc:"what the policy refused while it ran, and the one thing that allows each"`
	Findings []tether.Finding `json:"findings,omitempty" doc:"what it left that would run later on the host, and what was done about it"`
	Report   *Report          `json:"report,omitempty" doc:"how strong each guarantee was"`
	Error    *Error           `json:"error,omitempty" doc:"why it was refused or failed"`
}

// Report says how strong each guarantee was.
type Report struct {
	Provider string `json:"provider"`
	// Overall is the lowest grade among the required guarantees.
	Overall policy.Grade                      `json:"overall"`
	Grades  map[policy.Guarantee]policy.Grade `json:"grades"`
	// Reasons say why a grade is not Complete.
	Reasons map[policy.Guarantee]string `json:"reasons,omitempty"`
	// Hidden counts the files and folders that were hidden.
	Hidden int `json:"hidden"`
	// Redacted counts the marks that stand for secrets in the output, by name.
	Redacted []tether.Redaction `json:"redacted,omitempty"`
	Notes    []tether.Note      `json:"notes,omitempty"`
}

// maxCommand is what the kernel takes as one argument, less a little.
const maxCommand = 120 << 10

// Bash runs a command to its end. When ctx ends, its whole process tree is
// killed before Bash returns.
func (t *Tools) Bash(ctx context.Context, in BashInput) BashOutput {
	switch {
	case strings.TrimSpace(in.Command) == "":
		return bashFailed(invalid("command is missing"))
	case len(in.Command) > maxCommand:
		return bashFailed(fault.New(fault.UsageInvalid, fmt.Sprintf("the command is longer than %d bytes", maxCommand)).
			WithHint("write it to a file with " + EditName + " and run that"))
	case in.Timeout < 0:
		return bashFailed(invalid("timeout is negative"))
	}
	c := tether.Command{Args: []string{shell(), "-c", in.Command}, Dir: in.Cwd, Watch: in.Watch, Why: in.Why}
	if in.Timeout > 0 {
		c.Time = max(time.Duration(min(in.Timeout, 1e6)*float64(time.Second)), time.Millisecond)
	}
	if in.Stdin != "" {
		c.Stdin = strings.NewReader(in.Stdin)
	}
	res, err := t.session.Run(ctx, c)
	if err != nil {
		out := bashFailed(err)
		out.Findings = res.Findings
		return out
	}
	return BashOutput{Outcome: res.Outcome, Exit: res.Exit, Signal: res.Signal, Seconds: res.Duration.Seconds(),
		Stdout: res.Stdout, Stderr: res.Stderr, Truncated: res.Truncated, StdoutDropped: res.StdoutDropped, StderrDropped: res.StderrDropped,
		Denials: res.Denials, Findings: res.Findings, Report: brief(res.Report)}
}

// shell is the shell that the tool's name promises, where there is one.
func shell() string {
	const bash = "/bin/bash"
	if _, err := os.Stat(bash); err == nil {
		return bash
	}
	return "/bin/sh"
}

func bashFailed(err error) BashOutput {
	return BashOutput{Outcome: Failed, Exit: 125, Error: asError(err)}
}

// brief leaves out what is the same in every report of a machine.
func brief(r tether.Report) *Report {
	out := &Report{Provider: r.Provider, Overall: r.Overall, Hidden: r.Hidden, Redacted: r.Redacted, Notes: r.Notes, Grades: map[policy.Guarantee]policy.Grade{}}
	for _, g := range r.Grades {
		out.Grades[g.Guarantee] = g.Grade
		if g.Grade != policy.Complete {
			if out.Reasons == nil {
				out.Reasons = map[policy.Guarantee]string{}
			}
			out.Reasons[g.Guarantee] = g.Reason
		}
	}
	return out
}

func bashResult(out BashOutput) Result {
	return Result{Output: out, Text: out.String(), Failed: out.Error != nil}
}

// String is the output for people and models: first what Tether says, a line
// for each thing, then what the command wrote. So nothing that a command writes
// passes for a word of Tether's.
func (o BashOutput) String() string {
	var b strings.Builder
	if o.Error != nil {
		b.WriteString(o.Error.String())
	} else {
		fmt.Fprintf(&b, "exit %d", o.Exit)
		switch o.Outcome {
		case tether.Signaled:
			fmt.Fprintf(&b, " (ended by signal %s)", o.Signal)
		case tether.TimedOut:
			fmt.Fprintf(&b, " (%s: the time limit ended it after %.1f s)", fault.LimitTime, o.Seconds)
		case tether.NotFound, tether.NotExecutable:
			fmt.Fprintf(&b, " (the shell is %s inside)", o.Outcome)
		}
	}
	for _, d := range o.Denials {
		fmt.Fprintf(&b, "\ndenied: %s: %s: %s", d.Code, line(d.What), line(d.Rule))
		if d.Remedy != "" {
			b.WriteString("; what allows it: " + line(d.Remedy))
		}
	}
	for _, f := range o.Findings {
		fmt.Fprintf(&b, "\nfound: %s: %s; it was %s", line(f.Path), line(f.What), line(f.Action))
	}
	if o.Report != nil {
		for _, n := range o.Report.Notes {
			b.WriteString("\nnote: " + line(n.What))
			if n.Hint != "" {
				b.WriteString("; " + line(n.Hint))
			}
		}
	}
	if dropped := o.StdoutDropped + o.StderrDropped; dropped > 0 {
		fmt.Fprintf(&b, "\nnote: %d bytes in the middle of the output were dropped", dropped)
	}
	if o.Stdout != "" {
		b.WriteString("\n\n" + o.Stdout)
	}
	if o.Stderr != "" {
		if !strings.HasSuffix(b.String(), "\n") {
			b.WriteString("\n")
		}
		b.WriteString("\nstderr:\n" + o.Stderr)
	}
	return b.String()
}

// String is the error in two lines.
func (e *Error) String() string {
	s := string(e.Code) + ": " + line(e.What)
	if e.Hint != "" {
		s += "\nhint: " + line(e.Hint)
	}
	return s
}

// line keeps foreign text on one line.
func line(s string) string {
	if strings.ContainsAny(s, "\n\r") {
		return strconv.Quote(s)
	}
	return s
}

func quote(s string) string {
	const most = 100
	if len(s) > most {
		s = s[:most] + "..."
	}
	return strconv.Quote(s)
}
