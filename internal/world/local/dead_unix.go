//go:build linux || darwin

package local

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/plan"
	"github.com/tether-sandbox/tether/internal/plan/gitmeta"
)

const byTheDead = "left by a run that died: "

// settleDead settles the runs on this workspace that died, or failed, before
// they could. Only what is really still there and would run stands in the way
// of the next run; all else is noted.
func settleDead(p *plan.Plan) ([]gitmeta.Finding, error) {
	dir := pendingDir(p)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil // nobody left anything yet, or save will tell
	}
	var all []gitmeta.Finding
	var errs []error
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		switch {
		case !strings.HasSuffix(name, ".json"):
		case strings.HasPrefix(e.Name(), "run-"):
			found, err := settleOne(p, name)
			all, errs = append(all, found...), append(errs, err)
		case strings.HasPrefix(e.Name(), "new-"):
			removeUnfinished(e, name)
		}
	}
	for i := range all {
		f := &all[i]
		f.What = byTheDead + f.What
		p.Notes = append(p.Notes, plan.Note{What: byTheDead + f.Path + ": " + f.What[len(byTheDead):] + ", " + f.Action})
	}
	return all, errors.Join(errs...)
}

// settleOne settles the run of one record.
func settleOne(p *plan.Plan, name string) ([]gitmeta.Finding, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil
	}
	defer f.Close()
	if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return nil, nil // its run is alive
	}
	if _, err := os.Lstat(name); err != nil {
		return nil, nil // it was alive when we opened it, and has settled since
	}
	note := func(what, hint string) { p.Notes = append(p.Notes, plan.Note{What: byTheDead + what, Hint: hint}) }
	var r record
	if json.NewDecoder(f).Decode(&r.remembered) != nil || len(r.Snapshots) != len(r.Roots) {
		note("its record cannot be read and was dropped: "+name, "look into .git/hooks and .git/config before you use git")
		_ = os.Remove(name)
		return nil, nil
	}
	r.dropGone(func(root string) { note("the folder "+root+" is gone", "") })
	found, err := r.inspect(p)
	switch {
	case err == nil:
		_ = os.Remove(name)
	case errors.Is(err, gitmeta.ErrLeft):
		return found, err
	default:
		// The record stays, and the next run tries again.
		note("it could not be settled: "+err.Error(), fault.HintOf(err))
	}
	return found, nil
}

// dropGone forgets roots that are no folders any more.
func (r *record) dropGone(tell func(root string)) {
	roots, snaps := r.Roots[:0:0], r.Snapshots[:0:0]
	for i, root := range r.Roots {
		var st unix.Stat_t
		if err := unix.Lstat(string(root), &st); err == unix.ENOENT || err == unix.ENOTDIR || err == nil && st.Mode&unix.S_IFMT != unix.S_IFDIR {
			tell(string(root))
			continue
		}
		roots, snaps = append(roots, root), append(snaps, r.Snapshots[i])
	}
	r.Roots, r.Snapshots = roots, snaps
}

// removeUnfinished removes the record of a run that died while it wrote it.
func removeUnfinished(e os.DirEntry, name string) {
	const long = time.Minute // nobody takes so long to write one
	if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > long {
		_ = os.Remove(name)
	}
}
