package watch

import (
	"encoding/binary"
	"testing"
)

func encode(wd int32, mask uint32, name string, size int) []byte {
	b := binary.NativeEndian.AppendUint32(nil, uint32(wd))
	b = binary.NativeEndian.AppendUint32(b, mask)
	b = binary.NativeEndian.AppendUint32(b, 0)
	b = binary.NativeEndian.AppendUint32(b, uint32(size))
	return append(b, append([]byte(name), make([]byte, max(0, size-len(name)))...)...)
}

func TestDecode(t *testing.T) {
	for name, c := range map[string]struct {
		in   []byte
		n    int
		last string
		lost bool
	}{
		"nothing":       {nil, 0, "", false},
		"one":           {encode(1, created, ".env", 16), 1, ".env", false},
		"no name":       {encode(1, ignored, "", 0), 1, "", false},
		"full name":     {encode(1, created, "abcdefgh", 8), 1, "abcdefgh", false},
		"two":           {append(encode(1, created, "a", 16), encode(2, movedTo, "b", 16)...), 2, "b", false},
		"cut head":      {encode(1, created, "a", 16)[:10], 0, "", true},
		"cut name":      {encode(1, created, "a", 16)[:20], 0, "", true},
		"a size beyond": {nil, 0, "", true},
	} {
		if name == "a size beyond" {
			c.in = encode(1, created, "", 0)
			binary.NativeEndian.PutUint32(c.in[12:], 1<<31)
		}
		got, lost := decode(c.in)
		if len(got) != c.n || lost != c.lost || c.n > 0 && got[c.n-1].name != c.last {
			t.Errorf("%s: %+v, lost %v", name, got, lost)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(encode(1, created, ".env", 16))
	f.Add([]byte{1, 2, 3})
	f.Fuzz(func(t *testing.T, b []byte) {
		list, lost := decode(b)
		total := 0
		for _, r := range list {
			total += eventHead + len(r.name)
		}
		if total > len(b) || len(b) > 0 && len(list) == 0 && !lost {
			t.Errorf("%d bytes gave %d, lost %v", len(b), total, lost)
		}
	})
}
