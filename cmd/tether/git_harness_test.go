package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// step is how one step of a script ended.
type step struct {
	script, out string
	rc          int
}

// steps runs each script in a subshell of one run inside, since a start costs
// more than most scripts.
func (j *jail) steps(scripts ...string) []step {
	j.t.Helper()
	return cut(j.t, j.run(joined(scripts)), scripts)
}

// hostSteps is steps without Tether.
func (j *jail) hostSteps(scripts ...string) []step {
	j.t.Helper()
	return cut(j.t, j.host(joined(scripts)), scripts)
}

func joined(scripts []string) string {
	var b strings.Builder
	b.WriteString("exec 2>&1\n")
	for _, s := range scripts {
		fmt.Fprintf(&b, "(\n%s\n)\nprintf '\\n@@rc=%%d@@\\n' $?\n", s)
	}
	b.WriteString("exit 0\n")
	return b.String()
}

func cut(t testing.TB, r result, scripts []string) []step {
	t.Helper()
	mark := regexp.MustCompile(`\n@@rc=(\d+)@@\n`)
	var out []step
	at := 0
	for _, m := range mark.FindAllStringSubmatchIndex(r.stdout, -1) {
		if len(out) == len(scripts) {
			break
		}
		rc, _ := strconv.Atoi(r.stdout[m[2]:m[3]])
		out = append(out, step{scripts[len(out)], r.stdout[at:m[0]], rc})
		at = m[1]
	}
	if len(out) != len(scripts) || r.exit != 0 {
		t.Fatalf("%d of %d steps ended, exit %d: %s", len(out), len(scripts), r.exit, r.all())
	}
	return out
}

// works fails for every step that did not end with status 0.
func works(t testing.TB, steps []step) {
	t.Helper()
	for _, s := range steps {
		if s.rc != 0 {
			t.Errorf("%s: got status %d (%s), want 0", s.script, s.rc, s.out)
		}
	}
}

// refused fails for every step that ended with status 0.
func refused(t testing.TB, steps []step) {
	t.Helper()
	for _, s := range steps {
		if s.rc == 0 {
			t.Errorf("%s: got status 0 (%s), want it refused", s.script, s.out)
		}
	}
}

// repo makes the workspace a repository with one commit.
func (j *jail) repo() {
	j.t.Helper()
	j.mustHost(`git init -q -b main . && git config user.name Host && git config user.email host@example.com &&
		echo one > a.txt && git add a.txt && git commit -q -m first`)
}

// pwn is the marker of a case: no command inside can reach it, so that only
// what runs on the host makes it.
func (j *jail) pwn() string { return filepath.Join(j.out, "PWN") }

// hook is shell text that writes a hook, or any script, which leaves the mark.
func (j *jail) hook(path string) string {
	return fmt.Sprintf(`printf '#!/bin/sh\ntouch %s\n' > %s && chmod +x %s`, j.pwn(), path, path)
}

// daily is what a user does on the host without a thought.
const daily = `git status; git diff HEAD; echo host >> host.txt; git add -A; git commit -q -m host; git log -1; true`

// fires is the control of what is planted for git: in a copy of the workspace
// without Tether, planting works and the user's daily git then leaves the mark.
func (j *jail) fires(plant string) {
	j.t.Helper()
	j.firesIn(plant, ".")
}

// firesIn is fires with the user in a folder of the workspace.
func (j *jail) firesIn(plant, dir string) {
	j.t.Helper()
	j.host(`rm -rf "$OUT/door" && cp -a "$W" "$OUT/door" && cd "$OUT/door" && { ` + plant + "\n} ; cd \"$OUT/door/" + dir + `" && { ` + daily + ` ; }`)
	if _, err := os.Lstat(j.pwn()); err != nil {
		j.t.Fatalf("control: without Tether, %q must leave the mark when the user works with git in %s", plant, dir)
	}
	j.mustHost(`chmod -R u+rwx "$OUT/door"; rm -rf "$OUT/door" "$OUT/PWN"`)
}

// calm fails when the user's daily git in a folder of the workspace leaves the
// mark.
func (j *jail) calm(dirs ...string) {
	j.t.Helper()
	for _, dir := range append([]string{"."}, dirs...) {
		r := j.host(`cd "` + dir + `" && { ` + daily + ` ; }`)
		if _, err := os.Lstat(j.pwn()); err == nil {
			j.t.Errorf("the user's git in %s ran what was planted: %s", dir, r.all())
			_ = os.Remove(j.pwn())
		}
	}
}

// read returns a file of the host, relative to the workspace.
func (j *jail) read(name string) string {
	j.t.Helper()
	if !filepath.IsAbs(name) {
		name = filepath.Join(j.w, name)
	}
	raw, err := os.ReadFile(name)
	if err != nil {
		j.t.Fatal(err)
	}
	return string(raw)
}

// ownAll gives what lies outside the workspace to its owner too: a repository
// next to it belongs to the same user as the workspace.
func (j *jail) ownAll() {
	if os.Geteuid() != 0 || j.provider != "bwrap" {
		return
	}
	_ = filepath.WalkDir(filepath.Dir(j.w), func(path string, _ os.DirEntry, err error) error {
		if err == nil {
			_ = os.Lchown(path, foreignUID, foreignUID)
		}
		return nil
	})
}

// findings returns the findings of a --json report as lines "action path".
func findings(report map[string]any) []string {
	var out []string
	list, _ := report["findings"].([]any)
	for _, f := range list {
		if m, ok := f.(map[string]any); ok {
			out = append(out, fmt.Sprint(m["action"], " ", m["path"]))
		}
	}
	return out
}

// notes returns the notes of a --json report, each with its hint.
func notes(report map[string]any) string {
	var b strings.Builder
	rep, _ := report["report"].(map[string]any)
	list, _ := rep["notes"].([]any)
	for _, n := range list {
		if m, ok := n.(map[string]any); ok {
			fmt.Fprintln(&b, m["what"], "|", m["hint"])
		}
	}
	return b.String()
}

// mentions says whether a line has all the words.
func mentions(lines []string, words ...string) bool {
	for _, l := range lines {
		all := true
		for _, w := range words {
			all = all && strings.Contains(l, w)
		}
		if all {
			return true
		}
	}
	return false
}

// explain is what `tether explain --json` says of the jail.
func (j *jail) explain() result {
	j.t.Helper()
	cmd := j.command()
	cmd.Args = append([]string{cmd.Args[0], "explain", "--json"}, cmd.Args[2:]...)
	return finishCommand(j.t, cmd)
}

// uidOf looks for the field by name: these tests must compile where there is
// none.
func uidOf(info os.FileInfo) uint32 {
	st := reflect.Indirect(reflect.ValueOf(info.Sys()))
	if st.Kind() != reflect.Struct || !st.FieldByName("Uid").IsValid() {
		return 0
	}
	return uint32(st.FieldByName("Uid").Uint())
}
