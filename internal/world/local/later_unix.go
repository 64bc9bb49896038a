//go:build linux || darwin

package local

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/internal/plan/gitmeta"
	"github.com/tether-sandbox/tether/internal/plan/secrets"
	"github.com/tether-sandbox/tether/policy"
)

// tick is how far a file's time may lie behind the clock: file systems stamp
// with the time of the last timer tick.
const tick = 20 * time.Millisecond

// listed bounds how many files are reported one by one because of a folder
// around them.
const listed = 32

// later reports files that run later on the host and changed since the command
// began: they themselves, or a folder because of which they run. A .tether
// folder that appeared is taken away: it would speak for the user at the next
// start.
func (r *record) later(root string, seen *secrets.Found, quarantine string) ([]gitmeta.Finding, error) {
	var out []gitmeta.Finding
	var err error
	had := slices.ContainsFunc(r.Tether, func(t []byte) bool { return string(t) == root })
	if own := tetherFolders(root, seen); len(own) > 0 && !had {
		out, err = gitmeta.TakeAway(root, own, quarantine)
	}
	c := changes{record: r, root: root, fresh: map[string]bool{}, told: map[string]int{}}
	for _, e := range seen.Entries {
		switch {
		case e.Marks&secrets.Unreadable != 0:
			out = append(out, gitmeta.Finding{Path: e.Path, Kind: gitmeta.KindClosed, What: "a folder that cannot be looked through", Action: gitmeta.Reported})
		case e.Marks&secrets.Locked == 0 || e.Type == secrets.Directory || inTether(root, e.Path):
		default:
			out = c.file(out, e.Path)
		}
	}
	return c.rest(out), err
}

// mostOfKind bounds how many findings of one kind are reported one by one.
const mostOfKind = 256

// bounded leaves out what is only reported beyond mostOfKind, and says so.
func bounded(root string, all []gitmeta.Finding) []gitmeta.Finding {
	count := map[string]int{}
	out := slices.DeleteFunc(all, func(f gitmeta.Finding) bool {
		if f.Action != gitmeta.Reported {
			return false
		}
		count[f.Kind]++
		return count[f.Kind] > mostOfKind
	})
	for _, kind := range slices.Sorted(maps.Keys(count)) {
		if n := count[kind]; n > mostOfKind {
			out = append(out, gitmeta.Finding{Path: root, Kind: kind, What: fmt.Sprintf("%d more of this kind in it", n-mostOfKind),
				Action: gitmeta.Reported})
		}
	}
	return out
}

// tetherFolders finds what is called .tether at the top of root.
func tetherFolders(root string, seen *secrets.Found) []gitmeta.Finding {
	var out []gitmeta.Finding
	for _, e := range seen.Entries {
		if filepath.Dir(e.Path) == root && string(policy.Fold(nil, []byte(filepath.Base(e.Path)))) == tetherFolder {
			out = append(out, gitmeta.Finding{Path: e.Path, Kind: string(policy.LaterTether), What: "a policy folder that the command made"})
		}
	}
	return out
}

// inTether says whether a path is root's .tether or lies in it: it was taken
// away, or locked all the time.
func inTether(root, path string) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(path[len(root):], "/"), "/")
	return string(policy.Fold(nil, []byte(first))) == tetherFolder
}

// changes tells what changed since a record's command began.
type changes struct {
	*record
	root string
	// fresh remembers answers about folders; told counts files by folder.
	fresh map[string]bool
	told  map[string]int
}

const runsLater = "runs later on the host"

// file appends a finding when a file, or the folder that makes it run, changed.
func (c *changes) file(out []gitmeta.Finding, path string) []gitmeta.Finding {
	is, gone := c.changed(path)
	if gone {
		return out
	}
	if !is {
		dir := c.freshFolder(path)
		if dir == "" {
			return out
		}
		if c.told[dir]++; c.told[dir] > listed {
			return out
		}
	}
	return append(out, gitmeta.Finding{Path: path, Kind: c.kind(path), What: runsLater, Action: gitmeta.Reported})
}

// kind says what runs a file, or what lies in the folder that a link brings.
func (c *changes) kind(path string) string {
	rel := []byte(strings.TrimPrefix(path[len(c.root):], "/"))
	if k := policy.LaterKind(rel); k != "" {
		return string(k)
	}
	return gitmeta.KindSymlink
}

// rest appends how many files were left out.
func (c *changes) rest(out []gitmeta.Finding) []gitmeta.Finding {
	for dir, n := range c.told {
		if n > listed {
			out = append(out, gitmeta.Finding{Path: dir, Kind: c.kind(dir + "/x"), What: fmt.Sprintf("%s, with %d more files in it", runsLater, n-listed),
				Action: gitmeta.Reported})
		}
	}
	slices.SortStableFunc(out, func(a, b gitmeta.Finding) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// changed compares a change time, which no program can set, with the command's
// begin. What cannot be looked at has changed.
func (c *changes) changed(path string) (is, gone bool) {
	var st unix.Stat_t
	switch err := unix.Lstat(path, &st); err {
	case nil:
		return !time.Unix(st.Ctim.Unix()).Before(c.Begin.Add(-tick)), false
	case unix.ENOENT, unix.ENOTDIR:
		return false, true
	}
	return true, false
}

// freshFolder returns the outermost folder that changed, or is where it was not,
// among those that make a file run: without them its name would say nothing. A
// folder that is moved keeps the times of all that it holds.
func (c *changes) freshFolder(path string) string {
	rel := strings.TrimPrefix(path[len(c.root):], "/")
	at := len(rel) // where the shortest tail begins that runs later
	for {
		at = strings.LastIndexByte(rel[:at], '/')
		if at < 0 || policy.RunsLater(rel[at+1:]) {
			break
		}
	}
	base := len(c.root) + 1
	for i := at + 1; i < len(rel); i++ {
		if rel[i] == '/' && c.freshAt(path[:base+i]) {
			return path[:base+i]
		}
	}
	return ""
}

func (c *changes) freshAt(dir string) bool {
	is, known := c.fresh[dir]
	if !known {
		is, _ = c.changed(dir)
		is = is || policy.LockedName([]byte(filepath.Base(dir))) &&
			!slices.ContainsFunc(c.Locked, func(l []byte) bool { return string(l) == dir })
		c.fresh[dir] = is
	}
	return is
}
