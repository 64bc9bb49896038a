package toolchain

import (
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// fakeFS is a file system in memory: folders, files and links by path.
type fakeFS map[string]fakeFile

type fakeFile struct {
	name string
	mode fs.FileMode
	to   string
}

func (f fakeFile) Name() string               { return f.name }
func (f fakeFile) Size() int64                { return 0 }
func (f fakeFile) Mode() fs.FileMode          { return f.mode }
func (f fakeFile) ModTime() time.Time         { return time.Time{} }
func (f fakeFile) IsDir() bool                { return f.mode.IsDir() }
func (f fakeFile) Sys() any                   { return nil }
func (f fakeFile) Type() fs.FileMode          { return f.mode.Type() }
func (f fakeFile) Info() (fs.FileInfo, error) { return f, nil }

func (m fakeFS) put(p string, mode fs.FileMode, to string) {
	for d := path.Dir(p); d != "/"; d = path.Dir(d) {
		if have, ok := m[d]; ok && !have.mode.IsDir() {
			return
		} else if !ok {
			m[d] = fakeFile{path.Base(d), fs.ModeDir | 0o755, ""}
		}
	}
	if _, ok := m[p]; !ok {
		m[p] = fakeFile{path.Base(p), mode, to}
	}
}

func (m fakeFS) Lstat(p string) (fs.FileInfo, error) {
	if f, ok := m[p]; ok {
		return f, nil
	}
	return nil, &fs.PathError{Op: "lstat", Path: p, Err: fs.ErrNotExist}
}

func (m fakeFS) Readlink(p string) (string, error) { return m[p].to, nil }

func (m fakeFS) ReadDir(p string) ([]fs.DirEntry, error) {
	var out []fs.DirEntry
	for name, f := range m {
		if path.Dir(name) == p && name != p {
			out = append(out, f)
		}
	}
	return out, nil
}

// places that a random home is made of, and that its links lead to.
var vocabulary = [...]string{
	"/h/u", "/h", "/", "/h/u/.nvm", "/h/u/.nvm/versions", "/h/u/.nvm/nvm.sh", "/h/u/.pyenv", "/h/u/.pyenv/versions",
	"/h/u/.pyenv/libexec/pyenv", "/h/u/.local", "/h/u/.local/bin", "/h/u/.local/share/uv/tools", "/h/u/.local/share/uv/credentials",
	"/h/u/bin", "/h/u/.ssh", "/h/u/.ssh/versions", "/h/u/.aws", "/h/u/.conda/envs", "/h/u/.conda/.condarc", "/h/u/.conda/conda-meta/state",
	"/h/u/ws", "/h/u/ws/nvm/versions", "/h/u/ws/x", "/h/v", "/h/v/.nvm/versions", "/d/nvm", "/d/nvm/versions",
	"/d/secret", "/h/u/.cargo/bin", "/h/u/.cargo/credentials.toml", "/h/u/.cargo/registry/cache", "/h/u/Documents",
	"/opt/x/bin", "/h/u/miniconda3", "/h/u/go", "/h/u/go/bin", "/h/u/go/pkg/mod/cache/download",
}

func drawFS(t *rapid.T) fakeFS {
	m := fakeFS{}
	m.put("/h/u", fs.ModeDir|0o755, "")
	m.put("/h/u/ws", fs.ModeDir|0o755, "")
	for range rapid.IntRange(1, 25).Draw(t, "n") {
		p := rapid.SampledFrom(vocabulary[3:]).Draw(t, "path")
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			m.put(p, 0o644, "")
		case 1, 2:
			m.put(p, fs.ModeDir|0o755, "")
		default:
			to := rapid.SampledFrom(vocabulary[:]).Draw(t, "to")
			if rapid.Bool().Draw(t, "up") {
				to = strings.Repeat("../", rapid.IntRange(0, 4).Draw(t, "ups")) + rapid.SampledFrom([]string{"ws", ".ssh", "x", "u/.ssh", "."}).Draw(t, "rel")
			}
			m.put(p, fs.ModeSymlink|0o777, to)
		}
	}
	return m
}

func drawInput(t *rapid.T) Input {
	in := Input{Home: "/h/u", Homes: []string{"/h/u", "/h/v"}, FS: drawFS(t), Visible: []string{"/opt"}}
	for _, name := range []string{"NVM_DIR", "PYENV_ROOT", "CONDA_PREFIX", "VIRTUAL_ENV", "CARGO_HOME", "PATH", "GOPATH"} {
		if rapid.Bool().Draw(t, "set") {
			in.Env = append(in.Env, name+"="+rapid.SampledFrom(vocabulary[:]).Draw(t, name))
		}
	}
	return in
}

