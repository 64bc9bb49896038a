package stream

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/tether-sandbox/tether/internal/need"
	"pgregory.net/rapid"
)

// through filters in, cut into writes of the given size (0: one write).
func through(t interface{ Fatalf(string, ...any) }, in string, size int) (string, *Filter) {
	var out bytes.Buffer
	f := NewFilter(&out)
	if size <= 0 {
		size = max(len(in), 1)
	}
	for p := []byte(in); len(p) > 0; {
		k := min(size, len(p))
		if n, err := f.Write(p[:k]); n != k || err != nil {
			t.Fatalf("write: got %d, %v; want %d", n, err, k)
		}
		p = p[k:]
	}
	if err := f.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	return out.String(), f
}

const fffd = "\ufffd"

func TestFilterPasses(t *testing.T) {
	for _, c := range []struct{ why, in string }{
		{"text", "plain text, äöü €, 日本語, 😀, \u0085 and a real \ufffd"},
		{"C0 controls", "a\tb\r\nc\bd\x07e\x00f\x0e\x0f\x11\x13\x7f"},
		{"colours", "\x1b[1;31mred\x1b[0m \x1b[38;2;1;2;3m\x1b[38:5:9m\x1b[4:3m"},
		{"cursor and erase", "\x1b[2J\x1b[H\x1b[10;20H\x1b[K\x1b[999999C\x1b7\x1b8\x1bM\x1b[3J"},
		{"modes", "\x1b[?1049h\x1b[?25l\x1b[?1000;1006h\x1b[?2004h\x1b[?2026h\x1b[>4;2m\x1b[>1u\x1b[<u"},
		{"titles", "\x1b]0;both\x07\x1b]2;window — ü\x1b\\\x1b]1;icon\x07\x1b[22;0t\x1b[23;0t\x1bktitle\x1b\\"},
		{"resize and size reports: numbers only", "\x1b[8;24;80t\x1b[14t\x1b[16t\x1b[18t"},
		{"device attributes: fixed form", "\x1b[c\x1b[>c\x1b[=c\x1bZ"},
		{"status and cursor position: fixed form", "\x1b[5n\x1b[6n\x1b[?6n\x1b[?996n"},
		{"mode and version queries: fixed form", "\x1b[?2026$p\x1b[>q\x1b[?u\x1b[x"},
		{"setting colours", "\x1b]10;#ffffff\x07\x1b]4;1;rgb:ff/00/00\x1b\\\x1b]104\x07\x1b]111\x07"},
		{"links", "\x1b]8;;https://example.com/?q=1\x1b\\text\x1b]8;;\x1b\\\x1b]8;id=1;file:///etc\x07x\x1b]8;;\x07"},
		{"progress and notes", "\x1b]9;4;1;50\x07\x1b]9;Build is done\x07\x1b]777;notify;t;b\x07"},
		{"prompt marks", "\x1b]133;A\x07$ \x1b]133;B\x07"},
		{"line drawing and UTF-8", "\x1b(0lqk\x1b(B\x1b)0\x1b%G"},
		{"sixels", "\x1bP0;1;0q\"1;1;2;2#0;2;0;0;0#0!2~-\n!2~\x1b\\"},
		{"synchronized output", "\x1bP=1s\x1b\\x\x1bP=2s\x1b\\"},
		{"iTerm2 picture", "\x1b]1337;File=name=eA==;size=3;inline=1:QUJD\x07"},
		{"kitty picture with its data", "\x1b_Ga=T,f=100,m=1;QUJD\x1b\\\x1b_Gm=0;QUJD\x1b\\"},
		{"reset", "\x1bc\x1b[!p\x1b#8"},
	} {
		t.Run(c.why, func(t *testing.T) {
			for _, size := range []int{0, 1, 3} {
				got, f := through(t, c.in, size)
				if got != c.in {
					t.Errorf("writes of %d: got %q, want it unchanged: %q", size, got, c.in)
				}
				if f.Dropped() != (Dropped{}) {
					t.Errorf("dropped: got %+v, want none", f.Dropped())
				}
			}
		})
	}
}

