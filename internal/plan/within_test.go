package plan

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/plan/secrets"
	"github.com/tether-sandbox/tether/policy"
)

// number gives each path an inode of its own, the same in every plan.
func number(path string) uint64 {
	n := uint64(14695981039346656037)
	for i := range len(path) {
		n = (n ^ uint64(path[i])) * 1099511628211
	}
	return n | 1
}

// still is a machine on which nothing has changed.
func still(path string) (dev, ino uint64, ok bool) { return 1, number(path), true }

func folder(path string, origin Origin, write bool) View {
	return View{Root: Root{Path: path, Dev: 1, Ino: number(path)}, Origin: origin, Writable: write}
}

// family is a parent's plan to derive children from.
func family() *Plan {
	pol := policy.Default("/w")
	pol.Network.Mode = policy.Gated
	return &Plan{Policy: pol, Identity: Identity{UID: 1, HostUID: 1, GID: 1, HostGID: 1},
		Views: []View{folder("/usr", System, false), folder("/w", Workspace, true), folder("/w/fixed", Added, false),
			folder("/data", Added, false), {Root: Root{Path: "/state/c", Dev: 1, Ino: 7}, At: "/run/tether/cache", Origin: Cache, Writable: true}},
		Covers:  []string{"/usr/private"},
		Scratch: []Scratch{{Path: "/tmp", Writable: true}},
		Locks:   []Lock{{Path: "/w/.git", Writable: true}, {Path: "/w/.git/hooks"}, {Path: "/w/.git/config", Content: []byte("x")}},
		Masks:   []secrets.Mask{{Path: "/w/.env", Dev: 1, Ino: number("/w/.env")}, {Path: "/w/a/.env"}, {Path: "/w/.ssh", Kind: secrets.MaskDir}},
		Sockets: []string{"/w/s.sock"},
	}
}

// inWorkspace is a child that works in a folder of its parent's workspace.
func inWorkspace() *Plan {
	p := family()
	p.Views = []View{folder("/usr", System, false), folder("/w/a", Workspace, true),
		{Root: Root{Path: "/state/d", Dev: 1, Ino: 8}, At: "/run/tether/cache", Origin: Cache, Writable: true}}
	p.Scratch = []Scratch{{Path: "/tmp", Writable: true}, {Path: "/var/tmp"}}
	p.Masks = []secrets.Mask{{Path: "/w/a/.env"}}
	p.Locks, p.Sockets = nil, nil
	return p
}

