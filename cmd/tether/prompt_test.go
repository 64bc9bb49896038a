package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tether-sandbox/tether/internal/need"
)

// during is at once, with the script begun when the vigil has.
func (j *jail) during(script string, host func()) map[string]any {
	j.t.Helper()
	return j.atOnce("sleep 0.5; "+script, host)
}

// atOnce runs shell text inside with --json, and host outside once the script has
// made the file "planted" and for as long as the script waits for "over".
func (j *jail) atOnce(script string, host func()) map[string]any {
	j.t.Helper()
	cmd := j.command("--json", "--timeout", "60s", "--env", "W="+j.w, "--", "sh", "-c",
		script+`
		: >planted; i=0; until test -e over; do i=$((i+1)); test $i -gt 400 && exit 9; sleep 0.05; done`)
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	if err := cmd.Start(); err != nil {
		j.t.Fatal(err)
	}
	if within(40*time.Second, func() bool { _, err := os.Lstat(filepath.Join(j.w, "planted")); return err == nil }) < 0 {
		j.t.Error("the script did not plant")
	}
	host()
	j.write("over", "")
	_ = cmd.Wait()
	var res map[string]any
	if err := json.Unmarshal([]byte(out.String()), &res); err != nil {
		j.t.Fatalf("--json printed %q: %v", out.String(), err)
	}
	if res["exit"] != 0.0 {
		j.t.Errorf("the script ended with %v (%v): %v", res["exit"], res["error"], lateText(res))
	}
	return res
}

// within waits until something holds, and says how long that took; negative: it
// never did.
func within(limit time.Duration, holds func() bool) time.Duration {
	for begin := time.Now(); time.Since(begin) < limit; time.Sleep(time.Millisecond) {
		if holds() {
			return time.Since(begin)
		}
	}
	return -1
}

// told counts the findings about a path in the workspace.
func (j *jail) told(res map[string]any, name string) (actions []string) {
	for _, f := range findings(res) {
		if action, path, _ := strings.Cut(f, " "); path == filepath.Join(j.w, name) {
			actions = append(actions, action)
		}
	}
	return actions
}

