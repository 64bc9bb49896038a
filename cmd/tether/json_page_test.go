package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// jsonPages are the objects of --json: which verb prints them, and the types
// that they are made of, outermost first.
var jsonPages = []struct {
	title, text string
	each        bool // each type is an object of its own
	types       []string
}{
	{"tether run, tether sh", "One object when the command has ended. `--report FILE` writes the same without the output.", false,
		[]string{"jsonResult", "Result", "Report", "Grade", "Note", "Denial", "Finding", "Redaction"}},
	{"A failure of ours", "Printed instead, with the exit status 125, when it is Tether that failed: nothing ran, or nothing is known of its end. `doctor` tells it on stderr, and so does every verb what is wrong before `--json` in its line.", false,
		[]string{"jsonFailure", "jsonError"}},
	{"tether explain", "", false, []string{"Explanation"}},
	{"tether policy show", "", false, []string{"jsonPolicy", "jsonOrigin"}},
	{"tether doctor", "The exit status is 0 when a provider works, and 1 otherwise.", false, []string{"Diagnosis", "Standing", "Fact", "Provider"}},
	{"tether why", "A list of these, the last one last.", false, []string{"jsonWhy"}},
	{"tether edit", "One object by the word that follows: view, write, replace, list, search.", true,
		[]string{"ViewResult", "WriteResult", "ReplaceResult", "ListResult", "Entry", "SearchResult", "Match"}},
	{"tether fetch", "One object, also when nothing came. The exit status is 0, 1 when the server's is one of an error, 124 after the time limit and 125 with `error`. The tool `fetch` returns the same.", false,
		[]string{"tool.FetchOutput", "tool.Error"}},
}

// TestJSONPage holds docs/json.md to the types that are printed, and every field
// of them to having a meaning.
func TestJSONPage(t *testing.T) {
	found := structs(t, "../..", ".", "../../internal/filegate")
	found["Redaction"] = structs(t, "../../internal/redact")["Count"]
	for _, name := range []string{"FetchOutput", "Error"} {
		found["tool."+name] = structs(t, "../../tool")[name]
	}
	var page bytes.Buffer
	page.WriteString("# The JSON of `--json`\n\nMade from the source. Every verb prints one value on stdout and nothing else; those of `tether session` hold facts as the log has them and are not on this page. Fields are only ever added; read what you know and leave the rest. " +
		"What is not UTF-8 in a text is replaced by U+FFFD.\n")
	for _, p := range jsonPages {
		fmt.Fprintf(&page, "\n## %s\n", p.title)
		if p.text != "" {
			fmt.Fprintf(&page, "\n%s\n", p.text)
		}
		for i, name := range p.types {
			s := found[name]
			if s == nil {
				t.Fatalf("there is no type %s", name)
			}
			if i > 0 && embeds(found[p.types[i-1]]) {
				rows(t, &page, name, s) // it stands in the same object
				continue
			}
			if i > 0 || p.each {
				fmt.Fprintf(&page, "\n%s:\n", objectName(name))
			}
			page.WriteString("\n| Field | Type | May be absent | Meaning |\n|---|---|---|---|\n")
			rows(t, &page, name, s)
		}
	}
	// Every object that a field holds is described, but for the policy itself.
	for _, m := range regexp.MustCompile("` \\| (?:list of )?([a-z]+) \\|").FindAllStringSubmatch(page.String(), -1) {
		switch name := m[1]; {
		case name == "text", name == "number", name == "true or false", name == "policy":
		case !strings.Contains(page.String(), "\n"+name+":\n"):
			t.Errorf("the object %s is nowhere described", name)
		}
	}
	const path = "../../docs/json.md"
	if *update {
		if err := os.WriteFile(path, page.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, page.Bytes()) {
		t.Errorf("docs/json.md is not fresh (%v): go test ./cmd/tether -run JSONPage -update", err)
	}
}

// TestFetchJSON: what tether fetch prints is what the page says, whether
// something came or not.
func TestFetchJSON(t *testing.T) {
	page, err := os.ReadFile("../../docs/json.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## tether fetch\n")
	section, _, _ = strings.Cut(section, "\nerror:\n")
	fields := regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| [^|]* \\| (yes)?").FindAllStringSubmatch(section, -1)
	if len(fields) < 10 {
		t.Fatalf("the page has %d fields: %s", len(fields), section)
	}
	j, w := gated(t, "native"), world{}
	for _, tt := range []struct {
		url  string
		exit int
		want map[string]any
	}{
		{"http://ok.test/page", 0, map[string]any{"url": "http://ok.test/page", "status": 200.0, "type": "text/plain", "form": "text", "truncated": false, "error": nil}},
		{"http://ok.test/none", 1, map[string]any{"status": 404.0, "error": nil}},
		{"http://private.test/", 125, map[string]any{"text": "", "size": 0.0, "status": nil}},
		{"http://gone.test/", 125, map[string]any{"text": "", "denials": nil}},
	} {
		r, log := w.run(j, []string{binary, "fetch", "-C", j.w, "--json", tt.url})
		var got map[string]any
		if err := json.Unmarshal([]byte(r.stdout), &got); err != nil || r.exit != tt.exit {
			t.Errorf("%s: exit %d, %v: %s\n%s", tt.url, r.exit, err, r.all(), log)
			continue
		}
		for key, want := range tt.want {
			if got[key] != want {
				t.Errorf("%s: %s is %v, want %v", tt.url, key, got[key], want)
			}
		}
		if _, failed := got["error"].(map[string]any); failed != (tt.exit == exitOurs) {
			t.Errorf("%s: %s", tt.url, r.stdout)
		}
		for _, f := range fields {
			if _, there := got[f[1]]; !there && f[2] == "" {
				t.Errorf("%s: %s is absent", tt.url, f[1])
			}
			delete(got, f[1])
		}
		if len(got) > 0 {
			t.Errorf("%s: not on the page: %v", tt.url, got)
		}
	}
}

// structs parses the struct types of folders.
func structs(t *testing.T, dirs ...string) map[string]*ast.StructType {
	t.Helper()
	found := map[string]*ast.StructType{}
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", dir, err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if spec, ok := n.(*ast.TypeSpec); ok {
					if s, ok := spec.Type.(*ast.StructType); ok && found[spec.Name.Name] == nil {
						found[spec.Name.Name] = s
					}
				}
				return true
			})
		}
	}
	return found
}

