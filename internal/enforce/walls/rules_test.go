package walls_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/enforce/enforcetest"
	"github.com/tether-sandbox/tether/internal/enforce/walls"
	"github.com/tether-sandbox/tether/internal/plan"
	"github.com/tether-sandbox/tether/internal/plan/secrets"
	"github.com/tether-sandbox/tether/policy"
)

var update = flag.Bool("update", false, "write testdata/*.golden anew")

// tree is a machine's folders: those end in a slash, links in an at sign.
type tree []string

func (t tree) list(dir string) ([]walls.Entry, error) {
	var out []walls.Entry
	for _, path := range t {
		rest, ok := strings.CutPrefix(path, dir+"/")
		if !ok || rest == "" {
			continue
		}
		name, more, deep := strings.Cut(rest, "/")
		e := walls.Entry{Name: strings.TrimSuffix(name, "@"), Dir: deep, Link: strings.HasSuffix(name, "@") && more == ""}
		if !slices.Contains(out, e) {
			out = append(out, e)
		}
	}
	if out == nil {
		return nil, errors.New("no such folder")
	}
	return out, nil
}

func machine() tree {
	return tree{"/opt/private/x", "/opt/home/u/tool/bin", "/opt/home/v/", "/opt/tools/", "/opt/readme", "/opt/link@",
		"/etc/passwd", "/etc/shadow", "/etc/ssl/certs/", "/etc/ssl/private/key",
		"/home/u/w/.env", "/home/u/w/.git/config", "/home/u/w/src/", "/home/u/w/conf/tls.key", "/home/u/w/conf/app.toml",
		"/home/u/w/.ssh/id_rsa", "/home/u/w/.vscode/.env", "/home/u/w/.vscode/tasks.json", "/home/u/w/vendor/"}
}

func TestGolden(t *testing.T) {
	readonly := func(p *plan.Plan) {
		p.Policy.Profile = policy.ReadOnly
		for i := range p.Views {
			p.Views[i].Writable = false
		}
		for i := range p.Scratch {
			p.Scratch[i].Writable = false
		}
	}
	for name, change := range map[string]func(*plan.Plan, *walls.Host){
		"write":    func(*plan.Plan, *walls.Host) {},
		"readonly": func(p *plan.Plan, _ *walls.Host) { readonly(p) },
		"root": func(_ *plan.Plan, h *walls.Host) {
			h.Closed, h.NoState = []string{"/etc/shadow", "/etc/ssl/private"}, true
		},
	} {
		p := enforcetest.Plan()
		p.Cache = "/run/tether/cache"
		p.Env = []string{"TMPDIR=/tmp", "XDG_CACHE_HOME=/run/tether/cache", "PATH=/usr/bin:/run/tether/user/bin:/run/tether/cache/bin",
			"A=-x=/run/tether/user", "OTHER=/data/run/tether/user", "LIKE=/run/tethered", "HOME=/home/u/w"}
		h := walls.Host{Private: "/private", List: machine().list}
		change(p, &h)
		w, err := walls.Translate(p, h)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		for _, s := range w.Steps {
			fmt.Fprintln(&b, s)
		}
		fmt.Fprintln(&b, strings.Join(w.Env, "\n"))
		file := filepath.Join("testdata", name+".golden")
		if *update {
			if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil || b.String() != string(want) {
			t.Errorf("%s differs (%v); look at it, then run go test -update:\n%s", file, err, b.String())
		}
	}
}

func under(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

// TestClosedStaysClosed: whatever lies where, no rule opens what must stay
// closed, unless a folder around it is written, and nothing else is lost.
func TestClosedStaysClosed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"a", "b", "ab", "a.b"})
		path := rapid.Custom(func(t *rapid.T) string {
			return "/" + strings.Join(rapid.SliceOfN(name, 1, 4).Draw(t, "names"), "/")
		})
		files := tree(rapid.SliceOfN(path, 1, 20).Draw(t, "files"))
		p := &plan.Plan{}
		for _, v := range rapid.SliceOfN(path, 1, 3).Draw(t, "views") {
			p.Views = append(p.Views, plan.View{Root: plan.Root{Path: v}, Writable: rapid.Bool().Draw(t, "writable")})
		}
		for _, m := range rapid.SliceOfN(path, 0, 4).Draw(t, "masks") {
			p.Masks = append(p.Masks, secrets.Mask{Path: m})
		}
		p.Covers = rapid.SliceOfN(path, 0, 2).Draw(t, "covers")
		w, err := walls.Translate(p, walls.Host{Private: "/private", List: files.list})
		if err != nil {
			t.Fatal(err)
		}
		opened := func(path string, with enforce.Flags) bool {
			return slices.ContainsFunc(w.Steps, func(s enforce.Step) bool {
				return s.Do == enforce.Allow && s.Flags&(enforce.Listing|with) == 0 && under(path, s.Dst)
			})
		}
		leaf := func(f string) bool {
			holds := func(x string) bool { return x != f && under(x, f) }
			return !slices.ContainsFunc(files, holds) && !slices.ContainsFunc(p.Covers, holds) &&
				!slices.ContainsFunc(p.Masks, func(m secrets.Mask) bool { return holds(m.Path) })
		}
		for _, f := range files {
			if !leaf(f) {
				continue
			}
			shown, written, shut := false, false, false
			for _, v := range p.Views {
				shown = shown || under(f, v.Path)
				written = written || v.Writable && under(f, v.Path)
			}
			for i := range p.Masks {
				shut = shut || under(f, p.Masks[i].Path)
			}
			for _, c := range p.Covers {
				// What is shown by name in a covered folder is shown.
				shut = shut || under(f, c) && !slices.ContainsFunc(p.Views, func(v plan.View) bool { return under(f, v.Path) && v.Path != c && under(v.Path, c) })
			}
			if got := opened(f, 0); shut && !written && got {
				t.Errorf("%s must stay closed and is open: %v", f, w.Steps)
			} else if shown && !shut && !got {
				t.Errorf("%s is shown and closed: %v", f, w.Steps)
			} else if !shown && got {
				t.Errorf("%s is not shown and open: %v", f, w.Steps)
			}
			if opened(f, enforce.ReadOnly) != written {
				t.Errorf("%s: can be written: %v, want %v: %v", f, !written, written, w.Steps)
			}
		}
	})
}

// TestOwnFiles: what is Tether's own is never writable, whatever is accepted.
func TestOwnFiles(t *testing.T) {
	for _, c := range []struct {
		own  string
		want bool
	}{{"/home/u/w/bin/tether", false}, {"/home/u/w", false}, {"/home/u/bin/tether", true}, {"/data/read/tether", true}, {"/state", true}} {
		p := enforcetest.Plan()
		p.Own = []string{c.own}
		if _, err := walls.Translate(p, walls.Host{Private: "/private", List: machine().list}); (err == nil) != c.want {
			t.Errorf("%s: got %v, want it taken: %v", c.own, err, c.want)
		}
	}
}
