package local

import (
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/internal/plan/secrets"
	"github.com/tether-sandbox/tether/internal/watch"
)

// unsure are files that appeared, or were written, with a name whose content
// decides, and that were public so far: an empty one is. Who has one open or
// mapped may write a key into it, and nobody is told before it is closed. So they
// are looked at now and then.
type unsure map[string]stamp

type stamp struct {
	id           identity
	size         int64
	mtime, ctime int64
}

const (
	// unsureAgain is how often they are looked at.
	unsureAgain = 100 * time.Millisecond
	// mostUnsure bounds how many are.
	mostUnsure = 256
)

func stampOf(path string) (s stamp, ok bool) {
	var st unix.Stat_t
	if unix.Lstat(path, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return s, false
	}
	return stamp{identity{uint64(st.Dev), st.Ino}, st.Size, st.Mtim.Nano(), st.Ctim.Nano()}, true
}

// judged takes in what came of an event.
func (u unsure) judged(w *wants, e watch.Event, masks []secrets.Mask) {
	if e.Lost || e.Folder || w.rules.Name([]byte(e.Name), secrets.Regular)&hiddenMarks != secrets.HiddenByContent {
		return
	}
	path := e.Path()
	s, ok := stampOf(path)
	if !ok || len(masks) > 0 {
		delete(u, path)
		return
	}
	if _, known := u[path]; known || len(u) < mostUnsure {
		u[path] = s
	}
}

// changed are events for those that are not what they were.
func (u unsure) changed() (list []watch.Event) {
	for path, was := range u {
		now, ok := stampOf(path)
		switch {
		case !ok:
			delete(u, path)
		case now != was:
			u[path] = now
			list = append(list, watch.Event{Dir: filepath.Dir(path), Name: filepath.Base(path)})
		}
	}
	return list
}
