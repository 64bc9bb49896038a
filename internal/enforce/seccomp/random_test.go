package seccomp_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tether-sandbox/tether/internal/enforce/seccomp"
)

// Any table, not only ours, compiles to a program that answers as the table
// does: with many rules for one call, and with conditions that share what is
// loaded.
func TestAnyTableCompiles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		few := rapid.Uint32Range(0, 3)
		cond := rapid.Custom(func(t *rapid.T) seccomp.Cond {
			return seccomp.Cond{Arg: uint8(rapid.IntRange(0, 1).Draw(t, "arg")), High: rapid.Bool().Draw(t, "high"),
				Mask: rapid.SampledFrom([]uint32{1, 3, ^uint32(0)}).Draw(t, "mask"),
				Not:  rapid.Bool().Draw(t, "not"), In: rapid.SliceOfN(few, 1, 4).Draw(t, "in")}
		})
		numbers := rapid.IntRange(1, 60).Draw(t, "numbers")
		var rules []seccomp.Rule
		for range rapid.IntRange(1, 120).Draw(t, "rules") {
			nr := 2 * rapid.IntRange(0, numbers).Draw(t, "number")
			rules = append(rules, seccomp.Rule{Call: fmt.Sprint(nr), AMD64: nr, ARM64: nr,
				Errno: seccomp.Errno(rapid.IntRange(1, 200).Draw(t, "errno")),
				When:  rapid.SliceOfN(cond, 0, 3).Draw(t, "when")})
		}
		arch := rapid.SampledFrom(archs).Draw(t, "arch")
		prog, err := seccomp.CompileRulesForTest(arch, slices.Clone(rules))
		if err != nil {
			t.Fatal(err)
		}
		vm := machine(t, prog)
		for range 30 {
			c := call{arch: audit(arch), nr: uint32(rapid.IntRange(0, 2*numbers+2).Draw(t, "nr"))}
			for i := range 2 {
				c.args[i] = uint64(few.Draw(t, "low")) | uint64(few.Draw(t, "high"))<<32
			}
			want := allow
			for _, r := range rules {
				if uint32(r.AMD64) == c.nr && holds(r.When, c.args) {
					want = r.Errno
					break
				}
			}
			if got := run(t, vm, c); got != want {
				t.Fatalf("%+v: got %v, want %v", c, got, want)
			}
		}
	})
}

// Where half of the search is longer than a condition can jump over, an
// unconditional jump takes its place.
func TestFarJumps(t *testing.T) {
	var rules []seccomp.Rule
	for nr := range 150 {
		rules = append(rules, seccomp.Rule{Call: fmt.Sprint(nr), AMD64: nr, Errno: seccomp.Errno(1 + nr%3),
			When: []seccomp.Cond{{Mask: 7, In: []uint32{1, 2, 4}}, {Arg: 1, Mask: 1, Not: true, In: []uint32{1}}}})
	}
	prog, err := seccomp.CompileRulesForTest("amd64", slices.Clone(rules))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(prog, func(i seccomp.Insn) bool { return i.Code == 0x05 }) {
		t.Fatalf("got no far jump in %d instructions", len(prog))
	}
	vm := machine(t, prog)
	for nr := range uint32(152) {
		for _, low := range []uint64{0, 2} {
			want := allow
			if nr < 150 && low == 2 {
				want = rules[nr].Errno
			}
			if got := run(t, vm, call{arch: audit("amd64"), nr: nr, args: [6]uint64{low}}); got != want {
				t.Errorf("number %d argument %d: got %v, want %v", nr, low, got, want)
			}
		}
	}
}

func TestBadTablesAreRefused(t *testing.T) {
	at := func(call string, nr int, when ...seccomp.Cond) seccomp.Rule {
		return seccomp.Rule{Call: call, AMD64: nr, ARM64: nr, Errno: seccomp.EPERM, When: when}
	}
	var many []uint32
	for i := range uint32(300) {
		many = append(many, i)
	}
	for name, rules := range map[string][]seccomp.Rule{
		"two calls with one number":    {at("a", 7), at("b", 7)},
		"a number in a gap":            {at("a", 400)},
		"a number above the ceiling":   {at("a", seccomp.Ceiling+1)},
		"a condition without values":   {at("a", 7, seccomp.Cond{})},
		"a seventh argument":           {at("a", 7, seccomp.Cond{Arg: 6, In: []uint32{1}})},
		"a rule too long to jump":      {at("a", 7, seccomp.Cond{Not: true, Mask: 1, In: many})},
		"a condition too long to jump": {at("a", 7, seccomp.Cond{Mask: 1, In: many})},
	} {
		if prog, err := seccomp.CompileRulesForTest("amd64", rules); err == nil {
			t.Errorf("%s: got %d instructions, want an error", name, len(prog))
		}
	}
}
