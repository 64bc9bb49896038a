//go:build !linux

package inner

import (
	"fmt"
	"os"
)

// Main refuses: there is no inner stage on this system.
func Main() {
	fmt.Fprintln(os.Stderr, "tether: SANDBOX_UNAVAILABLE: the inner stage exists on Linux only")
	os.Exit(125)
}
