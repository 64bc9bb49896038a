package seccomp_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/net/bpf"
	"pgregory.net/rapid"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/enforce/seccomp"
)

var update = flag.Bool("update", false, "write the golden files anew")

// A change of the filter must be seen as one.
func TestGolden(t *testing.T) {
	for _, arch := range archs {
		for name, o := range map[string]seccomp.Options{
			"strict": {Arch: arch},
			"usual":  {Arch: arch, Inet: true, Unix: true, SetGID: true, Namespaced: true, Tell: true},
			"walls":  {Arch: arch, SetGID: true},
			"client": {Arch: arch, SetGID: true, TCP: true},
			"nested": {Arch: arch, Inet: true, Unix: true, SetGID: true, Namespaced: true, NestedUserNS: true, NestedMounts: true},
		} {
			file := filepath.Join("testdata", arch+"-"+name+".golden")
			got := ""
			for _, r := range o.Rules() {
				got += r.String() + "\n"
			}
			got += "\n" + seccomp.Disassemble(compile(t, o))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("%s differs from what is compiled; look at it, then run go test -update", file)
			}
		}
	}
}

func TestUnknownArchitectureIsRefused(t *testing.T) {
	for _, arch := range []string{"", "riscv64", "386", "AMD64"} {
		prog, err := seccomp.Compile(seccomp.Options{Arch: arch})
		if got := fault.CodeOf(err); got != fault.SandboxUnavailable || prog != nil {
			t.Errorf("%q: got %d instructions and code %q, want none and %s", arch, len(prog), got, fault.SandboxUnavailable)
		}
	}
}

// The law: the compiled program answers as the table read aloud.
func TestProgramIsTheTable(t *testing.T) { rapid.Check(t, programIsTheTable(t)) }

func FuzzProgramIsTheTable(f *testing.F) { f.Fuzz(rapid.MakeFuzz(programIsTheTable(f))) }

func programIsTheTable(tb testing.TB) func(*rapid.T) {
	type filter struct {
		o  seccomp.Options
		vm *bpf.VM
	}
	var all []filter
	for _, arch := range archs {
		for _, o := range every(arch) {
			all = append(all, filter{o, machine(tb, compile(tb, o))})
		}
	}
	interesting := values()
	return func(t *rapid.T) {
		f := rapid.SampledFrom(all).Draw(t, "options")
		for range 20 {
			c := drawCall(t, f.o.Arch, interesting)
			want, _ := naive(f.o, c)
			if got := run(t, f.vm, c); got != want {
				t.Fatalf("%+v %+v: got %v, want %v", f.o, c, got, want)
			}
		}
	}
}

// Every number, with arguments that meet no condition and with all bits set.
func TestEveryNumber(t *testing.T) {
	for _, arch := range archs {
		for _, o := range every(arch) {
			vm := machine(t, compile(t, o))
			for nr := uint32(0); nr < 600; nr++ {
				for _, a := range []uint64{0, 1, 2, ^uint64(0)} {
					c := call{audit(arch), nr, [6]uint64{a, a, a, a, a, a}}
					want, _ := naive(o, c)
					if got := run(t, vm, c); got != want {
						t.Fatalf("%+v number %d argument %#x: got %v, want %v", o, nr, a, got, want)
					}
				}
			}
		}
	}
}

// No line of the table is dead: something exists that only it refuses.
func TestEveryLineIsReached(t *testing.T) {
	for _, arch := range archs {
		vms := map[seccomp.Options]func(call) seccomp.Errno{}
		for _, o := range every(arch) {
			vm := machine(t, compile(t, o))
			vms[o] = func(c call) seccomp.Errno { return run(t, vm, c) }
		}
		for i, r := range table() {
			if _, ok := r.Number(arch); !ok {
				continue
			}
			o, c, ok := reach(arch, i)
			if !ok {
				t.Errorf("%s: line %d is never reached: %s", arch, i, r)
				continue
			}
			if got, want := vms[o](c), untold(o, r.Errno); got != want {
				t.Errorf("%s: line %d: %s: %+v: got %v, want %v", arch, i, r, c, got, want)
			}
		}
	}
}

// reach finds options and a call that line i of the table refuses.
func reach(arch string, i int) (seccomp.Options, call, bool) {
	nr, _ := table()[i].Number(arch)
	tries := [4][]uint64{{0}, {0}, {0}, {0}}
	for _, r := range table() {
		if n, ok := r.Number(arch); !ok || n != nr {
			continue
		}
		for _, c := range r.When {
			for _, v := range append([]uint32{99, c.Mask & -c.Mask}, c.In...) {
				v := uint64(v)
				if c.High {
					v <<= 32
				}
				if !slices.Contains(tries[c.Arg], v) {
					tries[c.Arg] = append(tries[c.Arg], v)
				}
			}
		}
	}
	for _, o := range []seccomp.Options{{Arch: arch}, {Arch: arch, TCP: true}, {Arch: arch, Inet: true, Unix: true, SetGID: true, Namespaced: true}} {
		for _, a := range tries[0] {
			for _, b := range tries[1] {
				for _, d := range tries[2] {
					for _, e := range tries[3] {
						c := call{arch: audit(arch), nr: nr, args: [6]uint64{a, b, d, e}}
						if _, line := naive(o, c); line == i {
							return o, c, true
						}
					}
				}
			}
		}
	}
	return seccomp.Options{}, call{}, false
}

