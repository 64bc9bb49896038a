package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// EC-022: plant a hook in an existing hooks directory.
func TestEC022(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.repo()
		j.write(".git/hooks/pre-commit.sample", "#!/bin/sh\n")
		plant := j.hook(".git/hooks/pre-commit")
		j.fires(plant)
		refused(t, j.steps(plant, `printf x > .git/hooks/post-commit`, `mv .git/hooks .git/h2`, `rm -r .git/hooks`,
			`ln -s /tmp .git/hooks/x`, `chmod +x .git/hooks/pre-commit.sample`))
		j.absent(".git/hooks/pre-commit")
		j.editRefuses(".git/hooks/pre-commit", ".git/hooks/post-commit", ".git/hooks/pre-commit.sample", ".git/config")
		j.absent(".git/hooks/pre-commit")
		j.calm()
	})
}

// EC-023: executable keys in .git/config by six routes.
func TestEC023(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.repo()
		before := j.read(".git/config")
		key := `[core]\n\tfsmonitor = "touch ` + j.pwn() + `; false"\n`
		routes := []string{
			`git config core.fsmonitor 'touch ` + j.pwn() + `; false'`,
			`printf '` + key + `' >> .git/config`,
			`sed -i 's|^.core.$|[core]\n\tfsmonitor = "touch ` + j.pwn() + `; false"|' .git/config`,
			`printf '` + key + `' | tee -a .git/config`,
			`{ cat .git/config; printf '` + key + `'; } > x && cp x .git/config`,
			`{ cat .git/config; printf '` + key + `'; } > x && mv -f x .git/config`,
		}
		for _, r := range routes {
			j.fires(r)
		}
		refused(t, j.steps(routes...))
		j.unchanged(".git/config", before)
		got := j.run("rm -f x; git config user.name; git config core.bare")
		if got.stdout != "Host\nfalse\n" {
			t.Errorf("reading the configuration inside: got %q, want the true values", got.all())
		}
		j.calm()
	})
}

// EC-024: move .git aside and rebuild it.
func TestEC024(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.repo()
		rebuild := `mkdir -p .git/hooks; cp -r .git2/objects .git2/refs .git2/HEAD .git/;
			{ cat .git2/config; printf '[core]\n\tfsmonitor = "touch ` + j.pwn() + `; false"\n'; } > .git/config`
		j.fires("mv .git .git2; " + rebuild)
		refused(t, j.steps(`mv .git .git2`, `rm -rf .git`, `rmdir .git`, `mkdir e; mv -T --exchange e .git`))
		j.steps(`cp -r .git .git2; rm -rf .git; ` + rebuild)
		j.mustHost(`rm -rf .git2 e`)
		j.calm()
	})
}

// EC-027: no repository at the start, the command makes one.
func TestEC027(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		plant := `git init -q -b main . && git config user.name In && git config user.email in@example.com &&
			echo a > a && git add a && git commit -q -m a && git config core.fsmonitor 'touch ` + j.pwn() + `; false' && ` +
			j.hook(".git/hooks/pre-commit")
		j.fires(plant)
		rep := j.report(plant)
		if rep["exit"] != float64(0) {
			t.Errorf("git init inside: got %v", rep)
		}
		list := findings(rep)
		if !mentions(list, "rewritten", "/.git/config") || !mentions(list, "quarantined", "/.git/hooks/pre-commit") {
			t.Errorf("findings: got %q, want the key rewritten and the hook moved away", list)
		}
		if got := j.mustHost("git config user.name; git log --format=%s -1").stdout; got != "In\na\n" {
			t.Errorf("the new repository on the host: got %q, want name and commit", got)
		}
		j.calm()
	})
}

// EC-028: a repository without a hooks directory.
func TestEC028(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.repo()
		j.mustHost("rm -rf .git/hooks")
		if r := j.run("true"); r.exit != 0 {
			t.Fatalf("got %q", r.all())
		}
		j.absent(".git/hooks")
		plant := "mkdir -p .git/hooks && " + j.hook(".git/hooks/pre-commit")
		j.fires(plant)
		j.run(plant)
		j.absent(".git/hooks/pre-commit")
		j.calm()
		// A link to a folder of the tree is no way around.
		j.mustHost("rm -rf .git/hooks")
		plant = "mkdir -p h && ln -s ../h .git/hooks && " + j.hook("h/pre-commit")
		j.fires(plant)
		j.run(plant)
		j.calm()
	})
}

