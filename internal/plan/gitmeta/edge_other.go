//go:build !linux && !darwin

package gitmeta

import (
	"errors"
	"fmt"
	"io/fs"
)

// readRegular refuses: the promise not to hang on planted files is kept on
// Linux only so far.
func readRegular(path string, _ int64) ([]byte, error) {
	return nil, fmt.Errorf("%s: %w", path, errors.ErrUnsupported)
}

func owner(fs.FileInfo) (uint32, bool) { return 0, false }

// Take refuses on this system.
func Take(string, []Repo) (Snapshot, error) { return Snapshot{}, errors.ErrUnsupported }

// Settle refuses on this system.
func Settle(Snapshot, []Repo, string) ([]Finding, error) { return nil, errors.ErrUnsupported }