func TestWithin(t *testing.T) {
	without := func(paths ...string) func(*Plan) {
		return func(p *Plan) {
			drop := func(path string) bool {
				for _, d := range paths {
					if d == path {
						return true
					}
				}
				return false
			}
			q := *p
			p.Views, p.Masks, p.Locks, p.Covers, p.Sockets = nil, nil, nil, nil, nil
			for _, v := range q.Views {
				if !drop(v.Path) {
					p.Views = append(p.Views, v)
				}
			}
			for _, m := range q.Masks {
				if !drop(m.Path) {
					p.Masks = append(p.Masks, m)
				}
			}
			for _, l := range q.Locks {
				if !drop(l.Path) {
					p.Locks = append(p.Locks, l)
				}
			}
			for _, c := range q.Covers {
				if !drop(c) {
					p.Covers = append(p.Covers, c)
				}
			}
			for _, s := range q.Sockets {
				if !drop(s) {
					p.Sockets = append(p.Sockets, s)
				}
			}
		}
	}
	add := func(v View) func(*Plan) { return func(p *Plan) { p.Views = append(p.Views, v) } }
	for _, c := range []struct {
		name  string
		child *Plan
		do    func(*Plan)
		wide  string // a part of the error, "" for none
	}{
		{"the same plan", family(), func(*Plan) {}, ""},
		{"a folder of the workspace", inWorkspace(), func(*Plan) {}, ""},
		{"less to read", family(), without("/data"), ""},
		{"a folder of what is only read", family(), func(p *Plan) { without("/data")(p); add(folder("/data/sub", Added, false))(p) }, ""},
		{"nothing to write", family(), func(p *Plan) {
			for i := range p.Views {
				p.Views[i].Writable = false
			}
		}, ""},
		{"more to hide", family(), func(p *Plan) { p.Masks = append(p.Masks, secrets.Mask{Path: "/w/x"}) }, ""},
		{"hidden in place of locked", family(), func(p *Plan) {
			without("/w/.git/hooks")(p)
			p.Masks = append(p.Masks, secrets.Mask{Path: "/w/.git/hooks", Kind: secrets.MaskDir})
		}, ""},
		{"hidden with the folder around it", family(), func(p *Plan) {
			without("/w/a/.env")(p)
			p.Masks = append(p.Masks, secrets.Mask{Path: "/w/a", Kind: secrets.MaskDir})
		}, ""},
		{"less network", family(), func(p *Plan) { p.Policy.Network.Mode = policy.Offline }, ""},
		{"a narrower profile", family(), func(p *Plan) { p.Policy.Profile = policy.ReadOnly }, ""},

		{"a root of its own", family(), add(folder("/other", Added, false)), "/other"},
		{"a root around the parent's", family(), add(folder("/", Added, false)), `shows /`},
		{"what only begins like a root", family(), add(folder("/ww", Added, false)), "/ww"},
		{"writes what is only read", family(), add(folder("/data/sub", Added, true)), "writes /data/sub"},
		{"writes what is only read, itself", family(), func(p *Plan) { p.Views[3].Writable = true }, "writes /data"},
		{"writes what is read-only in the workspace", family(), without("/w/fixed"), "writes /w/fixed"},
		{"writes in what is read-only in the workspace", family(), add(folder("/w/fixed/x", Added, true)), "writes /w/fixed/x"},
		{"shows more of the system", family(), add(folder("/opt", System, false)), "/opt"},
		{"uncovers", family(), without("/usr/private"), "/usr/private"},
		{"shows in a cover", family(), add(folder("/usr/private/x", Added, false)), "/usr/private/x"},
		{"shows in private memory", family(), add(folder("/tmp/x", Added, false)), "/tmp/x"},
		{"does not hide", family(), without("/w/a/.env"), "/w/a/.env"},
		{"does not hide, in a folder of the workspace", inWorkspace(), without("/w/a/.env"), "/w/a/.env"},
		{"only locks what is hidden", family(), func(p *Plan) {
			without("/w/a/.env")(p)
			p.Locks = append(p.Locks, Lock{Path: "/w/a/.env"})
		}, "/w/a/.env"},
		{"shows in a hidden folder", family(), add(folder("/w/.ssh/x", Added, false)), ""}, // hidden there as well
		{"shows from a hidden folder", inWorkspace(), add(folder("/w/.ssh/x", Added, false)), "/w/.ssh/x"},
		{"does not lock", family(), without("/w/.git/hooks"), "writes /w/.git/hooks"},
		{"only pins what is locked", family(), func(p *Plan) { p.Locks[1].Writable = true }, "writes /w/.git/hooks"},
		{"shows as it is what was filtered", family(), func(p *Plan) { p.Locks[2].Content = nil }, "shows /w/.git/config"},
		{"opens a socket", family(), without("/w/s.sock"), "/w/s.sock"},
		{"more network", family(), func(p *Plan) { p.Policy.Network.Mode = policy.Open }, "network"},
		{"a wider profile", family(), func(p *Plan) { p.Policy.Profile = policy.FullAccess }, "profile"},
		{"other ids", family(), func(p *Plan) { p.Identity.HostUID = 0 }, "ids"},
		{"another group", family(), func(p *Plan) { p.Identity.HostGID = 0 }, "ids"},
		{"another folder at the same path", family(), func(p *Plan) { p.Views[1].Ino++ }, "another folder"},
		{"another device at the same path", family(), func(p *Plan) { p.Views[1].Dev++ }, "another folder"},
		{"a hidden file by another name", inWorkspace(), func(p *Plan) {
			p.Views = append(p.Views, View{Root: Root{Path: "/w/a/plain", Dev: 1, Ino: number("/w/.env")}, Origin: Added, File: true})
		}, "/w/.env"},
		{"the parent's folder at another path", family(), func(p *Plan) { p.Views[3].At = "/w/elsewhere" }, "elsewhere"},
	} {
		c.do(c.child)
		err := Within(c.child, family(), still)
		switch {
		case c.wide == "" && err != nil:
			t.Errorf("%s: got %v, want nil", c.name, err)
		case c.wide != "" && (err == nil || !strings.Contains(err.Error(), c.wide) || fault.CodeOf(err) != fault.SandboxViolation):
			t.Errorf("%s: got %v, want %s and %q", c.name, err, fault.SandboxViolation, c.wide)
		}
	}
}

