package tether

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tether-sandbox/tether/fact"
	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/factlog"
	"github.com/tether-sandbox/tether/internal/world/local"
)

// Sessions are the recorded sessions of the caller, for those who look at them
// and decide about them. Nothing of it opens a turn.
type Sessions struct {
	store   *factlog.Store // nil: there is none yet
	state   string
	environ []string
}

// SessionInfo is a session as it lies in the store, unverified.
type SessionInfo struct {
	ID       string    `json:"id"`
	Modified time.Time `json:"modified"`
	Bytes    int64     `json:"bytes"`
	// Live tells whether any process takes part in it.
	Live bool `json:"live"`
}

// Recorded is a fact with the number and the name of the record that holds it.
type Recorded struct {
	Seq  uint64
	MAC  string
	Fact fact.Fact
}

// Verification is what was found of a log that is as it was written.
type Verification struct {
	Records uint64 `json:"records"`
	Facts   int    `json:"facts"`
	// Torn is how many bytes a crash left behind the last record.
	Torn int64 `json:"torn"`
	// Head names the last record. Kept where nobody who can write the store can
	// change it, it shows later whether records at the end were removed.
	Head string `json:"head"`
}

// OpenSessions opens the store of the caller. Nil is os.Environ(). A store that
// does not exist is empty, and is not made.
func OpenSessions(environ []string) (*Sessions, error) {
	if environ == nil {
		environ = os.Environ()
	}
	state, err := local.State(environ)
	if err != nil {
		return nil, err
	}
	s := &Sessions{state: state, environ: environ}
	if _, err := os.Lstat(filepath.Join(state, "sessions")); err != nil {
		return s, nil
	}
	s.store, err = factlog.Open(state)
	return s, err
}

// Close closes the store.
func (s *Sessions) Close() error {
	if s.store == nil {
		return nil
	}
	return s.store.Close()
}

// List lists the sessions, the one that changed last first.
func (s *Sessions) List() ([]SessionInfo, error) {
	list := []SessionInfo{}
	if s.store == nil {
		return list, nil
	}
	found, err := s.store.List()
	if err != nil {
		return nil, err
	}
	for _, i := range found {
		if strings.HasPrefix(i.ID, projectPrefix) {
			continue
		}
		live, err := s.store.Attended(i.ID)
		if err != nil {
			return nil, err
		}
		list = append(list, SessionInfo{i.ID, i.Modified, i.Bytes, live})
	}
	slices.SortFunc(list, func(a, b SessionInfo) int {
		return cmp.Or(b.Modified.Compare(a.Modified), cmp.Compare(b.ID, a.ID))
	})
	return list, nil
}

// Last returns the session that changed last.
func (s *Sessions) Last() (string, error) {
	list, err := s.List()
	if err == nil && len(list) == 0 {
		err = fault.New(fault.StoreUnavailable, "no session is recorded").
			WithHint("tether run --session new -- CMD, or audit = true in a policy file")
	}
	if err != nil {
		return "", err
	}
	return list[0].ID, nil
}

// there returns the store if a session is in it.
func (s *Sessions) there(id string) (*factlog.Store, error) {
	if strings.HasPrefix(id, projectPrefix) || !factlog.ValidID(id) {
		return nil, fault.New(fault.UsageInvalid, fmt.Sprintf("%q cannot be the name of a session", id)).WithHint("tether session list")
	}
	if s.store != nil {
		list, err := s.store.List()
		if err != nil {
			return nil, err
		}
		for _, i := range list {
			if i.ID == id {
				return s.store, nil
			}
		}
	}
	return nil, fault.New(fault.StoreUnavailable, fmt.Sprintf("no session is called %q", id)).WithHint("tether session list")
}

// State returns what the facts of a session add up to. Every record is verified.
func (s *Sessions) State(id string) (fact.State, error) {
	store, err := s.there(id)
	if err != nil {
		return fact.State{}, err
	}
	return fold(store, id)
}

// Facts yields the facts of a session in their order, verified. An error is the
// last thing that it yields.
func (s *Sessions) Facts(id string) iter.Seq2[Recorded, error] {
	return func(yield func(Recorded, error) bool) {
		store, err := s.there(id)
		if err != nil {
			yield(Recorded{}, err)
			return
		}
		for rec, err := range store.Read(id) {
			if err != nil {
				yield(Recorded{}, err)
				return
			}
			for _, f := range rec.Facts {
				if !yield(Recorded{rec.Seq, rec.MAC, f}, nil) {
					return
				}
			}
		}
	}
}

// Verify reads a whole session and compares every record with what was written
// there; a head that was kept must still be in it. STORE_CORRUPT names the
// first record that is wrong.
func (s *Sessions) Verify(id, head string) (Verification, error) {
	store, err := s.there(id)
	if err != nil && head == "" {
		return Verification{}, err
	}
	var rep factlog.Report
	switch {
	case head == "":
		rep, err = store.Verify(id)
	case !strings.HasPrefix(head, id+":"):
		return Verification{}, fault.New(fault.UsageInvalid, "the head is one of another session").WithHint("tether session verify ID --head HEAD, with the HEAD that tether session verify ID printed before")
	case s.store == nil:
		return Verification{}, fault.Wrap(fault.StoreCorrupt, "the session "+id+" is gone", fs.ErrNotExist)
	default:
		rep, err = s.store.VerifyAgainst(head)
	}
	return Verification{rep.Records, rep.Facts, rep.Torn, rep.Head}, err
}

// Open opens a session that exists with the policy that it began with, for
// somebody who looks at it or decides about it, and who answers questions by
// the approver.
func (s *Sessions) Open(ctx context.Context, id string, approver Approver) (*Session, error) {
	st, err := s.State(id)
	if err != nil {
		return nil, err
	}
	p, err := readPolicy(st)
	if err != nil {
		return nil, err
	}
	return Open(ctx, Options{Policy: p, Session: id, Environ: s.environ, By: fact.Person, Approver: approver,
		Default: fallbackOf(p.Profile)})
}

// Remove removes a session's log and its /tmp for good. One in which a process
// takes part is refused.
func (s *Sessions) Remove(id string) error {
	store, err := s.there(id)
	if err != nil {
		return err
	}
	live, err := store.Attended(id)
	if err == nil && live {
		err = fault.New(fault.UsageInvalid, "the session "+id+" is in use").WithHint("tether session show " + id)
	}
	if err == nil {
		_, err = local.RemoveTmp(s.state, id)
	}
	if err != nil {
		return err
	}
	return store.Remove(id)
}

// removeTmps removes the /tmp of every session in which no process takes part.
func (s *Sessions) removeTmps() (removed []string, err error) {
	for _, id := range local.Tmps(s.state) {
		if s.store != nil && factlog.ValidID(id) {
			if live, err := s.store.Attended(id); err != nil || live {
				continue
			}
		}
		dir, err := local.RemoveTmp(s.state, id)
		if err != nil {
			return removed, err
		}
		if dir != "" {
			removed = append(removed, dir)
		}
	}
	return removed, nil
}
