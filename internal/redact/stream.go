package redact

import (
	"cmp"
	"io"
	"maps"
	"slices"
	"sync"
	"time"
)

// How long a stream must be quiet before what it holds back goes out.
const (
	quietShort = 100 * time.Millisecond
	quietLong  = time.Second
)

// Tally counts marks. The zero value is ready; a nil one counts nothing.
type Tally struct {
	mu    sync.Mutex
	count map[string]int
}

// Count is how many marks one name has.
type Count struct {
	// Name is that of the mark, [REDACTED:NAME]; Count is how many there are.
	Name  string `json:"name"`
	Count int    `json:"count"`
}

func (t *Tally) add(name string) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.count == nil {
		t.count = map[string]int{}
	}
	t.count[name]++
}

// Counts returns what was counted, by name.
func (t *Tally) Counts() []Count {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	var list []Count
	for _, name := range slices.SortedFunc(maps.Keys(t.count), cmp.Compare[string]) {
		list = append(list, Count{name, t.count[name]})
	}
	return list
}

// Writer redacts a stream. Safe for concurrent use.
//
// What it writes does not depend on how the stream is cut into writes. A write
// that ends in what may be the beginning of a value is held back from there on,
// at most a few hundred bytes, until the next write decides. So that a program
// that waits for an answer is not waited for, a stream that is quiet for 100 ms
// gets less than [MinLength] bytes of a beginning as they are; after 1 s, a
// longer beginning counts as the value. Either way the rest of the value is
// redacted when it comes: of no value more than MinLength-1 bytes are seen.
type Writer struct {
	m     *Matcher
	w     io.Writer
	tally *Tally
	// short and long are the two delays; zero never releases.
	short, long time.Duration
	refuse      bool // see Guard

	mu     sync.Mutex
	err    error
	closed bool
	timer  *time.Timer
	turn   int // which write the timer belongs to

	// held is the end of what was written, from the first place on that may
	// begin a value. Its first done bytes are settled: shown or redacted.
	held []byte
	done int
	// The last mark covers held up to end, or nothing if end is negative.
	end  int
	name int32

	spans   []span
	in, out []byte // memory that is used again
}

// Writer returns a Writer to w that counts its marks in to. It must be closed,
// which does not close w.
func (m *Matcher) Writer(w io.Writer, to *Tally) *Writer {
	return &Writer{m: m, w: w, tally: to, short: quietShort, long: quietLong, end: -1}
}

// part is how much is redacted at once; it bounds the memory for copies.
const part = 256 << 10

// Write redacts p. It takes all of p or fails with the error of the underlying
// writer, for good.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed && w.err == nil {
		w.err = io.ErrClosedPipe
	}
	w.turn++
	for rest := p; len(rest) > 0 && w.err == nil; {
		n := min(len(rest), part)
		w.take(rest[:n])
		rest = rest[n:]
	}
	if w.err != nil {
		return 0, w.err
	}
	if w.done < len(w.held) {
		w.wait(w.short, false)
	}
	return len(p), nil
}

// Close writes what is held back. [MinLength] or more bytes at the end of the
// stream that a value begins with are a part of that value.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return w.err
	}
	w.closed = true
	if w.timer != nil {
		w.timer.Stop()
	}
	if w.err == nil {
		w.release(true)
	}
	w.held, w.in, w.out = nil, nil, nil
	return w.err
}

// wait arranges for what is held back to go out after d without a write; long
// tells that this is the longer delay.
func (w *Writer) wait(d time.Duration, long bool) {
	if d <= 0 {
		return
	}
	turn := w.turn
	if w.timer != nil {
		w.timer.Stop()
	}
	w.timer = time.AfterFunc(d, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		switch {
		case w.closed || w.err != nil || w.turn != turn:
		case long || len(w.held) < MinLength:
			w.release(false)
		default:
			w.wait(w.long-d, true)
		}
	})
}

// release lets out what is held back: as it is, or as a mark where it is long
// enough to be nothing else. It stays in mind for what comes.
func (w *Writer) release(last bool) {
	if len(w.held) >= MinLength {
		i := w.m.at(w.held) // one that is complete names it
		if i < 0 {
			_, i = w.m.begins(w.held)
		}
		w.out = w.cover(w.out[:0], w.held, span{0, len(w.held), w.m.needles[i].name})
		w.put(w.out)
	} else if w.done < len(w.held) {
		w.put(w.held[w.done:])
		if !last {
			w.done = len(w.held)
		}
	}
}

// take redacts one part.
func (w *Writer) take(p []byte) {
	b := p
	if len(w.held) > 0 {
		w.in = append(append(w.in[:0], w.held...), p...)
		b = w.in
	}
	w.spans = w.m.scan(b, w.spans[:0])
	hold, _ := w.m.begins(b)
	if len(w.spans) == 0 { // nearly always
		if w.done < hold {
			w.put(b[w.done:hold])
		}
	} else {
		out := w.out[:0]
		for _, s := range w.spans {
			if s.start < hold {
				out = w.cover(out, b, s)
			}
		}
		if w.done < hold {
			out = append(out, b[w.done:hold]...)
		}
		w.out = out
		w.put(out)
	}
	w.held = append(w.held[:0], b[hold:]...)
	w.done, w.end = max(0, w.done-hold), w.end-hold
	if cap(w.in) > part+4096 || cap(w.out) > 2*part {
		w.in, w.out = nil, nil
	}
}

// cover appends to out what of b is not settled before s, and a mark for s
// unless s goes on with the last one.
func (w *Writer) cover(out, b []byte, s span) []byte {
	if s.start < w.end || s.start == w.end && s.name == w.name {
		w.end = max(w.end, s.end)
		w.done = max(w.done, w.end)
		return out
	}
	if w.done < s.start {
		out = append(out, b[w.done:s.start]...)
	}
	w.end, w.name = s.end, s.name
	w.done = max(w.done, s.end)
	name := w.m.names[s.name]
	if w.refuse {
		// What lies before it goes out; put writes nothing after an error.
		w.put(out)
		if w.err == nil {
			w.err = refused(name)
		}
		return out[:0]
	}
	w.tally.add(name)
	return append(append(append(out, markBegin...), name...), markEnd...)
}

func (w *Writer) put(b []byte) {
	if len(b) > 0 && w.err == nil {
		_, w.err = w.w.Write(b)
	}
}
