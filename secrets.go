package tether

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/plan"
	"github.com/tether-sandbox/tether/internal/plan/secrets"
	"github.com/tether-sandbox/tether/internal/redact"
	"github.com/tether-sandbox/tether/policy"
)

// redactor keeps the secrets of one plan out of what comes back: credentials
// among the caller's variables, the contents of protected files, and what the
// policy names. A nil one has none to keep.
type redactor struct {
	*gathered
	tally redact.Tally
	used  atomic.Bool // there was some output
}

// gathered are the secrets themselves.
type gathered struct {
	from  basis
	short []string // variables that the policy names and that are too short

	ready chan struct{} // closed when what follows is there
	all   *redact.Matcher
	// sent finds what must not leave in the arguments of a tool: all but the
	// variables that the policy passes.
	sent *redact.Matcher
	left int
}

// basis is what secrets were gathered from. Files are told apart by when they
// last changed.
type basis struct {
	values, passed []redact.Value
	files          []redact.Source
	times          []time.Time
	timeless       bool // some may change without a trace in times
}

func (o basis) same(p basis) bool {
	return !o.timeless && !p.timeless && slices.Equal(o.values, p.values) && slices.Equal(o.passed, p.passed) &&
		slices.Equal(o.files, p.files) && slices.EqualFunc(o.times, p.times, time.Time.Equal)
}

// redactor begins to gather the secrets of a plan, unless they are those of the
// last one. The files are read while other things happen.
func (s *Session) redactor(e effect, p *plan.Plan) *redactor {
	look := func(name string) bool { return slices.Contains(p.Scrubbed, name) }
	values, short := redact.Environ(s.environ, look, e.policy.Env.Redact)
	from := protected(p)
	for _, v := range values {
		switch {
		case e.policy.Env.Set[v.Name] == v.Text: // the caller wrote it down
		case e.policy.Env.NoScrub || slices.Contains(e.policy.Env.Pass, v.Name):
			from.passed = append(from.passed, v)
		default:
			from.values = append(from.values, v)
		}
	}
	var r *redactor
	if last := s.red.Load(); last != nil && last.from.same(from) && slices.Equal(last.short, short) {
		r = &redactor{gathered: last.gathered}
	} else if len(from.values)+len(from.passed)+len(from.files)+len(short) > 0 {
		r = &redactor{gathered: &gathered{from: from, short: short, ready: make(chan struct{})}}
		go r.gather()
	}
	s.red.Store(r)
	return r
}

func (g *gathered) gather() {
	defer close(g.ready)
	found, left := redact.Files(g.from.files)
	g.sent = redact.New(slices.Concat(g.from.values, found))
	g.all = g.sent
	if len(g.from.passed) > 0 {
		g.all = redact.New(slices.Concat(g.from.values, g.from.passed, found))
	}
	g.left = left + g.all.Left()
}

// protected are the files whose contents are secret: the hidden ones, and those
// that are shown without their credentials.
func protected(p *plan.Plan) (o basis) {
	for i := range p.Masks {
		m := &p.Masks[i]
		folder, known := m.Kind == secrets.MaskDir, !m.MTime.IsZero()
		timeless := m.Ino != 0 && folder == known // a folder of the workspace, or a file of a tool in the home
		if m.Size > 0 && !folder || timeless {
			o.files = append(o.files, redact.Source{Path: m.Path, Dev: m.Dev, Ino: m.Ino})
			o.times = append(o.times, m.MTime)
			o.timeless = o.timeless || timeless
		}
	}
	for i := range p.Locks {
		if l := &p.Locks[i]; l.Content != nil && l.Ino != 0 {
			o.files = append(o.files, redact.Source{Path: l.Path, Dev: l.Dev, Ino: l.Ino})
			o.times = append(o.times, time.Unix(0, l.MTime))
		}
	}
	return o
}

// matcher returns what finds the secrets, as soon as it is there.
func (r *redactor) matcher() *redact.Matcher {
	if r == nil {
		return nil
	}
	<-r.ready
	return r.all
}

// through is the place of a redactor in a stream of output.
func (r *redactor) through() func(io.Writer) io.Writer {
	if r == nil {
		return nil
	}
	return func(w io.Writer) io.Writer { return &late{r: r, to: w} }
}

