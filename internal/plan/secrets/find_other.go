//go:build !linux && !darwin

package secrets

import (
	"context"
	"errors"

	"github.com/tether-sandbox/tether/fault"
)

func unsupported() error {
	return fault.Wrap(fault.SandboxUnavailable, "secrets can only be found on Linux", errors.ErrUnsupported)
}

// Find refuses: there is no search on this system yet.
func Find(context.Context, []Root, Rules, *Cache) (Result, error) {
	return Result{}, unsupported()
}

// Walk refuses: there is no walk on this system yet.
func Walk(context.Context, string, Rules) (Found, error) { return Found{}, unsupported() }

// Find refuses.
func (*Known) Find(context.Context, []Root, Rules, *Cache) (Result, error) {
	return Result{}, unsupported()
}

// Walk refuses.
func (*Known) Walk(context.Context, string, Rules) (Found, error) { return Found{}, unsupported() }

// OpenCache returns an empty cache.
func OpenCache(dir string) *Cache { return newCache(dir) }

// Save refuses: there is no cache on this system yet.
func (c *Cache) Save() error { return unsupported() }
