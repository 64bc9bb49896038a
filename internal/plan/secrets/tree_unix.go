//go:build linux || darwin

package secrets

import (
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// memory is what one walk remembers of the one before, and for the next.
type memory struct {
	top *folder
	// since is the latest change time that counts as settled.
	since int64
	// listed counts directories that had to be listed, folders all of them.
	listed, folders atomic.Int64
	// key names what the marks depend on; stored says that top was stored.
	key    string
	stored bool
	// known, when not nil, has the directories watched that are listed.
	known *Known
}

// recall loads the tree of root. It returns nil when trees are not to be
// remembered: without a cache, or under rules that have no key.
func (c *Cache) recall(root string, rules Rules) *memory {
	if c == nil || rules.Key == "" {
		return nil
	}
	// Another binary may know other names, so it starts anew.
	var exe unix.Stat_t
	if unix.Stat("/proc/self/exe", &exe) != nil {
		return nil
	}
	m := &memory{
		since: time.Now().Add(-c.settle).UnixNano(),
		key:   fmt.Sprintf("%s %d %d %d %d", rules.Key, exe.Dev, exe.Ino, exe.Ctim.Nano(), exe.Size),
	}
	if b := c.load(treeName(root), treeMax); b != nil {
		m.top = decodeTree(b, m.key, root)
	}
	if m.stored = m.top != nil; !m.stored {
		m.top = &folder{}
	}
	return m
}

// remember keeps what a walk learned until Save, but for what is known anyway. A few directories that had to
// be listed are listed again next time, which costs less than storing.
func (c *Cache) remember(root string, m *memory) {
	all, listed := m.folders.Load(), m.listed.Load()
	if m.known != nil || all > treeFolders || m.stored && listed <= 16+all/64 {
		return
	}
	if b := encodeTree(m.key, root, m.top); len(b) <= treeMax {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.files[treeName(root)] = b
	}
}

// unchanged says whether the directory n is as it is remembered. Where a watch
// stands, and none told of a change around it, that is known without looking.
func (s *scan) unchanged(n *node) bool {
	f := n.at
	if f == nil || f.watch == 0 && f.ctime == 0 {
		return false
	}
	if n.sure && f.watch != 0 {
		return true
	}
	dir, name := s.walk.root, n.name
	if n.parent == nil {
		name = "."
	} else if n.parent.fd >= 0 {
		dir = n.parent.fd
	} else {
		s.rel = n.appendRel(s.rel[:0])
		name = string(s.rel)
	}
	var st unix.Stat_t
	return unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW|onlyHere) == nil &&
		idOf(&st) == f.id && st.Mode&unix.S_IFMT == unix.S_IFDIR && (f.watch != 0 || st.Ctim.Nano() == f.ctime)
}

// ruled are the marks that rules and types give to an entry.
const ruled = hiddenMarks | Locked | Socket

// replay does for an unchanged directory what read does by listing it. Files
// with hidden names are looked at again: they change without their directory.
// So is whatever may have changed since Rules.Since.
func (s *scan) replay(n *node) {
	f, m, since := n.at, s.walk.memory, s.walk.rules.Since
	m.folders.Add(1)
	s.found.Dirs++
	s.found.Files += f.files
	s.dir = ""
	if f.bare {
		s.found.Entries = append(s.found.Entries, Entry{Path: n.path(), Type: Directory, Marks: Bare})
		n.git = true
	}
	fd, hits := -1, len(s.found.hits)
	for _, e := range f.entries {
		changes := since != 0 && e.Type != Directory && (e.Marks&ruled != 0 || e.Type == Symlink)
		if fd < 0 && (changes || e.Marks&hiddenMarks != 0) {
			var err error
			if fd, err = s.walk.reopen(n); err != nil {
				s.refused(n, -1, err)
				return
			}
			defer unix.Close(fd)
		}
		if e.Marks&hiddenMarks != 0 {
			s.hit(n, fd, e.Path, e.Type, e.Ino, e.Marks)
		}
		if changes {
			e.Marks |= s.changes(fd, e.Path, e.Type, e.Marks&ruled, since)
		}
		if e.Type == Symlink && n.git {
			e.Marks |= GitLink
		}
		if e.Marks&^hiddenMarks != 0 {
			s.found.Entries = append(s.found.Entries, Entry{Path: s.path(n, e.Path), Type: e.Type, Marks: e.Marks, Ino: e.Ino})
		}
	}
	s.checkHits(n, hits)
	waiting := 0
	for _, k := range f.kids {
		if f.watch != 0 && k.quiet {
			s.found.Dirs += k.dirs
			s.found.Files += k.all
			m.folders.Add(int64(k.dirs))
			continue
		}
		waiting++
		s.children = append(s.children, &node{parent: n, name: k.name, fd: -1, at: k, sure: f.watch != 0})
	}
	n.waiting.Store(int32(waiting))
}

// noteListing begins to remember the directory n, open as fd and about to be
// listed. Its state is taken first: a change during the listing shows later.
func (s *scan) noteListing(n *node, fd int) (known map[string]*folder) {
	f := n.at
	if f == nil {
		return nil
	}
	m := s.walk.memory
	m.listed.Add(1)
	if m.folders.Add(1) > treeFolders {
		n.at = nil
		return nil
	}
	known = make(map[string]*folder, len(f.kids))
	for _, k := range f.kids {
		known[k.name] = k
	}
	*f = folder{name: f.name}
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil {
		return known
	}
	f.id = idOf(&st)
	fs := s.fileSystem(fd, uint64(st.Dev))
	if fs.keepsTime && st.Ctim.Nano() <= m.since {
		f.ctime = st.Ctim.Nano()
	}
	if m.known != nil && fs.tells && !lockable(fd) {
		f.watch = m.known.arm(fd, n.path())
	}
	return known
}

// fileSystem says what can be relied on in the file system of fd, asked once for
// each.
func (s *scan) fileSystem(fd int, dev uint64) fileSystem {
	if s.systems == nil {
		s.systems = map[uint64]fileSystem{}
	}
	fs, ok := s.systems[dev]
	if !ok {
		fs = fileSystemOf(fd)
		s.systems[dev] = fs
	}
	return fs
}
