package secrets

import (
	"reflect"
	"slices"
	"testing"
)

func sampleTree() *folder {
	return &folder{ctime: 5, id: identity{1, 2}, files: 7, bare: true,
		entries: []Entry{{Path: ".env\xff", Type: Symlink, Marks: Hidden | Locked, Ino: 9}},
		kids:    []*folder{{name: "a", ctime: -1 << 62}, {name: "b", id: identity{1<<64 - 1, 3}, kids: []*folder{{name: "c"}}}}}
}

func TestTreeRoundTrip(t *testing.T) {
	b := encodeTree("key", "/root", sampleTree())
	if got, want := decodeTree(b, "key", "/root"), sampleTree(); !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v, want %+v", got, want)
	}
	if decodeTree(b, "other", "/root") != nil || decodeTree(b, "key", "/other") != nil {
		t.Error("got a tree under another key or root")
	}
	for i := range b {
		c := slices.Clone(b)
		c[i] ^= 0x41
		if decodeTree(c, "key", "/root") != nil || decodeTree(b[:i], "key", "/root") != nil {
			t.Fatalf("got a tree with byte %d changed or cut off", i)
		}
	}
}

func FuzzDecodeTree(f *testing.F) {
	b := encodeTree("", "", sampleTree())
	f.Add(b[:len(b)-4])
	f.Fuzz(func(t *testing.T, b []byte) {
		sum := checksum(b)
		b = append(b, byte(sum), byte(sum>>8), byte(sum>>16), byte(sum>>24))
		if tree := decodeTree(b, "", ""); tree != nil && decodeTree(encodeTree("", "", tree), "", "") == nil {
			t.Fatal("got a tree that cannot be stored again")
		}
	})
}
