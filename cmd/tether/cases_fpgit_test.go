package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/tether-sandbox/tether/internal/need"
)

// identity puts who commits into the user's global file, and nowhere else.
func (j *jail) identity() {
	j.t.Helper()
	j.write(filepath.Join(j.state, "git/config"), "[user]\n\tname = Global\n\temail = global@example.com\n")
}

// EC-180: .git/config is readable and git usable.
func TestEC180(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.repo()
		j.mustHost(`git remote add origin https://user:` + j.secret + `@example.com/x.git; git remote add plain https://example.com/y.git`)
		s := j.steps(`git status -s`, `git log -1 --format=%s`, `git diff`, `git remote -v`, `git config --list`, `cat .git/config`)
		works(t, s)
		if s[0].out != "" || s[1].out != "first\n" || s[2].out != "" {
			t.Errorf("status, log, diff: got %q %q %q, want a clean tree and the subject", s[0].out, s[1].out, s[2].out)
		}
		if !strings.Contains(s[3].out, "origin\thttps://example.com/x.git") || !strings.Contains(s[3].out, "plain\thttps://example.com/y.git") {
			t.Errorf("remote -v: got %q, want the remotes without credentials", s[3].out)
		}
		for _, x := range s {
			if strings.Contains(x.out, j.secret) {
				t.Errorf("%s shows the credentials of a remote: %s", x.script, x.out)
			}
		}
		if !strings.Contains(s[4].out, "user.name=Host") {
			t.Errorf("config --list: got %q, want user.name", s[4].out)
		}
		if !strings.Contains(j.read(".git/config"), j.secret) {
			t.Error("the host's configuration lost its credentials")
		}
	})
}

// EC-181: commit, branch, merge, stash, gc, tag.
func TestEC181(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.repo()
		works(t, j.steps(`echo y>y; git add y; git commit -q -m y`, `git switch -q -c f`, `echo f>f; git add f; git commit -q -m f`,
			`git switch -q main`, `git merge -q -`, `echo z>z; git stash -q -u`, `git stash pop -q`, `git gc -q`, `git tag t`, `git branch -d f`))
		if got := j.mustHost("git log --format=%s; git tag; git branch --format='%(refname)'; git fsck --no-progress --no-dangling; cat z").stdout; got != "f\ny\nfirst\nt\nrefs/heads/main\nz\n" {
			t.Errorf("on the host: got %q", got)
		}
	})
}

// The day's work with git, in one jail.
func TestGitWork(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.repo()
		j.identity() // for the repositories that are made inside
		j.mustHost(`git init -q -b main "$OUT/lib" && cd "$OUT/lib" && echo l > l && git add l && git commit -q -m lib &&
			cd "$W" && git -c protocol.file.allow=always submodule --quiet add "$OUT/lib" lib && git commit -q -m lib`)
		config := j.read(".git/config")
		steps := []string{
			`git status -s`, `git log --oneline`, `git diff --stat`, `git show -s`, `git blame a.txt`,
			`echo 2 >> a.txt; git diff --exit-code -q; test $? = 1`, `git add -A`, `git commit -q -m second`, `git commit -q --amend -m two`,
			`git branch topic`, `git switch -q topic`, `echo t > t.txt; git add t.txt; git commit -q -m topic`,
			`git switch -q main`, `echo m > m.txt; git add m.txt; git commit -q -m m`,
			`git merge -q --no-edit topic`, `git switch -q -c rb HEAD~1`, `echo rb > rb.txt; git add rb.txt; git commit -q -m rb`,
			`git rebase -q main`, `git checkout -q main`, `git merge -q rb`, `git cherry-pick --allow-empty --keep-redundant-commits HEAD >/dev/null`,
			`echo s >> a.txt; git stash -q`, `git stash list`, `git stash pop -q`, `git stash -q -u; git stash drop -q`,
			`git tag v1`, `git tag -a v2 -m two`, `git describe`, `git gc -q`, `git prune`, `git fsck --no-progress`, `git repack -adq`,
			`git worktree add -q wt2 -b wt2`, `cd wt2 && echo w > w.txt && git add w.txt && git commit -q -m wt2 && git status -s`,
			`git worktree list`, `git worktree remove wt2`, `git branch -q -D wt2`,
			`git clone -q . cl`, `cd cl && git log -1 && git pull -q`, `git init -q in && cd in && git commit -q --allow-empty -m in`,
			`git submodule status`, `cd lib && git log -1 && git checkout -q -b x && echo x > x && git add x && git commit -q -m x`,
			`git archive HEAD | tar tf -`, `git format-patch -1 -o /tmp`, `git grep -q one`, `git reset -q --hard HEAD`, `git clean -ndx`,
			`git reflog`, `git bisect start HEAD HEAD~2 >/dev/null && git bisect reset 2>/dev/null`, `git rev-list --all --count`, `git branch -d topic rb`,
		}
		works(t, j.steps(steps...))
		j.unchanged(".git/config", config)
		got := j.mustHost(`git fsck --no-progress && git status -s -- a.txt t.txt m.txt rb.txt; git -C cl log -1 --format=%H; git log -1 --format=%H; git -C lib log -1 --format=%s`)
		if !strings.Contains(got.stdout, "x\n") {
			t.Errorf("on the host: got %q", got.all())
		}
	})
}

