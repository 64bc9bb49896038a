package gitmeta

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tether-sandbox/tether/internal/need"
)

// list renders entries the way `git config --list -z` does.
func list(entries []Entry) []string {
	var out []string
	for _, e := range entries {
		if e.NoValue {
			out = append(out, e.Name)
		} else {
			out = append(out, e.Name+"\n"+e.Value)
		}
	}
	return out
}

var corpus = []struct {
	name, raw string
	want      []string // nil: an error
}{
	{"empty", "", []string{}},
	{"plain", "[core]\n\tbare = false\n", []string{"core.bare\nfalse"}},
	{"upper case", "[CORE]\n\tBare = False\n", []string{"core.bare\nFalse"}},
	{"one line", "[core] bare = true", []string{"core.bare\ntrue"}},
	{"two sections on a line", "[a] [b] c = 1", []string{"b.c\n1"}},
	{"quoted subsection keeps its case", "[remote \"Origin\"]url=x", []string{"remote.Origin.url\nx"}},
	{"subsection escapes", `[a "b\"c\\d\e"]k=v`, []string{`a.b"c\de.k` + "\nv"}},
	{"subsection with dots", `[a.b "c.d"]k=v`, []string{"a.b.c.d.k\nv"}},
	{"old subsection is lower case", "[Remote.Origin]url=x", []string{"remote.origin.url\nx"}},
	{"empty subsection", `[core ""]fsmonitor=x`, []string{"core..fsmonitor\nx"}},
	{"no value", "[a]\nb\nc=\n", []string{"a.b", "a.c\n"}},
	{"no value at the end", "[a]\nb", []string{"a.b"}},
	{"no value with space", "[a]\nb  \nc\t=d", []string{"a.b", "a.c\nd"}},
	{"key before a section", "b=c\n", []string{"b\nc"}},
	{"comments", "# x\n; y\n[a] # z\nb = c # d\ne = \"f#\";g\n", []string{"a.b\nc", "a.e\nf#"}},
	{"quotes inside", `[a]b = x "y  z" w`, []string{"a.b\nx y  z w"}},
	{"empty quotes keep space", `[a]b = x ""`, []string{"a.b\nx "}},
	{"escapes", `[a]b = "\t\n\b\\\""`, []string{"a.b\n\t\n\b\\\""}},
	{"continued", "[a]b = x \\\n  y\n", []string{"a.b\nx   y"}},
	{"continued comment is not", "[a]b = x # y\\\nc = d\n", []string{"a.b\nx", "a.c\nd"}},
	{"continued at the end", "[a]b = x\\", []string{"a.b\nx"}},
	{"quote over a continued line", "[a]b = \"x\\\ny\"", []string{"a.b\nxy"}},
	{"CRLF", "[a]\r\nb = c\r\nd\r\n", []string{"a.b\nc", "a.d"}},
	{"CRLF continued", "[a]\r\nb = c\\\r\nd\r\n", []string{"a.b\ncd"}},
	{"BOM", "\xef\xbb\xbf[a]b=c", []string{"a.b\nc"}},
	{"non-ASCII", "[a \"ü\"]b=\u00e9", []string{"a.ü.b\n\u00e9"}},
	{"partial BOM", "\xef\xbb[a]b=c", nil},
	{"empty section with a subsection", "[ \"x\"]\na=b", []string{".x.a\nb"}},
	{"a dot for a section", "[.]\na=b", []string{"..a\nb"}},
	{"empty section", "[]\na=b", nil},
	{"open header", "[a\n", nil},
	{"open quote", "[a]b=\"c\nd\"", nil},
	{"bad escape", `[a]b=\q`, nil},
	{"bad key", "[a]b_c=d", nil},
	{"key starts with a digit", "[a]1=d", nil},
	{"unquoted subsection", "[a b]c=d", nil},
	{"text behind the subsection", `[a "b" ]c=d`, nil},
	{"bad section", "[a/b]c=d", nil},
	{"key without =", "[a]b c", nil},
	{"comment in place of a value", "[a]b # c", nil},
	{"form feed is no space", "\f[a]b=c", nil},
}

func TestParse(t *testing.T) {
	for _, c := range corpus {
		entries, err := Parse([]byte(c.raw))
		if c.want == nil {
			if _, ok := errors.AsType[*SyntaxError](err); !ok {
				t.Errorf("%s: got %v, want a syntax error", c.name, err)
			}
			continue
		}
		if got := list(entries); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, %v, want %q", c.name, got, err, c.want)
		}
	}
	if _, err := Parse([]byte("[core]\nfsmonitor = a\x00b\n")); err == nil {
		t.Error("a NUL byte must be an error although git accepts it")
	}
}

func TestParsePlaces(t *testing.T) {
	raw := "[a]\n  b = c # d\n\te\r\n[f] g = \"h\\\ni\"\n"
	entries, err := Parse([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, raw[e.Start:e.End])
	}
	want := []string{"b = c # d", "e", "g = \"h\\\ni\""}
	if !slices.Equal(got, want) {
		t.Errorf("ranges: got %q, want %q", got, want)
	}
	for i, line := range []int{2, 3, 4} {
		if entries[i].Line != line {
			t.Errorf("%s: got line %d, want %d", entries[i].Name, entries[i].Line, line)
		}
	}
}

