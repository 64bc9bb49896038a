package main

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/tether-sandbox/tether/internal/need"
)

// A workspace that lies in a folder that a command can move, its own or another
// run's, is looked after where it was, and never where a link in place of that
// folder leads. Control: what lies there would be taken if it were the workspace.
func TestWorkspaceBehindLink(t *testing.T) {
	need.Program(t, "git")
	const swap = `mv "$TOP/a" "$TOP/b" && ln -s "$OUT" "$TOP/a"`
	together(t, func(t *testing.T, j *jail) {
		j.mustHost(`mkdir -p a/ws && git init -q a/ws && rm -rf a/ws/.git/hooks && mkdir "$OUT/ws" && git init -q "$OUT/ws"`)
		top, hook := j.w, filepath.Join(j.out, "ws/.git/hooks/pre-commit")
		j.own()
		j.w = filepath.Join(top, "a/ws")
		plant := func(path string) string {
			return "mkdir -p " + filepath.Dir(path) + "; : > " + path + "; chmod 755 " + path
		}
		ours := filepath.Join(j.w, ".git/hooks/pre-commit")
		j.mustHost(plant(hook))
		if res := j.report(plant(ours)); len(j.told(res, ".git/hooks/pre-commit")) == 0 {
			t.Fatalf("control: a hook in the workspace is not taken away: %v", res)
		}
		there := func(who string) {
			t.Helper()
			j.unchanged(hook, "")
			if link := j.mustHost(`readlink "` + top + `/a" || true`).stdout; who != "the command" && link == "" {
				t.Errorf("control: %s did not put a link there", who)
			}
			j.mustHost(`cd /; if test -L "` + top + `/a"; then rm "` + top + `/a"; mv "` + top + `/b" "` + top + `/a"; fi`)
		}
		j.env = append(j.env, "TOP="+top)
		for _, wait := range []string{"", "; sleep 0.6"} {
			j.report(swap+wait, "--allow-write", top, "--env", "TOP", "--env", "OUT="+j.out)
			there("the command")
		}
		j.whileSwapped(func() { j.mustHost(swap) })
		there("another run")
	})
}

// whileSwapped runs a command, and host while it runs.
func (j *jail) whileSwapped(host func()) {
	j.t.Helper()
	cmd := j.command("--json", "--timeout", "20s", "--", "sh", "-c", "sleep 1.5")
	if err := cmd.Start(); err != nil {
		j.t.Fatal(err)
	}
	time.Sleep(500 * time.Millisecond)
	host()
	if cmd.Wait() == nil {
		j.t.Error("a workspace that is no longer there was looked at without an error")
	}
}
