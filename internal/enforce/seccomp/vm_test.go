package seccomp_test

import (
	"encoding/binary"
	"sync"
	"testing"

	"golang.org/x/net/bpf"

	"github.com/tether-sandbox/tether/internal/enforce/seccomp"
)

// call is what the kernel shows a filter.
type call struct {
	arch, nr uint32
	args     [6]uint64
}

const allow = ^seccomp.Errno(0)

var table = sync.OnceValue(seccomp.Table)

var archs = []string{"amd64", "arm64"}

func audit(arch string) uint32 {
	return map[string]uint32{"amd64": 0xc000003e, "arm64": 0xc00000b7}[arch]
}

// every returns all combinations of options for arch.
func every(arch string) []seccomp.Options {
	var all []seccomp.Options
	for i := range 256 {
		all = append(all, seccomp.Options{Arch: arch, Inet: i&1 != 0, Unix: i&2 != 0,
			NestedUserNS: i&4 != 0, NestedMounts: i&8 != 0, SetGID: i&16 != 0, Namespaced: i&32 != 0, TCP: i&64 != 0, Tell: i&128 != 0})
	}
	return all
}

func compile(t testing.TB, o seccomp.Options) []seccomp.Insn {
	t.Helper()
	prog, err := seccomp.Compile(o)
	if err != nil {
		t.Fatalf("%+v: %v", o, err)
	}
	return prog
}

// machine returns a virtual machine that is not ours, for prog.
func machine(t fataler, prog []seccomp.Insn) *bpf.VM {
	t.Helper()
	raw := make([]bpf.RawInstruction, len(prog))
	for i, in := range prog {
		raw[i] = bpf.RawInstruction{Op: in.Code, Jt: in.Jt, Jf: in.Jf, K: in.K}
	}
	insns, ok := bpf.Disassemble(raw)
	if !ok {
		t.Fatal("the program has instructions that the machine does not know")
	}
	vm, err := bpf.NewVM(insns)
	if err != nil {
		t.Fatal(err)
	}
	return vm
}

// fataler is a test or a property under test.
type fataler interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// run returns the filter's answer to c.
func run(t fataler, vm *bpf.VM, c call) seccomp.Errno {
	t.Helper()
	// The kernel's loads are in native order, the machine's are big-endian.
	b := binary.BigEndian.AppendUint32(nil, c.nr)
	b = binary.BigEndian.AppendUint32(b, c.arch)
	b = binary.BigEndian.AppendUint64(b, 0x1122334455667788) // instruction pointer
	for _, a := range c.args {
		b = binary.BigEndian.AppendUint32(b, uint32(a))
		b = binary.BigEndian.AppendUint32(b, uint32(a>>32))
	}
	got, err := vm.Run(b)
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case got == 0x7fff0000:
		return allow
	case got&^0xffff == 0x50000:
		return seccomp.Errno(got)
	case got == 0x7fc00001:
		return seccomp.Told
	}
	t.Fatalf("got the answer %#x, want allow or an error", got)
	return 0
}

// naive reads the table as a person would: the first rule that applies. It
// returns the rule's index in the table too, or -1.
func naive(o seccomp.Options, c call) (seccomp.Errno, int) {
	if c.arch != audit(o.Arch) || c.nr > seccomp.Ceiling || gap(o.Arch, c.nr) {
		return seccomp.ENOSYS, -1
	}
	for i, r := range table() {
		nr, ok := r.Number(o.Arch)
		if !ok || nr != c.nr || lifted(o, r.Lift) {
			continue
		}
		if holds(r.When, c.args) {
			return untold(o, r.Errno), i
		}
	}
	return allow, -1
}

// untold is what a refusal is under o: one that nobody listens to is none to tell.
func untold(o seccomp.Options, e seccomp.Errno) seccomp.Errno {
	if e == seccomp.Told && !o.Tell {
		return seccomp.EPERM
	}
	return e
}

func gap(arch string, nr uint32) bool {
	if arch == "arm64" && nr >= 244 && nr <= 259 || arch == "arm64" && nr >= 295 && nr <= 423 {
		return true
	}
	return arch == "amd64" && nr >= 337 && nr <= 423
}

func lifted(o seccomp.Options, l seccomp.Lift) bool {
	for _, x := range []struct {
		bit seccomp.Lift
		on  bool
	}{{seccomp.LiftInet, o.Inet}, {seccomp.LiftUnix, o.Unix}, {seccomp.LiftUserNS, o.NestedUserNS}, {seccomp.LiftMounts, o.NestedMounts},
		{seccomp.LiftSetGID, o.SetGID}, {seccomp.LiftNamespaced, o.Namespaced}, {seccomp.LiftTCP, o.TCP || o.Inet}} {
		if l&x.bit != 0 && !x.on {
			return false
		}
	}
	return l != 0
}

func holds(when []seccomp.Cond, args [6]uint64) bool {
	for _, c := range when {
		half := uint32(args[c.Arg])
		if c.High {
			half = uint32(args[c.Arg] >> 32)
		}
		found := false
		for _, v := range c.In {
			found = found || half&c.Mask == v
		}
		if found == c.Not {
			return false
		}
	}
	return true
}
