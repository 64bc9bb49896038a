package native

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestOpens(t *testing.T) {
	for _, c := range []struct {
		uid, mode uint32
		want      bool
	}{
		{0, 0o755, true}, {0, 0o700, true}, {0, 0o500, true}, {0, 0o2755, true},
		{0, 0o611, false}, {0, 0o100, false}, {0, 0o400, false}, {0, 0o077, false},
		{1, 0o755, true}, {1, 0o055, true}, {1, 0o700, false}, {1, 0o705, false},
		{1, 0o750, false}, {1, 0o711, false}, {1, 0o744, false},
	} {
		if got := opens(&unix.Stat_t{Uid: c.uid, Mode: unix.S_IFREG | c.mode}); got != c.want {
			t.Errorf("%#o of %d: got %v, want %v", c.mode, c.uid, got, c.want)
		}
	}
}
