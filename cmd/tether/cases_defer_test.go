package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// startFiles are what shells and tools read in a home, without being asked.
var startFiles = []string{".bashrc", ".profile", ".zshrc", ".config/fish/config.fish", ".ssh/config", ".gitconfig", ".npmrc"}

// EC-044: shell start files in the real home.
func TestEC044(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		home, err := os.UserHomeDir()
		if err != nil {
			t.Skip("the caller has no home")
		}
		stamp := func() string {
			var b strings.Builder
			for _, f := range startFiles {
				info, err := os.Lstat(filepath.Join(home, f))
				if err != nil {
					fmt.Fprintln(&b, f, "absent")
					continue
				}
				fmt.Fprintln(&b, f, info.Size(), info.ModTime().UnixNano())
			}
			return b.String()
		}
		script := "set -e; for f in " + strings.Join(startFiles, " ") + `; do mkdir -p ~/$(dirname $f); echo "touch ` + j.pwn() + `" >> ~/$f; done`
		// Control: where the home is one that may be written, the files come to be.
		j.mustHost(`mkdir "$OUT/home"; HOME="$OUT/home"; ` + script + `; grep -q PWN "$OUT/home/.bashrc"`)
		before := stamp()
		if r := j.run(script, "--home", "private"); r.exit != 0 {
			t.Errorf("start files of a private home: got %q, want status 0", r.all())
		}
		for _, f := range startFiles {
			j.absent(f)
		}
		if after := stamp(); after != before {
			t.Errorf("the real home: got %s, want %s", after, before)
		}
		// By the name HOME has as a rule, the workspace, the files are ordinary
		// ones there, and told of.
		rep := j.report(script)
		if after := stamp(); after != before {
			t.Errorf("the real home: got %s, want %s", after, before)
		}
		list := findings(rep)
		for _, f := range []string{".bashrc", ".profile", ".zshrc", "config.fish", ".npmrc"} {
			if !mentions(list, "reported", f) {
				t.Errorf("findings: got %q, want %s", list, f)
			}
		}
		// The account's own home by its path is not there at all.
		refused(t, j.steps("echo x >> "+home+"/.tether-test-never", "ls "+home+"/.bashrc"))
		j.absent(filepath.Join(home, ".tether-test-never"))
	})
}

// EC-045: files that a developer's tools run by themselves.
func TestEC045(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		files := []string{".envrc", ".vscode/tasks.json", ".idea/runConfigurations/x.xml", ".devcontainer/devcontainer.json",
			"package.json", "Makefile", "conftest.py", ".cargo/config.toml", ".npmrc", ".pre-commit-config.yaml",
			"node_modules/.bin/git", ".venv/bin/activate", ".mcp.json", ".claude/settings.json", ".cursor/mcp.json",
			".codex/config.toml", ".gemini/settings.json", "sub/deep/package.json", ".github/workflows/ci.yml"}
		locked := []string{".vscode/tasks.json", ".idea/runConfigurations/x.xml", ".devcontainer/devcontainer.json", ".mcp.json",
			".claude/settings.json", ".cursor/mcp.json", ".codex/config.toml", ".gemini/settings.json"}
		var b strings.Builder
		for _, f := range files {
			fmt.Fprintf(&b, "mkdir -p '%s'; echo 'touch %s' >> '%s'\n", filepath.Dir(f), j.pwn(), f)
		}
		list := findings(j.report(b.String()))
		for _, f := range files {
			if j.read(f) == "" || !mentions(list, "reported", "/w/"+f) {
				t.Errorf("created %s: findings %q do not tell of it", f, list)
			}
		}
		// Present, each is either refused or told of again.
		list = findings(j.report(b.String()))
		for _, f := range files {
			lines := strings.Count(j.read(f), "\n")
			told := mentions(list, "reported", "/w/"+f)
			if lines == 2 && !told || lines != 1 && lines != 2 {
				t.Errorf("changed %s: it has %d lines and findings %q do not tell of it", f, lines, list)
			}
		}
		var routes []string
		for _, f := range locked {
			if n := strings.Count(j.read(f), "\n"); n != 1 {
				t.Errorf("%s: got %d lines, want it locked while present", f, n)
			}
			routes = append(routes, "echo x > "+f, "rm -f "+f, "mv "+f+" other")
		}
		refused(t, j.steps(append(routes, "mv .vscode v2", "rm -rf .claude", "touch .cursor/new")...))
		// One lock can be lifted.
		if r := j.run("echo ok > .vscode/tasks.json", "--allow-config", ".vscode"); r.exit != 0 {
			t.Errorf("--allow-config .vscode: got %q", r.all())
		}
		hint := "--allow-config " + filepath.Join(j.w, ".vscode")
		if r := j.edit("x", "write", ".vscode/tasks.json"); r.exit != exitOurs || !strings.Contains(r.all(), "hint: "+hint+"\n") {
			t.Errorf("the edit of a locked file: got %q, want the hint %q", r.all(), hint)
		}
		// A folder is lifted whole, or not at all.
		if r := j.run("true", "-v", "--allow-config", ".vscode/tasks.json"); !strings.Contains(r.all(), hint) {
			t.Errorf("--allow-config below a locked folder: got %q, want a note with %q", r.all(), hint)
		}
	})
}

