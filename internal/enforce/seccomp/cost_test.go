package seccomp_test

import (
	"testing"

	"github.com/tether-sandbox/tether/internal/enforce/seccomp"
)

// alwaysAllowed follows prog for a number as the kernel does (since 5.11) when
// it looks for calls that it may let pass from then on without the filter. It
// gives up at any look at an argument. steps counts the instructions.
func alwaysAllowed(prog []seccomp.Insn, arch, nr uint32) (ok bool, steps int) {
	a := uint32(0)
	for pc := 0; ; pc++ {
		steps++
		in := prog[pc]
		hit := false
		switch in.Code {
		case 0x20: // load
			switch in.K {
			case 0:
				a = nr
			case 4:
				a = arch
			default:
				return false, steps
			}
			continue
		case 0x54: // and
			a &= in.K
			continue
		case 0x05: // jump
			pc += int(in.K)
			continue
		case 0x06: // return
			return in.K == 0x7fff0000, steps
		case 0x15:
			hit = a == in.K
		case 0x25:
			hit = a > in.K
		case 0x35:
			hit = a >= in.K
		case 0x45:
			hit = a&in.K != 0
		default:
			return false, steps
		}
		if hit {
			pc += int(in.Jt)
		} else {
			pc += int(in.Jf)
		}
	}
}

// Calls that no rule names cost nothing on a kernel with the cache, and few
// instructions on others.
func TestOrdinaryCallsAreCheap(t *testing.T) {
	const most = 13
	for _, arch := range archs {
		o := seccomp.Options{Arch: arch, Inet: true, Unix: true, SetGID: true, Namespaced: true}
		prog := compile(t, o)
		if len(prog) > 400 {
			t.Errorf("%s: got %d instructions, want at most 400", arch, len(prog))
		}
		looks := map[uint32]bool{} // calls whose arguments matter
		for _, r := range o.Rules() {
			nr, _ := r.Number(arch)
			looks[nr] = true
		}
		cheap := 0
		for nr := uint32(0); nr <= seccomp.Ceiling; nr++ {
			if looks[nr] || gap(arch, nr) {
				continue
			}
			cheap++
			ok, steps := alwaysAllowed(prog, audit(arch), nr)
			if !ok || steps > most {
				t.Errorf("%s number %d: cached %v after %d instructions, want true after at most %d", arch, nr, ok, steps, most)
			}
		}
		if cheap < 200 {
			t.Errorf("%s: got %d ordinary calls, want more: the loop looks at nothing", arch, cheap)
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	for b.Loop() {
		if _, err := seccomp.Compile(seccomp.Options{Arch: "amd64", Inet: true, Unix: true, SetGID: true, Namespaced: true}); err != nil {
			b.Fatal(err)
		}
	}
}
