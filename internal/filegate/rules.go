package filegate

import (
	"slices"
	"strings"
	"unicode"

	"github.com/tether-sandbox/tether/internal/plan"
	"github.com/tether-sandbox/tether/internal/plan/gitmeta"
	"github.com/tether-sandbox/tether/internal/plan/secrets"
	"github.com/tether-sandbox/tether/policy"
)

// fileID is which file it is, whatever its name.
type fileID struct{ dev, ino uint64 }

// lock is why a path cannot be written.
type lock struct {
	why, hint string
	// filter: it is a git configuration, shown without credentials.
	filter bool
}

// verdict is what is known of an entry and of the folders above it.
type verdict struct {
	// hidden says why it is closed; empty: it is not.
	hidden string
	// byContent: closed unless what is in it is public.
	byContent bool
	lock      lock
	// git: it is .git, or lies below it.
	git bool
}

// entry is what a verdict is asked for.
type entry struct {
	path, name string
	typ        secrets.Type
	// marks come from links with marked names that lead here.
	marks secrets.Mark
	// free: nothing is protected here by its name (/tmp).
	free bool
	// shown: a root lies below, so that no cover hides it.
	shown bool
}

// rules say what is protected. They are made once from a plan and pure: the
// caller brings what it knows of an entry from its handle.
type rules struct {
	full   bool
	names  secrets.Rules
	tether policy.Patterns
	// lifted are the paths of the policy's AllowConfig.
	lifted map[string]bool
	// closed are paths that are hidden with all that they hold, by what they
	// are hidden for.
	closed map[string]string
	// absent are paths that commands see as something else or not at all: what
	// a root shows below them stays open.
	absent map[string]string
	// locks are paths that are locked with all that they hold.
	locks map[string]lock
	// closedIDs and lockedIDs are the same by identity.
	closedIDs map[fileID]string
	lockedIDs map[fileID]lock
	// roots are the folders that patterns with a slash count from.
	roots     []string
	workspace string
}

// newRules makes the rules of a plan that depend on nothing but the plan.
func newRules(p *plan.Plan) (*rules, error) {
	r := &rules{full: p.Policy.Profile == policy.FullAccess, workspace: p.Workspace.Path, lifted: map[string]bool{}, closed: map[string]string{},
		absent: map[string]string{}, locks: map[string]lock{}, closedIDs: map[fileID]string{}, lockedIDs: map[fileID]lock{}}
	var err error
	if r.tether, err = policy.CompilePatterns([]string{".tether", "tether~1"}); err != nil || r.full {
		return r, err
	}
	if r.names, err = secrets.RulesOf(p.Policy.Protect); err != nil {
		return nil, err
	}
	for _, a := range p.Policy.Protect.AllowConfig {
		if a == "" {
			continue
		}
		if a[0] != '/' {
			a = join(p.Workspace.Path, a)
		}
		r.lifted[clean(a)] = true
	}
	for _, v := range p.Views {
		if v.Origin == plan.Workspace || v.Origin == plan.Added && !v.File {
			r.roots = append(r.roots, v.Path)
		}
	}
	r.plan(p)
	return r, nil
}

// plan takes over what the plan hides and locks by path.
func (r *rules) plan(p *plan.Plan) {
	for _, m := range p.Masks {
		r.closed[m.Path] = m.Why
		if m.Ino != 0 {
			r.closedIDs[fileID{m.Dev, m.Ino}] = m.Why
		}
	}
	for _, c := range p.Covers {
		r.absent[c] = "it shows a home, or what belongs to others"
	}
	const made = "what commands see there exists only inside a sandbox"
	for _, path := range [...]string{"/dev", "/proc", "/sys"} {
		r.absent[path] = made
	}
	for _, s := range p.Scratch {
		r.absent[s.Path] = made
	}
	for _, f := range p.Files {
		r.absent[f.Path] = made
	}
	gits := gitmeta.AllLocks(p.Repos)
	for _, l := range p.Locks {
		if l.Writable {
			continue
		}
		hint := "--allow-config " + quote(l.Path)
		switch {
		case l.Content != nil, slices.ContainsFunc(gits, func(g gitmeta.Lock) bool { return g.Path == l.Path }):
			hint = hintGit
		case slices.Contains(p.Own, l.Path), r.isTether(l.Path[1+strings.LastIndexByte(l.Path, '/'):]):
			hint = hintOwn
		}
		r.locks[l.Path] = lock{why: l.Why, hint: hint, filter: l.Content != nil}
	}
	// Present or not, and whatever profile: what git would read or run.
	for _, l := range gits {
		_, known := r.locks[l.Path]
		switch {
		case l.Hide:
			r.closed[l.Path] = l.Why
		case known || l.Pin || l.Kind == gitmeta.File && l.Replace == nil && r.lifted[l.Path]:
		default:
			r.locks[l.Path] = lock{why: l.Why, hint: hintGit, filter: l.Replace != nil}
		}
	}
	for _, repo := range p.Repos {
		for _, dir := range [...]string{repo.GitDir, repo.CommonDir} {
			if dir != "" {
				r.locks[dir] = lock{why: "git keeps its own files there", hint: hintGit}
			}
		}
	}
}