// EC-182: the identity, when the home is not the real one.
func TestEC182(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.identity()
		j.mustHost(`git init -q -b main .`)
		// Control: without the user's global files git does not know who commits.
		anonymous := `unset GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL; git -c user.useConfigOnly=true `
		if r := j.host(anonymous + `commit -q --allow-empty -m x`); r.exit == 0 {
			t.Fatalf("control: a commit by nobody must fail: %s", r.all())
		}
		want := j.mustHost(`unset GIT_CONFIG_GLOBAL; echo "$(git config user.name) <$(git config user.email)>"`).stdout
		works(t, j.steps(`git commit -q --allow-empty -m x`))
		if got := j.mustHost("git log -1 --format='%an <%ae>'").stdout; got != want {
			t.Errorf("author: got %q, want the one of the global files, %q", got, want)
		}
	})
}

// EC-182, an identity that holds below one folder only.
func TestEC182Conditional(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.write(filepath.Join(j.state, "git/config"), "[includeIf \"gitdir:"+j.w+"/\"]\n\tpath = work\n[includeIf \"gitdir:/nowhere/\"]\n\tpath = other\n")
		j.write(filepath.Join(j.state, "git/work"), "[tether]\n\tcase = work\n[alias]\n\twho = config tether.case\n")
		j.write(filepath.Join(j.state, "git/other"), "[tether]\n\tcase = other\n")
		j.mustHost(`git init -q -b main .`)
		want := j.mustHost(`unset GIT_CONFIG_GLOBAL; git who`).stdout
		s := j.steps(`git who`)
		if works(t, s); s[0].out != want {
			t.Errorf("git who: got %q, want %q", s[0].out, want)
		}
	})
}

// EC-183: a tracked protected file does not break git.
func TestEC183(t *testing.T) {
	tracked := func(t *testing.T, j *jail, age string) {
		j.repo()
		key := "-----BEGIN PRIVATE KEY-----\n" + j.secret + "\n-----END PRIVATE KEY-----\n"
		j.plant(".env.example", ".env", "sub/.env.local")
		j.write("certs/ca.pem", key)
		j.mustHost(`chmod 755 sub/.env.local; find . -path ./.git -prune -o -type f -exec touch -d '` + age + `' {} +; git add -A; git commit -q -m secrets`)
		works(t, j.steps(`test -z "$(git status --porcelain)" || { git status --porcelain; false; }`, `git diff --exit-code`, `git add -A`,
			`git diff --cached --exit-code`, `echo 2 >> a.txt; git stash -q && git stash pop -q`, `git commit -q -am two`,
			`git format-patch -q -1 -o /tmp`, `git checkout -q -b t`, `git switch -q main`, `git merge -q t`,
			`test -z "$(git status --porcelain)" || { git status --porcelain; false; }`))
		for _, s := range j.steps(`cat .env`, `cat sub/.env.local`, `cat certs/ca.pem`) {
			if s.rc == 0 || strings.Contains(s.out, j.secret) {
				t.Errorf("%s: got %q, want it refused", s.script, s.out)
			}
		}
		j.unchanged(".env", j.secret+"\n")
		j.unchanged("certs/ca.pem", key)
		if got := j.mustHost(`git status --porcelain; git show HEAD:.env`).stdout; got != j.secret+"\n" {
			t.Errorf("on the host: got %q, want a clean tree and the committed content", got)
		}
	}
	t.Run("settled", func(t *testing.T) {
		providers(t, func(t *testing.T, j *jail) { tracked(t, j, "1 hour ago") })
	})
	// The index is as young as the files: git does not trust their times then.
	t.Run("racy", func(t *testing.T) { providers(t, func(t *testing.T, j *jail) { tracked(t, j, "now") }) })
}

