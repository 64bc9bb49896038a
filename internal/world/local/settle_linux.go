package local

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
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
	Begin     time.Time          `json:"begin"`
	Roots     []string           `json:"roots"`
	Snapshots []gitmeta.Snapshot `json:"snapshots"`
	// Tether says which of the roots had a .tether folder.
	Tether []string `json:"tether,omitempty"`
	// Closed are folders that nobody could search then; they were hidden.
	Closed []string `json:"closed,omitempty"`

	file *os.File // locked as long as we live; nil when nothing is watched
	name string   // of file
	dir  string   // Tether's own state
	uid  uint32
}

// takeSnapshot settles what a run that died left behind, then records what
// stands now.
func takeSnapshot(p *plan.Plan, kind enforce.Kind) (*record, error) {
	r := &record{Begin: time.Now(), dir: p.StateDir, Closed: p.Found.Unreadable}
	if p.Policy.Profile != policy.WorkspaceWrite {
		return r, nil
	}
	for _, v := range p.Views {
		if v.Writable && !v.File && (v.Origin == plan.Workspace || v.Origin == plan.Added) {
			r.Roots = append(r.Roots, v.Path)
		}
	}
	if err := settleDead(p); err != nil {
		return r, err
	}
	for _, root := range r.Roots {
		var repos []gitmeta.Repo
		for _, repo := range p.Repos {
			if repo.Workspace == root {
				repos = append(repos, repo)
			}
		}
		s, err := gitmeta.Take(root, repos)
		if err != nil {
			return r, err
		}
		r.Snapshots = append(r.Snapshots, s)
		if _, err := os.Lstat(filepath.Join(root, ".tether")); err == nil {
			r.Tether = append(r.Tether, root)
		}
	}
	_ = kind
	return r, r.save(p)
}

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
		err = json.NewEncoder(f).Encode(r)
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
func (r *record) settle(p *plan.Plan) ([]gitmeta.Finding, error) {
	if r.file == nil {
		return nil, nil
	}
	found, err := r.inspect(p)
	if err == nil {
		_ = os.Remove(r.name)
	}
	r.file.Close()
	return found, err
}

// drop forgets the record of a command that did not run.
func (r *record) drop() {
	if r.file != nil {
		_ = os.Remove(r.name)
		r.file.Close()
	}
}

// forget drops the record of a command that never ran: it left nothing.
func (r *record) forget() {
	if r.file != nil {
		_ = os.Remove(r.file.Name())
		r.file.Close()
	}
}

func (r *record) inspect(p *plan.Plan) ([]gitmeta.Finding, error) {
	var all []gitmeta.Finding
	var errs []error
	quarantine := filepath.Join(p.StateDir, "quarantine")
	for i, root := range r.Roots {
		rules := secrets.Rules{Path: func(rel []byte, _ secrets.Type) secrets.Mark {
			if policy.RunsLater(string(rel)) || policy.LockedName(base(rel)) {
				return secrets.Locked
			}
			return 0
		}}
		seen, err := r.walk(root, rules)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		s := p.GitSearch
		s.Workspace, s.GitEntries, s.Bare = root, seen.With(secrets.Git), seen.With(secrets.Bare)
		repos, err := gitmeta.Discover(s)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		findings, err := gitmeta.Settle(r.Snapshots[i], repos, quarantine)
		all, errs = append(all, findings...), append(errs, err)
		later, err := r.later(root, seen.With(secrets.Locked), quarantine)
		all, errs = append(all, later...), append(errs, err)
	}
	return all, errors.Join(errs...)
}

// walk looks through a root. git works in a folder that nobody can list, so
// what the command closed gets its owner's permissions back first.
func (r *record) walk(root string, rules secrets.Rules) (secrets.Found, error) {
	mine := os.Geteuid() != 0 // root sees through them
	if info, err := os.Lstat(root); mine && err == nil && info.IsDir() && info.Mode().Perm()&0o700 != 0o700 {
		_ = os.Chmod(root, info.Mode()|0o700)
	}
	// The command's end must not depend on how patient the caller still is.
	seen, err := secrets.Walk(context.Background(), root, rules)
	if err != nil || !mine {
		return seen, err
	}
	again := false
	for _, path := range seen.With(secrets.Unreadable) {
		if !slices.Contains(r.Closed, path) {
			openUp(path)
			again = true
		}
	}
	if again {
		return secrets.Walk(context.Background(), root, rules)
	}
	return seen, nil
}

