//go:build !linux

package watch

import (
	"errors"
	"time"
)

// Tree watches nothing on this system.
type Tree struct{}

// New refuses: nothing is watched on this system yet.
func New() (*Tree, error) { return nil, errors.ErrUnsupported }

// Blind refuses.
func Blind() (*Tree, error) { return nil, errors.ErrUnsupported }

// Close does nothing.
func (*Tree) Close() {}

// Wake does nothing.
func (*Tree) Wake() {}

// Len is zero.
func (*Tree) Len() int { return 0 }

// Add refuses.
func (*Tree) Add(string, func() bool) error { return errors.ErrUnsupported }

// Next refuses.
func (*Tree) Next(time.Time) ([]Event, error) { return nil, errors.ErrUnsupported }

// Watch refuses.
func (*Tree) Watch(int, string) (int32, error) { return 0, errors.ErrUnsupported }

// Touched knows of nothing, so anything may have happened.
func (*Tree) Touched() (map[int32]bool, bool) { return nil, true }
