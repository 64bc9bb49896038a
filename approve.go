package tether

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/tether-sandbox/tether/fact"
	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/egress"
	"github.com/tether-sandbox/tether/internal/factlog"
	"github.com/tether-sandbox/tether/internal/world"
	"github.com/tether-sandbox/tether/policy"
)

// grantPrefix begins the names of questions and of the grants that answer them.
const grantPrefix = "g"

// Approver answers questions for somebody who decides.
type Approver interface {
	// Approve answers one question. The zero Answer, and any error, is no, and so
	// is whatever comes after ctx has ended; it should return then. Several
	// questions may be put at once.
	Approve(ctx context.Context, q Question) (Answer, error)
}

// LiveApprover is an [Approver] that can be asked while a command runs, about a
// host that it was refused: once approved, the command's next try gets through.
// Any other is asked when the command has ended.
type LiveApprover interface {
	Approver
	// WhileRunning says whether a question may be put now. It must not block.
	WhileRunning(ctx context.Context) bool
}

// Question asks for one grant.
type Question struct {
	// Session is empty for a session that is not recorded.
	Session   string `json:"session,omitempty"`
	Workspace string `json:"workspace"`
	// Grant is exactly what would be given; only its scope and its end are the
	// answer's to say.
	Grant fact.Grant `json:"grant"`
	// Code and Denied say what was refused, Why what for it was wanted, in the
	// words of whoever wanted it: they are not to be trusted.
	Code   fault.Code `json:"code"`
	Denied string     `json:"denied"`
	Why    string     `json:"why,omitempty"`
}

// Answer is an answer. The zero value is no.
type Answer struct {
	// Scope is how long the grant holds; empty is no.
	Scope fact.Scope
	// Expires ends it earlier, if it is not zero.
	Expires time.Time
	// By is fact.Person or, when empty, fact.Program.
	By fact.Actor
	// Why is recorded.
	Why string
}

// ask puts a question for a grant and returns the ID of what was given. Without
// anybody to ask, and for every answer but yes, it is APPROVAL_DENIED; the
// hint says how to give it between turns. told says that the refusal stands in
// the session's facts already. What was given is used by the running command of
// that name from then on, unless that is empty.
func (s *Session) ask(ctx context.Context, g fact.Grant, denied error, why, user string) (id string, told bool, err error) {
	g.Scope = fact.Once
	no := func(what string) error {
		return fault.Wrap(fault.ApprovalDenied, what, denied).WithHint(s.grantHint(g, denied))
	}
	id = grantPrefix + s.newID()
	if s.approver == nil {
		return "", false, no("there is nobody to ask")
	}
	if why := s.unfit(g); why != "" {
		return "", false, no("it " + why)
	}
	c := s.change(Request{By: fact.Model, Why: why})
	err = s.record(func(st fact.State) ([]fact.Fact, error) {
		facts, err := st.Ask(id, g, c, s.fallback)
		return append(st.Begin(s.fallback), facts...), err
	})
	if fault.CodeOf(err) == fault.ApprovalDenied {
		return "", false, no("approval is never: no question is put")
	} else if err != nil {
		return "", false, err
	}
	a, err := put(ctx, s.approver, Question{Session: s.id, Workspace: s.opening.Workspace, Grant: g,
		Code: fault.CodeOf(denied), Denied: s.discreet(denied.Error()), Why: s.discreet(why)})
	if err != nil || a.Scope == "" {
		what := "the answer was no"
		if err != nil {
			what = "no answer came: " + err.Error()
		}
		rerr := s.record(func(fact.State) ([]fact.Fact, error) {
			return []fact.Fact{{Kind: fact.Denial, ID: id, Turn: c.Turn, Code: fault.ApprovalDenied, What: what, Grant: &g, By: a.By}}, nil
		})
		return "", true, errors.Join(no(what), rerr)
	}
	g.Scope, g.Expires = a.Scope, a.Expires
	if a.By == "" {
		a.By = fact.Program
	}
	return id, false, s.give(id, g, Request{By: a.By, Why: a.Why}, user)
}

// put waits for an answer as long as ctx lasts. One that comes later is no.
func put(ctx context.Context, to Approver, q Question) (Answer, error) {
	type answered struct {
		Answer
		err error
	}
	done := make(chan answered, 1)
	go func() {
		a, err := to.Approve(ctx, q)
		done <- answered{a, err}
	}()
	select {
	case a := <-done:
		return a.Answer, errors.Join(a.err, ctx.Err())
	case <-ctx.Done():
		return Answer{}, ctx.Err()
	}
}

// unfit says why a grant cannot be recorded as it is.
func (s *Session) unfit(g fact.Grant) string {
	size := 0
	for _, w := range append([]string{g.Path, g.Host}, g.Command...) {
		if s.discreet(w) != w {
			return "holds a secret, which is not recorded"
		}
		size += len(w)
	}
	if size > batch {
		return "is too long to be recorded"
	}
	return ""
}

// Grant widens the session, as somebody who decides wants it, and returns the
// name by which it can be revoked. A path is taken for what it leads to now. A
// hidden file stays hidden. What the sandbox cannot show is refused here and
// not at the next command.
func (s *Session) Grant(ctx context.Context, g fact.Grant, r Request) (string, error) {
	if g.Path != "" {
		real, err := s.world.Locate(g.Path)
		if err != nil {
			return "", fault.Wrap(fault.FileNotFound, "only what exists can be granted", err).WithHint("name the folder around it")
		}
		g.Path = real
	}
	if why := s.unfit(g); why != "" {
		return "", fault.New(fault.PolicyInvalid, "the grant "+why)
	}
	if err := s.tryGrant(ctx, g); err != nil {
		return "", err
	}
	id := grantPrefix + s.newID()
	return id, s.give(id, g, r, "")
}

