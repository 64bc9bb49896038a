package gitmeta

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/internal/need"
)

const repoSetup = `git init -q -b main; echo x >x; git add x; git commit -qm x`

// Ordinary work leaves nothing to find. Each script runs in a fresh workspace
// after setup; every one of them would be a false alarm.
func TestOrdinaryWorkIsClean(t *testing.T) {
	other := `(mkdir $TOP/other; cd $TOP/other; ` + repoSetup + `); `
	for _, c := range []struct{ name, setup, run string }{
		{"init", "", `git init -q; git config user.name me; git config core.autocrlf input`},
		{"init in a folder", "", `git init -q n; cd n; git commit -q --allow-empty -m x; git clone -q . ../m`},
		{"init bare", "", `git init -q --bare b.git; git clone -q b.git c 2>/dev/null`},
		{"separate git dir", "", `git init -q --separate-git-dir=store work`},
		{"commit, branch, merge, stash, gc, tag", repoSetup, `echo y >y; git add y; git commit -qm y;
			git switch -qc f; echo z >z; git add z; git commit -qm z; git switch -q main;
			git merge -q --no-ff -m m f; echo q >x; git stash -qu; git stash pop -q; git tag t; git gc -q;
			git branch -qd f`},
		{"tracking branches", other + repoSetup, `git remote add o $TOP/other; git fetch -q o;
			git branch -q --track t o/main; git config pull.rebase true; git remote rename o p; git remote prune p`},
		{"clone", other, `git clone -q $TOP/other c; cd c; git pull -q`},
		{"clone with options", other, `git clone -q --depth 1 file://$TOP/other a;
			git clone -q --filter=blob:none file://$TOP/other b; git clone -q --mirror $TOP/other m.git;
			git clone -q --single-branch -b main $TOP/other d; git clone -q --sparse $TOP/other s`},
		{"worktree", repoSetup, `git worktree add -q wt; cd wt; echo a >a; git add a; git commit -qm a; cd ..;
			git worktree add -q -b b w2; git worktree move w2 w3; git worktree remove w3; git worktree prune`},
		{"worktree in a bare layout", "", `git init -q --bare .bare; echo 'gitdir: ./.bare' >.git;
			t=$(git hash-object -w -t tree /dev/null); c=$(git commit-tree -m x $t); git update-ref refs/heads/main $c;
			git worktree add -q main main`},
		{"submodule", other + repoSetup, `git submodule add -q $TOP/other sub; git commit -qm sub;
			git submodule update -q --init --recursive; git submodule deinit -q -f sub; git submodule update -q --init;
			git submodule add -q $TOP/other deep/er/sub; git submodule sync -q; git rm -qf deep/er/sub`},
		{"recursive clone", other + repoSetup, `git submodule add -q $TOP/other sub; git commit -qm sub;
			git clone -q --recurse-submodules . copy`},
		{"sparse checkout", repoSetup, `git sparse-checkout set --cone a; git sparse-checkout add b;
			git sparse-checkout reapply; git sparse-checkout disable`},
		{"sparse checkout in a worktree", repoSetup, `git worktree add -q wt; cd wt; git sparse-checkout set a`},
		{"maintenance", repoSetup, `git maintenance run --task=gc --task=commit-graph;
			git config maintenance.auto false; git config maintenance.strategy incremental`},
		{"rebase in progress", repoSetup, `git switch -qc f; echo 1 >x; git commit -qam 1; echo 2 >x; git commit -qam 2;
			git switch -q main; echo 3 >x; git commit -qam 3; git switch -q f; ! git rebase -q main 2>/dev/null`},
		{"cherry-pick and revert", repoSetup, `echo 1 >x; git commit -qam 1; git revert --no-edit HEAD;
			git cherry-pick --allow-empty HEAD~1; git bisect start HEAD HEAD~2 >/dev/null; git bisect reset >/dev/null 2>&1`},
		{"large files", repoSetup, `git config filter.lfs.clean 'git-lfs clean -- %f';
			git config filter.lfs.smudge 'git-lfs smudge -- %f'; git config filter.lfs.required true;
			git config filter.lfs.process 'git-lfs filter-process'; echo '*.bin filter=lfs diff=lfs merge=lfs -text' >.gitattributes`},
		{"the user's own hooks and keys stay", repoSetup + `; git config core.fsmonitor "touch $PWN; false";
			git config alias.x '!echo'; printf '#!/bin/sh\n' >.git/hooks/pre-commit; chmod +x .git/hooks/pre-commit;
			echo '*.c diff=mine' >.git/info/attributes`, `echo y >y; git add y; git commit -qm y; git config user.name z`},
		{"delete and move a nested repository", `git init -q a; git init -q b`, `rm -rf a; mkdir c; mv b c`},
		{"junk called .git", "", `mkdir a; echo junk >a/.git; mkdir b; echo 'gitdir: ../.git/modules/b' >b/.git;
			mkdir -p c/.git; mkdir d; ln -s nowhere d/.git`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if c.setup != "" {
				w.sh(c.setup)
			}
			w.take()
			w.sh(c.run)
			found := w.settle()
			if c.name == "rebase in progress" {
				if len(found) != 1 || found[0].Kind != KindPending || found[0].Action != Reported {
					t.Errorf("got %+v, want that git is in the middle of it", found)
				}
			} else if len(found) != 0 {
				t.Errorf("got %+v, want nothing", found)
			}
			if _, err := os.Lstat(w.ward); err == nil {
				t.Error("a quarantine was made for nothing")
			}
		})
	}
}

