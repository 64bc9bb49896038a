//go:build linux || darwin

package local

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/plan"
	"github.com/tether-sandbox/tether/internal/plan/gitmeta"
	"github.com/tether-sandbox/tether/internal/plan/secrets"
	"github.com/tether-sandbox/tether/policy"
)

// record is what is remembered of a workspace before a command, so that what
// cannot be prevented is found: by us when the command has settled, or, if we
// died, by whoever comes next.
type record struct {
	remembered
	// dead is what runs that died had left, and what was done about it.
	dead []gitmeta.Finding
	// early is what was done while the command ran.
	early []gitmeta.Finding

	file *os.File // locked as long as we live; nil when nothing is watched
	name string   // of file

	// look walks with what is known of a root; nil where nothing is.
	look func(context.Context, string, secrets.Rules) (secrets.Found, error)
}

// remembered is a record as it is stored. Names of files are bytes, which the
// strings of JSON cannot hold.
type remembered struct {
	Begin     time.Time          `json:"begin"`
	Roots     [][]byte           `json:"roots"`
	Snapshots []gitmeta.Snapshot `json:"snapshots"`
	// Tether says which of the roots had a .tether folder.
	Tether [][]byte `json:"tether,omitempty"`
	// Masked are folders that were hidden whole; no command saw into them.
	Masked []masked `json:"masked,omitempty"`
	// Locked are the files and folders with locked names that were there.
	Locked [][]byte `json:"locked,omitempty"`
	// Links are the symbolic links that were in git directories, see linkTo,
	// Repos the entries of the repositories.
	Links [][]byte `json:"links,omitempty"`
	Repos [][]byte `json:"repos,omitempty"`
	// AnyMode says that the command could make files with set-id bits: no filter
	// refused them.
	AnyMode bool `json:"any_mode,omitempty"`
	// Held are the places whose content was locked.
	Held []held `json:"held,omitempty"`
}

// masked is a folder that was hidden whole, and which one it was.
type masked struct {
	Path []byte `json:"path"`
	Dev  uint64 `json:"dev"`
	Ino  uint64 `json:"ino"`
}

// anyMode says whether no filter keeps a command from making files that lend their
// owner's rights. The filters leave set-group-id bits to ordinary users.
func anyMode(p *plan.Plan, kind enforce.Kind) bool {
	return p.Policy.Nested || kind == enforce.Unconfined || kind == enforce.Guard || kind == enforce.Seatbelt
}

// takeSnapshot settles what a run that died left behind, then records what
// stands now.
func takeSnapshot(p *plan.Plan, kind enforce.Kind) (*record, error) {
	r := &record{remembered: remembered{Begin: time.Now(), AnyMode: anyMode(p, kind)}}
	if p.Policy.Profile != policy.WorkspaceWrite {
		return r, nil
	}
	var err error
	if r.dead, err = settleDead(p); err != nil {
		return r, err
	}
	for _, v := range p.Views {
		if v.Writable && !v.File && (v.Origin == plan.Workspace || v.Origin == plan.Added) {
			r.Roots = append(r.Roots, []byte(v.Path))
		}
	}
	for _, root := range r.Roots {
		var repos []gitmeta.Repo
		for _, repo := range p.Repos {
			if repo.Workspace == string(root) {
				repos = append(repos, repo)
			}
		}
		s, err := gitmeta.Take(string(root), repos)
		if err != nil {
			return r, err
		}
		r.Snapshots = append(r.Snapshots, s)
		if _, err := os.Lstat(filepath.Join(string(root), tetherFolder)); err == nil {
			r.Tether = append(r.Tether, root)
		}
	}
	for i := range p.Masks {
		if m := &p.Masks[i]; m.Kind == secrets.MaskDir && m.Ino != 0 {
			r.Masked = append(r.Masked, masked{[]byte(m.Path), m.Dev, m.Ino})
		}
	}
	for _, path := range p.Found.Locked {
		r.Locked = append(r.Locked, []byte(path))
	}
	for _, path := range p.Found.GitLinks {
		if to, err := os.Readlink(path); err == nil {
			r.Links = append(r.Links, linkTo(path, to))
		}
	}
	for _, repo := range p.Repos {
		r.Repos = append(r.Repos, []byte(repo.Entry))
	}
	r.Held = heldOf(p)
	return r, r.save(p)
}

