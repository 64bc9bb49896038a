package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/tether-sandbox/tether"
	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/flagset"
)

// editVerb reads and changes files of the workspace in this process, under the
// same policy that commands run under.
func editVerb(args []string, std stdio) (int, error) {
	if len(args) == 0 {
		return 0, fault.New(fault.UsageInvalid, "edit needs one more word: view, write, replace, list or search").WithHint("tether edit -h")
	}
	if args[0] == "-h" || args[0] == "--help" {
		fmt.Fprint(std.out, editUsage)
		return 0, flagset.ErrHelp
	}
	e := edit{std: std, f: newFlags("edit")}
	set := e.f.Set
	set.StringVar(&e.lines, "lines", "", "view: only lines `FIRST:LAST`")
	set.StringVar(&e.old, "old", "", "replace: the `TEXT` that is there")
	set.StringVar(&e.new, "new", "", "replace: the `TEXT` to put in its place")
	set.BoolVar(&e.all, "all", false, "replace: every occurrence")
	set.Func("if-sha256", "write, replace: only if the file's digest is `SUM`", e.f.Named("if-sha256", &e.sum))
	set.StringVar(&e.glob, "glob", "", "list, search: only names that match `GLOB`")
	set.IntVar(&e.depth, "depth", 1, "list: `N` levels deep")
	set.BoolVar(&e.literal, "literal", false, "search: the pattern is plain text")
	do, ok := map[string]func(*tether.Files, []string) (any, error){"view": e.view, "write": e.write,
		"replace": e.replace, "list": e.list, "search": e.search}[args[0]]
	if !ok && strings.HasPrefix(args[0], "-") {
		return 0, fault.New(fault.UsageInvalid, "flags of edit come after the word view, write, replace, list or search").
			WithHint("tether edit -h")
	}
	if !ok {
		return 0, fault.New(fault.UsageInvalid, fmt.Sprintf("tether edit cannot %q; it can view, write, replace, list and search", args[0])).
			WithHint("tether edit -h")
	}
	var rest []string
	for args = args[1:]; ; args = args[1:] {
		// Flags may come before and after the path.
		var err error
		if args, err = e.f.Parse(args, std.out); err != nil {
			return e.f.failed(err, std)
		}
		if len(args) == 0 {
			break
		}
		rest = append(rest, args[0])
	}
	s, err := e.f.Open(background)
	if err != nil {
		return e.f.failed(err, std)
	}
	defer s.Close()
	files, err := s.Files(background)
	if err != nil {
		return e.f.failed(err, std)
	}
	defer files.Close()
	result, err := do(files, rest)
	if err != nil {
		return e.f.failed(err, std)
	}
	if e.f.json {
		return 0, writeJSON(std.out, result)
	}
	return 0, nil
}

const editUsage = `usage: tether edit view|write|replace|list|search [flags] PATH

  view PATH [--lines 10:20]                 print a file, or list a folder
  write PATH [--if-sha256 SUM]              write standard input to a file
  replace PATH --old TEXT --new TEXT [--all] [--if-sha256 SUM]
                                            replace a text that occurs once, or all
  list [PATH] [--depth N] [--glob GLOB]     list a folder
  search PATTERN [PATH] [--glob GLOB] [--literal]
                                            find a regular expression, or a plain text

--if-sha256 changes a file only if its digest is SUM. The flags of tether run that make the policy hold here, too. --json prints one
object.
`

type edit struct {
	std                        stdio
	f                          *flags
	lines, old, new, sum, glob string
	all, literal               bool
	depth                      int
}

// path takes the one path that a call needs.
func path(args []string, optional bool) (string, error) {
	switch {
	case len(args) == 1:
		return args[0], nil
	case len(args) == 0 && optional:
		return "", nil
	case len(args) == 0:
		return "", fault.New(fault.UsageInvalid, "a path is missing").WithHint("tether edit -h")
	}
	return "", fault.New(fault.UsageInvalid, "one path is enough").WithHint("tether edit -h")
}

