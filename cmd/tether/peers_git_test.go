package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// What is present keeps its content while its neighbours can be written.
func TestLockedNeighbours(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.repo()
		names := []string{".mcp.json", ".claude/settings.json", ".codex/config.toml", ".gemini/settings.json", ".cursor/mcp.json",
			".vscode/tasks.json", ".idea/workspace.xml", ".devcontainer/devcontainer.json", ".husky/pre-commit", ".tether/policy.toml",
			".bashrc", ".zshrc", ".profile", ".gdbinit", "deep/er/.vscode/settings.json", "ignored/.claude/settings.json"}
		j.write(".gitignore", "ignored/\n")
		var deny, allow []string
		for _, n := range names {
			j.write(n, "# mine\n")
			deny = append(deny, "echo x >> "+n, "rm -f "+n, "mv "+n+" q", "truncate -s0 "+n, "chmod 777 "+n)
			allow = append(allow, "echo x > "+filepath.Dir(n)+"x; cat "+n)
		}
		works(t, j.hostSteps(deny[:2]...))
		j.write(names[0], "# mine\n")
		refused(t, j.steps(deny...))
		s := j.steps(append(allow, "echo x > sibling", "git status -s >/dev/null", "echo o > .git/objects/x && rm .git/objects/x",
			"git update-ref refs/heads/z HEAD", "git add sibling")...)
		works(t, s)
		for _, x := range s {
			if strings.Contains(x.out, "ermission") || strings.Contains(x.out, "ead-only") {
				t.Errorf("%s: got %q, want no complaint", x.script, x.out)
			}
		}
		for _, n := range names {
			j.unchanged(n, "# mine\n")
		}
	})
}

// A locked name that is a link: what it leads to is locked.
func TestLockedLink(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.write("decoy/config.toml", "mine\n")
		j.mustHost("ln -s decoy .codex")
		refused(t, j.steps("echo x >> .codex/config.toml", "echo x >> decoy/config.toml", "mv decoy d2"))
		j.unchanged("decoy/config.toml", "mine\n")
		// The link itself can be replaced; what comes instead does not stay.
		list := findings(j.report("rm -f .codex; mkdir .codex; echo x > .codex/config.toml"))
		if !mentions(list, "quarantined", ".codex") {
			t.Errorf("findings: got %q, want the replaced folder", list)
		}
		j.absent(".codex")
	})
}

// The workspace is a folder inside a repository.
func TestSubdirectory(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.repo()
		j.write("sub/s.txt", "s\n")
		j.plant("outside.env", "sub/.env", ".env")
		j.mustHost(`git add -f -A && git commit -q -m sub && git remote add o https://u:` + j.secret + `@example.com/x; git status >/dev/null`)
		top, config := j.w, j.read(".git/config")
		plant := j.hook("../.git/hooks/pre-commit")
		j.mustHost("mkdir -p .git/hooks; cd sub && " + plant + `; git commit -q --allow-empty -m c; test -e "$OUT/PWN" && rm "$OUT/PWN" ../.git/hooks/pre-commit`)
		j.own()
		j.w = filepath.Join(top, "sub")
		rep := j.report("git rev-parse --show-toplevel; git log -1 --format=%s; git status -s .; git config --list")
		out, _ := rep["stdout"].(string)
		if !strings.Contains(out, top+"\nc\n") {
			t.Errorf("git inside: got %q %q, want it to find the parent", out, rep["stderr"])
		}
		if strings.Contains(out, j.secret) {
			t.Errorf("git inside shows the parent's credentials: %s", out)
		}
		if n := notes(rep); !strings.Contains(n, "read-only") || !strings.Contains(n, "tether run -C") || !strings.Contains(n, top) {
			t.Errorf("notes: got %q, want the parent read-only and the way out", n)
		}
		refused(t, j.steps(plant, "git commit -q --allow-empty -m x", "echo x >> ../.git/config", "mv ../.git ../g", "echo x > ../x",
			"cat ../outside.env", "git add s.txt x", "cat .env", "cat ../a.txt"))
		j.unchanged(filepath.Join(top, ".git/config"), config)
		// A repository of its own may be made; it is told of what would run.
		works(t, j.steps("echo n > n.txt", "true"))
		j.absent(".git")
		for _, n := range []string{".git", ".codex", ".agents", ".tether", ".claude"} {
			j.absent(n)
		}
		rep = j.report("git init -q . && mkdir -p .git/hooks && " + j.hook(".git/hooks/pre-commit") + "; mkdir .codex; echo x > .codex/config.toml")
		if list := findings(rep); !mentions(list, "quarantined", "sub/.git/hooks/pre-commit") || !mentions(list, "reported", ".codex/config.toml") {
			t.Errorf("findings: got %q, want the hook and the folder", list)
		}
		j.calm()
		j.mustHost("rm -rf .git .codex")
		j.w = top
		j.calm("sub")
	})
}