func TestFilterDrops(t *testing.T) {
	clip, report, other := Dropped{Clipboard: 1}, Dropped{Reports: 1}, Dropped{Other: 1}
	for _, c := range []struct {
		why, in, out string
		dropped      Dropped
	}{
		{"clipboard set, BEL", "\x1b]52;c;QUJD\x07", "", clip},
		{"clipboard set, ST", "\x1b]52;c;QUJD\x1b\\", "", clip},
		{"clipboard read", "\x1b]52;c;?\x07", "", clip},
		{"clipboard, number padded", "\x1b]0052;c;QUJD\x07", "", clip},
		{"clipboard, number odd", "\x1b]+52;c;QUJD\x07", "", other},
		{"clipboard, control inside", "\x1b]52;\nc;QUJD\x07", "", clip},
		{"clipboard, never ended", "\x1b]52;c;QUJD", "", clip},
		{"clipboard, larger than what is held", "\x1b]52;c;" + strings.Repeat("QUJD", maxHeld) + "\x07", "", clip},
		{"clipboard of iTerm2", "\x1b]1337;Copy=:QUJD\x07", "", clip},
		{"clipboard of iTerm2, streamed", "\x1b]1337;CopyToClipboard=\x07", "", clip},
		{"clipboard of kitty", "\x1b]5522;type=write\x1b\\", "", clip},
		{"paste events of kitty", "\x1b[?5522h", "", clip},
		{"clipboard through tmux", "\x1bPtmux;\x1b\x1b]52;c;QUJD\x07\x1b\\", "\x1b\\", Dropped{Clipboard: 1, Other: 1}},
		{"clipboard through screen", "\x1bP\x1b]52;c;QUJD\x07\x1b\\", "\x1b\\", Dropped{Clipboard: 1, Other: 1}},
		{"8-bit OSC is no control in UTF-8", "\x9d52;c;QUJD\x07", fffd + "52;c;QUJD\x07", Dropped{}},
		{"8-bit OSC, encoded", "\u009d52;c;QUJD\x07", fffd + "52;c;QUJD\x07", Dropped{}},
		{"8-bit CSI", "\x9b21t", fffd + "21t", Dropped{}},
		{"8-bit DCS, encoded", "\u0090$qm\x1b\\", fffd + "$qm\x1b\\", Dropped{}},
		{"overlong ESC", "\xc0\x9b]52;c;QUJD\x07", fffd + fffd + "]52;c;QUJD\x07", Dropped{}},
		{"answer-back", "a\x05b", "ab", report},
		{"answer-back inside a sequence", "\x1b[3\x051m", "\x1b[31m", report},
		{"title report", "\x1b[21t", "", report},
		{"icon report", "\x1b[20t", "", report},
		{"title report, number wraps", "\x1b[4294967317t", "", report},
		{"title report, more parameters", "\x1b[21;0t", "", report},
		{"DECRQSS", "\x1bP$q\"p\x1b\\", "", report},
		{"XTGETTCAP", "\x1bP+q544e\x1b\\", "", report},
		{"colour query", "\x1b]11;?\x07", "", report},
		{"palette query", "\x1b]4;1;?\x07", "", report},
		{"palette set and query", "\x1b]4;1;red;2;?\x07", "", report},
		{"font query", "\x1b]50;?\x07", "", report},
		{"screen checksum", "\x1b[1;1;1;1;1;1*y", "", report},
		{"terminal state", "\x1b[1$u", "", report},
		{"rxvt's display report", "\x1b[7n", "", report},
		{"rxvt's graphics query", "\x1bGQ", "Q", report},
		{"iTerm2 variable", "\x1b]1337;ReportVariable=cGF0aA==\x07", "", report},
		{"file to the downloads", "\x1b]1337;File=name=eA==:QUJD\x07", "", other},
		{"file to the downloads, key twice", "\x1b]1337;File=inline=1;inline=0:QUJD\x07", "", other},
		{"printer", "\x1b[5i", "", other},
		{"macro", "\x1b[1*z", "", other},
		{"function keys", "\x1bP0;1|17/6c73\x1b\\", "", other},
		{"tmux control mode", "\x1bP1000p\x1b\\", "", other},
		{"kitty remote control", "\x1bP@kitty-cmd{}\x1b\\", "", other},
		{"kitty reads a file", "\x1b_Ga=T,t=f;L2V0Yw==\x1b\\", "", other},
		{"kitty deletes a file", "\x1b_Ga=T,t=d,t=t;L2V0Yw==\x1b\\", "", other},
		{"ConEmu macro", "\x1b]9;6;\"x\"\x07", "", other},
		{"link that starts a program", "\x1b]8;;ssh://-oProxyCommand=x\x07x\x1b]8;;\x07", "x\x1b]8;;\x07", other},
		{"command line for the editor to rerun", "\x1b]633;E;rm\x07", "", other},
		{"leaving UTF-8", "\x1b%@", "", other},
		{"VT52", "\x1b[?2l", "", other},
		{"unknown string", "\x1b]4711;x\x07", "", other},
		{"SOS and PM", "\x1bXa\x1b\\\x1b^b\x1b\\", "", Dropped{Other: 2}},
		{"console palette, without ST", "\x1b]P1aabbcctext\x1b]Rmore", "textmore", Dropped{Other: 2}},
		{"title with a control", "\x1b]0;a\nb\x07c", "c", other},
		{"title cut off by colour", "\x1b]0;a\x1b[1mb", "\x1b[1mb", other},
		{"title cut off by CAN", "\x1b]0;a\x18b", "b", other},
		{"sixels cut off are ended", "\x1bPq#0\x1b[1m", "\x1bPq#0\x1b\\\x1b[1m", Dropped{}},
		{"a letter before sixels", "\x1bPéq#0\x1b\\", "", other},
		{"sixels without an end", "\x1bPq#0", "\x1bPq#0\x1b\\", Dropped{}},
		{"sixels with a control", "\x1bPq#0\x05x\x1b\\y", "\x1bPq#0\x1b\\y", other},
		{"unfinished sequence", "a\x1b[3", "a", Dropped{}},
		{"unfinished character", "a\xe2\x82", "a" + fffd + fffd, Dropped{}},
		{"pieces do not join", "\x1b\x1b]52;c;QUJD\x07]52;c;QUJD\x07", "]52;c;QUJD\x07", clip},
		{"letter inside CSI", "\x1b[3é1m", "é1m", Dropped{}},
		{"controls inside CSI come first", "\x1b[3\n1m", "\n\x1b[31m", Dropped{}},
		{"CSI out of order", "\x1b[1?2h", "", other},
	} {
		t.Run(c.why, func(t *testing.T) {
			for _, size := range []int{0, 1, 3} {
				got, f := through(t, c.in, size)
				if got != c.out {
					t.Errorf("writes of %d: got %q, want %q", size, got, c.out)
				}
				if f.Dropped() != c.dropped {
					t.Errorf("writes of %d: dropped: got %+v, want %+v", size, f.Dropped(), c.dropped)
				}
			}
		})
	}
}

