package policy

// Within tells whether p allows nothing that q does not.
//
// It compares by spelling, so it can miss that a path or a rule is covered,
// but takes nothing for covered that is not, as long as no link is involved;
// the plan checks again by identity. In particular:
//
//   - A root lies in another by whole components, or in the system's folders
//     if q shows those (see [SystemRoots]). A policy that shows the system's
//     folders is not within one that lists them as roots, because in roots
//     secrets are hidden. For the same reason a p that shows them must also
//     list what q lists of them.
//   - p must hide and lock every pattern that q does, literally the same.
//   - A network rule covers only the same rule, however it is spelled; the
//     public base covers every rule by name on its ports, and any name in TLS.
//   - An upstream proxy covers itself alone, and going there without one.
//   - p must redact the value of every variable that q does.
//   - Variables to pass and to set are covered by the same entry. That Set
//     beats Pass is not looked at; NoScrub passes all.
//   - p must require of every guarantee what q requires.
//
// Within is reflexive and transitive, for policies that pass [Policy.Validate].
// A p that is malformed (an unknown profile, a relative root, a negative
// limit) lies within nothing, while what is malformed in q allows nothing.
// A policy that runs nothing lies within every policy.
func (p Policy) Within(q Policy) bool {
	if p.Profile == Nothing {
		return true
	}
	return p.wellFormed() == nil && scopeOf(p).within(scopeOf(q))
}

// Meet returns the widest policy that lies within p and within q, as far as
// spelling tells (see [Policy.Within]): roots are cut with each other, what is
// protected or denied is joined, of limits and modes the stricter one holds
// and of requirements the higher.
//
// Meet is idempotent, commutative and associative up to [Policy.Canonical].
// Only the label Workspace depends on the order: it is p's if the result may
// still do there what its profile does in a workspace, otherwise q's if that
// holds for it, otherwise empty, which [Policy.Validate] refuses.
//
// If either runs nothing, so does the result, Policy{}.
func Meet(p, q Policy) Policy {
	a, b := scopeOf(p), scopeOf(q)
	s := a.meet(b)
	m := s.policy()
	if m.Profile == Nothing {
		return m
	}
	for _, w := range []string{p.Workspace, q.Workspace} {
		if w, ok := cleanRoot(w); ok && s.worksIn(w) {
			m.Workspace = w
			m.Read = without(m.Read, w)
			m.Write = without(m.Write, w)
			break
		}
	}
	// Two zeros stay the zero that they are; scopes know only numbers.
	if p.Limits.Time == 0 && q.Limits.Time == 0 {
		m.Limits.Time = 0
	}
	if p.Limits.OutputBytes == 0 && q.Limits.OutputBytes == 0 {
		m.Limits.OutputBytes = 0
	}
	if p.Limits.Processes == 0 && q.Limits.Processes == 0 {
		m.Limits.Processes = 0
		if m.Accept[LimitsGuarantee] == m.builtin(LimitsGuarantee) {
			delete(m.Accept, LimitsGuarantee)
		}
		if len(m.Accept) == 0 {
			m.Accept = nil
		}
	}
	return m
}

// Canonical returns the one form of all policies that allow the same: lists
// sorted and without what is covered, limits as numbers, what cannot matter
// under the profile left out, and the workspace told as a root among others.
// p.Within(q) and q.Within(p) hold exactly if both have the same one.
//
// It is for comparing. It is not to be run, since it has lost its workspace.
// What is malformed in p allows nothing in it.
func (p Policy) Canonical() Policy { return scopeOf(p).policy() }

// reads lists every root that may be read, written ones too.
func (s scope) reads() roots { return union(s.read, s.write) }

// worksIn tells whether w may be the workspace without widening s.
func (s scope) worksIn(w string) bool {
	switch s.profile {
	case WorkspaceWrite:
		return s.write.cover(w)
	case ReadOnly:
		return s.read.cover(w)
	}
	return s.profile == FullAccess
}

func (s scope) within(t scope) bool {
	return s.profile <= t.profile &&
		s.rootsWithin(t) &&
		coveredBy(t.hidden, s.hidden) &&
		coveredBy(minus(t.locked, s.hidden), s.locked) &&
		s.commands <= t.commands &&
		(!s.nested || t.nested) &&
		s.networkWithin(t) &&
		s.envWithin(t) &&
		s.home <= t.home &&
		s.numbersWithin(t)
}

func (s scope) numbersWithin(t scope) bool {
	for i := range s.limits {
		if s.limits[i] > t.limits[i] {
			return false
		}
	}
	for g := range s.required {
		if s.required[g] < t.required[g] {
			return false
		}
	}
	return true
}

