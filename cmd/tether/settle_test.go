package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// elsewhere puts Tether's state on another file system than the workspace.
func (j *jail) elsewhere() {
	j.t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "tether-case-")
	if err != nil {
		j.t.Skipf("no second file system: %v", err)
	}
	j.t.Cleanup(func() {
		_ = exec.Command("chmod", "-R", "u+rwx", dir).Run()
		os.RemoveAll(dir)
	})
	if from, to := filepath.Join(j.w, "x"), filepath.Join(dir, "x"); os.WriteFile(from, nil, 0o600) != nil || os.Link(from, to) == nil {
		j.t.Skip("no second file system")
	}
	_ = os.Remove(filepath.Join(j.w, "x"))
	j.state = dir
	for i, kv := range j.env {
		if name, _, _ := strings.Cut(kv, "="); name == "XDG_STATE_HOME" || name == "XDG_CONFIG_HOME" {
			j.env[i] = name + "=" + dir
		}
	}
}

// settled is what must hold after a run that planted something: it says so, the
// user's git is calm, and the next run is like any other.
func (j *jail) settled(plant string, dirs ...string) {
	j.t.Helper()
	r := j.run(plant)
	if r.exit == exitOurs || !strings.Contains(r.stderr, "; it was ") {
		j.t.Errorf("planting: got exit %d, %q, want the run to end and to tell", r.exit, r.stderr)
	}
	j.calm(dirs...)
	if r := j.run("true"); r.exit != 0 || strings.Contains(r.stderr, "; it was ") {
		j.t.Errorf("the next run: got exit %d, %q, want nothing left to do", r.exit, r.stderr)
	}
	j.calm(dirs...)
}

// Whatever permissions the command leaves, and whatever it makes in the way of
// what we may want to write, what it planted for git has no force.
func TestSettlePermissions(t *testing.T) {
	monitor := func(j *jail, path string) string {
		return `printf '[core]\n\tfsmonitor = "touch ` + j.pwn() + `; false"\n' >> ` + path
	}
	for _, c := range []struct {
		name, dir string
		plant     func(j *jail) string
	}{
		{"hooks folder 555", ".", func(j *jail) string {
			return "mkdir .git/hooks; " + j.hook(".git/hooks/pre-commit") + "; chmod 555 .git/hooks"
		}},
		{"hooks folder 111", ".", func(j *jail) string {
			return "mkdir .git/hooks; " + j.hook(".git/hooks/pre-commit") + "; chmod 111 .git/hooks"
		}},
		{"repository 555", "n", func(j *jail) string {
			return "git init -q n; " + monitor(j, "n/.git/config") + "; mkdir -p n/.git/hooks; " + j.hook("n/.git/hooks/pre-commit") +
				"; chmod 555 n/.git/hooks n"
		}},
		{"folders above 311 and 111", "a/b/n", func(j *jail) string {
			return "mkdir -p a/b; git init -q a/b/n; " + monitor(j, "a/b/n/.git/config") + "; chmod 311 a/b; chmod 111 a"
		}},
		{"configuration folder 555", "n", func(j *jail) string {
			return "git init -q n; " + monitor(j, "n/.git/config") + "; chmod 444 n/.git/config; chmod 555 n/.git"
		}},
		{"a folder under a temporary name", "n", func(j *jail) string {
			return "git init -q n; " + monitor(j, "n/.git/config") + "; mkdir n/.git/config.tether-new n/.git/config.tether"
		}},
		{"split by commondir", "x", func(j *jail) string {
			return `mkdir -p x y/objects y/refs; echo "ref: refs/heads/m" > x/HEAD; echo ../y > x/commondir
				printf '[core]\n\trepositoryformatversion = 1\n\tbare = false\n[extensions]\n\tworktreeConfig = true\n' > y/config
				` + monitor(j, "y/config") + `; printf '[core]\n\tbare = false\n\tworktree = ../x\n' > x/config.worktree`
		}},
		{"split, with odd types", "x", func(j *jail) string {
			return `mkdir -p x y/o y/r; ln -s o y/objects; ln -s r y/refs; ln -s refs/heads/m x/HEAD; echo ../y > x/commondir
				` + monitor(j, "y/config") + `; printf '[core]\n\tbare = false\n\tworktree = ../x\n\trepositoryformatversion = 1\n[extensions]\n\tworktreeConfig = true\n' >> y/config; cp y/config x/config.worktree`
		}},
		{"pointer to a split one", "s", func(j *jail) string {
			return `mkdir -p s x y/objects y/refs; echo "gitdir: ../x" > s/.git; echo "ref: refs/heads/m" > x/HEAD; echo ../y > x/commondir
				` + monitor(j, "y/config")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			providers(t, func(t *testing.T, j *jail) {
				j.repo()
				j.mustHost("rm -rf .git/hooks")
				j.firesIn(c.plant(j), c.dir)
				j.settled(c.plant(j), c.dir)
			})
		})
	}
}

