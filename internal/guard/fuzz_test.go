package guard

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tether-sandbox/tether/internal/need"
	"github.com/tether-sandbox/tether/policy"
	"mvdan.cc/sh/v3/syntax"
	"pgregory.net/rapid"
)

// same says that two looks came to the same verdict for the same reason.
func same(a, b Verdict) bool {
	return a.Refused == b.Refused && a.Reason == b.Reason && a.Code == b.Code
}

// checkLaws holds any text to what must be true of all.
func checkLaws(t *testing.T, src string) {
	t.Helper()
	all := []Options{enforce(), advise(), readOnly(), {}}
	for _, o := range all {
		var v Verdict
		if d := need.Spent(func() { v = LookShell(src, o) }); d > 5*time.Second {
			t.Errorf("%.80q (%d bytes) took %v", src, len(src), d)
		}
		if v.Refused != (v.Err() != nil) || v.Refused && (v.Reason == "" || strings.ContainsAny(v.Reason, "\n\r\x00")) {
			t.Errorf("%.80q: refused %v, reason %q, error %v", src, v.Refused, v.Reason, v.Err())
		}
		if strings.HasSuffix(v.Reason, ownFault) || len(v.Notes) > 0 && v.Notes[len(v.Notes)-1].What == ownFault {
			t.Errorf("%.80q: a panic", src)
		}
		if len(v.Notes) > maxNotes {
			t.Errorf("%.80q: %d notes", src, len(v.Notes))
		}
	}
	strict := LookShell(src, enforce())
	note := LookShell(src, advise())
	if note.Refused {
		t.Errorf("%.80q: refused under a kernel: %s", src, note.Reason)
	}
	if strict.Refused != (len(note.Notes) > 0) {
		t.Errorf("%.80q: enforced %v (%s), but %d notes under a kernel", src, strict.Refused, strict.Reason, len(note.Notes))
	}
	// White space that means nothing changes nothing.
	for _, s := range []string{" " + src, "\t" + src, "\n\n" + src, src + "\n"} {
		if len(s) > maxSource || strings.HasSuffix(src, "\\") { // a line end after it means something
			continue
		}
		if got := LookShell(s, enforce()); !same(got, strict) {
			if _, err := parse(src); err == nil {
				t.Errorf("%.200q: %v (%s), with more white space %v (%s)", src, strict.Refused, strict.Reason, got.Refused, got.Reason)
			}
		}
	}
	// Nor does another root make a refusal, or read-only make an allowance.
	wide := enforce()
	wide.Roots = append(wide.Roots, "/srv/more")
	if v := LookShell(src, wide); v.Refused && !strict.Refused {
		t.Errorf("%.80q: refused with one more root: %s", src, v.Reason)
	}
	both := enforce()
	both.Commands = policy.Inspection
	if v := LookShell(src, both); strict.Refused && !v.Refused {
		t.Errorf("%.80q: read-only allows what is refused otherwise: %s", src, strict.Reason)
	}
	if v := LookShell("true\n"+src, enforce()); strict.Refused && !v.Refused {
		t.Errorf("%.80q: allowed after true", src)
	}
	if !strict.Refused {
		if v := LookShell("{\n"+src+"\n}; cat /etc/shadow", enforce()); !v.Refused {
			t.Errorf("%.80q: hides what follows it", src)
		}
	}
}

func FuzzLook(f *testing.F) {
	for _, s := range []string{
		"ls", `cat "$x"`, "cat <<X\n$(ls)\nX", `x=1; cat $x{a,b}`, `find . -exec sh -c 'ls' \;`, `sed -n '/a/,/b/{s/c/d/g;w x
}' f`,
		`awk '/a/{print $1 > "x"}' f`, `perl -ne '/x/ and print' f`, `git -c a.b=c log -- ':/x'`, `env -i A=b timeout 5 sh -c 'ls'`, `echo $((a[1]+2)) ${x:-y} ${#z}`,
		`for f in *.go; do cat "$f" | xargs -0 grep x; done`, `case $x in a|b) ls ;;& *) pwd; esac`, `f(){ :|f& };f`, `cat $'\x2f\u00e9\101'`, `cd a && cd .. || ls`, `[[ a -nt b && $x =~ ^y ]]`, `curl -d '{"a":"/b"}' https://x/y?z=/w`,
		"cat {a..z}/{1..3}", "a=(1 2 [3]=4)", "coproc x { ls; }", "jq --arg a b '.c' d", `tar -xf a -C b`, "ls \\\n  -l",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, src string) {
		if len(src) > 4096 {
			return
		}
		// A look that never ends must be seen as a failure, with its text.
		watch := time.AfterFunc(20*time.Second, func() { panic("endless: " + strconv.Quote(src)) })
		defer watch.Stop()
		checkLaws(t, src)
	})
}

