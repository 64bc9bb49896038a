package gitmeta

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tether-sandbox/tether/internal/need"
)

func only(t *testing.T, repos []Repo) Repo {
	t.Helper()
	if len(repos) != 1 {
		t.Fatalf("got %d repositories, want 1: %+v", len(repos), repos)
	}
	return repos[0]
}

func TestDiscoverKinds(t *testing.T) {
	w := newWorld(t)
	w.sh(repoSetup + `; git worktree add -q wt; (mkdir $TOP/o; cd $TOP/o; ` + repoSetup + `)
		git submodule add -q $TOP/o sub; git init -q --bare b; git init -q --separate-git-dir=store sep; mkdir l; ln -s ../b l/.git
		mkdir empty; mkdir empty/.git; mkdir f; echo "gitdir: $TOP/o/.git" >f/.git`)
	got := map[string]string{}
	for _, r := range w.discover() {
		got[w.rel(r.Entry)] = fmt.Sprintf("%s %v %s", r.Kind, r.Verified, w.rel(r.GitDir))
	}
	want := map[string]string{
		".git":       "main true .git",
		"wt/.git":    "linked true .git/worktrees/wt",
		"sub/.git":   "submodule true .git/modules/sub",
		"sep/.git":   "main true store",
		"l/.git":     "main true b",
		"empty/.git": "main false empty/.git",
		"f/.git":     "foreign false ",
	}
	for k, v := range want {
		if got[k] != v {
			t.Errorf("%s: got %q, want %q", k, got[k], v)
		}
		delete(got, k)
	}
	if len(got) != 0 {
		t.Errorf("got also %v, but b and store are known by their .git entries", got)
	}
}

// A linked worktree of a repository outside is shown only when everything
// about it is true.
func TestLinkedOutside(t *testing.T) {
	const setup = `mkdir $TOP/main; cd $TOP/main; ` + repoSetup + `; rmdir $WS; git worktree add -q $WS`
	for _, c := range []struct{ name, change, why string }{
		{"true", ``, ""},
		{"relative paths", `echo "gitdir: ../main/.git/worktrees/ws" >.git; echo ../../../../ws/.git >$TOP/main/.git/worktrees/ws/gitdir`, ""},
		{"no back-pointer", `rm $TOP/main/.git/worktrees/ws/gitdir`, "no back-pointer"},
		{"back-pointer to another", `mkdir $TOP/n; echo "gitdir: x" >$TOP/n/.git; echo $TOP/n/.git >$TOP/main/.git/worktrees/ws/gitdir`, "another worktree"},
		{"straight to the main directory", `echo "gitdir: $TOP/main/.git" >.git`, "does not point back"},
		{"a home", `mkdir -p $TOP/home/.ssh; echo "gitdir: $TOP/home/.ssh" >.git`, "does not point back"},
		{"commondir to a home", `mkdir -p $TOP/home; echo ../../../../home >$TOP/main/.git/worktrees/ws/commondir`, "does not lie in the worktrees"},
		{"no objects", `mv $TOP/main/.git/objects $TOP/main/.git/o`, "no git directory"},
		{"missing", `echo "gitdir: $TOP/nowhere" >.git`, "not there"},
		{"no pointer", `echo hello >.git`, "not a pointer"},
		{"a FIFO", `rm .git; mkfifo .git`, "neither a file nor a directory"},
		{"a link out", `rm .git; ln -s $TOP/main/.git .git`, "leads out of the workspace"},
		{"a link to nowhere", `rm .git; ln -s $TOP/nowhere .git`, "leads nowhere"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.sh(setup)
			if c.change != "" {
				w.sh(c.change)
			}
			r := only(t, w.discover())
			if c.why == "" {
				want := filepath.Join(w.top, "main/.git")
				if r.Kind != Linked || !r.Verified || r.CommonDir != want || r.GitDir != want+"/worktrees/ws" {
					t.Errorf("got %+v, want a verified linked worktree", r)
				}
				return
			}
			if r.Kind != Foreign || r.Verified || r.GitDir != "" || r.CommonDir != "" || !strings.Contains(r.Why, c.why) {
				t.Errorf("got %s, verified %v, %q (%s), want foreign because %q", r.Kind, r.Verified, r.GitDir, r.Why, c.why)
			}
		})
	}
}

