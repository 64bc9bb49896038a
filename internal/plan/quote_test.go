package plan

import (
	"strconv"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"
)

func TestInside(t *testing.T) {
	for _, c := range []struct {
		path, dir string
		want      bool
	}{
		{"/a", "/a", true},
		{"/a/b", "/a", true},
		{"/a/b/c", "/a/b", true},
		{"/ab", "/a", false},
		{"/a-b", "/a", false},
		{"/a", "/a/b", false},
		{"/b", "/a", false},
		{"/", "/", true},
		{"/a", "/", true},
		{"/", "/a", false},
	} {
		if got := inside(c.path, c.dir); got != c.want {
			t.Errorf("inside(%q, %q): got %v, want %v", c.path, c.dir, got, c.want)
		}
	}
}

func TestQuote(t *testing.T) {
	for in, want := range map[string]string{
		"/plain":        "/plain",
		"/with space":   "/with space",
		"/größe/日本":     "/größe/日本",
		"":              `""`,
		"/line\nbreak":  `"/line\nbreak"`,
		"/esc\x1b[2J":   `"/esc\x1b[2J"`,
		"/bad\xff":      `"/bad\xff"`,
		"/right\u202e":  `"/right\u202e"`,
		"/del\x7f":      `"/del\x7f"`,
		"/nbsp\u00a0":   `"/nbsp\u00a0"`,
		`/quote"inside`: `/quote"inside`,
	} {
		if got := quote(in); got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
}

// TestQuoteIsHarmless: whatever a file is called, nothing of it acts on a
// terminal, and no two names look the same.
func TestQuoteIsHarmless(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		path := string(rapid.SliceOf(rapid.Byte()).Draw(t, "path"))
		got := quote(path)
		if i := strings.IndexFunc(got, func(r rune) bool { return unicode.IsControl(r) || r == unicode.ReplacementChar }); i >= 0 {
			t.Fatalf("got %q, want no control character", got)
		}
		if back, err := strconv.Unquote(got); got != path && (err != nil || back != path) {
			t.Fatalf("got %q, which reads back as %q", got, back)
		}
	})
}
