package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// verb runs a verb of the real program in the workspace.
func (j *jail) verb(stdin string, words ...string) result {
	j.t.Helper()
	j.own()
	cmd := exec.Command(binary, words...)
	cmd.Env, cmd.Dir, cmd.Stdin = j.env, j.w, strings.NewReader(stdin)
	return finishCommand(j.t, cmd)
}

// edit runs `tether edit` with the jail's provider.
func (j *jail) edit(stdin string, words ...string) result {
	j.t.Helper()
	return j.verb(stdin, append([]string{"edit", words[0], "--provider", j.provider}, words[1:]...)...)
}

// editRefuses fails unless the edit tool refuses to write and to view, also in
// a session. That it writes at all is proven first.
func (j *jail) editRefuses(paths ...string) {
	j.t.Helper()
	if r := j.edit("ok\n", "write", "plain.txt"); r.exit != 0 {
		j.t.Fatalf("control: an ordinary file is written: %q", r.all())
	}
	for _, path := range paths {
		for _, flags := range [][]string{nil, {"--session", "gate"}} {
			r := j.edit("touch "+j.pwn()+"\n", append([]string{"write", path}, flags...)...)
			if r.exit != exitOurs || !strings.Contains(r.stderr, "SANDBOX_VIOLATION") || !strings.Contains(r.stderr, "hint: ") {
				j.t.Errorf("edit write %q %v: got exit %d, %q; want that it is refused with a hint", path, flags, r.exit, r.all())
			}
		}
	}
}

// TestEditThroughTheDoor: what the file gate holds, it holds through the command
// line and in a session, on both sides of each edge.
func TestEditThroughTheDoor(t *testing.T) {
	j := newJail(t, "native")
	j.write("../out/f", j.secret+"\n")
	j.plant(".env")
	j.write("sub/ok.txt", "inside\n")
	j.write("foo.pem/readme", "inside\n")
	j.mustHost(`ln -s "$OUT/f" leak; ln -s "$OUT" dir; ln -s "$OUT/new" dangling; ln .env notes.txt; mkfifo fifo; cp -r . "../w-secrets"`)
	for _, script := range []string{`cat leak`, `cat dir/f`, `cat ../out/f`, `cat .env`, `cat notes.txt`, `cat ../w-secrets/.env`} {
		j.opens(script, j.secret)
	}
	for _, flags := range [][]string{nil, {"--session", "s"}} {
		for _, path := range []string{"leak", "dir/f", "../out/f", j.out + "/f", "sub/../../out/f", ".env", "SUB/../.env", "notes.txt",
			j.w + "-secrets/.env", "/etc/passwd", "//etc//passwd", "/proc/self/environ", "fifo", "dir/.", "~/x", "../w-secrets/sub/ok.txt"} {
			r := j.edit("", append([]string{"view", path}, flags...)...)
			j.noSecret(r)
			if r.exit != exitOurs || !strings.Contains(r.stderr, "hint: ") {
				t.Errorf("view %q %v: got exit %d, %q", path, flags, r.exit, r.all())
			}
		}
		for _, path := range []string{"dangling", "dir/newdir/f", "leak", "dir/../x", ".env", "x.env/../.env", "/tmp/../etc/x", j.out + "/new"} {
			if r := j.edit("x", append([]string{"write", path}, flags...)...); r.exit != exitOurs && path != "dir/../x" {
				t.Errorf("write %q %v: got exit %d, %q", path, flags, r.exit, r.all())
			}
		}
		for _, path := range []string{"sub/ok.txt", "./sub/../sub/ok.txt", "foo.pem/readme", j.w + "/sub/ok.txt"} {
			if r := j.edit("", append([]string{"view", path}, flags...)...); r.stdout != "inside\n" {
				t.Errorf("view %q %v: got exit %d, %q", path, flags, r.exit, r.all())
			}
		}
	}
	if left, err := os.ReadDir(j.out); err != nil || len(left) != 1 {
		t.Errorf("outside there is %v, %v", left, err)
	}
	if raw, err := os.ReadFile(filepath.Join(j.out, "f")); err != nil || string(raw) != j.secret+"\n" {
		t.Errorf("got %q, %v", raw, err)
	}
}