// planted are things that a command puts where the host's git would run or obey
// them, in a repository that was there.
var planted = []struct {
	name, setup string
	plant       func(j *jail) string
	at, action  string
	// locked says that a lock keeps it from being made, where there are locks.
	locked bool
}{
	{"a hook", "", func(j *jail) string { return "mkdir .git/hooks; " + j.hook(".git/hooks/pre-commit") }, ".git/hooks/pre-commit", "quarantined", false},
	{"hooks moved in", "", func(j *jail) string {
		return "mkdir .git/x; " + j.hook(".git/x/pre-commit") + "; chmod 311 .git/x; mv .git/x .git/hooks"
	}, ".git/hooks/pre-commit", "quarantined", false},
	{"hooks as a link", "", func(j *jail) string { return "mkdir x; " + j.hook("x/pre-commit") + "; ln -s ../x .git/hooks" }, ".git/hooks", "quarantined", false},
	{"a hook as a hard link", "", func(j *jail) string {
		return "mkdir .git/hooks; " + j.hook(".git/x") + "; ln .git/x .git/hooks/pre-commit"
	}, ".git/hooks/pre-commit", "quarantined", false},
	{"configuration of a worktree", "git config extensions.worktreeConfig true", func(j *jail) string {
		return `printf '[core]\n\tfsmonitor = "touch ` + j.pwn() + `; false"\n' > .git/config.worktree`
	}, ".git/config.worktree", "rewritten", false},
	{"the same, still open", "git config extensions.worktreeConfig true", func(j *jail) string {
		return `exec 3>.git/config.worktree; sleep 0.3; printf '[core]\n\tfsmonitor = "touch ` + j.pwn() + `; false"\n' >&3`
	}, ".git/config.worktree", "rewritten", false},
	{"attributes", "git config filter.x.clean 'touch $OUT/PWN; cat'", func(*jail) string {
		return "mkdir -p .git/info; echo '* filter=x' > .git/info/attributes"
	}, ".git/info/attributes", "quarantined", false},
	{"a common directory", "", func(j *jail) string {
		return `cp -a .git y; mkdir -p y/hooks; ` + j.hook("y/hooks/pre-commit") + `; echo ../y > .git/commondir`
	}, ".git/commondir", "quarantined", false},
	{"a folder that configuration names", "git config core.hooksPath .husky/_", func(j *jail) string {
		return "mkdir -p .husky/_; " + j.hook(".husky/_/pre-commit")
	}, ".husky/_/pre-commit", "quarantined", false},
	{"a file that configuration includes", "git config include.path ../sub/my.cfg", func(j *jail) string {
		return `mkdir sub; printf '[core]\n\tfsmonitor = "touch ` + j.pwn() + `; false"\n' > sub/my.cfg`
	}, "sub/my.cfg", "rewritten", false},
	{"configuration", "", func(j *jail) string { return j.monitor(".git/config") }, ".git/config", "rewritten", true},
	{"configuration, still open", "", func(j *jail) string {
		return `exec 3>>.git/config; sleep 0.3; printf '[core]\n\tfsmonitor = "touch ` + j.pwn() + `; false"\n' >&3`
	}, ".git/config", "rewritten", true},
	{"configuration, by a new file in its place", "", func(j *jail) string {
		return "cp .git/config .git/x; " + j.monitor(".git/x") + "; mv .git/x .git/config"
	}, ".git/config", "rewritten", true},
	{"configuration, by a hard link", "", func(j *jail) string { return "ln .git/config x; " + j.monitor("x") }, ".git/config", "rewritten", true},
	{"configuration, as a link", "", func(j *jail) string {
		return "cp .git/config x; " + j.monitor("x") + "; rm .git/config; ln -s ../x .git/config"
	}, ".git/config", "quarantined", true},
	{"a hook that was there", "mkdir .git/hooks; echo '#!/bin/sh' >.git/hooks/pre-commit; chmod +x .git/hooks/pre-commit", func(j *jail) string {
		return "echo 'touch " + j.pwn() + "' >>.git/hooks/pre-commit"
	}, ".git/hooks/pre-commit", "quarantined", true},
	{"the same, by a hard link", "mkdir .git/hooks; echo '#!/bin/sh' >.git/hooks/pre-commit", func(j *jail) string {
		return "ln .git/hooks/pre-commit x; echo 'touch " + j.pwn() + "' >>x; chmod +x x"
	}, ".git/hooks/pre-commit", "quarantined", true},
	{"a folder that configuration names, by a hard link", "git config core.hooksPath .husky/_; mkdir -p .husky/_; echo '#!/bin/sh' >.husky/_/pre-commit; chmod +x .husky/_/pre-commit",
		func(j *jail) string { return "ln .husky/_/pre-commit x; echo 'touch " + j.pwn() + "' >>x" }, ".husky/_/pre-commit", "quarantined", true},
	{"a file that configuration includes, by a hard link", "git config include.path ../my.cfg; echo >my.cfg",
		func(j *jail) string { return "ln my.cfg x; " + j.monitor("x") }, "my.cfg", "rewritten", true},
}

// monitor is shell text that puts a command into a file of configuration.
func (j *jail) monitor(file string) string {
	return `printf '[core]\n\tfsmonitor = "touch ` + j.pwn() + `; false"\n' >> ` + file
}

// What the host's git would run or obey is taken back while the command runs.
func TestPrompt(t *testing.T) {
	need.Program(t, "git")
	for _, c := range planted {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			together(t, func(t *testing.T, j *jail) {
				if c.locked && j.provider != "landlock" {
					return
				}
				j.repo()
				j.mustHost("rm -rf .git/hooks .git/info .git/branches; " + c.setup)
				plant := c.plant(j)
				j.fires(plant)
				res := j.during(plant, func() {
					took := within(5*time.Second, func() bool {
						if c.action == "rewritten" {
							raw, err := os.ReadFile(filepath.Join(j.w, c.at))
							return err == nil && !strings.Contains(string(raw), "fsmonitor") && j.kept() > 0
						}
						_, err := os.Lstat(filepath.Join(j.w, c.at))
						return err != nil
					})
					t.Logf("taken back after %v", took)
					if took < 0 {
						t.Error("it stands while the command runs")
					}
					j.calm()
				})
				if got := j.told(res, c.at); len(got) != 1 || got[0] != c.action {
					t.Errorf("told: %q, want it once, %s; all: %q", got, c.action, findings(res))
				}
				j.calm()
			})
		})
	}
}

// kept counts the folders in quarantine.
func (j *jail) kept() int {
	list, _ := os.ReadDir(filepath.Join(j.state, "tether/quarantine"))
	return len(list)
}

