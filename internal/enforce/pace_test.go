package enforce_test

import (
	"testing"
	"time"

	"github.com/tether-sandbox/tether/internal/enforce"
)

func TestPace(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		left  time.Duration
		procs int
		look  time.Duration
		want  time.Duration
	}{
		{800 * ms, 2, 0, 400 * ms},
		{time.Hour, 2, 0, time.Second},
		{800 * ms, 0, 0, 800 * ms}, // nobody knows how many
		{15 * ms, 2, 0, enforce.Shortest},
		{-time.Second, 2, 0, enforce.Shortest},
		{15 * ms, 64, 3 * ms, 60 * ms}, // a look never takes more than a small part
		{time.Hour, 64, 100 * ms, 2 * time.Second},
	} {
		if got := enforce.Pace(c.left, c.procs, c.look); got != c.want {
			t.Errorf("%v left, %d processors, a look of %v: got %v, want %v", c.left, c.procs, c.look, got, c.want)
		}
	}
}
