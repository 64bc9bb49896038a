//go:build linux || darwin

package secrets

import (
	"encoding/binary"
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/policy"
)

// scan is the state of one worker.
type scan struct {
	walk     *walk
	buf      []byte
	file     []byte
	rel      []byte
	dir      string
	children []*node
	// links are the symbolic links in the directory being listed.
	links []Entry
	// known are the remembered children of the directory being listed, systems
	// the file systems that were met, by device.
	known   map[string]*folder
	systems map[uint64]fileSystem
	found   Found
}

// work reads directories until there are none left.
func (s *scan) work() {
	w, idle := s.walk, false
	for n := w.next(idle); n != nil; n = w.next(idle) {
		idle = true
		s.visit(n)
		w.add(s.children)
		clear(s.children)
		s.children = s.children[:0]
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.total.Dirs += s.found.Dirs
	w.total.Files += s.found.Files
	w.total.Entries = append(w.total.Entries, s.found.Entries...)
	w.total.hits = append(w.total.hits, s.found.hits...)
}

// visit opens and reads one directory.
func (s *scan) visit(n *node) {
	w := s.walk
	defer w.release(n.parent)
	n.git = n.parent.git || gitName([]byte(n.name), false) == sawGit
	if s.unchanged(n) {
		s.replay(n)
		return
	}
	dir := n.parent.fd
	if dir < 0 {
		up, err := w.reopen(n.parent)
		if err != nil {
			s.refused(n, -1, err)
			return
		}
		defer unix.Close(up)
		dir = up
	}
	fd, err := w.open(dir, n.name)
	if err != nil {
		s.refused(n, dir, err)
		return
	}
	s.read(n, fd)
}

// refused deals with a directory that cannot be opened. Gone is fine; running
// out of descriptors or memory ends the walk; all else is unreadable.
func (s *scan) refused(n *node, dir int, err error) {
	switch err {
	case unix.ENOENT, unix.ENOTDIR, unix.ELOOP, unix.ESTALE:
	case unix.EMFILE, unix.ENFILE, unix.ENOMEM:
		s.walk.fail(fmt.Errorf("walk: open %q: %w", n.path(), err))
	case unix.EACCES:
		// The parent may be the one that refuses: it was listed, and cannot be
		// searched. Then nothing in it can be judged, nor covered one by one.
		if n.parent != nil && (dir < 0 || !searchable(dir)) {
			n = n.parent
			s.walk.doubt(n)
		}
		s.unreadable(n)
	default:
		s.unreadable(n)
	}
}

func (s *scan) unreadable(n *node) {
	s.found.Entries = append(s.found.Entries, Entry{Path: n.path(), Type: Directory, Marks: Unreadable})
}

// searchable says whether names below dir can be looked up.
func searchable(dir int) bool {
	var st unix.Stat_t
	return unix.Fstatat(dir, ".", &st, unix.AT_SYMLINK_NOFOLLOW) != unix.EACCES
}

// What of a bare repository has been seen in a directory.
const (
	sawHead = 1 << iota
	sawObjects
	sawRefs
	sawCommon
	// sawGit is no part of one: it is the name .git.
	sawGit
)

// GitName says whether git may go by an entry of this name: as a repository, a
// part of one, or one of the files in it by which it runs something.
func GitName(name []byte) bool {
	switch string(policy.Fold(nil, name)) {
	case "config", "config.worktree", "hooks", "gitdir":
		return true
	}
	return gitName(name, false) != 0
}

// isBare says whether git would look no further: it takes a directory with
// HEAD, objects and refs for a repository, and finds the latter two elsewhere
// when there is a commondir.
func isBare(saw int) bool {
	return saw&sawHead != 0 && (saw&sawCommon != 0 || saw&sawObjects != 0 && saw&sawRefs != 0)
}

// gitName says which of git's names a name is on some file system. What looks so
// on the wrong one is sorted out by whoever looks the name up.
func gitName(name []byte, ascii bool) int {
	if !ascii {
		var buf [255]byte
		return asciiGitName(policy.Fold(buf[:0], name))
	}
	return asciiGitName(name)
}

func asciiGitName(name []byte) int {
	switch len(name) {
	case len("HEAD"): // also .git and refs
		switch {
		case foldsTo(name, ".git"):
			return sawGit
		case foldsTo(name, "head"):
			return sawHead
		case foldsTo(name, "refs"):
			return sawRefs
		}
	case len("objects"):
		if foldsTo(name, "objects") {
			return sawObjects
		}
	case len("commondir"):
		if foldsTo(name, "commondir") {
			return sawCommon
		}
	}
	return 0
}

// foldsTo compares a name with one of the same length in lower case.
func foldsTo(name []byte, lower string) bool {
	for i := range lower {
		c := name[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

// read lists the directory n, open as fd, and closes fd when no child waits.
func (s *scan) read(n *node, fd int) {
	w := s.walk
	s.found.Dirs++
	first := len(s.children)
	hits := len(s.found.hits)
	saw := 0
	s.rel, s.dir = s.rel[:0], ""
	s.known, s.links = s.noteListing(n, fd), s.links[:0]
	for {
		got, err := readDir(fd, s.buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil && err != unix.ENOENT { // ENOENT: removed meanwhile
			s.unreadable(n)
			n.forget()
		}
		if err != nil || got == 0 {
			break
		}
		saw |= s.entries(n, fd, s.buf[:got])
	}
	if isBare(saw) {
		if n.at != nil {
			n.at.bare = true
		}
		s.found.Entries = append(s.found.Entries, Entry{Path: n.path(), Type: Directory, Marks: Bare})
		n.git = true
	}
	if n.git {
		s.gitLinks(n)
	}
	s.checkHits(n, hits)
	waiting := len(s.children) - first
	n.waiting.Store(int32(waiting))
	if waiting == 0 || w.kept.Add(1) > keptFDs {
		if waiting > 0 {
			w.kept.Add(-1)
		}
		unix.Close(fd)
		return
	}
	n.fd = fd
}

// checkHits gives up on a directory, whose hits begin at first, when names in
// it cannot be looked up.
func (s *scan) checkHits(n *node, first int) {
	for _, h := range s.found.hits[first:] {
		if h.why == whyUnsearchable {
			s.found.hits = s.found.hits[:first]
			s.unreadable(n)
			n.forget()
			return
		}
	}
}

// doubt is forget for a directory that others are at work below.
func (w *walk) doubt(n *node) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n.forget()
}

// forget makes the next walk list the directory again.
func (n *node) forget() {
	if n.at != nil {
		n.at.ctime, n.at.watch = 0, 0
	}
}

// child queues a directory found in n.
func (s *scan) child(n *node, name string) {
	c := &node{parent: n, name: name, fd: -1}
	if n.at != nil {
		if c.at = s.known[name]; c.at == nil {
			c.at = &folder{name: name}
		}
		n.at.kids = append(n.at.kids, c.at)
	}
	s.children = append(s.children, c)
}

// entries goes through one buffer of directory entries and returns which parts
// of a bare repository it saw.
func (s *scan) entries(n *node, fd int, buf []byte) (saw int) {
	w := s.walk
	for len(buf) >= direntHead {
		size := int(binary.NativeEndian.Uint16(buf[16:]))
		if size < direntHead || size > len(buf) {
			return saw
		}
		ino := binary.NativeEndian.Uint64(buf)
		kind := buf[direntKind]
		name := buf[direntHead:size]
		var all byte
		for i, c := range name {
			if c == 0 {
				name = name[:i]
				break
			}
			all |= c
		}
		buf = buf[size:]
		if len(name) == 0 || name[0] == '.' && (len(name) == 1 || len(name) == 2 && name[1] == '.') {
			continue
		}
		t := typeOf(kind)
		if t == Unknown {
			var st unix.Stat_t
			if unix.Fstatat(fd, string(name), &st, unix.AT_SYMLINK_NOFOLLOW|onlyHere) == nil {
				t = typeOf(byte((st.Mode & unix.S_IFMT) >> 12))
				ino = st.Ino
			} else if !searchable(fd) {
				s.unreadable(n)
				n.forget()
				return saw
			}
		}
		if t != Directory {
			s.found.Files++
			if n.at != nil {
				n.at.files++
			}
		}
		if a := w.aliases; a != nil {
			switch {
			case t == Directory:
				s.child(n, string(name))
			case t != Symlink && (a.every || a.inodes[ino]):
				s.hit(n, fd, string(name), t, ino, Hidden)
			}
			continue
		}
		marks := s.marks(n, name, t)
		if since := w.rules.Since; since != 0 && t != Directory && (marks != 0 || t == Symlink || w.rules.Files) {
			marks |= s.changes(fd, string(name), t, marks, since)
		}
		if t == Symlink {
			s.links = append(s.links, Entry{Path: string(name), Type: t, Ino: ino})
		}
		switch g := gitName(name, all < 0x80); g {
		case sawGit:
			marks |= Git
		default:
			saw |= g
		}
		if t == Directory && marks&HiddenAny == 0 {
			s.child(n, string(name))
			marks &^= hiddenMarks
		}
		if n.at != nil && (marks != 0 || t == Symlink) {
			n.at.entries = append(n.at.entries, Entry{Path: string(name), Type: t, Marks: marks &^ (Changed | SetID), Ino: ino})
		}
		if marks == 0 {
			continue
		}
		if marks&hiddenMarks != 0 {
			s.hit(n, fd, string(name), t, ino, marks)
		}
		if marks&^hiddenMarks != 0 {
			s.found.Entries = append(s.found.Entries, Entry{Path: s.path(n, string(name)), Type: t, Marks: marks, Ino: ino})
		}
	}
	return saw
}

// gitLinks marks the links of the directory n, which git reads and writes in.
func (s *scan) gitLinks(n *node) {
	for _, l := range s.links {
		l.Marks = GitLink
		l.Path = s.path(n, l.Path)
		s.found.Entries = append(s.found.Entries, l)
	}
}

// changes says what became of an entry that is no directory and has marks.
func (s *scan) changes(fd int, name string, t Type, marks Mark, since int64) Mark {
	var st unix.Stat_t
	switch err := unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW|onlyHere); {
	case err == unix.ENOENT:
		return 0
	case err != nil:
		return Changed
	case st.Ctim.Nano() < since:
		return 0
	}
	const groupRuns = unix.S_ISGID | unix.S_IXGRP // without the second it lends nothing
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
	case st.Mode&unix.S_ISUID != 0 || st.Mode&groupRuns == groupRuns:
		return Changed | SetID
	case st.Mode&0o111 != 0 && s.walk.capable:
		// Only root can have given it capabilities.
		if n, err := unix.Lgetxattr("/proc/self/fd/"+strconv.Itoa(fd)+"/"+name, "security.capability", nil); err == nil && n > 0 {
			return Changed | SetID
		}
	}
	if marks != 0 || t == Symlink {
		return Changed
	}
	return 0
}

// marks asks the rules about an entry.
func (s *scan) marks(n *node, name []byte, t Type) (m Mark) {
	r := &s.walk.rules
	if r.Name != nil {
		m = r.Name(name, t)
	}
	if r.Path != nil {
		if len(s.rel) == 0 && n.parent != nil {
			s.rel = append(n.appendRel(s.rel), '/')
		}
		dir := len(s.rel)
		s.rel = append(s.rel, name...)
		m |= r.Path(s.rel, t)
		s.rel = s.rel[:dir]
	}
	if t == SocketFile {
		m |= Socket
	}
	return m
}

// appendRel appends the path relative to the root.
func (n *node) appendRel(b []byte) []byte {
	if n.parent == nil {
		return b
	}
	if n.parent.parent != nil {
		b = append(n.parent.appendRel(b), '/')
	}
	return append(b, n.name...)
}

// hit records an entry with a hidden mark and looks at it.
func (s *scan) hit(n *node, fd int, name string, t Type, ino uint64, marks Mark) {
	h := hit{Entry: Entry{Type: t, Marks: marks, Ino: ino}}
	if s.walk.inspect != nil && !s.walk.inspect(fd, name, &h, &s.file) {
		return
	}
	h.Path = s.path(n, name)
	s.found.hits = append(s.found.hits, h)
}

// path is that of name in the directory n, which is being read.
func (s *scan) path(n *node, name string) string {
	if s.dir == "" {
		s.dir = n.path()
	}
	return join(s.dir, name)
}

// typeOf reads a d_type, which is also the top nibble of a mode.
func typeOf(d byte) Type {
	switch d {
	case unix.DT_UNKNOWN:
		return Unknown
	case unix.DT_REG:
		return Regular
	case unix.DT_DIR:
		return Directory
	case unix.DT_LNK:
		return Symlink
	case unix.DT_SOCK:
		return SocketFile
	}
	return Other
}
