package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/flagset"
	"github.com/tether-sandbox/tether/internal/world/local/stream"
	"github.com/tether-sandbox/tether/tool"
)

// fetchName, as the first argument, makes this program the verb fetch.
const fetchName = "fetch"

// The exit statuses of fetch besides that of other failures of ours.
const (
	exitStatus = 1   // the server answered with an error
	exitTime   = 124 // our time limit
)

// fetch gets one document and prints it; what it is, it tells on errs.
func fetch(args []string, in io.Reader, out, errs *os.File) (int, error) {
	f := flagset.New(fetchName)
	f.Operands, f.Fetches = " URL", true
	f.AddSession()
	f.Set.Lookup("timeout").Usage = "end the fetch after `TIME`, such as 10s (default, and most: 30s)"
	var want tool.FetchInput
	var body string
	var asJSON bool
	f.Set.StringVar(&want.Method, "method", "", "`METHOD`: GET, HEAD or POST (default: GET, or POST with --body)")
	f.Set.StringVar(&body, "body", "", "send `TEXT`, or standard input if it is -")
	f.Set.BoolVar(&want.Raw, "raw", false, "the body as it came, and not a page as Markdown")
	f.Set.BoolVar(&asJSON, "json", false, "print one JSON object")
	f.Set.Func("header", "send `NAME: VALUE` to the host of URL (repeatable)", f.Coded(func(s string) error {
		name, value, ok := strings.Cut(s, ":")
		if !ok {
			return fault.New(fault.UsageInvalid, "a header is NAME: VALUE").WithHint("--header 'Accept: text/plain'")
		}
		if want.Headers == nil {
			want.Headers = map[string]string{}
		}
		want.Headers[strings.TrimSpace(name)] = strings.TrimSpace(value)
		return nil
	}))
	for rest := args; ; rest = rest[1:] { // flags may come after the address, too
		var err error
		if rest, err = f.Parse(rest, out); err != nil {
			return exitOurs, err
		}
		if len(rest) == 0 {
			break
		}
		if want.URL != "" {
			return exitOurs, fault.New(fault.UsageInvalid, "one address is enough").WithHint("tether fetch -h")
		}
		want.URL = rest[0]
	}
	if want.URL == "" {
		return exitOurs, fault.New(fault.UsageInvalid, "the address is missing").WithHint("tether fetch https://example.com/page")
	}
	if want.Body = body; body == "-" {
		b, err := io.ReadAll(io.LimitReader(in, 2<<20))
		if err != nil {
			return exitOurs, fault.Wrap(fault.UsageInvalid, "cannot read the body from standard input", err)
		}
		want.Body = string(b)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	s, err := f.Open(ctx)
	if err != nil {
		return exitOurs, err
	}
	defer s.Close()
	got, b := tool.New(s).FetchBytes(ctx, want)
	if asJSON {
		return printJSON(out, got, b)
	}
	return show(out, errs, got, b)
}

func printJSON(out io.Writer, got tool.FetchOutput, body []byte) (int, error) {
	if got.Form != tool.FormBinary {
		got.Text = strings.ToValidUTF8(string(body), "\uFFFD")
	}
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	return status(got), e.Encode(got)
}

func show(out, errs *os.File, got tool.FetchOutput, body []byte) (int, error) {
	for _, w := range got.Widened {
		fmt.Fprintln(errs, "tether:", flagset.Printable(w))
	}
	if e := got.Error; e != nil {
		return status(got), &fault.Error{Code: e.Code, What: e.What, Hint: e.Hint}
	}
	fmt.Fprintln(errs, "tether:", flagset.Printable(fmt.Sprintf("status %d, %s, %d bytes, %s, from %s", got.Status, got.Type, got.Size, got.Form, got.URL)))
	if got.Truncated {
		fmt.Fprintln(errs, "tether: only the beginning of the page was converted; --raw gives all of it")
	}
	for _, r := range got.Redacted {
		fmt.Fprintf(errs, "tether: the output was changed: [REDACTED:%s] stands for a secret in %d places\n", r.Name, r.Count)
	}
	if n := len(body); n > 0 && body[n-1] != '\n' && (got.Form == tool.FormMarkdown || got.Form == tool.FormText) {
		body = append(body, '\n')
	}
	if !stream.IsTerminal(out) {
		_, err := out.Write(body)
		return status(got), err
	}
	if got.Form == tool.FormBinary {
		return exitOurs, fault.New(fault.UsageInvalid, "what came is no text, and standard output is a terminal").WithHint("tether fetch URL > FILE")
	}
	w := stream.NewFilter(out) // what a server says does not command a terminal
	if _, err := w.Write(body); err != nil {
		return exitOurs, err
	}
	return status(got), w.Close()
}

func status(got tool.FetchOutput) int {
	switch {
	case got.Error != nil && got.Error.Code == fault.LimitTime:
		return exitTime
	case got.Error != nil:
		return exitOurs
	case got.Status >= 400:
		return exitStatus
	}
	return 0
}
