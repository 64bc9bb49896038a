//go:build !linux

package flagset

import (
	"os"
	"path/filepath"
)

// Folders returns where policy files would lie, so that one that exists is
// refused and not left out.
func Folders() (state, config string, err error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", "", nil
	}
	return "", filepath.Join(dir, "tether"), nil
}