// piece draws from what makes sequences, so that random inputs reach deep.
func pieces() *rapid.Generator[string] {
	return rapid.Map(rapid.SliceOfN(rapid.SampledFrom([]string{
		"\x1b", "\x1b", "\x1b]", "\x1b[", "\x1bP", "\x1b_G", "\x1b\\", "\x07", "\x18", "\x05", "\n", "\x7f",
		"52", ";", "c;", "QUJD", "?", ":", "q", "$q", "+q", "tmux;", "1337;", "File=", "inline=1", "Copy=", "t=f", "t=d", ",",
		"21", "t", "m", "h", "l", "8;;", "http:", "0;", "k", "X", "^", "%", "@", "G", "R", "P", "9;", "4;",
		"\xc2", "\x9b", "\x9d", "\x90", "\x80", "\xe2", "\xc0", "é", "€", "\u009d", "\u009b", "\u0085", "text",
	}), 0, 40), func(s []string) string { return strings.Join(s, "") })
}

func TestFilterLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := pieces().Draw(t, "in")
		size := rapid.IntRange(1, 9).Draw(t, "size")
		checkLaws(t, in, size)
	})
}

func TestFilterKeepsText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.String().Filter(func(s string) bool {
			return !strings.ContainsFunc(s, func(r rune) bool { return r == esc || r == enq || c1(r) })
		}).Draw(t, "in")
		if got, _ := through(t, in, rapid.IntRange(1, 9).Draw(t, "size")); got != in {
			t.Fatalf("got %q, want %q", got, in)
		}
	})
}

