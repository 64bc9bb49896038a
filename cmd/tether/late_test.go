package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tether-sandbox/tether/internal/need"
)

// lateWords are shell words for scripts whose workspace changes while they run.
const lateWords = `
appears() { i=0; until test -e "$1" -o -L "$1"; do i=$((i+1)); test $i -gt 500 && { echo "NEVER $1"; return; }; sleep 0.02; done; }
closes() { i=0; while cat "$1" >/dev/null 2>&1; do i=$((i+1)); test $i -gt 500 && { echo "OPEN $1"; return; }; sleep 0.02; done; echo "CLOSED $1"; }
locks() { i=0; while true >>"$1"; do i=$((i+1)); test $i -gt 500 && { echo "WRITABLE $1"; return; }; sleep 0.02; done 2>/dev/null; echo "LOCKED $1"; }
`

// lateProviders runs f under each provider that covers what appears late.
func lateProviders(t *testing.T, f func(t *testing.T, j *jail)) {
	t.Helper()
	for _, provider := range []string{"native", "bwrap"} {
		t.Run(provider, func(t *testing.T) {
			if provider == "bwrap" {
				need.Program(t, "bwrap")
			}
			f(t, newJail(t, provider))
		})
	}
}

// lateRun runs a script inside, with --json, and host outside once the workspace
// is watched.
func lateRun(t *testing.T, j *jail, script string, host func(), flags ...string) map[string]any {
	t.Helper()
	words := append(append([]string{"--json", "--timeout", "60s"}, flags...), "--", "sh", "-c", lateWords+script)
	cmd := j.command(words...)
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(700 * time.Millisecond)
	host()
	_ = cmd.Wait()
	var res map[string]any
	if err := json.Unmarshal([]byte(out.String()), &res); err != nil {
		t.Fatalf("--json printed %q: %v", out.String(), err)
	}
	return res
}

func lateText(res map[string]any) string { return fmt.Sprint(res["stdout"], res["stderr"]) }

func wantLate(t *testing.T, j *jail, res map[string]any, lines ...string) {
	t.Helper()
	text := lateText(res)
	for _, l := range lines {
		if !strings.Contains(text, l) {
			t.Errorf("no %q in %s", l, text)
		}
	}
	if strings.Contains(text, j.secret) {
		t.Errorf("the secret was seen: %s", text)
	}
}

// save replaces a file as editors do: a new one is written beside it and renamed
// over it.
func (j *jail) save(name, content string) {
	j.t.Helper()
	path := filepath.Join(j.w, name)
	if err := os.Rename(j.write(name+".123456", content), path); err != nil {
		j.t.Fatal(err)
	}
}

// Secrets that appear while a command runs are hidden from it.
func TestLateSecrets(t *testing.T) {
	lateProviders(t, func(t *testing.T, j *jail) {
		j.plant(".env", "old.key")
		j.mustHost("mkdir there")
		j.own()
		j.opens("cat .env", j.secret)
		aside := filepath.Join(filepath.Dir(j.w), "aside")
		j.plant(aside + "/deep/er/.env")
		res := lateRun(t, j, `
			for f in there/.env new/a/b/.env moved/deep/er/.env link.txt hard.txt tls.pem; do appears $f; closes $f; done
			appears saved; closes .env; closes old.key
			for f in .env old.key there/.env new/a/b/.env moved/deep/er/.env link.txt hard.txt tls.pem; do
				cat $f; dd if=$f; cp $f copy && cat copy; echo x >>$f; mv $f moved.txt && cat moved.txt; ln $f l.txt && cat l.txt; rm -f $f; chmod 777 $f && cat $f
			done
			cat pub.pem`, func() {
			j.plant("there/.env")
			j.plant("new/a/b/.env")
			j.mustHost("mv " + aside + " moved; ln there/.env hard.txt; ln -s there/.env link.txt")
			j.plant("tls.pem")
			j.save(".env", j.secret+"2\n")
			j.mustHost("rm old.key; printf '%s\n' $SECRET > old.key") // as editors that delete first
			j.write("saved", "")
		})
		wantLate(t, j, res, "CLOSED .env", "CLOSED old.key", "CLOSED there/.env", "CLOSED new/a/b/.env", "CLOSED moved/deep/er/.env",
			"CLOSED link.txt", "CLOSED hard.txt", "CLOSED tls.pem")
		for _, n := range []string{"there/.env", "new/a/b/.env", "moved/deep/er/.env", "hard.txt", "tls.pem", "old.key"} {
			j.unchanged(n, j.secret+"\n")
		}
		report := res["report"].(map[string]any)
		if n, _ := report["hidden_late"].(float64); n < 6 {
			t.Errorf("%v were hidden late", report["hidden_late"])
		}
		if text := fmt.Sprint(report["grades"]); !strings.Contains(text, "when it is seen") {
			t.Errorf("the grade does not say so: %s", text)
		}
	})
}

