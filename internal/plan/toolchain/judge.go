package toolchain

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// base follows the way to a toolchain's folder and decides whether it is one.
func (f *finder) base(p place, tool, mark string) (way, bool) {
	w, err := f.w.follow(p.spelled)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotDir) {
		return way{}, false
	}
	why := ""
	switch {
	case errors.Is(err, errWritable) && p.byVar:
		return way{}, false // a tool of the workspace's own, such as its venv
	case err != nil:
		why = reason(err)
	case !w.mode.IsDir():
		why = "it is not a folder"
	default:
		why = f.placeable(p, w, mark)
	}
	if why != "" {
		f.skip(p.spelled, tool, why)
		return way{}, false
	}
	if mark == "" {
		return w, true
	}
	for m := range strings.FieldsSeq(mark) {
		if len(f.w.expand(w.real, m)) > 0 {
			return w, true
		}
	}
	// Not this toolchain's folder at all: ~/go may be one of three things.
	return way{}, false
}

// placeable says why a folder must not be taken for a toolchain, or nothing.
func (f *finder) placeable(p place, w way, mark string) string {
	if why := f.private(w.real); why != "" {
		return why
	}
	own := path.Join(f.home, strings.TrimPrefix(p.spelled, f.in.Home))
	if !p.byVar && (w.real == own || w.real == p.spelled) {
		return ""
	}
	if insideAny(w.real, f.in.Visible) {
		return ""
	}
	switch {
	case mark == "":
		return "it leads to a place that is not known to hold programs"
	case !inside(w.real, f.home) && insideAny(w.real, f.homes) && !strings.HasPrefix(p.spelled, "/home/linuxbrew/"):
		return "it leads into another home"
	}
	switch top, _, _ := strings.Cut(w.real[1:], "/"); top {
	case "dev", "proc", "sys", "run", "boot", "etc":
		return "it leads to /" + top
	}
	return ""
}

// private says why a path is never shown, or nothing.
func (f *finder) private(real string) string {
	if real == "/" {
		return "it leads to the root of the file system"
	}
	for _, h := range f.homes {
		if inside(h, real) {
			return "it holds a home"
		}
	}
	for part := range strings.SplitSeq(real[1:], "/") {
		if slices.Contains(neverParts[:], part) {
			return "it is a place for credentials"
		}
	}
	if own, ok := f.below(real); ok {
		for _, n := range never {
			if inside(own, n) {
				return "it is a place for credentials"
			}
		}
	}
	return ""
}

// below returns a canonical path relative to the home.
func (f *finder) below(real string) (string, bool) {
	if real == f.home || !inside(real, f.home) {
		return "", false
	}
	return real[len(f.home)+1:], true
}

// sub follows a sub-folder. It must stay in its toolchain, or be visible
// anyway.
func (f *finder) sub(p, base, tool string) (way, bool) {
	w, err := f.w.follow(p)
	why := ""
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return way{}, false
	case err != nil:
		why = reason(err)
	case !w.mode.IsDir() && !w.mode.IsRegular():
		why = "it is neither a folder nor a file"
	case insideAny(w.real, f.in.Visible):
	case !inside(w.real, base):
		why = "it is a link to a place that is not known to hold programs"
	default:
		why = f.private(w.real)
	}
	if why != "" {
		f.skip(p, tool, why)
		return way{}, false
	}
	return w, true
}

// reason is an error without the path that stands beside it.
func reason(err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err.Error()
	}
	return err.Error()
}

// plain reports whether p is absolute, without control characters and without
// parent references.
func plain(p string) bool {
	if !strings.HasPrefix(p, "/") || len(p) > 4096 {
		return false
	}
	for i := range len(p) {
		if p[i] < ' ' || p[i] == 0x7f {
			return false
		}
	}
	return p != "/.." && !strings.Contains(p, "/../") && !strings.HasSuffix(p, "/..")
}