// EC-029: nested repositories at any depth.
func TestEC029(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.repo()
		j.mustHost(`mkdir -p a/b/c && git clone -q . a/b/c/old && mkdir -p a/b/c/old/.git/hooks`)
		old := j.hook("a/b/c/old/.git/hooks/pre-commit")
		j.firesIn(old, "a/b/c/old")
		fresh := `git init -q vendor/x; mkdir -p vendor/x/.git/hooks; ` + j.hook("vendor/x/.git/hooks/pre-commit")
		j.firesIn(fresh, "vendor/x")
		before := j.read("a/b/c/old/.git/config")
		refused(t, j.steps(old, `git -C a/b/c/old config core.fsmonitor x`, `mv a/b/c/old/.git a/b/c/old/.g`))
		// Folders above a nested repository may be moved: that is ordinary work.
		// What is rebuilt in their place is a new repository.
		moved := `mv a/b/c/old a/b/c/moved && cp -r a/b/c/moved a/b/c/old && ` + j.hook("a/b/c/old/.git/hooks/pre-commit")
		j.firesIn(moved, "a/b/c/old")
		rep := j.report(fresh + "; " + moved)
		if list := findings(rep); !mentions(list, "quarantined", "vendor/x/.git/hooks/pre-commit") {
			t.Errorf("findings: got %q, want the hook of the new repository", list)
		}
		j.calm("vendor/x", "a/b/c/old")
		if _, err := os.Lstat(filepath.Join(j.w, "a/b/c/moved/.git/config")); err == nil {
			j.unchanged("a/b/c/moved/.git/config", before)
		}
	})
}

// EC-034: core.hooksPath points into the workspace.
func TestEC034(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.repo()
		j.mustHost(`mkdir -p hk/_ && printf '#!/bin/sh\nexit 0\n' > hk/_/pre-commit && chmod +x hk/_/pre-commit &&
			git config core.hooksPath hk/_`)
		routes := []string{j.hook("hk/_/pre-commit"), j.hook("hk/_/commit-msg"),
			`mv hk hk2 && mkdir -p hk/_ && ` + j.hook("hk/_/pre-commit"),
			`mv hk/_ hk/x && mkdir -p hk/_ && ` + j.hook("hk/_/pre-commit")}
		for _, r := range routes {
			j.fires(r)
		}
		refused(t, j.steps(routes...))
		j.unchanged("hk/_/pre-commit", "#!/bin/sh\nexit 0\n")
		j.calm()
	})
}

// EC-034, the folder that the configuration names is not there yet.
func TestEC034Absent(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.repo()
		j.mustHost(`git config core.hooksPath .husky/_`)
		plant := `mkdir -p .husky/_ && ` + j.hook(".husky/_/pre-commit")
		j.fires(plant)
		j.run(plant)
		j.calm()
	})
}

// EC-035: the hooks directory is a link into the tree.
func TestEC035(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.repo()
		j.mustHost(`rm -rf .git/hooks; mkdir githooks; ln -s ../githooks .git/hooks`)
		plant := j.hook("githooks/pre-commit")
		j.fires(plant)
		refused(t, j.steps(plant, `mv githooks g2`))
		j.calm()
		// The link itself lies in a folder that git must write.
		plant = `rm -f .git/hooks; mkdir .git/hooks && ` + j.hook(".git/hooks/pre-commit")
		j.fires(plant)
		j.run(plant)
		j.calm()
	})
}

