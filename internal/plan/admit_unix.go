//go:build linux || darwin

package plan

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tether-sandbox/tether/fault"
)

// admit says whether the policy may show root, which path led to.
func (r *resolver) admit(path string, root Root, write bool) error {
	bad := func(why, hint string) error {
		return fault.New(fault.SandboxViolation, quote(path)+" cannot be an added root: "+why).WithHint(hint)
	}
	if root.is("/") {
		return bad("it is the whole machine", "name the folders that the command needs")
	}
	for _, m := range r.at.Made {
		// Single folders of /dev, such as its shared memory, may be shown.
		if inside(m, root.Path) || m != "/dev" && inside(root.Path, m) {
			return bad("the sandbox has "+m+" of its own", "name the folders that the command needs")
		}
	}
	if dir := hiddenFolder(root.Path); dir != "" {
		return bad(quote(dir)+" is hidden, and no flag or policy shows what is in it", "copy what the command needs to another place")
	}
	if write && r.holdsOwn(root) {
		return bad("Tether's own files lie in it", "name a folder below it")
	}
	for _, dir := range []string{r.host.StateDir, r.host.ConfigDir} {
		if real, err := filepath.EvalSymlinks(dir); err == nil && inside(root.Path, real) {
			return bad("it is one of Tether's own files", "name a folder outside of "+quote(real))
		}
	}
	if link := r.leadsOut(path, root); link != "" {
		return bad("the link "+quote(link)+", which a command may have made, leads to "+quote(root.Path),
			"name "+quote(root.Path)+" itself, if that is what you mean")
	}
	return nil
}

// holdsOwn says whether Tether's own folders, or a link to them, lie in root.
// They need not exist.
func (r *resolver) holdsOwn(root Root) bool {
	for _, dir := range []string{r.host.StateDir, r.host.ConfigDir} {
		if slices.ContainsFunc(linksOn(dir), func(link string) bool { return inside(link, root.Path) }) {
			return true
		}
		for dir = filepath.Clean(dir); filepath.IsAbs(dir); dir = filepath.Dir(dir) {
			real, err := filepath.EvalSymlinks(dir)
			if err == nil {
				if inside(real, root.Path) {
					return true
				}
				break
			}
			if dir == "/" {
				break
			}
		}
	}
	return false
}

// leadsOut returns the link by which path leaves a folder that commands may
// write: they decide where it leads.
func (r *resolver) leadsOut(path string, root Root) string {
	for _, link := range linksOn(path) {
		for _, v := range r.p.Views {
			if v.Writable && inside(filepath.Dir(link), v.Path) && !inside(root.Path, v.Path) {
				return link
			}
		}
	}
	return ""
}

// linksOn returns the symbolic links that an absolute path leads through, each
// at its canonical place.
func linksOn(path string) []string {
	var links []string
	at, rest := "/", filepath.Clean(path)
	for rest != "" && len(links) <= 40 {
		var name string
		name, rest, _ = strings.Cut(strings.TrimLeft(rest, "/"), "/")
		if name == ".." {
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, name)
		to, err := os.Readlink(next)
		if err != nil {
			at = next
			continue
		}
		links = append(links, next)
		if filepath.IsAbs(to) {
			at = "/"
		}
		rest = to + "/" + rest
	}
	return links
}