// tetherFolder is the policy folder of a workspace.
const tetherFolder = ".tether"

func pendingDir(p *plan.Plan) string { return filepath.Join(p.StateDir, "pending", workspaceKey(p)) }

// save writes the record and keeps it locked.
func (r *record) save(p *plan.Plan) error {
	bad := func(err error) error {
		return fault.Wrap(fault.SandboxUnavailable, "cannot record the state before the command", err).
			WithHint("make " + filepath.Dir(p.StateDir) + " writable, or set XDG_STATE_HOME")
	}
	dir := pendingDir(p)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return bad(err)
	}
	// Complete and locked before it has the name that others look for: they
	// would take it for one of a run that died.
	f, err := os.CreateTemp(dir, "new-*.json")
	if err != nil {
		return bad(err)
	}
	r.name = filepath.Join(dir, "run"+strings.TrimPrefix(filepath.Base(f.Name()), "new"))
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		err = json.NewEncoder(f).Encode(r.remembered)
	}
	if err == nil {
		err = os.Rename(f.Name(), r.name)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		f.Close()
		return bad(err)
	}
	r.file = f
	return nil
}

// settle finds and neutralises what the command left that the host would run.
// Findings are true beside an error.
func (r *record) settle(p *plan.Plan) ([]gitmeta.Finding, error) {
	secrets.Prune(p.VerdictDir(), time.Now()) // here, where no command waits for it
	if r.file == nil {
		return r.dead, nil
	}
	found, err := r.inspect(p)
	if err == nil {
		_ = os.Remove(r.name)
	}
	r.file.Close()
	return append(append(r.dead, r.early...), found...), err
}

// drop forgets the record of a command that did not run.
func (r *record) drop() {
	if r.file != nil {
		_ = os.Remove(r.name)
		r.file.Close()
	}
}

func (r *record) inspect(p *plan.Plan) ([]gitmeta.Finding, error) {
	var all []gitmeta.Finding
	var errs []error
	for i := range r.Roots {
		found, err := r.inspectRoot(p, i)
		all, errs = append(all, found...), append(errs, err)
	}
	return all, errors.Join(errs...)
}

// inspectRoot settles one of the roots. What fails for git does not keep the
// rest from being looked at.
func (r *record) inspectRoot(p *plan.Plan, i int) ([]gitmeta.Finding, error) {
	root, quarantine := string(r.Roots[i]), filepath.Join(p.StateDir, "quarantine")
	if err := gitmeta.Reachable(root); err != nil {
		return nil, fault.Wrap(fault.FileFailed, "what the command left could not be looked at: "+strconv.Quote(root)+" is no folder any more, or is reached by a link", err).
			WithHint("ls -ld " + root)
	}
	rules := laterRules()
	rules.Since, rules.Files = r.Begin.Add(-tick).UnixNano(), r.AnyMode
	seen, err := r.walk(root, rules)
	if err != nil {
		return nil, err
	}
	s := p.GitSearch
	s.Workspace, s.GitEntries, s.Bare = root, seen.With(secrets.Git), seen.With(secrets.Bare)
	var all []gitmeta.Finding
	repos, errGit := gitmeta.Discover(s)
	if errGit == nil {
		all, errGit = gitmeta.Settle(r.Snapshots[i], repos, quarantine)
	}
	over, errOver := gitmeta.TakeAway(root, r.takenOver(root, &seen), quarantine)
	all = append(all, over...)
	links, errLinks := r.takeLinks(root, &seen, repos, all, quarantine)
	all = append(append(all, links...), r.newRepos(root, repos)...)
	for _, common := range r.Snapshots[i].Commons {
		links, err := r.commonLinks(common, quarantine)
		all, errLinks = append(all, links...), errors.Join(errLinks, err)
	}
	all = append(append(all, strip(&seen, p.Identity)...), r.outLinks(root, &seen)...)
	later, err := r.later(root, &seen, quarantine)
	return bounded(root, append(all, later...)), errors.Join(errGit, errOver, errLinks, err)
}

