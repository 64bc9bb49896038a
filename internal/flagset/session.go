package flagset

import (
	"context"
	"slices"

	"github.com/tether-sandbox/tether"
	"github.com/tether-sandbox/tether/fact"
	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/policyfile"
	"github.com/tether-sandbox/tether/policy"
)

// NewSession is what --session takes to make up a name.
const NewSession = "new"

// AddSession adds the flag --session.
func (f *Flags) AddSession() {
	f.Set.Func("session", "record what happens in session `ID`, begun or continued; new makes up a name", f.Named("session", &f.Session))
}

// Options says how a session under the policy files and the flags is opened.
// What the command line says of the mode is asked for; what policy files say
// holds only where no fact does.
func (f *Flags) Options() (tether.Options, error) {
	e, err := f.Effective()
	if err != nil {
		return tether.Options{}, err
	}
	if refused := NotInThisBuild(e); len(refused) > 0 {
		return tether.Options{}, refused[0].Err
	}
	f.Origins = e.Origins
	o := tether.Options{Policy: e.Policy, Provider: e.Provider, NoSandbox: f.NoSandbox, By: fact.Person, Session: f.Session}
	if e.Fetch != "" { // else it follows the session
		o.Fetch = &e.FetchNetwork
	}
	if f.Session == NewSession || f.Session == "" && e.Audit {
		o.Session = tether.NewSessionID()
	}
	if o.Session == "" || f.Looks && !recorded(f.Session) {
		o.Session = ""
		return o, nil
	}
	if f.Looks || !slices.ContainsFunc(f.changes, func(c policyfile.Change) bool { return c.Key == "profile" }) {
		o.Default = fact.Default{Preset: presetOf(e.Policy.Profile), Origin: fact.Settings}
	}
	o.Default.Never = e.Approval == fact.Never.String()
	if f.Approver != nil {
		o.Approver = f.Approver()
	}
	return o, nil
}

// Open opens a session under the policy files and the flags. Flags that want
// more than the session began with are refused, and not left out.
func (f *Flags) Open(ctx context.Context) (*tether.Session, error) {
	o, err := f.Options()
	if err != nil {
		return nil, err
	}
	s, err := tether.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := f.Accept(s); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Accept refuses a session that began with less than the flags want.
func (f *Flags) Accept(s *tether.Session) error {
	if !s.Narrowed() || len(f.changes) == 0 {
		return nil
	}
	return fault.New(fault.ApprovalDenied, "the session "+s.ID()+" began with a policy that does not hold all that these flags allow; "+
		"tether session grant opens paths, hosts, commands and modes, and anything else, such as --upstream, needs a new session").
		WithHint("tether session grant -h")
}

func presetOf(p policy.Profile) fact.Preset {
	preset, err := fact.ParsePreset(p.String())
	if err != nil {
		return fact.PresetReadOnly // there is no other profile
	}
	return preset
}

// recorded tells whether a session is in the store.
func recorded(id string) bool {
	s, err := tether.OpenSessions(nil)
	if err != nil {
		return false
	}
	defer s.Close()
	_, err = s.State(id)
	return err == nil
}