// EC-046: the workspace supplies the launcher itself.
func TestEC046(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.repo()
		for _, n := range []string{"bwrap", "git", "sh", "socat", "newuidmap", "getent", "ldconfig", "tether"} {
			p := j.write("node_modules/.bin/"+n, "#!/bin/sh\ntouch "+j.pwn()+"\nexit 1\n")
			q := j.write(n, "#!/bin/sh\ntouch "+j.pwn()+"\nexit 1\n")
			for _, x := range []string{p, q} {
				if err := os.Chmod(x, 0o755); err != nil {
					t.Fatal(err)
				}
			}
		}
		path := j.w + "/node_modules/.bin:.:" + j.w + ":" + os.Getenv("PATH")
		j.mustHost(`PATH="` + path + `"; bwrap; rm "$OUT/PWN"`)
		for i, kv := range j.env {
			if strings.HasPrefix(kv, "PATH=") {
				j.env[i] = "PATH=" + path
			}
		}
		for _, dir := range []string{j.w, "/", j.w + "/node_modules/.bin"} {
			cmd := j.command("--", "/bin/sh", "-c", "echo inside")
			cmd.Dir = dir
			if r := finishCommand(t, cmd); r.stdout != "inside\n" {
				t.Errorf("from %s: got %q, want the command to run", dir, r.all())
			}
			j.absent(j.pwn())
		}
	})
}

// EC-049: the host's /tmp and /var/tmp keep nothing.
func TestEC049(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		tmp := filepath.Join(j.out, "tmp")
		if err := os.Mkdir(tmp, 0o777); err != nil {
			t.Fatal(err)
		}
		j.env = append(j.env, "TMPDIR="+tmp)
		name := "left-" + j.secret
		script := fmt.Sprintf(`set -e; echo x > /tmp/%s; ln -s /etc/passwd /tmp/tether-%s; echo y > /var/tmp/%s; echo z > "${TMPDIR:-/tmp}/t-%s"; ls /tmp`,
			name, name, name, name)
		j.mustHost(script + fmt.Sprintf(`; cat /tmp/%s /var/tmp/%s; rm -f /tmp/%s /tmp/tether-%s /var/tmp/%s "$TMPDIR/t-%s"`,
			name, name, name, name, name, name))
		if r := j.run(script); r.exit != 0 || !strings.Contains(r.stdout, name) {
			t.Errorf("writing below /tmp inside: got %q, want it to work", r.all())
		}
		for _, p := range []string{"/tmp/" + name, "/tmp/tether-" + name, "/var/tmp/" + name} {
			j.absent(p)
		}
		if left, _ := os.ReadDir(tmp); len(left) != 0 {
			t.Errorf("TMPDIR of the host: got %v, want nothing of Tether's left", left)
		}
		// A session keeps its /tmp, where nobody else of the host comes to.
		if r := j.run(script, "--session", "s"); r.exit != 0 {
			t.Errorf("in a session: got %q", r.all())
		}
		for _, p := range []string{"/tmp/" + name, "/tmp/tether-" + name, "/var/tmp/" + name} {
			j.absent(p)
		}
		if r := j.run("cat /tmp/"+name, "--session", "s"); r.stdout != "x\n" && !j.foreign() {
			t.Errorf("the session's /tmp: got %q", r.all())
		}
		if r := j.run("ls /tmp/"+name, "--session", "other"); r.exit == 0 {
			t.Errorf("another session sees it: %q", r.all())
		}
		private := filepath.Join(j.state, "tether", "private")
		if info, err := os.Stat(private); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("got %v, %v; want a folder that nobody else can enter", info, err)
		}
		for _, id := range []string{"s", "other"} {
			if r := j.verb("", "session", "rm", id); r.exit != 0 {
				t.Errorf("session rm: %q", r.all())
			}
		}
		if left, err := os.ReadDir(private); err != nil || len(left) > 0 {
			t.Errorf("after session rm: got %v, %v", left, err)
		}
	})
}
