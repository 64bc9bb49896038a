package gate

import (
	"sync"

	"github.com/tether-sandbox/tether/internal/egress"
)

// Refused is one thing that was refused, and how often.
type Refused struct {
	egress.Denial
	Times int
}

// log keeps denials, each once.
type log struct {
	mu   sync.Mutex
	list []Refused
	at   map[egress.Denial]int
	more int
}

// mostDenials is how many different denials are kept.
const mostDenials = 200

func (l *log) add(d egress.Denial) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i, ok := l.at[d]; ok {
		l.list[i].Times++
		return
	}
	if len(l.list) >= mostDenials {
		l.more++
		return
	}
	if l.at == nil {
		l.at = map[egress.Denial]int{}
	}
	l.at[d] = len(l.list)
	l.list = append(l.list, Refused{d, 1})
}

func (l *log) all() ([]Refused, int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]Refused(nil), l.list...), l.more
}
