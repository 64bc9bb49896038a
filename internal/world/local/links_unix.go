//go:build linux || darwin

package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tether-sandbox/tether/internal/plan"
	"github.com/tether-sandbox/tether/internal/plan/gitmeta"
	"github.com/tether-sandbox/tether/internal/plan/secrets"
)

// gitLinks finds the links that appeared where git reads and writes: the git
// directories that the walk of root saw, and those of dirs. Through one the
// user's own git would write wherever it leads, a message or a reflog of the
// command's wording. HEAD as a link to a branch is an old form of its own, and
// nothing is written through it.
func (r *record) gitLinks(root string, seen *secrets.Found, dirs []string) []gitmeta.Finding {
	var out []gitmeta.Finding
	for _, e := range seen.Entries {
		if e.Type != secrets.Symlink || inTether(root, e.Path) {
			continue
		}
		// One in a git directory that has not changed and was not there came with a
		// folder that was moved.
		in := e.Marks&secrets.GitLink != 0 ||
			e.Marks&secrets.Changed != 0 && slices.ContainsFunc(dirs, func(d string) bool { return strings.HasPrefix(e.Path, d+"/") })
		to, err := os.Readlink(e.Path)
		if !in || slices.ContainsFunc(r.Links, func(l []byte) bool { return string(l) == string(linkTo(e.Path, to)) }) {
			continue
		}
		if err == nil && filepath.Base(e.Path) == "HEAD" && strings.HasPrefix(to, "refs/") && filepath.Clean(to) == to {
			continue
		}
		out = append(out, gitmeta.Finding{Path: e.Path, Kind: gitmeta.KindLink,
			What: "a link in a git directory, through which git would write to " + strconv.Quote(to)})
	}
	return out
}

// linkTo is a link as a record remembers it: where it lies and where it leads.
func linkTo(path, to string) []byte { return []byte(path + "\x00" + to) }

// outLinks finds the links, made by the command, that lead out of the roots.
func (r *record) outLinks(root string, seen *secrets.Found) []gitmeta.Finding {
	var out []gitmeta.Finding
	for _, e := range seen.Entries {
		if e.Type != secrets.Symlink || e.Marks&secrets.Changed == 0 || e.Marks&secrets.GitLink != 0 || inTether(root, e.Path) {
			continue
		}
		if to, outside := r.leadsOut(e.Path); outside {
			out = append(out, gitmeta.Finding{Path: e.Path, Kind: gitmeta.KindSymlink,
				What: "a link that leads out of the workspace, to " + strconv.Quote(to), Action: gitmeta.Reported})
		}
	}
	return out
}

// leadsOut says where a link leads, and whether that is outside of the roots, by
// what it says or by the links on its way. A root's path has no links in it.
func (r *record) leadsOut(link string) (to string, outside bool) {
	said, err := os.Readlink(link)
	if err != nil {
		return "", false // gone
	}
	if to = said; !filepath.IsAbs(to) {
		to = filepath.Join(filepath.Dir(link), to)
	}
	return said, !r.inRoots(filepath.Clean(to)) || !r.inRoots(resolved(to))
}

func (r *record) inRoots(path string) bool {
	return slices.ContainsFunc(r.Roots, func(root []byte) bool {
		return path == string(root) || strings.HasPrefix(path, string(root)+"/")
	})
}

// resolved is a path without links, as far as it exists.
func resolved(path string) string {
	rest := ""
	for at := path; at != "/" && at != "."; at = filepath.Dir(at) {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(real, rest)
		}
		rest = filepath.Join(filepath.Base(at), rest)
	}
	return path
}

// errNotTheirs: no command gives bits to what another user owns. It can only move
// it about, and the file may have names elsewhere, which would lose them as well.
var errNotTheirs = errors.New("another user owns it")

// strip takes the bits that lend rights, and capabilities, from the files that
// the walk marked, if the command's user owns them.
func strip(seen *secrets.Found, id plan.Identity) []gitmeta.Finding {
	uid := id.HostUID
	if id.Idmapped {
		uid = 0 // its new files are root's
	}
	var out []gitmeta.Finding
	for _, e := range seen.Entries {
		if e.Marks&secrets.SetID == 0 {
			continue
		}
		f := gitmeta.Finding{Path: e.Path, Kind: gitmeta.KindSetID, What: "a file that lends its owner's rights to whoever starts it", Action: gitmeta.Stripped}
		if err := stripOne(e.Path, uid); err != nil {
			f.Action, f.What = gitmeta.Reported, f.What+fmt.Sprintf("; the bits could not be taken from it: %v", err)
		}
		out = append(out, f)
	}
	return out
}

// newRepos finds the repositories that were not there before.
func (r *record) newRepos(root string, repos []gitmeta.Repo) []gitmeta.Finding {
	var out []gitmeta.Finding
	for _, repo := range repos {
		at := repo.Entry
		if repo.Kind == gitmeta.Parent || !strings.HasPrefix(at, root+"/") ||
			slices.ContainsFunc(r.Repos, func(known []byte) bool { return string(known) == at }) ||
			slices.ContainsFunc(repos, func(o gitmeta.Repo) bool {
				return strings.HasPrefix(at, o.GitDir+"/") && o.GitDir != "" && o.Entry != at
			}) {
			continue
		}
		out = append(out, gitmeta.Finding{Path: at, Kind: gitmeta.KindRepository, What: "a git repository that was not there", Action: gitmeta.Reported})
	}
	return out
}
