package tether

import (
	"context"
	"sync"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/filegate"
	"github.com/tether-sandbox/tether/internal/plan"
	"github.com/tether-sandbox/tether/internal/redact"
	"github.com/tether-sandbox/tether/internal/world/local"
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
// It follows what is granted and revoked in the session; secrets it sees as they
// were when it was opened, or last followed: open it anew for each turn.
//
// Secrets in what it returns are replaced by [REDACTED:NAME], and a text that
// holds such a mark is not written: it would destroy what the mark stands for.
//
// In a recorded session each change is recorded before it is made, /tmp is the
// one of the session's commands, and what is refused and could be granted is put
// to the approver.
type Files struct {
	s   *Session
	ctx context.Context // of whoever opened it: as long as it lasts, questions are put

	mu     sync.RWMutex // held for reading while the gate is used
	gate   *filegate.Gate
	plan   *plan.Plan
	red    *redactor
	effect effect
	closed bool
}

// Files opens the workspace for edits. It has a /tmp where the session has one
// that lasts; see [Options]. When ctx has ended
// no question is put any more.
func (s *Session) Files(ctx context.Context) (*Files, error) {
	f := &Files{s: s, ctx: ctx}
	e, err := s.now()
	if err == nil {
		err = f.open(ctx, e)
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// open opens the gate under an effect, in place of the one that is open.
func (f *Files) open(ctx context.Context, e effect) error {
	p, err := f.s.planFor(ctx, e, "")
	if err != nil {
		return err
	}
	o := filegate.Options{}
	if f.s.tmp != "" && e.kind != enforce.Unconfined && e.kind != enforce.Guard {
		o.Tmp = local.TmpFolder(f.s.place.State, f.s.tmp)
	}
	gate, err := filegate.Open(p, o)
	if err != nil {
		return err
	}
	if f.gate != nil {
		_ = f.gate.Close() // nothing is written by it
	}
	f.gate, f.plan, f.red, f.effect = gate, p, f.s.redactor(e, p), e
	return nil
}

// Close ends it. Calls after it fail.
func (f *Files) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	return f.gate.Close()
}

// View reads a part of a file, or lists a folder.
func (f *Files) View(r ViewRequest) (v ViewResult, err error) {
	err = f.do("view", r.Path, false, func(g *filegate.Gate) (err error) {
		v, err = g.View(r)
		v.Text = f.red.count(v.Text, &v.Redacted)
		return err
	})
	return v, err
}

// Write writes a whole file, atomically where that is possible.
func (f *Files) Write(r WriteRequest) (w WriteResult, err error) {
	if err := unmarked(r.Text); err != nil {
		return WriteResult{}, err
	}
	err = f.do("write", r.Path, true, func(g *filegate.Gate) (err error) {
		w, err = g.Write(r)
		return err
	})
	return w, err
}

// Replace replaces a text that occurs exactly once, or everywhere.
func (f *Files) Replace(r ReplaceRequest) (w ReplaceResult, err error) {
	if err := unmarked(r.New); err != nil {
		return ReplaceResult{}, err
	}
	err = f.do("replace", r.Path, true, func(g *filegate.Gate) (err error) {
		w, err = g.Replace(r)
		return err
	})
	if mark, found := redact.FindMark(r.Old); found && fault.CodeOf(err) == fault.FileMismatch {
		return w, fault.Wrap(fault.TextRedacted, mark+" stands for a secret and is not in the file", err).
			WithHint("replace the text before or after it")
	}
	return w, err
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
func (f *Files) List(ctx context.Context, r ListRequest) (l ListResult, err error) {
	err = f.do("list", r.Path, false, func(g *filegate.Gate) (err error) {
		l, err = g.List(ctx, r)
		return err
	})
	return l, err
}

// Search finds a text.
func (f *Files) Search(ctx context.Context, r SearchRequest) (found SearchResult, err error) {
	if r.Pattern == "" {
		return SearchResult{}, fault.New(fault.UsageInvalid, "there is nothing to search for")
	}
	err = f.do("search", r.Path, false, func(g *filegate.Gate) (err error) {
		found, err = g.Search(ctx, r)
		for i := range found.Matches {
			found.Matches[i].Text = f.red.count(found.Matches[i].Text, &found.Redacted)
		}
		return err
	})
	return found, err
}