// TestWithinLooksAgain: a path only lies in a root as long as the root is the
// folder that it was, and nothing need be hidden that is gone.
func TestWithinLooksAgain(t *testing.T) {
	if err := Within(inWorkspace(), family(), still); err != nil {
		t.Fatalf("control: %v", err)
	}
	moved := func(path string) (uint64, uint64, bool) {
		dev, ino, ok := still(path)
		if path == "/w" {
			ino++
		}
		return dev, ino, ok
	}
	if err := Within(inWorkspace(), family(), moved); err == nil || !strings.Contains(err.Error(), "another folder") {
		t.Errorf("the parent's workspace was replaced: got %v, want an error", err)
	}
	gone := func(path string) (uint64, uint64, bool) {
		dev, ino, ok := still(path)
		return dev, ino, ok && path != "/w/a/.env" && path != "/w/.git/hooks" && path != "/w"
	}
	child := inWorkspace()
	child.Masks = nil
	if err := Within(child, family(), still); err == nil {
		t.Error("a hidden file that is there is not hidden: got nil")
	}
	onlyFile := func(path string) (uint64, uint64, bool) {
		dev, ino, ok := still(path)
		return dev, ino, ok && path != "/w/a/.env"
	}
	if err := Within(child, family(), onlyFile); err != nil {
		t.Errorf("a hidden file that is gone is not hidden: got %v, want nil", err)
	}
	if err := Within(inWorkspace(), family(), gone); err == nil {
		t.Error("the parent's workspace is gone: got nil")
	}
	parent := family()
	parent.Policy.Profile = policy.FullAccess
	wide := family()
	wide.Views = append(wide.Views, folder("/other", Added, true))
	if err := Within(wide, parent, still); err != nil {
		t.Errorf("in full access: got %v, want nil", err)
	}
}

func somePlan() *rapid.Generator[*Plan] {
	name := rapid.SampledFrom([]string{"a", "b", "a-"})
	path := rapid.Custom(func(t *rapid.T) string { return "/" + strings.Join(rapid.SliceOfN(name, 1, 3).Draw(t, "names"), "/") })
	return rapid.Custom(func(t *rapid.T) *Plan {
		p := &Plan{Policy: policy.Policy{Profile: policy.WorkspaceWrite}}
		used := map[string]bool{}
		for _, at := range rapid.SliceOfN(path, 0, 4).Draw(t, "views") {
			if !used[at] {
				used[at] = true
				p.Views = append(p.Views, folder(at, Added, rapid.Bool().Draw(t, "write")))
			}
		}
		for _, at := range rapid.SliceOfN(path, 0, 1).Draw(t, "scratch") {
			if !used[at] {
				p.Scratch = append(p.Scratch, Scratch{Path: at, Writable: true})
			}
		}
		p.Covers = rapid.SliceOfN(path, 0, 2).Draw(t, "covers")
		for _, at := range rapid.SliceOfN(path, 0, 2).Draw(t, "masks") {
			p.Masks = append(p.Masks, secrets.Mask{Path: at, Dev: 1, Ino: number(at)})
		}
		for _, at := range rapid.SliceOfN(path, 0, 2).Draw(t, "locks") {
			l := Lock{Path: at, Writable: rapid.Bool().Draw(t, "pin")}
			if rapid.Bool().Draw(t, "content") {
				l.Content = []byte{}
			}
			p.Locks = append(p.Locks, l)
		}
		p.Sockets = rapid.SliceOfN(path, 0, 1).Draw(t, "sockets")
		return p
	})
}

