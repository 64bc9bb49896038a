package filegate

import (
	"errors"
	"os"
	"testing"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/policy"
)

func TestProfiles(t *testing.T) {
	for _, c := range []struct {
		profile    policy.Profile
		write, env bool
	}{{policy.ReadOnly, false, false}, {policy.WorkspaceWrite, true, false}, {policy.FullAccess, true, true}} {
		t.Run(c.profile.String(), func(t *testing.T) {
			p := newPlace(t)
			p.pol.Profile = c.profile
			p.write("f", "inside\n")
			p.write(".env", secret)
			p.write(p.out+"/f", secret)
			p.write(p.tmp+"/t", "tmp\n")
			p.pol.Write = []string{p.out}
			if c.profile == policy.FullAccess {
				p.pol.Write = nil
			}
			p.link(p.out+"/f", "link")
			g := p.gate()
			g.shows("f", "inside")
			g.shows("/tmp/t", "tmp")
			if c.write {
				g.takes("f")
				g.takes("/tmp/u")
				g.takes("/tmp/.env")
				if p.read(p.tmp+"/u") != "new\n" {
					t.Error("/tmp is another folder")
				}
			} else {
				g.noWrite("f", "new/f", "/tmp/u")
			}
			if c.env {
				g.shows(".env", secret)
				g.takes(".env")
				g.noView("link", p.out+"/f", "../out/f")
				g.noWrite("link", p.out+"/f", "../out/f", ".tether/x", ".GIT/x")
			} else {
				g.noView(".env")
				g.noWrite(".env")
				g.shows("link", secret) // the root is added
				g.shows(p.out+"/f", secret)
			}
		})
	}
	p := newPlace(t)
	pl := p.resolve()
	pl.Policy.Profile = policy.Nothing
	if _, err := Open(pl, Options{}); fault.CodeOf(err) != fault.SandboxViolation {
		t.Errorf("a policy of nothing: got %v", err)
	}
}

// TestOwnThings: Tether's state stays closed, also under a root around it.
func TestOwnThings(t *testing.T) {
	p := newPlace(t)
	p.write(p.top+"/state/tether/verdicts", secret)
	p.write(p.top+"/config/tether/policy.toml", secret)
	p.write(p.top+"/state/else", "open\n")
	p.pol.Read = []string{p.top + "/state", p.top + "/config"}
	pl := p.resolve()
	inner, err := Open(pl, Options{Own: []string{p.top + "/config/tether"}})
	if err != nil {
		t.Fatal(err)
	}
	defer inner.Close()
	g := &gate{inner, p}
	g.shows(p.top+"/state/else", "open")
	own := []string{p.top + "/state/tether/verdicts", p.top + "/config/tether/policy.toml"}
	g.noView(own...)
	g.noWrite(append(own, p.top+"/config/tether/new")...)
}

// TestRoots: a root in a root, a file as a root, a spelling by a link, and a
// workspace that was replaced.
func TestRoots(t *testing.T) {
	p := newPlace(t)
	p.write("f", "inside\n")
	p.write("ro/f", "inside\n")
	p.write(".vscode/f", "inside\n")
	p.write(p.out+"/one", "alone\n")
	p.write(p.out+"/two", secret)
	p.link(p.w, p.top+"/spelled")
	p.pol.Workspace = p.top + "/spelled"
	p.pol.Read = []string{p.out + "/one"}
	p.pol.Write = []string{p.w + "/.vscode"}
	g := p.gate()
	g.shows(p.top+"/spelled/f", "inside")
	g.shows(p.w+"/f", "inside")
	g.takes(p.top + "/spelled/g")
	g.noView(p.top+"/spelled/../out/two", p.top+"/spelled2/f")
	g.shows(p.out+"/one", "alone")
	g.noView(p.out+"/two", p.out)
	g.noWrite(p.out+"/one", p.w+"/.vscode/f", ".vscode/f", p.w+"/.vscode/new")
	pl := p.resolve()
	p.sh("cd .. && mv w gone && mkdir w")
	if _, err := Open(pl, Options{}); fault.CodeOf(err) != fault.SandboxViolation {
		t.Errorf("another workspace at the same path: got %v", err)
	}
	g.shows("f", "inside") // the one that was opened
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := g.view("f"); err == nil {
		t.Error("a closed gate still opens")
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}

func TestWriteOnlyRootFile(t *testing.T) {
	p := newPlace(t)
	p.write(p.out+"/one", "alone\n")
	p.pol.Write = []string{p.out + "/one"}
	g := p.gate()
	r, err := g.Write(WriteRequest{Path: p.out + "/one", Text: "new\n"})
	if err != nil || !r.InPlace || p.read(p.out+"/one") != "new\n" {
		t.Errorf("got %+v (%v), want it written in place", r, err)
	}
}

// A workspace below /tmp lies on top of the private one.
func TestWorkspaceBelowTmp(t *testing.T) {
	p := newPlace(t)
	ws, err := os.MkdirTemp("/tmp", "filegate-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(ws) })
	p.write(ws+"/deep/w/f", "inside\n")
	p.write(ws+"/deep/x", secret)
	p.write(p.tmp+"/t", "private\n")
	p.write(p.tmp+ws[len("/tmp"):]+"/deep/x", secret)
	p.w = ws + "/deep/w"
	p.pol.Workspace = p.w
	g := p.gate()
	g.shows("f", "inside")
	g.shows(p.w+"/f", "inside")
	g.shows("/tmp/t", "private")
	g.shows("/tmp/../"+p.w+"/f", "inside")
	g.noView("../x", ws+"/deep/x", ws, "..", ws+"/deep/../deep/x")
	g.noWrite("../x", ws+"/deep/x", ws+"/new")
	fresh := ws + ".new" // a name that nobody else on this machine has
	g.takes(fresh)
	if _, err := os.Stat(fresh); !errors.Is(err, os.ErrNotExist) {
		t.Error("/tmp is the host's")
	}
}
