//go:build linux || darwin

package plan

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/policy"
)

// openRoot canonicalises a folder the way the kernel would and returns its
// identity.
func openRoot(path string) (Root, fs.FileInfo, error) {
	canonical, err := filepath.EvalSymlinks(path)
	if err != nil {
		return Root{}, nil, err
	}
	if canonical, err = filepath.Abs(canonical); err != nil {
		return Root{}, nil, err
	}
	info, err := statFixed(canonical)
	if err != nil {
		return Root{}, nil, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return Root{}, nil, errors.ErrUnsupported
	}
	return Root{Path: canonical, Dev: uint64(st.Dev), Ino: st.Ino, UID: st.Uid, GID: st.Gid}, info, nil
}

// hiddenFolder returns the outermost folder on a canonical path, or the path
// itself, whose name hides all that is in it.
func hiddenFolder(path string) string {
	for end := 1; end < len(path); {
		name := path[end:]
		if i := strings.IndexByte(name, '/'); i >= 0 {
			name = name[:i]
		}
		end += len(name)
		if policy.HiddenName([]byte(name)) == policy.HiddenAny {
			return path[:end]
		}
		end++
	}
	return ""
}

// workspace pins the workspace, or says why it cannot be one.
func workspace(at *Layout, path string, homes []Root) (Root, error) {
	bad := func(what string, err error) error {
		return fault.Wrap(fault.SandboxBadWorkspace, what, err).WithHint("-C DIR, with DIR a project's own folder")
	}
	if path == "" || !filepath.IsAbs(path) || strings.ContainsRune(path, 0) {
		return Root{}, bad("the workspace is not an absolute path: "+quote(path), nil)
	}
	root, info, err := openRoot(path)
	if errors.Is(err, syscall.ENOSYS) {
		return Root{}, fault.Wrap(fault.IsolationUnavailable,
			"a system call filter around us, such as a container's or another sandbox's, or a kernel older than 5.6 denies openat2", reason(err)).
			WithHint("run tether outside of it")
	}
	if err != nil {
		return Root{}, bad("cannot open "+quote(path), reason(err))
	}
	if !info.IsDir() {
		return Root{}, bad(quote(path)+" is not a folder", nil)
	}
	if slices.Contains(at.Wide, root.Path) {
		return Root{}, bad(quote(root.Path)+" is too wide to be a workspace", nil)
	}
	for _, top := range at.Never {
		if inside(root.Path, top) {
			return Root{}, bad(quote(root.Path)+" is not a place for a workspace", nil)
		}
	}
	if dir := hiddenFolder(root.Path); dir != "" {
		return Root{}, bad(quote(dir)+" is a hidden folder", nil)
	}
	for _, h := range homes {
		if h.Path == root.Path || h.Dev == root.Dev && h.Ino == root.Ino {
			return Root{}, bad(quote(root.Path)+" is a home folder", nil)
		}
		if inside(h.Path, root.Path) {
			return Root{}, bad(quote(root.Path)+" holds a home folder", nil)
		}
		// A mount may show the folder above at another path.
		for up := h.Path; up != "/"; {
			up = filepath.Dir(up)
			if root.is(up) {
				return Root{}, bad(quote(root.Path)+" is "+quote(up)+", which holds a home folder", nil)
			}
		}
	}
	for _, wide := range at.Wide {
		if root.is(wide) {
			return Root{}, bad(quote(root.Path)+" is "+wide+", which is too wide to be a workspace", nil)
		}
	}
	return root, nil
}

// is says whether path is, without following a link at its end, this folder.
func (r Root) is(path string) bool {
	var st syscall.Stat_t
	return syscall.Lstat(path, &st) == nil && uint64(st.Dev) == r.Dev && st.Ino == r.Ino
}

// reason strips the operation and path that the message names already.
func reason(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}
