package plan

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/plan/secrets"
)

// aliases closes the second ways to what is hidden: mounts inside a view that
// show the same files at another path. A home stays hidden there, and so does
// every masked file.
//
// Not seen: a file system stacked on top of another (overlay, FUSE), whose
// files the kernel counts as others.
func (r *resolver) aliases() error {
	raw, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return fault.Wrap(fault.SandboxUnavailable, "the mount table cannot be read, so nothing is known of second ways to hidden files", err)
	}
	mounts, err := parseMounts(raw)
	if err != nil {
		return fault.Wrap(fault.SandboxUnavailable, "nothing is known of second ways to hidden files", err)
	}
	roots := r.places(mounts)
	var homes []at
	devs := map[string]bool{}
	for _, p := range roots {
		devs[p.dev] = true
	}
	for _, h := range r.homes {
		if p, ok := locate(mounts, h.Path); ok {
			homes, devs[p.dev] = append(homes, at{p, h.Path}), true
		}
	}
	// Few mounts, if any, lie inside a view and show a file system that
	// something hidden is on.
	var inner []mount
	for _, m := range mounts {
		if !devs[m.dev] {
			continue
		}
		if v := r.viewOf(m.at); v == nil || v.Origin == System && v.Path == m.at {
			continue
		}
		for _, h := range homes {
			r.coverAlias(m, h)
		}
		if slices.ContainsFunc(roots, m.again) {
			inner = append(inner, m)
		}
	}
	if len(inner) == 0 {
		return nil
	}
	for _, m := range slices.Clone(r.p.Masks) {
		for _, path := range aliases(mounts, inner, m.Path) {
			r.maskAlias(m, path)
		}
	}
	for _, l := range slices.Clone(r.p.Locks) {
		for _, path := range aliases(mounts, inner, l.Path) {
			r.lockAlias(l, path)
		}
	}
	return nil
}

// at is a place and the path at which it is meant to be seen.
type at struct {
	place
	path string
}

// again says whether m shows a part of a, or all of it, at another path.
func (m mount) again(a at) bool {
	if path, ok := m.shows(a.place); ok {
		return path != a.path
	}
	return m.within(a.place) && rebase(m.root, a.place.path, a.path) != m.at
}

// places returns the views that hold protected files, and the mounts in them.
func (r *resolver) places(mounts []mount) []at {
	var out []at
	for _, v := range r.p.Views {
		if v.Origin == System || v.At != "" {
			continue
		}
		if p, ok := locate(mounts, v.Path); ok {
			out = append(out, at{p, v.Path})
		}
		for _, m := range mounts {
			if m.at != v.Path && inside(m.at, v.Path) {
				out = append(out, at{place{m.dev, m.root}, m.at})
			}
		}
	}
	return out
}

// viewOf returns the view that path is seen through.
func (r *resolver) viewOf(path string) *View {
	var best *View
	for i := range r.p.Views {
		v := &r.p.Views[i]
		if v.At == "" && !v.File && inside(path, v.Path) && (best == nil || len(v.Path) > len(best.Path)) {
			best = v
		}
	}
	return best
}

// coverAlias hides a mount that shows a home, or a part of it. What the policy
// shows by name stays: there, only a whole home is hidden.
func (r *resolver) coverAlias(m mount, home at) {
	path, whole := m.shows(home.place)
	system := r.viewOf(m.at).Origin == System
	switch {
	case whole && path == home.path: // its own place
	case whole && !system:
		r.coverPath(path)
	case whole, system && m.within(home.place):
		r.coverPath(m.at)
	}
}

// coverPath hides what lies at path, be it a folder or a file.
func (r *resolver) coverPath(path string) {
	info, err := os.Lstat(path)
	switch {
	case err != nil || slices.Contains(r.p.Covers, path):
	case info.IsDir():
		r.p.Covers = append(r.p.Covers, path)
		r.note(quote(path)+" shows a home folder by a mount and is hidden", "")
	default:
		r.p.Masks = append(r.p.Masks, secrets.Mask{Path: path, Why: "a file of a home folder by another mount"})
	}
}

// maskAlias hides the file of a mask at another path, if it is that file.
func (r *resolver) maskAlias(m secrets.Mask, at string) {
	info, err := os.Lstat(at)
	if err != nil {
		return
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || m.Ino != 0 && (st.Ino != m.Ino || st.Dev != m.Dev) {
		return
	}
	if slices.ContainsFunc(r.p.Masks, func(n secrets.Mask) bool { return n.Path == at }) {
		return
	}
	alias := secrets.Mask{Path: at, Dev: st.Dev, Ino: st.Ino, Why: "another mount of " + quote(filepath.Base(m.Path))}
	if info.IsDir() {
		alias.Kind = secrets.MaskDir
	}
	r.p.Masks = append(r.p.Masks, alias)
}

// lockAlias keeps a locked path unchanged at another path as well.
func (r *resolver) lockAlias(l Lock, path string) {
	if l.Content == nil && !r.writable(path) {
		return
	}
	if l.Content == nil && l.Writable {
		return // pinned for its name, which the alias does not have
	}
	if _, err := os.Lstat(path); err != nil || slices.ContainsFunc(r.p.Locks, func(k Lock) bool { return k.Path == path }) {
		return
	}
	l.Path = path
	r.p.Locks = append(r.p.Locks, l)
}