// A repository that the command makes is its own work until the end, with hooks
// and all; nor does ordinary git in one that was there set off anything.
func TestPromptOwnWork(t *testing.T) {
	need.Program(t, "git")
	together(t, func(t *testing.T, j *jail) {
		j.repo()
		j.mustHost("rm -rf .git/hooks")
		const me = "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b; "
		res := j.during(me+`set -e; git init -q n; cd n; git config core.hooksPath .husky/_; mkdir -p .husky/_ .git/hooks
			printf '#!/bin/sh\ntouch $W/ran\n' | tee .husky/_/pre-commit > .git/hooks/pre-commit; chmod +x .husky/_/pre-commit .git/hooks/pre-commit
			sleep 1.2; echo 1 > f; git add f; git commit -qm 1; test -e ../ran; rm ../ran; git config --unset core.hooksPath
			git commit -q --allow-empty -m 2; test -e ../ran; git config alias.x '!echo ALIAS'; git x
			git worktree add -q ../tree; git -c protocol.file.allow=always submodule add -q "$W/n" sub; cd ..; git clone -q n c
			sleep 0.6; test -x n/.git/hooks/pre-commit; git -C n x
			echo 1 > f; git add f; git commit -qm f; git checkout -qb b; git worktree add -q ../w2 2>/dev/null || git worktree add -q w2; git gc -q; git stash list`, func() {
			if j.kept() != 0 {
				t.Error("something was taken back while the command ran")
			}
		})
		if got := j.told(res, "n/.git/hooks/pre-commit"); len(got) != 1 || got[0] != "quarantined" {
			t.Errorf("a hook in a new repository: got %q, want it taken away at the end", got)
		}
	})
}

// A command that plants in every odd way, and over and over, neither ends the
// look nor fills the disk with what was taken back, and nothing else is lost.
func TestPromptHostile(t *testing.T) {
	need.Program(t, "git")
	together(t, func(t *testing.T, j *jail) {
		j.repo()
		j.mustHost("rm -rf .git/hooks; mkdir keep; echo KEEP > keep/pre-commit")
		j.own()
		res := j.during(`
			mkdir .git/hooks; mkfifo .git/hooks/fifo; ln -s "$W/keep/pre-commit" .git/hooks/update
			i=0; while [ $i -lt 150 ]; do echo x > .git/hooks/pre-commit; ln -s "$W/keep" .git/link; mkdir .tether && echo x > .tether/f; rm -rf .git/link .tether; i=$((i+1)); done 2>/dev/null
			i=0; while [ $i -lt 300 ]; do echo x > .git/hooks/h$i; i=$((i+1)); done 2>/dev/null
			i=0; while [ $i -lt 50 ]; do mv .git/hooks .git/h2; ln -s "$W/keep" .git/hooks; rm .git/hooks; mv .git/h2 .git/hooks; i=$((i+1)); done 2>/dev/null
			cd .git; mkdir -p hooks; d=d; i=0; while [ $i -lt 60 ]; do mkdir $d && cd $d; i=$((i+1)); done; cd "$W"
			rm -rf .git/hooks; mkdir -m 0 .git/hooks 2>/dev/null; chmod 700 .git/hooks; dd if=/dev/zero of=.git/hooks/pre-push bs=1M count=80 2>/dev/null; sleep 0.3; chmod 0 .git/hooks
			sleep 0.5; mkdir .tether`, func() {
			if within(10*time.Second, func() bool { _, err := os.Lstat(filepath.Join(j.w, ".tether")); return err != nil }) < 0 {
				t.Error("the look has ended")
			}
			if within(10*time.Second, func() bool { _, err := os.Lstat(filepath.Join(j.w, ".git/hooks/pre-push")); return err != nil }) < 0 {
				t.Error("a hook stands")
			}
		})
		j.unchanged("keep/pre-commit", "KEEP\n")
		if n := j.kept(); n < 1 || n > 80 {
			t.Errorf("%d folders in quarantine", n)
		}
		if size := j.host("du -sm " + j.state + "/tether/quarantine | cut -f1").stdout; len(size) > 3 {
			t.Errorf("the quarantine holds %s MiB", size)
		}
		if got := j.told(res, ".git/hooks/pre-commit"); len(got) == 0 || len(got) > 2 {
			t.Errorf("a hook made over and over: told %q", got)
		}
		if note := lateNotes(res); strings.Contains(note, "at the end alone") {
			t.Error(note)
		}
		j.calm()
	})
}

