package toolchain

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
)

// FS is what a search asks of the file system. [Machine] is the real one.
type FS interface {
	Lstat(name string) (fs.FileInfo, error)
	Readlink(name string) (string, error)
	ReadDir(name string) ([]fs.DirEntry, error)
}

// Machine is the file system of this machine.
type Machine struct{}

// Lstat is os.Lstat.
func (Machine) Lstat(name string) (fs.FileInfo, error) { return os.Lstat(name) }

// Readlink is os.Readlink.
func (Machine) Readlink(name string) (string, error) { return os.Readlink(name) }

// ReadDir is os.ReadDir.
func (Machine) ReadDir(name string) ([]fs.DirEntry, error) { return os.ReadDir(name) }

// maxLinks is how many links one way may have, as in the kernel.
const maxLinks = 40

// Reasons why a way is not taken.
var (
	errWritable = errors.New("the way there leads through a folder that the sandbox may write")
	errShared   = errors.New("the way there leads through a folder that anybody may write")
	errLoop     = errors.New("too many links")
	errNotDir   = errors.New("not a folder")
)

// way is a path followed to its end.
type way struct {
	real  string // canonical
	links []Link // the links on the way, in order
	mode  fs.FileMode
}

// walker follows paths one component at a time, so that every link and every
// folder on the way is seen.
type walker struct {
	fs    FS
	avoid []string // canonical roots that no way may touch
	home  string   // canonical once it is known
	seen  map[string]fs.FileInfo
}

// follow canonicalises an absolute path. The error for a path that is not
// there is fs.ErrNotExist.
func (w *walker) follow(name string) (way, error) {
	var out way
	cur, rest := "/", strings.Trim(path.Clean(name), "/")
	mode := fs.ModeDir
	for rest != "" {
		var elem string
		elem, rest, _ = strings.Cut(rest, "/")
		switch elem {
		case "", ".":
			continue
		case "..":
			cur = path.Dir(cur)
			continue
		}
		if !mode.IsDir() {
			return way{}, errNotDir
		}
		p := join(cur, elem)
		if insideAny(p, w.avoid) {
			return way{}, errWritable
		}
		info, err := w.lstat(p)
		if err != nil {
			return way{}, err
		}
		m := info.Mode()
		if m&fs.ModeSymlink != 0 {
			to, err := w.fs.Readlink(p)
			if err != nil {
				return way{}, err
			}
			if out.links = append(out.links, Link{Path: p, To: to}); len(out.links) > maxLinks {
				return way{}, errLoop
			}
			if strings.HasPrefix(to, "/") {
				cur = "/"
			}
			mode, rest = fs.ModeDir, to+"/"+rest
			continue
		}
		// Whoever may write there decides where the way leads next. The home
		// and what it lies in are as open as their owner wants them.
		if m.IsDir() && m.Perm()&0o002 != 0 && !inside(p, w.home) && !inside(w.home, p) {
			return way{}, errShared
		}
		cur, mode = p, m
	}
	out.real, out.mode = cur, mode
	return out, nil
}

// lstat remembers what many ways share.
func (w *walker) lstat(p string) (fs.FileInfo, error) {
	if info, ok := w.seen[p]; ok {
		if info == nil {
			return nil, fs.ErrNotExist
		}
		return info, nil
	}
	info, err := w.fs.Lstat(p)
	if err != nil {
		info = nil
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	w.seen[p] = info
	return info, err
}

// exists reports whether a canonical path is there, be it a link.
func (w *walker) exists(p string) bool {
	info, err := w.lstat(p)
	return err == nil && info != nil
}

// expand returns the existing paths that a pattern below dir, which is
// canonical, names. A component that is a link is followed only as the last.
func (w *walker) expand(dir, pattern string) []string {
	if pattern == "." {
		return []string{dir}
	}
	found := []string{dir}
	for rest := pattern; rest != "" && len(found) > 0; {
		var elem string
		elem, rest, _ = strings.Cut(rest, "/")
		var next []string
		for _, d := range found {
			if d != dir && w.isLink(d) {
				continue
			}
			if !strings.ContainsAny(elem, "*?[") {
				if p := join(d, elem); w.exists(p) {
					next = append(next, p)
				}
				continue
			}
			entries, err := w.fs.ReadDir(d)
			if err != nil {
				continue
			}
			for _, e := range entries {
				if ok, err := path.Match(elem, e.Name()); ok && err == nil {
					next = append(next, join(d, e.Name()))
				}
			}
		}
		found = next
	}
	return found
}

func (w *walker) isLink(p string) bool {
	info, err := w.lstat(p)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// join is path.Join for a clean folder and one element.
func join(dir, elem string) string {
	if dir == "/" {
		return dir + elem
	}
	return dir + "/" + elem
}

// inside reports whether path is dir or lies below it. Both are clean.
func inside(p, dir string) bool {
	if dir == "/" {
		return true
	}
	return dir != "" && strings.HasPrefix(p, dir) && (len(p) == len(dir) || p[len(dir)] == '/')
}

func insideAny(p string, dirs []string) bool {
	for _, d := range dirs {
		if inside(p, d) {
			return true
		}
	}
	return false
}