// EC-039: a commondir that leads out of a directory within the workspace.
func TestCommonDirOut(t *testing.T) {
	w := newWorld(t)
	w.sh(repoSetup + `; mkdir -p $TOP/home; echo ../../home >.git/commondir`)
	r := only(t, w.discover())
	if r.Verified || r.CommonDir != r.GitDir || r.Why != "commondir leads out of the workspace" {
		t.Errorf("got %+v, want it unverified and nothing of the outside", r)
	}
}

func TestHomeIsRefused(t *testing.T) {
	w := newWorld(t)
	w.sh(`mkdir $TOP/main; cd $TOP/main; ` + repoSetup + `; rmdir $WS; git worktree add -q $WS`)
	s := w.search()
	s.Homes = append(s.Homes, filepath.Join(w.top, "main/.git"))
	repos, err := Discover(s)
	if err != nil {
		t.Fatal(err)
	}
	if r := only(t, repos); r.Kind != Foreign || !strings.Contains(r.Why, "home") {
		t.Errorf("got %+v, want a home refused", r)
	}
}

func TestCommonDirAboveTheWorkspaceIsRefused(t *testing.T) {
	w := newWorld(t)
	w.sh(`git init -q --bare $TOP/p; cd $TOP/p; c=$(git commit-tree -m x $(git hash-object -w -t tree /dev/null))
		git worktree add -q main $c`)
	w.ws = filepath.Join(w.top, "p/main")
	repos := w.discover()
	if r := repos[0]; r.Kind != Foreign || !strings.Contains(r.Why, "contains the workspace") {
		t.Errorf("got %+v, want it refused", r)
	}
}

func TestSystemFolder(t *testing.T) {
	for p, want := range map[string]bool{
		"/": true, "/usr": true, "/etc/x": true, "/var": true, "/home": true, "/tmp": true, "/home/u/r/.git": false,
		"/usrx": false, "/var/r": false, "/opt/r": false,
	} {
		if got := systemFolder(p); got != want {
			t.Errorf("%s: got %v, want %v", p, got, want)
		}
	}
}

func TestOtherOwnerIsRefused(t *testing.T) {
	need.Root(t)
	w := newWorld(t)
	w.sh(`mkdir $TOP/main; cd $TOP/main; ` + repoSetup + `; rmdir $WS; git worktree add -q $WS`)
	if r := only(t, w.discover()); !r.Verified {
		t.Fatalf("control: got %+v", r)
	}
	if err := os.Chown(filepath.Join(w.top, "main/.git"), 12345, 12345); err != nil {
		t.Fatal(err)
	}
	if r := only(t, w.discover()); r.Kind != Foreign || !strings.Contains(r.Why, "another user") {
		t.Errorf("got %+v, want another user's refused", r)
	}
}

func TestSubmoduleOutside(t *testing.T) {
	w := newWorld(t)
	w.sh(`(mkdir $TOP/o; cd $TOP/o; ` + repoSetup + `); mkdir $TOP/super; cd $TOP/super; ` + repoSetup + `; git submodule add -q $TOP/o sub`)
	w.ws = filepath.Join(w.top, "super/sub")
	repos := w.discover()
	if len(repos) != 2 || repos[0].Kind != Submodule || !repos[0].Verified || repos[1].Kind != Parent {
		t.Fatalf("got %+v, want a verified submodule and its parent", repos)
	}
	w.sh(`git config core.worktree ../../../other`)
	if r := w.discover()[0]; r.Kind != Foreign {
		t.Errorf("got %+v, want it refused without its way back", r)
	}
}

func TestParent(t *testing.T) {
	w := newWorld(t)
	w.sh(`cd $TOP; ` + repoSetup + `; git config core.hooksPath ws/hooks; mkdir -p ws/hooks`)
	r := only(t, w.discover())
	if r.Kind != Parent || r.Worktree != w.top || !r.Verified {
		t.Errorf("got %+v, want the parent", r)
	}
	if got, want := locked(w, Locks(r)), []string{"hooks d"}; !slices.Equal(got, want) {
		t.Errorf("locks: got %q, want %q", got, want)
	}
}