// git status in a folder of a repository, with a tracked hidden file in it.
func TestSubdirectoryTracked(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.repo()
		j.write("sub/s.txt", "s\n")
		j.plant("sub/.env")
		j.mustHost(`touch -d '1 hour ago' sub/.env sub/s.txt; git add -f -A && git commit -q -m sub`)
		j.own()
		j.w = filepath.Join(j.w, "sub")
		if got := j.run("git status --porcelain ."); got.stdout != "" || got.exit != 0 {
			t.Errorf("git status: got %q, want nothing", got.all())
		}
	})
}

// Nothing stands in for what is not there: neither during a run nor after one
// that was killed.
func TestNoPlaceholders(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		list := func() string { return j.mustHost(`find . | sort; find "$OUT" | sort`).stdout }
		before := list()
		cmd := j.command("--", "sh", "-c", "sleep 60")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		deadline := time.Now().Add(20 * time.Second)
		for !strings.Contains(j.host(`ps -eo args | grep '[s]leep 60'; true`).stdout, "sleep 60") && time.Now().Before(deadline) {
			time.Sleep(20 * time.Millisecond)
		}
		if during := list(); during != before {
			t.Errorf("during the run: got %q, want %q", during, before)
		}
		_ = cmd.Process.Signal(syscall.SIGKILL)
		_ = cmd.Wait()
		if after := list(); after != before {
			t.Errorf("after the kill: got %q, want %q", after, before)
		}
		j.run("true")
		if after := list(); after != before {
			t.Errorf("after the next run: got %q, want %q", after, before)
		}
		// A folder that the command fills stays; an empty one is the command's too.
		j.run("mkdir -p .git .claude; echo x > .claude/x")
		if after := list(); !strings.Contains(after, "./.claude/x") {
			t.Errorf("what the command made: got %q", after)
		}
	})
}

// What a killed run planted is taken away by the next one.
func TestSettledByTheNext(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.repo()
		j.mustHost("rm -rf .git/hooks")
		plant := "mkdir -p .git/hooks && " + j.hook(".git/hooks/pre-commit")
		j.fires(plant)
		cmd := j.command("--", "sh", "-c", plant+"; touch ready; sleep 60")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ready := false
		for deadline := time.Now().Add(20 * time.Second); !ready && time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
			_, err := os.Lstat(filepath.Join(j.w, "ready"))
			ready = err == nil
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if _, err := os.Lstat(filepath.Join(j.w, ".git/hooks/pre-commit")); err != nil || !ready {
			t.Fatalf("control: the killed run must leave its hook: %v", err)
		}
		if n := notes(j.report("true")); !strings.Contains(n, "left by a run that died") {
			t.Errorf("notes: got %q, want the hook", n)
		}
		j.absent(".git/hooks/pre-commit")
		j.calm()
	})
}

