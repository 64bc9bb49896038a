package filegate

import (
	"strings"
)

// Bounds of a path, links that it leads through included.
const (
	maxPath  = 4096
	maxSteps = 4096
	maxDepth = 1024
	maxLinks = 40
)

// spelled is a path as somebody spelled it, cut into names. "." and empty
// names are gone; ".." is there, for what it means depends on links.
type spelled struct {
	names  []string
	abs    bool
	folder bool // it ends in a slash, "." or "..": only a folder can be meant
}

// split cuts a path of a request. Nothing in it is expanded or cleaned.
func split(path string) (spelled, error) {
	switch {
	case path == "":
		return spelled{}, refuse(path, "is no path", `"." is the workspace`)
	case len(path) >= maxPath:
		return spelled{}, refuse(path, "is longer than a path can be", "use a shorter path")
	case strings.IndexByte(path, 0) >= 0:
		return spelled{}, refuse(path, "holds a NUL byte, which no path can", "leave it out")
	}
	return cut(path), nil
}

// cut cuts any text that the kernel would take for a path.
func cut(path string) spelled {
	s := spelled{abs: path[0] == '/', names: make([]string, 0, strings.Count(path, "/")+1)}
	for name := range strings.SplitSeq(path, "/") {
		s.folder = name == "" || name == "." || name == ".."
		if name != "" && name != "." {
			s.names = append(s.names, name)
		}
	}
	return s
}

// layout knows which roots there are, and where.
type layout struct {
	workspace string
	// spelling is how the policy spells the workspace; empty when that is its
	// canonical path.
	spelling string
	at       map[string]int // path of a root → its index, or scaffold
}

// scaffold stands for a folder that commands see only because a root lies
// below it. It holds nothing else.
const scaffold = -1

// root finds the deepest root that an absolute path lies in, and how many of
// its names lead there. A way through ".." above the roots is followed as long
// as it stays in folders that lead to one: those hold no links.
func (l *layout) root(names []string) (index, used int, ok bool) {
	var at []string
	for {
		index, n, dots := l.straight(at, names[used:])
		if index != scaffold {
			return index, used + n, true
		}
		if dots < 0 {
			return 0, 0, false
		}
		at = append(at, names[used:used+dots]...)
		if !l.above("/" + strings.Join(at, "/")) {
			return 0, 0, false
		}
		at = at[:max(len(at)-1, 0)]
		used += dots + 1
	}
}

// straight is root for the names before the first "..", below a folder that is
// no root. dots is where that is, or negative.
func (l *layout) straight(at, names []string) (index, used, dots int) {
	index, dots = scaffold, -1
	if i, found := l.at["/"]; found {
		index = i
	}
	path := "/" + strings.Join(at, "/")
	if i, found := l.at[path]; found {
		index = i
	}
	for n, name := range names {
		if name == ".." {
			return index, used, n
		}
		path = join(path, name)
		if i, found := l.at[path]; found {
			index, used = i, n+1
		}
	}
	return index, used, dots
}

// above says whether path is a folder above a root.
func (l *layout) above(path string) bool {
	for root := range l.at {
		if inside(root, path) {
			return true
		}
	}
	return false
}

// scaffolds marks the folders between /tmp and roots that lie below it.
func (l *layout) scaffolds() {
	for root := range l.at {
		for path := parent(root); len(path) > len("/tmp") && inside(path, "/tmp"); path = parent(path) {
			if _, ok := l.at[path]; !ok {
				l.at[path] = scaffold
			}
		}
	}
}

// request makes a request's path absolute. A workspace that was named by a
// link may be spelled that way, too.
func (l *layout) request(s spelled) []string {
	ws := cut(l.workspace).names
	if !s.abs {
		return append(ws, s.names...)
	}
	if l.spelling == "" {
		return s.names
	}
	if _, _, ok := l.root(s.names); ok {
		return s.names
	}
	alias := cut(l.spelling).names
	if len(s.names) < len(alias) {
		return s.names
	}
	for i, name := range alias {
		if s.names[i] != name {
			return s.names
		}
	}
	return append(ws, s.names[len(alias):]...)
}

// show is how results spell a path.
func (l *layout) show(path string) string {
	if path == l.workspace {
		return "."
	}
	if inside(path, l.workspace) {
		return strings.TrimPrefix(path[len(l.workspace):], "/")
	}
	return path
}

// inside says whether path is dir or lies below it.
func inside(path, dir string) bool {
	if dir == "/" {
		return true
	}
	return strings.HasPrefix(path, dir) && (len(path) == len(dir) || path[len(dir)] == '/')
}

func join(dir, name string) string {
	if dir == "/" {
		return dir + name
	}
	return dir + "/" + name
}

func parent(path string) string {
	i := strings.LastIndexByte(path, '/')
	if i <= 0 {
		return "/"
	}
	return path[:i]
}
