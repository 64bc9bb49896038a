package tether

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tether-sandbox/tether/fact"
	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/guard"
)

// errStale says that what holds is no longer what something was planned under.
var errStale = errors.New("the session's policy changed meanwhile")

// act is one thing that is done in a session: intended, done, told.
type act struct {
	s         *Session
	what, why string
	// id is set once the intent is recorded, told once a refusal is.
	id   string
	told bool
}

// mayRun hears the guard, and for what it refuses a grant or the approver; then
// it records the intent, once.
func (s *Session) mayRun(ctx context.Context, a *act, e effect, argv []string, word guard.Verdict, dir string) error {
	if a.id != "" {
		return nil // only the plan is made anew
	}
	uses := e.uses()
	if refused := word.Err(); refused != nil {
		i := slices.IndexFunc(e.commands, func(h fact.Held) bool { return h.CoversCommand(argv) })
		if i < 0 {
			var err error
			if _, a.told, err = s.ask(ctx, fact.Grant{Command: argv}, refused, a.why, ""); err != nil {
				return s.refusal(err, refused)
			}
			return errStale // the grant holds from now on
		}
		uses = append(uses, e.commands[i].ID)
	}
	return a.begin(e, fact.Fact{Kind: fact.Intent, Path: dir, Uses: uses})
}

// refusal is what is told of something that was refused and not approved. Where
// nobody can be asked and nothing is recorded, approvals are not spoken of.
func (s *Session) refusal(asked, refused error) error {
	if s.approver == nil && s.store == nil {
		return refused
	}
	return asked
}

// withHint replaces the way out that an error names.
func withHint(err error, hint string) error {
	if e, ok := errors.AsType[*fault.Error](err); ok && hint != "" {
		return e.WithHint(hint)
	}
	return err
}

// begin records that something is about to be done under e, or errStale if e is
// no longer what holds.
func (a *act) begin(e effect, f fact.Fact) error {
	id := a.s.newID()
	err := a.s.record(func(st fact.State) ([]fact.Fact, error) {
		now, err := a.s.effect(st)
		if err != nil {
			return nil, err
		}
		if !now.same(e) {
			return nil, errStale
		}
		f.ID, f.Turn, f.Time, f.What, f.Why, f.By = id, a.s.openTurn(), time.Now(), a.what, a.why, a.s.by
		f.Mode = e.policy.Profile.String()
		if f.Kind == fact.Intent && (e.kind == enforce.Unconfined || e.kind == enforce.Guard) {
			f.Rule = "nothing confines it"
		}
		return append(st.Begin(a.s.fallback), f), nil
	})
	if err == nil {
		a.id = id
	}
	return err
}

// most is how many denials, and how many findings, are recorded of one command.
const most = 100

// settle records how it went. It has been done then, so that a failure to record
// it is told, and nothing else.
func (a *act) settle(res *Result, failed error) {
	turn := a.s.openTurn()
	var facts []fact.Fact
	if a.id == "" {
		if a.told || !denies(failed) {
			return
		}
		facts = append(facts, a.s.denial(a.what, failed))
	} else {
		f := fact.Fact{Kind: fact.Outcome, ID: a.id, Turn: turn, Exit: res.Exit}
		switch {
		case failed != nil:
			f.Code, f.What = outcomeCode(failed), failed.Error()
		case res.TimedOut:
			f.Code = fault.LimitTime
		}
		facts = append(facts, f)
		if denies(failed) {
			facts = append(facts, a.s.denial(a.what, failed)) // intended, and refused at the last moment
		}
	}
	for i, d := range res.Denials {
		if i == most {
			facts = append(facts, fact.Fact{Kind: fact.Note, Turn: turn, What: fmt.Sprintf("%d more denials", len(res.Denials)-most)})
			break
		}
		facts = append(facts, fact.Fact{Kind: fact.Denial, Turn: turn, What: d.What, Rule: d.Rule, Code: d.Code, Remedy: d.Remedy})
	}
	for i, x := range res.Findings {
		if i == most {
			facts = append(facts, fact.Fact{Kind: fact.Note, Turn: turn, What: fmt.Sprintf("%d more findings", len(res.Findings)-most)})
			break
		}
		facts = append(facts, fact.Fact{Kind: fact.Finding, Turn: turn, Path: x.Path, What: x.What + ": " + x.Action})
	}
	if err := a.s.tell(facts); err != nil {
		res.Unrecorded = err.Error()
	}
}

