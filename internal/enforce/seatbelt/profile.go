// Package seatbelt is the provider of macOS: it translates a plan into a profile
// for /usr/bin/sandbox-exec and starts the command under it. The translation is
// pure and the same on every system; nothing is decided in it.
//
// What the language cannot say is refused or made stricter, never left out: a
// file that a plan shows with other content is hidden, since nothing can be
// shown in its place; a view at another path than its own is an error.
//
// The profile is written so that two readings of the language agree on it: that
// of several rules the last one in the text counts, and that a rule for one
// operation beats one for a family of them. No path is therefore denied by a
// family and allowed by a member of it. Tests evaluate every profile both ways.
package seatbelt

import (
	"strconv"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/plan"
	"github.com/tether-sandbox/tether/policy"
)

// Options are what a profile depends on besides the plan.
type Options struct {
	// Gate is the port on 127.0.0.1 where the gate of this run listens; it is
	// needed for a gated network and means nothing otherwise.
	Gate uint16
	// Terminal is the device file of the command's own terminal; empty is none.
	Terminal string
}

// Profile returns the text of the profile that holds a command to a plan. The
// same plan gives the same text. Errors are *fault.Error with the code
// SANDBOX_UNAVAILABLE: the plan holds something that cannot be told.
func Profile(p *plan.Plan, o Options) (string, error) {
	if p.Policy.Profile != policy.ReadOnly && p.Policy.Profile != policy.WorkspaceWrite {
		return "", refuse("there is no profile for " + p.Policy.Profile.String())
	}
	w := new(writer)
	w.text(base)
	if o.Terminal != "" {
		w.note("The command's own terminal.")
		w.rule("allow", terminal, literal(o.Terminal))
	}
	files(w, p)
	if err := network(w, p, o); err != nil {
		return "", err
	}
	return w.b.String(), w.err
}

func refuse(what string) error {
	return fault.New(fault.SandboxUnavailable, "seatbelt: "+what)
}

// network opens what the plan's network asks for. There is no loopback of its
// own: what is not opened here cannot be reached, not even by the command itself.
func network(w *writer, p *plan.Plan, o Options) error {
	n := p.Policy.Network
	switch n.Mode {
	case policy.Gated:
		if o.Gate == 0 {
			return refuse("the network is gated and there is no gate")
		}
		w.note("The gate, and nothing else that listens on the host's loopback.")
		w.rule("allow", "network-outbound", port("remote", strconv.Itoa(int(o.Gate))))
		w.text(trust)
	case policy.Open:
		w.text(open)
		w.text(trust)
	}
	if n.Mode != policy.Open && len(n.Publish) > 0 {
		w.note("Ports that the host may reach. Nothing inside connects to them.")
		for _, at := range n.Publish {
			w.rule("allow", "network-bind network-inbound", port("local", strconv.Itoa(int(at))))
		}
	}
	return nil
}
