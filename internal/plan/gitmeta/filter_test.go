package gitmeta

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// entry makes an Entry from "name=value"; without '=' it has no value.
func entry(t *testing.T, s string) Entry {
	t.Helper()
	name, value, ok := strings.Cut(s, "=")
	e := Entry{Value: value, NoValue: !ok}
	e.setName(name)
	return e
}

func TestExecutable(t *testing.T) {
	for _, s := range []string{
		"core.bare=false", "core.fsmonitor=true", "core.fsmonitor=FALSE", "core.fsmonitor", "core.fsmonitor=", "user.name=!x",
		"remote.o.url=https://h/x", "remote.o.url=git@h:x", "remote.o.url=/srv/x", "remote.o.url=../x", "remote.o.url=ssh://git@h:22/x",
		"remote.o.url=file:///x", "remote.o.url=[::1]:x", "remote.o.url=./a://b", "remote.o.pushurl=git://h/x", "remote.o.fetch=+a:b",
		"branch.main.remote=o", "branch.main.remote=.", "branch.main.merge=refs/heads/main", "branch.a.b.vscode-merge-base=o/main",
		"submodule.s.url=../s", "submodule.s.update=rebase", "submodule.s.active=true", "submodule.active=.", "color.ui=auto",
		"color.diff.meta=red", "extensions.worktreeconfig=true", "extensions.partialclone=o", "lfs.repositoryformatversion=0",
		"lfs.https://h/x.access=basic", "filter.lfs.clean=git-lfs clean -- %f", "filter.lfs.required=true", "gc.auto=0",
		"maintenance.auto=false", "maintenance.gc.schedule=daily", "commit.gpgsign=false", "diff.x.xfuncname=^f", "remotes.all=a b",
		"init.defaultbranch=main", "pull.rebase=true", "merge.conflictstyle=zdiff3", "index.sparse=true",
	} {
		if Executable(entry(t, s)) {
			t.Errorf("%s: got executable, want harmless", s)
		}
	}
	for _, s := range []string{
		"core.fsmonitor=./x", "core.fsmonitor=2", "core.hookspath=x", "core.sshcommand=x", "core.pager=x", "core.editor=x",
		"core.worktree=/", "core.attributesfile=x", "core.gitproxy=x", "core.askpass=x", "core.alternaterefscommand=x",
		"core.unknown=1", "core..bare=false", "diff.external=x", "diff.x.command=x", "diff.x.textconv=x", "merge.x.driver=x",
		"filter.x.clean=cat", "filter.lfs.clean=git-lfs clean -- %f; x", "filter.lfs.process=./git-lfs filter-process",
		"filter.LFS.clean=git-lfs clean -- %f", "alias.x=!y", "alias.x=status", "credential.helper=x", "credential.https://h.helper=x",
		"include.path=x", "includeif.gitdir:/.path=x", "hook.x.command=y", "url.ext::x.insteadof=https://h", "gpg.program=x",
		"gpg.ssh.program=x", "gpg.ssh.defaultkeycommand=x", "remote.o.url=ext::sh -c x", "remote.o.url=-x", "remote.o.url=foo::bar",
		"remote.o.url=foo://bar", "remote.o.url=ssh://-oProxyCommand=x/y", "remote.o.url=ssh://u@-x/y", "remote.o.url=EXT::x",
		"remote.o.vcs=x", "remote.o.uploadpack=x", "remote.o.receivepack=x", "branch.main.remote=ext::x", "branch.main.mergeoptions=-s x",
		"branch.main.pushremote=-x", "submodule.s.update=!x", "submodule.s.update= !x", "submodule.s.url=ext::x", "sequence.editor=x",
		"init.templatedir=x", "uploadpack.packobjectshook=x", "gc.recentobjectshook=x", "interactive.difffilter=x", "pager.log=x",
		"rebase.instructionformat=%n exec x", "protocol.ext.allow=always", "protocol.allow=always", "difftool.x.cmd=y", "mergetool.x.cmd=y",
		"browser.x.cmd=y", "man.x.cmd=y", "trailer.x.command=y", "trailer.x.cmd=y", "sendemail.smtpserver=/x", "sendemail.tocmd=x",
		"guitool.x.cmd=y", "web.browser=x", "instaweb.httpd=x", "pull.twohead=x", "remotes.all=a ext::x", "tar.x.command=y",
		"lfs.customtransfer.x.path=y", "lfs.standalonetransferagent=x", "fsmonitor=x", "notes.x.y=z", "imap.tunnel=x", "ssh.variant=x",
		"http.proxy=x", "receive.procreceiverefs=x", "remote.pushdefault=ext::x", "extensions.partialclone=ext::x", "fetch.bundleuri=x",
	} {
		if !Executable(entry(t, s)) {
			t.Errorf("%s: got harmless, want executable", s)
		}
	}
}

