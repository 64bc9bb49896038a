//go:build linux

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tether-sandbox/tether/internal/need"
)

// EC-084: the environment is an allowlist.
func TestEC084(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		secrets := []string{"AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "ANTHROPIC_API_KEY", "MY_DB_URL", "XQ_RANDOM_NAME", "lower_case_name"}
		for _, name := range secrets {
			j.env = append(j.env, name+"="+j.secret)
		}
		const all = `env; set; export -p; cat /proc/self/environ`
		j.opens(all, j.secret)
		got := j.run(all)
		j.noSecret(got)
		for _, name := range secrets {
			if strings.Contains(got.stdout, name) {
				t.Errorf("the name %s was passed", name)
			}
		}
		for _, name := range []string{"PATH", "HOME", "LANG", "TERM", "TMPDIR"} {
			if r := j.run(`test -n "$` + name + `" && echo "$` + name + `"`); r.exit != 0 {
				t.Errorf("%s is not set: %s", name, r.all())
			}
		}
		if r := j.run(`touch "$TMPDIR/x" && touch "$HOME/x" && ls "$HOME/x"`); r.exit != 0 {
			t.Errorf("TMPDIR and HOME must be writable: %s", r.all())
		}
	})
}

// EC-085: process 1 inside does not keep the original environment.
func TestEC085(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.env = append(j.env, "SEKRET="+j.secret)
		const own = `tr '\0' '\n' </proc/self/environ`
		j.opens(own, j.secret)
		for _, script := range []string{own, `tr '\0' '\n' </proc/1/environ`, `cat /proc/*/environ /proc/*/task/*/environ`,
			`for f in /proc/*/environ; do tr '\0' '\n' <$f; done`, `strings -a /proc/1/environ; xxd /proc/1/environ`} {
			j.noSecret(j.run(script))
		}
		// From outside as well: whoever may look at a helper finds nothing in it.
		adopt(t)
		tag := seconds(30)
		cmd := j.command("--", "sleep", tag)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait(); nothingLeft(t, 5*time.Second) }()
		if !soon(10*time.Second, func() bool { return runs(tag, cmd.Process.Pid) }) {
			t.Fatal("the command did not start")
		}
		held := func(pid int) bool {
			b, _ := os.ReadFile(filepath.Join("/proc", itoa(pid), "environ"))
			return strings.Contains(string(b), j.secret)
		}
		if !held(cmd.Process.Pid) {
			t.Fatal("control: tether itself was started with the secret")
		}
		for _, p := range offspring() {
			if p.pid != cmd.Process.Pid && held(p.pid) {
				t.Errorf("in the environment of %s", p)
			}
		}
	})
}

// runs says whether a process other than tether itself has the word tag.
func runs(tag string, tether int) bool {
	for _, p := range living(tag) {
		if p.pid != tether && strings.HasPrefix(p.words, "sleep") {
			return true
		}
	}
	return false
}

// EC-086: what the policy passes stands in no argument list.
func TestEC086(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		adopt(t)
		for _, c := range []struct {
			flag string
			own  bool // the value was typed into tether's own command line
		}{{"TOKEN", false}, {"TOKEN=" + j.secret, true}} {
			tag := seconds(30)
			cmd := j.command("--env", c.flag, "--", "sh", "-c", `test -n "$TOKEN" && sleep `+tag)
			cmd.Env = append(cmd.Env, "TOKEN="+j.secret)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if !soon(10*time.Second, func() bool { return runs(tag, cmd.Process.Pid) }) {
				t.Fatal("the command did not start, or TOKEN was not passed")
			}
			for _, p := range processes() {
				if strings.Contains(p.words, j.secret) && (p.pid != cmd.Process.Pid || !c.own) {
					t.Errorf("--env %s: in the arguments of %s", c.flag, p)
				}
			}
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			nothingLeft(t, 5*time.Second)
		}
	})
}