// EC-037: config.worktree is honoured.
func TestEC037(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.repo()
		j.mustHost(`git config extensions.worktreeConfig true`)
		plant := `printf '[core]\n\tfsmonitor = "touch ` + j.pwn() + `; false"\n' > .git/config.worktree`
		j.fires(plant)
		// Absent, it can be made; it has lost its force when the run has ended.
		rep := j.report("git status -s && " + plant)
		if rep["exit"] != float64(0) || !mentions(findings(rep), "/.git/config.worktree") {
			t.Errorf("config.worktree made inside: got %v, want it found", rep)
		}
		j.calm()
		j.mustHost(`printf '[core]\n\tbare = false\n' > .git/config.worktree`)
		s := j.steps(plant, `rm -f .git/config.worktree`, `git status -s`)
		refused(t, s[:2])
		works(t, s[2:])
		j.unchanged(".git/config.worktree", "[core]\n\tbare = false\n")
		j.calm()
	})
}

// EC-038: attributes bind an existing driver to files of the command's.
func TestEC038(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.repo()
		j.write("filter.sh", "#!/bin/sh\ncat\n")
		j.write(".gitattributes", "*.bin filter=f\n")
		j.mustHost(`chmod +x filter.sh; mkdir -p .git/info; git config filter.f.clean ./filter.sh; git add -A; git commit -q -m x`)
		script := `printf '#!/bin/sh\ntouch ` + j.pwn() + `\ncat\n' > filter.sh`
		j.fires(script + "; echo 1 > 1.bin")
		info := `printf '* filter=f\n' > .git/info/attributes`
		refused(t, j.steps(info, `mv .git/info .git/i2`))
		rep := j.report(script + `; printf '* filter=f\n' > .gitattributes`)
		list := findings(rep)
		for _, want := range []string{"/filter.sh", "/.gitattributes"} {
			if !mentions(list, "reported", want) {
				t.Errorf("findings: got %q, want %s reported as running later", list, want)
			}
		}
		j.absent(".git/info/attributes")
	})
}

// EC-038, the driver stands in the user's own configuration.
func TestEC038Global(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.repo()
		j.write(filepath.Join(j.state, "git/config"), "[filter \"g\"]\n\tclean = ./filter.sh\n")
		bind := `printf '* filter=g\n' > .gitattributes; printf '#!/bin/sh\ntouch ` + j.pwn() + `\ncat\n' > filter.sh; chmod +x filter.sh`
		j.mustHost(`cp -a "$W" "$OUT/door"; cd "$OUT/door"; ` + bind + `; unset GIT_CONFIG_GLOBAL; git add -A; rm "$OUT/PWN"`)
		if list := findings(j.report(bind)); !mentions(list, "reported", "/.gitattributes") {
			t.Errorf("findings: got %q, want the attributes", list)
		}
	})
}

// EC-039: git directories that a workspace claims.
func TestEC039(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		victim := j.write(filepath.Join(j.out, "victim/config"), "[user]\n\tname = "+j.secret+"\n")
		j.write(filepath.Join(j.out, "victim/HEAD"), "ref: refs/heads/main\n")
		j.write(filepath.Join(j.out, "victim/notes"), j.secret)
		j.mustHost(`mkdir -p "$OUT/victim/objects" "$OUT/victim/refs"`)
		look := "cat " + victim + " " + filepath.Join(j.out, "victim/notes") + "; git config user.name; touch " + j.out + "/victim/new"
		claims := map[string]string{
			"gitdir":    `echo "gitdir: $OUT/victim" > .git`,
			"relative":  `echo "gitdir: ../out/victim" > .git`,
			"link":      `ln -s "$OUT/victim" .git`,
			"commondir": `mkdir .git && echo "ref: refs/heads/main" > .git/HEAD && echo "$OUT/victim" > .git/commondir && mkdir .git/objects .git/refs`,
			"upwards":   `mkdir .git && echo "ref: refs/heads/main" > .git/HEAD && echo ../../out/victim > .git/commondir`,
			"worktrees": `mkdir -p "$OUT/victim/worktrees/x" && echo ../.. > "$OUT/victim/worktrees/x/commondir" && cp "$OUT/victim/HEAD" "$OUT/victim/worktrees/x/" &&
				echo "$OUT/other/.git" > "$OUT/victim/worktrees/x/gitdir" && echo "gitdir: $OUT/victim/worktrees/x" > .git`,
		}
		for name, claim := range claims {
			j.mustHost(`rm -rf .git; ` + claim)
			j.opens(look, j.secret)
			j.mustHost(`rm -f "$OUT/victim/new"`)
			j.ownAll()
			rep := j.report(look)
			text, _ := rep["stdout"].(string)
			if strings.Contains(text, j.secret) {
				t.Errorf("%s: what the workspace claims was shown: %s", name, text)
			}
			j.absent(filepath.Join(j.out, "victim/new"))
			if !strings.Contains(notes(rep), "git at") {
				t.Errorf("%s: notes: got %q, want one about git", name, notes(rep))
			}
		}
	})
}

