//go:build linux || darwin

package plan

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/plan/gitmeta"
	"github.com/tether-sandbox/tether/internal/plan/secrets"
	"github.com/tether-sandbox/tether/policy"
)

// search begins to look for hidden files in the workspace and in every root that
// the policy adds, beside what a plan takes besides.
func (r *resolver) search() error {
	rules, err := secrets.RulesOf(r.p.Policy.Protect)
	if err != nil {
		return err
	}
	roots := []secrets.Root{{Path: r.p.Workspace.Path}}
	for _, a := range r.added {
		roots = append(roots, secrets.Root{Path: a.Path})
	}
	// To name a single file is no way around its name.
	for _, v := range r.p.Views {
		if v.Origin == Added && v.File {
			roots = append(roots, secrets.Root{Path: v.Path})
		}
	}
	ctx, known, verdicts := r.ctx, r.host.Known, r.p.VerdictDir()
	var found secrets.Result
	done := make(chan struct{})
	go func() {
		defer close(done)
		// Without the folder nothing is remembered, and all is found again.
		_ = os.MkdirAll(verdicts, 0o700)
		cache := secrets.OpenCache(verdicts)
		if found, err = known.Find(ctx, roots, rules, cache); err == nil {
			_ = cache.Save() // a verdict that cannot be remembered is found again
		}
	}()
	r.searched = func() (secrets.Result, error) {
		<-done
		return found, err
	}
	return nil
}

// protected decides what must stay closed or unchanged.
func (r *resolver) protected() error {
	found, err := r.searched()
	if err != nil {
		return err
	}
	r.p.Found = found
	r.p.Masks = append(r.p.Masks, found.Masks...)
	if err := r.named(); err != nil {
		return err
	}
	r.p.Sockets = append(r.p.Sockets, found.Sockets...)
	r.p.Sockets = append(r.p.Sockets, r.hostSockets()...)

	if err := r.git(found); err != nil {
		return err
	}
	for _, path := range found.Locked {
		r.lock(path)
	}
	r.own()
	r.pinViews()
	if err := r.aliases(); err != nil {
		return err
	}
	if err := r.identify(); err != nil {
		return err
	}
	r.shorten()
	slices.SortStableFunc(r.p.Locks, func(a, b Lock) int { return cmp.Compare(sortKey(a.Path), sortKey(b.Path)) })
	for _, path := range found.TrackedSecrets {
		r.note("git tracks the hidden file "+quote(path)+" and keeps its content in its history, where no mask reaches",
			"git rm --cached "+quote(path))
	}
	for _, path := range found.Unreadable {
		r.note("the folder "+quote(path)+" cannot be searched and is hidden whole", "")
	}
	return nil
}

// named refuses to show by name what is hidden all the same: whoever asks for a
// file must not find out by reading nothing from it.
func (r *resolver) named() error {
	if r.p.Policy.Profile == policy.FullAccess {
		return nil // nothing is hidden there
	}
	for _, v := range r.p.Views {
		if v.Origin == Added && slices.ContainsFunc(r.p.Masks, func(m secrets.Mask) bool { return inside(v.Path, m.Path) }) {
			return fault.New(fault.SandboxViolation, quote(v.Path)+" is hidden, because of its name or what it holds, and no flag or policy shows it")
		}
	}
	return nil
}

// sortKey makes parents come right before what they hold.
func sortKey(path string) string { return strings.ReplaceAll(path, "/", "\x00") }

// writable says whether the command may write at path, as far as roots go.
func (r *resolver) writable(path string) bool {
	best, write := -1, false
	for _, v := range r.p.Views {
		if inside(path, v.Path) && len(v.Path) > best {
			best, write = len(v.Path), v.Writable
		}
	}
	return write
}

// git shows and locks what git needs.
func (r *resolver) git(found secrets.Result) error {
	r.p.GitSearch = gitmeta.Search{Home: r.host.Home, Homes: r.host.Homes,
		Host: gitmeta.HostEntries(r.host.Home, r.userConfig())}
	for _, root := range append([]Root{r.p.Workspace}, r.added...) {
		s := r.p.GitSearch
		s.Workspace = root.Path
		for _, e := range found.GitEntries {
			if inside(e.Path, root.Path) {
				s.GitEntries = append(s.GitEntries, e.Path)
			}
		}
		for _, b := range found.BareRepos {
			if inside(b, root.Path) {
				s.Bare = append(s.Bare, b)
			}
		}
		repos, err := gitmeta.Discover(s)
		if err != nil {
			return err
		}
		for _, repo := range repos {
			r.repo(repo)
		}
		r.p.Repos = append(r.p.Repos, repos...)
	}
	r.gitGlobal()
	return nil
}

