package guard

import (
	"bytes"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/tether-sandbox/tether/internal/need"
	"mvdan.cc/sh/v3/syntax"
	"pgregory.net/rapid"
)

// harmlessBits make words of quotes, escapes and braces. Running them is safe:
// no bit expands a variable, runs a command or names a file to open.
var harmlessBits = []string{
	"a", "b", "/", ".", "..", "1", "3", "x", "{", "}", "{", "}", ",", ",", "..", "\\", "\\\\", "\\{", "\\,", "'", "'", `"`, `"`, "' '", `" "`, `$'`, `'`, `\x41`, `\101`, `\u00e9`, `\n`, `\t`, `\'`, `\"`, "=", ":", "@", "-", "+", "0", "{1..3}", "{a..c}", "{3..1..2}", "{01..3}", "{a,b}", "{a,{b,c}}", "{,}", "\\\n", "%", "^", "#", "é",
}

// Where the guard says what a word becomes, Bash agrees.
func TestWordsAgreeWithBash(t *testing.T) {
	bash := need.Program(t, "bash")
	dir := t.TempDir()
	var words []string
	var want [][]string
	draw := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(harmlessBits), 1, 9).Draw(t, "bits"), "")
	})
	for seed := 0; len(words) < 3000 && seed < 30000; seed++ {
		src := draw.Example(seed)
		f, err := parse("printf '<%s>\\n' " + src)
		if err != nil || unreadable(src) != "" || len(f.Stmts) != 1 || strings.HasSuffix(src, "\\") {
			continue
		}
		call, ok := f.Stmts[0].Cmd.(*syntax.CallExpr)
		if !ok || len(f.Stmts[0].Redirs) > 0 || len(call.Args) < 3 {
			continue
		}
		var got []string
		known := true
		for _, w := range call.Args[2:] {
			for _, tok := range newScope().words(w) {
				known = known && tok.exact()
				got = append(got, tok.text)
			}
		}
		if known {
			words, want = append(words, src), append(want, got)
		}
	}
	if len(words) < 1000 {
		t.Fatalf("only %d words to compare", len(words))
	}
	var script strings.Builder
	for _, w := range words {
		script.WriteString("printf '%s\\0' " + w + "\nprintf '\\1\\0'\n")
	}
	cmd := exec.Command(bash, "--norc", "--noprofile", "-c", script.String())
	if script.Len() > 120<<10 { // more than one argument may hold
		cmd = exec.Command(bash, "--norc", "--noprofile", "-s")
		cmd.Stdin = strings.NewReader(script.String())
	}
	cmd.Dir, cmd.Env = dir, []string{"LC_ALL=C.UTF-8", "PATH=/nonexistent"}
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("bash: %v", err)
	}
	results := bytes.Split(out, []byte("\x01\x00"))
	if len(results) != len(words)+1 {
		t.Fatalf("bash gave %d results for %d words", len(results)-1, len(words))
	}
	for i, w := range words {
		got := strings.Join(want[i], "\x00") + "\x00"
		if string(results[i]) != got {
			t.Errorf("word %q: the guard reads %q, bash %q", w, got, results[i])
		}
	}
	t.Logf("%d words agree", len(words))
}

