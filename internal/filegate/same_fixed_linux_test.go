package filegate

import (
	"strings"
	"testing"

	"github.com/tether-sandbox/tether/policy"
)

// TestSameAboutLinks: what a link with a locked name leads to is locked for a
// command and for the gate alike, whatever roots lie there, the workspace alone
// excepted. Each answer is fixed: two that are wrong together would agree.
func TestSameAboutLinks(t *testing.T) {
	binary := build(t)
	for name, c := range map[string]struct {
		link, to         string
		read, write      string
		locked, writable []string
	}{
		"to the workspace, from a root in it": {link: ".ENV/.mcp.json", to: "..", read: "W/.ENV",
			writable: []string{".ENV/.mcp.json/f.txt", "f.txt"}, locked: []string{".ENV/f.txt"}},
		"to the workspace, absolute": {link: "sub/.mcp.json", to: "W", writable: []string{"sub/.mcp.json/f.txt", "sub/f.txt"}},
		"to a folder":                {link: ".vscode", to: "sub", locked: []string{"sub/f.txt", ".vscode/f.txt", "sub/ro/f.txt"}, writable: []string{"f.txt"}},
		"to a folder around a read root": {link: ".vscode", to: "sub", read: "W/sub/ro",
			locked: []string{"sub/f.txt", ".vscode/f.txt", "sub/ro/f.txt"}, writable: []string{"f.txt"}},
		"to a folder around a written root": {link: ".vscode", to: "sub", write: "W/sub/ro",
			locked: []string{"sub/f.txt", ".vscode/f.txt", "sub/ro/f.txt"}, writable: []string{"f.txt"}},
		"to a written root":         {link: ".claude", to: "../out", write: "OUT", locked: []string{".claude/f.txt", "../out/f.txt"}, writable: []string{"f.txt"}},
		"to a written file":         {link: ".mcp.json", to: "../out/f.txt", write: "OUT/f.txt", locked: []string{".mcp.json", "../out/f.txt"}, writable: []string{"f.txt"}},
		"control: a written root":   {link: "notes", to: "../out", write: "OUT", writable: []string{"notes/f.txt", "../out/f.txt"}},
		"control: a name of no use": {link: "notes", to: "sub", read: "W/sub/ro", writable: []string{"sub/f.txt", "notes/f.txt"}, locked: []string{"sub/ro/f.txt"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			for _, f := range []string{"f.txt", ".ENV/f.txt", "sub/f.txt", "sub/ro/f.txt", "../out/f.txt"} {
				p.write(f, "text\n")
			}
			at := strings.NewReplacer("OUT", p.out, "W", p.w)
			p.link(at.Replace(c.to), c.link)
			p.pol.Profile = policy.WorkspaceWrite
			flags := []string{"-p", "workspace-write"}
			if c.read != "" {
				p.pol.Read = []string{at.Replace(c.read)}
				flags = append(flags, "--allow-read", at.Replace(c.read))
			}
			if c.write != "" {
				p.pol.Write = []string{at.Replace(c.write)}
				flags = append(flags, "--allow-write", at.Replace(c.write))
			}
			questions := append(append([]string{}, c.locked...), c.writable...)
			answers := ask(t, p, binary, flags, questions)
			if answers == nil {
				t.Fatal("no sandbox was built")
			}
			g, err := Open(p.resolve(), Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer g.Close()
			for i, q := range questions {
				want := "fyn"
				if i >= len(c.locked) {
					want = "fyy"
				}
				if ours := g.verdict(q); ours != want || answers[i] != want {
					t.Errorf("%s: the gate says %s, a command %s, want %s", q, ours, answers[i], want)
				}
			}
		})
	}
}