// objectName is what a type is called on the page.
func objectName(name string) string {
	return strings.ToLower(strings.TrimPrefix(strings.TrimSuffix(name[strings.LastIndexByte(name, '.')+1:], "Result"), "json"))
}

func embeds(s *ast.StructType) bool { return len(s.Fields.List[0].Names) == 0 }

// rows writes one row for each field that is printed. A comment also holds for
// the fields after it that it names.
func rows(t *testing.T, page *bytes.Buffer, name string, s *ast.StructType) {
	t.Helper()
	meaning := ""
	for _, f := range s.Fields.List {
		if len(f.Names) == 0 || !f.Names[0].IsExported() {
			continue
		}
		if text := strings.Join(strings.Fields(f.Doc.Text()+f.Comment.Text()), " "); text != "" {
			meaning = text
		} else if !slices.Contains(strings.FieldsFunc(meaning, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }), f.Names[0].Name) {
			meaning = ""
		}
		if f.Tag == nil {
			t.Errorf("%s.%s has no name in JSON", name, f.Names[0])
			continue
		}
		raw, err := strconv.Unquote(f.Tag.Value)
		if err != nil {
			t.Fatal(err)
		}
		field, option, _ := strings.Cut(reflect.StructTag(raw).Get("json"), ",")
		if field == "-" {
			continue
		}
		says := meaning
		if says == "" {
			says = reflect.StructTag(raw).Get("doc")
		}
		if says == "" {
			t.Errorf("%s.%s has no meaning in its comment", name, f.Names[0])
		}
		absent := ""
		if option == "omitempty" {
			absent = "yes"
		}
		fmt.Fprintf(page, "| `%s` | %s | %s | %s |\n", field, jsonType(f.Type), absent, strings.ReplaceAll(says, "|", "\\|"))
	}
}

// jsonType says what a type is in JSON.
func jsonType(e ast.Expr) string {
	switch text := types.ExprString(e); {
	case strings.HasPrefix(text, "[]"):
		return "list of " + jsonType(e.(*ast.ArrayType).Elt)
	case strings.HasPrefix(text, "*"):
		return jsonType(e.(*ast.StarExpr).X)
	case text == "bool":
		return "true or false"
	case strings.HasPrefix(text, "int"), strings.HasPrefix(text, "float"):
		return "number"
	case text == "string", text == "Outcome", text == "Encoding", text == "LineEnd", text == "EntryType",
		text == "fault.Code", text == "fetch.Form", text == "time.Time", text == "policy.Grade", text == "policy.Guarantee":
		return "text"
	default:
		return objectName(text)
	}
}
