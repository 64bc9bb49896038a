package landlock

import (
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestDowngrade(t *testing.T) {
	open := Ruleset{AnyFile: true, AnyTCP: true, AnyUDP: true, AnyAbstract: true, AnySignal: true}
	scopes := Ruleset{AnyFile: true, AnyTCP: true, AnyUDP: true}
	for _, c := range []struct {
		abi    int
		r      Ruleset
		want   string
		remain walls
	}{
		{-1, Ruleset{}, "udp abstract signal tcp files", walls{}},
		{0, Ruleset{}, "udp abstract signal tcp files", walls{}},
		{1, Ruleset{}, "udp abstract signal tcp socket ioctl truncate refer", walls{fs: 0x1fff}},
		{2, Ruleset{}, "udp abstract signal tcp socket ioctl truncate", walls{fs: 0x3fff}},
		{3, Ruleset{}, "udp abstract signal tcp socket ioctl", walls{fs: 0x7fff}},
		{4, Ruleset{}, "udp abstract signal socket ioctl", walls{fs: 0x7fff, net: 3}},
		{5, Ruleset{}, "udp abstract signal socket", walls{fs: 0xffff, net: 3}},
		{6, Ruleset{}, "udp socket", walls{0xffff, 3, 3}},
		{7, Ruleset{}, "udp socket", walls{0xffff, 3, 3}},
		{8, Ruleset{}, "udp socket", walls{0xffff, 3, 3}},
		{8, Ruleset{AnySocket: true}, "udp", walls{0xffff, 3, 3}},
		{8, Ruleset{AnyUDP: true}, "socket", walls{0xffff, 3, 3}},
		{9, Ruleset{}, "udp", walls{0x1ffff, 3, 3}},
		{9, Ruleset{AnySocket: true, AnyUDP: true}, "", walls{0xffff, 3, 3}},
		{10, Ruleset{}, "", walls{0x1ffff, 15, 3}},
		{10, Ruleset{AnyTCP: true}, "", walls{0x1ffff, 12, 3}},
		{1000, Ruleset{}, "", walls{0x1ffff, 15, 3}},
		{0, scopes, "abstract signal", walls{}},
		{5, scopes, "abstract signal", walls{}},
		{6, scopes, "", walls{scoped: 3}},
		{5, Ruleset{AnyFile: true, AnyTCP: true, AnyUDP: true, AnySignal: true}, "abstract", walls{}},
		{6, Ruleset{AnyFile: true, AnyTCP: true, AnyUDP: true, AnySignal: true}, "", walls{scoped: 1}},
		{3, Ruleset{AnyFile: true, AnyUDP: true, AnyAbstract: true, AnySignal: true}, "tcp", walls{}},
		{0, open, "", walls{}},
		{7, open, "", walls{}},
	} {
		got, missing := c.r.Downgrade(c.abi)
		var words []string
		for _, m := range missing {
			words = append(words, m.What)
			if m.ABI <= c.abi || m.Effect == "" || !strings.Contains(m.String(), m.Kernel) {
				t.Errorf("ABI %d: odd entry %+v", c.abi, m)
			}
			if m.Stricter != (m.What == "refer") {
				t.Errorf("%s: got stricter %v", m.What, m.Stricter)
			}
		}
		if have := strings.Join(words, " "); have != c.want {
			t.Errorf("ABI %d of %+v: got missing %q, want %q", c.abi, c.r, have, c.want)
		}
		if have := got.walls(); have != c.remain {
			t.Errorf("ABI %d of %+v: got walls %+v, want %+v", c.abi, c.r, have, c.remain)
		}
	}
}

// supported is what the kernel's documentation lists for each ABI, written
// down a second time.
func supported(abi int) walls {
	var w walls
	for _, f := range []struct {
		abi int
		walls
	}{{1, walls{fs: 1<<13 - 1}}, {2, walls{fs: 1 << 13}}, {3, walls{fs: 1 << 14}}, {4, walls{net: 3}}, {5, walls{fs: 1 << 15}}, {6, walls{scoped: 3}},
		{9, walls{fs: 1 << 16}}, {10, walls{net: 12}}} {
		if abi >= f.abi {
			w.fs, w.net, w.scoped = w.fs|f.fs, w.net|f.net, w.scoped|f.scoped
		}
	}
	return w
}

// The laws: what is left is exactly what was asked for and is supported;
// nothing is taken away without being named; a second time changes nothing;
// and no rule opens a right that is not walled, which the kernel would refuse.
func TestDowngradeLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		flag := func(name string) bool { return rapid.Bool().Draw(t, name) }
		paths := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Path { return Path{FD: rapid.IntRange(3, 9).Draw(t, "fd")} }), 0, 4)
		r := Ruleset{AnyFile: flag("file"), AnyTCP: flag("tcp"), AnyAbstract: flag("abstract"), AnySignal: flag("signal"),
			AnySocket: flag("socket"), AnyUDP: flag("udp"),
			Read: paths.Draw(t, "read"), Exec: paths.Draw(t, "exec"), Write: paths.Draw(t, "write"), Device: paths.Draw(t, "device"),
			Bind: rapid.SliceOf(rapid.Uint16()).Draw(t, "bind"), Connect: rapid.SliceOf(rapid.Uint16()).Draw(t, "connect")}
		abi := rapid.IntRange(-1, 12).Draw(t, "abi")
		before, can := r.walls(), supported(abi)
		left, missing := r.Downgrade(abi)
		got, want := left.walls(), walls{before.fs & can.fs, before.net & can.net, before.scoped & can.scoped}
		if got != want {
			t.Fatalf("got walls %+v, want %+v", got, want)
		}
		if (got == before) != (len(missing) == 0) {
			t.Fatalf("walls changed from %+v to %+v, missing %v", before, got, missing)
		}
		again, more := left.Downgrade(abi)
		if len(more) != 0 || !reflect.DeepEqual(again, left) {
			t.Fatalf("a second time: got %v and %+v, want nothing new", more, again)
		}
		if left.Empty() != (got == walls{}) {
			t.Fatalf("empty: got %v with walls %+v", left.Empty(), got)
		}
		seen := map[int]bool{}
		for _, o := range left.openings() {
			if o.access&^got.fs != 0 || seen[o.path.FD] {
				t.Fatalf("opening %+v is not walled by %+v, or comes twice", o, got)
			}
			seen[o.path.FD] = true
		}
		for _, p := range left.ports() {
			if p.access&^got.net != 0 {
				t.Fatalf("port %+v is not walled by %+v", p, got)
			}
		}
	})
}

func TestNothingOpensDeviceFiles(t *testing.T) {
	r := Ruleset{Read: []Path{{FD: 3}}, Exec: []Path{{FD: 3}}, Write: []Path{{FD: 3}}, Device: []Path{{FD: 3}}}
	o := r.openings()
	if len(o) != 1 || o[0].access != fsAll&^(fsMakeChar|fsMakeBlock|fsResolveUnix) {
		t.Errorf("got %+v, want one opening of all but making device files and reaching sockets", o)
	}
}

func TestString(t *testing.T) {
	got := Ruleset{Read: []Path{{3, "/usr"}}, Write: []Path{{4, "/w"}}, Connect: []uint16{443}, AnySignal: true}.String()
	want := `files: none but
  read   /usr
  write  /w
tcp: bind [], connect [443]
udp: refused
sockets with a path outside: refused
abstract sockets outside: refused
signals to outside: open
`
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := (Ruleset{AnyFile: true, AnyTCP: true}).String(); !strings.HasPrefix(got, "files: any\ntcp: any\n") {
		t.Errorf("got %q", got)
	}
}
