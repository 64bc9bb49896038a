package enforce_test

import (
	"bytes"
	"encoding/binary"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/enforce/enforcetest"
	"github.com/tether-sandbox/tether/internal/enforce/seccomp"
)

func stepsOf(t *rapid.T) []enforce.Step {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) enforce.Step {
		s := enforce.Step{
			Do:    enforce.Verb(rapid.Uint8().Draw(t, "do")),
			Flags: enforce.Flags(rapid.Uint16().Draw(t, "flags")),
			Dst:   rapid.String().Draw(t, "dst"), Src: string(rapid.SliceOf(rapid.Byte()).Draw(t, "src")),
			Dev: rapid.Uint64().Draw(t, "dev"), Ino: rapid.Uint64().Draw(t, "ino"),
			Tree: rapid.Uint32().Draw(t, "tree"), Mode: rapid.Uint32().Draw(t, "mode"),
			Size: rapid.Int64().Draw(t, "size"), MTime: rapid.Int64().Draw(t, "mtime"),
		}
		// No content and empty content are the same file.
		if c := rapid.SliceOf(rapid.Byte()).Draw(t, "content"); len(c) > 0 {
			s.Content = c
		}
		return s
	}), 0, 5).Draw(t, "steps")
}

func orderOf(t *rapid.T) *enforce.Order {
	strs := func(name string) []string {
		if l := rapid.SliceOfN(rapid.String(), 0, 4).Draw(t, name); len(l) > 0 {
			return l
		}
		return nil
	}
	flag := func(name string) bool { return rapid.Bool().Draw(t, name) }
	o := &enforce.Order{
		Build: flag("build"), Bare: flag("bare"), Loopback: flag("loopback"), Terminal: flag("terminal"),
		ScopeAbstract: flag("abstract"), ScopeSignal: flag("signal"), WallFiles: flag("wall files"), WallSockets: flag("wall sockets"),
		Argv: strs("argv"), Env: strs("env"), Dir: rapid.String().Draw(t, "dir"),
		Limits: enforce.Limits{Processes: rapid.Int64().Draw(t, "processes"), FileBytes: rapid.Int64().Draw(t, "file bytes"),
			OpenFiles: rapid.Int64().Draw(t, "open files"), CPUSeconds: rapid.Int64().Draw(t, "cpu"), ScratchBytes: rapid.Int64().Draw(t, "scratch"),
			CountCPU: flag("count cpu"), UserProcesses: rapid.Int64().Draw(t, "user's processes")},
	}
	if s := stepsOf(t); len(s) > 0 {
		o.Steps = s
	}
	if flag("gated") {
		ports := func(name string) []uint16 {
			if l := rapid.SliceOfN(rapid.Uint16(), 0, 4).Draw(t, name); len(l) > 0 {
				return l
			}
			return nil
		}
		o.Gate = &enforce.GateOrder{Ports: ports("ports"), Local: ports("local"), Env: strs("gate env")}
	}
	if flag("walls") {
		o.Walls = &enforce.WallsOrder{Change: flag("change"), UID: rapid.Uint32().Draw(t, "uid"), GID: rapid.Uint32().Draw(t, "gid"),
			Closed: rapid.String().Draw(t, "closed"), AnyTCP: flag("tcp"), Gate: rapid.Uint16().Draw(t, "gate port")}
	}
	for range rapid.IntRange(0, 4).Draw(t, "filter") {
		o.Filter = append(o.Filter, seccomp.Insn{Code: rapid.Uint16().Draw(t, "code"), Jt: rapid.Uint8().Draw(t, "jt"),
			Jf: rapid.Uint8().Draw(t, "jf"), K: rapid.Uint32().Draw(t, "k")})
	}
	return o
}

// TestOrderRoundTrip holds the inner stage to reading exactly what it was told,
// and nothing else to be read as an order.
func TestOrderRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := orderOf(t)
		raw := o.Encode()
		got, err := enforce.DecodeOrder(raw)
		if err != nil {
			t.Fatalf("%+v: %v", o, err)
		}
		if !reflect.DeepEqual(got, o) {
			t.Fatalf("got %+v, want %+v", got, o)
		}
		cut := rapid.IntRange(0, len(raw)-1).Draw(t, "cut")
		if got, err := enforce.DecodeOrder(raw[:cut]); err == nil {
			t.Fatalf("the first %d of %d bytes were read as %+v", cut, len(raw), got)
		}
		if got, err := enforce.DecodeOrder(append(bytes.Clone(raw), 0)); err == nil {
			t.Fatalf("with a byte more it was read as %+v", got)
		}
	})
}

