package redact

import (
	"io"

	"github.com/tether-sandbox/tether/fault"
)

// Guard returns a writer that passes on what holds no secret. Where one occurs,
// nothing from there on is passed on, and Write and Close fail with
// EGRESS_SECRET. What may begin a secret is held back as in [Writer]. It must be
// closed, which does not close w.
func (m *Matcher) Guard(w io.Writer) *Writer {
	g := m.Writer(w, nil)
	g.refuse = true
	return g
}

// refused is why a Guard passes nothing on.
func refused(name string) error {
	return fault.New(fault.EgressSecret, "it holds a secret, "+name)
}
