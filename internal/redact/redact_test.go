package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tether-sandbox/tether/fault"
)

const token = "ghp_Zx81/kQ+vLmN02_rTyUwPqAsDfGhJkL"

// TestForms: a value is found in every encoding, at every alignment, in the
// middle of something larger.
func TestForms(t *testing.T) {
	awkward := "p?ss w0rd/\"with\\ ~odd&=+%chars>"
	for _, v := range []string{token, awkward, strings.Repeat("k3Y!", 60)} {
		m := New([]Value{{"T", v}})
		cases := map[string]string{
			"raw":          v,
			"hex":          hex.EncodeToString([]byte(v)),
			"HEX":          strings.ToUpper(hex.EncodeToString([]byte(v))),
			"query escape": url.QueryEscape(v),
			"path escape":  url.PathEscape(v),
			"every byte":   string(inHex(nil, "%", v, upperHex)),
		}
		js, _ := json.Marshal(v)
		if !bytes.ContainsAny(js, "<>&") && !bytes.Contains(js, []byte(`\u00`)) {
			cases["json"] = string(js[1 : len(js)-1])
		}
		for before := range 4 {
			for after := range 4 {
				long := []byte("xyz"[:min(before, 3)] + v + "123"[:min(after, 3)])
				name := fmt.Sprint(before, after)
				cases["base64 "+name] = base64.StdEncoding.EncodeToString(long)
				cases["base64 url "+name] = base64.URLEncoding.EncodeToString(long)
			}
		}
		for name, text := range cases {
			for _, around := range []string{"", "a", "token=", "\x00\xff\n"} {
				in := around + text + around
				var tally Tally
				got := m.Text(in, &tally)
				if !strings.Contains(got, "[REDACTED:T]") || len(got) > len("[REDACTED:T]")+2*len(around)+12 {
					t.Errorf("%s of %q: got %q", name, v, got)
				}
				if c := tally.Counts(); len(c) != 1 || c[0] != (Count{"T", 1}) {
					t.Errorf("%s: counted %v", name, c)
				}
				if n, ok := m.FindString(in); !ok || n != "T" {
					t.Errorf("%s is not found", name)
				}
			}
		}
	}
}

func TestEdges(t *testing.T) {
	if New(nil) != nil || New([]Value{{"S", strings.Repeat("x", MinLength-1)}}) != nil {
		t.Error("values that are too short make a Matcher")
	}
	var none *Matcher
	if _, found := none.FindString(token); found || none.Text(token, nil) != token {
		t.Error("a nil Matcher finds something")
	}
	m := New([]Value{{"16", "abcdefgh12345678"}, {"LONG", "abcdefgh12345678-and-more"}, {"bad name]\n", "zyxwvuts87654321"}})
	for _, c := range []struct{ in, want string }{
		{"abcdefgh12345678", "[REDACTED:16]"},
		{"abcdefgh1234567", "abcdefgh1234567"},
		{"abcdefgh12345678-and-more", "[REDACTED:LONG]"},
		{"abcdefgh12345678-and-less", "[REDACTED:16]-and-less"},
		{"abcdefgh12345678abcdefgh12345678", "[REDACTED:16]"},
		{"abcdefgh12345678zyxwvuts87654321", "[REDACTED:16][REDACTED:bad_name__]"},
		{"abcdefgabcdefgh12345678", "abcdefg[REDACTED:16]"},
	} {
		if got := m.Text(c.in, nil); got != c.want {
			t.Errorf("%q: got %q, want %q", c.in, got, c.want)
		}
	}
}

func TestMarks(t *testing.T) {
	for text, want := range map[string]string{
		"a [REDACTED:X_1.b-c] b":                     "[REDACTED:X_1.b-c]",
		"[REDACTED:[REDACTED:A]":                     "[REDACTED:A]",
		"[REDACTED:]":                                "",
		"[REDACTED:A B]":                             "",
		"[REDACTED:A":                                "",
		"[redacted:A]":                               "",
		Mark(strings.Repeat("é", 90)):                Mark(strings.Repeat("_", 64)),
		"[REDACTED:" + strings.Repeat("x", 65) + "]": "",
	} {
		if got, found := FindMark(text); got != want || found != (want != "") {
			t.Errorf("%q: got %q %v, want %q", text, got, found, want)
		}
	}
}

