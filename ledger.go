package tether

import (
	"os"
	"strings"
	"sync"
	"time"

	"github.com/tether-sandbox/tether/fact"
	"github.com/tether-sandbox/tether/internal/redact"
)

// ledger is where the facts of a session go. A recorded session has its log;
// any other keeps in memory what they add up to.
type ledger interface {
	// Update records what decide returns, all or nothing, durably where the
	// session is recorded, with nobody else recording in between.
	Update(decide func(fact.State) ([]fact.Fact, error)) error
	// Attend says that this process takes part and names the part; Alive asks
	// whether a part is still there.
	Attend() (string, error)
	Alive(part string) bool
	Close() error
}

// memory is the ledger of a session that is not recorded.
type memory struct {
	mu    sync.Mutex
	state fact.State
}

func (m *memory) Update(decide func(fact.State) ([]fact.Fact, error)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	facts, err := decide(m.state.Clone())
	if err != nil {
		return err
	}
	for _, f := range facts {
		m.state.Add(f)
	}
	return nil
}

func (m *memory) Attend() (string, error) { return "0", nil }
func (m *memory) Alive(string) bool       { return true }
func (m *memory) Close() error            { return nil }

// record is the one door through which facts are recorded. What they announce
// is done only after it has returned nil.
func (s *Session) record(decide func(fact.State) ([]fact.Fact, error)) error {
	return s.ledger.Update(func(st fact.State) ([]fact.Fact, error) {
		facts, err := decide(st)
		for i := range facts {
			facts[i] = s.clean(facts[i])
		}
		return facts, err
	})
}

// state returns the session's state as it is now.
func (s *Session) state() (fact.State, error) {
	var now fact.State
	err := s.ledger.Update(func(st fact.State) ([]fact.Fact, error) {
		now = st
		return nil, nil
	})
	return now, err
}

// clean is what every fact passes before it is recorded: texts are cut to what
// a fact may hold, and what must not be known is taken out of them.
func (s *Session) clean(f fact.Fact) fact.Fact {
	if f.Time.IsZero() {
		f.Time = time.Now()
	}
	f.What = fact.Clip(s.discreet(f.What), fact.MaxText)
	for _, text := range []*string{&f.Why, &f.Path, &f.Host, &f.Rule, &f.Remedy} {
		*text = fact.Clip(s.discreet(*text), longText)
	}
	return f
}

// longText is how long, in bytes, all texts of a fact but the first may be, so
// that one fact always fits into a record, and batch how much is recorded at once.
const (
	longText = 4 << 10
	batch    = 16 << 10
)

// tell records what has happened, in as many records as it takes.
func (s *Session) tell(facts []fact.Fact) error {
	for len(facts) > 0 {
		n, size := 0, 0
		for n < len(facts) && (n == 0 || size < batch) {
			f := facts[n]
			size += 256 + len(f.What) + len(f.Why) + len(f.Path) + len(f.Rule) + len(f.Remedy)
			n++
		}
		now := facts[:n]
		if err := s.record(func(fact.State) ([]fact.Fact, error) { return now, nil }); err != nil {
			return err
		}
		facts = facts[n:]
	}
	return nil
}

// shortest is how long a value is at least that is taken out: shorter ones,
// such as "1" or "true", stand everywhere and are no secrets.
const shortest = 8

// discreet takes out of a text what must stand in no fact and in no question:
// the secrets of the last plan, and the values of variables that commands do not
// get, whatever they are called. It is the one function through which every such
// text passes.
func (s *Session) discreet(text string) string {
	if len(text) < shortest {
		return text
	}
	text = s.red.Load().matcher().Text(text, &redact.Tally{})
	for _, kv := range *s.scrubbed.Load() {
		name, value, _ := strings.Cut(kv, "=")
		if strings.Contains(text, value) {
			text = strings.ReplaceAll(text, value, "[REDACTED:"+name+"]")
		}
	}
	return text
}

// scrub remembers which of the caller's variables commands do not get: all
// whose value env, the environment of one of them, does not hold. Paths are left
// out, since they are the beginning of other paths, and so is the login name,
// which stands in them.
func (s *Session) scrub(env []string) {
	passed := make(map[string]bool, len(env))
	for _, kv := range env {
		passed[kv] = true
	}
	var list []string
	for _, kv := range s.environ {
		name, value, _ := strings.Cut(kv, "=")
		first, _, _ := strings.Cut(value, ":")
		if passed[kv] || len(value) < shortest || name == "USER" || name == "LOGNAME" || strings.HasPrefix(first, "/") && exists(first) {
			continue
		}
		list = append(list, kv)
	}
	s.scrubbed.Store(&list)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
