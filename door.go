package tether

import (
	"errors"
	"path/filepath"
	"slices"

	"github.com/tether-sandbox/tether/fact"
	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/filegate"
	"github.com/tether-sandbox/tether/internal/plan"
	"github.com/tether-sandbox/tether/policy"
)

// do is one call: intended, made, told. One that is refused and then granted is
// made again.
func (f *Files) do(verb, path string, write bool, call func(*filegate.Gate) error) error {
	a := &act{s: f.s, what: verb + " " + shellWord(path)}
	err := errStale
	asked := false
	for try := 0; errors.Is(err, errStale) && try < planTries; try++ {
		if err = f.once(a, path, write, call); fault.CodeOf(err) != fault.SandboxViolation {
			continue
		}
		g, ok := f.grantFor(path, write)
		if !ok || f.s.tryGrant(f.ctx, g) != nil {
			continue
		}
		if f.s.approver == nil || asked {
			if f.s.store != nil {
				err = withHint(err, GrantCommand(f.s.id, g))
			}
			continue
		}
		asked, a.told = true, true // by the question, whatever the answer is
		a.end(err)
		var no error
		if _, a.told, no = f.s.ask(f.ctx, g, err, "", ""); no != nil {
			err = withHint(err, fault.HintOf(no))
			continue
		}
		err = errStale
	}
	if errors.Is(err, errStale) {
		err = fault.Wrap(fault.IsolationUnavailable, "the session does not hold still", err)
	}
	a.end(err)
	return err
}

// once makes a call once, under what holds now. What changes something, or uses
// a grant up, is recorded before.
func (f *Files) once(a *act, path string, write bool, call func(*filegate.Gate) error) error {
	if err := f.follow(); err != nil {
		return err
	}
	defer f.mu.RUnlock()
	real := f.real(path)
	var uses []string
	spends := false
	for _, h := range f.effect.grants {
		if h.CoversPath(real, write) {
			uses = append(uses, h.ID)
			spends = spends || h.Scope != fact.Session && h.Scope != fact.Project
		}
	}
	if write || spends {
		kind := fact.Intent
		if write {
			kind = fact.Edit
		}
		if err := a.begin(f.effect, fact.Fact{Kind: kind, Path: real, Uses: uses}); err != nil {
			return err
		}
	}
	return call(f.gate)
}

// follow sees to it that the gate is the one of what holds now, and leaves it
// held for reading.
func (f *Files) follow() error {
	for range planTries {
		e, err := f.s.now()
		if err != nil {
			return err
		}
		f.mu.RLock()
		closed, same := f.closed, e.same(f.effect)
		if same && !closed {
			return nil
		}
		f.mu.RUnlock()
		if closed {
			return fault.New(fault.Internal, "the file gate is closed")
		}
		f.mu.Lock()
		err = f.open(f.ctx, e)
		f.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return errStale
}

// real is a path as grants spell it: without links, as far as it exists.
func (f *Files) real(path string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(f.plan.Workspace.Path, path)
	}
	path = filepath.Clean(path)
	for at, rest := path, ""; ; {
		if real, err := f.s.world.Locate(at); err == nil {
			return filepath.Join(real, rest)
		}
		up := filepath.Dir(at)
		if up == at {
			return path
		}
		at, rest = up, filepath.Join(filepath.Base(at), rest)
	}
}

// grantFor is the narrowest grant that opens a path which was refused: none for
// what is hidden, locked, or open already.
func (f *Files) grantFor(path string, write bool) (fact.Grant, bool) {
	f.mu.RLock()
	p, real := f.plan, f.real(path)
	f.mu.RUnlock()
	if write {
		if _, err := f.s.world.Locate(real); err != nil {
			real = filepath.Dir(real)
		}
		if p.Policy.Profile != policy.WorkspaceWrite {
			return fact.Grant{}, false
		}
	}
	g := fact.Grant{Path: real, Write: write, Scope: fact.Once}
	if g.Check() != nil || f.s.unfit(g) != "" || p.Policy.Profile == policy.FullAccess {
		return g, false
	}
	shown := slices.ContainsFunc(p.Views, func(v plan.View) bool {
		return v.At == "" && (v.Origin == plan.Workspace || v.Origin == plan.Added) && (v.Writable || !write) &&
			(fact.Grant{Path: v.Path}).CoversPath(real, false)
	})
	return g, !shown
}
