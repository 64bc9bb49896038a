package main

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/cases.md anew")

// notYet says of a category what its cases wait for, where no test stands for
// them.
var notYet = map[string]string{
	"NET":  "needs the fetch tool",
	"SSRF": "needs the fetch tool",
	"CAP":  "needs the fetch tool",
	"GATE": "needs the edit tool",
}

// The tables are read as source, so that they may stand on any system.
var _ = []map[string]string{fetchCases, gitCases, guardCases, gateCases, ipcCases, lifeCases, maskCases, netCases, nsCases}

// acceptance is one acceptance case.
type acceptance struct{ number, category, title string }

// acceptances reads the list of all cases.
func acceptances(t *testing.T) []acceptance {
	t.Helper()
	raw, err := os.ReadFile("testdata/cases.tsv")
	if err != nil {
		t.Fatal(err)
	}
	var all []acceptance
	seen := map[string]bool{}
	for line := range strings.Lines(string(raw)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(f) != 3 || seen[f[0]] {
			t.Fatalf("cases.tsv: %q", line)
		}
		seen[f[0]] = true
		all = append(all, acceptance{f[0], f[1], f[2]})
	}
	if len(all) != 151 {
		t.Fatalf("%d cases, want 151", len(all))
	}
	return all
}

// suite is what the tests of the repository say of the cases.
type suite struct {
	tested   map[string]string // a case to the file of its test
	verdicts map[string]string // a case to what a table says of it
	texts    map[string]string // string constants of the tables
	walls    map[string]string // a case that runs under provider landlock to nothing, or to why it does not hold there
}