// What Bash refuses to parse runs nothing; what it parses and the guard's
// parser does not is refused. Between them lie texts that both read: of those
// that are allowed, Bash must not start a command that the guard did not see.
// The commands are functions that report their names, so nothing else runs.
func TestCommandsAgreeWithBash(t *testing.T) {
	bits := []string{"ok", "bad", "ok x", "bad y", ";", "&&", "||", "|", "&", "\n", "(", ")", "{ ", "; }", "!", "if ok; then ", "else ", "fi", "; fi", "$(", "`", "'", `"`, "#", " ", " ", "\\", "\\\n",
		"case x in x) ", ";; esac", ";;", ";&", ";;&", "for i in 1; do ", "; done", "while false; do ", "f() { ", "[[ x ]]", "((1))", "$((1))", "<<X\nbad\nX\n", "<<'X'\n$(bad)\nX\n", "<<X\n$(bad)\nX\n", "<<< bad", "${x:-$(bad)}", "x=", "x=1 ", "time ", "$'", "{ok,bad}", "2>&1", ">/dev/null", "-", "\t", "esac", "do", "in", "then ", "<(bad)", "function g { ", "until ok; do ", "[", "]", "[[ ", " ]]", "((", "))", "$", "}", "{"}
	draw := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(bits), 1, 10).Draw(t, "bits"), "")
	})
	o := enforce()
	compared := 0
	var script strings.Builder
	var srcs []string
	for seed := 0; compared < 400 && seed < 40000; seed++ {
		src := draw.Example(seed)
		// The guard's word for "bad" is the denylist's: it stands for sudo.
		if v := LookShell(strings.ReplaceAll(src, "bad", "sudo"), o); v.Refused {
			continue
		}
		if !strings.Contains(src, "bad") {
			continue
		}
		srcs = append(srcs, src)
		compared++
	}
	if compared < 100 {
		t.Fatalf("only %d texts to compare", compared)
	}
	// The control: where the guard says nothing, the command does report.
	srcs = append(srcs, "ok && bad")
	script.WriteString("ok() { :; }\nbad() { echo \"BAD $n\" >&9; }\nexec 9>&1\n")
	for i, s := range srcs {
		q := "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
		script.WriteString("n=" + strconv.Itoa(i) + "; ( eval " + q + " ) </dev/null >/dev/null 2>&1\n")
	}
	for _, name := range [...]string{"bash", "dash"} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(need.Program(t, name), "-s")
			cmd.Stdin = strings.NewReader(script.String())
			cmd.Dir, cmd.Env = t.TempDir(), []string{"LC_ALL=C.UTF-8", "PATH=/nonexistent"}
			out, _ := cmd.Output()
			control := false
			for line := range strings.SplitSeq(string(out), "\n") {
				num, ok := strings.CutPrefix(line, "BAD ")
				if !ok {
					continue
				}
				n, err := strconv.Atoi(num)
				if err != nil || n == len(srcs)-1 {
					control = control || err == nil
					continue
				}
				t.Errorf("%q: allowed, but %s runs the command", srcs[n], name)
			}
			if !control {
				t.Error("a text that runs the command did not report it")
			}
		})
	}
	t.Logf("%d texts agree", compared)
}

// GNU sed's --sandbox refuses programs with e, r or w: where the guard sees
// none, sed sees none. Nothing is run, for the input is empty.
func TestSedAgreesWithSed(t *testing.T) {
	sed := need.Program(t, "sed")
	if out, err := exec.Command(sed, "--sandbox", "-n", "p").CombinedOutput(); err != nil {
		need.Missing(t, "sed", "no --sandbox: "+string(out))
	}
	bits := []string{"s/a/b/", "/a/", "p", "d", ";", "\n", "{", "}", "w x", "r x", "e", "e id", "W x", "R x", "s", "/", ",", "a", "\\", "[", "]", "[/]", "#", "y/ab/cd/", "$", "!", "1", "0~2", "+1", "g", "w", "i\\\n", "a x", "c\\", ":a", "b", "ta", " ", "\\/", "|", "s|a|b|", "\\,x,", "I", "M", "m", "s,a,b,", "&", "^", "=", "q", "l", "n", "F", "z", "v"}
	draw := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(bits), 1, 9).Draw(t, "bits"), "")
	})
	refuses := func(program string) bool {
		cmd := exec.Command(sed, "--sandbox", "-n", "-e", program)
		cmd.Dir = t.TempDir()
		out, _ := cmd.CombinedOutput()
		return bytes.Contains(out, []byte("sandbox"))
	}
	if !refuses("w x") || refuses("p") {
		t.Fatal("sed --sandbox does not do what this test needs")
	}
	compared := 0
	for seed := 0; compared < 300 && seed < 30000; seed++ {
		program := draw.Example(seed)
		o := readOnly()
		o.Workspace = ws
		if v := LookArgv([]string{"sed", "-n", "-e", program}, o); v.Refused || len(v.Notes) > 0 || strings.ContainsAny(program, "rR") {
			continue // r only reads, which read-only may
		}
		compared++
		if refuses(program) {
			t.Errorf("sed %q: the guard sees no file and no command, sed does", program)
		}
	}
	if compared < 100 {
		t.Fatalf("only %d programs to compare", compared)
	}
}
