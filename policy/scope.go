package policy

import (
	"math"
	"time"

	"github.com/tether-sandbox/tether/internal/host"
)

// scope is what a policy comes to, in a form in which parts can be compared
// and cut one by one.
type scope struct {
	profile  Profile
	system   bool
	read     roots // without write
	write    roots
	hidden   []string
	locked   []string
	unlocked roots
	commands Commands
	nested   bool // always true under FullAccess
	mode     NetworkMode
	public   bool
	anySNI   bool // always true with public
	upstream string
	allow    []string
	deny     []string
	publish  []uint16
	pass     []string
	passAll  bool
	set      map[string]string
	redact   []string
	home     Home
	limits   [9]int64
	required [len(Guarantees)]Grade
}

func scopeOf(p Policy) scope {
	if !p.runs() {
		return scope{}
	}
	s := scope{
		profile:  p.Profile,
		hidden:   sorted(p.Protect.Hidden),
		commands: strictly(p.Commands, Any),
		nested:   p.Nested || p.Profile == FullAccess,
		home:     strictly(p.Home, HomeWorkspace),
		limits:   limitsOf(p.Limits),
		passAll:  p.Env.NoScrub && p.Profile == FullAccess,
	}
	s.locked = minus(sorted(p.Protect.Locked), s.hidden)
	s.setRoots(p)
	s.setNetwork(p.Network)
	if p.Profile > ReadOnly {
		s.commands = Any
	}
	if !s.passAll {
		s.pass = sorted(p.Env.Pass)
	}
	s.redact = sorted(p.Env.Redact)
	for name, value := range p.Env.Set {
		if s.set == nil {
			s.set = make(map[string]string, len(p.Env.Set))
		}
		s.set[name] = value
	}
	for _, g := range Guarantees {
		s.required[g] = p.Required(g)
	}
	return s
}

func (s *scope) setRoots(p Policy) {
	if p.Profile == FullAccess { // everywhere, without a list
		s.system = true
		return
	}
	s.system = p.Reads.System
	read, write := clean(p.Read, cleanRoot), clean(p.Write, cleanRoot)
	if !p.Reads.System {
		read = append(read, clean(p.Reads.Only, cleanRoot)...)
	}
	if w, ok := cleanRoot(p.Workspace); ok {
		write = append(write, w)
	}
	if p.Profile == WorkspaceWrite {
		s.write = union(write)
		s.read = union(read)
		s.read = s.readBesides(s.write)
	} else {
		s.read = union(read, write)
	}
	s.unlocked = union(clean(p.Protect.AllowConfig, cleanConfig))
}

func (s *scope) readBesides(write roots) roots {
	return minusFunc(s.read, write.cover)
}

func (s *scope) setNetwork(n Network) {
	s.mode = strictly(n.Mode, Open)
	switch s.mode {
	case Offline:
		s.publish = sorted(n.Publish)
	case Gated:
		s.public = n.Public
		s.anySNI = n.AnySNI || n.Public
		s.upstream = spelledProxy(n.Upstream)
		s.deny = spelled(n.Deny)
		s.allow = minus(spelled(n.Allow), s.deny)
		if s.public {
			s.allow = minusFunc(s.allow, byBase)
		}
		s.publish = sorted(n.Publish)
	case Open: // every address, every port; nothing enforces the denials
		s.deny = spelled(n.Deny)
	}
}

// policy spells s out. It shares lists with s, which is not used again.
func (s scope) policy() Policy {
	p := Policy{
		Profile:  s.profile,
		Reads:    Reads{System: s.system},
		Read:     s.read,
		Write:    s.write,
		Protect:  Protect{Hidden: s.hidden, Locked: s.locked, AllowConfig: s.unlocked},
		Commands: s.commands,
		Nested:   s.nested && s.profile != FullAccess,
		Network: Network{Mode: s.mode, Public: s.public, AnySNI: s.anySNI && !s.public, Upstream: s.upstream,
			Allow: s.allow, Deny: s.deny, Publish: s.publish},
		Env:    Env{Pass: s.pass, Set: s.set, NoScrub: s.passAll, Redact: s.redact},
		Home:   s.home,
		Limits: spelledLimits(s.limits),
	}
	if p.Profile == Nothing {
		return Policy{}
	}
	for _, g := range Guarantees {
		if s.required[g] == p.builtin(g) {
			continue
		}
		if p.Accept == nil {
			p.Accept = make(map[Guarantee]Grade)
		}
		p.Accept[g] = s.required[g]
	}
	return p
}

// builtinFree is what a zero FreeDisk counts as.
const builtinFree = BuiltinFreeDisk - 1

// limitsOf puts numbers for zeros, and 1, the least, for what is negative. Less
// is stricter: what must stay free is told by what may be used of all there is.
func limitsOf(l Limits) [9]int64 {
	values := [9]int64{int64(l.Time), l.OutputBytes, l.Processes, l.MemoryBytes, l.FileBytes, l.OpenFiles, int64(l.CPU), l.ScratchBytes}
	builtin := [9]int64{int64(BuiltinTime), BuiltinOutputBytes, BuiltinProcesses, math.MaxInt64, math.MaxInt64, math.MaxInt64,
		math.MaxInt64, math.MaxInt64, math.MaxInt64 - builtinFree}
	if l.FreeDisk != 0 {
		values[8] = math.MaxInt64 - min(l.FreeDisk, math.MaxInt64-1)
	}
	for i, v := range values {
		if v == 0 {
			values[i] = builtin[i]
		}
		values[i] = max(values[i], 1)
	}
	return values
}

func spelledLimits(v [9]int64) Limits {
	free := math.MaxInt64 - v[8]
	if free == builtinFree {
		free = 0
	}
	for i := range v {
		if v[i] == math.MaxInt64 {
			v[i] = 0
		}
	}
	return Limits{Time: time.Duration(v[0]), OutputBytes: v[1], Processes: v[2], MemoryBytes: v[3], FileBytes: v[4],
		OpenFiles: v[5], CPU: time.Duration(v[6]), ScratchBytes: v[7], FreeDisk: free}
}

// strictly returns v, or zero for what lies outside 0..widest.
func strictly[T ~int](v, widest T) T {
	if v < 0 || v > widest {
		return 0
	}
	return v
}

func clean(paths []string, one func(string) (string, bool)) []string {
	var out []string
	for _, p := range paths {
		if c, ok := one(p); ok {
			out = append(out, c)
		}
	}
	return out
}

// spelled returns rules in their one spelling. What is no rule stays as it is,
// and equals only itself.
func spelled(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = s
		if r, err := host.ParseRule(s); err == nil {
			out[i] = r.String()
		}
	}
	return sorted(out)
}

// spelledProxy returns a proxy in its one spelling. What is none stays as it is.
func spelledProxy(s string) string {
	if p, err := host.ParseProxy(s); s != "" && s != UpstreamEnvironment && err == nil && p.User == "" && p.Password == "" {
		return p.String()
	}
	return s
}

// byBase tells whether the public base allows all that a rule does: a name on
// its ports. Names that mean the machine or its cloud are not in it.
func byBase(rule string) bool {
	r, err := host.ParseRule(rule)
	if err != nil || r.Name == "" || host.IsLocal(r.Name) || host.IsMetadata(r.Name) {
		return false
	}
	for _, s := range r.Ports {
		for p := int(s.First); p <= int(s.Last); p++ {
			if !host.PublicPort(uint16(p)) {
				return false
			}
		}
	}
	return true
}

func without(list []string, s string) []string {
	return minusFunc(list, func(e string) bool { return e == s })
}
