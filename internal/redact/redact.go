// Package redact finds secret values in what leaves the sandbox and puts
// [REDACTED:NAME] in their place: in command output as it streams, in whole
// texts, in the arguments of tools and in clear-text requests.
//
// It is against accidents, not against an adversary: a program that holds a
// value can always spell it in a way that nobody foresaw (backwards, one letter
// a line). That a command does not get a value in the first place is the work
// of masks and of the environment's allowlist.
//
// What is found. Every occurrence of a value of at least [MinLength] bytes, as
// it is, in base64 (standard and URL alphabet, at each of the three alignments,
// so also as a part of something larger), in hexadecimal (either case), in the
// usual percent-encodings and as a JSON string. A value of more than 80 bytes
// is found also in part. What covers or overlaps an occurrence is one mark.
//
// Not found: values that are shorter, or that look like ordinary text and have
// an ordinary name (see look.go); an encoding that is broken into lines
// inside a value, such as that of base64(1) for long input; UTF-16; anything
// compressed or encrypted.
package redact

import (
	"bytes"
	"cmp"
	"slices"
)

// MinLength is the length in bytes of the shortest value that is looked for.
// Shorter ones occur by chance.
const MinLength = 16

// The largest amounts that a Matcher takes; what is beyond is left out and
// told by Left.
const (
	maxValues  = 4096
	maxNeedles = 64 << 10
)

// Value is a secret and the name that its mark shows.
type Value struct{ Name, Text string }

// Matcher finds values. It is immutable and safe for concurrent use. A nil
// Matcher finds nothing.
type Matcher struct {
	// needles are all forms of all values, sorted, each once.
	needles []needle
	names   []string
	longest int
	// left counts the values that were too many.
	left int

	// Of every occurrence of a needle in a text, one of the first stride
	// offsets is a multiple of stride in that text. So it is enough to look at
	// every stride-th place for a gram (gramSize bytes) that some needle has at
	// one of these offsets. all knows these, first those at offset 0.
	all, first filter
	// pairs knows the first two bytes of each needle.
	pairs [1 << 16 / 64]uint64
}

const (
	gramSize = 8
	stride   = 8 // at most MinLength-gramSize+1
)

type needle struct {
	text []byte
	name int32
	// parent is the longest other needle that this one begins with, or -1.
	parent int32
}

// New returns a Matcher for values, which is nil when there is nothing to look
// for. Values shorter than [MinLength] are left out. Of values with the same
// text the first one names the mark.
func New(values []Value) *Matcher {
	m := &Matcher{}
	seen := make(map[string]bool, len(values))
	names := map[string]int32{}
	var arena []byte // holds many texts at once
	for _, v := range values {
		if len(v.Text) < MinLength || seen[v.Text] {
			continue
		}
		if len(seen) == maxValues || len(m.needles) > maxNeedles {
			m.left++
			continue
		}
		seen[v.Text] = true
		shown := markName(v.Name)
		id, ok := names[shown]
		if !ok {
			id = int32(len(m.names))
			names[shown] = id
			m.names = append(m.names, shown)
		}
		forms(v.Text, func(form []byte) {
			if len(form) < MinLength {
				return
			}
			if len(arena)+len(form) > cap(arena) {
				arena = make([]byte, 0, 32<<10)
			}
			at := len(arena)
			arena = append(arena, form...)
			m.needles = append(m.needles, needle{text: arena[at:], name: id, parent: -1})
		})
	}
	if len(m.needles) == 0 {
		return nil
	}
	m.index()
	return m
}

func (m *Matcher) index() {
	slices.SortFunc(m.needles, func(a, b needle) int { return cmp.Or(bytes.Compare(a.text, b.text), cmp.Compare(a.name, b.name)) })
	m.needles = slices.CompactFunc(m.needles, func(a, b needle) bool { return bytes.Equal(a.text, b.text) })
	m.all, m.first = newFilter(len(m.needles)*stride), newFilter(len(m.needles))
	for i := range m.needles {
		n := &m.needles[i]
		m.longest = max(m.longest, len(n.text))
		for p := int32(i) - 1; p >= 0; p = m.needles[p].parent {
			if bytes.HasPrefix(n.text, m.needles[p].text) {
				n.parent = p
				break
			}
		}
		b := n.text
		m.first.add(gram(b))
		for o := range stride {
			m.all.add(gram(b[o:]))
		}
		two := uint(b[0])<<8 | uint(b[1])
		m.pairs[two/64] |= 1 << (two % 64)
	}
}