// userConfig is the folder of the user's configuration.
func (r *resolver) userConfig() string { return filepath.Dir(r.host.ConfigDir) }

// repo shows a repository's git directory where that lies outside, and locks
// everything by which the host's git would run or find something else.
func (r *resolver) repo(repo gitmeta.Repo) {
	write := r.p.Policy.Profile == policy.WorkspaceWrite
	switch {
	case !repo.Verified:
		if repo.Why != "" {
			r.note("git at "+quote(repo.Entry)+" is left as it is: "+repo.Why, "")
		}
	case repo.Kind == gitmeta.Parent:
		r.gitView(repo.CommonDir, false)
		r.gitView(repo.GitDir, false)
		if repo.Entry != repo.GitDir {
			r.gitView(repo.Entry, false)
		}
		r.filterConfig(repo.Config)
		// Between the workspace and the repository lie folders that are ours, and
		// git does not look beyond a file system unless it is told to.
		if !slices.Contains(r.p.Env, gitAcross) {
			r.p.Env = append(r.p.Env, gitAcross)
		}
		r.note("the repository around the workspace, "+quote(repo.Worktree)+", is read-only",
			"tether run -C "+quote(repo.Worktree)+" -- CMD")
	case repo.Kind == gitmeta.Linked || repo.Kind == gitmeta.Submodule:
		r.gitView(repo.CommonDir, write)
		r.gitView(repo.GitDir, write)
	}
	for _, l := range gitmeta.Locks(repo) {
		switch {
		case !l.Exists || l.Kind == gitmeta.Link:
		case l.Kind == gitmeta.File && r.allowedConfig(l.Path):
			if l.Secret {
				// Writable it would be shown as it is.
				r.note(quote(l.Path)+" stays locked: it holds credentials, or what cannot be read", "")
				r.gitLock(l, write)
			}
		default:
			r.gitLock(l, write)
		}
	}
	if repo.Hostile != "" {
		r.note("the configuration of "+quote(repo.Entry)+" is hidden: "+repo.Hostile, "")
	}
}

const gitAcross = "GIT_DISCOVERY_ACROSS_FILESYSTEM=1"

// gitLock keeps a present file or folder of git's from being changed.
func (r *resolver) gitLock(l gitmeta.Lock, write bool) {
	switch {
	case l.Hide:
		kind := secrets.MaskFile
		if l.Kind == gitmeta.Dir {
			kind = secrets.MaskDir
		}
		r.p.Masks = append(r.p.Masks, secrets.Mask{Path: l.Path, Kind: kind, Why: l.Why})
	case l.Replace != nil:
		r.content(l.Path, l.Replace, l.Why)
	case write:
		r.p.Locks = append(r.p.Locks, Lock{Path: l.Path, Writable: l.Pin, Why: l.Why})
	}
}

// gitView shows a git directory that lies outside of every view.
func (r *resolver) gitView(path string, write bool) {
	root, info, err := openRoot(path)
	if err != nil || root.Path != path {
		return
	}
	if slices.ContainsFunc(r.p.Views, func(v View) bool { return v.Origin != System && inside(path, v.Path) && (v.Writable || !write) }) {
		return
	}
	r.view(View{Root: root, Origin: Git, Writable: write, File: !info.IsDir()})
}

// filterConfig shows a configuration without its credentials.
func (r *resolver) filterConfig(path string) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return
	}
	filtered, changed, err := gitmeta.Filtered(raw)
	switch {
	case err != nil:
		r.p.Masks = append(r.p.Masks, secrets.Mask{Path: path, Why: "a git configuration that cannot be read may hold credentials"})
	case changed:
		r.content(path, filtered, "credentials are left out")
	}
}

func (r *resolver) content(path string, content []byte, why string) {
	l := Lock{Path: path, Content: content, Why: why}
	if l.Content == nil {
		l.Content = []byte{}
	}
	if info, err := os.Lstat(path); err == nil {
		l.MTime = info.ModTime().UnixNano()
	}
	r.p.Locks = append(r.p.Locks, l)
}

