package seccomp

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tether-sandbox/tether/fault"
)

// Classic BPF, and the layout of the data that the kernel shows a filter.
const (
	opLoad   = 0x20 // A = the word at K
	opAnd    = 0x54 // A &= K
	opJump   = 0x05 // skip K
	opIfEq   = 0x15 // A == K
	opIfGE   = 0x35 // A >= K
	opReturn = 0x06

	dataNumber = 0
	dataArch   = 4
	dataArgs   = 16

	retAllow = 0x7fff0000
	retErrno = 0x00050000
	// retTell blocks the caller until a listener answers, or fails with ENOSYS
	// where there is none. The kernel has no use for the lower half; we keep the
	// error there.
	retTell = 0x7fc00000

	// maxLen is the kernel's limit on a program (BPF_MAXINSNS).
	maxLen = 4096
)

// auditArch returns the value by which the kernel names arch to a filter.
func auditArch(arch string) (uint32, bool) {
	switch arch {
	case "amd64":
		return 0xc000003e, true
	case "arm64":
		return 0xc00000b7, true
	}
	return 0, false
}

// Compile turns the rules in force under o into a filter. It is a pure
// function: the same options give the same program on every system.
//
// The error is SANDBOX_UNAVAILABLE for an architecture that the table does not
// cover, and INTERNAL for a table that contradicts itself.
func Compile(o Options) ([]Insn, error) {
	if _, ok := auditArch(o.Arch); !ok {
		return nil, fault.New(fault.SandboxUnavailable, fmt.Sprintf("no system call filter for architecture %q", o.Arch))
	}
	prog, err := compile(o.Arch, o.Rules())
	if err != nil {
		return nil, fault.Wrap(fault.Internal, "system call filter", err)
	}
	return prog, nil
}

// compile takes the rules in the order in which those for one call are tried.
func compile(arch string, rules []Rule) ([]Insn, error) {
	spans, err := split(arch, rules)
	if err != nil {
		return nil, err
	}
	audit, _ := auditArch(arch)
	e := emitter{code: make([]Insn, 0, 512)}
	e.code = append(e.code,
		Insn{Code: opLoad, K: dataArch},
		Insn{Code: opIfEq, Jt: 1, K: audit},
		refuse(ENOSYS), // i386 and 32-bit ARM have other numbers for everything
		Insn{Code: opLoad, K: dataNumber})
	if err := e.search(spans); err != nil {
		return nil, err
	}
	if len(e.code) > maxLen {
		return nil, fmt.Errorf("%d instructions, more than the kernel's %d", len(e.code), maxLen)
	}
	return e.code, nil
}

// span is what happens from number first up to the next span.
type span struct {
	first uint32
	// rules are tried in order; without any the call passes.
	rules []Rule
}

// sameAs reports whether two neighbours can be one: both pass, or both refuse
// everything with the same error.
func (s span) sameAs(t span) bool {
	if len(s.rules) == 0 || len(t.rules) == 0 {
		return len(s.rules) == len(t.rules)
	}
	a, b := s.rules[0], t.rules[0]
	return len(a.When) == 0 && len(b.When) == 0 && a.Errno == b.Errno
}

// split cuts all numbers into spans, in order and without holes.
func split(arch string, rules []Rule) ([]span, error) {
	var at [Ceiling + 1][]Rule
	for _, r := range rules {
		nr, ok := r.Number(arch)
		switch {
		case !ok:
			continue
		case nr > Ceiling:
			return nil, fmt.Errorf("%s: number %d is above the ceiling", r.Call, nr)
		case len(at[nr]) > 0 && at[nr][0].Call != r.Call:
			return nil, fmt.Errorf("%s and %s share the number %d", at[nr][0].Call, r.Call, nr)
		}
		at[nr] = append(at[nr], r)
	}
	unknown := []Rule{{Call: "unknown", Errno: ENOSYS}}
	for _, g := range reserved(arch) {
		for nr := g[0]; nr <= g[1]; nr++ {
			if len(at[nr]) > 0 {
				return nil, fmt.Errorf("%s: number %d lies in a gap", at[nr][0].Call, nr)
			}
			at[nr] = unknown
		}
	}
	spans := make([]span, 0, 2*len(rules))
	for nr, r := range at {
		if s := (span{uint32(nr), r}); nr == 0 || !spans[len(spans)-1].sameAs(s) {
			spans = append(spans, s)
		}
	}
	return append(spans, span{Ceiling + 1, unknown}), nil
}

