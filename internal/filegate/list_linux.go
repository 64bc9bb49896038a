package filegate

import (
	"context"
	"os"
	"slices"

	"github.com/tether-sandbox/tether/internal/plan/secrets"
	"github.com/tether-sandbox/tether/policy"
	"golang.org/x/sys/unix"
)

// maxNames is how many names of one folder are looked at.
const maxNames = 100_000

// maxDown is how deep lists and searches go.
const maxDown = 256

// List lists a folder. Hidden entries are named, as commands see them, and said
// to be hidden; links are not followed. It ends early, Truncated, when ctx does.
func (g *Gate) List(ctx context.Context, r ListRequest) (ListResult, error) {
	if r.Depth < 0 || r.Max < 0 {
		return ListResult{}, invalid("a depth and a number of entries are not negative", "leave it out")
	}
	glob, err := compileGlob(r.Glob)
	if err != nil {
		return ListResult{}, err
	}
	if r.Path == "" {
		r.Path = "."
	}
	if r.Max == 0 || r.Max > MaxEntries {
		r.Max = MaxEntries
	}
	var out ListResult
	err = g.enter(func() error {
		w, err := g.walk(r.Path)
		if err != nil {
			return err
		}
		defer w.close()
		if len(w.missing) > 0 {
			return w.gone()
		}
		n := w.end()
		if !n.is(unix.S_IFDIR) {
			return unfit(r.Path, "is no folder", "view it")
		}
		l := lister{ctx: ctx, g: g, depth: max(r.Depth, 1), most: r.Max, glob: glob}
		if err := l.list(n, ""); err != nil {
			return w.failed(err)
		}
		out = ListResult{Path: g.layout.show(n.path), Entries: append([]Entry{}, l.out...), Truncated: l.cut}
		return nil
	})
	return out, err
}

// compileGlob reads a filter; none matches all.
func compileGlob(glob string) (*policy.Patterns, error) {
	if glob == "" {
		return nil, nil
	}
	p, err := policy.CompilePatterns([]string{glob})
	if err != nil {
		return nil, err
	}
	return &p, nil
}

// lister goes through folders. It is the walk of lists and searches.
type lister struct {
	ctx   context.Context
	g     *Gate
	depth int
	most  int
	glob  *policy.Patterns
	// found is called for each file, instead of listing it.
	found func(n *node, rel string) error
	out   []Entry
	cut   bool
}

func (l *lister) done() bool {
	if l.ctx != nil && l.ctx.Err() != nil {
		l.cut = true
	}
	return l.cut
}

// list goes through one folder. rel is its path from where it began.
func (l *lister) list(n *node, rel string) error {
	names, err := l.names(n)
	if err != nil {
		if rel == "" {
			return err
		}
		return nil // one that cannot be read is left out
	}
	for _, name := range names {
		if l.done() {
			return nil
		}
		if err := l.entry(n, name, joinRel(rel, name)); err != nil {
			return err
		}
	}
	return nil
}

func joinRel(rel, name string) string {
	if rel == "" {
		return name
	}
	return rel + "/" + name
}

// names lists a folder by a handle of its own.
func (l *lister) names(n *node) ([]string, error) {
	fd, err := openat(n.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), n.path)
	defer f.Close()
	names, err := f.Readdirnames(maxNames + 1)
	if err != nil && len(names) == 0 && err.Error() != "EOF" {
		return nil, err
	}
	if len(names) > maxNames {
		names, l.cut = names[:maxNames], l.found == nil
	}
	slices.Sort(names)
	return names, nil
}

// entry looks at one entry and, if it is a folder, at what it holds.
func (l *lister) entry(above *node, name, rel string) error {
	n := node{fd: -1, dir: above.fd, name: name, path: join(above.path, name), root: above.root}
	if i, ok := l.g.layout.at[n.path]; ok {
		if i == scaffold {
			return nil
		}
		return l.root(above, &l.g.roots[i], rel)
	}
	if unix.Fstatat(above.fd, name, &n.st, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT) != nil {
		return nil // gone meanwhile
	}
	n.v = l.g.rules.judge(above.v, entry{path: n.path, name: name, typ: typeOf(n.st.Mode), free: above.root.tmp})
	if !n.is(unix.S_IFLNK) {
		l.g.byIdentity(&n)
	}
	if l.found == nil {
		if l.add(&n, rel); l.cut {
			return nil
		}
	}
	if n.v.hidden != "" {
		return nil
	}
	switch {
	case n.is(unix.S_IFDIR) && l.depth > depthOf(rel):
		return l.folder(above, n, rel)
	case n.is(unix.S_IFREG) && l.found != nil && l.matches(rel):
		return l.found(&n, rel)
	}
	return nil
}

// depthOf is how many levels below the beginning rel is.
func depthOf(rel string) int {
	depth := 1
	for _, c := range []byte(rel) {
		if c == '/' {
			depth++
		}
	}
	return depth
}

func (l *lister) matches(rel string) bool { return l.glob == nil || l.glob.MatchPath([]byte(rel)) }

// folder opens a folder that was judged, makes sure that it is that one, and
// goes on in it.
func (l *lister) folder(above *node, n node, rel string) error {
	if l.found != nil && n.name == ".git" && !above.v.git {
		return nil // unless the search began there
	}
	id := n.id()
	var err error
	if n.fd, err = openat(above.fd, n.name, unix.O_PATH|unix.O_DIRECTORY); err != nil {
		return nil
	}
	defer unix.Close(n.fd)
	if unix.Fstat(n.fd, &n.st) != nil || n.id() != id || n.st.Dev != above.st.Dev && ordinary(n.fd) != nil {
		return nil
	}
	return l.list(&n, rel)
}

// root goes on in a root that lies in the folder.
func (l *lister) root(above *node, r *root, rel string) error {
	w := walk{g: l.g, asked: r.path}
	defer w.close()
	if w.root(r, 0) != nil {
		return nil
	}
	n := *w.end()
	if above.v.lock.why != "" {
		n.v.hold(above.v.lock)
	}
	if l.found == nil {
		l.add(&n, rel)
	}
	switch {
	case n.is(unix.S_IFDIR) && l.depth > depthOf(rel):
		return l.list(&n, rel)
	case n.is(unix.S_IFREG) && l.found != nil && l.matches(rel):
		return l.found(&n, rel)
	}
	return nil
}

// add lists an entry.
func (l *lister) add(n *node, rel string) {
	if !l.matches(rel) {
		return
	}
	if len(l.out) == l.most {
		l.cut = true
		return
	}
	e := Entry{Path: l.g.layout.show(n.path), Type: Other, Hidden: n.v.hidden != "", Locked: n.v.lock.why != ""}
	switch typeOf(n.st.Mode) {
	case secrets.Regular:
		e.Type = File
		if n.v.byContent && !e.Hidden {
			raw, st, err := readFile(n, MaxFile)
			e.Hidden = err != nil || st.Size > int64(len(raw)) || !secrets.PublicOnly(raw)
		}
		if !e.Hidden {
			e.Size = n.st.Size
		}
	case secrets.Directory:
		e.Type = Folder
	case secrets.Symlink:
		e.Type, e.Hidden = Link, e.Hidden || n.v.byContent
	}
	l.out = append(l.out, e)
}