// base is what the folders above a nested root say of it: up lists them.
func (r *rules) base(up []string) (v verdict) {
	for _, path := range up {
		v = r.judge(v, entry{path: path, name: path[1+strings.LastIndexByte(path, '/'):], typ: secrets.Directory, shown: true})
	}
	return v
}

// judge adds to what is known of the folder above an entry what is known of
// the entry itself, by path and name.
func (r *rules) judge(above verdict, e entry) verdict {
	v := above
	v.byContent = false
	why := r.closed[e.path]
	if why == "" && !e.shown {
		why = r.absent[e.path]
	}
	if why != "" {
		v.hidden = why
		return v
	}
	if l, ok := r.locks[e.path]; ok {
		v.hold(l)
	}
	if e.free {
		return v
	}
	r.gitName(&v, e)
	if r.isTether(e.name) {
		v.hold(lock{why: "Tether's own policy lies there", hint: hintOwn})
	}
	if r.full {
		return v
	}
	if inside(r.workspace, e.path) {
		e.marks &^= secrets.Locked // a link to the workspace makes that no less writable, in plans as well
	}
	m := e.marks | r.marks(e)
	switch folder := e.typ == secrets.Directory; {
	case m&secrets.HiddenAny != 0, m&secrets.Hidden != 0 && !folder:
		v.hidden = "its name says that it holds secrets"
	case m&secrets.HiddenByContent != 0 && !folder:
		v.byContent = true
	}
	if m&secrets.Locked != 0 && !r.lifted[e.path] {
		v.hold(lock{why: "the host runs it, or what it names, unasked", hint: "--allow-config " + quote(e.path)})
	}
	return v
}

// hold adds a lock; the outermost one is told.
func (v *verdict) hold(l lock) {
	filter := v.lock.filter || l.filter
	if v.lock.why == "" {
		v.lock = l
	}
	v.lock.filter = filter
}

// gitName judges names that git, or a file system, takes for .git.
func (r *rules) gitName(v *verdict, e entry) {
	switch {
	case mayBeGit(e.name) && gitmeta.DotGit(e.name):
		if e.name != ".git" {
			v.hidden = "some file systems take the name for .git"
			return
		}
		v.git = true
		if !r.full {
			v.hold(lock{why: "git's own folder is for git to write", hint: hintGit})
		}
	case v.git && gitConfig(e.name) && !r.full && e.typ != secrets.Directory:
		v.lock.filter = true
	}
}

// gitConfig says whether git reads a file of this name as configuration, in a
// folder that is a repository.
func gitConfig(name string) bool { return name == "config" || name == "config.worktree" }

// mayBeGit sorts out most names before the exact look, which allocates.
func mayBeGit(name string) bool {
	return len(name) >= len(".git") && (name[0] == '.' || name[0]|0x20 == 'g' || name[0] >= 0x80)
}

// isTether knows .tether in every case, with invisible characters, and as NTFS
// and FAT would spell it.
func (r *rules) isTether(name string) bool {
	if len(name) < len(".tether") || name[0] < 0x80 && name[0] != '.' && name[0]|0x20 != 't' {
		return false
	}
	base, _, _ := strings.Cut(name, ":")
	base = strings.TrimRightFunc(base, func(c rune) bool { return c == '.' || c == ' ' || !unicode.IsPrint(c) })
	return r.tether.MatchName([]byte(base))
}

// marks asks the rules of names and patterns.
func (r *rules) marks(e entry) (m secrets.Mark) {
	var buf [256]byte
	if r.names.Name != nil {
		m = r.names.Name(append(buf[:0], e.name...), e.typ)
	}
	if r.names.Path != nil {
		for _, root := range r.roots {
			if e.path != root && inside(e.path, root) {
				m |= r.names.Path([]byte(strings.TrimPrefix(e.path[len(root):], "/")), e.typ)
			}
		}
	}
	return m
}

// clean takes empty names and "." out of an absolute path, and a final slash.
func clean(path string) string { return "/" + strings.Join(cut(path).names, "/") }
