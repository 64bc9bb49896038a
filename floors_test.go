package tether_test

import (
	"errors"
	"go/build"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/tether-sandbox/tether"

// floors gives every package its floor. A package imports lower floors only.
// A subpackage shares its parent's floor and may import its own family.
var floors = map[string]int{
	"fault": 0, "internal/need": 0, "internal/host": 0, "internal/typo": 0, // words
	"internal/mountinfo": 0, "internal/watch": 0,
	"policy": 1, "fact": 2, "internal/policyfile": 2, // what may happen, what did, what files say
	"internal/plan":    3,                                                                     // the policy, pinned to this machine
	"internal/machine": 3,                                                                     // what settings mean, and what changes them
	"internal/environ": 4, "internal/guard": 4, "internal/enforce": 4, "internal/filegate": 4, // mechanisms
	"internal/factlog":   4,
	"internal/egress":    4,
	"internal/fetch":     4,
	"internal/redact":    4, // secrets out of what comes back
	"internal/world":     5, // places
	".":                  6, // the API
	"tool":               7, // what an agent calls
	"internal/flagset":   8,
	"internal/mcpserver": 8,
	"cmd/tether":         9, // surfaces
	"cmd/tether-mcp":     9,
	"bench":              9,
	"demo":               9,
}

// owner names the one package that may import each heavy dependency, and why
// it is kept there.
var owner = map[string]string{
	"mvdan.cc/sh":                     "internal/guard",              // the shell parser
	"github.com/pelletier/go-toml":    "internal/policyfile",         // TOML
	"github.com/creack/pty":           "internal/world/local/stream", // terminals
	"golang.org/x/net/idna":           "internal/host",               // names in other letters
	"golang.org/x/net/dns":            "internal/egress/gate",        // the gate answers questions for names
	"golang.org/x/net/bpf":            "",                            // tests only
	"github.com/modelcontextprotocol": "internal/mcpserver",          // MCP
	module + "/internal/mcpserver":    "cmd/tether-mcp",              // ... which costs each start 2 ms
	"github.com/JohannesKaufmann":     "internal/fetch",              // pages as Markdown
	"golang.org/x/net/html":           "internal/fetch",              // ... and character sets
	module + "/internal/fetch":        "tool",                        // ... and net/http
	"pgregory.net/rapid":              "",                            // tests only
	"github.com/rogpeppe/go-internal": "",                            // tests only
}

func TestFloors(t *testing.T) {
	for _, goos := range []string{"linux", "darwin", "windows"} {
		ctx := build.Default
		ctx.GOOS, ctx.CgoEnabled = goos, false
		seen := map[string]bool{}
		err := filepath.WalkDir(".", func(dir string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return err
			}
			if dir != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
				return fs.SkipDir
			}
			pkg, err := ctx.ImportDir(dir, 0)
			if none := (*build.NoGoError)(nil); errors.As(err, &none) {
				return nil
			} else if err != nil {
				return err
			}
			family, _ := familyOf(filepath.ToSlash(dir))
			seen[family] = true
			checkImports(t, goos, filepath.ToSlash(dir), pkg.Imports)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for f := range floors {
			if !seen[f] {
				t.Errorf("%s: the floor of %s is given and no package is there", goos, f)
			}
		}
	}
}

// ARCHITECTURE.md has a line for each package inside, with its floor and where to
// change it, and no line for one that is gone.
func TestArchitecture(t *testing.T) {
	text, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string]int{} // the floors
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) != 6 || !strings.HasPrefix(cells[2], " `internal/") {
			continue
		}
		pkg := strings.Trim(cells[2], " `")
		lines[pkg], err = strconv.Atoi(strings.TrimSpace(cells[1]))
		if err != nil || strings.TrimSpace(cells[3]) == "" || strings.TrimSpace(cells[4]) == "" {
			t.Errorf("%s: its floor, its purpose or what to change is missing", pkg)
		}
		// The files that it names are there.
		for i, word := range strings.Split(cells[4], "`") {
			if i%2 == 1 && strings.HasSuffix(word, ".go") {
				in, _ := filepath.Glob(filepath.Join(pkg, word))
				top, _ := filepath.Glob(word)
				if len(in)+len(top) == 0 {
					t.Errorf("%s: there is no %s", pkg, word)
				}
			}
		}
	}
	err = filepath.WalkDir("internal", func(dir string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil || d.Name() == "testdata" {
			return fs.SkipDir
		}
		if files, _ := filepath.Glob(filepath.Join(dir, "*.go")); len(files) == 0 {
			return nil
		}
		pkg := filepath.ToSlash(dir)
		family, _ := familyOf(pkg)
		if floor, ok := lines[pkg]; !ok || floor != floors[family] {
			t.Errorf("%s has no line in ARCHITECTURE.md for floor %d", pkg, floors[family])
		}
		delete(lines, pkg)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for pkg := range lines {
		t.Errorf("ARCHITECTURE.md has a line for %s, which is not there", pkg)
	}
}

func checkImports(t *testing.T, goos, pkg string, imports []string) {
	family, ok := familyOf(pkg)
	if !ok {
		t.Errorf("%s has no floor; give it one in floors_test.go", pkg)
		return
	}
	for _, imp := range imports {
		for dep, own := range owner {
			if (imp == dep || strings.HasPrefix(imp, dep+"/")) && pkg != own {
				t.Errorf("%s: %s imports %s, which belongs to %q", goos, pkg, imp, own)
			}
		}
		rest, ours := strings.CutPrefix(imp, module)
		if !ours {
			continue
		}
		to, _ := familyOf(strings.Trim(rest, "/"))
		if to != family && floors[to] >= floors[family] {
			t.Errorf("%s: %s (floor %d) imports %s (floor %d)", goos, pkg, floors[family], to, floors[to])
		}
	}
}

// familyOf returns the nearest ancestor of pkg that has a floor.
func familyOf(pkg string) (string, bool) {
	if pkg == "" || pkg == "." {
		return ".", true
	}
	for p := pkg; p != "."; p = path.Dir(p) {
		if _, ok := floors[p]; ok {
			return p, true
		}
	}
	return "", false
}

// TestPlainImports keeps what every start of the program pays for small: the
// inner stage is the same program, so that each dependency is paid for twice.
func TestPlainImports(t *testing.T) {
	banned := map[string]string{
		"net/http":      "it costs every start a millisecond of initialisation",
		"encoding/gob":  "reflection over types at start",
		"html/template": "nothing prints HTML",
		"os/user":       "it links the C library where there is a compiler; see toolchain.Account",
		"testing":       "only tests test",
	}
	err := filepath.WalkDir(".", func(dir string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if dir != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || dir == "bench" || dir == filepath.Join("internal", "need")) {
			return fs.SkipDir
		}
		pkg, err := build.ImportDir(dir, 0)
		if err != nil {
			return nil
		}
		for _, imp := range pkg.Imports {
			if imp == "net/http" && dir == filepath.Join("internal", "fetch") {
				continue // see TestSmallProgram
			}
			if why, bad := banned[imp]; bad {
				t.Errorf("%s imports %s: %s", dir, imp, why)
			}
		}
		if strings.HasPrefix(filepath.Base(dir), "util") || slices.Contains([]string{"common", "helper", "helpers", "manager", "base", "types"}, filepath.Base(dir)) {
			t.Errorf("%s: a name that says nothing", dir)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestWallTag: the one tag that takes something away is known to the package that
// restricts, and to nobody else, so that no other code can come to depend on it.
func TestWallTag(t *testing.T) {
	var found []string
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") {
			return err
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		head, _, _ := strings.Cut(string(src), "\npackage ")
		if strings.Contains(head, "//go:build") && strings.Contains(head, "benchwall") && path != "floors_test.go" {
			found = append(found, filepath.ToSlash(path))
		}
		return nil
	})
	if want := []string{"internal/enforce/inner/raise_bench_linux.go", "internal/enforce/inner/raise_linux.go"}; err != nil || !slices.Equal(found, want) {
		t.Errorf("got %v (%v), want %v", found, err, want)
	}
}

// TestSmallProgram keeps out of cmd/tether, which starts for each command, what
// only its second program needs.
func TestSmallProgram(t *testing.T) {
	seen := map[string]bool{}
	var visit func(dir, by string)
	visit = func(dir, by string) {
		if seen[dir] {
			return
		}
		seen[dir] = true
		switch dir {
		case "tool", "internal/fetch", "internal/mcpserver":
			t.Errorf("%s is linked into cmd/tether by %s", dir, by)
		}
		pkg, err := build.ImportDir(filepath.FromSlash(dir), 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, imp := range pkg.Imports {
			if rest, ours := strings.CutPrefix(imp, module); ours {
				visit(path.Clean("./"+rest), dir)
			}
		}
	}
	visit("cmd/tether", "")
	if len(seen) < 20 {
		t.Errorf("only %d packages were seen", len(seen))
	}
}
