package local

import (
	"testing"
	"time"

	"github.com/tether-sandbox/tether/internal/watch"
)

// A git directory that moved is looked at for that alone: what was put into it
// before the watch knew its new path was told by the old one.
func TestMovedGitDirIsLookedAt(t *testing.T) {
	for _, tt := range []struct {
		from string
		want bool
	}{{"/w/other", true}, {"/w/another", false}} {
		q := &prompt{dirs: map[string]int{"/w/other/.git": 0}, moved: map[string]int{}, named: map[string]bool{}, pace: pace{timer: time.NewTimer(0)}}
		q.note(watch.Event{Dir: "/w", Name: "o2", Folder: true, New: true, From: tt.from})
		if _, in := q.news.dirs["/w/o2/.git"]; in != tt.want || q.due.IsZero() == tt.want {
			t.Errorf("from %s: looks at %v, due %v, want %v", tt.from, q.news.dirs, q.due, tt.want)
		}
	}
}
