package inner

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestForget: a remembered folder is let go when something is mounted on it or
// above it, since the descriptor then shows what lies beneath.
func TestForget(t *testing.T) {
	for mounted, kept := range map[string]bool{
		"/a/b": false, "/a": false, "": false,
		"/a/b/c": true, "/a/bc": true, "/a/c": true, "/b": true,
	} {
		fd, err := unix.Open("/", unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		b := &builder{last: fd, lastAt: "/a/b"}
		b.forget(mounted)
		if got := b.last >= 0; got != kept {
			t.Errorf("mounted at %q: kept %v, want %v", mounted, got, kept)
		}
		b.forget("")
	}
}