const (
	hook    = `printf '#!/bin/sh\ntouch "$PWN"\n'`
	monitor = `git config core.fsmonitor 'touch "$PWN"; false'`
	filter  = `git config filter.f.clean ./clean; printf '#!/bin/sh\ncat\n' >clean; chmod +x clean`
	commit  = `git commit -q --allow-empty -m p`
)

// Every attack fires on the host without us, and not after Settle.
func TestAttacks(t *testing.T) {
	for _, c := range []struct {
		name, setup, attack, trigger string
		want                         []string
	}{
		{"hook in a hooks folder", repoSetup, hook + ` >.git/hooks/pre-commit; chmod +x .git/hooks/pre-commit`, commit,
			[]string{"quarantined .git/hooks/pre-commit"}},
		{"hook that is a link", repoSetup, hook + ` >h; chmod +x h; ln -s ../../h .git/hooks/pre-commit`, commit,
			[]string{"quarantined .git/hooks/pre-commit"}},
		{"changed hook", repoSetup + `; printf '#!/bin/sh\n' >.git/hooks/pre-commit; chmod +x .git/hooks/pre-commit`,
			hook + ` >.git/hooks/pre-commit`, commit, []string{"quarantined .git/hooks/pre-commit"}},
		{"hook made executable", repoSetup + `; ` + hook + ` >.git/hooks/pre-commit`, `chmod +x .git/hooks/pre-commit`, commit,
			[]string{"quarantined .git/hooks/pre-commit"}},
		{"what a hook links to", repoSetup + `; printf '#!/bin/sh\n' >h; chmod +x h; ln -s ../../h .git/hooks/pre-commit`,
			hook + ` >h`, commit, []string{"quarantined .git/hooks/pre-commit"}},
		{"configuration by git", repoSetup, monitor, `git status`, []string{"rewritten .git/config"}},
		{"configuration by appending", repoSetup, `printf '[core]\nfsmonitor = "touch $PWN; false"\n' >>.git/config`, `git status`,
			[]string{"rewritten .git/config"}},
		{"configuration by a new file", repoSetup, `cp .git/config c; printf '[core]fsmonitor="touch $PWN; false"' >>c; mv c .git/config`,
			`git status`, []string{"rewritten .git/config"}},
		{"configuration that is a link", repoSetup, `mv .git/config c; printf '[core]fsmonitor="touch $PWN; false"' >>c;
			ln -s ../c .git/config`, `git status`, []string{"quarantined .git/config"}},
		{"configuration on one line in odd spelling", repoSetup, `printf '\r\n[cOrE]FSmonitor=tou\\\nch" $PWN";false' >>.git/config`,
			`git status`, []string{"rewritten .git/config"}},
		{"included configuration", repoSetup, `printf '[core]\nfsmonitor = "touch $PWN; false"\n' >i; git config include.path ../i`,
			`git status`, []string{"rewritten .git/config"}},
		{"included file that was absent", repoSetup + `; git config include.path ../i`,
			`printf '[core]\nfsmonitor = "touch $PWN; false"\n' >i`, `git status`, []string{"rewritten i"}},
		{"included under a condition", repoSetup + `; git config includeIf.onbranch:f.path ../i`,
			`printf '[core]\nfsmonitor = "touch $PWN; false"\n' >i; git switch -qc f`, `git status`, []string{"rewritten i"}},
		{"alias over nothing", repoSetup, `git config alias.st '!touch "$PWN"'`, `git st`, []string{"rewritten .git/config"}},
		{"remote helper", repoSetup, `git config remote.o.url 'ext::sh -c touch% $PWN'; git config protocol.ext.allow always`,
			`unset GIT_ALLOW_PROTOCOL; git fetch o`, []string{"rewritten .git/config"}},
		{"upload pack", repoSetup, `git config remote.o.url .; git config remote.o.uploadpack 'touch $PWN; false'`,
			`git fetch o`, []string{"rewritten .git/config"}},
		{"credential helper", repoSetup, `git config credential.helper '!touch $PWN;:'`,
			`echo url=https://h | GIT_TERMINAL_PROMPT=0 git credential fill`, []string{"rewritten .git/config"}},
		{"editor", repoSetup, `git config core.editor 'touch $PWN; :'`, `unset GIT_EDITOR; git commit --allow-empty`,
			[]string{"rewritten .git/config"}},
		{"external diff", repoSetup, `git config diff.external 'touch $PWN; :'; echo y >x`, `git diff`, []string{"rewritten .git/config"}},
		{"hooks path to the tree", repoSetup, `mkdir hk; ` + hook + ` >hk/pre-commit; chmod +x hk/pre-commit; git config core.hooksPath hk`,
			commit, []string{"rewritten .git/config"}},
		{"moved aside and rebuilt", repoSetup, `mv .git .git2; mkdir -p .git/hooks; cp -r .git2/objects .git2/refs .git2/HEAD .git/;
			cp .git2/config .git/; ` + monitor, `git status`, []string{"rewritten .git/config"}},
		{"no repository at the start", "", `git init -q; ` + monitor, `git status`, []string{"rewritten .git/config"}},
		{"no hooks folder", repoSetup + `; rm -rf .git/hooks`, `mkdir .git/hooks; ` + hook + ` >.git/hooks/pre-commit; chmod +x .git/hooks/pre-commit`,
			commit, []string{"quarantined .git/hooks/pre-commit"}},
		{"new nested repository", repoSetup, `git init -q vendor/x; ` + hook + ` >vendor/x/.git/hooks/post-commit; chmod +x vendor/x/.git/hooks/post-commit`,
			`cd vendor/x; ` + commit, []string{"quarantined vendor/x/.git/hooks/post-commit"}},
		{"old nested repository", repoSetup + `; git init -q v/x`, `cd v/x; ` + monitor, `cd v/x; git status`,
			[]string{"rewritten v/x/.git/config"}},
		{"husky", repoSetup + `; git config core.hooksPath .husky/_; mkdir -p .husky/_; printf '#!/bin/sh\n' >.husky/_/pre-commit;
			chmod +x .husky/_/pre-commit`, hook + ` >.husky/_/pre-commit`, commit, []string{"quarantined .husky/_/pre-commit"}},
		{"husky folder replaced by a link", repoSetup + `; git config core.hooksPath .husky/_; mkdir -p .husky/_`,
			`mkdir -p evil/_; ` + hook + ` >evil/_/pre-commit; chmod +x evil/_/pre-commit; rm -r .husky; ln -s evil .husky`, commit,
			[]string{"quarantined .husky"}},
		{"hooks path is the worktree", repoSetup + `; git config core.hooksPath "$PWD"`, hook + ` >pre-commit; chmod +x pre-commit; touch other`,
			commit, []string{"quarantined pre-commit"}},
		{"hooks folder is a link", repoSetup + `; rm -r .git/hooks; mkdir gh; ln -s ../gh .git/hooks`,
			hook + ` >gh/pre-commit; chmod +x gh/pre-commit`, commit, []string{"quarantined gh/pre-commit"}},
		{"hooks folder becomes a link", repoSetup, `rm -r .git/hooks; mkdir gh; ln -s ../gh .git/hooks; ` + hook + ` >gh/pre-commit; chmod +x gh/pre-commit`,
			commit, []string{"quarantined .git/hooks"}},
		{"config.worktree", repoSetup + `; git config extensions.worktreeConfig true`,
			`printf '[core]\nfsmonitor = "touch $PWN; false"\n' >.git/config.worktree`, `git status`, []string{"rewritten .git/config.worktree"}},
		{"attributes bind a driver", repoSetup + `; git config filter.f.clean 'touch $PWN; cat'`,
			`echo '* filter=f' >.git/info/attributes; echo y >y`, `git add y`, []string{"quarantined .git/info/attributes"}},
		{"commondir in a plain repository", repoSetup, `git init -q e; cd e; ` + monitor + `; cd ..; echo ../e/.git >.git/commondir`, `git status`,
			[]string{"quarantined .git/commondir", "rewritten e/.git/config"}},
		{".git file to a planted directory", repoSetup, `git init -q --separate-git-dir=store sub; cd sub; ` + monitor, `cd sub; git status`,
			[]string{"rewritten store/config"}},
		{".git file to the outside", `(mkdir $TOP/o; cd $TOP/o; git init -q; ` + monitor + `)`, `mkdir s; echo "gitdir: $TOP/o/.git" >s/.git`,
			`cd s; git status`, []string{"quarantined s/.git"}},
		{".git link to the outside", `(mkdir $TOP/o; cd $TOP/o; git init -q; ` + monitor + `)`, `mkdir s; ln -s $TOP/o/.git s/.git`,
			`cd s; git status`, []string{"quarantined s/.git"}},
		{"bare repository", "", `git init -q --bare b; cd b; git config core.bare false; git config core.worktree ..; ` + monitor,
			`cd b; git status`, []string{"rewritten b/config"}},
		{"bare look by commondir alone", "", `git init -q o; cd o; ` + monitor + `; cd ..; mkdir b; cp o/.git/HEAD b; echo ../o/.git >b/commondir`,
			`cd b; GIT_WORK_TREE=. git status`, []string{"quarantined b/commondir", "rewritten o/.git/config"}},
		{"module of a submodule", repoSetup + `; (mkdir $TOP/o; cd $TOP/o; ` + repoSetup + `); git submodule add -q $TOP/o sub`,
			`cd sub; ` + monitor, `git status`, []string{"rewritten .git/modules/sub/config"}},
		{"new module for a later submodule", repoSetup, `git init -q --bare .git/modules/a/b; cd .git/modules/a/b; ` + monitor,
			`cd .git/modules/a/b; git -c core.bare=false --work-tree=. status`, []string{"rewritten .git/modules/a/b/config"}},
		{"linked worktree's configuration", repoSetup + `; git worktree add -q wt; git config extensions.worktreeConfig true`,
			`cd wt; git config --worktree core.fsmonitor 'touch $PWN; false'`, `cd wt; git status`,
			[]string{"rewritten .git/worktrees/wt/config.worktree"}},
		{"rebase that runs a command", repoSetup, `git commit -q --allow-empty -m 2; GIT_SEQUENCE_EDITOR='printf "break\nexec touch $PWN\n" >' git rebase -qi HEAD~1`,
			``, []string{"reported .git/rebase-merge/git-rebase-todo"}},
		{"submodule update command", repoSetup + `; (mkdir $TOP/o; cd $TOP/o; ` + repoSetup + `); git submodule add -q $TOP/o sub; git commit -qm s`,
			`git config submodule.sub.update '!touch $PWN;:'; (cd sub; git commit -q --allow-empty -m 2)`,
			`git submodule update`, []string{"rewritten .git/config"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			control := newWorld(t)
			if c.setup != "" {
				control.sh(c.setup)
			}
			if c.trigger != "" && control.fires(c.trigger) && c.setup == "" {
				t.Fatal("control: it fires before the attack")
			}
			control.sh(c.attack)
			if c.trigger != "" && !control.fires(c.trigger) {
				t.Fatal("control: the attack must fire without us")
			}

			w := newWorld(t)
			if c.setup != "" {
				w.sh(c.setup)
			}
			w.take()
			w.sh(c.attack)
			found := w.settle()
			if got := w.got(found); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if c.trigger != "" && w.fires(c.trigger) {
				t.Error("it fires after Settle")
			}
			if again := w.settle(); slices.ContainsFunc(again, func(f Finding) bool { return f.Action != Reported }) {
				t.Errorf("settling again: got %+v, want at most reports", again)
			}
			for _, f := range found {
				if f.Action != Reported {
					if _, err := os.Lstat(f.QuarantinedTo); err != nil {
						t.Errorf("%s is not in quarantine: %v", f.Path, err)
					}
				}
			}
		})
	}
}