// TestOrderHasEveryField fails when a field is added that does not cross.
func TestOrderHasEveryField(t *testing.T) {
	fill := func(v reflect.Value) {
		for i := range v.NumField() {
			switch f := v.Field(i); f.Kind() {
			case reflect.Bool:
				f.SetBool(true)
			case reflect.Int, reflect.Int64:
				f.SetInt(int64(i + 1))
			case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
				f.SetUint(uint64(i + 1))
			case reflect.String:
				f.SetString("x")
			case reflect.Struct:
				for j := range f.NumField() {
					if g := f.Field(j); g.Kind() == reflect.Bool {
						g.SetBool(true)
					} else {
						g.SetInt(int64(i + j + 1))
					}
				}
			}
		}
	}
	var s enforce.Step
	fill(reflect.ValueOf(&s).Elem())
	s.Content = []byte("c")
	o := enforce.Order{Steps: []enforce.Step{s}, Argv: []string{"a"}, Env: []string{"E=1"}, CPUs: []int{0, 63, 64}, Gate: &enforce.GateOrder{Ports: []uint16{1}},
		Walls: &enforce.WallsOrder{Change: true, UID: 1, GID: 1<<32 - 1, Closed: "c", AnyTCP: true, Gate: 1<<16 - 1}, Filter: []seccomp.Insn{{Code: 1, Jt: 2, Jf: 3, K: 4}}}
	fill(reflect.ValueOf(&o).Elem())
	for _, v := range []reflect.Value{reflect.ValueOf(o), reflect.ValueOf(s)} {
		for i := range v.NumField() {
			if v.Field(i).IsZero() {
				t.Fatalf("this test does not fill %s.%s", v.Type(), v.Type().Field(i).Name)
			}
		}
	}
	got, err := enforce.DecodeOrder(o.Encode())
	if err != nil || !reflect.DeepEqual(*got, o) {
		t.Errorf("got %+v (%v), want %+v", got, err, o)
	}
}

func TestDecodeOrderRefuses(t *testing.T) {
	magic := (&enforce.Order{}).Encode()[:len("tether-order-1\n")]
	bools := strings.Repeat("\x00", 6)
	huge := string(binary.AppendUvarint(nil, 1<<40))
	for name, raw := range map[string]string{
		"nothing":                     "",
		"another beginning":           "tether-order-2\n" + bools,
		"only the beginning":          string(magic),
		"a flag that is neither":      string(magic) + "\x02" + bools,
		"more words than bytes":       string(magic) + bools + "\x00\x00" + "\x00" + huge,
		"a longer word than there is": string(magic) + bools + "\x00\x00" + huge + "/",
		"a number without an end":     string(magic) + bools + strings.Repeat("\xff", 12),
	} {
		if o, err := enforce.DecodeOrder([]byte(raw)); err == nil {
			t.Errorf("%s: got %+v, want an error", name, o)
		}
	}
}

// FuzzDecodeOrder: no bytes make it panic, and what it reads, it reads again
// from its own encoding.
func FuzzDecodeOrder(f *testing.F) {
	o := enforce.Order{Build: true, Argv: []string{"sh", "-c", "true"}, Env: []string{"PATH=/bin"}, Dir: "/w",
		Steps: enforce.Compile(enforcetest.Plan()), Filter: []seccomp.Insn{{Code: 6, K: 0x7fff0000}}}
	f.Add(o.Encode())
	f.Add((&enforce.Order{}).Encode())
	f.Add([]byte("tether-order-1\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		o, err := enforce.DecodeOrder(raw)
		if err != nil {
			return
		}
		again := o.Encode()
		p, err := enforce.DecodeOrder(again)
		if err != nil || !reflect.DeepEqual(o, p) {
			t.Fatalf("got %+v (%v), want %+v", p, err, o)
		}
		if !bytes.Equal(p.Encode(), again) {
			t.Error("the encoding is not stable")
		}
		for _, s := range o.Steps {
			_ = s.String()
		}
	})
}
