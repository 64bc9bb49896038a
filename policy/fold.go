package policy

import (
	"unicode"
	"unicode/utf8"
)

// nameMax is the longest base name of the usual file systems. A buffer of this
// size lives on the stack; longer names still work, with an allocation.
const nameMax = 255

// Fold returns name as a file system that ignores case compares it, without
// final dots and spaces, in dst or as name itself. Letters that become ASCII are
// folded too, and characters that such file systems ignore are dropped; accents
// are neither composed nor decomposed.
func Fold(dst, name []byte) []byte { return trimTail(fold(dst, name)) }

// fold returns name as a file system that ignores case compares it, in dst or
// as name itself if there is nothing to fold. It never grows a name, and
// folding twice changes nothing.
//
// Folding covers the letters that become ASCII (U+017F, U+212A, sharp s, the
// ligatures ff, fi, fl, st, the dotless i) and drops the characters that such
// file systems ignore (zero-width joiners and the like). It does not compose
// or decompose accents. Bytes that are not UTF-8 stay as they are.
func fold(dst, name []byte) []byte {
	i := 0
	for i < len(name) && name[i] < utf8.RuneSelf && !('A' <= name[i] && name[i] <= 'Z') {
		i++
	}
	if i == len(name) {
		return name
	}
	dst = append(dst, name[:i]...)
	for i < len(name) {
		c := name[i]
		if c < utf8.RuneSelf {
			if 'A' <= c && c <= 'Z' {
				c += 'a' - 'A'
			}
			dst = append(dst, c)
			i++
			continue
		}
		r, size := utf8.DecodeRune(name[i:])
		if r == utf8.RuneError && size == 1 {
			dst = append(dst, c)
		} else {
			dst = foldRune(dst, r)
		}
		i += size
	}
	return dst
}

// foldRune appends the folded form of one rune outside ASCII.
func foldRune(dst []byte, r rune) []byte {
	switch r {
	case 'ı':
		return append(dst, 'i')
	case 'ß', 'ẞ':
		return append(dst, "ss"...)
	case 'ﬀ':
		return append(dst, "ff"...)
	case 'ﬁ':
		return append(dst, "fi"...)
	case 'ﬂ':
		return append(dst, "fl"...)
	case 'ﬃ':
		return append(dst, "ffi"...)
	case 'ﬄ':
		return append(dst, "ffl"...)
	case 'ﬅ', 'ﬆ':
		return append(dst, "st"...)
	}
	if ignorable(r) {
		return dst
	}
	return utf8.AppendRune(dst, least(r))
}

// least returns the first rune of r's case orbit, in lower case if it is ASCII.
func least(r rune) rune {
	first := r
	for o := unicode.SimpleFold(r); o != r; o = unicode.SimpleFold(o) {
		first = min(first, o)
	}
	if 'A' <= first && first <= 'Z' {
		first += 'a' - 'A'
	}
	return first
}

// ignorable tells whether r is one of Unicode's default ignorable code points,
// which HFS+, and ext4 and f2fs with casefolding, skip in a comparison.
// Source: DerivedCoreProperties.txt, Default_Ignorable_Code_Point.
func ignorable(r rune) bool {
	switch {
	case r == 0xAD, r == 0x34F, r == 0x61C, r == 0x3164, r == 0xFEFF, r == 0xFFA0,
		0x115F <= r && r <= 0x1160,
		0x17B4 <= r && r <= 0x17B5,
		0x180B <= r && r <= 0x180F,
		0x200B <= r && r <= 0x200F,
		0x202A <= r && r <= 0x202E,
		0x2060 <= r && r <= 0x206F,
		0xFE00 <= r && r <= 0xFE0F,
		0xFFF0 <= r && r <= 0xFFF8,
		0x1BCA0 <= r && r <= 0x1BCA3,
		0x1D173 <= r && r <= 0x1D17A,
		0xE0000 <= r && r <= 0xE0FFF:
		return true
	}
	return false
}

// trimTail drops final dots and spaces, which FAT and NTFS drop.
func trimTail(name []byte) []byte {
	for len(name) > 0 && (name[len(name)-1] == '.' || name[len(name)-1] == ' ') {
		name = name[:len(name)-1]
	}
	return name
}
