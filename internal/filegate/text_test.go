package filegate

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tether-sandbox/tether/fault"
	"pgregory.net/rapid"
)

func TestDetect(t *testing.T) {
	for _, c := range []struct {
		raw  string
		want Encoding
		text string
	}{
		{"", UTF8, ""},
		{"plain\n", UTF8, "plain\n"},
		{"caf\xc3\xa9", UTF8, "café"},
		{"\xef\xbb\xbfx", UTF8BOM, "x"},
		{"\xff\xfeh\x00i\x00", UTF16LE, "hi"},
		{"\xfe\xff\x00h\x00i", UTF16BE, "hi"},
		{"\xff\xfeh\x00i", Binary, ""},
		{"caf\xe9 and more text", Latin1, "café and more text"},
		{"a\x00b", Binary, ""},
		{"\x01\x02\x03\x80", Binary, ""},
		{"\x7fELF\x01\x80", Binary, ""},
	} {
		got := detect([]byte(c.raw), false)
		if text := decode([]byte(c.raw), got, false); got != c.want || text != c.text {
			t.Errorf("%q: got %s %q, want %s %q", c.raw, got, text, c.want, c.text)
		}
	}
	if got := detect([]byte("caf\xc3"), true); got != UTF8 {
		t.Errorf("a character that is cut off: got %s", got)
	}
}

func TestLineRange(t *testing.T) {
	const text = "one\ntwo\nthree"
	for _, c := range []struct {
		first, last, most int
		want              string
		end               int
		cut               bool
	}{
		{1, 99, 99, text, 3, false},
		{2, 2, 99, "two\n", 2, false},
		{3, 9, 99, "three", 3, false},
		{4, 9, 99, "", 0, false},
		{1, 3, 8, "one\ntwo\n", 2, true},
		{1, 3, 7, "one\n", 1, true},
		{1, 3, 2, "on", 1, true},
		{3, 3, 5, "three", 3, false},
	} {
		got, end, cut := lineRange(text, c.first, c.last, c.most)
		if got != c.want || end != c.end || cut != c.cut {
			t.Errorf("%d-%d in %d: got %q %d %v, want %q %d %v", c.first, c.last, c.most, got, end, cut, c.want, c.end, c.cut)
		}
	}
	if got, _, cut := lineRange("é", 1, 1, 1); got != "" || !cut {
		t.Errorf("a character is cut in two: %q", got)
	}
}

func TestReplaceTable(t *testing.T) {
	for _, c := range []struct {
		name, raw, old, new string
		all                 bool
		want                string
		code                fault.Code
	}{
		{"once", "a b c", "b", "x", false, "a x c", ""},
		{"twice", "b b", "b", "x", false, "", fault.FileMismatch},
		{"overlapping is not once", "aaa", "aa", "x", false, "", fault.FileMismatch},
		{"all does not overlap", "aaa", "aa", "x", true, "xa", ""},
		{"delete", "abc", "b", "", false, "ac", ""},
		{"whole", "abc", "abc", "x", false, "x", ""},
		{"crlf", "a\r\nb\r\n", "a\nb", "c\nd", false, "c\r\nd\r\n", ""},
		{"crlf given", "a\r\nb\r\n", "a\r\nb", "c\r\nd", false, "c\r\nd\r\n", ""},
		{"mixed is exact", "a\r\nb\n", "a\nb", "x", false, "", fault.FileMismatch},
		{"mixed keeps", "a\r\nb\nc\r\n", "b", "x", false, "a\r\nx\nc\r\n", ""},
		{"bom", "\xef\xbb\xbfa", "a", "b", false, "\xef\xbb\xbfb", ""},
		{"utf-16", "\xff\xfea\x00\n\x00b\x00", "a\nb", "é", false, "\xff\xfe\xe9\x00", ""},
		{"utf-16 crlf", "\xff\xfea\x00\r\x00\n\x00b\x00", "a\nb", "\n", false, "\xff\xfe\r\x00\n\x00", ""},
		{"utf-16 in step", "\xff\xfe\x01\x61\x00\x62", "a", "x", false, "", fault.FileMismatch},
		{"latin-1", "caf\xe9 creme", "café", "thé", false, "th\xe9 creme", ""},
		{"latin-1 has no euro", "caf\xe9 creme", "café", "€", false, "", fault.FileUnfit},
		{"empty", "a", "", "b", false, "", fault.UsageInvalid},
		{"same", "a", "a", "a", false, "", fault.UsageInvalid},
		{"not utf-8", "a", "a", "\xff", false, "", fault.UsageInvalid},
		{"binary", "a\x00", "a", "b", false, "", fault.FileUnfit},
		{"too large", strings.Repeat("a", 100), "a", strings.Repeat("b", 100), true, "", fault.FileUnfit},
	} {
		got, err := replace([]byte(c.raw), &ReplaceRequest{Path: "f", Old: c.old, New: c.new, All: c.all}, 5000)
		if fault.CodeOf(err) != c.code || string(got.raw) != c.want {
			t.Errorf("%s: got %q (%v), want %q %s", c.name, got.raw, err, c.want, c.code)
		}
	}
	_, err := replace([]byte("x\n  foo\n"), &ReplaceRequest{Path: "f", Old: "\tfoo\n", New: ""}, 5000)
	if !strings.Contains(fault.HintOf(err), "line 2") {
		t.Errorf("nearly: got hint %q", fault.HintOf(err))
	}
}

