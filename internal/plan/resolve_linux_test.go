package plan

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/need"
	"github.com/tether-sandbox/tether/internal/plan/secrets"
	"github.com/tether-sandbox/tether/policy"
)

// ground is a machine in a folder: a home, a workspace in it, a folder beside.
type ground struct {
	t         testing.TB
	host      Host
	home, w   string
	out, here string
}

func newGround(t testing.TB) *ground {
	t.Helper()
	here, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	g := &ground{t: t, here: here, home: here + "/home/u", w: here + "/home/u/w", out: here + "/out"}
	for _, d := range []string{g.w, g.out, here + "/state", here + "/config"} {
		g.mkdir(d)
	}
	g.host = Host{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid()), Home: g.home, User: "u", Homes: []string{g.home},
		StateDir: here + "/state/tether", ConfigDir: here + "/config/tether"}
	return g
}

func (g *ground) mkdir(path string) {
	g.t.Helper()
	if err := os.MkdirAll(path, 0o755); err != nil {
		g.t.Fatal(err)
	}
}

func (g *ground) write(path, content string) string {
	g.t.Helper()
	g.mkdir(filepath.Dir(path))
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		g.t.Fatal(err)
	}
	return path
}

func (g *ground) link(to, at string) string {
	g.t.Helper()
	if err := os.Symlink(to, at); err != nil {
		g.t.Fatal(err)
	}
	return at
}

func (g *ground) policy() policy.Policy {
	p := policy.Default(g.w)
	p.Network.Mode = policy.Offline
	return p
}

func (g *ground) resolve(pol policy.Policy, dir string) (*Plan, error) {
	return Resolve(context.Background(), pol, g.host, dir)
}

func (g *ground) plan(change func(*policy.Policy)) *Plan {
	g.t.Helper()
	pol := g.policy()
	change(&pol)
	p, err := g.resolve(pol, "")
	if err != nil {
		g.t.Fatal(err)
	}
	return p
}

func viewAt(p *Plan, path string) *View {
	for i := range p.Views {
		if p.Views[i].Target() == path {
			return &p.Views[i]
		}
	}
	return nil
}

func noted(p *Plan, part string) bool {
	return slices.ContainsFunc(p.Notes, func(n Note) bool { return strings.Contains(n.What, part) })
}

func TestWorkspace(t *testing.T) {
	g := newGround(t)
	file := g.write(g.here+"/file", "")
	for _, c := range []struct {
		name, path string
		bad        string // a part of the reason, "" for fine
	}{
		{"a folder in a home", g.w, ""},
		{"a folder outside of every home", g.out, ""},
		{"through a link", g.link(g.w, g.here+"/to-w"), ""},
		{"what only begins like a home", func() string { g.mkdir(g.home + "x"); return g.home + "x" }(), ""},
		{"the machine", "/", "too wide"},
		{"a home", g.home, "home folder"},
		{"a home through a link", g.link(g.home, g.here+"/to-home"), "home folder"},
		{"above a home", g.here + "/home", "holds a home"},
		{"far above a home", g.here, "holds a home"},
		{"above a home through a link", g.link(g.here, g.out+"/to-top"), "holds a home"},
		{"/tmp", "/tmp", "too wide"},
		{"/usr", "/usr", "too wide"},
		{"/usr through a link", g.link("/usr", g.here+"/to-usr"), "too wide"},
		{"/etc", "/etc", "too wide"},
		{"/usr/lib", "/usr/lib", "too wide"},
		{"/lib, a link on merged systems", "/lib", "too wide"},
		{"/usr/local", "/usr/local", "too wide"},
		{"/var/lib", "/var/lib", "too wide"},
		{"/proc", "/proc", "not a place"},
		{"below /proc", "/proc/self", "not a place"},
		{"/dev", "/dev", "not a place"},
		{"below /sys", "/sys/kernel", "not a place"},
		{"missing", g.here + "/missing", "no such file"},
		{"a dangling link", g.link("nowhere", g.here+"/dangling"), "no such file"},
		{"a file", file, "not a folder"},
		{"through a file", file + "/x", "not a directory"},
		{"relative", "w", "not an absolute path"},
		{"empty", "", "not an absolute path"},
		{"a NUL byte", g.w + "\x00x", "not an absolute path"},
	} {
		homes := []Root{}
		home, _, err := openRoot(g.home)
		if err != nil {
			t.Fatal(err)
		}
		root, err := workspace(layout(), c.path, append(homes, home))
		if c.bad == "" {
			if err != nil || root.Ino == 0 {
				t.Errorf("%s: got %v, %v; want it taken", c.name, root, err)
			}
			continue
		}
		if fault.CodeOf(err) != fault.SandboxBadWorkspace || !strings.Contains(err.Error(), c.bad) || strings.Contains(err.Error(), "\x00") {
			t.Errorf("%s: got %v, want %s and %q", c.name, err, fault.SandboxBadWorkspace, c.bad)
		}
		if fault.HintOf(err) == "" {
			t.Errorf("%s: no hint", c.name)
		}
	}
}