// gitList asks real git. It runs in an empty folder with no other
// configuration, and only lists.
func gitList(t testing.TB, git, dir string, raw []byte) ([]string, bool) {
	file := filepath.Join(dir, "config")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(git, "config", "--no-includes", "-f", file, "--list", "-z")
	cmd.Dir, cmd.Env = dir, []string{"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "HOME=" + dir}
	out, err := cmd.Output()
	if err != nil {
		return nil, false
	}
	var got []string
	for s := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if s != "" {
			got = append(got, s)
		}
	}
	return got, true
}

// agree compares with git. White space within values is compared as one kind:
// git before 2.45 turned each of it into a blank.
func agree(t testing.TB, git, dir string, raw []byte) {
	t.Helper()
	want, ok := gitList(t, git, dir, raw)
	entries, err := Parse(raw)
	if ok != (err == nil) {
		t.Fatalf("%q: git accepts it: %v, we say %v", raw, ok, err)
	}
	if !ok {
		return
	}
	blank := strings.NewReplacer("\t", " ", "\r", " ")
	got := list(entries)
	for i := range got {
		got[i] = blank.Replace(got[i])
	}
	for i := range want {
		want[i] = blank.Replace(want[i])
	}
	if !slices.Equal(got, want) {
		t.Fatalf("%q:\n got %q\nwant %q", raw, got, want)
	}
}

func TestParseAsGitDoes(t *testing.T) {
	git, dir := need.Program(t, "git"), t.TempDir()
	for _, c := range corpus {
		agree(t, git, dir, []byte(c.raw))
	}
	rapid.Check(t, func(r *rapid.T) { agree(t, git, dir, []byte(configText().Draw(r, "config"))) })
}

// configText draws texts that are nearly configurations.
func configText() *rapid.Generator[string] {
	piece := rapid.SampledFrom([]string{
		"[core]", "[a \"b\"]", "[A.B]", "[remote \"O\\\"x\"]", "[", "]", "\"", "\\", "\\n", "\\\"", "\n", "\r\n",
		"\r", " ", "\t", "=", " = ", "key", "Key-1", "bare", "url", "#", ";", "x", "true", "\xef\xbb\xbf", "ü",
		"-", "_", ".", "https://u:p@h/x", "\nkey = value\n", "\n\tfsmonitor = ./x\n", "password", "token",
	})
	return rapid.Custom(func(r *rapid.T) string {
		head := rapid.SampledFrom([]string{"", "[core]\n", "[a \"b\"]\n\tc = "}).Draw(r, "head")
		return head + strings.Join(rapid.SliceOfN(piece, 0, 24).Draw(r, "pieces"), "")
	})
}

func FuzzParse(f *testing.F) {
	for _, c := range corpus {
		f.Add([]byte(c.raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		entries, err := Parse(raw)
		if err != nil {
			if out, _, err := Filtered(raw); err == nil || out != nil {
				t.Fatal("a broken file must not be shown")
			}
			return
		}
		at := 0
		for _, e := range entries {
			if e.Start < at || e.End < e.Start || e.End > len(raw) {
				t.Fatalf("%s: range %d-%d after %d of %d", e.Name, e.Start, e.End, at, len(raw))
			}
			at = e.End
		}
		filterLaws(t, raw)
		encodeLaw(t, entries)
		clean, _ := without(raw, entries, nil, "/w/.git", "/w")
		left, err := Parse(clean)
		if err != nil {
			t.Fatalf("without: %q no longer parses: %v", clean, err)
		}
		for _, e := range left {
			if Executable(e) && e.Name != "core.worktree" {
				t.Fatalf("without: %q still has %s", clean, e.Name)
			}
		}
	})
}

func encodeLaw(t testing.TB, entries []Entry) {
	t.Helper()
	var want []Entry
	for _, e := range entries {
		if e.Section != "" {
			want = append(want, e)
		}
	}
	back, err := Parse(Encode(want))
	if err != nil || !slices.Equal(list(back), list(want)) {
		t.Fatalf("encode: got %q, %v, want %q", list(back), err, list(want))
	}
}

func filterLaws(t testing.TB, raw []byte) {
	t.Helper()
	out, changed, err := Filtered(raw)
	if err != nil {
		t.Fatalf("%q: %v", raw, err)
	}
	if changed == bytes.Equal(out, raw) {
		t.Fatalf("%q: changed is %v for %q", raw, changed, out)
	}
	again, changed, err := Filtered(out)
	if err != nil || changed {
		t.Fatalf("not idempotent: %q became %q, %v", out, again, err)
	}
	before, _ := Parse(raw)
	after, err := Parse(out)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, e := range before {
		v, keep := withoutSecrets(e)
		if !keep {
			continue
		}
		if e.hasSubsection() {
			e.setName(e.Section + "." + withoutUserinfo(e.Subsection) + "." + e.Key)
		}
		e.Value = v
		want = append(want, list([]Entry{e})...)
	}
	if got := list(after); !slices.Equal(got, want) {
		t.Fatalf("%q:\n got %q\nwant %q", raw, got, want)
	}
}

func TestLaws(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		raw := []byte(configText().Draw(r, "config"))
		entries, err := Parse(raw)
		if err != nil {
			return
		}
		filterLaws(t, raw)
		encodeLaw(t, entries)
	})
}
