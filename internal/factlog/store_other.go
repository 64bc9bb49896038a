//go:build !linux

package factlog

import (
	"errors"
	"iter"

	"github.com/tether-sandbox/tether/fact"
)

// Store is refused on this system.
type Store struct{}

// Session is refused on this system.
type Session struct{}

func refused() error { return unavailable("no log on this system", errors.ErrUnsupported) }

// Open refuses.
func Open(string) (*Store, error) { return nil, refused() }

// Close refuses.
func (*Store) Close() error { return refused() }

// List refuses.
func (*Store) List() ([]Info, error) { return nil, refused() }

// Read yields the refusal.
func (*Store) Read(string) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) { yield(Record{}, refused()) }
}

// Verify refuses.
func (*Store) Verify(string) (Report, error) { return Report{}, refused() }

// VerifyAgainst refuses.
func (*Store) VerifyAgainst(string) (Report, error) { return Report{}, refused() }

// Head refuses.
func (*Store) Head(string) (string, error) { return "", refused() }

// Remove refuses.
func (*Store) Remove(string) error { return refused() }

// Session refuses.
func (*Store) Session(string) (*Session, error) { return nil, refused() }

// Close refuses.
func (*Session) Close() error { return refused() }

// State refuses.
func (*Session) State() (fact.State, error) { return fact.State{}, refused() }

// Attend refuses.
func (*Session) Attend() (string, error) { return "", refused() }

// Alive is never true.
func (*Session) Alive(string) bool { return false }

// Attended refuses.
func (*Store) Attended(string) (bool, error) { return false, refused() }

// Head is empty.
func (*Session) Head() string { return "" }

// Append refuses.
func (*Session) Append(...fact.Fact) error { return refused() }

// Update refuses.
func (*Session) Update(func(fact.State) ([]fact.Fact, error)) error { return refused() }