// A locked file that an editor replaces stays locked, and new ones become so
// once they have been left alone.
func TestLateLocks(t *testing.T) {
	lateProviders(t, func(t *testing.T, j *jail) {
		const git = `git init -q r && git -C r config remote.origin.url https://user:S3NTINELtoken@example.com/r`
		j.mustHost(git)
		j.write(".mcp.json", "{}")
		j.write(".vscode/tasks.json", "{}")
		j.own()
		res := lateRun(t, j, `
			locks .mcp.json; locks .vscode/tasks.json; locks r/.git/config
			appears saved; locks .mcp.json; locks .vscode/tasks.json; locks .vscode/new.json; locks r/.git/config; cat r/.git/config; git -C r config user.name x
			appears .claude; locks .claude/settings.json; locks .cursor
			mkdir -p own/.vscode && echo 1 >own/.vscode/a && sleep 1.5 && echo 2 >own/.vscode/b && rm -r own && echo OWN`, func() {
			j.save(".mcp.json", `{"a":1}`)
			j.save(".vscode/tasks.json", `{"a":1}`)
			j.write(".vscode/new.json", "{}")
			j.mustHost("git -C r config user.name host; printf x > .cursor")
			j.own() // a file of root's would refuse for another reason than the lock
			j.write("saved", "")
			j.write(".claude/settings.json", "{}")
		})
		text := lateText(res)
		for _, l := range []string{"LOCKED .mcp.json\nLOCKED .vscode/tasks.json\nLOCKED r/.git/config\nLOCKED .mcp.json", "LOCKED .vscode/new.json",
			"LOCKED .claude/settings.json", "LOCKED .cursor", "OWN"} {
			if !strings.Contains(text, l) {
				t.Errorf("no %q in %s", l, text)
			}
		}
		if strings.Contains(text, "S3NTINELtoken") || strings.Contains(text, "WRITABLE") {
			t.Error(text)
		}
		j.unchanged(".vscode/tasks.json", `{"a":1}`)
		j.unchanged(".claude/settings.json", `{}`)
		if r := j.mustHost("git -C r config user.name"); r.stdout != "host\n" {
			t.Errorf("git's configuration: %q", r.all())
		}
	})
}

// What a command makes of its own goes on working: builds, clones, packages.
func TestLateOwnWork(t *testing.T) {
	need.Program(t, "git")
	lateProviders(t, func(t *testing.T, j *jail) {
		j.mustHost("git init -q src && cd src && mkdir .vscode && echo {} > .vscode/x.json && echo all: > Makefile && git add . && git commit -qm 1")
		j.own()
		r := j.run(`sleep 0.4; git init -q . && git clone -q src a && cd a && git checkout -qb x && echo 1 >f && git add f && git -c user.name=a -c user.email=a@b commit -qm 2 &&
			git config user.name me; git worktree add -q ../tree && cd .. && git clone -q a b && rm -rf b && mkdir .husky && echo x >.husky/y && echo FINE`)
		if r.exit != 0 || !strings.Contains(r.stdout, "FINE") {
			t.Errorf("exit %d: %s", r.exit, r.all())
		}
	})
}

// Many files that come and go keep neither the command nor the watch from
// working.
func TestLateStress(t *testing.T) {
	lateProviders(t, func(t *testing.T, j *jail) {
		j.own()
		res := lateRun(t, j, `appears last/.env; closes last/.env; find . -name .env -exec cat {} +; ls | wc -l`, func() {
			for i := range 1000 {
				d := fmt.Sprintf("d%d", i%50)
				j.plant(d + "/.env")
				if i%3 != 0 {
					_ = os.RemoveAll(filepath.Join(j.w, d))
				}
			}
			time.Sleep(300 * time.Millisecond)
			j.plant("last/.env")
		})
		wantLate(t, j, res, "CLOSED last/.env")
	})
}

// When the supervisor is killed nothing is left of a watch.
func TestLateKilled(t *testing.T) {
	lateProviders(t, func(t *testing.T, j *jail) {
		j.own()
		cmd := j.command("--", "sleep", "60")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(500 * time.Millisecond)
		j.plant(".env")
		time.Sleep(100 * time.Millisecond)
		_ = cmd.Process.Signal(syscall.SIGKILL)
		_ = cmd.Wait()
		time.Sleep(200 * time.Millisecond)
		if out, _ := exec.Command("sh", "-c", "grep -l "+j.w+" /proc/[0-9]*/mountinfo").Output(); len(out) > 0 {
			t.Errorf("mounts are left in %s", out)
		}
		j.unchanged(".env", j.secret+"\n")
	})
}
