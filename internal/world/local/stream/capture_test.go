package stream

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestCaptureText(t *testing.T) {
	for _, c := range []struct {
		name    string
		limit   int64
		in      string
		want    string
		dropped int64
	}{
		{"empty", 8, "", "", 0},
		{"one below the limit", 8, "1234567", "1234567", 0},
		{"at the limit", 8, "12345678", "12345678", 0},
		{"one above the limit", 8, "123456789", "1234\n[... 1 bytes dropped ...]\n6789", 1},
		{"odd limit", 5, "123456789", "12\n[... 4 bytes dropped ...]\n789", 4},
		{"limit one keeps the end", 1, "abc", "\n[... 2 bytes dropped ...]\nc", 2},
		{"nothing kept", -1, "abc", "\n[... 3 bytes dropped ...]\n", 3},
		{"head cut inside a character", 8, "abcéxxxxxxwxyz", "abc\n[... 8 bytes dropped ...]\nwxyz", 8},
		{"tail cut inside a character", 8, "abcdxxxxx€yz", "abcd\n[... 8 bytes dropped ...]\nyz", 8},
		{"invalid bytes one by one", 64, "\xff\xfe\x00\r\n\x1b[31m", "\ufffd\ufffd\x00\r\n\x1b[31m", 0},
		{"no cut, so an unfinished character stays", 64, "a\xe2\x82", "a\ufffd\ufffd", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := NewCapture(c.limit)
			k.Write([]byte(c.in))
			got, truncated, dropped := k.Text()
			if got != c.want || dropped != c.dropped || truncated != (c.dropped > 0) {
				t.Errorf("got %q, %v, %d; want %q, %d", got, truncated, dropped, c.want, c.dropped)
			}
		})
	}
}

// naive keeps everything and cuts afterwards.
func naive(all []byte, limit int) (head, tail []byte) {
	if len(all) <= limit {
		return all, nil
	}
	return all[:limit/2], all[len(all)-(limit-limit/2):]
}

func TestCaptureEqualsNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 70).Draw(t, "limit")
		chunks := rapid.SliceOfN(rapid.SliceOfN(rapid.ByteRange(0xbe, 0xc4), 0, 90), 0, 12).Draw(t, "chunks")
		c := NewCapture(int64(limit))
		var all []byte
		for _, p := range chunks {
			if n, err := c.Write(p); n != len(p) || err != nil {
				t.Fatalf("write: got %d, %v; want %d", n, err, len(p))
			}
			all = append(all, p...)
			if cap(c.buf) > limit {
				t.Fatalf("memory: got %d bytes, want at most %d", cap(c.buf), limit)
			}
		}
		head, tail := c.Bytes()
		wantHead, wantTail := naive(all, limit)
		if !bytes.Equal(head, wantHead) || !bytes.Equal(tail, wantTail) {
			t.Fatalf("got %x | %x, want %x | %x", head, tail, wantHead, wantTail)
		}
		text, truncated, dropped := c.Text()
		if !utf8.ValidString(text) {
			t.Fatalf("not UTF-8: %q", text)
		}
		if truncated != (len(all) > limit) {
			t.Fatalf("truncated: got %v with %d of %d bytes", truncated, len(all), limit)
		}
		if truncated {
			kept := int64(len(trimEnd(head)) + len(trimStart(tail)))
			if kept+dropped != int64(len(all)) || c.Total() != int64(len(all)) {
				t.Fatalf("accounts: kept %d, dropped %d, total %d, want %d in all", kept, dropped, c.Total(), len(all))
			}
		}
	})
}

func TestCaptureOfTextIsText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.StringOf(rapid.RuneFrom([]rune("aé€😀\n"))).Draw(t, "in")
		c := NewCapture(int64(rapid.IntRange(1, 20).Draw(t, "limit")))
		for _, b := range []byte(in) {
			c.Write([]byte{b})
		}
		if text, _, _ := c.Text(); strings.ContainsRune(text, utf8.RuneError) {
			t.Fatalf("a cut split a character of %q: %q", in, text)
		}
	})
}

func TestCaptureSurvivesJSON(t *testing.T) {
	c := NewCapture(0)
	c.Write([]byte("\xff\xfe\x00\r\n\x1b[31m"))
	text, _, _ := c.Text()
	b, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	var back string
	if err := json.Unmarshal(b, &back); err != nil || back != text {
		t.Errorf("got %q, %v; want %q", back, err, text)
	}
}

func TestCaptureConcurrent(t *testing.T) {
	c := NewCapture(100)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 100 {
				c.Write([]byte("0123456789"))
				c.Text()
			}
		})
	}
	wg.Wait()
	if got := c.Total(); got != 4000 {
		t.Errorf("total: got %d, want 4000", got)
	}
}

func BenchmarkCapture(b *testing.B) {
	c := NewCapture(0)
	p := bytes.Repeat([]byte("x"), 64<<10)
	b.SetBytes(int64(len(p)))
	for b.Loop() {
		c.Write(p)
	}
}
