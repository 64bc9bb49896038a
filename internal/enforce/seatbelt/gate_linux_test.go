package seatbelt_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tether-sandbox/tether/internal/enforce/seatbelt"
	"github.com/tether-sandbox/tether/internal/filegate"
	"github.com/tether-sandbox/tether/policy"
)

// TestSameAsTheGate grows random trees in the workspace, links among them, and
// asks the file gate and the profile for the same files: what the gate shows or
// writes, the profile lets a command read or write, and what the profile closes
// the gate refuses.
//
// The gate may be stricter: it writes through no link, and shows no file of git's
// that may hold credentials.
func TestSameAsTheGate(t *testing.T) {
	if f := rapidChecks(t, "20"); f != nil {
		defer f()
	}
	asked, shown, written, closed := 0, 0, 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		m := grow(t)
		defer os.RemoveAll(m.top)
		dirs := rapid.SliceOfN(rapid.SampledFrom([]string{"", "d", "d/e", ".ssh", "node_modules/p", `q"uote`, ".vscode", "conf"}), 1, 4).Draw(rt, "folders")
		names := rapid.SampledFrom([]string{"a.txt", ".env", ".env.example", ".Env.local", "id_rsa", "x.pem", "x.key", "notes.env", ".envrc", "config", "b c"})
		var files []string
		for _, d := range dirs {
			for _, n := range rapid.SliceOfN(names, 1, 4).Draw(rt, "names") {
				path := filepath.Join(m.ws, d, n)
				if os.MkdirAll(filepath.Dir(path), 0o755) == nil && os.WriteFile(path, []byte("K=v\n"), 0o644) == nil {
					files = append(files, path)
				}
			}
		}
		if target := rapid.SampledFrom(files).Draw(rt, "target"); rapid.Bool().Draw(rt, "link") {
			link := filepath.Join(m.ws, "link")
			to := rapid.SampledFrom([]string{target, m.home + "/.ssh/id_rsa", m.top + "/Users/v"}).Draw(rt, "to")
			if os.Symlink(to, link) == nil {
				files = append(files, link, link+"/private")
			}
		}
		files = append(files, m.ws+"/.env", m.ws+"/innocent.txt", m.ws+"/.git/config", m.ws+"/.git/hooks/x", m.home+"/.ssh/id_rsa", m.ws+"/../v/private", m.ws+"/out")
		profile := rapid.SampledFrom([]policy.Profile{policy.ReadOnly, policy.WorkspaceWrite}).Draw(rt, "profile")
		p, err := m.plan(m.policy(profile, policy.Offline))
		if err != nil {
			rt.Fatal(err)
		}
		rules := evaluate(rt, p, seatbelt.Options{})
		g, err := filegate.Open(p, filegate.Options{})
		if err != nil {
			rt.Fatal(err)
		}
		defer g.Close()
		for _, path := range files {
			real, err := filepath.EvalSymlinks(path)
			if err != nil {
				continue // there is nothing, by whatever way
			}
			asked++
			mayRead, _ := rules.allows(query{op: "file-read-data", name: real})
			mayWrite, _ := rules.allows(query{op: "file-write-data", name: real})
			_, viewErr := g.View(filegate.ViewRequest{Path: path})
			plain := path == real && !strings.Contains(path, "/.git/")
			switch {
			case viewErr == nil && !mayRead:
				rt.Fatalf("%s: the gate shows it, and the profile closes it", path)
			case viewErr != nil && mayRead && plain:
				rt.Fatalf("%s: the profile opens it, and the gate says %v", path, viewErr)
			case viewErr == nil:
				shown++
			default:
				closed++
			}
			_, writeErr := g.Write(filegate.WriteRequest{Path: path, Text: "K=w\n"})
			switch {
			case writeErr == nil && !mayWrite:
				rt.Fatalf("%s: the gate writes it, and the profile closes it", path)
			case writeErr != nil && mayWrite && plain:
				rt.Fatalf("%s: the profile lets it be written, and the gate says %v", path, writeErr)
			case writeErr == nil:
				written++
			}
		}
	})
	if shown < asked/10 || written < asked/60 || closed < asked/10 {
		t.Errorf("of %d files %d were shown, %d written, %d closed: too few", asked, shown, written, closed)
	}
}
