package secrets

import (
	"bytes"
	"encoding/binary"
	"errors"
)

var (
	errIndex = errors.New("not a git index of version 2, 3 or 4")
	errSplit = errors.New("the shared part of a split git index is missing or damaged")
)

// Tracked says which of the paths in want git tracks, by the bytes of an index
// file (versions 2 to 4, SHA-1 and SHA-256). Paths are relative to the
// worktree, with "/" between the names. For a split index, shared is asked for
// the file called sharedindex.<hex>; it may return nil.
//
// A path with a conflict counts as tracked. A path below a directory that a
// sparse index keeps as one entry counts as not tracked. The checksum is not
// verified; on any other damage an error is returned and nothing is tracked.
func Tracked(index []byte, shared func(name string) []byte, want map[string]bool) (map[string]bool, error) {
	found := map[string]bool{}
	if len(want) == 0 {
		return found, nil
	}
	// The file does not say which hash it uses; only one of them makes entries
	// and extensions end where the checksum begins.
	for _, hash := range []int{20, 32} {
		clear(found)
		link, err := readIndex(index, hash, func(_ int, _, name []byte) {
			if want[string(name)] {
				found[string(name)] = true
			}
		})
		if err != nil {
			continue
		}
		if link == nil {
			return found, nil
		}
		return found, addShared(link, hash, shared, want, found)
	}
	return map[string]bool{}, errIndex
}

// addShared adds what the shared part of a split index tracks: its entries
// without those that the link extension deletes.
func addShared(link []byte, hash int, shared func(string) []byte, want, found map[string]bool) error {
	if len(link) < hash {
		clear(found)
		return errSplit
	}
	id, bitmaps := link[:hash], link[hash:]
	if len(bytes.Trim(id, "\x00")) == 0 {
		return nil // split, but no shared part yet
	}
	base := shared("sharedindex." + hexString(id))
	entries := indexCount(base)
	var deleted []uint64
	if len(bitmaps) > 0 {
		var ok bool
		if deleted, ok = readEWAH(bitmaps, entries); !ok {
			clear(found)
			return errSplit
		}
	}
	more, err := readIndex(base, hash, func(i int, _, name []byte) {
		if want[string(name)] && (i/64 >= len(deleted) || deleted[i/64]>>(i%64)&1 == 0) {
			found[string(name)] = true
		}
	})
	if err != nil || more != nil {
		clear(found)
		return errSplit
	}
	return nil
}

func hexString(b []byte) string {
	const digits = "0123456789abcdef"
	out := make([]byte, 0, 2*len(b))
	for _, c := range b {
		out = append(out, digits[c>>4], digits[c&15])
	}
	return string(out)
}

// indexCount is the number of entries that an index announces; it is never
// more than its bytes could hold.
func indexCount(b []byte) int {
	if len(b) < 12 {
		return 0
	}
	return int(min(int64(binary.BigEndian.Uint32(b[8:])), int64(len(b)/62+1)))
}

// readIndex calls each for every entry in order, with what stands before the
// name, and returns the content of the link extension, nil when there is none.
// It reads the bytes once.
func readIndex(b []byte, hash int, each func(i int, head, name []byte)) (link []byte, err error) {
	if len(b) < 12+hash || string(b[:4]) != "DIRC" {
		return nil, errIndex
	}
	version, count := binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint32(b[8:])
	if version < 2 || version > 4 {
		return nil, errIndex
	}
	end := len(b) - hash
	at := 12
	var name []byte
	for i := range int(count) {
		head := 40 + hash + 2
		if end-at < head {
			return nil, errIndex
		}
		if b[at+head-2]&0x40 != 0 { // extended flags
			if version < 3 {
				return nil, errIndex
			}
			head += 2
		}
		if end-at < head {
			return nil, errIndex
		}
		entry, rest := b[at:at+head], b[at+head:end]
		if version == 4 {
			keep, used := offsetVarint(rest)
			if used == 0 || keep > uint64(len(name)) {
				return nil, errIndex
			}
			zero := bytes.IndexByte(rest[used:], 0)
			if zero < 0 || zero > maxIndexName {
				return nil, errIndex
			}
			name = append(name[:len(name)-int(keep)], rest[used:used+zero]...)
			if len(name) > maxIndexName {
				return nil, errIndex
			}
			at += head + used + zero + 1
		} else {
			zero := bytes.IndexByte(rest, 0)
			if zero < 0 {
				return nil, errIndex
			}
			name = rest[:zero]
			size := (head + zero + 8) &^ 7
			if end-at < size || len(bytes.Trim(b[at+head+zero:at+size], "\x00")) != 0 {
				return nil, errIndex
			}
			at += size
		}
		each(i, entry, name)
	}
	for at < end {
		if end-at < 8 {
			return nil, errIndex
		}
		size := int64(binary.BigEndian.Uint32(b[at+4:]))
		if size > int64(end-at-8) {
			return nil, errIndex
		}
		if string(b[at:at+4]) == "link" {
			link = b[at+8 : at+8+int(size) : at+8+int(size)]
		}
		at += 8 + int(size)
	}
	return link, nil
}

// maxIndexName bounds a name, so that prefix compression cannot make a small
// file into gigabytes of names. Linux has no longer path.
const maxIndexName = 4096

// offsetVarint reads git's variable-length number; used is 0 on damage.
func offsetVarint(b []byte) (v uint64, used int) {
	for i, c := range b {
		if i > 8 {
			return 0, 0
		}
		if i > 0 {
			v++
		}
		v = v<<7 | uint64(c&0x7f)
		if c&0x80 == 0 {
			return v, i + 1
		}
	}
	return 0, 0
}

// readEWAH reads the first of the compressed bitmaps in b, of which bits above
// limit are dropped.
func readEWAH(b []byte, limit int) (bits []uint64, ok bool) {
	if len(b) < 8 {
		return nil, false
	}
	words := int64(binary.BigEndian.Uint32(b[4:]))
	if words*8 > int64(len(b)-8) {
		return nil, false
	}
	b = b[8 : 8+words*8]
	most := limit/64 + 1
	for len(b) > 0 {
		marker := binary.BigEndian.Uint64(b)
		b = b[8:]
		var fill uint64
		if marker&1 != 0 {
			fill = ^uint64(0)
		}
		for range marker >> 1 & 0xffffffff {
			if len(bits) >= most {
				break
			}
			bits = append(bits, fill)
		}
		literals := marker >> 33
		if literals > uint64(len(b)/8) {
			return nil, false
		}
		for range literals {
			if len(bits) < most {
				bits = append(bits, binary.BigEndian.Uint64(b))
			}
			b = b[8:]
		}
	}
	return bits, true
}