// Programs of the tree that a key names are the user's to edit: reported.
func TestProgramsAreReported(t *testing.T) {
	w := newWorld(t)
	w.sh(repoSetup + "; " + filter)
	w.take()
	w.sh(hook + ` >clean; echo '* filter=f' >.gitattributes`)
	want := []string{"reported .gitattributes", "reported clean"}
	if got := w.got(w.settle()); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if !w.fires(`echo y >y; git add y`) {
		t.Error("control: the changed program must run")
	}
}

// Nothing planted makes us wait, follow or fail.
func TestPlantedTraps(t *testing.T) {
	w := newWorld(t)
	w.sh(repoSetup + `; git config core.hooksPath hk; git config --add include.path ../inc/c; mkdir hk inc`)
	outside := filepath.Join(w.top, "outside")
	if err := os.Mkdir(outside, 0o755); err != nil {
		t.Fatal(err)
	}
	w.take()
	if err := os.WriteFile(filepath.Join(outside, "pre-commit"), []byte("mine"), 0o755); err != nil {
		t.Fatal(err)
	}
	w.sh(`rm .git/config; mkfifo .git/config; mkfifo .git/hooks/pre-push; mkfifo .git/commondir;
		rm -r .git/info; ln -s $TOP/outside .git/info; rm -r hk; ln -s $TOP/outside hk; rm -r inc; ln -s $TOP/outside inc;
		ln -s $TOP/outside .git/modules; mkdir n; mkfifo n/.git; mkdir -p m/.git; truncate -s 2M m/.git/config; echo ref: refs/heads/x >m/.git/HEAD;
		mkdir m/.git/objects m/.git/refs; mkdir m/.git/hooks; truncate -s 1T m/.git/hooks/update`)
	done := make(chan []Finding)
	go func() { done <- w.settle() }()
	select {
	case found := <-done:
		want := []string{"quarantined .git/config", "quarantined .git/hooks/pre-push", "quarantined .git/info",
			"quarantined .git/modules", "quarantined hk", "quarantined inc", "quarantined m/.git/config", "quarantined m/.git/hooks/update"}
		if got := w.got(found); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("it waits")
	}
	entries, err := os.ReadDir(outside)
	if err != nil || len(entries) != 1 {
		t.Errorf("outside: got %v, %v, want one untouched file", entries, err)
	}
}

