package enforce_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/plan"
	"github.com/tether-sandbox/tether/internal/plan/secrets"
)

// paths are drawn from few names, so that they often meet. One begins like
// another, and one sorts between a folder and what it holds.
func paths() *rapid.Generator[string] {
	name := rapid.SampledFrom([]string{"a", "b", "a-", "ab"})
	return rapid.Custom(func(t *rapid.T) string {
		return "/" + strings.Join(rapid.SliceOfN(name, 1, 4).Draw(t, "names"), "/")
	})
}

func in(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

// plans are plans as Resolve makes them: views that differ in their target,
// locks in order and inside a view, masks anywhere.
func plans() *rapid.Generator[*plan.Plan] {
	return rapid.Custom(func(t *rapid.T) *plan.Plan {
		p := &plan.Plan{}
		p.Identity.Root = rapid.Bool().Draw(t, "root")
		used := map[string]bool{}
		for _, path := range rapid.SliceOfN(paths(), 1, 6).Draw(t, "views") {
			if used[path] {
				continue
			}
			used[path] = true
			origin := rapid.SampledFrom([]plan.Origin{plan.System, plan.Workspace, plan.Added, plan.Toolchain, plan.Cache, plan.Git}).Draw(t, "origin")
			p.Views = append(p.Views, plan.View{Root: plan.Root{Path: path, Dev: 1, Ino: 1}, Origin: origin, Writable: rapid.Bool().Draw(t, "writable")})
		}
		for _, path := range rapid.SliceOfN(paths(), 0, 2).Draw(t, "scratch") {
			if !used[path] {
				used[path] = true
				p.Scratch = append(p.Scratch, plan.Scratch{Path: path, Mode: 0o700, Writable: rapid.Bool().Draw(t, "writable")})
			}
		}
		p.Covers = rapid.SliceOfN(paths(), 0, 2).Draw(t, "covers")
		for _, path := range rapid.SliceOfN(paths(), 0, 5).Draw(t, "locks") {
			if slices.ContainsFunc(p.Covers, func(c string) bool { return in(c, path) }) {
				continue // nobody's home lies in a folder that is locked, or is one
			}
			l := plan.Lock{Path: path, Writable: rapid.Bool().Draw(t, "pin")}
			if rapid.IntRange(0, 3).Draw(t, "content") == 0 {
				l.Content = []byte("x")
			}
			p.Locks = append(p.Locks, l)
		}
		slices.SortStableFunc(p.Locks, func(a, b plan.Lock) int {
			return cmp.Compare(strings.ReplaceAll(a.Path, "/", "\x00"), strings.ReplaceAll(b.Path, "/", "\x00"))
		})
		for _, path := range rapid.SliceOfN(paths(), 0, 5).Draw(t, "masks") {
			if coveredAt(p, path) {
				continue // the search for secrets sees nothing there
			}
			kind := rapid.SampledFrom([]secrets.MaskKind{secrets.MaskFile, secrets.MaskStub, secrets.MaskDir}).Draw(t, "kind")
			p.Masks = append(p.Masks, secrets.Mask{Path: path, Kind: kind})
		}
		p.Sockets = rapid.SliceOfN(paths(), 0, 2).Draw(t, "sockets")
		return p
	})
}

// coveredAt says whether the deepest place that holds path is a cover.
func coveredAt(p *plan.Plan, path string) bool {
	view, cover := -1, -1
	for _, v := range p.Views {
		if in(path, v.Target()) {
			view = max(view, len(v.Target()))
		}
	}
	for _, c := range p.Covers {
		if in(path, c) {
			cover = max(cover, len(c))
		}
	}
	return cover >= 0 && cover >= view
}

func hides(v enforce.Verb) bool {
	return v == enforce.MaskFile || v == enforce.MaskDir || v == enforce.MaskStub
}

func places(v enforce.Verb) bool {
	return v == enforce.Bind || v == enforce.Tmpfs || v == enforce.Cover
}

// TestOrderLaws holds every list of steps to the order that its meaning needs.
func TestOrderLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := plans().Draw(t, "plan")
		steps := enforce.Compile(p)
		trees := uint32(0)
		sealed := false
		for i, s := range steps {
			if s.Tree != 0 {
				if trees++; s.Tree != trees {
					t.Fatalf("%s has tree %d, want %d", s, s.Tree, trees)
				}
				if !p.Identity.Root {
					t.Fatalf("%s takes a tree and the caller is not root", s)
				}
			}
			if sealed && s.Do != enforce.Seal {
				t.Fatalf("%s comes after a seal", s)
			}
			sealed = s.Do == enforce.Seal
			for _, later := range steps[i+1:] {
				switch {
				case hides(s.Do) && (places(later.Do) || later.Do == enforce.Self || later.Do == enforce.File) && in(s.Dst, later.Dst):
					t.Fatalf("%s uncovers what %s hides", later, s)
				case s.Do == enforce.MaskDir && hides(later.Do) && in(later.Dst, s.Dst):
					t.Fatalf("%s is put where %s left nothing", later, s)
				case places(s.Do) && places(later.Do) && s.Dst != later.Dst && in(s.Dst, later.Dst):
					t.Fatalf("%s covers the deeper %s", later, s)
				case s.Do == enforce.File && s.Flags&enforce.Make == 0 && places(later.Do) && in(s.Dst, later.Dst):
					t.Fatalf("%s comes before the view %s that it lies in", s, later)
				case s.Do == enforce.Self && s.Flags&enforce.ReadOnly != 0 && places(later.Do) && s.Dst != later.Dst && in(s.Dst, later.Dst):
					t.Fatalf("%s comes before the view %s that it lies in", s, later)
				}
			}
		}
	})
}

