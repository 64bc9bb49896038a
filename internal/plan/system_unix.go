//go:build linux || darwin

package plan

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/policy"
)

// system shows the folders of the system and makes the private ones.
func (r *resolver) system() error {
	if r.p.Policy.Reads.System {
		views, links := r.at.systemViews()
		more, moreLinks := runViews()
		r.link(append(links, moreLinks...)...)
		for _, v := range append(views, more...) {
			r.view(v)
		}
	} else if err := r.scope(); err != nil {
		return err
	}
	for _, c := range r.at.Holes {
		r.cover(c)
	}
	// Homes may lie anywhere, also in a folder that is shown.
	for _, h := range r.homes {
		r.cover(h.Path)
	}
	write := r.p.Policy.Profile == policy.WorkspaceWrite
	memory, err := memoryBytes()
	if err != nil {
		return err
	}
	// room is a share of the memory, all of which together leave some of it.
	room := func(share int64) int64 {
		n := memory / share
		if asked := r.p.Policy.Limits.ScratchBytes; asked > 0 {
			n = min(n, asked)
		}
		return max(n, int64(os.Getpagesize()))
	}
	user := r.at.own("user")
	r.p.Scratch = append(r.p.Scratch,
		Scratch{Path: r.at.Tmp, Mode: 0o1777, Writable: write, Bytes: room(2)},
		Scratch{Path: r.at.Private, Mode: 0o755},
		Scratch{Path: user, Mode: 0o700, Writable: write, Bytes: min(room(2), 256<<20)})
	r.p.ShmBytes = room(4)
	r.p.User, r.p.Home, r.p.Tmp = user, r.p.Workspace.Path, r.at.Tmp
	if r.p.Policy.Home == policy.HomePrivate {
		r.p.Home = r.at.own("home")
		r.p.Scratch = append(r.p.Scratch, Scratch{Path: r.p.Home, Mode: 0o700, Writable: write, Bytes: room(16)})
	}
	if r.at.VarTmp == "" {
		return nil
	}
	if info, err := os.Lstat(r.at.VarTmp); err == nil && info.IsDir() {
		r.p.Scratch = append(r.p.Scratch, Scratch{Path: r.at.VarTmp, Mode: 0o1777, Writable: write, Bytes: room(16)})
	}
	return nil
}

// scope shows exactly the roots that the policy lists and what the dynamic
// linker needs. Folders above them can be passed, and list nothing else.
func (r *resolver) scope() error {
	for _, path := range r.p.Policy.Reads.Only {
		root, info, err := openRoot(r.expand(path))
		if err != nil {
			return fault.Wrap(fault.SandboxViolation, "the listed root "+quote(path)+" cannot be shown", reason(err)).
				WithHint("take it off the list of reads, or make it")
		}
		if err := r.admit(r.expand(path), root, false); err != nil {
			return err
		}
		r.view(View{Root: root, Origin: Added, File: !info.IsDir()})
		if info.IsDir() {
			r.added = append(r.added, root)
		}
	}
	for _, path := range r.at.Linker {
		info, err := os.Lstat(path)
		if err != nil {
			continue
		}
		if info.Mode()&os.ModeSymlink != 0 {
			if to, err := os.Readlink(path); err == nil {
				r.link(Link{Path: path, To: to})
			}
			continue
		}
		if root, info, err := openRoot(path); err == nil && root.Path == path {
			r.view(View{Root: root, Origin: System, File: !info.IsDir()})
		}
	}
	// The usual links at the top, as far as something of theirs is shown.
	for _, top := range r.at.Links {
		if to, err := os.Readlink(top); err == nil {
			r.link(Link{Path: top, To: to})
		}
	}
	return nil
}

// expand replaces a leading ~/ by the caller's home.
func (r *resolver) expand(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		return filepath.Join(r.host.Home, rest)
	}
	return path
}

// link adds links of the scaffolding; the first of a name stays.
func (r *resolver) link(links ...Link) {
	for _, l := range links {
		if !slices.ContainsFunc(r.p.Links, func(m Link) bool { return m.Path == l.Path }) {
			r.p.Links = append(r.p.Links, l)
		}
	}
}

// cover hides a folder of a system view, unless the policy shows it by name.
func (r *resolver) cover(path string) {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() {
		return
	}
	if slices.ContainsFunc(r.p.Views, func(v View) bool { return v.Path == path && v.Origin != System }) {
		return
	}
	if slices.ContainsFunc(r.p.Views, func(v View) bool { return v.Origin == System && !v.File && inside(path, v.Path) }) {
		r.p.Covers = append(r.p.Covers, path)
	}
}

// systemViews returns the system's folders that are shown, and the links at
// the top such as /bin -> usr/bin.
func (l *Layout) systemViews() ([]View, []Link) {
	var views []View
	var links []Link
	for _, top := range l.Roots {
		info, err := os.Lstat(top)
		if err != nil {
			continue
		}
		if info.Mode()&os.ModeSymlink != 0 {
			if to, err := os.Readlink(top); err == nil {
				links = append(links, Link{Path: top, To: to})
			}
			continue
		}
		root, info, err := openRoot(top)
		if err != nil || root.Path != top || !info.IsDir() && !info.Mode().IsRegular() {
			continue
		}
		// Only what everybody may enter: the caller may hold rights, as root
		// does, that the command must not have.
		if info.Mode().Perm()&0o005 != 0o005 && os.Geteuid() == 0 {
			continue
		}
		views = append(views, View{Root: root, Origin: System, File: !info.IsDir()})
	}
	return views, links
}

// scaffold keeps the folders between a private writable place and a view in it
// from taking writes: they exist only inside, and what was written there would
// be lost without a word.
func (r *resolver) scaffold() {
	for _, s := range slices.Clone(r.p.Scratch) {
		if !s.Writable {
			continue
		}
		for _, v := range r.p.Views {
			target := v.Target()
			if target == s.Path || !inside(target, s.Path) {
				continue
			}
			first, _, deeper := strings.Cut(target[len(s.Path)+1:], "/")
			path := s.Path + "/" + first
			if deeper && !slices.ContainsFunc(r.p.Scratch, func(x Scratch) bool { return x.Path == path }) {
				r.p.Scratch = append(r.p.Scratch, Scratch{Path: path, Mode: 0o755, Bytes: 1 << 20})
			}
		}
	}
}

// ShowCache shows a folder of Tether's own state as the private cache.
func (p *Plan) ShowCache(dir string) error {
	root, _, err := openRoot(dir)
	if err != nil {
		return err
	}
	at := Private + "/cache"
	v := View{Root: root, At: at, Origin: Cache, Writable: true}
	if p.InPlace {
		v.At, at = "", root.Path
	}
	p.Views = append(p.Views, v)
	p.Cache, p.CacheDir = at, root.Path
	return nil
}

// ShowFile shows a single file or folder read-only, if it exists and is not
// shown already.
func (p *Plan) ShowFile(path string) {
	root, info, err := openRoot(path)
	if err != nil || !info.IsDir() && !info.Mode().IsRegular() {
		return
	}
	if slices.ContainsFunc(p.Views, func(v View) bool { return v.At == "" && inside(root.Path, v.Path) }) {
		return
	}
	p.Views = append(p.Views, View{Root: root, Origin: Added, File: !info.IsDir(), NoExec: true})
}