// EC-087: no loader or interpreter variable of the host is passed, and none
// affects what Tether itself starts.
func TestEC087(t *testing.T) {
	need.Program(t, "gcc")
	providers(t, func(t *testing.T, j *jail) {
		j.systemPath()
		hooked := filepath.Join(j.out, "PWN")
		evil := j.write(filepath.Join(j.out, "evil.sh"), "touch "+hooked+"; echo "+j.secret+"\n")
		j.write(filepath.Join(j.out, "evil.py"), "print('"+j.secret+"')\n")
		j.write(filepath.Join(j.out, "Evil.pm"), "package Evil; print '"+j.secret+"'; 1;\n")
		j.write(filepath.Join(j.out, "evil.js"), "console.log('"+j.secret+"')\n")
		source := j.write(filepath.Join(j.out, "evil.c"), `
#include <fcntl.h>
#include <unistd.h>
__attribute__((constructor)) static void hook(void) { close(open("`+hooked+`", O_CREAT|O_WRONLY, 0666)); write(1, "`+j.secret+`\n", 16); }
`)
		library := filepath.Join(j.out, "evil.so")
		if out, err := exec.Command("gcc", "-shared", "-fPIC", "-o", library, source).CombinedOutput(); err != nil {
			t.Fatalf("gcc: %v: %s", err, out)
		}
		_ = os.Chmod(j.out, 0o777)
		// Each with shell text that shows its effect on the host; "env" for those
		// whose effect needs more than one word.
		vars := [][2]string{{"LD_PRELOAD=" + library, "true"}, {"LD_AUDIT=" + library, "env"}, {"LD_LIBRARY_PATH=" + j.out, "env"},
			{"BASH_ENV=" + evil, "bash -c :"}, {"ENV=" + evil, "env"}, {"PROMPT_COMMAND=echo " + j.secret, "env"},
			{"PYTHONSTARTUP=" + filepath.Join(j.out, "evil.py"), "env"},
			{"PERL5OPT=-I" + j.out + " -MEvil", "perl -e1"}, {"PERL5LIB=" + j.out, "perl -MEvil -e1"},
			{"NODE_OPTIONS=--require " + filepath.Join(j.out, "evil.js"), "node -e 1"}, {"GIT_EXTERNAL_DIFF=" + evil, "env"},
			{"GIT_SSH_COMMAND=" + evil, "env"}, {"GIT_PAGER=" + evil, "env"}, {"EDITOR=" + evil, "env"}, {"PAGER=" + evil, "env"},
			{"LESSOPEN=|" + evil, "env"}, {"RUBYOPT=-r" + evil, "env"}, {"JAVA_TOOL_OPTIONS=-Dx=" + j.secret, "env"},
			{"BASH_FUNC_ls%%=() { echo " + j.secret + "; }", "bash -c ls"}, {"GCONV_PATH=" + j.out, "env"},
			{"MALLOC_CONF=" + j.secret, "env"}, {"GODEBUG=x=" + j.secret, "env"}, {"GOFLAGS=-toolexec=" + evil, "env"}}
		plain := j.env
		for _, v := range vars {
			j.env = append(plain[:len(plain):len(plain)], v[0])
			_ = os.Remove(hooked)
			control := exec.Command("bash", "-c", v[1]) // sh drops what is no name
			control.Env, control.Dir = j.env, j.w
			out := finishCommand(t, control).all()
			if _, err := os.Stat(hooked); err != nil && !strings.Contains(out, j.secret) && !strings.Contains(out, v[0]) {
				t.Fatalf("control: %s has no effect on the host: %s", v[0], out)
			}
		}
		j.env = plain[:len(plain):len(plain)]
		for _, v := range vars {
			j.env = append(j.env, v[0])
		}
		_ = os.Remove(hooked)
		got := j.run(`bash -c 'ls; env'; perl -e1; node -e 1; python3 -c 'import sys; sys.exit("evil" in sys.modules)'; cat /proc/self/environ`)
		if got.exit != 0 || !strings.Contains(got.stdout, "TETHER=1") {
			t.Errorf("got exit %d: %s", got.exit, got.all())
		}
		j.noSecret(got)
		for _, v := range vars {
			if strings.Contains(got.stdout, v[0]) {
				t.Errorf("%s was passed", v[0])
			}
		}
		j.absent(hooked)
	})
}

// EC-089: neither a passed secret nor one in a URL is in what Tether writes.
func TestEC089(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.mustHost("git init -q . && git remote add origin https://user:$SECRET@example.com/x?token=$SECRET")
		j.env = append(j.env, "TOKEN="+j.secret)
		url := "https://user:" + j.secret + "@example.com/x?token=" + j.secret
		report := filepath.Join(j.out, "report.json")
		tag := seconds(1)
		cmd := j.command("-v", "--no-network", "--report", report, "--env", "TOKEN", "--", "sh", "-c", `sleep `+tag+`; test -n "$TOKEN"; exit 3`, "sh", url)
		out := filepath.Join(j.out, "stderr")
		file, err := os.Create(out)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		cmd.Stderr = file
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if !soon(10*time.Second, func() bool { return runs(tag, cmd.Process.Pid) }) {
			t.Fatal("the command did not start")
		}
		if len(j.pending()) == 0 {
			t.Fatal("control: a run that lives has a record")
		}
		holds := func(when string) {
			for _, dir := range []string{j.state, j.out} {
				_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
					if err != nil || !d.Type().IsRegular() {
						return nil
					}
					b, err := os.ReadFile(path)
					if err == nil && strings.Contains(string(b), j.secret) {
						t.Errorf("%s the secret is in %s: %.300s", when, path, b)
					}
					return nil
				})
			}
		}
		holds("during the run")
		_ = cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != 3 {
			t.Errorf("got exit %d, want 3", code)
		}
		holds("after the run")
		var parsed map[string]any
		b, err := os.ReadFile(report)
		if err != nil || json.Unmarshal(b, &parsed) != nil {
			t.Errorf("the report: %v: %s", err, b)
		}
		// A URL in a command that fails to start, and one that the guard sees.
		for _, words := range [][]string{{"/nonexistent", url}, {"curl", "-sS", "--max-time", "1", url}} {
			r := finishCommand(t, j.command(append([]string{"-v", "--no-network", "--report", report, "--"}, words...)...))
			j.noSecret(r)
			holds("after " + words[0])
		}
	})
}
