package plan

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/policy"
)

// holes are the parts of the system's folders that hold other people's or other
// programs' private state, or their sockets. /var/tmp gets a private folder.
var holes = [...]string{"/var/run", "/var/lock", "/var/spool", "/var/mail", "/var/backups", "/var/crash",
	"/var/cache/private", "/var/lib/private", "/var/lib/systemd/coredump", "/var/lib/docker", "/var/lib/containerd",
	"/var/lib/containers"}

// Places inside that exist in no view.
const (
	gitConfig = Private + "/gitconfig"
	cacheDir  = Private + "/cache"
	homeDir   = Private + "/home"
	userDir   = Private + "/user"
)

// system shows the folders of the system and makes the private ones.
func (r *resolver) system() error {
	if r.p.Policy.Reads.System {
		views, links := systemViews()
		more, moreLinks := runViews()
		r.link(append(links, moreLinks...)...)
		for _, v := range append(views, more...) {
			r.view(v)
		}
	} else if err := r.scope(); err != nil {
		return err
	}
	for _, c := range holes {
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
	r.p.Scratch = append(r.p.Scratch,
		Scratch{Path: "/tmp", Mode: 0o1777, Writable: write, Bytes: room(2)},
		Scratch{Path: Private, Mode: 0o755},
		Scratch{Path: userDir, Mode: 0o700, Writable: write, Bytes: min(room(2), 256<<20)})
	r.p.ShmBytes = room(4)
	r.p.User, r.p.Home = userDir, r.p.Workspace.Path
	if r.p.Policy.Home == policy.HomePrivate {
		r.p.Home = homeDir
		r.p.Scratch = append(r.p.Scratch, Scratch{Path: homeDir, Mode: 0o700, Writable: write, Bytes: room(16)})
	}
	if info, err := os.Lstat("/var/tmp"); err == nil && info.IsDir() {
		r.p.Scratch = append(r.p.Scratch, Scratch{Path: "/var/tmp", Mode: 0o1777, Writable: write, Bytes: room(16)})
	}
	return nil
}

// memoryBytes is how much memory the machine has.
func memoryBytes() (int64, error) {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 0, fault.Wrap(fault.SandboxUnavailable, "cannot tell how much memory there is", err)
	}
	return int64(info.Totalram) * int64(info.Unit), nil
}

// linker is what the dynamic linker needs to start a program at all.
var linker = [...]string{"/lib", "/lib32", "/lib64", "/libx32", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libx32",
	"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d"}

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
	for _, path := range linker {
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
	for _, top := range [...]string{"/bin", "/sbin"} {
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
func systemViews() ([]View, []Link) {
	var views []View
	var links []Link
	// /sys is not a root of the policy: it is the machine's own, and read-only
	// whatever it says.
	for _, top := range append(policy.SystemRoots(), "/sys") {
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
		if err != nil || !info.IsDir() || root.Path != top {
			continue
		}
		// Only what everybody may enter: the caller may hold rights, as root
		// does, that the command must not have.
		if info.Mode().Perm()&0o005 != 0o005 && os.Geteuid() == 0 {
			continue
		}
		views = append(views, View{Root: root, Origin: System})
	}
	return views, links
}

// runViews are the few things under /run that programs need: the file that
// resolv.conf leads to, and NixOS's current system.
func runViews() ([]View, []Link) {
	var views []View
	var links []Link
	if root, info, err := openRoot("/etc/resolv.conf"); err == nil && info.Mode().IsRegular() &&
		!inside(root.Path, "/etc") {
		views = append(views, View{Root: root, Origin: System, File: true, NoExec: true})
		links = append(links, linksBetween("/etc/resolv.conf", root.Path)...)
	}
	if to, err := os.Readlink("/run/current-system"); err == nil && strings.HasPrefix(to, "/nix/") {
		links = append(links, Link{Path: "/run/current-system", To: to})
	}
	return views, links
}

// linksBetween returns the links outside of /etc that lie on the way from path
// to its target, so that the way exists inside as well.
func linksBetween(path, target string) []Link {
	var links []Link
	for range 8 {
		to, err := os.Readlink(path)
		if err != nil {
			break
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(path), to)
		}
		path = filepath.Clean(to)
		if next, err := os.Readlink(path); err == nil && path != target && !inside(path, "/etc") {
			links = append(links, Link{Path: path, To: next})
		}
	}
	return links
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
	p.Views = append(p.Views, View{Root: root, At: cacheDir, Origin: Cache, Writable: true})
	p.Cache, p.CacheDir = cacheDir, root.Path
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