// EC-183, a hidden file that really differs from what is committed.
func TestEC183Modified(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.repo()
		j.plant(".env", "b.env")
		j.mustHost(`git add -A -f; git commit -q -m x; head -c 24 /dev/zero | tr '\0' n > .env`)
		if r := j.run("true"); r.exit != 0 {
			t.Errorf("got %q", r.all())
		}
		if got := j.mustHost(`git status --porcelain`).stdout; got != " M .env\n" {
			t.Errorf("host git status: got %q, want the modified file shown", got)
		}
	})
}

// EC-184: templates and public files stay readable.
func TestEC184(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		names := []string{".env.example", ".env.sample", ".env.template", ".env.dist", "id_rsa.pub", "known_hosts"}
		var steps []string
		for _, n := range names {
			j.write(n, "public "+n+"\n")
			steps = append(steps, "cat "+n)
		}
		s := j.steps(steps...)
		works(t, s)
		for i, n := range names {
			if s[i].out != "public "+n+"\n" {
				t.Errorf("%s: got %q, want its content", n, s[i].out)
			}
		}
	})
}

// EC-185: CA bundles and test certificates.
func TestEC185(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		need.Program(t, "openssl")
		need.Program(t, "python3")
		j.mustHost(`mkdir -p .venv/lib/certifi node_modules/x/test/fixtures testdata &&
			openssl req -x509 -newkey rsa:2048 -nodes -keyout testdata/private.key -out .venv/lib/certifi/cacert.pem -subj /CN=t -days 2 2>/dev/null &&
			cp .venv/lib/certifi/cacert.pem node_modules/x/test/fixtures/a.pem && openssl pkey -in testdata/private.key -pubout -out testdata/public.key`)
		s := j.steps(`python3 -c 'import ssl; print(len(ssl.create_default_context(cafile=".venv/lib/certifi/cacert.pem").get_ca_certs()))'`,
			`grep -q CERTIFICATE node_modules/x/test/fixtures/a.pem`, `grep -q PUBLIC testdata/public.key`, `cat testdata/private.key`)
		works(t, s[:3])
		if s[3].rc == 0 || strings.Contains(s[3].out, "PRIVATE") {
			t.Errorf("a private key: got %q, want it hidden", s[3].out)
		}
	})
}

// EC-186: the workspace is a linked worktree.
func TestEC186(t *testing.T) {
	layouts := map[string]string{
		"absolute": `git init -q -b main "$OUT/main" && cd "$OUT/main" && git commit -q --allow-empty -m first && git config user.name In && git config user.email in@e &&
			rmdir "$W" && git worktree add -q "$W" -b wt`,
		"relative": `git init -q -b main "$OUT/main" && cd "$OUT/main" && git commit -q --allow-empty -m first && git config user.name In && git config user.email in@e &&
			rmdir "$W" && git worktree add -q "$W" -b wt && echo "gitdir: ../out/main/.git/worktrees/w" > "$W/.git" && echo ../../../../../w/.git > .git/worktrees/w/gitdir`,
		"bare": `git init -q -b main "$OUT/seed" && cd "$OUT/seed" && git commit -q --allow-empty -m first && git clone -q --bare . "$OUT/bare.git" && cd "$OUT/bare.git" &&
			git config user.name In && git config user.email in@e && rmdir "$W" && git worktree add -q "$W" -b wt`,
		"bare-relative": `git init -q -b main "$OUT/seed" && cd "$OUT/seed" && git commit -q --allow-empty -m first && git clone -q --bare . "$OUT/bare" && cd "$OUT/bare" &&
			git config user.name In && git config user.email in@e && rmdir "$W" && git worktree add -q "$W" -b wt &&
			echo "gitdir: ../out/bare/worktrees/w" > "$W/.git" && echo ../../../../w/.git > worktrees/w/gitdir`,
	}
	for name, layout := range layouts {
		t.Run(name, func(t *testing.T) {
			providers(t, func(t *testing.T, j *jail) {
				j.write(filepath.Join(j.out, "other/secret"), j.secret)
				j.mustHost(`cd "$OUT" && ` + layout)
				common := strings.TrimSpace(j.mustHost(`git rev-parse --path-format=absolute --git-common-dir`).stdout)
				j.mustHost(`mkdir -p "` + common + `/hooks"`)
				config := j.read(common + "/config")
				plant := j.hook(common + "/hooks/pre-commit")
				j.mustHost(plant + `; git commit -q --allow-empty -m control; test -e "$OUT/PWN" && rm "$OUT/PWN" "` + common + `/hooks/pre-commit"`)
				j.ownAll()
				works(t, j.steps(`git status -s`, `echo x > x; git add x`, `git commit -q -m x`, `git switch -q -c more`, `git log -1`, `git stash list`,
					`git branch -q b2`, `git tag t1`, `git gc -q`))
				if got := j.mustHost(`git log -1 --format='%an %s'`).stdout; got != "In x\n" && got != "t x\n" {
					t.Errorf("on the host: got %q, want the commit", got)
				}
				refused(t, j.steps(plant, `git config core.fsmonitor 'touch `+j.pwn()+`'`, `echo x >> `+common+`/config`,
					`mv `+common+`/hooks `+common+`/h2`, `echo "gitdir: /tmp/x" > .git`, `rm .git`, `mv .git g`, `cat `+j.out+`/other/secret`,
					`echo x > "$(git rev-parse --git-dir)/commondir"`, `echo x > "$(git rev-parse --git-dir)/gitdir"`, `touch `+j.out+`/p`))
				j.unchanged(common+"/config", config)
				j.run(`printf '[core]\n\tfsmonitor = touch ` + j.pwn() + `\n' > "$(git rev-parse --git-dir)/config.worktree"`)
				j.calm()
				j.mustHost(`git -C "` + common + `" log -1`)
				j.absent(j.pwn())
			})
		})
	}
}