// Nor when the quarantine lies on another file system, where nothing can be
// moved and what cannot be read cannot be copied.
func TestSettleAcross(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.repo()
		j.mustHost("rm -rf .git/hooks")
		j.elsewhere()
		plant := "mkdir .git/hooks; " + j.hook(".git/hooks/pre-commit") + "; cp $(command -v touch) .git/hooks/post-commit; chmod 111 .git/hooks/post-commit; chmod 555 .git/hooks"
		j.fires(plant)
		j.settled(plant)
		j.absent(".git/hooks/pre-commit")
		j.absent(".git/hooks/post-commit")
	})
}

// A .tether that appears is gone at the end, in every shape and wherever the
// quarantine lies; what a link leads to is not touched.
func TestSettleTether(t *testing.T) {
	for _, c := range []struct{ name, plant string }{
		{"folder", "mkdir .tether; echo x > .tether/policy"},
		{"folder 555", "mkdir .tether; echo x > .tether/policy; chmod 555 .tether"},
		{"folder 0", "mkdir .tether; echo x > .tether/policy; chmod 0 .tether"},
		{"in a folder 555", "mkdir .tether; echo x > .tether/policy; chmod 555 ."},
		{"with a FIFO", "mkdir .tether; mkfifo .tether/f; echo x > .tether/policy"},
		{"file", "echo x > .tether"},
		{"FIFO", "mkfifo .tether"},
		{"link to a folder", "ln -s /usr/share .tether"},
		{"link to nothing", "ln -s nowhere .tether"},
	} {
		for _, across := range []bool{false, true} {
			t.Run(fmt.Sprint(c.name, " across ", across), func(t *testing.T) {
				providers(t, func(t *testing.T, j *jail) {
					if across {
						j.elsewhere()
					}
					j.mustHost("cp -a . $OUT/door; cd $OUT/door; { " + c.plant + "; }; test -e .tether -o -L .tether; chmod 755 .")
					r := j.run(c.plant)
					if r.exit == exitOurs || !strings.Contains(r.stderr, "/.tether: ") {
						t.Errorf("got exit %d, %q, want the run to end and to tell", r.exit, r.stderr)
					}
					j.absent(".tether")
					if r := j.run("true"); r.exit != 0 || strings.Contains(r.stderr, "; it was ") {
						t.Errorf("the next run: got exit %d, %q", r.exit, r.stderr)
					}
					if size := j.host("du -s " + j.state + "/tether/quarantine | cut -f1").stdout; len(size) > 4 {
						t.Errorf("quarantine: got %s KiB, want next to nothing", size)
					}
				})
			})
		}
	}
}

