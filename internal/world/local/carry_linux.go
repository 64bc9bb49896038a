package local

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/internal/plan/secrets"
	"github.com/tether-sandbox/tether/internal/watch"
)

// carry knows which names what is hidden got in the moment before it was covered:
// by a rename, which the kernel tells in two events, or as a hard link, which its
// identity shows. A name that a command chose by itself says nothing.
type carry struct {
	// names are the names that something hidden was moved to, files what was
	// hidden of late, recent the last new names.
	names  map[string]carried
	files  map[identity]carried
	recent []recentName
}

type carried struct {
	marks secrets.Mark
	at    time.Time
}

type recentName struct {
	path string
	at   time.Time
}

const (
	// moment is how long an event may be late: what was covered has no new names.
	moment = 2 * time.Second
	// mostCarried bounds what is remembered of each kind.
	mostCarried = 1024
)

const hiddenMarks = secrets.Hidden | secrets.HiddenByContent | secrets.HiddenAny

// marks are those of a path that ask for it to be hidden, by its name or by one
// that it had a moment ago.
func (w *wants) marks(path string, folder bool) secrets.Mark {
	kind, which := secrets.Regular, hiddenMarks
	if folder {
		kind, which = secrets.Directory, secrets.HiddenAny
	}
	m := w.rules.Name([]byte(filepath.Base(path)), kind)
	for _, root := range w.roots {
		if rel, ok := strings.CutPrefix(path, root+"/"); ok && w.rules.Path != nil {
			m |= w.rules.Path([]byte(rel), kind)
		}
	}
	if c, ok := w.carry.names[path]; ok {
		m |= c.marks
	}
	return m & which
}

// carryOn takes an event in, and the masks that it asked for already, and returns
// those for the new names of what is hidden.
func (w *wants) carryOn(ctx context.Context, e watch.Event, found []secrets.Mask) (masks []secrets.Mask) {
	if e.Lost {
		return nil
	}
	c, path, now := &w.carry, e.Path(), time.Now()
	if e.From != "" {
		masks = w.moved(ctx, e.From, path, e.Folder, now)
	} else if e.New {
		delete(c.names, path) // another one has the name now
	}
	for _, m := range append(slices.Clone(masks), found...) {
		masks = append(masks, w.links(ctx, &m, now)...)
	}
	if e.Folder || !e.New {
		return masks
	}
	c.recent = append(c.recent, recentName{path, now})
	if len(c.recent) > mostCarried {
		c.recent = slices.Clone(c.recent[mostCarried/2:])
	}
	if id, ok := c.late(path, now); ok && len(found) == 0 {
		masks = append(masks, hiddenAs(ctx, path, c.files[id].marks)...)
	}
	return masks
}

// late says whether the file at path is one that was hidden of late.
func (c *carry) late(path string, now time.Time) (identity, bool) {
	for id, f := range c.files {
		if now.Sub(f.at) > moment {
			delete(c.files, id)
		}
	}
	if len(c.files) == 0 {
		return identity{}, false
	}
	var st unix.Stat_t
	if unix.Lstat(path, &st) != nil {
		return identity{}, false
	}
	id := identity{uint64(st.Dev), st.Ino}
	_, ok := c.files[id]
	return id, ok
}

// moved carries what is hidden over to another name, and what lies in a folder
// with the folder.
func (w *wants) moved(ctx context.Context, from, to string, folder bool, now time.Time) (masks []secrets.Mask) {
	c := &w.carry
	came := map[string]secrets.Mark{}
	if m := w.marks(from, folder); m != 0 {
		came[to] = m
	}
	for path, n := range c.names {
		switch {
		case now.Sub(n.at) > moment && len(c.names) > mostCarried/2:
			delete(c.names, path)
		case folder && strings.HasPrefix(path, from+"/"):
			came[to+path[len(from):]] = n.marks
		}
	}
	delete(c.names, from)
	for path, m := range came {
		if len(c.names) < mostCarried {
			if c.names == nil {
				c.names = map[string]carried{}
			}
			c.names[path] = carried{m, now}
		}
		masks = append(masks, hiddenAs(ctx, path, m)...)
	}
	if folder && w.rules.Path != nil {
		masks = append(masks, w.asIn(ctx, from, to)...)
	}
	return masks
}

// asIn finds what a folder hides that patterns of paths would hide where it was.
func (w *wants) asIn(ctx context.Context, from, to string) (masks []secrets.Mask) {
	for _, root := range w.roots {
		old, ok := strings.CutPrefix(from, root+"/")
		if !ok {
			continue
		}
		rules := secrets.Rules{Path: func(rel []byte, t secrets.Type) secrets.Mark {
			return w.rules.Path(slices.Concat([]byte(old), []byte("/"), rel), t) & hiddenMarks
		}}
		if found, err := secrets.Find(ctx, []secrets.Root{{Path: to}}, rules, nil); err == nil {
			masks = append(masks, slices.DeleteFunc(found.Masks, func(m secrets.Mask) bool { return slices.Contains(found.Unreadable, m.Path) })...)
		}
	}
	return masks
}

// links finds the other names of a file that is about to be covered, among those
// that came right before, and remembers it for those that are told of later.
func (w *wants) links(ctx context.Context, m *secrets.Mask, now time.Time) (masks []secrets.Mask) {
	if m.Kind == secrets.MaskDir || m.Ino == 0 {
		return nil
	}
	c, id := &w.carry, identity{m.Dev, m.Ino}
	if _, known := c.files[id]; !known && len(c.files) < mostCarried {
		if c.files == nil {
			c.files = map[identity]carried{}
		}
		c.files[id] = carried{secrets.Hidden, now}
	}
	var st unix.Stat_t
	if unix.Lstat(m.Path, &st) == nil && st.Nlink == 1 {
		return nil
	}
	for _, r := range c.recent {
		if now.Sub(r.at) > moment || r.path == m.Path {
			continue
		}
		if unix.Lstat(r.path, &st) == nil && id == (identity{uint64(st.Dev), st.Ino}) {
			masks = append(masks, hiddenAs(ctx, r.path, secrets.Hidden)...)
		}
	}
	return masks
}

// hiddenAs finds what a path hides if its name has marks.
func hiddenAs(ctx context.Context, path string, marks secrets.Mark) []secrets.Mask {
	rules := secrets.Rules{Name: func([]byte, secrets.Type) secrets.Mark { return marks }}
	found, err := secrets.Find(ctx, []secrets.Root{{Path: path}}, rules, nil)
	if err != nil {
		return nil // gone; where to, is told by the event that follows
	}
	return slices.DeleteFunc(found.Masks, func(m secrets.Mask) bool { return m.Path != path })
}