// replaceLaw: what is not in a match stays, in its order, byte by byte.
func replaceLaw(t interface{ Fatalf(string, ...any) }, raw []byte, old, new string, all bool) {
	before := bytes.Clone(raw)
	got, err := replace(raw, &ReplaceRequest{Path: "f", Old: old, New: new, All: all}, 1<<20)
	if !bytes.Equal(raw, before) {
		t.Fatalf("the input was changed")
	}
	if err != nil {
		if fault.CodeOf(err) == fault.Internal {
			t.Fatalf("no code: %v", err)
		}
		return
	}
	if got.lineEnd == CRLF {
		old, new = withCRLF(old), withCRLF(new)
	}
	o, _ := encode(old, got.encoding)
	n, _ := encode(new, got.encoding)
	if got.count < 1 || !all && got.count != 1 {
		t.Fatalf("got %d places", got.count)
	}
	if len(got.raw) != len(raw)+got.count*(len(n)-len(o)) {
		t.Fatalf("%q: got %d bytes from %d", old, len(got.raw), len(raw))
	}
	if got.encoding == UTF16LE || got.encoding == UTF16BE {
		return
	}
	want := bytes.ReplaceAll(raw, o, n)
	if !all {
		want = bytes.Replace(raw, o, n, 1)
	}
	if !bytes.Equal(got.raw, want) {
		t.Fatalf("got %q, want %q", got.raw, want)
	}
}

func TestReplaceLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.SampledFrom([]string{"a", "b", "ab", "\n", "\r\n", "é", "\xe9", " ", "\x00", "\xff\xfe", "\xef\xbb\xbf", "aa"})
		raw := strings.Join(rapid.SliceOfN(piece, 0, 12).Draw(t, "raw"), "")
		old := strings.Join(rapid.SliceOfN(piece, 0, 3).Draw(t, "old"), "")
		new := strings.Join(rapid.SliceOfN(piece, 0, 3).Draw(t, "new"), "")
		replaceLaw(t, []byte(raw), old, new, rapid.Bool().Draw(t, "all"))
	})
}

func FuzzReplace(f *testing.F) {
	f.Add([]byte("a\r\nb\r\n"), "a\nb", "x", false)
	f.Add([]byte("\xff\xfea\x00b\x00"), "a", "é", true)
	f.Add([]byte("caf\xe9"), "é", "e", false)
	f.Fuzz(func(t *testing.T, raw []byte, old, new string, all bool) {
		if len(raw)*(1+len(new)) < 1<<20 {
			replaceLaw(t, raw, old, new, all)
		}
	})
}

// Latin-1 and UTF-8 are kept through viewing and encoding again.
func TestEncodingRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw := rapid.SliceOf(rapid.Byte()).Draw(t, "raw")
		enc := detect(raw, false)
		if enc != UTF8 && enc != Latin1 {
			return
		}
		text := decode(raw, enc, false)
		if back, ok := encode(text, enc); !ok || !bytes.Equal(back, raw) || !utf8.ValidString(text) {
			t.Fatalf("%s: got %q from %q", enc, back, raw)
		}
	})
}
