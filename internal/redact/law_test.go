package redact

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// slowly is what Text is meant to do, without any index: the longest needle at
// each place, what overlaps or goes on under one name is one mark.
func slowly(m *Matcher, b []byte) (string, int) {
	var spans []span
	for s := range b {
		best := -1
		for i, n := range m.needles {
			if bytes.HasPrefix(b[s:], n.text) && (best < 0 || len(n.text) > len(m.needles[best].text)) {
				best = i
			}
		}
		if best >= 0 {
			spans = append(spans, span{s, s + len(m.needles[best].text), m.needles[best].name})
		}
		if len(b)-s >= MinLength { // a beginning at the end
			for _, n := range m.needles {
				if len(n.text) > len(b)-s && bytes.HasPrefix(n.text, b[s:]) {
					if best < 0 {
						spans = append(spans, span{s, len(b), n.name})
					}
					spans[len(spans)-1].end = len(b)
					break
				}
			}
		}
	}
	var out strings.Builder
	at, end, name, marks := 0, -1, int32(-1), 0
	for _, s := range spans {
		if s.start < end || s.start == end && s.name == name {
			end = max(end, s.end)
			at = max(at, end)
			continue
		}
		out.Write(b[at:s.start])
		out.WriteString(Mark(m.names[s.name]))
		marks++
		at, end, name = s.end, s.end, s.name
	}
	out.Write(b[at:])
	return out.String(), marks
}

// streamed sends b through a Writer in the given cuts.
func streamed(t interface{ Fatal(...any) }, m *Matcher, b []byte, cuts []int) (string, int) {
	var out bytes.Buffer
	var tally Tally
	w := m.Writer(&out, &tally)
	w.short = 0 // no releases: they depend on time
	for _, n := range cuts {
		n = min(n, len(b))
		if k, err := w.Write(b[:n]); k != n || err != nil {
			t.Fatal("write:", k, err)
		}
		b = b[n:]
	}
	_, _ = w.Write(b)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	marks := 0
	for _, c := range tally.Counts() {
		marks += c.Count
	}
	return out.String(), marks
}

// values draws a few values, from few letters so that they share parts.
func values(t *rapid.T) []Value {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Value {
		letters := rapid.SampledFrom([]string{"ab", "abc+/", "x%\"\\ \n", alphanumeric, "\x00\xff\xfe"}).Draw(t, "letters")
		n := rapid.SampledFrom([]int{16, 17, 18, 20, 33, 80, 81, 150, 200}).Draw(t, "length")
		b := make([]byte, n)
		for i := range b {
			b[i] = letters[rapid.IntRange(0, len(letters)-1).Draw(t, "letter")]
		}
		return Value{rapid.SampledFrom([]string{"A", "B", "C"}).Draw(t, "name"), string(b)}
	}), 1, 5).Draw(t, "values")
}

// text draws a text that holds forms of the values, whole, cut and side by
// side, between other bytes.
func text(t *rapid.T, m *Matcher) []byte {
	var b []byte
	for range rapid.IntRange(0, 8).Draw(t, "pieces") {
		n := m.needles[rapid.IntRange(0, len(m.needles)-1).Draw(t, "needle")].text
		switch rapid.IntRange(0, 4).Draw(t, "kind") {
		case 0, 1:
			b = append(b, n...)
		case 2:
			b = append(b, n[:rapid.IntRange(0, len(n)).Draw(t, "cut")]...)
		case 3:
			b = append(b, n[rapid.IntRange(0, len(n)).Draw(t, "from"):]...)
		default:
			b = append(b, rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "other")...)
		}
	}
	return b
}

// TestLaws: what comes out is what the plain definition says, however the
// stream is cut, and so also of the whole text at once.
func TestLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := New(values(t))
		b := text(t, m)
		want, marks := slowly(m, b)
		cuts := rapid.SliceOfN(rapid.IntRange(0, 30), 0, 60).Draw(t, "cuts")
		if got, n := streamed(t, m, b, cuts); got != want || n != marks {
			t.Fatalf("in pieces: got %q (%d marks), want %q (%d) of %q", got, n, want, marks, b)
		}
		if got := m.Text(string(b), nil); got != want {
			t.Fatalf("at once: got %q, want %q", got, want)
		}
		if _, found := m.Find(b); found != (len(m.scan(b, nil)) > 0) || marks == 0 && found {
			t.Fatalf("Find says %v, %d marks", found, marks)
		}
	})
}

// TestNothingElse: bytes in which no value occurs come out as they are, binary
// ones too.
func TestNothingElse(t *testing.T) {
	m := New([]Value{{"A", "correct horse battery staple"}, {"B", strings.Repeat("0123456789abcdef", 20)}})
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")
		cuts := rapid.SliceOfN(rapid.IntRange(0, 9), 0, 40).Draw(t, "cuts")
		if got, n := streamed(t, m, b, cuts); got != string(b) || n != 0 {
			t.Fatalf("got %q with %d marks, want %q", got, n, b)
		}
	})
}

func FuzzWriter(f *testing.F) {
	f.Add([]byte("before ghp_0123456789abcdefghij after"), uint8(3), "ghp_0123456789abcdefghij")
	f.Add([]byte("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"), uint8(1), "aaaaaaaaaaaaaaaaa")
	f.Add([]byte("\x00\xff\x00\xff\x00\xff\x00\xff\x00\xff\x00\xff\x00\xff\x00\xff\x00"), uint8(7), "\x00\xff\x00\xff\x00\xff\x00\xff\x00\xff\x00\xff\x00\xff\x00\xff")
	f.Fuzz(func(t *testing.T, b []byte, cut uint8, value string) {
		if len(b) > 4096 || len(value) > 512 {
			return
		}
		m := New([]Value{{"X", value}, {"Y", "a value that is there always"}})
		var cuts []int
		for n := 0; n < len(b); n += int(cut) + 1 {
			cuts = append(cuts, int(cut)+1)
		}
		want, marks := slowly(m, b)
		if got, n := streamed(t, m, b, cuts); got != want || n != marks {
			t.Fatalf("got %q (%d), want %q (%d)", got, n, want, marks)
		}
	})
}