// readSuite parses all test files: functions called TestECnnn, and variables
// called xxxCases that are tables of verdicts.
func readSuite(t *testing.T, top string) suite {
	t.Helper()
	s := suite{tested: map[string]string{}, verdicts: map[string]string{}, texts: map[string]string{}, walls: map[string]string{}}
	var limits *ast.CompositeLit
	name := regexp.MustCompile(`^TestEC([0-9]{3})([A-Z_]|$)`)
	var tables []*ast.CompositeLit
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && path != top) {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if m := name.FindStringSubmatch(d.Name.Name); m != nil && d.Recv == nil {
					s.tested["EC-"+m[1]] = path
					if calls(d, "providers") || calls(d, "together") {
						s.walls["EC-"+m[1]] = ""
					}
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					v, ok := spec.(*ast.ValueSpec)
					if !ok || len(v.Values) != 1 {
						continue
					}
					if table, ok := v.Values[0].(*ast.CompositeLit); ok && strings.HasSuffix(v.Names[0].Name, "Cases") {
						if _, ok := table.Type.(*ast.MapType); ok {
							tables = append(tables, table)
						}
					} else if ok && v.Names[0].Name == "landlockLimits" {
						limits = table
					} else if text, ok := s.text(v.Values[0]); ok {
						s.texts[v.Names[0].Name] = text
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range limits.Elts {
		kv := e.(*ast.KeyValueExpr)
		number, ok1 := s.text(kv.Key)
		text, ok2 := s.text(kv.Value)
		if _, runs := s.walls[number]; !runs || !ok1 || !ok2 || text == "" {
			t.Errorf("landlockLimits: %q is no case that runs under every provider, or has no reason", number)
		}
		s.walls[number] = "limit: " + text
	}
	for _, table := range tables {
		for _, e := range table.Elts {
			kv, ok := e.(*ast.KeyValueExpr)
			if !ok {
				continue
			}
			number, ok1 := s.text(kv.Key)
			text, ok2 := s.text(kv.Value)
			if !ok1 || !ok2 {
				t.Fatalf("a table of cases holds more than texts, after %q", number)
			}
			if have, there := s.verdicts[number]; there && have != text {
				t.Errorf("%s stands in two tables: %q and %q", number, have, text)
			}
			s.verdicts[number] = text
		}
	}
	return s
}

// calls says whether a function calls another one by its name.
func calls(f *ast.FuncDecl, name string) bool {
	found := false
	ast.Inspect(f, func(n ast.Node) bool {
		if c, ok := n.(*ast.CallExpr); ok {
			id, ok := c.Fun.(*ast.Ident)
			found = found || ok && id.Name == name
		}
		return !found
	})
	return found
}

// text is the value of a string, also of several that are added.
func (s suite) text(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		v, err := strconv.Unquote(e.Value)
		return v, err == nil && e.Kind == token.STRING
	case *ast.Ident:
		v, ok := s.texts[e.Name]
		return v, ok
	case *ast.BinaryExpr:
		x, ok1 := s.text(e.X)
		y, ok2 := s.text(e.Y)
		return x + y, ok1 && ok2 && e.Op == token.ADD
	}
	return "", false
}

// seatbeltColumn says of every case what it comes to under seatbelt. The tests of
// that package hold the list to what they ask.
func seatbeltColumn(t *testing.T, all []acceptance) map[string]string {
	t.Helper()
	raw, err := os.ReadFile("../../internal/enforce/seatbelt/testdata/cases.tsv")
	if err != nil {
		t.Fatal(err)
	}
	words := map[string]string{"evaluated": "holds by evaluation", "shared": "shared code"}
	column := map[string]string{}
	for line := range strings.Lines(string(raw)) {
		number, verdict, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if word, ok := words[verdict]; ok {
			verdict = word
		}
		column[number] = verdict
	}
	for _, c := range all {
		if column[c.number] == "" || strings.Contains(column[c.number], "|") {
			t.Errorf("seatbelt: %s has no verdict, or one that does not fit into a table", c.number)
		}
	}
	if len(column) != len(all) {
		t.Errorf("seatbelt: %d verdicts for %d cases", len(column), len(all))
	}
	return column
}

// TestCasesPage holds docs/cases.md to the tests: no case is claimed without a
// test, and none is tested without a word on whether it holds.
func TestCasesPage(t *testing.T) {
	all := acceptances(t)
	s := readSuite(t, "../..")
	known := map[string]bool{}
	for _, c := range all {
		known[c.number] = true
	}
	for _, number := range slices.Sorted(maps.Keys(s.verdicts)) {
		switch text := s.verdicts[number]; {
		case !known[number]:
			t.Errorf("%s is in a table and is no case", number)
		case s.tested[number] == "":
			t.Errorf("%s is in a table and has no test", number)
		case text != "" && !strings.HasPrefix(text, "limit: "):
			t.Errorf("%s: %q begins with neither nothing nor %q", number, text, "limit: ")
		case strings.ContainsAny(text, "|\n"):
			t.Errorf("%s: %q does not fit into a table", number, text)
		}
	}
	for _, number := range slices.Sorted(maps.Keys(s.tested)) {
		if _, ok := s.verdicts[number]; !ok {
			t.Errorf("%s has a test (%s) and is in no table", number, s.tested[number])
		}
		if !known[number] {
			t.Errorf("%s has a test (%s) and is no case", number, s.tested[number])
		}
	}
	if len(s.verdicts) < 50 {
		t.Fatalf("only %d verdicts were found", len(s.verdicts))
	}

	belt := seatbeltColumn(t, all)
	var rows bytes.Buffer
	holds, limited, same, less := 0, 0, 0, 0
	for _, c := range all {
		verdict := "not yet: no test stands for it"
		if text, ok := s.verdicts[c.number]; ok && text == "" {
			verdict = "holds"
			holds++
		} else if ok {
			verdict = text
			limited++
		} else if s.tested[c.number] != "" {
			verdict = "not yet: it has a test, and no word on whether it holds"
		} else if why := notYet[c.category]; why != "" {
			verdict = "not yet: " + why
		}
		walls, runs := s.walls[c.number]
		switch {
		case !runs:
			walls = "-"
		case walls == "":
			walls = "the same"
			same++
		default:
			less++
		}
		fmt.Fprintf(&rows, "| %s | %s | %s | %s | %s | %s |\n", c.number, c.category, strings.ReplaceAll(c.title, "|", `\|`), verdict, walls, belt[c.number])
	}
	var page bytes.Buffer
	fmt.Fprintf(&page, `# Acceptance cases

Made from the tests by `+"`go test ./cmd/tether -run TestCasesPage -update`"+`. Each case stands for a kind of fault that was found in
sandboxes of this sort. One that *holds* has a test called after its number that passes on every kernel provider it is about; a
*limit* is tested as far as it holds, and says where it ends. Numbers have gaps.

The provider landlock, which has no namespaces, runs the same tests: its column says where it holds less, and has a dash where a case
is not about a provider, or is tested in another way. The column seatbelt is about macOS, where none of this was run yet: a case that
*holds by evaluation* is decided by the profile, which tests on Linux ask the questions of the case; *shared code* is what no provider
touches, and is the same as on Linux.

Of %d cases %d hold, %d of them with a limit; %d are not yet done. Of those that are run under landlock %d hold in the same way, %d do not.

| Case | Category | What | Verdict | landlock | seatbelt |
|---|---|---|---|---|---|
`, len(all), holds+limited, limited, len(all)-holds-limited, same, less)
	page.Write(rows.Bytes())
	const path = "../../docs/cases.md"
	if *update {
		if err := os.WriteFile(path, page.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, page.Bytes()) {
		t.Errorf("docs/cases.md is not fresh (%v): go test ./cmd/tether -run TestCasesPage -update", err)
	}
}