// EC-040: Tether itself executes nothing of a repository's configuration.
func TestEC040(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.repo()
		script := j.write(filepath.Join(j.out, "run.sh"), "#!/bin/sh\ntouch "+j.pwn()+"\ncat\nfalse\n")
		j.write(".gitattributes", "* filter=f diff=f\n")
		j.mustHost(`chmod 755 "$OUT/run.sh"; for k in core.fsmonitor diff.external filter.f.clean filter.f.smudge diff.f.textconv core.pager \
			core.sshCommand core.askPass credential.helper gpg.program core.alternateRefsCommand; do git config $k "` + script + `"; done
			mkdir -p .git/hooks; cp "$OUT/run.sh" .git/hooks/post-index-change; cp "$OUT/run.sh" .git/hooks/reference-transaction`)
		j.fires("true")
		j.plant(".env")
		j.host(`rm -f "$OUT/PWN"; git -c core.fsmonitor= -c core.hooksPath=/x -c filter.f.clean=cat -c diff.f.textconv=cat add -f .env; rm -f "$OUT/PWN"`)
		j.run("true")
		j.explain()
		for _, verb := range []string{"doctor", "clean"} {
			cmd := exec.Command(binary, verb)
			cmd.Env, cmd.Dir = j.env, j.w
			finishCommand(t, cmd)
		}
		j.absent(j.pwn())
	})
}

// EC-041: the policy folder is absent at the start.
func TestEC041(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		allow := `profile = "full-access"`
		before := j.explain().stdout
		routes := []string{
			`mkdir -p .tether; echo '` + allow + `' > .tether/policy.toml`,
			`mkdir x; echo '` + allow + `' > x/policy.toml; mv x .tether`,
			`mkdir evil; echo '` + allow + `' > evil/policy.toml; ln -s evil .tether`,
			`ln -s nowhere .tether`, `echo x > .tether`,
			`mkdir .Tether; echo '` + allow + `' > .Tether/policy.toml`,
		}
		for _, r := range routes {
			if h := j.mustHost(r + "; ls -d .tether .Tether 2>/dev/null; rm -rf .tether .Tether x evil"); h.stdout == "" {
				t.Fatalf("control: %q must make the folder", r)
			}
			j.run(r)
			j.absent(".tether")
			if after := j.explain().stdout; after != before && !strings.Contains(r, "evil") && !strings.Contains(r, ".Tether") {
				t.Errorf("%s: the next run has another policy", r)
			}
			j.mustHost("rm -rf evil .Tether")
		}
		// One that is there cannot be changed.
		j.write(".tether/policy.toml", "# mine\n")
		refused(t, j.steps(`echo x >> .tether/policy.toml`, `mv .tether t2`, `rm -rf .tether`, `touch .tether/x`,
			`rm .tether/policy.toml`))
		j.unchanged(".tether/policy.toml", "# mine\n")
		j.editRefuses(".tether/policy.toml", ".tether/x")
		j.unchanged(".tether/policy.toml", "# mine\n")
		j.mustHost("rm -rf .tether")
		j.editRefuses(".tether/policy.toml", ".Tether/policy.toml")
		j.absent(".tether")
	})
}