// guard keeps secrets from being sent in clear text, other than those of
// variables that the policy passes.
func (r *redactor) guard() func(io.Writer) io.WriteCloser {
	if r == nil {
		return nil
	}
	return func(w io.Writer) io.WriteCloser {
		<-r.ready
		if r.sent == nil {
			return unguarded{w}
		}
		return r.sent.Guard(w)
	}
}

type unguarded struct{ io.Writer }

func (unguarded) Close() error { return nil }

// text redacts a whole text.
func (r *redactor) text(s string) string {
	if r == nil || s == "" {
		return s
	}
	return r.matcher().Text(s, &r.tally)
}

// count redacts a whole text and adds the number of marks to n.
func (r *redactor) count(s string, n *int) string {
	if r == nil || s == "" {
		return s
	}
	var tally redact.Tally
	s = r.matcher().Text(s, &tally)
	for _, c := range tally.Counts() {
		*n += c.Count
	}
	return s
}

// late redacts as soon as it is known what. It is used by one goroutine.
type late struct {
	r     *redactor
	to    io.Writer
	known bool
	w     *redact.Writer // nil when there is nothing to find
}

func (l *late) Write(p []byte) (int, error) {
	if !l.known {
		if m := l.r.matcher(); m != nil {
			l.w = m.Writer(l.to, &l.r.tally)
		}
		l.known = true
		l.r.used.Store(true)
	}
	if l.w == nil {
		return l.to.Write(p)
	}
	return l.w.Write(p)
}

func (l *late) Close() error {
	if l.w == nil {
		return nil
	}
	return l.w.Close()
}

// mayLeave returns a check that no argument holds a secret, for commands that
// can send it somewhere.
func (s *Session) mayLeave(e effect, r *redactor, argv []string) func(context.Context) error {
	long := func(arg string) bool { return len(arg) >= redact.MinLength }
	if r == nil || e.policy.Network.Mode == policy.Offline || e.kind == enforce.Unconfined || !slices.ContainsFunc(argv, long) {
		return nil
	}
	return func(ctx context.Context) error {
		select {
		case <-r.ready:
		case <-ctx.Done():
			return ctx.Err()
		}
		if name, found := r.sent.FindString(strings.Join(argv, "\x00")); found {
			return secretLeaves("an argument of the command", name, s.has(name))
		}
		return nil
	}
}

// has tells whether the caller has a variable.
func (s *Session) has(name string) bool {
	return slices.ContainsFunc(s.environ, func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
}

func secretLeaves(where, name string, variable bool) error {
	err := fault.New(fault.EgressSecret, where+" holds a secret, "+name)
	if variable {
		return err.WithHint("--env " + name + ", if the command may have it")
	}
	return err.WithHint("leave it out: it comes from a protected file")
}

// report puts into a report what was redacted and what could not be, and keeps
// secrets out of the report itself.
func (r *redactor) report(res *Result) {
	if r == nil || !r.used.Load() && len(res.Denials)+len(res.Findings)+len(res.Report.Notes)+len(r.short) == 0 {
		return // a command that said nothing does not wait for the files
	}
	<-r.ready
	for i := range res.Denials {
		d := &res.Denials[i]
		d.What, d.Remedy = r.text(d.What), r.text(d.Remedy)
	}
	for i := range res.Findings {
		res.Findings[i].Path, res.Findings[i].What = r.text(res.Findings[i].Path), r.text(res.Findings[i].What)
	}
	for i := range res.Report.Notes {
		res.Report.Notes[i].What = r.text(res.Report.Notes[i].What)
	}
	for _, name := range r.short {
		res.Report.Notes = append(res.Report.Notes, Note{
			What: fmt.Sprintf("the value of %s is not redacted: it is shorter than %d characters", name, redact.MinLength)})
	}
	if r.left > 0 {
		res.Report.Notes = append(res.Report.Notes, Note{
			What: fmt.Sprintf("there are more protected files and secrets than are redacted: %d were left out", r.left)})
	}
	res.Report.Redacted = r.tally.Counts()
}
