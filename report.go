package tether

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/egress"
	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/guard"
	"github.com/tether-sandbox/tether/internal/host"
	"github.com/tether-sandbox/tether/internal/plan"
	"github.com/tether-sandbox/tether/internal/redact"
	"github.com/tether-sandbox/tether/internal/world"
	"github.com/tether-sandbox/tether/policy"
)

// Outcome says whose status a result carries.
type Outcome string

// The outcomes.
const (
	// Exited: the command ended by itself; Exit is its own status.
	Exited Outcome = "exited"
	// Signaled: a signal ended it; Exit is 128 and the signal's number.
	Signaled Outcome = "signaled"
	// TimedOut: the time limit ended it; Exit is 124.
	TimedOut Outcome = "timed-out"
	// NotFound and NotExecutable: the program itself could not be executed;
	// Exit is 127 or 126, as of a shell.
	NotFound      Outcome = "not-found"
	NotExecutable Outcome = "not-executable"
)

// Result is how a command ended.
type Result struct {
	// Outcome says whose status Exit is: exited, signaled, timed-out, not-found
	// or not-executable.
	Outcome Outcome `json:"outcome"`
	// Exit is the status as a shell tells it.
	Exit int `json:"exit"`
	// Signal is the name of the signal that ended the command, without SIG.
	Signal string `json:"signal,omitempty"`
	// TimedOut says that our time limit ended it.
	TimedOut bool `json:"timed_out"`
	// Truncated says that output beyond the limit was dropped.
	Truncated bool          `json:"truncated"`
	Duration  time.Duration `json:"-"`
	// Report says how strong each guarantee was.
	Report Report `json:"report"`
	// Denials are what was refused and what would allow it.
	Denials []Denial `json:"denials"`
	// Findings are what was left that would run later on the host.
	Findings []Finding `json:"findings"`
	// Stdout and Stderr are the output as text, head and tail of a long one.
	Stdout string `json:"stdout"`
	Stderr string `json:"stderr"`
	// StdoutDropped and StderrDropped count the bytes of the middle that were
	// not kept; a line in the text says where.
	StdoutDropped int64 `json:"stdout_dropped,omitempty"`
	StderrDropped int64 `json:"stderr_dropped,omitempty"`
	// Interrupted says that Ctrl-C was typed on a terminal that the command had
	// for its own, so that nobody else on it was interrupted.
	Interrupted bool `json:"-"`
	// Unrecorded says why the log of the session does not tell how the command
	// ended; that it was to run stands in it.
	Unrecorded string `json:"unrecorded,omitempty"`

	gateWhy string // why the gate was not joined better
}

// Report says how strong each guarantee was.
type Report struct {
	// Provider is what confined the command: native, bwrap, landlock, seatbelt, guard or none.
	Provider string `json:"provider"`
	// Overall is the lowest grade among the required guarantees.
	Overall policy.Grade `json:"overall"`
	// Grades has one entry for each guarantee.
	Grades []Grade `json:"grades"`
	// Gate is how the gate was joined: veth, where every program's connections
	// come to it, or proxy, which programs must know of. Empty without a gate.
	Gate string `json:"gate,omitempty"`
	// Hidden counts the files and folders that were hidden.
	Hidden int `json:"hidden"`
	// HiddenLate and LockedLate count the files and folders that came to be hidden
	// and locked while the command ran: they appeared or were replaced then.
	HiddenLate int `json:"hidden_late,omitempty"`
	LockedLate int `json:"locked_late,omitempty"`
	// Tried says which providers were tried before, and why they failed.
	Tried []string `json:"tried,omitempty"`
	// Redacted counts the marks that were put in place of secrets, by name.
	Redacted []Redaction `json:"redacted,omitempty"`
	// Widened names what widened the policy from the environment.
	Widened []string `json:"widened,omitempty"`
	// Notes are things worth knowing, with what to do about each.
	Notes []Note `json:"notes,omitempty"`
}

// Redaction says how often one secret was replaced by [REDACTED:NAME].
type Redaction = redact.Count