// laterRules mark what runs later on the host, and what is locked.
func laterRules() secrets.Rules {
	return secrets.Rules{Key: "later", Path: func(rel []byte, t secrets.Type) secrets.Mark {
		if policy.LaterKind(rel) != "" || policy.LockedName(base(rel)) || t == secrets.Symlink && policy.LaterFolder(base(rel)) {
			return secrets.Locked
		}
		return 0
	}}
}

// takeLinks takes away the links that gitLinks finds, but for those that went
// already, by themselves or with a folder around them.
func (r *record) takeLinks(root string, seen *secrets.Found, repos []gitmeta.Repo, done []gitmeta.Finding, quarantine string) ([]gitmeta.Finding, error) {
	var dirs []string
	for _, repo := range repos {
		dirs = append(dirs, repo.GitDir, repo.CommonDir)
	}
	dirs = slices.DeleteFunc(dirs, func(d string) bool { return !strings.HasPrefix(d, root+"/") })
	links := slices.DeleteFunc(r.gitLinks(root, seen, dirs), func(l gitmeta.Finding) bool {
		return slices.ContainsFunc(done, func(f gitmeta.Finding) bool {
			return f.Path == l.Path || f.Action != gitmeta.Reported && strings.HasPrefix(l.Path, f.Path+"/")
		})
	})
	return gitmeta.TakeAway(root, links, quarantine)
}

// commonLinks takes away the links that the command made in a git directory
// outside of the workspace, which the workspace is a worktree of.
func (r *record) commonLinks(common, quarantine string) ([]gitmeta.Finding, error) {
	seen, err := r.walk(common, secrets.Rules{Since: r.Begin.Add(-tick).UnixNano()})
	if err != nil {
		return nil, nil // nothing is left of it, or git cannot read it either
	}
	seen.Entries = slices.DeleteFunc(seen.Entries, func(e secrets.Entry) bool { return e.Marks&secrets.Changed == 0 })
	return gitmeta.TakeAway(common, r.gitLinks(common, &seen, []string{common}), quarantine)
}

// walk looks through a root. git works in a folder that nobody can list, so
// what the command closed gets its owner's permissions back first.
func (r *record) walk(root string, rules secrets.Rules) (secrets.Found, error) {
	// The command's end must not depend on how patient the caller still is.
	look := func() (secrets.Found, error) {
		if r.look != nil {
			return r.look(context.Background(), root, rules)
		}
		return secrets.Walk(context.Background(), root, rules)
	}
	hidden := r.hidden()
	keep := func(dev, ino uint64) bool {
		return slices.ContainsFunc(r.Masked, func(m masked) bool { return m.Dev == dev && m.Ino == ino })
	}
	seen, err := look()
	closed := []string{root}
	if err == nil {
		closed = seen.With(secrets.Unreadable)
	} else if !errors.Is(err, unix.EACCES) {
		return seen, err
	}
	if len(closed) > 0 && gitmeta.OpenUp(root, closed, keep) {
		seen, err = look()
	}
	if err != nil {
		return seen, err
	}
	// The same folders as before the command, which saw into none of them.
	seen.Entries = slices.DeleteFunc(seen.Entries, func(e secrets.Entry) bool {
		return slices.ContainsFunc(hidden, func(dir string) bool { return e.Path == dir || strings.HasPrefix(e.Path, dir+"/") })
	})
	return seen, nil
}

// hidden lists the folders that were hidden whole and are still where they were.
func (r *record) hidden() []string {
	var out []string
	for _, m := range r.Masked {
		var st unix.Stat_t
		if unix.Lstat(string(m.Path), &st) == nil && uint64(st.Dev) == m.Dev && st.Ino == m.Ino {
			out = append(out, string(m.Path))
		}
	}
	return out
}

func base(rel []byte) []byte {
	for i := len(rel) - 1; i >= 0; i-- {
		if rel[i] == '/' {
			return rel[i+1:]
		}
	}
	return rel
}
