//go:build !linux

package machine

import "runtime"

// Look knows the system's name alone.
func Look() Facts { return Facts{OS: runtime.GOOS} }