// TestWorkspaceByIdentity: a home is one by whatever path.
func TestWorkspaceByIdentity(t *testing.T) {
	g := newGround(t)
	home, _, err := openRoot(g.home)
	if err != nil {
		t.Fatal(err)
	}
	other, _, err := openRoot(g.out)
	if err != nil {
		t.Fatal(err)
	}
	// As a bind mount has it: another path, the same folder.
	same := Root{Path: "/elsewhere", Dev: other.Dev, Ino: other.Ino}
	if _, err := workspace(layout(), g.out, []Root{home}); err != nil {
		t.Fatalf("control: %v", err)
	}
	if _, err := workspace(layout(), g.out, []Root{home, same}); fault.CodeOf(err) != fault.SandboxBadWorkspace {
		t.Errorf("got %v, want %s", err, fault.SandboxBadWorkspace)
	}
}

func TestViews(t *testing.T) {
	g := newGround(t)
	g.mkdir(g.w + "/sub")
	g.mkdir(g.out + "/r")
	file := g.write(g.out+"/file", "")
	g.link(g.out+"/r", g.here+"/to-r")
	p := g.plan(func(pol *policy.Policy) {
		pol.Read = []string{g.out + "/r", g.here + "/to-r", g.out + "/missing", file, g.w}
		pol.Write = []string{g.w + "/sub", g.here + "/no\nsuch"}
	})
	if v := viewAt(p, g.w); v == nil || !v.Writable || v.Origin != Workspace || v.Ino == 0 {
		t.Errorf("the workspace: got %+v, want it writable, also when it is named again to be read", v)
	}
	if v := viewAt(p, g.out+"/r"); v == nil || v.Writable || v.Origin != Added || v.File {
		t.Errorf("an added root: got %+v, want it read-only", v)
	}
	if v := viewAt(p, file); v == nil || !v.File || v.Writable {
		t.Errorf("an added file: got %+v", v)
	}
	if v := viewAt(p, g.here+"/to-r"); v != nil {
		t.Errorf("a link: got %+v, want what it leads to and nothing else", v)
	}
	count := 0
	for _, v := range p.Views {
		if v.Path == g.out+"/r" {
			count++
		}
	}
	if count != 1 {
		t.Errorf("%d views of one folder, want 1", count)
	}
	for _, missing := range []string{g.out + "/missing was left out", `no\nsuch" was left out`} {
		if !noted(p, missing) {
			t.Errorf("no note says %q: %v", missing, p.Notes)
		}
	}
	if p.Dir != g.w || p.Workspace.Path != g.w {
		t.Errorf("got %q in %q, want the workspace", p.Dir, p.Workspace.Path)
	}
	if r := g.plan(func(pol *policy.Policy) { pol.Profile = policy.ReadOnly }); viewAt(r, g.w).Writable {
		t.Error("read-only: the workspace is writable")
	}
}

func TestViewsOfTheMachine(t *testing.T) {
	g := newGround(t)
	p := g.plan(func(*policy.Policy) {})
	for _, shown := range []string{"/usr", "/etc"} {
		if v := viewAt(p, shown); v == nil || v.Writable || v.Origin != System {
			t.Errorf("%s: got %+v, want it read-only", shown, v)
		}
	}
	for _, v := range p.Views {
		for _, shut := range []string{"/", "/home", "/root", "/var", "/run", "/srv", "/mnt", "/media", "/boot", "/proc", "/dev", "/data", g.home, g.here} {
			if v.Path == shut || v.Target() == shut {
				t.Errorf("%s is shown", shut)
			}
		}
	}
}