// Nor does a command hide what it planted by closing the folders around it, or
// those of Tether. Where the host's folders are in reach it can close them.
func TestPromptClosed(t *testing.T) {
	need.Program(t, "git")
	providers(t, func(t *testing.T, j *jail) {
		j.repo()
		j.mustHost("rm -rf .git/hooks")
		j.own()
		top := filepath.Dir(j.w)
		res := j.during("mkdir .git/hooks; "+j.hook(".git/hooks/pre-commit")+"; chmod 0 "+j.state+"/tether "+j.state+" && echo CLOSED; chmod 0 "+top+" && echo CLOSED", func() {
			if within(5*time.Second, func() bool {
				_, err := os.Lstat(filepath.Join(j.w, ".git/hooks/pre-commit"))
				return os.IsNotExist(err)
			}) < 0 {
				t.Error("it stands while the command runs")
			}
			j.calm()
		})
		if out, _ := res["stdout"].(string); j.provider == "landlock" && out != "CLOSED\nCLOSED\n" {
			t.Errorf("control: got %q, want the folders closed", out)
		}
		if got := j.told(res, ".git/hooks/pre-commit"); len(got) != 1 || got[0] != "quarantined" || j.kept() == 0 {
			t.Errorf("told: %q, want it quarantined", got)
		}
		if note := lateNotes(res); j.provider == "landlock" && os.Geteuid() != 0 && strings.Count(note, "is open again") != 3 {
			t.Errorf("notes: %s", note)
		}
	})
}

// Nor does it keep Tether from looking by using up what the system has of watches.
func TestPromptBlinded(t *testing.T) {
	need.Program(t, "git")
	need.Program(t, "python3")
	providers(t, func(t *testing.T, j *jail) {
		j.repo()
		j.mustHost("rm -rf .git/hooks")
		j.own()
		j.write("use.py", `import ctypes, os, sys, time
l = ctypes.CDLL(None)
n = 0
while l.inotify_init1(0) >= 0: n += 1
print("all" if n > 0 else "none", flush=True)
i = 0
while not os.path.exists("over") and i < 400: i += 1; time.sleep(0.05)
`)
		res := j.atOnce("python3 use.py & sleep 1; mkdir .git/hooks; "+j.hook(".git/hooks/pre-commit"), func() {
			if within(5*time.Second, func() bool {
				_, err := os.Lstat(filepath.Join(j.w, ".git/hooks/pre-commit"))
				return os.IsNotExist(err)
			}) < 0 {
				t.Error("it stands while the command runs")
			}
		})
		if out, _ := res["stdout"].(string); out != "all\n" {
			t.Errorf("control: got %q, want all instances used", out)
		}
		if got := j.told(res, ".git/hooks/pre-commit"); len(got) != 1 || got[0] != "quarantined" {
			t.Errorf("told: %q, want it quarantined", got)
		}
	})
}

func lateNotes(res map[string]any) string {
	report, _ := res["report"].(map[string]any)
	raw, _ := json.Marshal(report["notes"])
	return string(raw)
}

// A repository that is moved about, with hooks and configuration that are locked,
// does not lose them while the command runs, and configuration with a password is
// not written anew where the command can read it. Control: what is planted in the
// moved repository goes, beyond what is kept.
func TestPromptMovedRepository(t *testing.T) {
	need.Program(t, "git")
	need.Program(t, "python3")
	together(t, func(t *testing.T, j *jail) {
		if j.provider == "landlock" {
			t.Skip("nothing is hidden or locked in a writable folder")
		}
		j.repo()
		j.mustHost(`rm -rf .git/hooks; git init -q other; rm -rf other/.git/hooks; mkdir other/.git/hooks; echo theirs > other/.git/hooks/pre-push
			chmod 755 other/.git/hooks/pre-push; git -C other config core.sshCommand "ssh -v"
			git -C other config remote.origin.url "https://u:$SECRET@example.org/x"`)
		j.write("spy.py", `import os, sys, time
end = time.time() + 20
while time.time() < end and not os.path.exists("over"):
    try:
        for n in os.listdir("o2/.git"):
            if n.startswith("config") and sys.argv[1] in open("o2/.git/" + n).read():
                open("leak", "a").write(n + "\n")
    except OSError:
        pass
`)
		j.opens("cat other/.git/config", j.secret)
		moved := filepath.Join(j.w, "o2/.git/remotes/planted")
		res := j.during(`mkdir .git/hooks; i=0; while test $i -lt 70; do : > .git/hooks/h$i; i=$((i+1)); done
			i=0; while test $i -lt 100 && ls .git/hooks/h* >/dev/null 2>&1; do sleep 0.1; i=$((i+1)); done
			python3 spy.py '`+j.secret+`' & mv other o2; mkdir o2/.git/remotes; echo x > o2/.git/remotes/planted`, func() {
			if within(10*time.Second, func() bool { _, err := os.Lstat(moved); return err != nil }) < 0 {
				t.Error("control: nothing is taken back in a repository that moved")
			}
			j.unchanged("o2/.git/hooks/pre-push", "theirs\n")
		})
		j.absent("leak")
		if got := j.told(res, "o2/.git/hooks/pre-push"); len(got) != 1 || got[0] != "quarantined" {
			t.Errorf("the hook at the end: %q, want it kept", got)
		}
	})
}