// What runs later because of a folder is told of when the folder is moved there,
// though no file in it has changed.
func TestSettleMovedFolders(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.mustHost(`mkdir -p app/node_modules/.bin app/.vscode .idea; echo {} > app/package.json; echo x > app/node_modules/.bin/tool;
			echo {} > app/.vscode/tasks.json; echo {} > .idea/x.xml; mkdir .ssh; git init -q .ssh; mkdir -p .ssh/.git/hooks .ssh/.vscode; echo x > .ssh/.git/hooks/pre-commit; echo x > .ssh/.vscode/tasks.json`)
		time.Sleep(50 * time.Millisecond)
		j.run(`mkdir vs w c many b; echo {} > vs/tasks.json; echo x > w/ci.yml; echo x > c/config.toml; echo x > b/activate; mkdir -p p/q; echo x > p/q/x
			i=0; while [ $i -lt 100 ]; do echo x > many/$i; i=$((i+1)); done`)
		time.Sleep(50 * time.Millisecond)
		// Control: nothing is told of what stands.
		if list := findings(j.report("touch app/new")); len(list) != 0 {
			t.Errorf("ordinary work: got %q, want nothing", list)
		}
		time.Sleep(50 * time.Millisecond)
		list := findings(j.report(`mv vs .vscode; mkdir .github; mv w .github/workflows; ln -s c .cargo; mv many .circleci; mkdir -p venv; mv b venv/bin; mv p .zed; mkdir sub; echo {} > sub/y; mv sub .claude; chmod 311 .claude`))
		for _, f := range []string{".vscode/tasks.json", ".github/workflows/ci.yml", ".cargo", "venv/bin/activate", ".zed/q/x", ".claude/y"} {
			if !mentions(list, "reported", "/w/"+f) {
				t.Errorf("moved to %s: got %q", f, list)
			}
		}
		n := 0
		for _, l := range list {
			if strings.Contains(l, "/.circleci") {
				n++
			}
			if strings.Contains(l, "/.ssh") || strings.Contains(l, "/app/") || strings.Contains(l, "/.idea") {
				t.Errorf("got %q, want nothing of what did not change", l)
			}
		}
		if n < 10 || n > 40 {
			t.Errorf("a folder of 100 files: got %d findings, want some and a number", n)
		}
		j.unchanged(".ssh/.git/hooks/pre-commit", "x\n")
	})
}

// killed starts a run, kills Tether when the command has planted, and takes for
// a control that what was planted is there.
func (j *jail) killed(plant, want string, flags ...string) {
	j.t.Helper()
	cmd := j.command(append(flags, "--", "sh", "-c", plant+"; touch ready; sleep 60")...)
	if err := cmd.Start(); err != nil {
		j.t.Fatal(err)
	}
	ready := filepath.Join(j.w, "ready")
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if _, err := os.Lstat(ready); err == nil {
			break
		}
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	_ = os.Remove(ready)
	if _, err := os.Lstat(filepath.Join(j.w, want)); err != nil {
		j.t.Fatalf("control: the killed run must leave %s: %v", want, err)
	}
}

// A workspace may be called anything, and so may what lies in it.
func TestSettleOddNames(t *testing.T) {
	for _, name := range []string{"w\xff", "new\nline", "bi\u202edi \\ '\"[*", "\x1b]52;c;aGk=\x07"} {
		t.Run(fmt.Sprintf("%q", name), func(t *testing.T) {
			providers(t, func(t *testing.T, j *jail) {
				w := filepath.Join(filepath.Dir(j.w), name)
				if err := os.Rename(j.w, w); err != nil {
					t.Fatal(err)
				}
				j.w = w
				j.repo()
				j.mustHost("rm -rf .git/hooks; git init -q \"$(printf 'o\\377')\"; mkdir -p \"$(printf 'o\\377')/.git/hooks\"; echo mine > \"$(printf 'o\\377')/.git/hooks/update\"")
				plant := "mkdir -p .git/hooks; " + j.hook(".git/hooks/pre-commit")
				j.fires(plant)
				j.killed(plant, ".git/hooks/pre-commit")
				r := j.run("true")
				if r.exit != 0 || !strings.Contains(r.stderr, "left by a run that died") {
					t.Errorf("the next run: got exit %d, %q", r.exit, r.stderr)
				}
				if strings.ContainsAny(r.stderr, "\u202e\x1b\x07") {
					t.Errorf("on the terminal: got %q", r.stderr)
				}
				j.unchanged("o\xff/.git/hooks/update", "mine\n")
				j.calm()
				j.mustHost("rm -rf .git/hooks")
				j.settled(plant)
			})
		})
	}
}

