// Package secrets finds the hidden files of a workspace: which files exist
// that a command must neither read nor write, under which names, and in which
// form each is masked.
//
// One parallel walk over every root reads directory entries only; a file is
// looked at when its name asks for it. The same walk reports what other parts
// of a plan need: git entries, bare repositories, locked names, sockets.
//
// [Find] promises, for a tree that nobody changes meanwhile: every name of
// every hidden file below the roots is covered by a mask, whatever its depth,
// spelling or bytes; hard links to a hidden file are hidden with it; so are
// files that a symbolic link with a hidden name leads to, as long as they lie
// below a root; a directory that cannot be searched is masked whole, because
// its owner can open it from inside. A mask only names what exists.
//
// Not promised: files that appear or move during or after the walk; a second
// mount of one single file under an innocent name (the mount table knows that,
// directory entries do not); names outside the roots.
package secrets

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Mark says what is known of a directory entry. An entry has any number of
// marks; the zero Mark says that nobody is interested in it.
type Mark uint16

// The marks. Rules give the first four, by name; the walk gives the rest.
const (
	// Hidden: nobody reads or writes it, unless it is a directory.
	Hidden Mark = 1 << iota
	// HiddenByContent: hidden unless its content is public.
	HiddenByContent
	// HiddenAny: hidden, be it a file or a directory with all that it holds.
	HiddenAny
	// Locked: readable, never written.
	Locked
	// Git: an entry called .git, of any type, in any spelling that a file system
	// takes for this name.
	Git
	// Bare: a directory that git takes for a repository: HEAD with commondir, or
	// with objects and refs, each of any type and in any such spelling. The
	// entry names the directory itself.
	Bare
	// Socket: a socket file.
	Socket
	// Unreadable: a directory that cannot be listed or searched.
	Unreadable
	// GitLink: a symbolic link in a git directory (one called .git, or a bare
	// repository) or anywhere below, where git itself reads and writes.
	GitLink
	// Changed: a symbolic link, or something with another mark, that changed
	// since Rules.Since, or that cannot be looked at.
	Changed
	// SetID: a changed file that lends its owner's or group's rights, or
	// capabilities, to whoever starts it.
	SetID
)

const hiddenMarks = Hidden | HiddenByContent | HiddenAny

// Type is the type of a directory entry.
type Type uint8

// The types.
const (
	Unknown Type = iota
	Regular
	Directory
	Symlink
	SocketFile
	// Other is a FIFO or a device.
	Other
)

// Rules say what names mean. A nil function marks nothing. The functions are
// called from several goroutines at once and must not keep their argument.
type Rules struct {
	// Name marks one base name. It is called for every entry, so it is fast
	// and does not allocate.
	Name func(name []byte, t Type) Mark
	// Key names what the two functions do, so that marks can be remembered
	// between runs of one binary; empty, they are not. RulesOf sets it.
	Key string
	// Path marks a path relative to its root, with "/" between the names. It
	// costs more than Name; leave it nil when no pattern holds a slash.
	Path func(rel []byte, t Type) Mark
	// Since, when not zero, has what is marked and every link looked at: what
	// changed at this time or later, in nanoseconds as the kernel counts change
	// times, gets the marks Changed and SetID.
	Since int64
	// Files has all other files looked at as well, for SetID. It takes about as
	// long as the walk itself.
	Files bool
}

// Entry is a directory entry that is of interest to somebody.
type Entry struct {
	// Path is absolute, in arbitrary bytes.
	Path string
	Type Type
	// Marks are all that apply.
	Marks Mark
	// Ino is the inode number as the directory tells it. Some file systems
	// (FUSE, mount points) tell another one than stat does.
	Ino uint64
}

// Found is what one walk saw. All lists are sorted by path.
type Found struct {
	// Entries are those with a mark other than a hidden one.
	Entries []Entry
	// Dirs and Files count what was seen: directories read, other entries.
	Dirs, Files int

	hits []hit
}

// With returns the paths of all entries that have any of marks.
func (f *Found) With(marks Mark) []string {
	var out []string
	for _, e := range f.Entries {
		if e.Marks&marks != 0 {
			out = append(out, e.Path)
		}
	}
	return out
}

// verdict says whether a file's content may be shown. Zero is the strict one.
type verdict uint8

const (
	secret verdict = iota
	// gitRef is public when the file lies where git keeps refs or reflogs.
	gitRef
	public
)