func FuzzFilter(f *testing.F) {
	f.Add("\x1b]52;c;QUJD\x07", 1)
	f.Add("\x1bPtmux;\x1b\x1b]52;c;QUJD\x07\x1b\\", 3)
	f.Add("\x1b[31mred\x1b[0m\x9d52;c;x\x07", 2)
	f.Add("\x1bPq#0!2~\x1b\\\x1b]1337;File=inline=1:QUJD\x07", 5)
	f.Fuzz(func(t *testing.T, in string, size int) { checkLaws(t, in, size) })
}

type failer interface {
	Helper()
	Fatalf(string, ...any)
}

func checkLaws(t failer, in string, size int) {
	t.Helper()
	whole, a := through(t, in, 0)
	cut, b := through(t, in, size)
	if whole != cut || a.Dropped() != b.Dropped() || a.modes != b.modes {
		t.Fatalf("writes of %d of %q: got %q %+v, want %q %+v", size, in, cut, b.Dropped(), whole, a.Dropped())
	}
	if again, _ := through(t, whole, 0); again != whole {
		t.Fatalf("twice: got %q, want %q", again, whole)
	}
	if why := harm(whole); why != "" {
		t.Fatalf("%s in %q, from %q", why, whole, in)
	}
	if cap(a.held) > 2*maxHeld {
		t.Fatalf("held: got %d bytes, want at most %d", cap(a.held), 2*maxHeld)
	}
}

// harm reads a terminal's input as distrustfully as it can: every place where
// any terminal might see an introducer counts, whatever came before it.
func harm(s string) string {
	if !utf8.ValidString(s) {
		return "invalid UTF-8"
	}
	for i, r := range s {
		rest := s[i:]
		switch {
		case r == enq:
			return "ENQ"
		case r >= 0x80 && r <= 0x9f && r != 0x85:
			return "C1"
		case r != esc:
			continue
		case rest == "\x1b":
			return "lone ESC at the end"
		}
		switch body := rest[2:]; rest[1] {
		case ']':
			end := strings.IndexAny(body, "\x07\x1b")
			if end < 0 || body[end] == esc && !strings.HasPrefix(body[end:], "\x1b\\") {
				return "OSC without end"
			}
			number, data, _ := strings.Cut(body[:end], ";")
			number = strings.TrimLeft(number, "0")
			switch {
			case strings.Trim(number, "0123456789") != "":
				return "OSC with an odd number"
			case number == "52" || number == "50" || number == "5522" || strings.HasPrefix(data, "Copy"):
				return "OSC " + number
			case (number == "4" || len(number) == 2 && number[0] == '1') && strings.Contains(data, "?"):
				return "colour query"
			case number == "1337" && strings.HasPrefix(data, "File=") && !strings.Contains(data, "inline=1"):
				return "file"
			}
		case 'P', '_', '^', 'X', 'k':
			end := strings.IndexAny(body, "\x1b")
			if end < 0 || !strings.HasPrefix(body[end:], "\x1b\\") {
				return "string without end"
			}
			if strings.ContainsAny(body[:end], "\x05\x07\x18\x1a") {
				return "string with a control"
			}
			head := strings.TrimLeft(body[:end], "0123456789;")
			if rest[1] == 'P' && head != "=1s" && head != "=2s" && !strings.HasPrefix(head, "q") {
				return "DCS " + head
			}
			if rest[1] == '_' && (strings.Contains(head, ",t=f") || head[:1] != "G") {
				return "APC " + head
			}
		case '[':
			end := strings.IndexFunc(body, func(r rune) bool { return r >= '@' && r <= '~' })
			if end < 0 || strings.ContainsFunc(body[:end], func(r rune) bool { return r < ' ' || r > '?' }) {
				return "CSI without end"
			}
			if p := strings.TrimLeft(body[:end], "0"); body[end] == 't' && (p == "21" || strings.HasPrefix(p, "21;")) || body[end] == 'i' {
				return "CSI " + body[:end+1]
			}
		case '%':
			if body != "" && body[0] != 'G' {
				return "ESC %"
			}
		case 'G', esc, '\n':
			return "ESC " + rest[1:2]
		}
	}
	return ""
}