// EC-042: case and suffix variants of .git and .tether. On a file system that
// tells names apart they are ordinary folders, and harmless.
func TestEC042(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.repo()
		before := j.read(".git/config")
		key := `printf '[core]\n\tfsmonitor = "touch ` + j.pwn() + `; false"\n' > `
		j.fires(key + "x; cat x >> .git/config")
		var plants []string
		for _, name := range []string{".GIT", ".git.", ".git ", "git~1", ".g\u200cit", ".Git", ".tether.", ".Tether"} {
			plants = append(plants, `mkdir -p "`+name+`/hooks"; `+key+`"`+name+`/config"; `+j.hook(`"`+name+`/hooks/pre-commit"`)+
				`; echo 'profile = "full-access"' > "`+name+`/policy.toml"`)
		}
		policy := j.explain().stdout
		for _, name := range []string{".GIT", ".git.", ".git ", "git~1", ".g\u200cit", ".Git", ".Tether"} {
			j.editRefuses(name + "/config")
		}
		j.steps(plants...)
		j.unchanged(".git/config", before)
		j.absent(".git/hooks/pre-commit")
		if after := j.explain().stdout; len(after) > len(policy)+2000 {
			t.Errorf("the next run has another policy: %s", after)
		}
		j.calm()
	})
}

// EC-029, other shapes of a repository that a command can make.
func TestEC029Shapes(t *testing.T) {
	config := func(j *jail, path, more string) string {
		return `printf '[core]\n\trepositoryformatversion = 0\n` + more + `\tfsmonitor = "touch ` + j.pwn() + `; false"\n' > ` + path
	}
	shapes := []struct {
		name, dir string
		plant     func(j *jail) string
	}{
		{"bare", "e", func(j *jail) string {
			return `mkdir -p e/objects e/refs e/t; echo "ref: refs/heads/main" > e/HEAD; ` + config(j, "e/config", `\tworktree = t\n`)
		}},
		{"pointer", "s", func(j *jail) string {
			return `mkdir -p s g/objects g/refs; echo "ref: refs/heads/main" > g/HEAD; echo "gitdir: ../g" > s/.git; ` + config(j, "g/config", "")
		}},
		{"link", "s", func(j *jail) string {
			return `mkdir -p s g/objects g/refs; echo "ref: refs/heads/main" > g/HEAD; ln -s ../g s/.git; ` + config(j, "g/config", "")
		}},
		{"commondir", "s", func(j *jail) string {
			return `git init -q s; mkdir -p c/objects c/refs; echo ../../c > s/.git/commondir; ` + config(j, "c/config", "")
		}},
		{"not listed", "s", func(j *jail) string {
			return `git init -q s; mkdir -p s/.git/hooks; ` + j.hook("s/.git/hooks/pre-commit") + `; chmod 311 s s/.git/hooks`
		}},
		{"deep and not listed", "a/b/s", func(j *jail) string {
			return `mkdir -p a/b; git init -q a/b/s; ` + config(j, "a/b/s/.git/config", "") + `; chmod 311 a/b/s a/b a`
		}},
		{"top not listed", ".", func(j *jail) string {
			return j.hook("pc") + `; mkdir -p .git/hooks; mv pc .git/hooks/pre-commit; chmod 311 .`
		}},
		{"include", ".", func(j *jail) string {
			return `git config include.path ../inc 2>/dev/null || { git init -q n; git -C n config include.path ../../inc; }; ` + config(j, "inc", "")
		}},
		{"submodule", "m", func(j *jail) string {
			return `git init -q x; git -C x commit -q --allow-empty -m x; git -c protocol.file.allow=always submodule --quiet add ./x m; ` + j.hook(".git/modules/m/hooks/pre-commit")
		}},
		{"worktree", "wt", func(j *jail) string {
			return `git worktree add -q wt; ` + j.hook(".git/hooks/pre-commit") + `; git config extensions.worktreeConfig true; ` +
				config(j, ".git/worktrees/wt/config.worktree", "")
		}},
		{"attributes", "n", func(j *jail) string {
			return `git init -q n; mkdir -p n/.git/info; echo '* filter=z' > n/.git/info/attributes; git -C n config filter.z.clean 'touch ` + j.pwn() + `'`
		}},
	}
	for _, s := range shapes {
		t.Run(s.name, func(t *testing.T) {
			providers(t, func(t *testing.T, j *jail) {
				j.repo()
				j.mustHost("rm -rf .git/hooks")
				j.firesIn(s.plant(j), s.dir)
				j.run(s.plant(j))
				dirs := []string{s.dir}
				if _, err := os.Stat(filepath.Join(j.w, "n")); err == nil {
					dirs = append(dirs, "n")
				}
				j.calm(dirs...)
			})
		})
	}
}