// canonical follows links by another way than the walker does.
func canonical(m fakeFS, p string, depth int) string {
	if p == "/" || depth > 50 {
		return "/"
	}
	dir := canonical(m, path.Dir(p), depth+1)
	p = path.Join(dir, path.Base(p))
	f, ok := m[p]
	if !ok || f.mode&fs.ModeSymlink == 0 {
		return p
	}
	if path.IsAbs(f.to) {
		return canonical(m, path.Clean(f.to), depth+1)
	}
	for e := range strings.SplitSeq(f.to, "/") {
		if e == ".." {
			dir = path.Dir(dir)
		} else {
			dir = canonical(m, path.Join(dir, e), depth+1)
		}
	}
	return dir
}

func TestLawNothingUnsafeIsShown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		m := in.FS.(fakeFS)
		in.Roots = []string{"/h/u/ws"}
		r := Shown(in)
		all := make([]string, 0, len(r.Shows)+len(r.Caches))
		for i, s := range r.Shows {
			all = append(all, s.Path)
			for _, o := range r.Shows[:i] {
				if inside(s.Path, o.Path) || inside(o.Path, s.Path) {
					t.Errorf("%s and %s overlap", s.Path, o.Path)
				}
			}
			for _, n := range never {
				p := path.Join("/h/u", n)
				if f, ok := m[p]; ok && inside(p, s.Path) && f.mode&fs.ModeSymlink == 0 && !insideAny(p, s.Deny) {
					t.Errorf("%s is open in %s", p, s.Path)
				}
			}
			for _, d := range s.Deny {
				if !inside(d, s.Path) || d == s.Path || canonical(m, d, 0) != d {
					t.Errorf("%s is no canonical path in %s", d, s.Path)
				}
			}
		}
		for _, c := range r.Caches {
			all = append(all, c.Path)
		}
		for _, p := range all {
			f, ok := m[p]
			if !ok || f.mode&fs.ModeSymlink != 0 || canonical(m, p, 0) != p {
				t.Errorf("%s is not canonical or not there", p)
			}
			for _, bad := range []string{"/h/u/ws", "/h/u/.ssh", "/h/u/.aws", "/h/v", "/d/secret", "/h/u/Documents"} {
				if inside(p, bad) {
					t.Errorf("%s is shown", p)
				}
			}
			if inside("/h/u", p) {
				t.Errorf("%s holds the home", p)
			}
		}
		for _, l := range r.Links {
			if f := m[l.Path]; f.mode&fs.ModeSymlink == 0 || f.to != l.To || insideAny(l.Path, in.Roots) {
				t.Errorf("%+v is no link of the host's, or one of the workspace's", l)
			}
		}
	})
}

// More roots never show more.
func TestLawRootsOnlyTakeAway(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		wide := Shown(in)
		in.Roots = []string{rapid.SampledFrom(vocabulary[3:]).Draw(t, "root")}
		for _, s := range Shown(in).Shows {
			if !slices.ContainsFunc(wide.Shows, func(w Show) bool { return inside(s.Path, w.Path) }) {
				t.Errorf("%s is shown with the root %s and not without", s.Path, in.Roots[0])
			}
		}
	})
}

func FuzzShown(f *testing.F) {
	f.Add("/h/u", "NVM_DIR=/h/u/.nvm\nPATH=/h/u/bin:/x", "/h/u/.nvm/versions/\n/h/u/bin/x\n/h/u/.x -> ../y")
	f.Fuzz(func(t *testing.T, home, env, tree string) {
		m := fakeFS{}
		for line := range strings.SplitSeq(tree, "\n") {
			p, to, isLink := strings.Cut(line, " -> ")
			if !strings.HasPrefix(p, "/") || path.Clean(p) == "/" {
				continue
			}
			mode := fs.FileMode(0o644)
			if isLink {
				mode = fs.ModeSymlink | 0o777
			} else if strings.HasSuffix(p, "/") {
				mode = fs.ModeDir | 0o755
			}
			m.put(path.Clean(p), mode, to)
		}
		r := Shown(Input{Home: home, Env: strings.Split(env, "\n"), Roots: []string{"/h/u/ws"}, FS: m})
		for _, s := range r.Shows {
			if canonical(m, s.Path, 0) != s.Path || inside(s.Path, "/h/u/ws") || s.Path == "/" {
				t.Errorf("%q is shown", s.Path)
			}
		}
	})
}