// locked renders locks: path, d(ir) f(ile) l(ink), - absent, p(in).
func locked(w *world, locks []Lock) []string {
	var out []string
	for _, k := range locks {
		s := w.rel(k.Path) + " " + string("fdl"[k.Kind])
		if !k.Exists {
			s += "-"
		}
		if k.Pin {
			s += "p"
		}
		if k.Hide {
			s += "h"
		}
		out = append(out, s)
	}
	slices.Sort(out)
	return out
}

func TestLocks(t *testing.T) {
	const always = ".git dp,.git/branches d,.git/commondir f-,.git/config f,.git/config.worktree f-,.git/gitdir f-,.git/hooks d,.git/info d,.git/remotes d-"
	for _, c := range []struct{ name, setup, more, less string }{
		{"plain", repoSetup, "", ""},
		{"no hooks folder", repoSetup + `; rm -r .git/hooks`, ".git/hooks d-", ".git/hooks d"},
		{"husky", repoSetup + `; git config core.hooksPath .husky/_; mkdir -p .husky/_`, ".husky dp,.husky/_ d", ""},
		{"husky absent", repoSetup + `; git config core.hooksPath .husky/_`, ".husky/_ d-", ""},
		{"hooks link", repoSetup + `; rm -r .git/hooks; mkdir gh; ln -s ../gh .git/hooks`, ".git/hooks l,gh d", ".git/hooks d"},
		{"hooks link outside", repoSetup + `; rm -r .git/hooks; mkdir $TOP/gh; ln -s $TOP/gh .git/hooks`, ".git/hooks l", ".git/hooks d"},
		{"hook link", repoSetup + `; echo >h; ln -s ../../h .git/hooks/pre-commit`, "h f", ""},
		{"include", repoSetup + `; git config include.path ../cfg/i; mkdir cfg; git config includeIf.onbranch:x.path ../j`, "cfg dp,cfg/i f-,j f-", ""},
		{"config link", repoSetup + `; mv .git/config c; ln -s ../c .git/config`, ".git/config l,c f", ".git/config f"},
		{"broken config", repoSetup + `; echo '[' >>.git/config`, ".git/config fh", ".git/config f"},
		{"alternates", repoSetup + `; echo /x >.git/objects/info/alternates`, ".git/objects/info/alternates f", ""},
	} {
		w := newWorld(t)
		w.sh(c.setup)
		want := strings.Split(always, ",")
		if c.more != "" {
			want = append(want, strings.Split(c.more, ",")...)
		}
		want = slices.DeleteFunc(want, func(s string) bool { return s == c.less })
		slices.Sort(want)
		if got := locked(w, AllLocks(w.discover())); !slices.Equal(got, want) {
			t.Errorf("%s:\n got %q\nwant %q", c.name, got, want)
		}
	}
}

func TestLocksOfModulesAndWorktrees(t *testing.T) {
	w := newWorld(t)
	w.sh(repoSetup + `; (mkdir $TOP/o; cd $TOP/o; ` + repoSetup + `); git submodule add -q $TOP/o a/b; git worktree add -q wt`)
	got := locked(w, AllLocks(w.discover()))
	for _, want := range []string{
		".git dp", ".git/modules dp", ".git/modules/a dp", ".git/modules/a/b dp", ".git/modules/a/b/config f", ".git/modules/a/b/hooks d",
		".git/worktrees dp", ".git/worktrees/wt dp", ".git/worktrees/wt/commondir f", ".git/worktrees/wt/gitdir f",
		".git/worktrees/wt/config.worktree f-", "wt/.git f", "a/b/.git f",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("%q is not in %q", want, got)
		}
	}
}

func TestLocksFilterCredentials(t *testing.T) {
	w := newWorld(t)
	w.sh(repoSetup + `; git remote add o https://me:s3cret@h/x`)
	for _, k := range Locks(only(t, w.discover())) {
		if strings.HasSuffix(k.Path, ".git/config") {
			if k.Replace == nil || strings.Contains(string(k.Replace), "s3cret") || !strings.Contains(string(k.Replace), "https://h/x") {
				t.Errorf("got %q", k.Replace)
			}
			return
		}
	}
	t.Error("config is not locked")
}