// hit is an entry with a hidden mark, and what stat said of it.
type hit struct {
	Entry
	id      identity
	links   uint64
	size    int64
	mtime   time.Time
	mode    uint32
	verdict verdict
	// exact is false where the directory told another inode than stat.
	exact bool
	why   string
}

// identity is which file it is, whatever its name.
type identity struct{ dev, ino uint64 }

// MaskKind is the form of a mask.
type MaskKind uint8

// The forms.
const (
	// MaskFile refuses every access with EACCES.
	MaskFile MaskKind = iota
	// MaskStub shows an empty stand-in with the original's size and time, so
	// that git, which tracks the file, sees it unchanged.
	MaskStub
	// MaskDir hides a whole directory.
	MaskDir
)

// Mask covers one hidden file or directory.
type Mask struct {
	// Path is absolute, below its root's path, in arbitrary bytes.
	Path string
	Kind MaskKind
	// Dev and Ino identify what is masked; for an unreadable directory they
	// are zero when even stat is refused.
	Dev, Ino uint64
	Size     int64
	MTime    time.Time
	// Mode are the permission bits.
	Mode uint32
	// Why says in a few words what asked for the mask.
	Why string
}

// Root is a folder, or a single file, that a command is to see. Path is
// absolute and canonical: no component of it is a symbolic link.
type Root struct{ Path string }

// Link is a symbolic link with a hidden name that leads out of the roots.
type Link struct {
	Path, Target string
	// Why says why it was not followed to its end.
	Why string
}

// Stats are numbers for reports and benchmarks.
type Stats struct {
	Dirs, Files int
	// Listed counts the directories that had to be listed in the first walk,
	// because they had changed since they were remembered or never were.
	Listed int
	// Read counts files whose content was read, Cached those whose verdict was
	// remembered, Public those found public.
	Read, Cached, Public int
	// Walks is how many times the roots were walked: a second time when a
	// hidden file has more links than were found.
	Walks int
}

// Result is what [Find] found. All lists are sorted by path; a path under a
// MaskDir appears in no other list of masks.
type Result struct {
	Masks []Mask
	// Sockets, BareRepos, Locked and Unreadable are paths by mark. Unreadable
	// directories are among Masks too.
	Sockets, BareRepos, Locked, Unreadable []string
	// GitLinks are the symbolic links in git directories.
	GitLinks []string
	// GitEntries are all entries called .git: directories, files, links.
	GitEntries []Entry
	// TrackedSecrets are the hidden files that git tracks, and so keeps copies
	// of in its objects, where no mask reaches.
	TrackedSecrets []string
	// Outside are links with hidden names that lead out of the roots.
	Outside []Link
	// Odd are index files that could not be read; files of these
	// repositories count as not tracked.
	Odd   []string
	Stats Stats
}

// sortMasks sorts by path and drops repeats and whatever lies in a directory
// that is masked whole. Of two masks with one path the wider form stays.
func sortMasks(masks []Mask) []Mask {
	slices.SortFunc(masks, func(a, b Mask) int {
		return cmp.Or(comparePaths(a.Path, b.Path), cmp.Compare(b.Kind, a.Kind), cmp.Compare(a.Why, b.Why))
	})
	out, dir := masks[:0], ""
	for _, m := range masks {
		if len(out) > 0 && m.Path == out[len(out)-1].Path || dir != "" && within(m.Path, dir) {
			continue
		}
		if m.Kind == MaskDir {
			dir = m.Path
		}
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b Mask) int { return cmp.Compare(a.Path, b.Path) })
	return out
}

// comparePaths orders paths by component, so that a directory comes right
// before everything in it ("a", "a/b", "a.b").
func comparePaths(a, b string) int {
	for i := 0; i < len(a) && i < len(b); i++ {
		switch {
		case a[i] == b[i]:
		case a[i] == '/':
			return -1
		case b[i] == '/':
			return 1
		default:
			return cmp.Compare(a[i], b[i])
		}
	}
	return cmp.Compare(len(a), len(b))
}

// within says whether path lies below dir; dir itself does not.
func within(path, dir string) bool {
	if dir == "/" {
		return len(path) > 1 && path[0] == '/'
	}
	return len(path) > len(dir) && path[len(dir)] == '/' && strings.HasPrefix(path, dir)
}

// join puts a name below dir.
func join(dir, name string) string {
	if dir == "/" {
		return dir + name
	}
	return dir + "/" + name
}