// tryGrant plans with a grant as if it were given.
func (s *Session) tryGrant(ctx context.Context, g fact.Grant) error {
	if err := g.Check(); err != nil || g.Path == "" && g.Host == "" {
		return err
	}
	e, err := s.now()
	if err != nil {
		return err
	}
	if g.Host != "" && e.policy.Network.Mode != policy.Gated {
		return fault.New(fault.PolicyInvalid, "a grant for a host opens nothing: the network is "+e.policy.Network.Mode.String()).
			WithHint("tether run --session new --network gated -- CMD")
	}
	if g.Write && e.policy.Profile == policy.ReadOnly {
		return fault.New(fault.PolicyInvalid, "nothing is written in read-only, also with a grant").WithHint("tether session mode " + s.id + " workspace-write")
	}
	var useful bool
	if e.policy, useful = widened(e.policy, g); useful && g.Path != "" {
		_, err = s.pin(ctx, e, world.Options{})
	}
	if useful && g.Host != "" { // what the gate cannot hold would end the session
		_, err = egress.Compile(e.policy.Network)
	}
	return err
}

// give records a grant, also among the project's where it is for that, and that
// the running command of that name uses it, unless that is empty.
func (s *Session) give(id string, g fact.Grant, r Request, user string) error {
	c := s.change(r)
	if g.Scope == fact.Project && s.store == nil {
		return fault.New(fault.ApprovalDenied, "a session that is not recorded can give nothing to the project")
	}
	approve := func(st fact.State) ([]fact.Fact, error) { return st.Approve(id, g, c) }
	err := s.record(func(st fact.State) ([]fact.Fact, error) {
		facts, err := approve(st)
		if user != "" && err == nil {
			facts = append(facts, fact.Fact{Kind: fact.Use, ID: user, Turn: c.Turn, Time: c.At, Uses: []string{id}})
		}
		return append(st.Begin(s.fallback), facts...), err
	})
	if err != nil || g.Scope != fact.Project {
		return err
	}
	return s.inProject(approve) // until then it is not in force
}

// Revoke ends a grant, between turns; one for the project ends there, too, for
// every session from its next command on. Commands that run keep what they
// started with.
func (s *Session) Revoke(_ context.Context, id string, r Request) error {
	c := s.change(r)
	var project bool
	err := s.record(func(st fact.State) ([]fact.Fact, error) {
		project = slices.ContainsFunc(st.Grants, func(h fact.Held) bool { return h.ID == id && h.Scope == fact.Project })
		return st.Withdraw(id, c)
	})
	if err != nil || !project {
		return err
	}
	return s.inProject(func(st fact.State) ([]fact.Fact, error) {
		if !slices.ContainsFunc(st.Grants, func(h fact.Held) bool { return h.ID == id }) {
			return nil, nil
		}
		return st.Withdraw(id, c)
	})
}

// The grants of a project are a log like that of a session, named after the
// workspace.

func (s *Session) projectLog() string { return projectPrefix + s.place.Key }

func (s *Session) inProject(decide func(fact.State) ([]fact.Fact, error)) error {
	log, err := s.store.Session(s.projectLog())
	if err != nil {
		return err
	}
	defer log.Close()
	return log.Update(func(st fact.State) ([]fact.Fact, error) {
		facts, err := decide(st)
		for i := range facts {
			facts[i] = s.clean(facts[i])
		}
		return facts, err
	})
}

// projectGrants returns the grants in force in the project.
func (s *Session) projectGrants() ([]fact.Held, error) {
	if s.store == nil || s.place.Key == "" {
		return nil, nil
	}
	st, err := fold(s.store, s.projectLog())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return st.InForce("", time.Now()), err
}

// recall records again in a session what holds in its project.
func recall(st fact.State, project []fact.Held) []fact.Fact {
	var facts []fact.Fact
	for _, h := range project {
		if slices.ContainsFunc(st.Grants, func(k fact.Held) bool { return k.ID == h.ID }) {
			continue
		}
		g := h.Grant
		facts = append(facts, fact.Fact{Kind: fact.GrantGiven, ID: h.ID, Time: time.Now(), By: h.By, Why: h.Why, Grant: &g, What: "granted to the project before"})
	}
	return facts
}

// fold reads a log to its end.
func fold(store *factlog.Store, id string) (fact.State, error) {
	var st fact.State
	for rec, err := range store.Read(id) {
		if err != nil {
			return st, err
		}
		for _, f := range rec.Facts {
			st.Add(f)
		}
	}
	return st, nil
}

// grantHint says how to give what was asked for.
func (s *Session) grantHint(g fact.Grant, denied error) string {
	if s.store == nil || s.unfit(g) != "" {
		return fault.HintOf(denied)
	}
	return GrantCommand(s.id, g)
}

// GrantCommand is what to type to give a grant.
func GrantCommand(id string, g fact.Grant) string {
	line := "tether session grant " + id
	switch {
	case g.Path != "" && g.Write:
		line += " --write " + shellWord(g.Path)
	case g.Path != "":
		line += " --read " + shellWord(filepath.Clean(g.Path))
	case g.Host != "":
		line += " --host " + shellWord(g.Host)
	case g.Mode != "":
		line += " --mode " + g.Mode
	default:
		line += " --"
		for _, w := range g.Command {
			line += " " + shellWord(w)
		}
	}
	return line
}