// Locking the worktree for a hooks path of "." would lock everything.
func TestHooksPathIsTheWorktree(t *testing.T) {
	w := newWorld(t)
	w.sh(repoSetup + `; git config core.hooksPath .`)
	locks := Locks(only(t, w.discover()))
	for _, k := range locks {
		if k.Path == w.ws {
			t.Errorf("the workspace itself is locked: %+v", k)
		}
	}
	if got := locked(w, locks); !slices.Contains(got, "pre-commit f-") {
		t.Errorf("got %q, want each hook's name locked", got)
	}
}

func TestEntryOutsideTheWorkspaceIsAnError(t *testing.T) {
	w := newWorld(t)
	s := w.search()
	s.GitEntries = []string{w.ws + "-evil/.git"}
	if _, err := Discover(s); err == nil {
		t.Error("got no error")
	}
}

func TestHostEntries(t *testing.T) {
	w := newWorld(t)
	w.sh(`mkdir -p $TOP/home/.config/git; cd $TOP/home; printf '[core]\nhooksPath = a\n[include]\npath = loop\n' >.config/git/config
		printf '[include]\npath = loop\n' >.config/git/loop; printf '[core]\nhooksPath = .myhooks\n[filter "f"]clean=x\n' >.gitconfig`)
	w.sh(repoSetup)
	s := w.search()
	s.Host = HostEntries(w.top+"/home", w.top+"/home/.config")
	repos, err := Discover(s)
	if err != nil {
		t.Fatal(err)
	}
	r := only(t, repos)
	if r.HooksDir != filepath.Join(w.ws, ".myhooks") || !slices.Contains(r.HookDirs, filepath.Join(w.ws, "a")) {
		t.Errorf("got %q and %q, want the last value in force and the other watched", r.HooksDir, r.HookDirs)
	}
	if !slices.Contains(r.Drivers, "filter=f") {
		t.Errorf("drivers: got %q", r.Drivers)
	}
}

// Thousands of repositories stay linear.
func TestScale(t *testing.T) {
	cost := func(n int) time.Duration {
		w := newWorld(t)
		for i := range n {
			d := fmt.Sprintf("d%d/.git/", i)
			for _, sub := range []string{"objects", "refs", "hooks"} {
				if err := os.MkdirAll(filepath.Join(w.ws, d, sub), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			w.write(d+"HEAD", "ref: refs/heads/main\n", 0o644)
			w.write(d+"config", "[core]\n\tbare = false\n[remote \"o\"]\n\turl = https://h/x\n", 0o644)
			// Worktrees of one repository, which share its locks.
			id := fmt.Sprintf("d0/.git/worktrees/w%d/", i)
			w.write(id+"commondir", "../..\n", 0o644)
			w.write(id+"HEAD", "ref: refs/heads/main\n", 0o644)
			w.write(id+"gitdir", filepath.Join(w.ws, fmt.Sprintf("w%d/.git", i))+"\n", 0o644)
			w.write(fmt.Sprintf("w%d/.git", i), "gitdir: "+filepath.Join(w.ws, id)+"\n", 0o644)
		}
		s := w.search()
		start := time.Now()
		repos, err := Discover(s)
		if err != nil || len(repos) != 2*n {
			t.Fatalf("got %d, %v", len(repos), err)
		}
		discovered := time.Since(start)
		locks := AllLocks(repos)
		listed := time.Since(start)
		if w.snapshot, err = Take(w.ws, repos); err != nil {
			t.Fatal(err)
		}
		if found, err := Settle(w.snapshot, repos, w.ward); err != nil || len(found) != 0 {
			t.Fatalf("got %v, %v", found, err)
		}
		total := time.Since(start)
		t.Logf("%d repositories: discover %v, %d locks %v, take and settle %v", 2*n, discovered, len(locks), listed-discovered, total-listed)
		return total
	}
	// A busy machine makes any one measurement slow; growth by the square would
	// show in every one.
	var small, big time.Duration
	for range 3 {
		if small, big = cost(40), cost(320); big < 8*3*small {
			return
		}
	}
	t.Errorf("8 times the repositories took %v after %v, want it linear", big, small)
}
