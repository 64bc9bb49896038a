package tether

import (
	"context"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/filegate"
	"github.com/tether-sandbox/tether/internal/redact"
	"github.com/tether-sandbox/tether/internal/world"
)

// What Files is asked for and answers. They are plain values.
type (
	ViewRequest    = filegate.ViewRequest
	ViewResult     = filegate.ViewResult
	WriteRequest   = filegate.WriteRequest
	WriteResult    = filegate.WriteResult
	ReplaceRequest = filegate.ReplaceRequest
	ReplaceResult  = filegate.ReplaceResult
	ListRequest    = filegate.ListRequest
	Entry          = filegate.Entry
	ListResult     = filegate.ListResult
	SearchRequest  = filegate.SearchRequest
	SearchResult   = filegate.SearchResult
)

// Files is the workspace as the session's policy lets it be read and written,
// for tools that run in the caller's own process. It obeys what the kernel
// enforces for commands; where it is stricter, package internal/filegate says.
// It sees secrets as they were when it was opened: open it anew for each turn.
//
// Secrets in what it returns are replaced by [REDACTED:NAME], and a text that
// holds such a mark is not written: it would destroy what the mark stands for.
type Files struct {
	gate *filegate.Gate
	red  *redactor
}

// Files opens the workspace for edits. There is no /tmp: that of a command
// lives as long as the command.
func (s *Session) Files(ctx context.Context) (*Files, error) {
	p, err := s.world.Plan(ctx, s.policy, world.Options{Environ: s.environ, Provider: s.provider})
	if err != nil {
		return nil, err
	}
	gate, err := filegate.Open(p, filegate.Options{})
	if err != nil {
		return nil, err
	}
	return &Files{gate, s.redactor(p)}, nil
}

// Close ends it. Calls after it fail.
func (f *Files) Close() error { return f.gate.Close() }

// View reads a part of a file, or lists a folder.
func (f *Files) View(r ViewRequest) (ViewResult, error) {
	v, err := f.gate.View(r)
	v.Text = f.red.count(v.Text, &v.Redacted)
	return v, err
}

// Write writes a whole file, atomically where that is possible.
func (f *Files) Write(r WriteRequest) (WriteResult, error) {
	if err := unmarked(r.Text); err != nil {
		return WriteResult{}, err
	}
	return f.gate.Write(r)
}

// Replace replaces a text that occurs exactly once, or everywhere.
func (f *Files) Replace(r ReplaceRequest) (ReplaceResult, error) {
	if err := unmarked(r.New); err != nil {
		return ReplaceResult{}, err
	}
	res, err := f.gate.Replace(r)
	if mark, found := redact.FindMark(r.Old); found && fault.CodeOf(err) == fault.FileMismatch {
		return res, fault.Wrap(fault.TextRedacted, mark+" stands for a secret and is not in the file", err).
			WithHint("replace the text before or after it")
	}
	return res, err
}

// unmarked refuses a text with a mark.
func unmarked(text string) error {
	mark, found := redact.FindMark(text)
	if !found {
		return nil
	}
	return fault.New(fault.TextRedacted, "the text holds "+mark+", which stands for a secret that would be lost").
		WithHint("change only the text around it, with replace; or write a placeholder of another form, such as <NAME>")
}

// List lists a folder.
func (f *Files) List(ctx context.Context, r ListRequest) (ListResult, error) {
	return f.gate.List(ctx, r)
}

// Search finds a text.
func (f *Files) Search(ctx context.Context, r SearchRequest) (SearchResult, error) {
	if r.Pattern == "" {
		return SearchResult{}, fault.New(fault.UsageInvalid, "there is nothing to search for")
	}
	res, err := f.gate.Search(ctx, r)
	for i := range res.Matches {
		res.Matches[i].Text = f.red.count(res.Matches[i].Text, &res.Redacted)
	}
	return res, err
}
