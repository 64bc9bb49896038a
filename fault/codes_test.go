package fault_test

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/codes.md anew")

// TestCodesPage holds docs/codes.md to code.go.
func TestCodesPage(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "code.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var page bytes.Buffer
	page.WriteString("# Codes\n\nMade from `fault/code.go`; codes are only ever added.\n\n| Code | Meaning |\n|---|---|\n")
	seen := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		code, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		if seen[code] {
			t.Errorf("%s stands twice", code)
		}
		seen[code] = true
		_, meaning, ok := strings.Cut(strings.Join(strings.Fields(spec.Doc.Text()), " "), ": ")
		if !ok {
			t.Errorf("%s has no meaning in its comment", code)
		}
		fmt.Fprintf(&page, "| `%s` | %s |\n", code, meaning)
		return true
	})
	if len(seen) < 10 {
		t.Fatalf("only %d codes were found", len(seen))
	}
	const path = "../docs/codes.md"
	if *update {
		if err := os.WriteFile(path, page.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, page.Bytes()) {
		t.Errorf("docs/codes.md is not fresh (%v): go test ./fault -update", err)
	}
}