// outcomeCode is the code that the log has for a failure. A context that ended is
// the caller's doing, and no fault of ours.
func outcomeCode(err error) fault.Code {
	code := fault.CodeOf(err)
	if code == fault.Internal && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		return fault.Cancelled
	}
	return code
}

// cancelled gives the error of a context that ended its code.
func cancelled(err error) error {
	if err != nil && fault.CodeOf(err) == fault.Internal && outcomeCode(err) == fault.Cancelled {
		return fault.Wrap(fault.Cancelled, "the call was taken back, and every process that it started is killed", err)
	}
	return err
}

// denies tells whether an error is the refusal of something, as opposed to its
// failure.
func denies(err error) bool {
	switch fault.CodeOf(err) {
	case fault.SandboxUnavailable, fault.IsolationUnavailable, fault.SandboxBadWorkspace, fault.SandboxViolation, fault.CommandDenied,
		fault.ApprovalDenied, fault.EgressDenied, fault.EgressSecret, fault.PolicyInvalid:
		return true
	}
	return false
}

// denial is the fact that something was refused.
func (s *Session) denial(what string, err error) fact.Fact {
	return fact.Fact{Kind: fact.Denial, Turn: s.openTurn(), What: what, Code: fault.CodeOf(err), Rule: fault.TextOf(err), Remedy: fault.HintOf(err)}
}

// CommandLine is a command as it could be typed.
func CommandLine(argv []string) string {
	words := make([]string, len(argv))
	for i, w := range argv {
		words[i] = shellWord(w)
	}
	return strings.Join(words, " ")
}

// shellWord quotes a word for a shell where that is needed. What cannot be seen
// is spelled as bash reads it, so that two words never look the same.
func shellWord(w string) string {
	plain, seen := w != "", true
	for i, r := range w {
		plain = plain && r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("@%+=:,./-_", r))
		_, n := utf8.DecodeRuneInString(w[i:])
		seen = seen && (r == ' ' || unicode.IsGraphic(r) && !unicode.IsSpace(r)) && (r != utf8.RuneError || n > 1)
	}
	switch {
	case plain:
		return w
	case seen:
		return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
	}
	var b strings.Builder
	b.WriteString("$'")
	for len(w) > 0 {
		r, n := utf8.DecodeRuneInString(w)
		switch {
		case r == '\'' || r == '\\':
			b.WriteString(`\` + w[:1])
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == ' ' || r != utf8.RuneError && unicode.IsGraphic(r) && !unicode.IsSpace(r):
			b.WriteString(w[:n])
		default:
			for _, c := range []byte(w[:n]) {
				fmt.Fprintf(&b, `\x%02x`, c)
			}
		}
		w = w[n:]
	}
	return b.String() + "'"
}

// end records how an edit or a fetch went, and, if it was refused and nobody was
// asked, that. A failure to record it changes nothing of what happened.
func (a *act) end(failed error) {
	var facts []fact.Fact
	if a.id != "" {
		f := fact.Fact{Kind: fact.Outcome, ID: a.id, Turn: a.s.openTurn()}
		if failed != nil {
			f.Code = outcomeCode(failed)
		}
		facts = append(facts, f)
		a.id = ""
	}
	if denies(failed) && !a.told {
		facts = append(facts, a.s.denial(a.what, failed))
	}
	_ = a.s.tell(facts)
}