// safeBuffer is a buffer that a timer may write.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func waitFor(t *testing.T, what string, get func() string, want string) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		if get() == want {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s: got %q, want %q", what, get(), want)
		}
	}
}

// TestQuiet: a prompt that ends like a value begins is shown, and what follows
// is still judged.
func TestQuiet(t *testing.T) {
	v := "Password-0123456789-abcdefghij"
	m := New([]Value{{"V", v}})
	var out safeBuffer
	w := m.Writer(&out, nil)
	w.short, w.long = 10*time.Millisecond, 40*time.Millisecond
	say := func(s string) {
		if _, err := w.Write([]byte(s)); err != nil {
			t.Fatal(err)
		}
	}
	say("login\nPass")
	if got := out.String(); got != "login\n" {
		t.Fatalf("at once: got %q", got)
	}
	waitFor(t, "a short beginning", out.String, "login\nPass")
	say("word")
	waitFor(t, "more of it", out.String, "login\nPassword")
	say("-0123456789-abcdefghij!")
	waitFor(t, "all of it", out.String, "login\nPassword[REDACTED:V]!")
	say(" " + v[:20])
	waitFor(t, "a long beginning", out.String, "login\nPassword[REDACTED:V]! [REDACTED:V]")
	say(v[20:25])
	time.Sleep(60 * time.Millisecond)
	say(v[25:] + ".")
	waitFor(t, "its end", out.String, "login\nPassword[REDACTED:V]! [REDACTED:V].")
	say(v[:3])
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the rest", out.String, "login\nPassword[REDACTED:V]! [REDACTED:V].Pas")
	if _, err := w.Write([]byte("x")); err == nil {
		t.Error("a closed writer takes more")
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestFailure(t *testing.T) {
	broken := errors.New("broken")
	w := New([]Value{{"T", token}}).Writer(failing{broken}, nil)
	for range 2 {
		if n, err := w.Write([]byte("x")); n != 0 || err != broken {
			t.Errorf("got %d %v", n, err)
		}
	}
	if err := w.Close(); err != broken {
		t.Errorf("close: got %v", err)
	}
}

// TestMemory: however much goes through, little is kept.
func TestMemory(t *testing.T) {
	var out countingWriter
	w := New([]Value{{"T", token}}).Writer(&out, nil)
	big := bytes.Repeat([]byte(token[:20]), 1<<18)
	if _, err := w.Write(big); err != nil {
		t.Fatal(err)
	}
	if len(w.held) > 300 || cap(w.in) > 1<<20 || cap(w.out) > 1<<20 {
		t.Errorf("kept: %d held, %d and %d for copies", len(w.held), cap(w.in), cap(w.out))
	}
	if w.Close(); int(out) != len(big)-20+len(Mark("T")) { // the end is the beginning of one
		t.Errorf("got %d bytes of %d", out, len(big))
	}
}

type countingWriter int

func (c *countingWriter) Write(p []byte) (int, error) {
	*c += countingWriter(len(p))
	return len(p), nil
}

// TestGuard: nothing of a secret, and nothing after it, is passed on.
func TestGuard(t *testing.T) {
	m := New([]Value{{"T", token}})
	for _, cut := range []int{1, 7, 1000} {
		var out bytes.Buffer
		g := m.Guard(&out)
		g.short = 0
		var err error
		for b := []byte("GET /?k=" + token + " HTTP/1.1\r\n"); len(b) > 0 && err == nil; b = b[min(cut, len(b)):] {
			_, err = g.Write(b[:min(cut, len(b))])
		}
		if cerr := g.Close(); fault.CodeOf(err) != fault.EgressSecret || cerr != err || out.String() != "GET /?k=" {
			t.Errorf("cut %d: got %q, %v, %v", cut, out.String(), err, cerr)
		}
	}
	var out bytes.Buffer
	g := m.Guard(&out)
	if _, err := g.Write([]byte("harmless " + token[:9])); err != nil || g.Close() != nil || out.String() != "harmless "+token[:9] {
		t.Errorf("got %q, %v", out.String(), err)
	}
}
