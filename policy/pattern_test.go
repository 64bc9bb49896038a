package policy_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tether-sandbox/tether/policy"
)

func TestPatterns(t *testing.T) {
	for _, tt := range []struct {
		pattern string
		yes, no []string
	}{
		{"creds.json", []string{"creds.json", "CREDS.JSON", "a/b/creds.json", "cred\u017f.json"}, []string{"creds.jsonx", "xcreds.json", "creds_json", "creds.json/x"}},
		{"*", []string{"a", ".a", "a/b", "\xff", ""}, nil},
		{"*.tok", []string{".tok", "a.tok", "a.b.tok", "x/y.tok", ".TOK"}, []string{"tok", "a.toke"}},
		{"a*b*c", []string{"abc", "aXbXc", "abbcc", "abcbc"}, []string{"ab", "acb", "abcd"}},
		{"a?c", []string{"abc", "aéc", "a\xffc"}, []string{"ac", "abbc"}},
		{"?", []string{"x", "é", "\xff"}, []string{"", "xy"}},
		{"[a-c]x", []string{"ax", "Cx"}, []string{"dx", "x"}},
		{"[A-C]x", []string{"ax", "Cx"}, []string{"dx"}},
		{"[!a-c]x", []string{"dx", "-x"}, []string{"ax", "Ax", "x"}},
		{"[^a]x", []string{"bx"}, []string{"ax", "Ax"}},
		{"[]]x", []string{"]x"}, []string{"x"}},
		{"[!]]x", []string{"ax"}, []string{"]x"}},
		{"[a-]x", []string{"ax", "-x"}, []string{"bx"}},
		{`[\]\-]x`, []string{"]x", "-x"}, []string{`\x`}},
		{"[k]x", []string{"kx", "Kx", "\u212ax"}, []string{"x"}},
		{"Straße", []string{"strasse", "STRASSE", "straße"}, []string{"strase"}},
		{"\u00c9t\u00e9", []string{"\u00e9t\u00c9"}, []string{"ete", "e\u0301te\u0301"}},
		{`\*`, []string{"*"}, []string{"a", `\*`}},
		{`\!a`, []string{"!a"}, []string{"a"}},
		{"a!", []string{"a!"}, []string{"a"}},
		{"~x", []string{"~x"}, []string{"x"}},
		{"\xff*", []string{"\xff", "\xffa"}, []string{"\xfe", "\ufffd"}},
		{"a/b", []string{"a/b", "A/B"}, []string{"b", "x/a/b", "a/b/c", "a"}},
		{"/b", []string{"b"}, []string{"a/b"}},
		{"a/*", []string{"a/b", "a/.b"}, []string{"a", "a/b/c"}},
		{"a/**", []string{"a/b", "a/b/c"}, []string{"a", "b/a/c", "ab"}},
		{"**/b", []string{"b", "a/b", "a/a/b"}, []string{"b/c", "ab"}},
		{"a/**/b", []string{"a/b", "a/x/b", "a/x/y/b", "a/b/b"}, []string{"ab", "a/bx", "x/a/b", "a"}},
		{"**/a/**/b/**", []string{"a/b/c", "x/a/b/c/d", "a/a/b/b/b"}, []string{"a/b", "a/c", "b/a/c"}},
		{"**/**/a/b", []string{"a/b", "x/a/b"}, []string{"a/x/b"}},
		{"*/x*/**/[yz]", []string{"a/x1/y", "a/x/b/c/z"}, []string{"x/y", "a/b/y", "a/x/b"}},
	} {
		ps, err := policy.CompilePatterns([]string{"never-there", tt.pattern})
		if err != nil {
			t.Errorf("%q: %v", tt.pattern, err)
			continue
		}
		for _, rel := range tt.yes {
			if !ps.MatchPath([]byte(rel)) {
				t.Errorf("%q: got no match of %q, want one", tt.pattern, rel)
			}
		}
		for _, rel := range tt.no {
			if ps.MatchPath([]byte(rel)) {
				t.Errorf("%q: got a match of %q, want none", tt.pattern, rel)
			}
		}
		if got, want := ps.HasPaths(), strings.Contains(tt.pattern, "/"); got != want {
			t.Errorf("%q: has paths: got %v, want %v", tt.pattern, got, want)
		}
	}
}

func TestPatternKinds(t *testing.T) {
	ps, err := policy.CompilePatterns([]string{"*.tok", "a/b"})
	if err != nil {
		t.Fatal(err)
	}
	if !ps.MatchName([]byte("x.tok")) || !ps.MatchPath([]byte("a/b")) {
		t.Error("control: the two patterns must match")
	}
	if ps.MatchName([]byte("b")) || ps.MatchName([]byte("a/b")) {
		t.Error("MatchName looked at a pattern with a slash")
	}
	var none policy.Patterns
	if none.MatchName([]byte("x")) || none.MatchPath([]byte("a/b")) || none.MatchPath(nil) || none.HasPaths() {
		t.Error("the zero Patterns matched something")
	}
}

