package redact

import (
	"encoding/binary"
	"math/bits"
)

// multiplier spreads the bits of a gram over a word: 2^64 divided by the golden
// ratio.
const multiplier = 0x9e3779b97f4a7c15

// gram returns the first gramSize bytes of b as a number.
func gram(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }

// filter is a set of grams that may hold more than was added: two bits in one
// word for each, about 1 in 200 of the others.
type filter struct {
	words []uint64
	shift uint
}

// newFilter returns a filter for n grams.
func newFilter(n int) filter {
	// 32 bits for each; at least 2 words, because a shift by 64 is none.
	k := bits.Len(uint(max(n/2, 2) - 1))
	return filter{make([]uint64, 1<<k), uint(64 - k)}
}

func (f *filter) add(g uint64) {
	h := g * multiplier
	f.words[h>>f.shift] |= twoBits(h)
}

func (f *filter) has(g uint64) bool {
	h := g * multiplier
	b := twoBits(h)
	return f.words[h>>f.shift]&b == b
}

// twoBits takes two bits of a word from bits of h that no shift leaves. Lower
// ones would depend on the first bytes of a gram only.
func twoBits(h uint64) uint64 { return 1<<(h>>34&63) | 1<<(h>>40&63) }