// gitGlobal prepares the copy of the user's global configuration that git finds
// inside. Its conditions are judged for the repository of the workspace.
func (r *resolver) gitGlobal() {
	var copied []byte
	src := gitmeta.GlobalSource{Home: r.host.Home, Read: readSmall}
	for i := range r.p.Repos {
		if repo := &r.p.Repos[i]; repo.Verified && (repo.Worktree == r.p.Workspace.Path || repo.Kind == gitmeta.Parent) {
			src.GitDir, src.Remotes = repo.GitDir, remotes(repo.Config)
			break
		}
	}
	for _, path := range gitmeta.GlobalFiles(r.host.Home, r.userConfig()) {
		raw, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		src.Path = path
		part, err := gitmeta.GlobalCopy(raw, src)
		if err != nil {
			r.note("git's global file "+quote(path)+" was left out: "+err.Error(), "")
			continue
		}
		copied = append(copied, part...)
	}
	if slices.ContainsFunc(r.p.Masks, func(m secrets.Mask) bool { return m.Kind == secrets.MaskStub }) {
		// A stand-in has the time and size of the tracked file that it hides,
		// and nothing else of it: git must compare no more than that.
		copied = append(copied, "[core]\n\tcheckStat = minimal\n\ttrustctime = false\n"...)
	}
	r.p.GitConfig = r.at.own("gitconfig")
	r.p.Files = append(r.p.Files, File{Path: r.p.GitConfig, Content: copied})
}

// remotes returns the URLs of a configuration's remotes.
func remotes(config string) []string {
	raw, err := readSmall(config)
	if err != nil {
		return nil
	}
	entries, err := gitmeta.Parse(raw)
	if err != nil {
		return nil
	}
	var urls []string
	for _, e := range entries {
		if e.Section == "remote" && e.Key == "url" {
			urls = append(urls, e.Value)
		}
	}
	return urls
}

func readSmall(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > gitmeta.MaxConfig {
		return nil, os.ErrInvalid
	}
	return os.ReadFile(path)
}

// identify notes what lies at each lock, so that nothing else is ever locked,
// or shown, in its place. Locks on one path become one: content beats
// read-only, which beats a pin.
func (r *resolver) identify() error {
	hidden := make(map[string]bool, len(r.p.Masks))
	for i := range r.p.Masks {
		hidden[r.p.Masks[i].Path] = true
	}
	at := make(map[string]int, len(r.p.Locks))
	locks := r.p.Locks[:0]
	for _, l := range r.p.Locks {
		if i, ok := at[l.Path]; ok {
			if locks[i].Content == nil && (l.Content != nil || locks[i].Writable && !l.Writable) {
				l.Dev, l.Ino = locks[i].Dev, locks[i].Ino
				locks[i] = l
			}
			continue
		}
		if hidden[l.Path] && l.Content != nil {
			continue // what is hidden needs no other content
		}
		info, err := statFixed(l.Path)
		if err != nil {
			return fmt.Errorf("%w: %s: %w", ErrChanged, quote(l.Path), reason(err))
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok || info.Mode()&os.ModeSymlink != 0 {
			return fmt.Errorf("%w: %s became a link", ErrChanged, quote(l.Path))
		}
		l.Dev, l.Ino = uint64(st.Dev), st.Ino
		at[l.Path] = len(locks)
		locks = append(locks, l)
	}
	r.p.Locks = locks
	return nil
}

// longest is how long a path may be that is looked up as a whole: PATH_MAX is
// 4096, and what surrounds it needs some room.
const longest = 4000

// shorten hides the folder around whatever is to be hidden or locked under a
// path that cannot be looked up as a whole.
func (r *resolver) shorten() {
	around := map[string]bool{}
	cut := func(path string) bool {
		if len(path) <= longest {
			return false
		}
		for len(path) > longest {
			path = filepath.Dir(path)
		}
		around[path] = true
		return true
	}
	r.p.Masks = slices.DeleteFunc(r.p.Masks, func(m secrets.Mask) bool { return cut(m.Path) })
	r.p.Locks = slices.DeleteFunc(r.p.Locks, func(l Lock) bool { return cut(l.Path) })
	r.p.Sockets = slices.DeleteFunc(r.p.Sockets, cut)
	for path := range around {
		r.p.Masks = append(r.p.Masks, secrets.Mask{Path: path, Kind: secrets.MaskDir, Why: "what is hidden or locked in it lies too deep to be named"})
		r.note("the folder "+quote(path)+" is hidden whole: what is hidden or locked in it lies too deep to be named", "")
	}
}