func TestHarmlessTable(t *testing.T) {
	for _, g := range harmless {
		if g.why == "" || g.section != strings.ToLower(g.section) || len(g.keys) == 0 {
			t.Errorf("%s: a group needs a reason, a lower-case section and keys", g.section)
		}
		for _, k := range g.keys {
			if k != strings.ToLower(k) {
				t.Errorf("%s.%s: git compares keys in lower case", g.section, k)
			}
		}
	}
}

func TestFiltered(t *testing.T) {
	for _, c := range []struct{ name, raw, want string }{
		{"nothing", "[a]\n\tb = c # d\n", "[a]\n\tb = c # d\n"},
		{"user and password", "[remote \"o\"]\n\turl = https://u:p@h/x # c\n\tfetch = a\n", "[remote \"o\"]\n\turl = \"https://h/x\"\n\tfetch = a\n"},
		{"a token as the user", "[remote \"o\"]url=https://tok@h/x", "[remote \"o\"]url= \"https://h/x\""},
		{"at signs in the password", "[r]u=https://u:p@ss@h/x", "[r]u= \"https://h/x\""},
		{"an at sign in the path stays", "[r]u=https://h/x@y", "[r]u=https://h/x@y"},
		{"ssh keeps the user", "[r]u=ssh://git@h/x\nv=git@h:x\n", "[r]u=ssh://git@h/x\nv=git@h:x\n"},
		{"ssh loses the password", "[r]u=ssh://git:p@h/x", "[r]u= \"ssh://git@h/x\""},
		{"quoted", `[r]u="https://u:\"p@h/x"`, `[r]u= "https://h/x"`},
		{"two in a value", "[a]x = !git clone https://a@h/x && git clone http://b:c@i/y", "[a]x = \"!git clone https://h/x && git clone http://i/y\""},
		{"a token in the query", "[r]u=https://h/x?private_token=abc&y=1", "[r]u= \"https://h/x\""},
		{"a harmless query stays", "[r]u=https://h/x?y=1", "[r]u=https://h/x?y=1"},
		{"section header", "[url \"https://u:p@h/\"]\n\tinsteadOf = https://h/\n", "[url \"https://h/\"]\n\tinsteadOf = https://h/\n"},
		{"header field", "[http \"https://h/\"]\n\textraheader = AUTHORIZATION: basic x\n\tsslVerify = true\n", "[http \"https://h/\"]\n\t\n\tsslVerify = true\n"},
		{"keys", "[http]\nsslKey=a\ncookieFile=b\nsslCertPasswordProtected\nsslCert=c\n[credential]\nhelper=store\nusername=u\n[github]\ntoken=t\n[sendemail]\nsmtpPass=p\n",
			"[http]\n\n\n\nsslCert=c\n[credential]\n\n\n[github]\n\n[sendemail]\n\n"},
		{"proxy", "[http]\nproxy = u:p@h:3128\n", "[http]\nproxy = \"h:3128\"\n"},
		{"comments", "# url = https://u:p@h/x\n; password is x\n# fine\n[a]\nb = c ; https://u:p@h\n", "#\n;\n# fine\n[a]\nb = c ;\n"},
		{"header in an alias", "[alias]p = -c http.extraheader=x push", "[alias]"},
	} {
		out, changed, err := Filtered([]byte(c.raw))
		if err != nil || strings.TrimRight(string(out), " ") != strings.TrimRight(c.want, " ") {
			t.Errorf("%s: got %q, %v, want %q", c.name, out, err, c.want)
		}
		if changed != (c.raw != c.want) {
			t.Errorf("%s: changed is %v", c.name, changed)
		}
		filterLaws(t, []byte(c.raw))
	}
}