// sight is what the last mount that holds a path makes of it.
type sight struct {
	by    enforce.Step
	write bool
}

// replay says what steps make of path. A provider that takes the sources of
// every mount from the host starts anew with each; one that clones what it has
// built so far keeps what was taken away.
func replay(steps []enforce.Step, path string, cloned bool) sight {
	var at sight
	for _, s := range steps {
		switch {
		case s.Do == enforce.Seal:
			// Of that one mount, whatever lies in it.
			at.write = at.write && at.by.Dst != s.Dst
		case s.Do == enforce.Symlink || s.Do == enforce.Dir || s.Do == enforce.Sysctl || !in(path, s.Dst):
		case s.Do == enforce.Self && cloned:
			at.write = at.write && s.Flags&enforce.ReadOnly == 0
		default:
			at = sight{s, s.Do == enforce.Tmpfs || (s.Do == enforce.Bind || s.Do == enforce.Self) && s.Flags&enforce.ReadOnly == 0}
		}
	}
	return at
}

// want is the meaning of a plan, straight from it: the deepest place decides,
// a cover beats a view of the same path, what is locked or hidden is never
// written, and of a cover nothing is left but what lies in it at a view.
func want(p *plan.Plan, path string) bool {
	best, write := -1, false
	deepest := func(at string, w bool) {
		if in(path, at) && len(at) >= best {
			best, write = len(at), w
		}
	}
	for _, s := range p.Scratch {
		deepest(s.Path, s.Writable)
	}
	for _, v := range p.Views {
		deepest(v.Target(), v.Writable)
	}
	for _, c := range p.Covers {
		deepest(c, false)
	}
	for _, l := range p.Locks {
		if (!l.Writable || l.Content != nil) && in(path, l.Path) {
			return false
		}
	}
	for _, m := range p.Masks {
		if in(path, m.Path) {
			return false
		}
	}
	for _, s := range p.Sockets {
		if in(path, s) {
			return false
		}
	}
	return write
}

// TestProtectedBeatsWritable compares what the steps leave writable with what
// the plan says, for both ways to carry them out.
func TestProtectedBeatsWritable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := plans().Draw(t, "plan")
		path := paths().Draw(t, "path")
		steps := enforce.Compile(p)
		for _, cloned := range []bool{false, true} {
			if replay(steps, path, cloned).write && !want(p, path) {
				t.Fatalf("%s is writable (cloned: %v), and must not be:\n%s", path, cloned, printAll(steps))
			}
		}
	})
}

// TestWritableStays is the other edge: what nothing protects is written to.
func TestWritableStays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := plans().Draw(t, "plan")
		path := paths().Draw(t, "path")
		// A repository never lies in private memory.
		p.Locks = slices.DeleteFunc(p.Locks, func(l plan.Lock) bool {
			return slices.ContainsFunc(p.Scratch, func(s plan.Scratch) bool { return in(l.Path, s.Path) })
		})
		steps := enforce.Compile(p)
		for _, cloned := range []bool{false, true} {
			if want(p, path) && !replay(steps, path, cloned).write {
				t.Fatalf("%s is not writable (cloned: %v), and must be:\n%s", path, cloned, printAll(steps))
			}
		}
	})
}

// TestHiddenStaysHidden holds every mask of a plan to being the last word,
// where there is anything of the host to be seen.
func TestHiddenStaysHidden(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := plans().Draw(t, "plan")
		steps := enforce.Compile(p)
		for _, m := range p.Masks {
			for _, cloned := range []bool{false, true} {
				by := replay(steps, m.Path, cloned).by
				shows := by.Do == enforce.Bind || by.Do == enforce.Self || by.Do == enforce.File && by.Dst == m.Path
				if shows {
					t.Fatalf("%s shows %s (cloned: %v):\n%s", by, m.Path, cloned, printAll(steps))
				}
			}
		}
	})
}