func (e *edit) view(files *tether.Files, args []string) (any, error) {
	p, err := path(args, false)
	if err != nil {
		return nil, err
	}
	r := tether.ViewRequest{Path: p}
	if e.lines != "" {
		first, last, _ := strings.Cut(e.lines, ":")
		a, err1 := strconv.Atoi(first)
		b, err2 := strconv.Atoi(last)
		if last == "" {
			b, err2 = 0, nil
		}
		if err1 != nil || err2 != nil || a < 1 || b < 0 {
			return nil, fault.New(fault.UsageInvalid, "lines are two numbers, not "+strconv.Quote(e.lines)).WithHint("--lines 10:20")
		}
		r.First, r.Last = a, b
	}
	v, err := files.View(r)
	if err != nil || e.f.json {
		return v, err
	}
	if v.Folder {
		e.print(v.Entries)
		return v, nil
	}
	_, err = io.WriteString(e.std.out, v.Text)
	e.redacted(v.Redacted)
	if v.Truncated || v.Partial {
		fmt.Fprintf(e.std.err, "tether: %d of %d lines; the rest was not printed\n", max(0, v.Last-v.First+1), v.TotalLines)
	}
	return v, err
}

func (e *edit) write(files *tether.Files, args []string) (any, error) {
	p, err := path(args, false)
	if err != nil {
		return nil, err
	}
	const most = 64 << 20
	text, err := io.ReadAll(io.LimitReader(e.std.in, most))
	if err != nil {
		return nil, fault.Wrap(fault.UsageInvalid, "cannot read the text from standard input", err)
	}
	return files.Write(tether.WriteRequest{Path: p, Text: string(text), IfSHA256: e.sum})
}

func (e *edit) replace(files *tether.Files, args []string) (any, error) {
	p, err := path(args, false)
	if err != nil {
		return nil, err
	}
	return files.Replace(tether.ReplaceRequest{Path: p, Old: e.old, New: e.new, All: e.all, IfSHA256: e.sum})
}

func (e *edit) list(files *tether.Files, args []string) (any, error) {
	p, err := path(args, true)
	if err != nil {
		return nil, err
	}
	l, err := files.List(background, tether.ListRequest{Path: p, Depth: e.depth, Glob: e.glob})
	if err != nil || e.f.json {
		return l, err
	}
	e.print(l.Entries)
	if l.Truncated {
		fmt.Fprintln(e.std.err, "tether: there is more than was listed")
	}
	return l, nil
}

func (e *edit) search(files *tether.Files, args []string) (any, error) {
	if len(args) == 0 {
		return nil, fault.New(fault.UsageInvalid, "there is nothing to search for").WithHint("tether edit search PATTERN [PATH]")
	}
	p, err := path(args[1:], true)
	if err != nil {
		return nil, err
	}
	r, err := files.Search(background, tether.SearchRequest{Path: p, Pattern: args[0], Literal: e.literal, Glob: e.glob})
	if err != nil || e.f.json {
		return r, err
	}
	for _, m := range r.Matches {
		fmt.Fprintf(e.std.out, "%s:%d:%s\n", printable(m.Path), m.Line, m.Text)
	}
	e.redacted(r.Redacted)
	if r.Truncated {
		fmt.Fprintln(e.std.err, "tether: there is more than was found")
	}
	return r, nil
}

// redacted says that what was printed is not what the files hold.
func (e *edit) redacted(n int) {
	if n > 0 {
		fmt.Fprintln(e.std.err, "tether: [REDACTED:NAME] stands for a secret in", n, "places")
	}
}

func (e *edit) print(entries []tether.Entry) {
	for _, x := range entries {
		note := ""
		switch {
		case x.Hidden:
			note = "  (hidden)"
		case x.Locked:
			note = "  (locked)"
		}
		name := x.Path
		if x.Type == "folder" {
			name += "/"
		}
		fmt.Fprintln(e.std.out, printable(name)+note)
	}
}
