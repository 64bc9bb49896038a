package secrets

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"
)

// indexOf builds an index of version 2 or 4 whose names share no prefix.
func indexOf(version uint32, hash int, extensions string, names ...string) []byte {
	b := append([]byte("DIRC"), 0, 0, 0, byte(version))
	b = binary.BigEndian.AppendUint32(b, uint32(len(names)))
	last := 0
	for _, n := range names {
		b = append(b, make([]byte, 40+hash+2)...)
		if version == 4 {
			b = append(append(b, byte(last)), n+"\x00"...)
			last = len(n)
			continue
		}
		size := 40 + hash + 2 + len(n)
		b = append(append(b, n...), make([]byte, (size+8)&^7-size)...)
	}
	return append(append(b, extensions...), make([]byte, hash)...)
}

func TestTracked(t *testing.T) {
	want := map[string]bool{".env": true, "a/.env": true}
	// A link extension whose bitmap deletes entry 0 of the shared part.
	id := strings.Repeat("\x11", 20)
	bitmap := "\x00\x00\x00\x01\x00\x00\x00\x02" + "\x00\x00\x00\x02\x00\x00\x00\x00" + "\x00\x00\x00\x00\x00\x00\x00\x01" + "\x00\x00\x00\x00"
	size := string(binary.BigEndian.AppendUint32(nil, uint32(len(id+bitmap))))
	link := "link" + size + id + bitmap
	for _, c := range []struct {
		name  string
		index []byte
		want  []string
		err   error
	}{
		{"none", indexOf(2, 20, ""), nil, nil},
		{"one of two", indexOf(2, 20, "", ".env", "b"), []string{".env"}, nil},
		{"SHA-256", indexOf(2, 32, "", ".env", "a/.env"), []string{".env", "a/.env"}, nil},
		{"version 4", indexOf(4, 20, "", ".env", "a/.env"), []string{".env", "a/.env"}, nil},
		{"an extension", indexOf(2, 20, "TREE\x00\x00\x00\x02xx", ".env"), []string{".env"}, nil},
		{"split", indexOf(2, 20, link), []string{"a/.env"}, nil},
		{"split, no shared part yet", indexOf(2, 20, "link\x00\x00\x00\x14"+strings.Repeat("\x00", 20), ".env"), []string{".env"}, nil},
		{"split, short", indexOf(2, 20, "link\x00\x00\x00\x01x", ".env"), nil, errSplit},
		{"split, bad bitmap", indexOf(2, 20, "link\x00\x00\x00\x1c"+id+"\x00\x00\x00\x01\xff\xff\xff\xff", ".env"), nil, errSplit},
		{"extension too long", indexOf(2, 20, "TREE\x00\x00\x00\x03xx", ".env"), nil, errIndex},
		{"version 5", indexOf(5, 20, "", ".env"), nil, errIndex},
		{"version 1", indexOf(1, 20, "", ".env"), nil, errIndex},
		{"empty", nil, nil, errIndex},
		{"prefix longer than the name before", func() []byte {
			b := indexOf(4, 20, "", ".env")
			b[12+62] = 1
			return b
		}(), nil, errIndex},
	} {
		got, err := Tracked(c.index, func(name string) []byte {
			if name != "sharedindex."+strings.Repeat("11", 20) {
				t.Errorf("%s: got asked for %q", c.name, name)
			}
			return indexOf(2, 20, "", ".env", "a/.env")
		}, want)
		var names []string
		for n := range got {
			names = append(names, n)
		}
		slices.Sort(names)
		if err != c.err || !slices.Equal(names, c.want) {
			t.Errorf("%s: got %q, %v, want %q, %v", c.name, names, err, c.want, c.err)
		}
	}
}

func TestSortMasksKeepsTheWider(t *testing.T) {
	in := []Mask{{Path: "/r/a.b"}, {Path: "/r/a/x/y"}, {Path: "/r/a", Kind: MaskDir}, {Path: "/r/a/x", Kind: MaskDir}, {Path: "/r/b"}, {Path: "/r/b"}, {Path: "/r/c"}, {Path: "/r/c", Kind: MaskDir}}
	var got []string
	for _, m := range sortMasks(in) {
		got = append(got, m.Path+map[MaskKind]string{MaskDir: "/"}[m.Kind])
	}
	if want := []string{"/r/a/", "/r/a.b", "/r/b", "/r/c/"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
