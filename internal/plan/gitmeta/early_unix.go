//go:build linux || darwin

package gitmeta

import (
	"maps"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Early takes back, while a command runs, what [Settle] would take back at its
// end, in the repositories that were there before the command. What Settle only
// reports is left to it, and so is a repository that the command makes: work in
// that must go on.
//
// The command may change everything between a look and what follows from it, and
// may move folders that hold what it cannot change itself. So nothing is touched
// but the very file that was judged, and no file that was there before as it is,
// elsewhere: what was locked or hidden would be gone for good, or come open by
// being rewritten. That is left to the end, too. Of what it makes over and over no more than
// mostEarly things and maxKept bytes are kept; after that, files and links are
// removed, and folders stay where they are under an inert name.
//
// Not safe for concurrent use; Settle may be called once it rests.
type Early struct {
	// Loose says that nothing is locked: what was there can be changed, too, and by
	// another name or an open descriptor without anybody being told.
	Loose bool

	before     Snapshot
	quarantine string
	ids        map[string]bool // of the git directories, whatever they are called
	had        map[had]bool
	entries    int // how many things may still be kept
	bytes      int64
	broken     map[string]broken
}

// had is a file that was there before, and what as.
type had struct {
	role Role
	id   string
}

// broken says since when a configuration cannot be parsed.
type broken struct {
	sum         string
	seen, since time.Time
}

const (
	mostEarly = 64
	// whole is how long a configuration that cannot be parsed has to be written
	// to its end, as long as it changes at most patience. git itself refuses one.
	whole    = time.Second
	patience = 3 * time.Second
)

// NewEarly returns one for the workspace of a snapshot that [Take] made, not one
// that went through a record. quarantine is that of Settle.
func NewEarly(before Snapshot, quarantine string) *Early {
	e := &Early{before: before, quarantine: quarantine, ids: map[string]bool{}, had: map[had]bool{}, entries: mostEarly, bytes: maxKept, broken: map[string]broken{}}
	for _, id := range before.dirs {
		e.ids[id] = true
	}
	for _, item := range before.Items {
		e.had[had{item.Role, item.id}] = true
	}
	return e
}

// Dirs are the git directories that were there before the command, in no order.
func (e *Early) Dirs() []string {
	out := make([]string, 0, len(e.before.dirs))
	for dir := range e.before.dirs {
		out = append(out, dir)
	}
	return out
}

// Was says whether what lies at path now was a git directory before the command,
// there or elsewhere.
func (e *Early) Was(path string) bool {
	var st unix.Stat_t
	return unix.Lstat(path, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR && e.ids[whichFile(&st)]
}

// knows says whether a git directory was there before: it is the same folder, or
// lies where one did.
func (e *Early) knows(path string, st *unix.Stat_t) bool {
	_, known := e.before.dirs[path]
	return known || e.ids[whichFile(st)]
}

// Settle looks at the git directories dirs, and at what configuration named
// before the command. found is what was done; what could not be done is left to
// the end without a word. open are the git directories to look at once more in a
// moment though nothing happens: whoever has a file open or mapped writes to it,
// and nobody is told. Where nothing is locked, they are all. An empty one stands
// for what configuration named.
func (e *Early) Settle(dirs []string) (found []Finding, open []string, err error) {
	s, err := openAfter(e.before.Workspace, e.before.Commons, e.quarantine)
	if err != nil {
		return nil, nil, err
	}
	defer s.close()
	s.before, s.closed, s.early = e.before.Items, e.before.Closed, e
	for _, d := range dirs {
		s.gitDir(d, 0)
	}
	s.tree(e.before)
	for path := range e.broken {
		if s.items[path].Broken == "" {
			delete(e.broken, path)
		}
	}
	todo := slices.DeleteFunc(compare(e.before, s.items), func(a action) bool {
		item := s.items[a.finding.Path]
		return a.finding.Action == Reported || e.had[had{item.Role, item.id}] || !e.ripe(a.finding.Path, item)
	})
	found, _ = s.carryOut(todo, e.quarantine)
	for path, item := range s.items {
		if old, known := e.before.Items[path]; !item.open() || known && old.Sum == item.Sum {
			continue
		}
		if dir := s.gitDirOf(path); !slices.Contains(open, dir) {
			open = append(open, dir)
		}
	}
	if e.Loose {
		open = slices.Collect(maps.Keys(s.dirs))
		if len(e.before.Hooks)+len(e.before.Includes) > 0 {
			open = append(open, "")
		}
	}
	return done(found), open, nil
}

// gitDirOf returns the git directory whose file lies at path, empty for none.
func (s *survey) gitDirOf(path string) string {
	for range 2 {
		path, _ = splitPath(path)
		if s.dirs[path] != "" {
			return path
		}
	}
	return ""
}

// open says whether an item may yet become what it is not.
func (i *Item) open() bool {
	return i.Type == 'f' && (i.Role == RoleConfig || i.Role == RoleAttributes || i.Role == RoleCommonDir)
}

// ripe says whether it is time to take an item back.
func (e *Early) ripe(path string, item Item) bool {
	if item.Broken == "" || item.Type != 'f' {
		return true
	}
	now := time.Now()
	b := e.broken[path]
	if b.seen.IsZero() {
		b.seen = now
	}
	if b.sum != item.Sum {
		b.sum, b.since = item.Sum, now
	}
	e.broken[path] = b
	return now.Sub(b.since) >= whole || now.Sub(b.seen) >= patience
}

// TakeAway is what [TakeAway] is, for below a root that need not be the workspace
// of the snapshot. Of a finding that says that it is a link, only a link is moved.
func (e *Early) TakeAway(root string, what []Finding) ([]Finding, error) {
	if len(what) == 0 {
		return nil, nil
	}
	s, err := openAfter(root, nil, e.quarantine)
	if err != nil {
		return nil, err
	}
	defer s.close()
	s.early = e
	todo := make([]action, 0, len(what))
	for _, f := range what {
		f.Action = Quarantined
		todo = append(todo, action{finding: f})
	}
	found, _ := s.carryOut(todo, e.quarantine)
	return done(found), nil
}

// done are the findings about which something was done.
func done(found []Finding) []Finding {
	return slices.DeleteFunc(found, func(f Finding) bool { return f.Action == Reported })
}

// full says that nothing more is kept. Nobody else than an Early is ever full.
func (e *Early) full() bool { return e != nil && e.entries <= 0 }

// room takes room for something that is to be kept, if there is any left.
func (e *Early) room(st *unix.Stat_t) bool {
	switch {
	case e == nil:
		return true
	case e.entries <= 0 || st.Mode&unix.S_IFMT == unix.S_IFREG && st.Size > e.bytes:
		return false
	}
	e.entries--
	if st.Mode&unix.S_IFMT == unix.S_IFREG {
		e.bytes -= st.Size
	}
	return true
}
