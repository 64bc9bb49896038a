package seatbelt_test

import (
	"flag"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tether-sandbox/tether/internal/enforce/seatbelt"
	"github.com/tether-sandbox/tether/internal/plan"
	"github.com/tether-sandbox/tether/internal/plan/secrets"
	"github.com/tether-sandbox/tether/policy"
)

// meaning is what a plan makes of a path, said anew from the words of package
// plan and not from any provider.
type meaning struct{ look, read, write, move, start, socket bool }

func in(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

// spot is the deepest place of a plan that holds a path.
type spot struct {
	path                            string
	shown, write, exec, file, cover bool
}

func spots(p *plan.Plan) []spot {
	var all []spot
	for _, s := range p.Scratch {
		all = append(all, spot{path: s.Path, shown: true, write: s.Writable, exec: true})
	}
	for _, v := range p.Views {
		all = append(all, spot{path: v.Path, shown: true, write: v.Writable, exec: !v.NoExec, file: v.File})
	}
	for _, f := range p.Files {
		all = append(all, spot{path: f.Path, shown: true, file: true})
	}
	for _, c := range p.Covers {
		all = append(all, spot{path: c, cover: true})
	}
	return all
}

func deepest(all []spot, path string) spot {
	var best spot
	for _, s := range all {
		if (path == s.path || !s.file && in(path, s.path)) && len(s.path) >= len(best.path) {
			best = s
		}
	}
	return best
}

// meant is the meaning of a path under a plan.
func meant(p *plan.Plan, path string) meaning {
	all := spots(p)
	at := deepest(all, path)
	m := meaning{look: at.shown, read: at.shown, write: at.write, move: at.write && at.path != path, start: at.exec, socket: at.write && !at.file}
	if at.cover && at.path == path { // the folder itself is seen where what is around it is shown
		m.look = deepest(all, path[:strings.LastIndexByte(path, '/')]).shown
	}
	for _, s := range all { // the way to what is shown can be asked about, and its folders not be moved
		if in(s.path, path) && s.path != path {
			m.look, m.move = m.look || s.shown, false
		}
	}
	for _, l := range p.Links {
		m.look = m.look || in(l.Path, path)
	}
	closed := func(where string) bool { // and nothing around it can be moved
		m.move = m.move && !in(where, path) && !in(path, where)
		return in(path, where)
	}
	for _, l := range p.Locks {
		if l.Writable && l.Content == nil {
			m.move = m.move && !in(l.Path, path)
			continue
		}
		if closed(l.Path) {
			m.write = false
			if l.Content != nil {
				m.read, m.start = false, false
			}
		}
	}
	for _, k := range p.Masks {
		if !closed(k.Path) {
			continue
		}
		m.read, m.start, m.write = false, false, false
		if k.Kind == secrets.MaskDir {
			m.look, m.socket = m.look && path == k.Path, false
		}
	}
	for _, s := range p.Sockets {
		m.move = m.move && !in(s, path)
		if path == s {
			m.read, m.write, m.socket = false, false, false
		}
	}
	return m
}

// paths are drawn from few names, so that they often meet; one begins like
// another, and some want to leave their string.
func paths() *rapid.Generator[string] {
	name := rapid.SampledFrom([]string{"a", "b", "a-", "ab", `q"`, `w\`, ") (allow default", "ü x"})
	return rapid.Custom(func(t *rapid.T) string {
		return "/" + strings.Join(rapid.SliceOfN(name, 1, 4).Draw(t, "names"), "/")
	})
}

// plans are plans as they could come: views that differ, anything else anywhere.
func plans() *rapid.Generator[*plan.Plan] {
	return rapid.Custom(func(t *rapid.T) *plan.Plan {
		p := &plan.Plan{Policy: policy.Default("/a")}
		p.Policy.Network.Mode = policy.Offline
		used := map[string]bool{}
		files := map[string]bool{}
		fresh := func(path string) bool {
			for f := range files {
				if in(path, f) || in(f, path) {
					return false
				}
			}
			ok := !used[path]
			used[path] = true
			return ok
		}
		for _, path := range rapid.SliceOfN(paths(), 1, 5).Draw(t, "views") {
			if fresh(path) {
				p.Views = append(p.Views, plan.View{Root: plan.Root{Path: path}, Origin: plan.Added,
					Writable: rapid.Bool().Draw(t, "writable"), NoExec: rapid.IntRange(0, 3).Draw(t, "noexec") == 0})
			}
		}
		for _, path := range rapid.SliceOfN(paths(), 0, 2).Draw(t, "scratch") {
			if fresh(path) {
				p.Scratch = append(p.Scratch, plan.Scratch{Path: path, Writable: rapid.Bool().Draw(t, "writable")})
			}
		}
		for _, path := range rapid.SliceOfN(paths(), 0, 2).Draw(t, "covers") {
			if fresh(path) {
				p.Covers = append(p.Covers, path)
			}
		}
		for _, path := range rapid.SliceOfN(paths(), 0, 4).Draw(t, "locks") {
			l := plan.Lock{Path: path, Writable: rapid.Bool().Draw(t, "pin")}
			if rapid.IntRange(0, 3).Draw(t, "content") == 0 {
				l.Content = []byte("x")
			}
			p.Locks = append(p.Locks, l)
		}
		for _, path := range rapid.SliceOfN(paths(), 0, 4).Draw(t, "masks") {
			kind := rapid.SampledFrom([]secrets.MaskKind{secrets.MaskFile, secrets.MaskStub, secrets.MaskDir}).Draw(t, "kind")
			p.Masks = append(p.Masks, secrets.Mask{Path: path, Kind: kind})
		}
		p.Sockets = rapid.SliceOfN(paths(), 0, 2).Draw(t, "sockets")
		if rapid.Bool().Draw(t, "link") {
			p.Links = []plan.Link{{Path: paths().Draw(t, "path"), To: "b"}}
		}
		return p
	})
}

func evaluate(t interface {
	Fatalf(string, ...any)
	Helper()
}, p *plan.Plan, o seatbelt.Options) profile {
	t.Helper()
	text, err := seatbelt.Profile(p, o)
	if err != nil {
		t.Fatalf("Profile: %v", err)
	}
	rules, err := parseProfile(text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return rules
}

// TestProfileIsThePlan asks plan and profile about random paths: the answers are
// the same, and the same under both readings of the language.
func TestProfileIsThePlan(t *testing.T) {
	asked := 0
	kinds := map[bool]int{}
	rapid.Check(t, func(t *rapid.T) {
		p := plans().Draw(t, "plan")
		rules := evaluate(t, p, seatbelt.Options{})
		for range 30 {
			path := paths().Draw(t, "path")
			m := meant(p, path)
			for _, q := range []struct {
				op   string
				want bool
			}{
				{"file-read-metadata", m.look}, {"file-read-data", m.read}, {"file-read-xattr", m.read},
				{"file-write-data", m.write}, {"file-write-create", m.write}, {"file-write-mode", m.write}, {"file-link", m.write},
				{"file-write-unlink", m.move}, {"process-exec", m.start}, {"file-map-executable", m.start},
				{"network-outbound", m.socket}, {"network-bind", m.socket},
				{"file-clone", false},
			} {
				got, agree := rules.allows(query{op: q.op, name: path})
				asked++
				kinds[got]++
				if got != q.want || !agree {
					text, _ := seatbelt.Profile(p, seatbelt.Options{})
					t.Fatalf("%s %q: the profile says %v, the plan %v, readings agree: %v\n%+v\n%s", q.op, path, got, q.want, agree, p, text)
				}
			}
		}
	})
	if asked < 10_000 || kinds[true] < 1000 || kinds[false] < 1000 {
		t.Errorf("%d questions, answers %v: too few", asked, kinds)
	}
}

// rapidChecks makes a test that grows trees of files a shorter one, unless it was
// told how many there should be.
func rapidChecks(t *testing.T, n string) (restore func()) {
	t.Helper()
	f := flag.Lookup("rapid.checks")
	if f == nil || f.Value.String() != f.DefValue {
		return nil
	}
	if err := f.Value.Set(n); err != nil {
		t.Fatal(err)
	}
	return func() { _ = f.Value.Set(f.DefValue) }
}