// Left returns how many values were too many to be looked for.
func (m *Matcher) Left() int {
	if m == nil {
		return 0
	}
	return m.left
}

// span is an occurrence: the bytes [start, end) belong to a value.
type span struct {
	start, end int
	name       int32
}

// scan appends the longest occurrence at each place of b where there is one, in
// the order of their starts.
func (m *Matcher) scan(b []byte, to []span) []span {
	words, shift := m.all.words, m.all.shift
	for p := 0; p+gramSize <= len(b); p += stride {
		h := gram(b[p:]) * multiplier
		bits := twoBits(h)
		if words[h>>shift]&bits != bits {
			continue
		}
		for s := max(0, p-stride+1); s <= p; s++ {
			if !m.first.has(gram(b[s:])) {
				continue
			}
			if i := m.at(b[s:]); i >= 0 {
				to = append(to, span{s, s + len(m.needles[i].text), m.needles[i].name})
			}
		}
	}
	return to
}

// at returns the longest needle that b begins with, or -1.
func (m *Matcher) at(b []byte) int32 {
	text := b[:min(len(b), m.longest)]
	i, found := m.search(text)
	if found {
		return int32(i)
	}
	// The needles that text begins with are not greater than text, and the
	// greatest needle that is not begins with all of them.
	for p := int32(i) - 1; p >= 0; p = m.needles[p].parent {
		if bytes.HasPrefix(text, m.needles[p].text) {
			return p
		}
	}
	return -1
}

// begins returns the first place of b from which on all of b is the beginning
// of a longer needle, and that needle; without one, len(b) and -1.
func (m *Matcher) begins(b []byte) (int, int32) {
	s := max(0, len(b)-m.longest+1)
	for ; s+gramSize <= len(b); s++ {
		if m.first.has(gram(b[s:])) {
			if i := m.longer(b[s:]); i >= 0 {
				return s, i
			}
		}
	}
	for ; s < len(b); s++ {
		if s+1 < len(b) {
			two := uint(b[s])<<8 | uint(b[s+1])
			if m.pairs[two/64]&(1<<(two%64)) == 0 {
				continue
			}
		}
		if i := m.longer(b[s:]); i >= 0 {
			return s, i
		}
	}
	return len(b), -1
}

// longer returns a needle that begins with b and is longer, or -1.
func (m *Matcher) longer(b []byte) int32 {
	i, found := m.search(b)
	if found {
		i++
	}
	if i < len(m.needles) && bytes.HasPrefix(m.needles[i].text, b) {
		return int32(i)
	}
	return -1
}

// search returns where text stands or would stand among the needles.
func (m *Matcher) search(text []byte) (int, bool) {
	return slices.BinarySearchFunc(m.needles, text, func(n needle, t []byte) int { return bytes.Compare(n.text, t) })
}

// Find returns the name of the first value that occurs in b.
func (m *Matcher) Find(b []byte) (name string, found bool) {
	if m == nil {
		return "", false
	}
	// In parts, so that the first of many occurrences is enough.
	const part = 64 << 10
	for {
		end := min(len(b), part+m.longest)
		if spans := m.scan(b[:end], nil); len(spans) > 0 {
			return m.names[spans[0].name], true
		}
		if end == len(b) {
			return "", false
		}
		b = b[part:]
	}
}

// FindString is Find for a string.
func (m *Matcher) FindString(s string) (name string, found bool) { return m.Find([]byte(s)) }

// Text returns s with marks in place of values, and counts them in to, which
// may be nil. As at the end of a stream, [MinLength] or more bytes at the end
// that a value begins with are a part of that value.
func (m *Matcher) Text(s string, to *Tally) string {
	if m == nil || s == "" {
		return s
	}
	b := []byte(s)
	if h, _ := m.begins(b); len(b)-h < MinLength && len(m.scan(b, nil)) == 0 {
		return s
	}
	var out bytes.Buffer
	w := m.Writer(&out, to)
	_, _ = w.Write(b) // a buffer takes everything
	_ = w.Close()
	return out.String()
}
