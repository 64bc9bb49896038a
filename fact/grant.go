package fact

import (
	"path"
	"slices"
	"strings"
	"time"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/host"
	"github.com/tether-sandbox/tether/policy"
)

// Scope says how long a grant lasts.
type Scope string

// The scopes. Any other text, also none, is Once.
const (
	// Once: for one command, edit, fetch or change of mode.
	Once Scope = "once"
	// Session: until the session ends.
	Session Scope = "session"
	// Project: also for later sessions on the same workspace; who starts one
	// records it there again. A session's own state counts it like Session.
	Project Scope = "project"
)

// Grant is a widening: exactly one of Path, Host, Command and Mode.
type Grant struct {
	// Path, absolute, and what lies below it may be read, with Write also
	// written. It never opens a hidden file.
	Path  string `json:"path,omitempty"`
	Write bool   `json:"write,omitempty"`
	// Host is one HOST:PORT, spelled as the gate spells it.
	Host string `json:"host,omitempty"`
	// Command is a command's words, exactly; it lifts the guard's verdict and
	// nothing else.
	Command []string `json:"command,omitempty"`
	// Mode is the widest sandbox mode that may be entered.
	Mode string `json:"mode,omitempty"`

	Scope Scope `json:"scope"`
	// Expires ends the grant; zero means that time does not.
	Expires time.Time `json:"expires,omitzero"`
}

// Held is a grant as a session holds it.
type Held struct {
	ID string
	Grant
	By    Actor
	Why   string
	Since time.Time
	// Revoked and Spent say why it is in force no longer.
	Revoked, Spent bool
}

// live tells whether h is in force at a time.
func (h Held) live(at time.Time) bool {
	return !h.Revoked && !h.Spent && (h.Expires.IsZero() || at.Before(h.Expires))
}

// CoversPath tells whether the grant opens a path for reading or, with write,
// for writing. Both are compared by spelling: links are for the caller, who
// knows the files, to resolve first.
func (g Grant) CoversPath(p string, write bool) bool {
	if g.Path == "" || write && !g.Write || !path.IsAbs(g.Path) || !path.IsAbs(p) {
		return false
	}
	root, p := path.Clean(g.Path), path.Clean(p)
	return root == p || root == "/" || strings.HasPrefix(p, root+"/")
}

// CoversHost tells whether the grant opens exactly this HOST:PORT.
func (g Grant) CoversHost(hostport string) bool { return g.Host != "" && g.Host == hostport }

// CoversCommand tells whether the grant is for exactly these words.
func (g Grant) CoversCommand(words []string) bool {
	return len(g.Command) > 0 && slices.Equal(g.Command, words)
}

// coversMode tells whether the grant allows to enter p.
func (g Grant) coversMode(p policy.Profile) bool {
	widest, err := policy.ParseProfile(g.Mode)
	return err == nil && p <= widest
}

// Check tells whether g is a grant at all: one subject, well formed, that a
// grant can open. What a policy hides by patterns of its own stays hidden too;
// the mask sees to that, not this look at the spelling.
func (g Grant) Check() error {
	subjects := 0
	for _, given := range []bool{g.Path != "", g.Host != "", len(g.Command) > 0, g.Mode != ""} {
		if given {
			subjects++
		}
	}
	bad := func(what string) error {
		return fault.New(fault.PolicyInvalid, "grant: "+what).WithHint("tether session -h")
	}
	switch {
	case subjects != 1:
		return bad("it must name one path, host, command or mode")
	case g.Write && g.Path == "":
		return bad("write is for a path")
	case g.Scope != Once && g.Scope != Session && g.Scope != Project:
		return bad("the scope is once, session or project")
	case g.Path != "" && (!path.IsAbs(g.Path) || path.Clean(g.Path) != g.Path):
		return bad("the path must be absolute and clean")
	case g.Host != "" && !oneHost(g.Host):
		return bad("the host must be one HOST:PORT")
	}
	if g.Mode != "" {
		if _, err := policy.ParseProfile(g.Mode); err != nil {
			return err
		}
	}
	if g.hidden() {
		return fault.New(fault.ApprovalDenied, "a grant cannot open a hidden file").
			WithHint("nothing opens it: put what may be seen into a file of another name, such as .env.example")
	}
	return nil
}

// oneHost says whether a rule names one host and one port.
func oneHost(s string) bool {
	r, err := host.ParseRule(s)
	return err == nil && !r.Wild && (!r.Prefix.IsValid() || r.Prefix.IsSingleIP()) && len(r.Ports) == 1 && r.Ports[0].First == r.Ports[0].Last
}

func (g Grant) hidden() bool {
	if g.Path == "" {
		return false
	}
	for dir := range strings.SplitSeq(path.Dir(g.Path), "/") {
		if policy.HiddenName([]byte(dir)) == policy.HiddenAny {
			return true
		}
	}
	class := policy.HiddenName([]byte(path.Base(g.Path)))
	return class == policy.HiddenAny || class == policy.HiddenFile
}
