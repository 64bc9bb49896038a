package stream

import (
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"
)

// DefaultCapture is what a Capture keeps when nobody says otherwise.
const DefaultCapture = 1 << 20

// Capture is an io.Writer that keeps the beginning and the end of what is
// written to it, half each, and counts what lay between.
//
// Memory is bounded by the limit, however much is written; a small output
// costs its own size only. Write never fails, so a command that floods its
// output is never slowed down or ended by a Capture: time and process limits
// do that. The zero value is ready and keeps DefaultCapture bytes. Safe for
// concurrent use; it must not be copied after the first write.
type Capture struct {
	// Watch, when set before the first write, is shown what is written, as it
	// comes. It must neither keep p nor block.
	Watch func(p []byte)

	mu    sync.Mutex
	limit int64 // 0 is DefaultCapture, negative keeps nothing
	total int64
	// buf holds everything up to the limit. Once more has arrived, its first
	// half is the head and the rest is a ring whose oldest byte is at next.
	buf  []byte
	next int
}

// NewCapture returns a Capture that keeps at most limit bytes. A limit of zero
// is DefaultCapture; a negative one keeps nothing.
func NewCapture(limit int64) *Capture { return &Capture{limit: limit} }

func (c *Capture) max() int {
	switch {
	case c.limit == 0:
		return DefaultCapture
	case c.limit < 0:
		return 0
	case c.limit > 1<<31-1:
		return 1<<31 - 1 // also what fits an int everywhere
	}
	return int(c.limit)
}

// Write keeps what belongs to the head or, so far, to the tail of p. It always
// takes all of p.
func (c *Capture) Write(p []byte) (int, error) {
	if c.Watch != nil {
		c.Watch(p)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(p)
	c.total += int64(n)
	limit := c.max()
	if room := limit - len(c.buf); room > 0 {
		take := min(room, len(p))
		c.grow(take, limit)
		c.buf = append(c.buf, p[:take]...)
		p = p[take:]
	}
	ring := c.buf[min(len(c.buf), limit/2):]
	if len(p) == 0 || len(ring) == 0 {
		return n, nil
	}
	if len(p) >= len(ring) {
		copy(ring, p[len(p)-len(ring):])
		c.next = 0
		return n, nil
	}
	k := copy(ring[c.next:], p)
	if k < len(p) {
		c.next = copy(ring, p[k:])
	} else {
		c.next = (c.next + k) % len(ring)
	}
	return n, nil
}

// grow makes room for n more bytes; append alone might overshoot the limit.
func (c *Capture) grow(n, limit int) {
	need := len(c.buf) + n
	if need <= cap(c.buf) {
		return
	}
	size := min(max(need, 2*cap(c.buf), 512), limit)
	next := make([]byte, len(c.buf), size)
	copy(next, c.buf)
	c.buf = next
}

// Total returns how many bytes were written in all.
func (c *Capture) Total() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.total
}

// Bytes returns a copy of the raw bytes that were kept. Without truncation all
// of them are in head and tail is empty; otherwise what was dropped lay between
// the two.
func (c *Capture) Bytes() (head, tail []byte) {
	head, tail, _ = c.snapshot()
	return head, tail
}

func (c *Capture) snapshot() (head, tail []byte, total int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.total <= int64(len(c.buf)) {
		return append([]byte(nil), c.buf...), nil, c.total
	}
	half := min(len(c.buf), c.max()/2)
	head = append([]byte(nil), c.buf[:half]...)
	ring := c.buf[half:]
	tail = append(make([]byte, 0, len(ring)), ring[c.next:]...)
	return head, append(tail, ring[:c.next]...), c.total
}

// Text returns what was kept as valid UTF-8, for JSON and for people.
//
// Every byte that is not part of a valid UTF-8 sequence becomes one U+FFFD;
// all else, NUL and control characters included, is as the command wrote it.
// When something was dropped, a line of its own says how much, in its place;
// characters that the cut would have split are dropped with it, so that kept
// and dropped bytes always add up to Total.
func (c *Capture) Text() (text string, truncated bool, dropped int64) {
	head, tail, total := c.snapshot()
	if dropped = total - int64(len(head)+len(tail)); dropped <= 0 {
		return validUTF8(head), false, 0
	}
	h, t := trimEnd(head), trimStart(tail)
	dropped += int64(len(head) - len(h) + len(tail) - len(t))
	return validUTF8(h) + mark(dropped) + validUTF8(t), true, dropped
}

func mark(dropped int64) string { return fmt.Sprintf("\n[... %d bytes dropped ...]\n", dropped) }

// trimEnd drops the beginning of a character that the end of b cuts off.
func trimEnd(b []byte) []byte {
	for i := len(b) - 1; i >= 0 && i > len(b)-utf8.UTFMax; i-- {
		if utf8.RuneStart(b[i]) {
			if !utf8.FullRune(b[i:]) {
				return b[:i]
			}
			break
		}
	}
	return b
}

// trimStart drops the rest of a character whose beginning is not in b.
func trimStart(b []byte) []byte {
	for i := 0; i < len(b) && i < utf8.UTFMax; i++ {
		if utf8.RuneStart(b[i]) {
			return b[i:]
		}
	}
	if len(b) < utf8.UTFMax {
		return nil
	}
	return b // four continuation bytes in a row: not text anyway
}

// validUTF8 replaces each invalid byte by U+FFFD. (strings.ToValidUTF8 would
// make one of a run, and lengths could not be compared.)
func validUTF8(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	var s strings.Builder
	s.Grow(len(b) + len(b)/8)
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		s.WriteRune(r)
		b = b[n:]
	}
	return s.String()
}
