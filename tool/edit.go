package tool

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tether-sandbox/tether"
)

const editText = "Read and change files of the workspace: view a file or folder, write a whole file, replace a text that occurs once, list a folder, search by regular expression. The same rules hold as for commands." + refusedText

// The actions of edit.
const (
	View    = "view"
	Write   = "write"
	Replace = "replace"
	List    = "list"
	Search  = "search"
)

// EditInput asks for one action. What belongs to another action is refused.
type EditInput struct {
	Action string `json:"action" enum:"view,write,replace,list,search" doc:"what to do"`
	Path   string `json:"path,omitempty" doc:"file or folder, relative to the workspace or absolute inside it, taken literally; list and search: the workspace if left out"`

	First    int `json:"first,omitempty" doc:"view: first line, from 1"`
	Last     int `json:"last,omitempty" doc:"view: last line"`
	MaxBytes int `json:"max_bytes,omitempty" doc:"view: at most so many bytes (default 65536)"`

	// Text, Old and New are pointers, so that an empty text is one that was
	// meant.
	Text     *string `json:"text,omitempty" doc:"write: the whole content"`
	Create   bool    `json:"create,omitempty" doc:"write: refuse if the file exists"`
	Old      *string `json:"old,omitempty" doc:"replace: the text that is there, with enough around it to occur once"`
	New      *string `json:"new,omitempty" doc:"replace: the text to put in its place; empty removes it"`
	All      bool    `json:"all,omitempty" doc:"replace: every occurrence"`
	IfSHA256 string  `json:"if_sha256,omitempty" doc:"write, replace: only if the file's digest, as view returned it, is this"`

	Depth      int    `json:"depth,omitempty" doc:"list: levels (default 1)"`
	Pattern    string `json:"pattern,omitempty" doc:"search: regular expression (RE2)"`
	Literal    bool   `json:"literal,omitempty" doc:"search: the pattern is plain text"`
	IgnoreCase bool   `json:"ignore_case,omitempty" doc:"search: upper and lower case are the same"`
	Glob       string `json:"glob,omitempty" doc:"list, search: only names, or with a slash paths, that match, such as *.go"`
	Max        int    `json:"max,omitempty" doc:"list, search: at most so many"`
}

// EditOutput is what was done: the field that is called like the action, or
// Error.
type EditOutput struct {
	Action  string                `json:"action"`
	View    *tether.ViewResult    `json:"view,omitempty"`
	Write   *tether.WriteResult   `json:"write,omitempty"`
	Replace *tether.ReplaceResult `json:"replace,omitempty"`
	List    *tether.ListResult    `json:"list,omitempty"`
	Search  *tether.SearchResult  `json:"search,omitempty"`
	Error   *Error                `json:"error,omitempty" doc:"why nothing was done"`
}

// defaultView is what a view returns when nobody says more: what fits a model.
const defaultView = 64 << 10

// Edit does one action. With an Error nothing was done.
func (t *Tools) Edit(ctx context.Context, in EditInput) EditOutput {
	out := EditOutput{Action: in.Action}
	if err := in.check(); err != nil {
		out.Error = asError(err)
		return out
	}
	if err := t.edit(ctx, in, &out); err != nil {
		return EditOutput{Action: in.Action, Error: asError(err)}
	}
	return out
}

func (t *Tools) edit(ctx context.Context, in EditInput, out *EditOutput) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	files, err := t.session.Files(ctx)
	if err != nil {
		return err
	}
	defer files.Close()
	switch in.Action {
	case View:
		if in.MaxBytes == 0 {
			in.MaxBytes = defaultView
		}
		r, err := files.View(tether.ViewRequest{Path: in.Path, First: in.First, Last: in.Last, MaxBytes: in.MaxBytes})
		out.View = &r
		return err
	case Write:
		r, err := files.Write(tether.WriteRequest{Path: in.Path, Text: *in.Text, New: in.Create, IfSHA256: in.IfSHA256})
		out.Write = &r
		return err
	case Replace:
		r, err := files.Replace(tether.ReplaceRequest{Path: in.Path, Old: *in.Old, New: *in.New, All: in.All, IfSHA256: in.IfSHA256})
		out.Replace = &r
		return err
	case List:
		r, err := files.List(ctx, tether.ListRequest{Path: in.Path, Depth: in.Depth, Glob: in.Glob, Max: in.Max})
		out.List = &r
		return err
	default:
		r, err := files.Search(ctx, tether.SearchRequest{Path: in.Path, Pattern: in.Pattern, Literal: in.Literal, IgnoreCase: in.IgnoreCase, Glob: in.Glob, Max: in.Max})
		out.Search = &r
		return err
	}
}