var (
	errFar  = errors.New("a rule is too long to jump over")
	errCond = errors.New("a condition without values, or on an argument that does not exist")
)

// search emits a binary search over spans; A holds the number. It uses only
// what the kernel's cache of always allowed calls understands.
func (e *emitter) search(spans []span) error {
	if len(spans) == 1 {
		return e.decide(spans[0].rules)
	}
	mid := len(spans) / 2
	at := len(e.code)
	e.code = append(e.code, Insn{Code: opIfGE, K: spans[mid].first})
	if err := e.search(spans[:mid]); err != nil {
		return err
	}
	if over := len(e.code) - at - 1; over <= 255 {
		e.code[at].Jt = uint8(over)
	} else { // too far for a condition
		e.code[at].Jf = 1
		e.code = slices.Insert(e.code, at+1, Insn{Code: opJump, K: uint32(over)})
	}
	return e.search(spans[mid:])
}

// decide emits the end of the search: the rules for one number.
func (e *emitter) decide(rules []Rule) error {
	e.a = loaded{}
	for _, r := range rules {
		if len(r.When) == 0 {
			e.code = append(e.code, refuse(r.Errno))
			return nil // whatever follows cannot be reached
		}
		if err := e.rule(r); err != nil {
			return fmt.Errorf("%s: %w", r.Call, err)
		}
	}
	e.code = append(e.code, Insn{Code: opReturn, K: retAllow})
	return nil
}

func refuse(e Errno) Insn {
	if e == Told {
		return Insn{Code: opReturn, K: retTell | uint32(EPERM)}
	}
	return Insn{Code: opReturn, K: retErrno | uint32(e)}
}

// tells says whether prog has something to tell a listener.
func tells(prog []Insn) bool { return slices.ContainsFunc(prog, Insn.tells) }

func (i Insn) tells() bool { return i.Code == opReturn && i.K&0xffff0000 == retTell }

// untold returns prog with the same refusals, of which it tells nobody.
func untold(prog []Insn) []Insn {
	plain := slices.Clone(prog)
	for i := range plain {
		if plain[i].tells() {
			plain[i].K = retErrno | plain[i].K&0xffff
		}
	}
	return plain
}

// loaded is what A holds; the zero value is something else than an argument.
type loaded struct{ offset, mask uint32 }

type emitter struct {
	code []Insn
	a    loaded
}

// rule emits one rule with conditions; control reaches the end of the code
// when one of them does not hold.
func (e *emitter) rule(r Rule) error {
	type exit struct {
		at      int
		onEqual bool
	}
	var exits []exit
	mixed := false
	for i, c := range r.When {
		if len(c.In) == 0 || c.Arg > 5 {
			return errCond
		}
		before := e.a
		e.load(c)
		mixed = mixed || i > 0 && e.a != before
		for j, v := range c.In {
			left := len(c.In) - 1 - j
			if left > 255 {
				return errFar
			}
			if !c.Not && left > 0 {
				e.code = append(e.code, Insn{Code: opIfEq, Jt: uint8(left), K: v})
				continue
			}
			exits = append(exits, exit{len(e.code), c.Not})
			e.code = append(e.code, Insn{Code: opIfEq, K: v})
		}
	}
	e.code = append(e.code, refuse(r.Errno))
	for _, x := range exits {
		far := len(e.code) - x.at - 1
		if far > 255 {
			return errFar
		}
		if x.onEqual {
			e.code[x.at].Jt = uint8(far)
		} else {
			e.code[x.at].Jf = uint8(far)
		}
	}
	if mixed {
		e.a = loaded{} // depends on which condition failed
	}
	return nil
}

// load brings the masked half that c looks at into A, unless it is there.
func (e *emitter) load(c Cond) {
	// Both architectures are little-endian: the lower half comes first.
	want := loaded{dataArgs + 8*uint32(c.Arg), c.Mask}
	if c.High {
		want.offset += 4
	}
	if e.a == want {
		return
	}
	e.a = want
	e.code = append(e.code, Insn{Code: opLoad, K: want.offset})
	if c.Mask != allBits {
		e.code = append(e.code, Insn{Code: opAnd, K: c.Mask})
	}
}
