//go:build linux || darwin

package plan

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/tether-sandbox/tether/internal/plan/secrets"
)

// lock keeps a present file or folder, by which something on the host runs
// something unasked, from being changed, and its place from being taken.
//
// The folders around it stay movable: that is ordinary work, and a mount on
// each would make every rename between them fail.
func (r *resolver) lock(path string) {
	if r.allowedConfig(path) {
		return
	}
	info, err := os.Lstat(path)
	if err != nil {
		return
	}
	if r.writable(path) {
		r.hold(path, info)
	}
	if info.Mode()&os.ModeSymlink != 0 {
		// No mount can hold a link. What it leads to is locked, if the command
		// could write that at all.
		real, err := filepath.EvalSymlinks(path)
		if err != nil || !r.writable(real) {
			return
		}
		path = real
		if inside(r.p.Workspace.Path, path) {
			return // a link to the workspace makes that no less writable; of other roots protected beats writable
		}
		if info, err = os.Lstat(path); err != nil {
			return
		}
		r.hold(path, info)
	}
	if r.writable(path) {
		r.p.Locks = append(r.p.Locks, Lock{Path: path, Why: "the host runs it, or what it names, unasked"})
		for _, a := range r.p.Policy.Protect.AllowConfig {
			if a = r.inWorkspace(a); a != path && inside(a, path) {
				r.note("--allow-config "+quote(a)+" lifts nothing: "+quote(path)+" is locked whole", "--allow-config "+quote(path))
			}
		}
	}
}

// hold notes what lies at path.
func (r *resolver) hold(path string, info os.FileInfo) {
	h := Held{Path: path}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		h.Dev, h.Ino = uint64(st.Dev), st.Ino
	}
	if info.Mode()&os.ModeSymlink != 0 {
		h.Link, _ = os.Readlink(path) // gone by now is as good as another one
	}
	r.p.Held = append(r.p.Held, h)
}

// allowedConfig says whether the policy lifts the lock of path. Tether's own
// folder is never lifted.
func (r *resolver) allowedConfig(path string) bool {
	if strings.EqualFold(filepath.Base(path), ".tether") {
		return false
	}
	return slices.ContainsFunc(r.p.Policy.Protect.AllowConfig, func(a string) bool {
		return r.inWorkspace(a) == path
	})
}

// inWorkspace is a path of the policy, which counts from the workspace.
func (r *resolver) inWorkspace(path string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(r.p.Workspace.Path, path)
	}
	return filepath.Clean(path)
}

// own keeps Tether's own files out of reach, whatever roots the policy adds,
// and in their place: of our own program nothing may come instead, not even for
// as long as a command runs.
func (r *resolver) own() {
	for _, dir := range []string{r.host.StateDir, r.host.ConfigDir} {
		real, err := filepath.EvalSymlinks(dir)
		if err != nil {
			continue
		}
		r.p.Own = append(r.p.Own, real)
		if slices.ContainsFunc(r.p.Views, func(v View) bool { return v.Origin != System && v.At == "" && inside(real, v.Path) }) {
			r.p.Masks = append(r.p.Masks, secrets.Mask{Path: real, Kind: secrets.MaskDir, Why: "Tether's own files"})
		}
	}
	for _, real := range Programs(r.host.Executable) {
		r.p.Own = append(r.p.Own, real)
		_, err := os.Lstat(real)
		switch {
		case !r.writable(real):
		case err != nil:
			r.p.Held = append(r.p.Held, Held{Path: real}) // nothing may come there
		default:
			r.p.Locks = append(r.p.Locks, Lock{Path: real, Why: "Tether's own program"})
		}
		r.pinAbove(real)
	}
	for _, link := range linksOn(r.host.Called) {
		r.p.Own = append(r.p.Own, link)
		// No mount can hold a link; whoever puts another in its place is found.
		r.pinAbove(link)
		if info, err := os.Lstat(link); err == nil && r.writable(link) {
			r.hold(link, info)
		}
	}
}

// pinViews keeps what the policy shows, inside of what it lets be written, from
// being moved away with a folder around it: what is read-only would become
// writable by that, and in the place of what is writable a link could come, which
// leads whoever looks there afterwards out of all roots.
func (r *resolver) pinViews() {
	for _, v := range r.p.Views {
		if v.At == "" && v.Origin != System {
			r.pinAbove(v.Path)
		}
	}
}

// pinAbove keeps every folder around path that the command can write from being
// moved: each becomes a mount, writable as it was.
func (r *resolver) pinAbove(path string) {
	if !filepath.IsAbs(path) {
		return
	}
	for at := filepath.Dir(path); at != "/"; at = filepath.Dir(at) {
		if r.writable(at) && !slices.ContainsFunc(r.p.Views, func(v View) bool { return v.Path == at }) {
			r.p.Locks = append(r.p.Locks, Lock{Path: at, Writable: true, Why: "moved away, it would take what is protected in it along"})
		}
	}
}