func TestGlobalCopy(t *testing.T) {
	files := map[string]string{
		"/home/u/.gitconfig-work": "[user]\n\temail = me@work\n[include]\n\tpath = deeper\n[credential]\n\thelper = store\n",
		"/home/u/deeper":          "[alias]\n\td = diff\n",
		"/home/u/loop":            "[a]\n\tb = c\n[include]\n\tpath = loop\n",
		"/home/u/broken":          "[",
	}
	src := GlobalSource{
		Path: "/home/u/.gitconfig", Home: "/home/u", GitDir: "/home/u/code/p/.git", Remotes: []string{"https://h/org/x"},
		Read: func(p string) ([]byte, error) {
			if c, ok := files[p]; ok {
				return []byte(c), nil
			}
			return nil, errors.New("not there")
		},
	}
	for _, c := range []struct{ name, raw, want string }{
		{"identity and habits", "[user]\nname = me\nemail = a@b\nsigningkey = K\n[pull]\nrebase = true\n[alias]\nx = !y\n[core]\npager = less\n",
			"user.name=me user.email=a@b pull.rebase=true alias.x=!y core.pager=less"},
		{"signing", "[commit]\ngpgsign = true\n[tag]\ngpgSign\n[gpg]\nformat = ssh\n[gpg \"ssh\"]\nprogram = x\n[commit]\nverbose = true\n", "commit.verbose=true"},
		{"hidden files", "[core]\nhooksPath = ~/h\nexcludesFile = ~/e\nattributesFile = ~/a\nfsmonitor = x\nautocrlf = input\n[init]\ntemplateDir = t\ndefaultBranch = main\n[commit]\ntemplate = ~/m\n",
			"core.autocrlf=input init.defaultbranch=main"},
		{"the watcher by itself", "[core]\nfsmonitor = true\n", "core.fsmonitor=true"},
		{"credentials", "[credential]\nhelper = x\n[url \"https://u:p@h/\"]\ninsteadOf = https://h/\n[url \"git@h:\"]\ninsteadOf = https://h/\n[http \"https://u:p@h\"]\nsslVerify = false\n[http]\nproxy = http://u:p@h:1\n",
			"url.git@h:.insteadof=https://h/ http.proxy=http://h:1"},
		{"include", "[user]\nemail = me@home\n[include]\npath = .gitconfig-work\n[user]\nname = x\n", "user.email=me@home user.email=me@work alias.d=diff user.name=x"},
		{"include by home", "[include]\npath = ~/deeper\n", "alias.d=diff"},
		{"missing and broken", "[include]\npath = nowhere\npath = broken\n[a]\nb = c\n", "a.b=c"},
		{"condition holds", "[includeIf \"gitdir:~/code/\"]\npath = deeper\n", "alias.d=diff"},
		{"condition by name", "[includeIf \"gitdir:code/\"]\npath = deeper\n", "alias.d=diff"},
		{"condition beside the file", "[includeIf \"gitdir:./code/\"]\npath = deeper\n", "alias.d=diff"},
		{"condition without case", "[includeIf \"gitdir/i:~/CODE/**\"]\npath = deeper\n", "alias.d=diff"},
		{"condition with case", "[includeIf \"gitdir:~/WORK/\"]\npath = deeper\n", ""},
		{"condition of another", "[includeIf \"gitdir:~/wor/\"]\npath = deeper\n", ""},
		{"condition by remote", "[includeIf \"hasconfig:remote.*.url:https://h/org/**\"]\npath = deeper\n", "alias.d=diff"},
		{"condition by branch", "[includeIf \"onbranch:main\"]\npath = deeper\n", ""},
	} {
		out, err := GlobalCopy([]byte(c.raw), src)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		entries, err := Parse(out)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		var got []string
		for _, e := range entries {
			got = append(got, e.Name+"="+e.Value)
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%s:\n got %q\nwant %q", c.name, s, c.want)
		}
	}
	out, err := GlobalCopy([]byte("[include]\npath = loop\n"), src)
	if n := strings.Count(string(out), "b ="); err != nil || n != maxIncludes {
		t.Errorf("loop: got %d copies, %v, want it to end after %d", n, err, maxIncludes)
	}
	if _, err := GlobalCopy([]byte("["), src); err == nil {
		t.Error("a broken global file must be an error")
	}
}

