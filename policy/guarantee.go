package policy

import "strings"

func guarantees() []word[Guarantee] {
	return []word[Guarantee]{
		{"read", Read},
		{"write", Write},
		{"secrets", Secrets},
		{"network", NetworkGuarantee},
		{"process", Process},
		{"ipc", IPC},
		{"limits", LimitsGuarantee},
	}
}

// ParseGuarantee reads read, write, secrets, network, process, ipc or limits.
// Together with an error it returns Read, which says nothing: look at the
// error first.
func ParseGuarantee(s string) (Guarantee, error) { return parse("guarantee", s, guarantees()) }

// String returns the spelling that ParseGuarantee reads.
func (g Guarantee) String() string { return spell("Guarantee", g, guarantees()) }

// MarshalText returns the spelling; a value without one is an error.
func (g Guarantee) MarshalText() ([]byte, error) { return marshal("guarantee", g, guarantees()) }

// UnmarshalText is ParseGuarantee.
func (g *Guarantee) UnmarshalText(b []byte) (err error) {
	*g, err = ParseGuarantee(string(b))
	return err
}

func grades() []word[Grade] {
	return []word[Grade]{{"None", None}, {"Partial", Partial}, {"Complete", Complete}}
}

// ParseGrade reads none, partial or complete in any case. As a requirement
// None is the widest grade, so a grade that comes with an error must not be
// used.
func ParseGrade(s string) (Grade, error) {
	for _, w := range grades() {
		if len(s) == len(w.text) && strings.EqualFold(s, w.text) {
			return w.value, nil
		}
	}
	return parse("grade", s, grades())
}

// String returns None, Partial or Complete.
func (g Grade) String() string { return spell("Grade", g, grades()) }

// MarshalText returns the spelling; a value without one is an error.
func (g Grade) MarshalText() ([]byte, error) { return marshal("grade", g, grades()) }

// UnmarshalText is ParseGrade.
func (g *Grade) UnmarshalText(b []byte) (err error) {
	*g, err = ParseGrade(string(b))
	return err
}

// ParseAccept reads one GUARANTEE=GRADE, such as "secrets=partial", into an
// entry of [Policy.Accept].
func ParseAccept(s string) (Guarantee, Grade, error) {
	left, right, ok := strings.Cut(s, "=")
	if !ok {
		return 0, 0, invalid("cannot read "+quote(s)+" as GUARANTEE=GRADE", "write it like secrets=partial")
	}
	g, err := ParseGuarantee(left)
	if err != nil {
		return 0, 0, err
	}
	grade, err := ParseGrade(right)
	if err != nil {
		return 0, 0, err
	}
	return g, grade, nil
}

// Required returns the grade that g must at least have before a command
// starts under p.
//
// Read, write, secrets and process are required Complete (write and secrets
// Partial with Nested), and so is network
// unless it is open, or Partial with an upstream proxy. Limits are required Complete once one of them is set
// other than Time and OutputBytes, which need no help of the kernel. IPC is
// required only as far as Accept names it: naming it is asking for it.
// FullAccess requires nothing.
//
// Accept lowers exactly the guarantee that it names; apart from IPC it raises
// none. An entry that is no grade counts as absent. Under Nothing and for a
// g that is no guarantee the answer is Complete.
func (p Policy) Required(g Guarantee) Grade {
	need := p.builtin(g)
	named, ok := p.Accept[g]
	if !ok || !known(named, grades()) || p.Profile == FullAccess || !p.runs() {
		return need
	}
	if g == IPC {
		return named
	}
	return min(need, named)
}

// runs tells whether anything can run under p at all.
func (p Policy) runs() bool { return p.Profile > Nothing && p.Profile <= FullAccess }

// builtin is Required without Accept.
func (p Policy) builtin(g Guarantee) Grade {
	if p.Profile == FullAccess {
		return None
	}
	if !p.runs() {
		return Complete
	}
	switch g {
	case Write, Secrets:
		if p.Nested {
			return Partial
		}
	case NetworkGuarantee:
		switch {
		case p.Network.Mode == Open:
			return None
		case p.Network.Mode == Gated && p.Network.Upstream != "":
			return Partial
		}
	case IPC:
		return None
	case LimitsGuarantee:
		if !p.Limits.kernel() {
			return None
		}
	}
	return Complete
}