// Grade says how far one guarantee held, by what means, and why not further.
type Grade struct {
	// Guarantee is read, write, secrets, network, process, ipc or limits.
	Guarantee policy.Guarantee `json:"guarantee"`
	// Grade is how far it held: None, Partial or Complete.
	Grade policy.Grade `json:"grade"`
	// Required is the least that the policy asks for.
	Required policy.Grade `json:"required"`
	// Means is how it is held.
	Means string `json:"means"`
	// Reason is why not further, or what is not part of it.
	Reason string `json:"reason,omitempty"`
}

// Note is one thing worth knowing.
type Note struct {
	// What is worth knowing.
	What string `json:"what"`
	// Hint is what to type about it.
	Hint string `json:"hint,omitempty"`
}

// Denial is one thing that was refused, with the one thing that allows it.
type Denial struct {
	// What was refused.
	What string `json:"what"`
	// Rule is why.
	Rule string `json:"rule"`
	// Code is a stable one, see codes.md.
	Code fault.Code `json:"code"`
	// Remedy is the one thing that would allow it.
	Remedy string `json:"remedy,omitempty"`

	host string // the HOST:PORT whose grant would have allowed it
}

// Finding is one thing that the command left and that would run later on the
// host, and what was done about it.
type Finding struct {
	// Path is where it lay, absolute.
	Path string `json:"path"`
	// Kind is one stable word for what it is: git-config, git-hook, git-pointer,
	// git-link, git-pending, git-repository, git-program, symlink, set-id,
	// closed-folder, replaced; or what runs it: tether, agent, editor, hook,
	// shell-start, folder, package, build, test, pipeline, container, virtualenv.
	Kind string `json:"kind"`
	// What it is.
	What string `json:"what"`
	// Action is what was done: quarantined, rewritten, removed, disarmed,
	// stripped (of its set-user-id bit and the like), or only reported.
	Action string `json:"action"`
	// Quarantined is where it, or its original, is kept.
	Quarantined string `json:"quarantined,omitempty"`
}

func result(pol policy.Policy, p *plan.Plan, out world.Outcome, look guard.Verdict) Result {
	r := Result{Outcome: Exited, Exit: out.Exit, TimedOut: out.TimedOut, Interrupted: out.Interrupted, Duration: out.Duration,
		Denials: []Denial{}, Findings: findings(out), Report: report(pol, p, out.Provider, out.Grades)}
	r.Report.Tried, r.Report.Gate, r.gateWhy = out.Tried, out.Link.String(), out.LinkWhy
	r.Report.late(out.Late)
	for _, n := range look.Notes {
		r.Report.Notes = append(r.Report.Notes, Note{What: "guard: " + n.Kind.String() + ": " + n.What})
	}
	for _, n := range out.Notes {
		r.Report.Notes = append(r.Report.Notes, Note{What: n})
	}
	for _, d := range out.Refused {
		what := "connection to " + d.String()
		if d.Times > 1 {
			what += fmt.Sprintf(" (%d times)", d.Times)
		}
		den := Denial{What: what, Rule: d.Rule, Code: cmp.Or(d.Code, fault.EgressDenied), Remedy: d.Remedy}
		if den.Code == fault.EgressDenied {
			den.host = hostOf(d.Denial) // a grant opens a host, and lets no secret out
		}
		r.Denials = append(r.Denials, den)
	}
	r.Denials = append(r.Denials, limitsMet(pol.Limits, out)...)
	if out.Met&enforce.MetNamespaces != 0 {
		r.Denials = append(r.Denials, unnested(p, out.Provider))
	}
	switch {
	case out.TimedOut:
		r.Outcome, r.Exit = TimedOut, 124
	case out.NotExecuted == int(syscall.ENOENT) || out.NotExecuted == int(syscall.ENOTDIR):
		r.Outcome, r.Exit = NotFound, 127
	case out.NotExecuted != 0:
		r.Outcome, r.Exit = NotExecutable, 126
	case out.Signal != 0:
		r.Outcome, r.Exit = Signaled, 128+out.Signal
		r.Signal = signalName(syscall.Signal(out.Signal))
	}
	return r
}