// piecesOfShell make texts that parse more often than random bytes do.
var piecesOfShell = []string{
	"ls", "cat", "rm", "-rf", "/", "/etc/passwd", "..", "../x", "x", "sub/y", "*", "~", "$x", `"$x"`, "x=1", "x=/etc", "'a b'", `"a"`, "$(ls)", "`pwd`", "$((1+2))", "{a,b}", "{1..3}",
	"|", "&&", "||", ";", "&", "\n", "!", "(", ")", "{", "}", ">", "<", ">>", "2>&1", "<<<", "if", "then", "else", "fi", "for", "in", "do", "done", "while", "case", "esac", "f()", "f", "cd", "sh", "-c", "'ls'",
	"env", "xargs", "find", ".", "-exec", `\;`, "sed", "'s/a/b/'", "awk", "'{print}'", "grep", "-e", "git", "-C", "log", "--", "echo", "time", "[[", "]]", "-f", "export", "-n", "perl", "-ne", "'/x/'", "sort", "-o", "$'\\x2f'", "\\",
}

func TestLaws(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		words := rapid.SliceOfN(rapid.SampledFrom(piecesOfShell), 1, 14).Draw(rt, "words")
		checkLaws(t, strings.Join(words, " "))
	})
}

// Printed anew by the parser's own printer, a text means the same.
func TestLawReprinted(t *testing.T) {
	printer := syntax.NewPrinter()
	rapid.Check(t, func(rt *rapid.T) {
		src := strings.Join(rapid.SliceOfN(rapid.SampledFrom(piecesOfShell), 1, 10).Draw(rt, "words"), " ")
		f, err := parse(src)
		if err != nil {
			return
		}
		var b strings.Builder
		if err := printer.Print(&b, f); err != nil {
			return
		}
		if a, c := LookShell(src, enforce()), LookShell(b.String(), enforce()); a.Refused != c.Refused {
			rt.Errorf("%q: %v (%s), printed %q: %v (%s)", src, a.Refused, a.Reason, b.String(), c.Refused, c.Reason)
		}
	})
}

func BenchmarkLook(b *testing.B) {
	o := enforce()
	for b.Loop() {
		LookShell(`cd sub && go test ./... 2>&1 | tail -n 20`, o)
	}
}

// A text ten times as long takes about ten times as long, not a hundred.
func TestLinear(t *testing.T) {
	for _, unit := range []string{
		"true;", "true&&", "true|", "cat x{a,b} ", "x=1;", "f(){ ls; };f;", "(cat x);", "if ls;then ls;fi;", "cat 'a b' \"c$x\" ", "{", "[", "'a'", "/../", "a:b=", "$x", "-e x ", "echo $((1+1));", "for i in a;do ls;done;", "cd x;", "cd x&&", "(cd x;", "while :;do cd x;", "f(){ cat ../x; };cd a;f;", "x=$x;", "1+", "a,b,", "../", "<x ",
	} {
		took := [2]time.Duration{time.Hour, time.Hour}
		for try := 0; try < 3 && took[1] > 300*time.Millisecond; try++ {
			for i, n := range [2]int{20 << 10, 200 << 10} {
				src := "echo " + strings.Repeat(unit, n/len(unit))
				took[i] = min(took[i], need.Spent(func() { LookShell(src, advise()) }))
			}
		}
		if took[1] > 60*took[0] && took[1] > 500*time.Millisecond {
			t.Errorf("%q: 20 KiB in %v, 200 KiB in %v", unit, took[0], took[1])
		}
	}
}
