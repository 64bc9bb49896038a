package secrets

import (
	"encoding/binary"
	"hash/fnv"
	"strconv"
)

// folder is what a walk remembers of a directory, so that the next one lists
// only those that changed. Every change of a directory's entries changes its
// change time, which no program can set.
type folder struct {
	name string
	id   identity
	// ctime, in nanoseconds, is 0 when the directory must be listed again: it
	// had just changed, or its file system keeps no reliable times.
	ctime int64
	files int
	bare  bool
	// entries are the marked ones, by the names alone, and all links, with the base
	// name as Path.
	entries []Entry
	kids    []*folder

	// What follows is not stored. watch is the number of a watch that stood before
	// the directory was listed, 0 when there is none or it told of a change since.
	// quiet says that nothing in it or below has to be looked at; dirs and all are
	// how many directories and other entries that are.
	watch     int32
	quiet     bool
	dirs, all int
}

const (
	treeMagic = "tether folders 3\n"
	// treeMax bounds a stored tree, treeFolders what is remembered at all.
	treeMax     = 64 << 20
	treeFolders = 1 << 18
)

// treeName is the file that holds the tree of a root.
func treeName(root string) string {
	h := fnv.New64a()
	h.Write([]byte(root))
	return "folders-3-" + strconv.FormatUint(h.Sum64(), 16)
}

// encodeTree returns the tree of root as bytes. key names everything that the
// marks depend on.
func encodeTree(key, root string, f *folder) []byte {
	b := append([]byte(nil), treeMagic...)
	b = appendText(appendText(b, key), root)
	b = f.append(b)
	return binary.LittleEndian.AppendUint32(b, checksum(b))
}

func (f *folder) append(b []byte) []byte {
	b = appendText(b, f.name)
	b = binary.AppendUvarint(b, f.id.dev)
	b = binary.AppendUvarint(b, f.id.ino)
	b = binary.AppendVarint(b, f.ctime)
	b = binary.AppendUvarint(b, uint64(f.files))
	bare := byte(0)
	if f.bare {
		bare = 1
	}
	b = append(b, bare)
	b = binary.AppendUvarint(b, uint64(len(f.entries)))
	for _, e := range f.entries {
		b = append(appendText(b, e.Path), byte(e.Type))
		b = binary.AppendUvarint(b, uint64(e.Marks))
		b = binary.AppendUvarint(b, e.Ino)
	}
	b = binary.AppendUvarint(b, uint64(len(f.kids)))
	for _, k := range f.kids {
		b = k.append(b)
	}
	return b
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// decodeTree reads what encodeTree wrote with the same key and root; anything
// else is nil.
func decodeTree(b []byte, key, root string) *folder {
	body := len(b) - 4
	if body < len(treeMagic) || string(b[:len(treeMagic)]) != treeMagic || binary.LittleEndian.Uint32(b[body:]) != checksum(b[:body]) {
		return nil
	}
	r := treeReader{rest: b[len(treeMagic):body], text: string(b[len(treeMagic):body])}
	if r.word() != key || r.word() != root {
		return nil
	}
	f := r.folder(0)
	if r.bad || len(r.rest) != 0 {
		return nil
	}
	return f
}

// treeReader reads a tree; names are parts of one string. Once bad, it reads
// zeros only.
type treeReader struct {
	rest []byte
	text string
	slab []folder
	bad  bool
}

func (r *treeReader) number() uint64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 || r.bad {
		r.bad, r.rest = true, nil
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

// count reads a number of things of at least size bytes each.
func (r *treeReader) count(size int) int {
	n := r.number()
	if n > uint64(len(r.rest)/size) {
		r.bad, r.rest = true, nil
		return 0
	}
	return int(n)
}

func (r *treeReader) byte() byte {
	if len(r.rest) == 0 {
		r.bad = true
		return 0
	}
	c := r.rest[0]
	r.rest = r.rest[1:]
	return c
}

func (r *treeReader) word() string {
	n := r.count(1)
	at := len(r.text) - len(r.rest)
	r.rest = r.rest[n:]
	return r.text[at : at+n]
}

// folder reads a directory and all below it.
func (r *treeReader) folder(depth int) *folder {
	if len(r.slab) == 0 {
		r.slab = make([]folder, 256)
	}
	f := &r.slab[0]
	r.slab = r.slab[1:]
	if depth > treeFolders {
		r.bad = true
	}
	f.name = r.word()
	f.id = identity{r.number(), r.number()}
	ctime, n := binary.Varint(r.rest)
	if n <= 0 {
		r.bad, r.rest = true, nil
		return f
	}
	f.ctime, r.rest = ctime, r.rest[n:]
	f.files = int(r.number())
	f.bare = r.byte() == 1
	if n := r.count(4); n > 0 {
		f.entries = make([]Entry, 0, n)
		for range n {
			e := Entry{Path: r.word(), Type: Type(r.byte())}
			e.Marks, e.Ino = Mark(r.number()), r.number()
			f.entries = append(f.entries, e)
		}
	}
	if n := r.count(8); n > 0 && !r.bad {
		f.kids = make([]*folder, 0, n)
		for range n {
			f.kids = append(f.kids, r.folder(depth+1))
			if r.bad {
				return f
			}
		}
	}
	return f
}
