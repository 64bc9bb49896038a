//go:build !linux

package filegate

import (
	"context"
	"errors"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/plan"
)

func unsupported() error {
	return fault.Wrap(fault.SandboxUnavailable, "files can be opened safely only on Linux", errors.ErrUnsupported)
}

// actor runs calls as a command would run; there is none on this system.
type actor struct{}

func (*actor) do(func() error) error { return unsupported() }

// Open refuses: there is no gate on this system yet.
func Open(*plan.Plan, Options) (*Gate, error) { return nil, unsupported() }

// Close does nothing.
func (g *Gate) Close() error { return nil }

// View refuses.
func (g *Gate) View(ViewRequest) (ViewResult, error) { return ViewResult{}, unsupported() }

// Write refuses.
func (g *Gate) Write(WriteRequest) (WriteResult, error) { return WriteResult{}, unsupported() }

// Replace refuses.
func (g *Gate) Replace(ReplaceRequest) (ReplaceResult, error) { return ReplaceResult{}, unsupported() }

// List refuses.
func (g *Gate) List(context.Context, ListRequest) (ListResult, error) {
	return ListResult{}, unsupported()
}

// Search refuses.
func (g *Gate) Search(context.Context, SearchRequest) (SearchResult, error) {
	return SearchResult{}, unsupported()
}
