package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tether-sandbox/tether"
)

// found runs a script inside and returns the findings by path in the workspace.
func (j *jail) found(script string) map[string]tether.Finding {
	j.t.Helper()
	r := j.run(script, "--json", "--env", "OUT="+j.out, "--env", "W="+j.w)
	var res tether.Result
	if err := json.Unmarshal([]byte(r.stdout), &res); err != nil || res.Exit != 0 {
		j.t.Fatalf("got %q (%v), want the script to end with 0", r.all(), err)
	}
	out := map[string]tether.Finding{}
	for _, f := range res.Findings {
		rel, err := filepath.Rel(j.w, f.Path)
		if err != nil {
			j.t.Fatal(err)
		}
		out[rel] = f
	}
	return out
}

// laterFiles are files of each kind that run later.
var laterFiles = []struct{ kind, path string }{
	{"folder", "mise.toml"}, {"editor", "x/x.code-workspace"}, {"package", "package.json"}, {"package", "node_modules/.bin/tool"},
	{"package", "binding.gyp"}, {"build", "Makefile"}, {"build", "vite.config.ts"}, {"test", "conftest.py"},
	{"shell-start", ".Rprofile"}, {"shell-start", "lib/site-packages/x.pth"}, {"virtualenv", ".venv/bin/activate"},
	{"virtualenv", ".venv/bin/python"}, {"pipeline", ".github/workflows/ci.yml"}, {"pipeline", ".gitlab-ci.yml"},
	{"container", "Dockerfile"}, {"hook", ".pre-commit-config.yaml"},
}

// lockedFiles run later and cannot be changed where they are present.
var lockedFiles = []struct{ kind, path string }{
	{"editor", ".vscode/tasks.json"}, {"agent", ".mcp.json"}, {"shell-start", ".bashrc"}, {"hook", ".husky/pre-push"},
	{"folder", ".envrc"}, // hidden where it is present
}

// TestFindings: each kind of file that runs later is found when the command
// made or changed it, and is not when it did not.
func TestFindings(t *testing.T) {
	j := newJail(t, "native")
	j.mustHost("mkdir made changed old")
	script := ""
	for _, f := range append(laterFiles, lockedFiles...) {
		for _, d := range []string{"changed", "old"} {
			at := filepath.Join(j.w, d, f.path)
			if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(at, []byte("x\n"), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		script += "mkdir -p made/" + filepath.Dir(f.path) + "; echo y > made/" + f.path + "; "
	}
	for _, f := range laterFiles {
		script += "echo y >> changed/" + f.path + "; "
	}
	j.mustHost("sleep 0.1")
	found := j.found(script + "echo y > made/plain.txt; true")
	want := func(path, kind string) {
		t.Helper()
		if f := found[path]; f.Kind != kind || f.Action != "reported" || !strings.Contains(f.What, "runs later on the host") {
			t.Errorf("%s: got %+v, want kind %s, reported", path, f, kind)
		}
		delete(found, path)
	}
	for _, f := range append(laterFiles, lockedFiles...) {
		want("made/"+f.path, f.kind)
	}
	for _, f := range laterFiles {
		want("changed/"+f.path, f.kind)
	}
	for path, f := range found {
		t.Errorf("%s: got %+v, want nothing found", path, f)
	}
}

// TestFindingsLinks: links that the command made and that lead out of the
// workspace are listed; those that were there are not, nor those that stay in.
func TestFindingsLinks(t *testing.T) {
	j := newJail(t, "native")
	j.mustHost(`mkdir d; ln -s "$OUT" old; ln -s "$OUT/absent" d/gone; ln -s d inside; sleep 0.1`)
	found := j.found(`ln -s "$OUT" new; ln -s ../../nothing d/up; ln -s /etc/passwd d/abs; ln -s old/deeper through; ln -s /tmp/x tmp
		ln -s d in1; ln -s ../d/absent d/in2; ln -s "$W" in3; ln -s in4 in4; mv inside moved; echo x > d/f`)
	for _, path := range []string{"new", "d/up", "d/abs", "through", "tmp"} {
		if f := found[path]; f.Kind != "symlink" || f.Action != "reported" {
			t.Errorf("%s: got %+v, want a symlink reported", path, f)
		}
		delete(found, path)
	}
	for path, f := range found {
		t.Errorf("%s: got %+v, want nothing found", path, f)
	}
}

// TestFindingsGit: new repositories and unfinished work of git's are listed.
func TestFindingsGit(t *testing.T) {
	j := newJail(t, "native")
	j.repo()
	j.mustHost("git init -q old; git switch -q -c side; echo 2 > a.txt; git commit -qam 2; git switch -q main; echo 3 > a.txt; git commit -qam 3; sleep 0.1")
	found := j.found("git init -q sub/new; echo x > old/f; git -c user.name=x -c user.email=x@y merge -q side; true")
	for path, kind := range map[string]string{"sub/new/.git": "git-repository", ".git/MERGE_HEAD": "git-pending"} {
		if f := found[path]; f.Kind != kind || f.Action != "reported" {
			t.Errorf("%s: got %+v, want %s reported", path, f, kind)
		}
		delete(found, path)
	}
	for path, f := range found {
		t.Errorf("%s: got %+v, want nothing found", path, f)
	}
	if found := j.found("true"); len(found) != 0 {
		t.Errorf("afterwards: got %v, want nothing found", found)
	}
}

// TestFindingsGitLinks: no link through which the user's git would write
// elsewhere outlives the command; one that was there stays.
func TestFindingsGitLinks(t *testing.T) {
	for _, c := range []struct{ name, plant string }{
		{"message", `ln -s "$OUT/victim" .git/COMMIT_EDITMSG`},
		{"reflog", `ln -sf "$OUT/victim" .git/logs/HEAD`},
		{"index", `ln -sf "$OUT/fresh" .git/index`},
		{"message into the configuration", `ln -s config .git/COMMIT_EDITMSG`},
		{"a folder moved into place", `rm -rf .git/logs; mv evil .git/logs`},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := newJail(t, "native")
			j.repo()
			j.mustHost(`rm -f .git/COMMIT_EDITMSG; cp .git/config config.was; echo victim > "$OUT/victim"; mkdir evil; ln -s "$OUT/victim" evil/HEAD
				ln -s "$OUT/mine" .git/mine; sleep 0.1`)
			const commit = `echo host >> a.txt; git commit -qam host; cat "$OUT/victim"; diff .git/config config.was && echo same; test ! -e "$OUT/fresh" || echo fresh`
			calm := "victim\nsame\n"
			if out := j.host(`cp -a "$W" "$OUT/door"; cd "$OUT/door"; ` + c.plant + "; " + commit).stdout; out == calm {
				t.Fatalf("control: got %q, want that git writes through the link", out)
			}
			j.mustHost(`rm -rf "$OUT/door" "$OUT/fresh"; echo victim > "$OUT/victim"`)
			links := 0
			for path, f := range j.found(c.plant + "; true") {
				if f.Kind == "git-link" && f.Action == "quarantined" {
					links++
				} else if f.Kind != "symlink" {
					t.Errorf("%s: got %+v, want links only", path, f)
				}
			}
			if links != 1 {
				t.Errorf("got %d links quarantined, want 1", links)
			}
			if out := j.host(commit).stdout; out != calm {
				t.Errorf("got %q, want the user's git to write in the repository alone", out)
			}
			if _, err := os.Readlink(filepath.Join(j.w, ".git/mine")); err != nil {
				t.Errorf("the user's own link: %v", err)
			}
		})
	}
}