// check says what is missing for the action, or given in vain: an argument that
// is not heard would leave a model with a wrong idea of what was done.
func (in *EditInput) check() error {
	args := []struct {
		name   string
		given  bool
		needed bool
		of     []string
	}{
		{"path", in.Path != "", in.Action == View || in.Action == Write || in.Action == Replace, []string{View, Write, Replace, List, Search}},
		{"first", in.First != 0, false, []string{View}},
		{"last", in.Last != 0, false, []string{View}},
		{"max_bytes", in.MaxBytes != 0, false, []string{View}},
		{"text", in.Text != nil, true, []string{Write}},
		{"create", in.Create, false, []string{Write}},
		{"old", in.Old != nil, true, []string{Replace}},
		{"new", in.New != nil, true, []string{Replace}},
		{"all", in.All, false, []string{Replace}},
		{"if_sha256", in.IfSHA256 != "", false, []string{Write, Replace}},
		{"depth", in.Depth != 0, false, []string{List}},
		{"pattern", in.Pattern != "", true, []string{Search}},
		{"literal", in.Literal, false, []string{Search}},
		{"ignore_case", in.IgnoreCase, false, []string{Search}},
		{"glob", in.Glob != "", false, []string{List, Search}},
		{"max", in.Max != 0, false, []string{List, Search}},
	}
	switch in.Action {
	case View, Write, Replace, List, Search:
	case "":
		return invalid("action is missing")
	default:
		return invalid("there is no action " + quote(in.Action))
	}
	for _, a := range args {
		mine := slices.Contains(a.of, in.Action)
		switch {
		case a.given && !mine:
			return invalid(a.name + " is for " + strings.Join(a.of, " and ") + ", not for " + in.Action)
		case mine && a.needed && !a.given:
			return invalid(in.Action + " needs " + a.name)
		}
	}
	for name, n := range map[string]int{"first": in.First, "last": in.Last, "max_bytes": in.MaxBytes, "depth": in.Depth, "max": in.Max} {
		if n < 0 {
			return invalid(name + " is negative")
		}
	}
	return nil
}

func editResult(out EditOutput) Result {
	return Result{Output: out, Text: out.String(), Failed: out.Error != nil}
}

// String is the output for people and models.
func (o EditOutput) String() string {
	switch {
	case o.Error != nil:
		return o.Error.String()
	case o.View != nil && o.View.Folder:
		return entries(o.View.Entries, o.View.Truncated)
	case o.View != nil:
		v := o.View
		if !v.Truncated && !v.Partial && v.First <= 1 && v.Last == v.TotalLines {
			return v.Text
		}
		of := fmt.Sprint(v.TotalLines)
		if v.Partial {
			of = "more than " + of
		}
		return fmt.Sprintf("lines %d to %d of %s:\n%s", v.First, v.Last, of, v.Text)
	case o.Write != nil && o.Write.Created:
		return fmt.Sprintf("created %s, %d bytes, sha256 %s", line(o.Write.Path), o.Write.Size, o.Write.SHA256)
	case o.Write != nil:
		return fmt.Sprintf("wrote %s, %d bytes, sha256 %s", line(o.Write.Path), o.Write.Size, o.Write.SHA256)
	case o.Replace != nil:
		return fmt.Sprintf("replaced %d in %s, line %s; sha256 %s", o.Replace.Count, line(o.Replace.Path),
			strings.Trim(fmt.Sprint(o.Replace.Lines), "[]"), o.Replace.SHA256)
	case o.List != nil:
		return entries(o.List.Entries, o.List.Truncated)
	case o.Search != nil:
		var b strings.Builder
		for _, m := range o.Search.Matches {
			fmt.Fprintf(&b, "%s:%d:%s\n", line(m.Path), m.Line, m.Text)
		}
		fmt.Fprintf(&b, "%d matches in %d files", len(o.Search.Matches), o.Search.Files)
		if o.Search.Truncated {
			b.WriteString("; there is more")
		}
		return b.String()
	}
	return ""
}

func entries(list []tether.Entry, more bool) string {
	var b strings.Builder
	for _, e := range list {
		b.WriteString(line(e.Path))
		if e.Type == "folder" {
			b.WriteByte('/')
		}
		switch {
		case e.Hidden:
			b.WriteString("  (hidden)")
		case e.Locked:
			b.WriteString("  (locked)")
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "%d entries", len(list))
	if more {
		b.WriteString("; there is more")
	}
	return b.String()
}