// A record that is of no use any more does not stand in anybody's way.
func TestSettleUselessRecords(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.repo()
		extra := filepath.Join(j.out, "extra")
		if err := os.Mkdir(extra, 0o755); err != nil {
			t.Fatal(err)
		}
		j.ownAll()
		j.mustHost("rm -rf .git/hooks")
		plant := "mkdir -p .git/hooks; " + j.hook(".git/hooks/pre-commit")
		j.killed(plant, ".git/hooks/pre-commit", "--allow-write", extra)
		if err := os.RemoveAll(extra); err != nil {
			t.Fatal(err)
		}
		dirs, _ := filepath.Glob(filepath.Join(j.state, "tether/pending/*"))
		if len(dirs) != 1 {
			t.Fatalf("records: got %q, want one folder", dirs)
		}
		for n, text := range map[string]string{"run-junk.json": "{", "run-old.json": `{"roots":["L3RtcA=="],"snapshots":[]}`} {
			j.write(filepath.Join(dirs[0], n), text)
		}
		rep := j.report("true")
		if n := notes(rep); rep["exit"] != float64(0) || !strings.Contains(n, "extra is gone") || strings.Count(n, "cannot be read and was dropped") != 2 {
			t.Errorf("got exit %v, notes %q", rep["exit"], n)
		}
		if !mentions(findings(rep), "quarantined", ".git/hooks/pre-commit") {
			t.Errorf("got %q, want the hook all the same", findings(rep))
		}
		if left, _ := os.ReadDir(dirs[0]); len(left) != 0 {
			t.Errorf("records: got %v, want none left", left)
		}
		j.calm()
	})
}

// Only what is really still there refuses the next run, which names it and says
// how to go on; when it is gone, so is the refusal.
func TestSettleImmovable(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.repo()
		j.mustHost("rm -rf .git/hooks; echo x > x")
		if r := j.host("chattr +i x && chattr -i x && rm x"); r.exit != 0 {
			t.Skipf("files cannot be made immutable here: %s", r.all())
		}
		plant := "mkdir -p .git/hooks; " + j.hook(".git/hooks/pre-commit") + "; " + j.hook(".git/hooks/post-commit")
		j.fires(plant)
		j.killed(plant, ".git/hooks/post-commit")
		j.mustHost("chattr +i .git/hooks/pre-commit")
		defer j.host("chattr -i .git/hooks/pre-commit")
		cmd := j.command("--", "touch", "ran")
		r := finishCommand(t, cmd)
		for _, want := range []string{".git/hooks/post-commit: left by a run that died", "quarantined", ".git/hooks/pre-commit", "still there", "hint: chmod u+rwx"} {
			if !strings.Contains(r.stderr, want) {
				t.Errorf("got %q, want %q in it", r.stderr, want)
			}
		}
		if r.exit != exitOurs {
			t.Errorf("got exit %d, want %d", r.exit, exitOurs)
		}
		j.absent("ran")
		j.absent(".git/hooks/post-commit")
		if rep := j.report("true"); rep["outcome"] != "failed" || !mentions(findings(rep), "reported", ".git/hooks/pre-commit") {
			t.Errorf("--json: got %v", rep)
		}
		j.mustHost("chattr -i .git/hooks/pre-commit")
		if r := j.run("true"); r.exit != 0 {
			t.Errorf("the run after: got exit %d, %q", r.exit, r.stderr)
		}
		j.absent(".git/hooks/pre-commit")
		j.calm()
	})
}

func TestPrintable(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"plain é 漢", "plain é 漢"},
		{"a\u202egnp\u2066x\u200b\u200f\ufeff\u00ad", "a?gnp?x????"},
		{"\x1b]52;c;x\x07\u0085\u2028\u2029\xff", "?]52;c;x?????"},
		{"two\nlines\tand", "two lines and"},
	} {
		if got := printable(c.in); got != c.want {
			t.Errorf("printable(%q): got %q, want %q", c.in, got, c.want)
		}
	}
}