// Each option only ever opens: a wider one refuses nothing more.
func TestOptionsOnlyOpen(t *testing.T) {
	interesting := values()
	rapid.Check(t, func(t *rapid.T) {
		arch := rapid.SampledFrom(archs).Draw(t, "arch")
		o := rapid.SampledFrom(every(arch)).Draw(t, "options")
		wider := o
		switch rapid.IntRange(0, 4).Draw(t, "widen") {
		case 0:
			wider.Inet = true
		case 1:
			wider.Unix = true
		case 2:
			wider.NestedUserNS = true
		case 3:
			wider.NestedMounts = true
		case 4:
			wider.TCP = true
		}
		c := drawCall(t, arch, interesting)
		narrow, _ := naive(o, c)
		wide, _ := naive(wider, c)
		if narrow == allow && wide != allow {
			t.Fatalf("%+v lets %+v pass, the wider %+v refuses it with %v", o, c, wider, wide)
		}
	})
}

func TestDoors(t *testing.T) {
	usual := func(arch string) seccomp.Options {
		return seccomp.Options{Arch: arch, Inet: true, Unix: true, SetGID: true, Namespaced: true}
	}
	for _, c := range []struct {
		name string
		call call
		want seccomp.Errno
	}{
		{"i386 getpid", call{arch: 0x40000003, nr: 20}, seccomp.ENOSYS},
		{"32-bit ARM getpid", call{arch: 0x40000028, nr: 20}, seccomp.ENOSYS},
		{"x32 getpid", call{arch: audit("amd64"), nr: 1<<30 | 39}, seccomp.ENOSYS},
		{"x32 mount", call{arch: audit("amd64"), nr: 1<<30 | 165}, seccomp.ENOSYS},
		{"number -1", call{arch: audit("amd64"), nr: ^uint32(0)}, seccomp.ENOSYS},
		{"ceiling", call{arch: audit("amd64"), nr: seccomp.Ceiling}, allow},
		{"above it", call{arch: audit("amd64"), nr: seccomp.Ceiling + 1}, seccomp.ENOSYS},
		{"uretprobe", call{arch: audit("amd64"), nr: 335}, allow},
		{"uprobe", call{arch: audit("amd64"), nr: 336}, allow},
		{"gap", call{arch: audit("amd64"), nr: 337}, seccomp.ENOSYS},
		{"gap's end", call{arch: audit("amd64"), nr: 423}, seccomp.ENOSYS},
		{"pidfd_send_signal", call{arch: audit("amd64"), nr: 424}, allow},
		{"TIOCSTI", ioctl(0x5412), seccomp.EPERM},
		{"TIOCSTI, high bits", ioctl(0x5412 | 1<<32), seccomp.EPERM},
		{"TIOCLINUX, high bits", ioctl(0x541c | 0xfff<<40), seccomp.EPERM},
		{"TIOCSETD", ioctl(0x5423), seccomp.EPERM},
		{"TIOCGWINSZ", ioctl(0x5413), allow},
		{"BTRFS_IOC_SNAP_CREATE", ioctl(0x50009401), seccomp.EPERM},
		{"BTRFS_IOC_SNAP_CREATE_V2", ioctl(0x50009417), seccomp.EPERM},
		{"BTRFS_IOC_SNAP_CREATE_V2, high bits", ioctl(0x50009417 | 1<<32), seccomp.EPERM},
		{"BTRFS_IOC_SUBVOL_CREATE", ioctl(0x5000940e), seccomp.EPERM},
		{"BTRFS_IOC_SUBVOL_CREATE_V2", ioctl(0x50009418), seccomp.EPERM},
		{"BTRFS_IOC_SNAP_DESTROY_V2", ioctl(0x5000943f), seccomp.EPERM},
		{"BCH_IOCTL_SUBVOLUME_CREATE", ioctl(0x4020bc10), seccomp.EPERM},
		{"OCFS2_IOC_REFLINK", ioctl(0x40186f04), seccomp.EPERM},
		{"FICLONE", ioctl(0x40049409), allow},
		{"FICLONERANGE", ioctl(0x4020940d), allow},
		{"FIDEDUPERANGE", ioctl(0xc0189436), allow},
		{"FS_IOC_GETFSLABEL", ioctl(0x81009431), allow},
		{"FS_IOC_GETFLAGS", ioctl(0x80086601), allow},
		{"TIOCSTI in the high half alone", ioctl(0x5412 << 32), allow},
		{"fork", call{arch: audit("amd64"), nr: 56, args: [6]uint64{0x1200011}}, allow},
		{"thread", call{arch: audit("amd64"), nr: 56, args: [6]uint64{0x3d0f00}}, allow},
		{"clone CLONE_NEWUSER", call{arch: audit("amd64"), nr: 56, args: [6]uint64{0x10000011}}, seccomp.EPERM},
		{"unshare nothing", call{arch: audit("amd64"), nr: 272, args: [6]uint64{0x600}}, allow},
		{"unshare a flag that implies a mount namespace", call{arch: audit("amd64"), nr: 272, args: [6]uint64{0x100000}}, seccomp.EPERM},
		{"unshare a flag from the future", call{arch: audit("amd64"), nr: 272, args: [6]uint64{1 << 37}}, seccomp.EINVAL},
		{"personality query", call{arch: audit("amd64"), nr: 135, args: [6]uint64{0xffffffff}}, allow},
		{"personality query, sign extended", call{arch: audit("amd64"), nr: 135, args: [6]uint64{^uint64(0)}}, allow},
		{"personality of gdb", call{arch: audit("amd64"), nr: 135, args: [6]uint64{0x40000}}, allow},
		{"personality READ_IMPLIES_EXEC", call{arch: audit("amd64"), nr: 135, args: [6]uint64{0x400000}}, seccomp.EPERM},
		{"vsock", socket(40, 1, 0), seccomp.EAFNOSUPPORT},
		{"vsock, high bits", socket(40|1<<32, 1, 0), seccomp.EAFNOSUPPORT},
		{"tcp", socket(2, 1|0x80800, 6), allow},
		{"tcp6", socket(10, 1, 0), allow},
		{"ping", socket(2, 2, 1), allow},
		{"raw", socket(2, 3|0x80000, 1), seccomp.EPERM},
		{"the old packet type", socket(2, 10, 3), seccomp.EPERM},
		{"sctp by type alone", socket(2, 5, 0), seccomp.ESOCKTNOSUPPORT},
		{"mptcp", socket(2, 1, 262), seccomp.EPROTONOSUPPORT},
		{"netlink route", socket(16, 3|0x80000, 0), allow},
		{"netlink audit", socket(16, 3, 9), seccomp.EPROTONOSUPPORT},
		{"mknod null", mknod(0o20666), seccomp.EPERM},
		{"mknod disk", mknod(0o60666), seccomp.EPERM},
		{"mknod disk, bits that the kernel drops", mknod(0xffff0000 | 0o60666), seccomp.EPERM},
		{"mknod pipe", mknod(0o10666), allow},
		{"mknod socket", mknod(0o140666), allow},
		{"mknod file", mknod(0o100666), allow},
		{"mknod file without type", mknod(0o666), allow},
	} {
		vm := machine(t, compile(t, usual("amd64")))
		if got := run(t, vm, c.call); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

func ioctl(request uint64) call {
	return call{arch: audit("amd64"), nr: 16, args: [6]uint64{0, request, 0}}
}
func socket(family, typ, proto uint64) call {
	return call{arch: audit("amd64"), nr: 41, args: [6]uint64{family, typ, proto}}
}
func mknod(mode uint64) call {
	return call{arch: audit("amd64"), nr: 259, args: [6]uint64{0, 0, mode, 0x103}}
}

// values returns numbers that the table compares with, and their neighbours.
func values() []uint64 {
	out := []uint64{0, 1, 1 << 31, 1 << 32, ^uint64(0)}
	for _, r := range table() {
		for _, c := range r.When {
			for _, v := range append([]uint32{c.Mask, c.Mask & -c.Mask}, c.In...) {
				for _, w := range []uint32{v - 1, v, v + 1} {
					out = append(out, uint64(w), uint64(w)<<32)
				}
			}
		}
	}
	return out
}

func drawCall(t *rapid.T, arch string, interesting []uint64) call {
	table := table()
	number := rapid.OneOf(
		rapid.Uint32Range(0, 600), rapid.Uint32(),
		rapid.Custom(func(t *rapid.T) uint32 {
			nr, _ := table[rapid.IntRange(0, len(table)-1).Draw(t, "line")].Number(arch)
			return nr
		}))
	argument := rapid.Custom(func(t *rapid.T) uint64 {
		one := rapid.OneOf(rapid.SampledFrom(interesting), rapid.Uint64(), rapid.Uint64Range(0, 20))
		return one.Draw(t, "a") ^ rapid.OneOf(rapid.Just(uint64(0)), one).Draw(t, "b")
	})
	c := call{arch: audit(arch), nr: number.Draw(t, "number")}
	if rapid.IntRange(0, 20).Draw(t, "foreign") == 0 {
		c.arch = rapid.OneOf(rapid.Uint32(), rapid.SampledFrom([]uint32{0x40000003, 0x40000028, 0xc000003e, 0xc00000b7})).Draw(t, "arch")
	}
	for i := range c.args {
		c.args[i] = argument.Draw(t, "argument")
	}
	return c
}