func TestStartFolder(t *testing.T) {
	g := newGround(t)
	g.mkdir(g.w + "/sub/deep")
	g.mkdir(g.out + "/r")
	g.write(g.w+"/file", "")
	g.link(g.out, g.w+"/leads-out")
	g.link("sub/deep", g.w+"/leads-in")
	pol := g.policy()
	pol.Read = []string{g.out + "/r"}
	for _, c := range []struct {
		dir, want string // want "" is a refusal
	}{
		{"", g.w},
		{".", g.w},
		{"sub", g.w + "/sub"},
		{g.w + "/sub/deep", g.w + "/sub/deep"},
		{"leads-in", g.w + "/sub/deep"},
		{"sub/../sub", g.w + "/sub"},
		{g.out + "/r", g.out + "/r"},
		{"leads-out", ""},
		{"..", ""},
		{g.out, ""},
		{g.home, ""},
		{"/usr", ""},
		{"missing", ""},
		{"file", ""},
	} {
		p, err := g.resolve(pol, c.dir)
		if c.want == "" {
			if fault.CodeOf(err) != fault.SandboxViolation {
				t.Errorf("%q: got %v, want %s", c.dir, err, fault.SandboxViolation)
			}
			continue
		}
		if err != nil || p.Dir != c.want {
			t.Errorf("%q: got %v, %v; want %s", c.dir, p, err, c.want)
		}
	}
}

// TestScope: a list of reads is exactly what is shown, and what starts programs.
func TestScope(t *testing.T) {
	g := newGround(t)
	g.mkdir(g.out + "/r")
	file := g.write(g.out+"/file", "")
	p := g.plan(func(pol *policy.Policy) {
		pol.Reads = policy.Reads{Only: []string{g.out + "/r", file, "/usr/bin"}}
	})
	for _, v := range p.Views {
		listed := v.Origin == Workspace || slices.Contains([]string{g.out + "/r", file, "/usr/bin"}, v.Path)
		links := v.Origin == System && slices.ContainsFunc(layout().Linker, func(l string) bool { return v.Path == l })
		if !listed && !links {
			t.Errorf("%s is shown and was not listed", v.Path)
		}
		if v.Writable != (v.Origin == Workspace) {
			t.Errorf("%s: writable is %v", v.Path, v.Writable)
		}
	}
	if v := viewAt(p, "/usr/bin"); v == nil {
		t.Error("a listed folder is not shown")
	}
	if viewAt(p, "/etc") != nil || viewAt(p, "/sys") != nil {
		t.Error("folders of the system are shown")
	}
	pol := g.policy()
	pol.Reads = policy.Reads{Only: []string{g.out + "/missing"}}
	if _, err := g.resolve(pol, ""); fault.CodeOf(err) != fault.SandboxViolation {
		t.Errorf("a listed root that is missing: got %v, want %s", err, fault.SandboxViolation)
	}
	pol.Reads = policy.Reads{Only: []string{"/"}}
	if _, err := g.resolve(pol, ""); fault.CodeOf(err) != fault.SandboxViolation {
		t.Errorf("the whole machine: got %v, want %s", err, fault.SandboxViolation)
	}
	if p := g.plan(func(pol *policy.Policy) { pol.Reads = policy.Reads{} }); viewAt(p, "/usr/bin") != nil {
		t.Error("an empty list shows programs")
	}
}

