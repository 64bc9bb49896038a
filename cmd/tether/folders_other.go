//go:build !linux

package main

import (
	"os"
	"path/filepath"
)

// ownFolders returns where policy files would lie, so that one that exists is
// refused and not left out.
func ownFolders() (state, config string, err error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", "", nil
	}
	return "", filepath.Join(dir, "tether"), nil
}
