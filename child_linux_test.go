//go:build linux

package tether_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tether-sandbox/tether"
	"github.com/tether-sandbox/tether/fact"
	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/policy"
)

// drawPolicy draws a valid policy on the folders dirs.
func drawPolicy(t *rapid.T, w string, dirs []string, label string) policy.Policy {
	p := policy.Default(w).WithProfile(rapid.SampledFrom([]policy.Profile{policy.ReadOnly, policy.WorkspaceWrite, policy.WorkspaceWrite, policy.FullAccess}).Draw(t, label+" profile"))
	some := func(from []string, name string) []string {
		var out []string
		for _, x := range from {
			if rapid.Bool().Draw(t, label+" "+name+" "+x) {
				out = append(out, x)
			}
		}
		return out
	}
	p.Read = some(dirs, "read")
	p.Limits = policy.Limits{Time: time.Duration(rapid.IntRange(0, 3).Draw(t, label+" minutes")) * time.Minute,
		Processes: rapid.Int64Range(0, 3).Draw(t, label+" processes"), FileBytes: rapid.Int64Range(0, 2).Draw(t, label+" bytes")}
	p.Env.Pass = some([]string{"A", "B"}, "pass")
	if p.Profile == policy.FullAccess {
		return p
	}
	if p.Profile == policy.WorkspaceWrite {
		p.Write = some(dirs, "write")
	}
	p.Protect.Hidden = some([]string{"*.key2", "notes"}, "hidden")
	p.Network.Mode = rapid.SampledFrom([]policy.NetworkMode{policy.Offline, policy.Gated, policy.Open}).Draw(t, label+" network")
	if p.Network.Mode == policy.Gated {
		p.Network.Public = rapid.Bool().Draw(t, label+" public")
		p.Network.Allow = some([]string{"a:443", "b:443"}, "allow")
	}
	return p
}

// TestChildLaw: at every moment of every sequence of grants, revocations and
// changes of mode, a child has nothing that its parent has not; a network that
// was off stays off, and limits only shrink.
func TestChildLaw(t *testing.T) {
	h := newHouse(t)
	var dirs []string
	for _, name := range []string{"x", "y", "x/z"} {
		dir := filepath.Join(filepath.Dir(h.w), name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, dir)
	}
	person := tether.Request{By: fact.Person}
	compared := 0
	rapid.Check(t, func(t *rapid.T) {
		family := []*tether.Session{}
		root, err := tether.Open(ctx, tether.Options{Policy: drawPolicy(t, h.w, dirs, "root"), Environ: h.environ})
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		family = append(family, root)
		type born struct {
			s, parent *tether.Session
			first     policy.Policy
		}
		var children []born
		ids := map[*tether.Session][]string{}
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			s := family[rapid.IntRange(0, len(family)-1).Draw(t, "whose")]
			switch rapid.SampledFrom([]string{"child", "grant", "grant", "path", "mode", "revoke", "turn"}).Draw(t, "what") {
			case "child":
				// What the machine or the parent refuses is refused; by spelling
				// alone nothing is left to refuse here but an empty policy.
				c, err := s.Child(ctx, drawPolicy(t, h.w, dirs, "child"))
				if err != nil {
					continue
				}
				family = append(family, c)
				children = append(children, born{c, s, c.Policy()})
				defer c.Close()
			case "grant":
				g := rapid.SampledFrom([]fact.Grant{{Host: "a:443"}, {Host: "c:443"}, {Mode: "full-access"}, {Mode: "workspace-write"}}).Draw(t, "grant")
				g.Scope = rapid.SampledFrom([]fact.Scope{fact.Once, fact.Session}).Draw(t, "scope")
				if id, err := s.Grant(ctx, g, person); err == nil {
					ids[s] = append(ids[s], id)
				}
			case "path":
				g := fact.Grant{Path: rapid.SampledFrom(dirs).Draw(t, "path"), Write: rapid.Bool().Draw(t, "write"), Scope: fact.Session}
				if id, err := s.Grant(ctx, g, person); err == nil {
					ids[s] = append(ids[s], id)
				}
			case "mode":
				_ = s.EnterMode(ctx, rapid.SampledFrom([]policy.Profile{policy.ReadOnly, policy.WorkspaceWrite, policy.FullAccess}).Draw(t, "mode"), person)
			case "revoke":
				if list := ids[s]; len(list) > 0 {
					_ = s.Revoke(ctx, rapid.SampledFrom(list).Draw(t, "which"), person)
				}
			case "turn":
				_ = s.EndTurn(ctx)
			}
			for _, c := range children {
				child, parent := c.s.Policy(), c.parent.Policy()
				compared++
				if !child.Within(parent) {
					t.Fatalf("the child has\n%+v\nand the parent\n%+v", child, parent)
				}
				if child.Profile == policy.Nothing {
					continue
				}
				if c.first.Network.Mode == policy.Offline && child.Network.Mode != policy.Offline {
					t.Fatalf("the network went on: %+v", child.Network)
				}
				if a, b := child.Limits, c.first.Limits; b.Processes > 0 && a.Processes > b.Processes || b.FileBytes > 0 && a.FileBytes > b.FileBytes || b.Time > 0 && a.Time > b.Time {
					t.Fatalf("limits grew from %+v to %+v", b, a)
				}
			}
		}
	})
	if compared < 100 {
		t.Errorf("only %d comparisons were made", compared)
	}
}