// --allow-config lets git's configuration be written, not its hooks, and takes
// the force out of what would run all the same.
func TestAllowGitConfig(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.repo()
		j.mustHost("mkdir -p .git/hooks")
		steps := []string{"git remote add o https://example.com/x", "git config core.fsmonitor 'touch " + j.pwn() + "; false'", j.hook(".git/hooks/pre-commit")}
		refused(t, j.steps(steps...))
		j.flags = []string{"--allow-config", ".git/config"}
		s := j.steps(steps...)
		works(t, s[:2])
		refused(t, s[2:])
		if got := j.mustHost("git remote").stdout; got != "o\n" {
			t.Errorf("git remote on the host: got %q, want o", got)
		}
		j.calm()
		// Not where showing the file would show its credentials.
		j.mustHost("git remote add secret https://u:" + j.secret + "@example.com/x")
		rep := j.report("git remote -v; cat .git/config; git remote add p https://example.com/y")
		out, _ := rep["stdout"].(string)
		if strings.Contains(out, j.secret) || rep["exit"] == float64(0) || !strings.Contains(notes(rep), "credentials") {
			t.Errorf("a configuration with credentials: got %q, exit %v, notes %q; want it kept as it is, and told", out, rep["exit"], notes(rep))
		}
	})
}

// A submodule that is initialised is worked in like any repository, and
// updated. Its configuration and its hooks stay as they are.
func TestSubmodule(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.repo()
		j.mustHost(`git init -q -b main "$OUT/lib" && cd "$OUT/lib" && echo l > l && git add l && git commit -q -m lib && cd "$W" &&
			git -c protocol.file.allow=always submodule --quiet add "$OUT/lib" lib && git commit -q -m lib && git -C lib config user.name In && git -C lib config user.email i@e`)
		config := j.read(".git/modules/lib/config")
		j.mustHost(`mkdir -p .git/modules/lib/hooks`)
		plant := j.hook(".git/modules/lib/hooks/pre-commit")
		j.firesIn(plant, "lib")
		refused(t, j.steps(plant, "cd lib && git config core.fsmonitor x", "mv .git/modules .git/m2", "mv .git/modules/lib .git/modules/l2",
			"echo 'gitdir: ../evil' > lib/.git", "mv lib/.git lib/g"))
		works(t, j.steps("git submodule status", "cd lib && echo 2 >> l && git commit -q -am two && git log -1", "git add lib && git commit -q -m bump",
			"git checkout -q HEAD~1 && git -C lib checkout -q $(git rev-parse HEAD:lib) && git status -s"))
		j.unchanged(".git/modules/lib/config", config)
		j.mustHost(`echo 3 > "$OUT/lib/l" && git -C "$OUT/lib" commit -q -am three`)
		works(t, j.steps("git -C lib checkout -q HEAD~1 2>/dev/null || git -C lib checkout -q HEAD^{}", "git submodule update", "test -z \"$(git status -s)\"", "git submodule update --init", "git submodule update --force", "git submodule update --checkout --recursive lib",
			"git submodule foreach git status -s", "test \"$(git -C lib rev-parse --show-toplevel)\" = \"$PWD/lib\"",
			"cd lib && git rev-parse --show-superproject-working-tree && git worktree list"))
		j.unchanged(".git/modules/lib/config", config)
		refused(t, j.steps(plant, "git -C lib config core.fsmonitor x", "cd .git/modules/lib && echo x > config", "git -C lib config --unset core.worktree"))
		if r := j.host("git -C lib rev-parse --show-toplevel; git submodule update; cd .git/modules/lib && git rev-parse --show-toplevel"); r.exit != 0 || strings.Count(r.stdout, j.w+"/lib\n") != 2 {
			t.Errorf("the host's git afterwards: %s", r.all())
		}
		j.flags = []string{"--allow-config", ".git/modules/lib/config"}
		works(t, j.steps("git submodule update", "git -C lib config user.email other@e"))
		j.calm("lib")
	})
}
