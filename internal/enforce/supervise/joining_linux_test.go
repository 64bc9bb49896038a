package supervise

import (
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/enforce/inner"
)

func TestMain(m *testing.M) {
	if inner.Wanted(os.Args) {
		inner.Main()
	}
	os.Exit(m.Run())
}

// TestJoinRefused: a joiner goes into no world but one with a user namespace of
// its own, and says why not; nothing of it is left, and after the end there is
// none.
func TestJoinRefused(t *testing.T) {
	patient(t)
	for _, c := range []struct{ path, why string }{
		{os.DevNull, "whose namespace it is"},
		{"/proc/self/ns/mnt", "no user namespace of its own"},
		{"", enforce.ErrStands.Error()},
	} {
		var j joining
		if c.path != "" {
			fd, err := unix.Open(c.path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				t.Fatal(err)
			}
			j.into([]int{fd})
		}
		p := &Process{joining: joining{id: &inner.Identity{}, world: j.world}}
		if _, err := p.Cover(nil); !errors.Is(err, enforce.ErrStands) || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%q: got %v, want %q", c.path, err, c.why)
		}
		p.joining.end()
		if _, err := p.Cover(nil); !errors.Is(err, os.ErrClosed) {
			t.Errorf("%q: after the end: %v", c.path, err)
		}
		if _, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); err != unix.ECHILD {
			t.Errorf("%q: a child is left: %v", c.path, err)
		}
	}
}