// git runs a hook by name in a folder that nobody can list.
func TestUnlistableFolder(t *testing.T) {
	need.Ordinary(t)
	w := newWorld(t)
	w.sh(repoSetup)
	w.take()
	w.sh(hook + ` >.git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; chmod 311 .git/hooks .git`)
	if !w.fires(commit) {
		t.Fatal("control: the hook must run")
	}
	if got, want := w.got(w.settle()), []string{"quarantined .git/hooks/pre-commit"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if w.fires(commit) {
		t.Error("it fires after Settle")
	}
}

func TestManifestAndModes(t *testing.T) {
	w := newWorld(t)
	w.sh(repoSetup)
	w.take()
	w.sh(hook + ` >.git/hooks/pre-commit; chmod 750 .git/hooks/pre-commit; chmod 640 .git/config; ` + monitor + `; git config user.name me`)
	found := w.settle()
	if len(found) != 2 {
		t.Fatalf("got %+v, want 2 findings", found)
	}
	dir := filepath.Dir(found[0].QuarantinedTo)
	for _, p := range []string{dir, w.ward} {
		if fi, err := os.Stat(p); err != nil || fi.Mode().Perm() != 0o700 {
			t.Errorf("%s: got %v, %v, want 0700", p, fi, err)
		}
	}
	raw, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	var records []record
	if err := json.Unmarshal(raw, &records); err != nil || len(records) != 2 {
		t.Fatalf("manifest: got %s, %v", raw, err)
	}
	if r := records[1]; r.Path != filepath.Join(w.ws, ".git/hooks/pre-commit") || r.Mode != "100750" || r.Reason == "" {
		t.Errorf("manifest: got %+v", r)
	}
	if fi, err := os.Stat(filepath.Join(w.ws, ".git/config")); err != nil || fi.Mode().Perm() != 0o640 {
		t.Errorf("config: got %v, %v, want mode 0640", fi, err)
	}
	if c := w.read(".git/config"); !strings.Contains(c, "name = me") || strings.Contains(c, "fsmonitor") {
		t.Errorf("config: got %q, want the harmless rest", c)
	}
}

// The quarantine may lie on another file system.
func TestMoveAcross(t *testing.T) {
	shm, err := os.MkdirTemp("/dev/shm", "tether-test-")
	if err != nil {
		t.Skipf("no second file system: %v", err)
	}
	defer os.RemoveAll(shm)
	w := newWorld(t)
	var a, b unix.Stat_t
	if unix.Stat(shm, &a) != nil || unix.Stat(w.ws, &b) != nil || a.Dev == b.Dev {
		t.Skip("no second file system")
	}
	w.ward = filepath.Join(shm, "q")
	w.sh(repoSetup)
	w.take()
	w.sh(hook + ` >.git/hooks/pre-commit; ln -s /etc/passwd .git/hooks/update; mkfifo .git/hooks/pre-push; ` + monitor)
	found := w.settle()
	if len(found) != 4 {
		t.Fatalf("got %+v, want 4 findings", found)
	}
	for _, n := range []string{"pre-commit", "update", "pre-push"} {
		if exists(filepath.Join(w.ws, ".git/hooks", n)) {
			t.Errorf("%s is still there", n)
		}
	}
	if target, _ := os.Readlink(found[3].QuarantinedTo); target != "/etc/passwd" {
		t.Errorf("link: got %q", target)
	}
	if again := w.settle(); len(again) != 0 {
		t.Errorf("again: got %+v, want nothing", again)
	}
}

// A snapshot survives the crash of the process that took it.
func TestSnapshotThroughJSON(t *testing.T) {
	w := newWorld(t)
	w.sh(repoSetup + `; git config alias.x '!secret-value'`)
	w.take()
	raw, err := json.Marshal(w.snapshot)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(raw), "secret-value") {
		t.Error("the snapshot holds values of the configuration")
	}
	w.sh(monitor)
	w.snapshot = Snapshot{}
	if err := json.Unmarshal(raw, &w.snapshot); err != nil {
		t.Fatal(err)
	}
	if got, want := w.got(w.settle()), []string{"rewritten .git/config"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if c := w.read(".git/config"); !strings.Contains(c, "secret-value") {
		t.Errorf("the user's own alias is gone: %q", c)
	}
}

// A quarantine that cannot be made is no obstacle: what was found loses its
// force where it lies.
func TestNoQuarantine(t *testing.T) {
	w := newWorld(t)
	w.sh(repoSetup)
	w.take()
	plant := monitor + `; ` + hook + ` >.git/hooks/pre-commit; chmod +x .git/hooks/pre-commit`
	w.sh(plant)
	if !w.fires(`git status`) || !w.fires(commit) {
		t.Fatal("control: both must run")
	}
	w.sh(`echo x >$TOP/nodir`)
	found, err := Settle(w.snapshot, w.discover(), filepath.Join(w.top, "nodir/q"))
	if got, want := w.got(found), []string{"quarantined .git/hooks/pre-commit", "rewritten .git/config"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	if w.fires(`git status; ` + commit) {
		t.Error("it fires after Settle")
	}
	if to := found[1].QuarantinedTo; !strings.HasPrefix(filepath.Base(to), Inert) {
		t.Errorf("the hook: got %q, want an inert name", to)
	}
	if again := w.settle(); len(again) != 0 {
		t.Errorf("again: got %+v, want nothing", again)
	}
}

func TestQuarantineInsideIsRefused(t *testing.T) {
	w := newWorld(t)
	w.take()
	if _, err := Settle(w.snapshot, nil, filepath.Join(w.ws, "q")); err == nil {
		t.Error("a quarantine in the workspace must be refused")
	}
}