// TestFindingsWorktree: the same in the git directory of a worktree, which lies
// outside of the workspace.
func TestFindingsWorktree(t *testing.T) {
	j := newJail(t, "native")
	j.mustHost(`git init -q "$OUT/main"; cd "$OUT/main"; echo 1 > a; git add a; git commit -qm 1; ln -s x .git/mine
		git worktree add -q "$W/wt"; sleep 0.1`)
	j.w = filepath.Join(j.w, "wt")
	found := j.found(`ln -s /nowhere "$OUT/main/.git/SQUASH_MSG"`)
	if f := found["../../out/main/.git/SQUASH_MSG"]; len(found) != 1 || f.Kind != "git-link" || f.Action != "quarantined" {
		t.Errorf("got %+v, want the link quarantined and nothing else", found)
	}
	if out := j.host(`cd "$OUT/main/.git"; readlink mine SQUASH_MSG`).stdout; out != "x\n" {
		t.Errorf("got links %q, want the user's own alone", out)
	}
}

// TestFindingsSetID: where nothing keeps a command from making one, a set-user-id
// file is stripped at the end; one that was there is not touched.
func TestFindingsSetID(t *testing.T) {
	j := newJail(t, "native")
	j.mustHost("touch old plain; chmod 4755 old; sleep 0.1")
	const plant = "touch new; chmod 4755 new; chmod 755 plain"
	r := finishCommand(t, func() *exec.Cmd {
		cmd := exec.Command(binary, "run", "--no-sandbox", "--json", "-C", j.w, "--", "sh", "-c", plant)
		cmd.Env, cmd.Dir = j.env, j.w
		return cmd
	}())
	var res tether.Result
	if err := json.Unmarshal([]byte(r.stdout), &res); err != nil || len(res.Findings) != 1 {
		t.Fatalf("got %q, want one finding", r.all())
	}
	if f := res.Findings[0]; f.Path != filepath.Join(j.w, "new") || f.Kind != "set-id" || f.Action != "stripped" {
		t.Errorf("got %+v, want new stripped", f)
	}
	if out := j.host("stat -c %a new old plain").stdout; out != "755\n4755\n755\n" {
		t.Errorf("got modes %q, want 755 4755 755", out)
	}
}