func (s scope) rootsWithin(t scope) bool {
	if t.profile == FullAccess {
		return true
	}
	if s.system && !t.system || !t.write.coverAll(s.write) || !t.unlocked.coverAll(s.unlocked) {
		return false
	}
	for _, r := range s.reads() {
		if !t.reads().cover(r) && !(t.system && inSystem(roots{r}).cover(r)) {
			return false
		}
	}
	return !s.system || inSystem(s.reads()).coverAll(inSystem(t.reads()))
}

func (s scope) networkWithin(t scope) bool {
	if s.mode > t.mode {
		return false
	}
	if s.mode != Offline && !coveredBy(t.deny, s.deny) {
		return false
	}
	if t.mode == Open {
		return true
	}
	if !coveredBy(s.publish, t.publish) {
		return false
	}
	return s.mode == Offline || (!s.public || t.public) && (!s.anySNI || t.anySNI) &&
		(s.upstream == "" || s.upstream == t.upstream) && len(t.unallowed(s.allow)) == 0
}

func (s scope) envWithin(t scope) bool {
	if !coveredBy(t.redact, s.redact) {
		return false
	}
	if !t.passAll && (s.passAll || !coveredBy(s.pass, t.pass)) {
		return false
	}
	for name, value := range s.set {
		if v, ok := t.set[name]; !ok || v != value {
			return false
		}
	}
	return true
}

func (s scope) meet(t scope) scope {
	m := scope{
		profile:  min(s.profile, t.profile),
		hidden:   sorted(s.hidden, t.hidden),
		commands: min(s.commands, t.commands),
		nested:   s.nested && t.nested,
		mode:     min(s.mode, t.mode),
		home:     min(s.home, t.home),
	}
	if m.profile == Nothing {
		return scope{}
	}
	m.locked = minus(sorted(s.locked, t.locked), m.hidden)
	m.meetRoots(s, t)
	m.meetNetwork(s, t)
	m.meetEnv(s, t)
	for i := range m.limits {
		m.limits[i] = min(s.limits[i], t.limits[i])
	}
	for g := range m.required {
		m.required[g] = max(s.required[g], t.required[g])
	}
	return m
}

func (m *scope) meetRoots(s, t scope) {
	if t.profile == FullAccess {
		s, t = t, s
	}
	if s.profile == FullAccess {
		m.system, m.read, m.write, m.unlocked = t.system, t.read, t.write, t.unlocked
	} else {
		sr, tr := s.reads(), t.reads()
		read := sr.intersect(tr)
		if t.system {
			read = union(read, inSystem(sr))
		}
		if s.system {
			read = union(read, inSystem(tr))
		}
		m.system = s.system && t.system
		m.write = s.write.intersect(t.write)
		m.read = read
		m.unlocked = s.unlocked.intersect(t.unlocked)
	}
	if m.profile < WorkspaceWrite {
		m.read, m.write = union(m.read, m.write), nil
	}
	m.read = m.readBesides(m.write)
}

func (m *scope) meetNetwork(s, t scope) {
	if t.mode == Open {
		s, t = t, s
	}
	if m.mode == Offline {
		s.deny, t.deny = nil, nil
	}
	m.deny = sorted(s.deny, t.deny)
	if s.mode == Open {
		m.public, m.anySNI, m.upstream, m.publish = t.public, t.anySNI, t.upstream, t.publish
		m.allow = minus(t.allow, m.deny)
		return
	}
	m.publish = both(s.publish, t.publish)
	m.public, m.anySNI = s.public && t.public, s.anySNI && t.anySNI
	if s.upstream == t.upstream {
		m.upstream = s.upstream
	}
	m.allow = minus(sorted(minus(s.allow, t.unallowed(s.allow)), minus(t.allow, s.unallowed(t.allow))), m.deny)
	if m.public {
		m.allow = minusFunc(m.allow, byBase)
	}
}

// unallowed returns those of rules that s does not allow as a whole, by a rule
// of its own or by its base. What s denies, it denies beside them.
func (s scope) unallowed(rules []string) []string {
	return minusFunc(rules, func(r string) bool { return has(s.allow, r) || s.public && byBase(r) })
}

func (m *scope) meetEnv(s, t scope) {
	m.redact = sorted(s.redact, t.redact)
	switch {
	case s.passAll:
		m.pass, m.passAll = t.pass, t.passAll
	case t.passAll:
		m.pass = s.pass
	default:
		m.pass = both(s.pass, t.pass)
	}
	for name, value := range s.set {
		if v, ok := t.set[name]; ok && v == value {
			if m.set == nil {
				m.set = make(map[string]string)
			}
			m.set[name] = value
		}
	}
}