// TestChild: what a child is refused by the kernel, and by identity.
func TestChild(t *testing.T) {
	h := newHouse(t)
	top := filepath.Dir(h.w)
	for _, dir := range []string{"out", "secret", "w/sub"} {
		if err := os.Mkdir(filepath.Join(top, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	out := top + "/out"
	for _, f := range []string{out + "/f", top + "/secret/f", h.w + "/f", h.w + "/sub/f"} {
		if err := os.WriteFile(f, []byte("here\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s := h.open("parent")
	person := tether.Request{By: fact.Person}
	reads := func(s *tether.Session, path string) bool {
		t.Helper()
		res, err := s.Run(ctx, tether.Command{Args: []string{"cat", path}})
		if err != nil {
			t.Fatal(err)
		}
		return res.Exit == 0
	}
	id, err := s.Grant(ctx, fact.Grant{Path: out, Scope: fact.Session}, person)
	if err != nil {
		t.Fatal(err)
	}
	want := policy.Default(h.w)
	want.Read = []string{out, top + "/secret"}
	child, err := s.Child(ctx, want)
	if err != nil {
		t.Fatal(err)
	}
	defer child.Close()
	if child.ID() == "" || child.Policy().Network.Mode != policy.Offline {
		t.Errorf("got %q, %+v", child.ID(), child.Policy().Network)
	}
	if !reads(s, out+"/f") || !reads(child, out+"/f") {
		t.Error("control: what both have is there")
	}
	if reads(child, top+"/secret/f") {
		t.Error("the child reads what its parent does not")
	}
	// A grant of the child's own does not lift it above its parent.
	_, err = child.Grant(ctx, fact.Grant{Path: top + "/secret", Scope: fact.Session}, person)
	wants(t, "a grant that the parent has not", err, fault.SandboxViolation)
	if _, err := child.Grant(ctx, fact.Grant{Path: out, Scope: fact.Session}, person); err != nil {
		t.Fatal(err) // it outlives the parent's, below, and opens nothing then
	}
	if reads(child, top+"/secret/f") {
		t.Error("a grant lifted the child above its parent")
	}
	wants(t, "a wider mode", child.EnterMode(ctx, policy.FullAccess, person), fault.ApprovalDenied)
	// In another process, too, it stays a child, of what its parent has by then.
	again := h.open(child.ID())
	if !reads(again, out+"/f") || reads(again, top+"/secret/f") {
		t.Error("the child that goes on has something else")
	}
	if err := s.Revoke(ctx, id, person); err != nil {
		t.Fatal(err)
	}
	for _, c := range []*tether.Session{s, child, again} {
		if reads(c, out+"/f") {
			t.Errorf("%s reads what was revoked in its parent", c.ID())
		}
	}
	if err := s.EnterMode(ctx, policy.ReadOnly, person); err != nil {
		t.Fatal(err)
	}
	if p, err := child.Permissions(); err != nil || p.Mode != policy.ReadOnly {
		t.Errorf("got %+v, %v", p, err)
	}
	// The parent's log knows its children.
	if st, err := s.State(); err != nil || len(st.Children) != 1 || st.Children[0].ID != child.ID() {
		t.Errorf("got %+v, %v", st.Children, err)
	}
	if err := child.Close(); err != nil {
		t.Error(err)
	}
	if st, err := s.State(); err != nil || len(st.Children) != 0 {
		t.Errorf("got %+v, %v", st.Children, err)
	}
	// Without its parent nobody can say what it may have.
	s.Close()
	if err := h.sessions().Remove("parent"); err != nil {
		t.Fatal(err)
	}
	_, err = again.Run(ctx, tether.Command{Args: []string{"touch", h.w + "/ran"}})
	wants(t, "a child without its parent", err, fault.StoreUnavailable)
	_, err = tether.Open(ctx, h.options(again.ID()))
	wants(t, "a child without its parent, again", err, fault.StoreUnavailable)
	if _, err := os.Stat(h.w + "/ran"); err == nil {
		t.Error("it ran")
	}
}

// TestChildByIdentity: spelled as a part of the parent's, and not one of it.
func TestChildByIdentity(t *testing.T) {
	h := newHouse(t)
	top := filepath.Dir(h.w)
	for _, dir := range []string{"a", "secret", "w/sub"} {
		if err := os.Mkdir(filepath.Join(top, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(top+"/secret", top+"/a/link"); err != nil {
		t.Fatal(err)
	}
	s := h.open("", func(o *tether.Options) { o.Policy.Read = []string{top + "/a"} })
	p := policy.Default(h.w + "/sub")
	p.Network.Mode = policy.Offline
	c, err := s.Child(ctx, p)
	if err != nil {
		t.Fatalf("a folder of the parent's workspace: %v", err)
	}
	if res := run(t, c, "pwd; touch x; touch ../x"); res.Exit == 0 || res.Stdout != h.w+"/sub\n" {
		t.Errorf("got %q", res.Stdout+res.Stderr)
	}
	if _, err := os.Stat(h.w + "/sub/x"); err != nil {
		t.Error(err)
	}
	p.Read = []string{top + "/a/link"}
	if !p.Within(s.Policy()) {
		t.Fatal("control: by spelling it lies within")
	}
	_, err = s.Child(ctx, p)
	wants(t, "a link that leads out", err, fault.SandboxViolation)
}

// TestChildAndOnce: what was granted for one command of the parent is no child's.
func TestChildAndOnce(t *testing.T) {
	h := newHouse(t)
	out := filepath.Join(filepath.Dir(h.w), "out")
	if err := os.Mkdir(out, 0o755); err != nil {
		t.Fatal(err)
	}
	s := h.open("")
	p := policy.Default(h.w)
	p.Network.Mode, p.Read = policy.Offline, []string{out}
	c, err := s.Child(ctx, p)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Grant(ctx, fact.Grant{Path: out, Scope: fact.Once}, tether.Request{By: fact.Person}); err != nil {
		t.Fatal(err)
	}
	if res := run(t, c, "ls "+out); res.Exit == 0 {
		t.Error("the child used it")
	}
	if res := run(t, s, "ls "+out); res.Exit != 0 {
		t.Errorf("control: the session itself can: %q", res.Stderr)
	}
	if res := run(t, s, "ls "+out); res.Exit == 0 {
		t.Error("it was not used up")
	}
}
