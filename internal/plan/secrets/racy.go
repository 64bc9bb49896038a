package secrets

import (
	"bytes"
	"encoding/binary"
	"errors"
)

// racyEntry is a file in a git index whose content git compares at every look.
type racyEntry struct {
	name string
	mode uint32
	size uint32
	sec  uint32
	sum  []byte // the object's name: SHA-1 or SHA-256 by its length
}

var errSplitIndex = errors.New("its index is split in two files")

// racyEntries returns the files that git does not take for unchanged by size
// and time alone: those written in the second of the index itself, or later.
// They could have changed within that second. A path with a conflict, a
// submodule and a path that git was told not to look at are not among them.
func racyEntries(index []byte, written int64) ([]racyEntry, error) {
	for _, hash := range []int{20, 32} {
		var found []racyEntry
		link, err := readIndex(index, hash, func(_ int, head, name []byte) {
			word := func(i int) uint32 { return binary.BigEndian.Uint32(head[4*i:]) }
			e := racyEntry{sec: word(2), mode: word(6), size: word(9), sum: head[40 : 40+hash]}
			flags := binary.BigEndian.Uint16(head[40+hash:])
			const assumeValid, stage, extended, skipWorktree = 0x8000, 0x3000, 0x4000, 0x4000
			switch {
			case e.sec < uint32(written), flags&(assumeValid|stage) != 0, e.mode&typeBits == gitlink:
				return
			case flags&extended != 0 && binary.BigEndian.Uint16(head[42+hash:])&skipWorktree != 0:
				return
			}
			e.name, e.sum = string(name), bytes.Clone(e.sum)
			found = append(found, e)
		})
		if err != nil {
			continue
		}
		if link != nil {
			return nil, errSplitIndex
		}
		return found, nil
	}
	return nil, errIndex
}

// Types of an index entry's mode, as git writes them.
const (
	typeBits = 0o170000
	regular  = 0o100000
	symlink  = 0o120000
	gitlink  = 0o160000
)