// late tells what was done about what appeared while the command ran.
func (r *Report) late(l world.Late) {
	r.HiddenLate, r.LockedLate = len(l.Hidden), len(l.Locked)
	if l.WhyNot != "" {
		r.Notes = append(r.Notes, Note{What: "not everything that appeared while the command ran was hidden and locked at once: " + l.WhyNot, Hint: l.Hint})
	}
	if len(l.Hidden) > 0 {
		r.Notes = append(r.Notes, Note{What: "hidden from the command when it appeared: " + someOf(l.Hidden),
			Hint: "let commands keep keys that they make for themselves in /tmp"})
	}
	if len(l.Locked) > 0 {
		r.Notes = append(r.Notes, Note{What: "locked when it appeared, or was replaced: " + someOf(l.Locked)})
	}
	for i := range r.Grades {
		if g := &r.Grades[i]; g.Guarantee == policy.Secrets && g.Grade == policy.Complete && l.Watched {
			g.Reason = "a secret that is created during the run is hidden from it when it is seen"
			if l.From > 0 {
				g.Reason += ", from " + spell(l.From) + " after the start on"
			}
			if l.Slowest > 0 {
				g.Reason += "; the slowest was hidden " + spell(l.Slowest) + " after it was seen"
			}
		}
	}
}

// foresee says of commands to come what late says of one that has ended: one that
// was over at once was not looked after, and its report promises less.
func (r *Report) foresee() {
	for i := range r.Grades {
		if g := &r.Grades[i]; (r.Provider == string(enforce.Native) || r.Provider == string(enforce.Bwrap)) && g.Guarantee == policy.Secrets && g.Grade == policy.Complete {
			g.Reason = "a secret that is created during the run is hidden from it when it is seen, from 0.2 s after the start on"
		}
	}
}

// spell writes a short time in milliseconds.
func spell(d time.Duration) string {
	return fmt.Sprintf("%d ms", (d + time.Millisecond - 1).Milliseconds())
}

// someOf names the first few of a list.
func someOf(paths []string) string {
	const few = 3
	list := make([]string, 0, few)
	for _, p := range paths[:min(few, len(paths))] {
		list = append(list, shellWord(p))
	}
	text := strings.Join(list, ", ")
	if n := len(paths) - few; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}

// hostOf is the one host and port for which a grant would have allowed what the
// gate refused, or nothing.
//
// A name that was only asked for is wanted on the usual port.
func hostOf(d egress.Denial) string {
	rule, ok := strings.CutPrefix(d.Remedy, "--allow-host ")
	if !ok {
		return ""
	}
	if d.Port == 0 && d.Name != "" { // it was asked for, and not yet dialled
		d.Port = usualPort
	}
	for _, h := range []host.Host{{Name: d.Name}, {Addr: d.Addr}} {
		if rule == h.String() || rule == h.Join(d.Port) {
			return h.Join(d.Port)
		}
	}
	return ""
}

// usualPort is that of HTTPS.
const usualPort = 443

func findings(out world.Outcome) []Finding {
	list := make([]Finding, 0, len(out.Findings))
	for _, f := range out.Findings {
		list = append(list, Finding{Path: f.Path, Kind: f.Kind, What: f.What, Action: f.Action, Quarantined: f.QuarantinedTo})
	}
	return list
}

func report(pol policy.Policy, p *plan.Plan, kind enforce.Kind, grades []enforce.Graded) Report {
	r := Report{Provider: string(kind), Overall: enforce.Overall(pol, grades), Widened: p.Widened}
	if kind == enforce.Native || kind == enforce.Bwrap || kind == enforce.Seatbelt {
		r.Hidden = len(p.Masks)
	}
	if kind == enforce.Landlock && held(grades, policy.Secrets) {
		r.Hidden = len(p.Masks)
	}
	for _, g := range grades {
		r.Grades = append(r.Grades, Grade{Guarantee: g.Guarantee, Grade: g.Grade, Required: pol.Required(g.Guarantee),
			Means: g.Means, Reason: g.Reason})
	}
	for _, n := range p.Notes {
		r.Notes = append(r.Notes, Note(n))
	}
	return r
}

// held says whether a guarantee is graded Complete.
func held(grades []enforce.Graded, g policy.Guarantee) bool {
	return slices.ContainsFunc(grades, func(x enforce.Graded) bool { return x.Guarantee == g && x.Grade == policy.Complete })
}