// opens is the meaning of a plan, in the slowest and plainest way.
func opens(p *Plan, path string) (read, write bool) {
	best := -1
	for _, s := range p.Scratch {
		if inside(path, s.Path) && len(s.Path) >= best {
			best, read, write = len(s.Path), false, false
		}
	}
	for _, v := range p.Views {
		if inside(path, v.Path) && len(v.Path) >= best {
			best, read, write = len(v.Path), true, v.Writable
		}
	}
	for _, c := range p.Covers {
		if inside(path, c) && len(c) >= best {
			best, read, write = len(c), false, false
		}
	}
	for _, l := range p.Locks {
		if inside(path, l.Path) {
			read = read && l.Content == nil
			write = write && l.Content == nil && l.Writable
		}
	}
	for _, m := range p.Masks {
		if inside(path, m.Path) {
			read, write = false, false
		}
	}
	for _, s := range p.Sockets {
		if inside(path, s) {
			read, write = false, false
		}
	}
	return read, write
}

// TestWithinLaw: whatever path one thinks of, a child that is within opens it
// only if its parent does.
func TestWithinLaw(t *testing.T) {
	held := 0
	rapid.Check(t, func(t *rapid.T) {
		parent := somePlan().Draw(t, "parent")
		child := somePlan().Draw(t, "child")
		if rapid.Bool().Draw(t, "derived") {
			child.Views = nil
			for _, v := range parent.Views {
				if rapid.IntRange(0, 3).Draw(t, "keep") > 0 {
					child.Views = append(child.Views, v)
				}
			}
			child.Masks = append(child.Masks, parent.Masks...)
			child.Locks = append(child.Locks, parent.Locks...)
			child.Sockets = append(child.Sockets, parent.Sockets...)
			child.Covers = append(child.Covers, parent.Covers...)
			child.Scratch = parent.Scratch
		}
		if Within(child, parent, still) != nil {
			return
		}
		held++
		name := rapid.SampledFrom([]string{"a", "b", "a-", "c"})
		for range 8 {
			path := "/" + strings.Join(rapid.SliceOfN(name, 1, 5).Draw(t, "path"), "/")
			cr, cw := opens(child, path)
			pr, pw := opens(parent, path)
			if cr && !pr || cw && !pw {
				t.Fatalf("%s: the child reads %v, writes %v; the parent %v, %v", path, cr, cw, pr, pw)
			}
		}
	})
	if held == 0 {
		t.Error("no child was within its parent: nothing was checked")
	}
}

// TestWithinNarrowing is the other edge: a plan is within itself, and whatever
// is taken away from it stays within.
func TestWithinNarrowing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parent := somePlan().Draw(t, "parent")
		if err := Within(parent, parent, still); err != nil {
			t.Fatalf("itself: %v", err)
		}
		more := somePlan().Draw(t, "more")
		child := *parent
		child.Masks = append(append([]secrets.Mask{}, parent.Masks...), more.Masks...)
		child.Covers = append(append([]string{}, parent.Covers...), more.Covers...)
		child.Locks = append(append([]Lock{}, parent.Locks...), more.Locks...)
		child.Views = append([]View{}, parent.Views...)
		for i := range child.Views {
			child.Views[i].Writable = child.Views[i].Writable && rapid.Bool().Draw(t, "write")
		}
		if err := Within(&child, parent, still); err != nil {
			t.Fatalf("with less: %v", err)
		}
	})
}