// openUp gives the owner's permissions to a folder and all folders in it.
func openUp(dir string) {
	_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return nil // what is not ours stays closed
		}
		if info, err := d.Info(); err == nil && info.Mode().Perm()&0o700 != 0o700 {
			_ = os.Chmod(path, info.Mode()|0o700)
		}
		return nil
	})
}

func base(rel []byte) []byte {
	for i := len(rel) - 1; i >= 0; i-- {
		if rel[i] == '/' {
			return rel[i+1:]
		}
	}
	return rel
}

// later reports files that run later on the host and changed since the command
// began. A .tether folder that appeared is taken away: it would speak for the
// user at the next start.
func (r *record) later(root string, paths []string, quarantine string) ([]gitmeta.Finding, error) {
	var out []gitmeta.Finding
	var errs []error
	for _, path := range paths {
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			continue
		}
		if strings.EqualFold(filepath.Base(path), ".tether") && filepath.Dir(path) == root && !slices.Contains(r.Tether, root) {
			to, err := moveAway(path, quarantine)
			out = append(out, gitmeta.Finding{Path: path, What: "a policy folder that the command made",
				Action: gitmeta.Quarantined, QuarantinedTo: to})
			errs = append(errs, err)
			continue
		}
		if st.Mode&unix.S_IFMT == unix.S_IFDIR || time.Unix(st.Ctim.Unix()).Before(r.Begin.Add(-tick)) {
			continue
		}
		out = append(out, gitmeta.Finding{Path: path, What: "runs later on the host", Action: gitmeta.Reported})
	}
	return out, errors.Join(errs...)
}

// tick is how far a file's time may lie behind the clock: file systems stamp
// with the time of the last timer tick.
const tick = 20 * time.Millisecond

// moveAway renames path into a fresh folder of the quarantine.
func moveAway(path, quarantine string) (string, error) {
	if err := os.MkdirAll(quarantine, 0o700); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(quarantine, "tether-*")
	if err != nil {
		return "", err
	}
	to := filepath.Join(dir, filepath.Base(path))
	err = os.Rename(path, to)
	if errors.Is(err, syscall.EXDEV) {
		// Another file system: what matters is that it is gone from here.
		if err = os.CopyFS(to, os.DirFS(path)); err == nil {
			err = os.RemoveAll(path)
		}
	}
	if err != nil {
		return "", fault.Wrap(fault.Internal, "cannot quarantine "+path, err)
	}
	return to, nil
}

// settleDead settles the runs on this workspace that died before they could.
func settleDead(p *plan.Plan) error {
	names, err := filepath.Glob(filepath.Join(pendingDir(p), "run-*.json"))
	if err != nil {
		return err
	}
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			continue
		}
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
			f.Close() // its run is alive
			continue
		}
		if _, err := os.Lstat(name); err != nil {
			f.Close() // it was alive when we opened it, and has settled since
			continue
		}
		r := record{file: f}
		if json.NewDecoder(f).Decode(&r) == nil && len(r.Snapshots) == len(r.Roots) {
			findings, err := r.inspect(p)
			for _, found := range findings {
				p.Notes = append(p.Notes, plan.Note{What: "left by a run that died: " + found.Path + ": " + found.What + ", " + found.Action})
			}
			if err != nil {
				f.Close()
				return err
			}
		}
		_ = os.Remove(name)
		f.Close()
	}
	return removeUnfinished(pendingDir(p))
}

// removeUnfinished removes records of runs that died while they wrote them.
func removeUnfinished(dir string) error {
	const long = time.Minute // nobody takes so long to write one
	names, err := filepath.Glob(filepath.Join(dir, "new-*.json"))
	if err != nil {
		return err
	}
	for _, name := range names {
		if info, err := os.Lstat(name); err == nil && time.Since(info.ModTime()) > long {
			_ = os.Remove(name)
		}
	}
	return nil
}