func TestHarmSeesHarm(t *testing.T) { // the control for the laws above
	for _, s := range []string{"\x1b]52;c;x\x07", "\x1b]11;?\x07", "\x1bPtmux;\x1b\\", "\x9d", "\u009d", "\x05", "\x1b[21t", "a\x1b", "\x1b]0;a"} {
		if harm(s) == "" {
			t.Errorf("%q: nothing found", s)
		}
	}
}

func TestFilterIsLinear(t *testing.T) {
	spent := func(n int, unit string) time.Duration {
		in := strings.Repeat(unit, n/len(unit))
		best := time.Hour
		for range 3 {
			best = min(best, need.Spent(func() { through(t, in, 4096) }))
		}
		return best
	}
	for _, unit := range []string{"\x1b]0;", "\x1b]1337;File=:::::", "\x1bP111q", "\x1b[1;", "\x1b_Gt=d,", "\xe2\x82", "\x1bP" + strings.Repeat("1", 8000) + strings.Repeat("q", 8000), "\x1b]52;"} {
		small, large := spent(1<<15, unit), spent(1<<18, unit)
		if large > 40*small+20*time.Millisecond { // 8 times would be exact
			t.Errorf("%.12q: got %v for 256 KiB, %v for 32 KiB", unit, large, small)
		}
	}
}

func TestUndo(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"text\n", ""},
		{"\x1b[31mred\x1b[0m", ""},
		{"\x1b[31mred", "\x1b[m"},
		{"\x1b[?1049h\x1b[?25l\x1b[?1002;1006h", "\x1b[?1002l\x1b[?1006l\x1b[?1049l\x1b[?25h"},
		{"\x1b[?1049h\x1b[?1049l\x1b[?25l\x1b[?25h", ""},
		{"\x1b[>1u\x1b[>5u\x1b[<u", "\x1b[<1u"},
		{"\x1b(0q\x1b=", "\x1b>\x1b(B"},
		{"\x1b[2;5r", "\x1b7\x1b[r\x1b8"},
		{"\x1b[?1000h\x1bc", ""},
		{"\x1b[?1004h\x1b]0;x\x07", "\x1b[?1004l"},
	} {
		_, f := through(t, c.in, 0)
		if got := string(f.Undo()); got != c.want {
			t.Errorf("%q: got %q, want %q", c.in, got, c.want)
		}
	}
}

func BenchmarkFilter(b *testing.B) {
	for name, unit := range map[string]string{"text": "The quick brown fox jumps over the lazy dog.\r\n", "colour": "\x1b[32mok\x1b[0m  \x1b[1mpkg/name\x1b[0m 0.12s\r\n", "unicode": "größer — 日本語 ✓\r\n"} {
		p := []byte(strings.Repeat(unit, 1400))
		b.Run(name, func(b *testing.B) {
			f := NewFilter(discard{})
			b.SetBytes(int64(len(p)))
			for b.Loop() {
				f.Write(p)
			}
		})
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