func TestBadPatterns(t *testing.T) {
	for pattern, hint := range map[string]string{
		"":                        "leave it out",
		"/":                       "without them",
		"//a":                     "without them",
		"a//b":                    "without them",
		"a/":                      "a/** for what is in it",
		"./a":                     "without them",
		"a/../b":                  "without them",
		"..":                      "without them",
		"a/.":                     "without them",
		"~/a":                     "from the root",
		"!a":                      `\!`,
		"**":                      "write *",
		"a**":                     "backslash",
		"**a/b":                   "backslash",
		"a/b**/c":                 "backslash",
		"[":                       "backslash",
		"[]":                      "backslash",
		"[a":                      "backslash",
		"[a/b]":                   "backslash",
		"[!":                      "backslash",
		"[a-":                     "backslash",
		`[\`:                      "backslash",
		`[a-\`:                    "backslash",
		"[z-a]":                   "backslash",
		"[[:alpha:]]":             "backslash",
		`a\`:                      "backslash",
		`a\/b`:                    "backslash",
		"a\x00":                   "NUL",
		"\u200b":                  "backslash",
		strings.Repeat("a", 1025): "1024",
	} {
		ps, err := policy.CompilePatterns([]string{"*", pattern})
		switch hint {
		case "NUL":
			refused(t, err, "no file name")
		default:
			refused(t, err, hint)
		}
		if err == nil {
			t.Errorf("%q was taken", pattern)
		}
		if ps.MatchName([]byte("x")) {
			t.Errorf("%q: half of the patterns came back with the error", pattern)
		}
	}
	if _, err := policy.CompilePatterns([]string{strings.Repeat("a", 1024)}); err != nil {
		t.Errorf("a pattern of 1024 bytes: %v", err)
	}
}

// TestPatternsAgainstOracle compares with a matcher that tries everything.
func TestPatternsAgainstOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.StringMatching(`(\*\*/)?([ab*?]{1,4}|\[!?[a-b]\])(/(\*\*|[ab*?]{1,3})){0,3}`).Draw(t, "pattern")
		rel := rapid.StringMatching(`[abAB]{1,4}(/[ab]{1,3}){0,4}`).Draw(t, "rel")
		ps, err := policy.CompilePatterns([]string{pattern})
		if err != nil {
			t.Skip()
		}
		folded := strings.ToLower(rel)
		var want bool
		if strings.Contains(pattern, "/") {
			want = oraclePath(strings.Split(pattern, "/"), strings.Split(folded, "/"))
		} else {
			want = oracleName(pattern, folded[strings.LastIndexByte(folded, '/')+1:])
		}
		if got := ps.MatchPath([]byte(rel)); got != want {
			t.Errorf("%q on %q: got %v, want %v", pattern, rel, got, want)
		}
	})
}

func oraclePath(pattern, parts []string) bool {
	if len(pattern) == 0 {
		return len(parts) == 0
	}
	if pattern[0] == "**" {
		for i := range len(parts) + 1 {
			if (len(pattern) > 1 || i > 0) && oraclePath(pattern[1:], parts[i:]) {
				return true
			}
		}
		return false
	}
	return len(parts) > 0 && oracleName(pattern[0], parts[0]) && oraclePath(pattern[1:], parts[1:])
}

func oracleName(pattern, name string) bool {
	if pattern == "" {
		return name == ""
	}
	if pattern[0] == '*' {
		return oracleName(pattern[1:], name) || name != "" && oracleName(pattern, name[1:])
	}
	if name == "" {
		return false
	}
	switch pattern[0] {
	case '?':
		return oracleName(pattern[1:], name[1:])
	case '[':
		inside, rest, _ := strings.Cut(pattern[1:], "]")
		set, negated := strings.CutPrefix(inside, "!")
		return strings.Contains(set, name[:1]) != negated && oracleName(rest, name[1:])
	}
	return pattern[0] == name[0] && oracleName(pattern[1:], name[1:])
}

// TestPatternsDoNotBlowUp: the classic inputs for exponential matchers.
func TestPatternsDoNotBlowUp(t *testing.T) {
	ps, err := policy.CompilePatterns([]string{
		strings.Repeat("*a", 500) + "b",
		strings.Repeat("**/a*/", 150) + "b",
		strings.Repeat("*a*/", 200) + "b",
	})
	if err != nil {
		t.Fatal(err)
	}
	name := bytes.Repeat([]byte("a"), 255)
	rel := bytes.Repeat([]byte("a/"), 2000)
	start := time.Now()
	if ps.MatchName(name) || ps.MatchPath(append(rel, 'a')) {
		t.Error("got a match, want none")
	}
	if took := time.Since(start); took > time.Second {
		t.Errorf("took %v", took)
	}
}

func FuzzPatterns(f *testing.F) {
	for _, s := range []string{"*", "**/a", "a/**", "[a-z]?", `\[`, "[!]]", "é*", "\xff", "a*b*c/**/d"} {
		f.Add(s, "a/b/c")
	}
	f.Fuzz(func(t *testing.T, pattern, rel string) {
		ps, err := policy.CompilePatterns([]string{pattern})
		if err != nil {
			refused(t, err, "")
			return
		}
		got := ps.MatchPath([]byte(rel))
		for _, same := range sameName([]byte(rel)) {
			if bytes.ContainsRune(same, '\ufffd') || !bytes.Equal(bytes.ToValidUTF8(same, nil), same) || strings.ToValidUTF8(rel, "") != rel {
				continue
			}
			if ps.MatchPath(same) != got {
				t.Errorf("%q: got %v for %q, but %v for %q", pattern, got, rel, !got, same)
			}
		}
		base := rel[strings.LastIndexByte(rel, '/')+1:]
		if !ps.HasPaths() && ps.MatchName([]byte(base)) != got {
			t.Errorf("%q: MatchName and MatchPath differ on %q", pattern, rel)
		}
	})
}

func BenchmarkMatchName(b *testing.B) {
	ps, err := policy.CompilePatterns([]string{"creds.json", "*.secret", "*token*"})
	if err != nil {
		b.Fatal(err)
	}
	name := []byte("package-lock.json")
	b.ReportAllocs()
	for b.Loop() {
		ps.MatchName(name)
	}
}
