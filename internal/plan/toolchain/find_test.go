package toolchain

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tree makes a home from lines: "a/b/" a folder, "a/b" a file, "a -> to" a
// link. It returns the folder that holds it, canonical.
func tree(t *testing.T, lines ...string) string {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	top = filepath.ToSlash(top)
	for _, l := range lines {
		name, to, isLink := strings.Cut(l, " -> ")
		p := top + "/" + strings.TrimSuffix(name, "/")
		if err := os.MkdirAll(path.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		switch {
		case isLink:
			err = os.Symlink(strings.ReplaceAll(to, "TOP", top), p)
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(p, 0o755)
		default:
			err = os.WriteFile(p, []byte("x"), 0o644)
		}
		if err != nil {
			t.Skipf("cannot make %q here: %v", l, err)
		}
	}
	return top
}

// input is a search in top/home; TOP in an element stands for top.
func input(top string, env ...string) Input {
	in := Input{Home: top + "/home", Homes: []string{top + "/home", top + "/other"}}
	for _, e := range env {
		in.Env = append(in.Env, strings.ReplaceAll(e, "TOP", top))
	}
	return in
}

// paths are what is shown, relative to top.
func paths(top string, r Result) []string {
	var out []string
	for _, s := range r.Shows {
		out = append(out, strings.TrimPrefix(s.Path, top+"/"))
	}
	return out
}

func denied(top string, r Result) []string {
	var out []string
	for _, s := range r.Shows {
		for _, d := range s.Deny {
			out = append(out, strings.TrimPrefix(d, top+"/"))
		}
	}
	return out
}

func equal(t *testing.T, what string, got, want []string) {
	t.Helper()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func TestFoldersATtoolNeedsAndNoMore(t *testing.T) {
	for _, c := range []struct {
		name       string
		tree       []string
		env        []string
		show, deny []string
		set        []string
	}{
		{
			name: "cargo and rustup",
			tree: []string{"home/.cargo/bin/cargo", "home/.cargo/credentials.toml", "home/.cargo/config.toml", "home/.cargo/registry/cache/x/", "home/.rustup/toolchains/stable/", "home/.rustup/settings.toml", "home/.rustup/tmp/", "home/.rustup/update-hashes/"},
			show: []string{"home/.cargo/bin", "home/.rustup/toolchains", "home/.rustup/settings.toml", "home/.rustup/update-hashes"},
			set:  []string{"RUSTUP_HOME=TOP/home/.rustup"},
		},
		{
			name: "nvm",
			tree: []string{"home/.nvm/nvm.sh", "home/.nvm/.git/config", "home/.nvm/versions/node/v20/bin/node", "home/.nvm/versions/node/v20/etc/npmrc", "home/.npmrc"},
			show: []string{"home/.nvm/nvm.sh", "home/.nvm/versions"},
			deny: []string{"home/.nvm/versions/node/v20/etc/npmrc"},
			set:  []string{"NVM_DIR=TOP/home/.nvm"},
		},
		{
			name: "pyenv",
			tree: []string{"home/.pyenv/libexec/pyenv", "home/.pyenv/versions/3.12/bin/python", "home/.pyenv/versions/3.12/pip.conf", "home/.pyenv/plugins/x/.git/config", "home/.pyenv/.git/config", "home/.pyenv/cache/"},
			show: []string{"home/.pyenv/libexec", "home/.pyenv/versions", "home/.pyenv/plugins"},
			deny: []string{"home/.pyenv/versions/3.12/pip.conf", "home/.pyenv/plugins/x/.git"},
			set:  []string{"PYENV_ROOT=TOP/home/.pyenv"},
		},
		{
			name: "conda",
			tree: []string{"home/miniconda3/conda-meta/state", "home/miniconda3/.condarc", "home/miniconda3/bin/conda", "home/miniconda3/envs/a/etc/conda/activate.d/env_vars.sh", "home/miniconda3/envs/a/conda-meta/state", "home/.condarc"},
			show: []string{"home/miniconda3"},
			deny: []string{"home/miniconda3/conda-meta/state", "home/miniconda3/.condarc", "home/miniconda3/envs/a/etc/conda/activate.d/env_vars.sh", "home/miniconda3/envs/a/conda-meta/state"},
		},
		{
			name: "uv hides its credentials",
			tree: []string{"home/.local/share/uv/credentials/credentials.toml", "home/.local/share/uv/tools/x/bin/x", "home/.local/bin/x -> ../share/uv/tools/x/bin/x"},
			show: []string{"home/.local/bin", "home/.local/share/uv/tools"},
		},
		{
			name: "go as tools, as sdk, as root",
			tree: []string{"home/go/bin/gopls", "home/go/pkg/mod/x/", "home/sdk/go1.26/pkg/tool/", "home/sdk/other/", "home/.local/go/pkg/tool/", "home/.local/go/bin/go"},
			show: []string{"home/go/bin", "home/sdk/go1.26", "home/.local/go"},
		},
		{name: "nothing", tree: []string{"home/Documents/x", "home/.ssh/id_rsa", "home/.npmrc", "home/.aws/credentials", "home/go/src/x/"}},
		{name: "a folder with a tool's name and none of its marks", tree: []string{"home/.pyenv/secret", "home/flutter/secret", "home/.conda/secret"}},
		{
			name: "moved by a variable, needs a mark",
			tree: []string{"opt/rust/toolchains/", "opt/rust/secret", "data/secret"},
			env:  []string{"RUSTUP_HOME=TOP/opt/rust", "NVM_DIR=TOP/data", "VIRTUAL_ENV=TOP/data", "PYENV_ROOT=relative", "GOROOT=TOP/opt/../opt/rust"},
			show: []string{"opt/rust/toolchains"},
			set:  []string{"RUSTUP_HOME=TOP/opt/rust"},
		},
		{
			name: "a virtual environment elsewhere",
			tree: []string{"home/p/pyvenv.cfg", "home/p/bin/python", "home/p/.env", "home/p/pip.conf", "home/p/src/"},
			env:  []string{"VIRTUAL_ENV=TOP/home/p"},
			show: []string{"home/p/bin", "home/p/pyvenv.cfg"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			top := tree(t, append(c.tree, "home/")...)
			r := Shown(input(top, c.env...))
			equal(t, "shown", paths(top, r), c.show)
			equal(t, "denied", denied(top, r), c.deny)
			for i := range c.set {
				c.set[i] = strings.ReplaceAll(c.set[i], "TOP", top)
			}
			equal(t, "set", r.Env, c.set)
			for _, s := range r.Shows {
				if info, err := os.Lstat(s.Path); err != nil || info.IsDir() == s.File || s.Tool == "" || s.Why == "" {
					t.Errorf("%+v: %v", s, err)
				}
			}
		})
	}
}

func TestAdversarialLinks(t *testing.T) {
	for _, c := range []struct {
		name string
		tree []string
		env  []string
		// roots and visible are relative to the top.
		roots, visible []string
		// control is what the same tree shows when nothing is in its way;
		// empty where the refusal does not depend on the input.
		control []string
		show    []string
		links   []string
		skipped []string
	}{
		{
			name:    "a tool's folder in the workspace",
			tree:    []string{"home/.cargo/bin/"},
			roots:   []string{"home/.cargo"},
			control: []string{"home/.cargo/bin"},
			skipped: []string{"home/.cargo"},
		},
		{
			name:    "a tool's folder is a link into the workspace",
			tree:    []string{"home/.nvm -> ../ws/nvm", "ws/nvm/nvm.sh", "ws/nvm/versions/"},
			roots:   []string{"ws"},
			control: []string{"ws/nvm/nvm.sh", "ws/nvm/versions"},
			skipped: []string{"home/.nvm"},
		},
		{
			name:    "a link that passes through the workspace and out again",
			tree:    []string{"home/.nvm -> TOP/ws/out", "ws/out -> ../data/nvm", "data/nvm/versions/"},
			roots:   []string{"ws"},
			control: []string{"data/nvm/versions"},
			skipped: []string{"home/.nvm"},
		},
		{
			name:    "a link that passes through the workspace by ..",
			tree:    []string{"home/.nvm -> TOP/ws/sub/../../data/nvm", "ws/sub/", "data/nvm/versions/"},
			roots:   []string{"ws/sub"},
			control: []string{"data/nvm/versions"},
			skipped: []string{"home/.nvm"},
		},
		{
			name:    "a sub-folder is a link into the workspace",
			tree:    []string{"home/.pyenv/libexec/pyenv", "home/.pyenv/versions -> TOP/ws/v", "ws/v/"},
			roots:   []string{"ws"},
			show:    []string{"home/.pyenv/libexec"},
			skipped: []string{"home/.pyenv/versions"},
		},
		{
			name:    "a sub-folder is a link to secrets",
			tree:    []string{"home/.pyenv/libexec/pyenv", "home/.pyenv/versions -> ../.ssh", "home/.pyenv/plugins -> TOP/data", "home/.ssh/id_rsa", "data/x"},
			show:    []string{"home/.pyenv/libexec"},
			skipped: []string{"home/.pyenv/plugins", "home/.pyenv/versions"},
		},
		{
			name:  "a sub-folder is a link to its own parent",
			tree:  []string{"home/.nvm/nvm.sh", "home/.nvm/.git/config", "home/.nvm/versions -> ."},
			show:  []string{"home/.nvm/nvm.sh"},
			links: []string{"home/.nvm/versions"},
		},
		{
			name:    "programs are a link into the home",
			tree:    []string{"home/bin -> Documents", "home/Documents/secret", "home/.local/bin -> ..", "home/.local/share/"},
			skipped: []string{"home/.local/bin", "home/bin"},
		},
		{
			name:    "programs are a link to the home, the root, another home",
			tree:    []string{"home/bin -> .", "home/.bin -> /", "home/go/bin -> TOP/other/bin", "other/bin/"},
			skipped: []string{"home/.bin", "home/bin", "home/go/bin"},
		},
		{
			name:    "a marked folder in another home",
			tree:    []string{"home/.nvm -> ../other/.nvm", "other/.nvm/versions/"},
			skipped: []string{"home/.nvm"},
		},
		{
			name:  "a tool's folder moved within the home",
			tree:  []string{"home/.nvm -> dotfiles/nvm", "home/dotfiles/nvm/versions/", "home/dotfiles/secret"},
			show:  []string{"home/dotfiles/nvm/versions"},
			links: []string{"home/.nvm"},
		},
		{
			name:    "a tool's folder is a link to credentials",
			tree:    []string{"home/.nvm -> .aws", "home/.aws/versions/", "home/.rustup -> x/.docker", "home/x/.docker/toolchains/"},
			skipped: []string{"home/.nvm", "home/.rustup"},
		},
		{
			name:    "a loop",
			tree:    []string{"home/.nvm -> .nvm", "home/.cargo -> .pyenv", "home/.pyenv -> .cargo"},
			skipped: []string{"home/.cargo", "home/.nvm", "home/.pyenv"},
		},
		{
			name:    "a file in place of a folder",
			tree:    []string{"home/.local/bin", "home/.cargo"},
			skipped: []string{"home/.cargo", "home/.local/bin"},
		},
		{
			name:    "visible anyway: the link is enough",
			tree:    []string{"home/.nvm -> TOP/opt/nvm", "opt/nvm/versions/", "home/bin -> TOP/opt/bin", "opt/bin/"},
			visible: []string{"opt"},
			links:   []string{"home/.nvm", "home/bin"},
		},
		{
			name:  "names on PATH",
			tree:  []string{"home/.local/share/fnm/node-versions/v20/installation/bin/", "run/fnm/1 -> TOP/home/.local/share/fnm/node-versions/v20/installation", "run/x -> TOP/home/.ssh", "home/.ssh/"},
			env:   []string{"PATH=TOP/run/fnm/1/bin:TOP/run/x:.::/nonexistent"},
			show:  []string{"home/.local/share/fnm/node-versions"},
			links: []string{"run/fnm/1"},
		},
		{
			name:    "a variable names the home, or what holds it",
			tree:    []string{"home/conda-meta/", "home/.ssh/", "envs/"},
			env:     []string{"CONDA_PREFIX=TOP/home", "MAMBA_ROOT_PREFIX=TOP"},
			skipped: []string{"", "home"},
		},
		{
			name:    "a marked folder among the credentials",
			tree:    []string{"home/.nvm -> .config/gh", "home/.config/gh/versions/"},
			skipped: []string{"home/.nvm"},
		},
		{
			name: "a mark behind a link is none",
			tree: []string{"home/.local/go/pkg -> TOP/data/pkg", "data/pkg/tool/", "home/.local/go/secret"},
		},
		{
			name:    "the workspace's own environment is nobody's news",
			tree:    []string{"ws/.venv/pyvenv.cfg", "ws/.venv/bin/"},
			env:     []string{"VIRTUAL_ENV=TOP/ws/.venv"},
			roots:   []string{"ws"},
			control: []string{"ws/.venv/bin", "ws/.venv/pyvenv.cfg"},
		},
		{
			name:    "a link in programs that leads elsewhere is not followed",
			tree:    []string{"home/.local/bin/x -> ../../src/x", "home/src/x", "home/.local/bin/y"},
			show:    []string{"home/.local/bin"},
			roots:   []string{"ws"},
			control: []string{"home/.local/bin"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			top := tree(t, append(c.tree, "home/")...)
			in := input(top, c.env...)
			if c.control != nil {
				equal(t, "control", paths(top, Shown(in)), c.control)
			}
			for _, p := range c.roots {
				in.Roots = append(in.Roots, top+"/"+p)
			}
			for _, p := range c.visible {
				in.Visible = append(in.Visible, top+"/"+p)
			}
			r := Shown(in)
			equal(t, "shown", paths(top, r), c.show)
			var links, skipped []string
			for _, l := range r.Links {
				links = append(links, strings.TrimPrefix(l.Path, top+"/"))
				if to, err := os.Readlink(l.Path); err != nil || to != l.To {
					t.Errorf("%+v: the link says %q, %v", l, to, err)
				}
			}
			for _, s := range r.Skipped {
				skipped = append(skipped, strings.TrimPrefix(strings.TrimPrefix(s.Path, top), "/"))
			}
			equal(t, "links", links, c.links)
			equal(t, "skipped", skipped, c.skipped)
		})
	}
}

func TestWorldWritableWay(t *testing.T) {
	top := tree(t, "home/.nvm -> TOP/shared/nvm", "shared/nvm/versions/", "home/.cargo/bin/")
	in := input(top)
	equal(t, "control", paths(top, Shown(in)), []string{"home/.cargo/bin", "shared/nvm/versions"})
	for _, dir := range []string{"shared", "home/.cargo"} {
		if err := os.Chmod(top+"/"+dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(top + "/shared"); err != nil || info.Mode().Perm() != 0o777 {
		t.Skip("no such modes here")
	}
	equal(t, "shown", paths(top, Shown(in)), []string{"home/.cargo/bin"})
}

func TestPlacesOfTheSystemAreNoToolchains(t *testing.T) {
	m := fakeFS{}
	m.put("/h/u", fs.ModeDir|0o755, "")
	for _, top := range []string{"data", "run", "proc", "dev", "sys", "etc", "boot"} {
		m.put("/"+top+"/x/versions", fs.ModeDir|0o755, "")
		r := Shown(Input{Home: "/h/u", Env: []string{"NVM_DIR=/" + top + "/x"}, FS: m})
		if got, want := len(r.Shows) == 1, top == "data"; got != want {
			t.Errorf("/%s: shown %t, want %t (%v)", top, got, want, r.Skipped)
		}
	}
}

func TestHomeIsALink(t *testing.T) {
	top := tree(t, "data/u/.cargo/bin/", "data/u/.npmrc", "home -> data/u")
	r := Shown(input(top, "PATH=TOP/home/.cargo/bin"))
	equal(t, "shown", paths(top, r), []string{"data/u/.cargo/bin"})
	if len(r.Links) != 1 || r.Links[0] != (Link{top + "/home", "data/u"}) {
		t.Errorf("links: got %v", r.Links)
	}
	if r := Shown(input(tree(t, "data/u/Documents/", "home -> data/u"))); len(r.Links) != 0 {
		t.Errorf("links without anything shown: got %v", r.Links)
	}
}

func TestCaches(t *testing.T) {
	top := tree(t, "home/go/pkg/mod/cache/download/", "home/.cargo/registry/cache/", "home/.cargo/registry/index/",
		"home/.cargo/credentials.toml", "home/.npm/_cacache/", "home/.npm/_logs/", "home/.m2/repository/",
		"home/.m2/settings.xml", "home/.gradle/caches/modules-2/", "home/.gradle/gradle.properties",
		"home/.cache/pip -> ../.ssh", "home/.ssh/wheels/", "other-mod/cache/download/")
	r := Shown(input(top))
	got := map[string]Cache{}
	var list []string
	for _, c := range r.Caches {
		rel := strings.TrimPrefix(c.Path, top+"/home/")
		got[rel] = c
		list = append(list, rel)
	}
	equal(t, "caches", list, []string{"go/pkg/mod/cache/download", ".cargo/registry/cache", ".cargo/registry/index",
		".npm/_cacache", ".m2/repository", ".gradle/caches/modules-2"})
	if c := got[".cargo/registry/index"]; c.Into != "CARGO_HOME" || c.Rel != "registry/index" {
		t.Errorf("got %+v", c)
	}
	if c := got[".gradle/caches/modules-2"]; c.Env != "GRADLE_RO_DEP_CACHE="+top+"/home/.gradle/caches" {
		t.Errorf("got %+v", c)
	}
	r = Shown(input(top, "GOMODCACHE=TOP/other-mod"))
	if !slices.ContainsFunc(r.Caches, func(c Cache) bool { return c.Path == top+"/other-mod/cache/download" }) {
		t.Errorf("got %+v", r.Caches)
	}
	in := input(top)
	in.Roots = []string{top + "/home/go"}
	if r := Shown(in); slices.ContainsFunc(r.Caches, func(c Cache) bool { return c.Tool == "go" }) {
		t.Errorf("a cache in the workspace: got %+v", r.Caches)
	}
}

// Every list of credentials stays closed even when the table's folders hold
// them.
func TestCredentialsInsideAShownFolder(t *testing.T) {
	top := tree(t, "home/.conda/envs/", "home/.conda/.condarc", "home/.conda/x -> .condarc2", "home/.conda/.condarc2")
	r := Shown(input(top))
	equal(t, "shown", paths(top, r), []string{"home/.conda"})
	equal(t, "denied", denied(top, r), []string{"home/.conda/.condarc"})
	// Also where a variable says that a folder is what it is not.
	top = tree(t, "home/.config/envs/", "home/.config/gh/hosts.yml", "home/.config/fish/")
	equal(t, "denied", denied(top, Shown(input(top, "MAMBA_ROOT_PREFIX=TOP/home/.config"))), []string{"home/.config/gh"})
	// Through a link the file behind it is denied.
	top = tree(t, "home/.conda/envs/", "home/.conda/.condarc -> real", "home/.conda/real")
	equal(t, "denied", denied(top, Shown(input(top))), []string{"home/.conda/real"})
}

func TestNoHome(t *testing.T) {
	for _, home := range []string{"", "/", "home", "/nonexistent", "/etc/passwd", "/a/../b", "/\x00"} {
		if r := Shown(Input{Home: home}); len(r.Shows)+len(r.Links)+len(r.Env)+len(r.Caches) != 0 {
			t.Errorf("%q: got %+v", home, r)
		}
	}
}

// The real homes of this machine: nothing that is shown may be or hold what
// must stay closed.
func TestThisMachine(t *testing.T) {
	home, err := os.UserHomeDir()
	if err != nil {
		t.Skip(err)
	}
	r := Shown(Input{Home: filepath.ToSlash(home), Homes: []string{home}, Env: os.Environ(), Visible: []string{"/usr", "/opt", "/etc", "/bin", "/sbin"}})
	for _, s := range r.Shows {
		real, err := filepath.EvalSymlinks(s.Path)
		if err != nil || real != s.Path {
			t.Errorf("%s is not canonical: %s, %v", s.Path, real, err)
		}
		for _, n := range never {
			p := home + "/" + n
			if inside(s.Path, p) {
				t.Errorf("%s is shown", s.Path)
			}
			if _, err := os.Stat(p); err == nil && inside(p, s.Path) && !insideAny(p, s.Deny) {
				t.Errorf("%s is shown inside of %s", p, s.Path)
			}
		}
	}
	t.Logf("%d shown, %d caches, %d links, %d skipped", len(r.Shows), len(r.Caches), len(r.Links), len(r.Skipped))
}

func TestTableIsSound(t *testing.T) {
	check := func(tool, vars, dirs, mark string, lists ...string) {
		if vars != "" && mark == "" {
			t.Errorf("%s: a place that a variable names needs a mark", tool)
		}
		for d := range strings.FieldsSeq(dirs) {
			if path.Clean(d) != d || strings.HasPrefix(d, "..") || d == "." {
				t.Errorf("%s: %q", tool, d)
			}
		}
		for _, l := range lists {
			for p := range strings.FieldsSeq(l) {
				if _, err := path.Match(p, "x"); err != nil || path.IsAbs(p) || path.Clean(p) != p || strings.HasPrefix(p, "..") {
					t.Errorf("%s: pattern %q: %v", tool, p, err)
				}
			}
		}
	}
	for _, r := range rows {
		check(r.tool, r.vars, r.dirs, r.mark, r.show, r.deny, r.mark)
		if r.show == "" || r.tool == "" || r.vars+r.dirs == "" {
			t.Errorf("%+v is incomplete", r)
		}
		for d := range strings.FieldsSeq(r.dirs) {
			for s := range strings.FieldsSeq(r.show) {
				if p := path.Join(d, s); insideAny(p, never[:]) {
					t.Errorf("%s shows %s, which is on the list of credentials", r.tool, p)
				}
			}
		}
	}
	for _, c := range caches {
		check(c.tool, c.vars, c.dirs, c.show, c.show)
	}
}