func TestMatchPath(t *testing.T) {
	for _, c := range []struct {
		pattern, s string
		want       bool
	}{
		{"/a/*", "/a/b", true}, {"/a/*", "/a/b/c", false}, {"/a/**", "/a/b/c", true}, {"**/b", "/a/b", true}, {"**/b", "b", true},
		{"**/b", "/ab", false}, {"/a/**/d", "/a/d", true}, {"/a/**/d", "/a/b/c/d", true}, {"a?c", "abc", true}, {"a?c", "a/c", false},
		{"[a-c]x", "bx", true}, {"[!a-c]x", "bx", false}, {"[]]", "]", true}, {"[", "x", false}, {`\*`, "*", true}, {`\*`, "a", false},
		{"", "", true}, {"*", "", true}, {"a", "", false},
	} {
		if got := matchPath(c.pattern, c.s); got != c.want {
			t.Errorf("%q with %q: got %v, want %v", c.pattern, c.s, got, c.want)
		}
	}
}

func TestDotGit(t *testing.T) {
	for _, n := range []string{".git", ".GIT", ".Git", ".git.", ".git ", ".git . ", "git~1", "GIT~1", ".g\u200cit", ".git\ufeff", ".git::$INDEX_ALLOCATION"} {
		if !DotGit(n) {
			t.Errorf("%q: got false", n)
		}
	}
	for _, n := range []string{"git", ".gitx", ".gitignore", "git~2", ".g it", "", ".", ".github", "x.git"} {
		if DotGit(n) {
			t.Errorf("%q: got true", n)
		}
	}
}

func TestBareLooking(t *testing.T) {
	for names, want := range map[string]bool{
		"HEAD objects refs": true, "HEAD commondir": true, "HEAD objects": false, "objects refs": false, "commondir": false, "": false,
	} {
		if got := BareLooking(func(n string) bool { return strings.Contains(" "+names+" ", " "+n+" ") }); got != want {
			t.Errorf("%q: got %v, want %v", names, got, want)
		}
	}
}

func TestDrivers(t *testing.T) {
	for raw, want := range map[string]string{
		"*.c diff=cpp\n*.x merge=union text\n": "", "* filter=lfs diff=lfs merge=lfs -text": "", "# * filter=x": "", "*.a filter=x": "filter=x",
		"[attr]m filter=y\n": "filter=y", "*.b diff=z": "diff=z", "*.d merge=w": "merge=w", "* -filter !diff": "",
	} {
		if got := drivers([]byte(raw)); got != want {
			t.Errorf("%q: got %q, want %q", raw, got, want)
		}
	}
}

func ExampleFiltered() {
	out, changed, _ := Filtered([]byte("[remote \"origin\"]\n\turl = https://me:secret@example.org/x\n"))
	fmt.Printf("%s%v\n", out, changed)
	// Output:
	// [remote "origin"]
	// 	url = "https://example.org/x"
	// true
}
