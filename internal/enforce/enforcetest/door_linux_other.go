//go:build linux && !amd64

package enforcetest

import "errors"

// int80 is a door of amd64 alone.
func int80(uintptr) (int, error) { return 0, errors.New("no such door on this architecture") }