// EC-189: git init and clone.
func TestEC189(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.identity()
		j.mustHost(`chmod 555 ..`)
		defer j.mustHost(`chmod 755 ..`)
		works(t, j.steps(`git init -q n && cd n && git commit -q --allow-empty -m x && git clone -q ../n m && cd m && git log -1`,
			`git clone -q --bare n b.git`, `git clone -q n n2 && cd n2 && git remote -v && git fetch -q`))
		j.absent(".git")
		j.absent(j.out + "/.git")
		j.absent(filepath.Dir(j.w) + "/.git")
		if got := j.mustHost(`git -C n log --format=%s; git -C n/m log --format=%s; git -C n2 remote`).stdout; got != "x\nx\norigin\n" {
			t.Errorf("on the host: got %q", got)
		}
	})
}

// EC-190: git's check of ownership.
func TestEC190(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.repo()
		s := j.steps(`git status`, `stat -c %u .`, `stat -c %u / /tmp`, `id -u`)
		works(t, s)
		if strings.Contains(s[0].out, "dubious") || s[1].out != s[3].out {
			t.Errorf("status %q, owner of the workspace %q, our id %q: want no complaint and one id", s[0].out, s[1].out, s[3].out)
		}
		info, err := os.Stat(j.w)
		if err != nil {
			t.Fatal(err)
		}
		if want := strconv.Itoa(int(uidOf(info))) + "\n"; s[1].out != want {
			t.Errorf("owner of the workspace inside: got %q, want %q", s[1].out, want)
		}
		for f := range strings.FieldsSeq(s[2].out) {
			if _, err := strconv.Atoi(f); err != nil {
				t.Errorf("owners of / and /tmp: got %q", s[2].out)
			}
		}
	})
}

// EC-201: a read-only workspace.
func TestEC201(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.repo()
		j.mustHost(`touch -d '2 hours ago' a.txt`) // git status would like to refresh the index
		j.flags = []string{"-p", "read-only", "--commands", "any"}
		s := j.steps(`git status -s`, `git log -1`, `git diff --exit-code`, `grep -rq one .`, `git show -s`, `touch q`, `mkdir d`, `git commit -q --allow-empty -m x`, `echo x >> a.txt`)
		works(t, s[:5])
		refused(t, s[5:])
		if !strings.Contains(s[5].out, "Read-only file system") {
			t.Errorf("touch: got %q, want EROFS", s[5].out)
		}
		for _, argv := range [][]string{{"git", "status"}, {"git", "log", "-1"}, {"cat", "a.txt"}} {
			j.flags = []string{"-p", "read-only"}
			if r := j.argv(argv...); r.exit != 0 {
				t.Errorf("%q with the inspection list: got %d: %s", argv, r.exit, r.all())
			}
		}
		j.absent("q")
	})
}
