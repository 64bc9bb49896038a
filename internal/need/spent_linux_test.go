package need

import (
	"testing"
	"time"
)

func TestSpent(t *testing.T) {
	if got := Spent(func() { time.Sleep(50 * time.Millisecond) }); got > 25*time.Millisecond {
		t.Errorf("sleeping: %v", got)
	}
	sum := 0
	if got := Spent(func() {
		for end := time.Now().Add(20 * time.Millisecond); time.Now().Before(end); sum++ {
		}
	}); got <= 0 || sum == 0 {
		t.Errorf("counting to %d: %v", sum, got)
	}
}