// TestScaffold: what only exists inside, between private memory and a view,
// takes no writes.
func TestScaffold(t *testing.T) {
	g := newGround(t) // below /tmp, as t.TempDir is
	if !inside(g.here, "/tmp") {
		t.Skip("the temporary folder is not below /tmp")
	}
	p := g.plan(func(*policy.Policy) {})
	first := "/tmp/" + strings.Split(g.here, "/")[2]
	i := slices.IndexFunc(p.Scratch, func(s Scratch) bool { return s.Path == first })
	if i < 0 || p.Scratch[i].Writable || p.Scratch[i].Bytes == 0 {
		t.Errorf("got %+v, want %s in it, small and not writable", p.Scratch, first)
	}
	direct := &resolver{p: &Plan{Scratch: []Scratch{{Path: "/tmp", Writable: true}, {Path: "/sealed"}},
		Views: []View{{Root: Root{Path: "/tmp/w"}}, {Root: Root{Path: "/tmp/a/b/c"}}, {Root: Root{Path: "/tmp/a/d/e"}},
			{Root: Root{Path: "/tmpx/y/z"}}, {Root: Root{Path: "/sealed/x/y"}}, {Root: Root{Path: "/host"}, At: "/tmp/q/r"}}}}
	direct.scaffold()
	var got []string
	for _, s := range direct.p.Scratch[2:] {
		got = append(got, s.Path)
		if s.Writable {
			t.Errorf("%s is writable", s.Path)
		}
	}
	if want := []string{"/tmp/a", "/tmp/q"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestPrivatePlaces: what the profile allows to write is private, and the rest
// is sealed.
func TestPrivatePlaces(t *testing.T) {
	g := newGround(t)
	for _, profile := range []policy.Profile{policy.ReadOnly, policy.WorkspaceWrite} {
		for _, home := range []policy.Home{policy.HomeWorkspace, policy.HomePrivate} {
			p := g.plan(func(pol *policy.Policy) { pol.Profile, pol.Home = profile, home })
			want := map[string]bool{"/tmp": true, Private: false, Private + "/user": true}
			if home == policy.HomePrivate {
				want[Private+"/home"] = true
			}
			for path, write := range want {
				i := slices.IndexFunc(p.Scratch, func(s Scratch) bool { return s.Path == path })
				if i < 0 || p.Scratch[i].Writable != (write && profile == policy.WorkspaceWrite) {
					t.Errorf("%s, %s: %s is %v of %+v", profile, home, path, i, p.Scratch)
				}
			}
			if wantHome := map[policy.Home]string{policy.HomeWorkspace: g.w, policy.HomePrivate: Private + "/home"}[home]; p.Home != wantHome {
				t.Errorf("%s: HOME is %q, want %q", home, p.Home, wantHome)
			}
		}
	}
}

// TestHoles: private state in a folder of the system is covered, unless it is
// shown by name.
func TestHoles(t *testing.T) {
	g := newGround(t)
	p := g.plan(func(*policy.Policy) {})
	covered := 0
	for _, h := range layout().Holes {
		info, err := os.Lstat(h)
		in := slices.ContainsFunc(p.Views, func(v View) bool { return v.Origin == System && inside(h, v.Path) })
		want := err == nil && info.IsDir() && in
		if got := slices.Contains(p.Covers, h); got != want {
			t.Errorf("%s: covered is %v, want %v", h, got, want)
		}
		if want {
			covered++
		}
	}
	if covered == 0 {
		t.Skip("none of the holes is on this machine")
	}
	open := slices.IndexFunc(p.Covers, func(c string) bool { _, err := os.ReadDir(c); return err == nil })
	if open < 0 {
		t.Skip("none of the holes on this machine can be read by this user")
	}
	if q := g.plan(func(pol *policy.Policy) { pol.Read = []string{p.Covers[open]} }); slices.Contains(q.Covers, p.Covers[open]) {
		t.Errorf("%s is covered and was added by name", p.Covers[open])
	}
}

// TestHomeInASystemFolder: a home is hidden wherever it lies.
func TestHomeInASystemFolder(t *testing.T) {
	g := newGround(t)
	home, err := filepath.EvalSymlinks("/usr/share")
	if err != nil {
		t.Skip(err)
	}
	g.host.Homes = append(g.host.Homes, home)
	if p := g.plan(func(*policy.Policy) {}); !slices.Contains(p.Covers, home) {
		t.Errorf("got %q, want %s in it", p.Covers, home)
	}
}

func TestHostSockets(t *testing.T) {
	g := newGround(t)
	listen := func(path string) {
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
	}
	listen(g.w + "/in.sock")
	listen(g.out + "/out.sock")
	g.mkdir(g.out + "/r")
	listen(g.out + "/r/added.sock")
	g.write(g.w+"/named.sock", "no socket")
	p := g.plan(func(pol *policy.Policy) { pol.Read = []string{g.out + "/r"} })
	for path, want := range map[string]bool{"/home/u/w/in.sock": true, "/out/r/added.sock": true, "/out/out.sock": false, "/home/u/w/named.sock": false} {
		if got := slices.Contains(p.Sockets, g.here+path); got != want {
			t.Errorf("%s: hidden is %v, want %v", path, got, want)
		}
	}
}

// TestNothingElseIsWritable is the law of writable roots: the workspace, roots
// that were added to be written, verified git directories, the cache.
func TestNothingElseIsWritable(t *testing.T) {
	git := need.Program(t, "git")
	g := newGround(t)
	main := g.here + "/home/u/main"
	g.mkdir(main)
	for _, words := range [][]string{{"init", "-q"}, {"commit", "-q", "--allow-empty", "-m", "x"}, {"worktree", "add", "-q", g.w + "/tree"}} {
		runGit(t, git, main, words...)
	}
	g.w = g.w + "/tree" // a linked worktree, whose git directory lies outside
	g.mkdir(g.out + "/rw")
	g.mkdir(g.out + "/ro")
	g.mkdir(g.here + "/state/cache")
	p := g.plan(func(pol *policy.Policy) {
		pol.Read, pol.Write = []string{g.out + "/ro"}, []string{g.out + "/rw"}
	})
	if err := p.ShowCache(g.here + "/state/cache"); err != nil {
		t.Fatal(err)
	}
	verified := map[string]bool{}
	for _, r := range p.Repos {
		if r.Verified {
			verified[r.CommonDir], verified[r.GitDir] = true, true
		}
	}
	gits := 0
	for _, v := range p.Views {
		if !v.Writable {
			continue
		}
		switch v.Origin {
		case Workspace:
			if v.Path != g.w {
				t.Errorf("%s is writable as the workspace", v.Path)
			}
		case Added:
			if v.Path != g.out+"/rw" {
				t.Errorf("%s is writable as an added root", v.Path)
			}
		case Git:
			gits++
			if !verified[v.Path] {
				t.Errorf("%s is writable as a git directory and was not verified", v.Path)
			}
		case Cache:
			if v.Target() != Private+"/cache" {
				t.Errorf("%s is writable as the cache", v.Target())
			}
		default:
			t.Errorf("%s is writable, of origin %d", v.Path, v.Origin)
		}
	}
	if gits == 0 {
		t.Error("the worktree's git directory is not writable: nothing was checked")
	}
	r := g.plan(func(pol *policy.Policy) { pol.Profile, pol.Read = policy.ReadOnly, []string{g.out + "/rw"} })
	for _, v := range r.Views {
		if v.Writable {
			t.Errorf("read-only: %s is writable", v.Path)
		}
	}
}

// TestChildOfAPlan resolves a parent and children of it for real.
func TestChildOfAPlan(t *testing.T) {
	g := newGround(t)
	g.mkdir(g.w + "/sub")
	g.mkdir(g.out + "/r")
	g.write(g.w+"/sub/.env", "X=1\n")
	parent := g.plan(func(pol *policy.Policy) { pol.Read = []string{g.out + "/r"} })
	child := func(change func(*policy.Policy)) *Plan {
		return g.plan(func(pol *policy.Policy) { pol.Workspace = g.w + "/sub"; change(pol) })
	}
	for _, c := range []struct {
		name string
		plan *Plan
		in   bool
	}{
		{"itself", g.plan(func(pol *policy.Policy) { pol.Read = []string{g.out + "/r"} }), true},
		{"a folder of it", child(func(*policy.Policy) {}), true},
		{"a folder of it, read-only", child(func(pol *policy.Policy) { pol.Profile = policy.ReadOnly }), true},
		{"with the added root", child(func(pol *policy.Policy) { pol.Read = []string{g.out + "/r"} }), true},
		{"with more than the added root", child(func(pol *policy.Policy) { pol.Read = []string{g.out} }), false},
		{"which writes the added root", child(func(pol *policy.Policy) { pol.Write = []string{g.out + "/r"} }), false},
		{"with a network", child(func(pol *policy.Policy) { pol.Network.Mode = policy.Open }), false},
	} {
		if err := Within(c.plan, parent, Here); (err == nil) != c.in {
			t.Errorf("%s: got %v, want within: %v", c.name, err, c.in)
		}
	}
	// The workspace is swapped for another folder between the two.
	sub := child(func(*policy.Policy) {})
	if err := os.Rename(g.w, g.w+".old"); err != nil {
		t.Fatal(err)
	}
	g.mkdir(g.w + "/sub")
	if err := Within(sub, parent, Here); err == nil {
		t.Error("the parent's workspace was replaced: got nil, want an error")
	}
	if err := Within(child(func(*policy.Policy) {}), parent, Here); err == nil {
		t.Error("a child of the replacement: got nil, want an error")
	}
}

// TestAddedFilesAreProtected: to name a single file opens it no further than
// the folder around it would.
func TestAddedFilesAreProtected(t *testing.T) {
	g := newGround(t)
	env, plain, start := g.write(g.out+"/.env", "X=1\n"), g.write(g.out+"/plain", ""), g.write(g.out+"/.bashrc", "")
	for _, change := range []func(*policy.Policy){
		func(pol *policy.Policy) { pol.Write = []string{env} },
		func(pol *policy.Policy) { pol.Read = []string{env} },
	} {
		pol := g.policy()
		change(&pol)
		if _, err := g.resolve(pol, ""); fault.CodeOf(err) != fault.SandboxViolation {
			t.Errorf("a hidden file by name: got %v, want SANDBOX_VIOLATION", err)
		}
	}
	p := g.plan(func(pol *policy.Policy) { pol.Write = []string{plain, start} })
	masked := slices.ContainsFunc(p.Masks, func(m secrets.Mask) bool { return m.Path == plain })
	locked := slices.ContainsFunc(p.Locks, func(l Lock) bool { return l.Path == start && !l.Writable })
	if masked || !locked {
		t.Errorf("%s hidden: %v, want false; %s locked: %v, want true", plain, masked, start, locked)
	}
}
