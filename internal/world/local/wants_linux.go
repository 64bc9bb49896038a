package local

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/plan"
	"github.com/tether-sandbox/tether/internal/plan/secrets"
	"github.com/tether-sandbox/tether/internal/watch"
)

// wants says which steps of a plan that is made anew must hold in a world that
// stands, and which news asks for making it.
type wants struct {
	begin time.Time
	rules secrets.Rules
	// roots are the folders that are watched.
	roots []string
	// first are the steps that were carried out at the start, by place, late those
	// that came to hold since.
	first map[string]enforce.Step
	late  map[string]enforce.Step
	// held is what is known to hold, touched the places at which something
	// happened since; all asks for every step to be looked at.
	held    map[string]identity
	touched map[string]bool
	all     bool
	// under are both, of when the plan that is being made anew was begun.
	under struct {
		touched map[string]bool
		all     bool
	}
	// quiet are the new protected places that are not locked yet.
	quiet map[string]quiet
	// carry knows the new names of what is hidden.
	carry carry
}

func (w *wants) init(p *plan.Plan, rules secrets.Rules, begin time.Time) {
	steps := enforce.Compile(p)
	*w = wants{begin: begin, rules: rules, all: true, first: make(map[string]enforce.Step, len(steps)),
		late: map[string]enforce.Step{}, held: map[string]identity{}, touched: map[string]bool{}, quiet: map[string]quiet{}}
	for _, s := range steps {
		if s.Ino != 0 && (isMask(&s) || isLock(&s)) {
			w.first[s.Dst] = s
		}
	}
	for i := range p.Views {
		v := &p.Views[i]
		if !v.File && v.At == "" && (v.Origin == plan.Workspace || v.Origin == plan.Added || v.Origin == plan.Git) {
			w.roots = append(w.roots, v.Path)
		}
	}
}

func isMask(s *enforce.Step) bool {
	return s.Do == enforce.MaskFile || s.Do == enforce.MaskStub || s.Do == enforce.MaskDir
}

// isLock says whether a step keeps a file or folder as it is, or shows another
// content. What only pins a folder does not.
func isLock(s *enforce.Step) bool {
	return s.Do == enforce.File && s.Flags&enforce.Make == 0 || s.Do == enforce.Self && s.Flags&enforce.ReadOnly != 0
}

// known says whether the very file of a step was covered at the start or since.
func (w *wants) known(s *enforce.Step) bool {
	id := identity{s.Dev, s.Ino}
	f := w.first[s.Dst]
	return f.Do == s.Do && id == identity{f.Dev, f.Ino} || w.held[s.Dst] == id
}

// note takes an event in and says whether it asks for a new look.
func (w *wants) note(e watch.Event) bool {
	if e.Lost {
		w.all = true
		return true
	}
	path := e.Dir + "/" + e.Name
	for place, q := range w.quiet {
		if path == place || strings.HasPrefix(path, place+"/") {
			q.since = time.Now()
			w.quiet[place] = q
		}
	}
	if e.Folder && e.New {
		return true
	}
	_, first := w.first[path]
	_, late := w.late[path]
	if first || late || w.named(e, path) {
		w.touched[path] = true
		return true
	}
	return false
}

// named says whether an entry has a name that the search would look at, or that
// git would.
func (w *wants) named(e watch.Event, path string) bool {
	kind := secrets.Regular
	if e.Folder {
		kind = secrets.Directory
	}
	name := []byte(e.Name)
	if w.rules.Name(name, kind) != 0 || secrets.GitName(name) || filepath.Base(e.Dir) == "hooks" {
		return true
	}
	if w.rules.Path == nil {
		return false
	}
	for _, root := range w.roots {
		if rel, ok := strings.CutPrefix(path, root+"/"); ok && w.rules.Path([]byte(rel), kind) != 0 {
			return true
		}
	}
	return false
}

// missing are the steps of a new plan that are not known to hold.
func (w *wants) missing(now *plan.Plan) []enforce.Step {
	closed := make(map[string]bool, len(now.Found.Unreadable))
	for _, path := range now.Found.Unreadable {
		closed[path] = true // the command may close folders of its own
	}
	waited := w.quiet
	w.quiet = make(map[string]quiet, len(waited))
	var out []enforce.Step
	for _, s := range enforce.Compile(now) {
		switch {
		case s.Ino == 0 || !w.under.all && !w.under.touched[s.Dst] && w.held[s.Dst] == (identity{s.Dev, s.Ino}):
		case isMask(&s) && !closed[s.Dst], isLock(&s) && w.locks(&s, waited):
			out = append(out, s)
		}
	}
	return out
}

// alone says whether an entry can be judged without the rest: what is hidden by
// its name or content and nothing else. What lies in a repository's own folder
// depends on that, and so does what was known under the same name; a file with
// several names shows by the change of its links.
func (w *wants) alone(e watch.Event, path string) bool {
	if e.Folder {
		return e.New
	}
	if f, ok := w.first[path]; ok && !isMask(&f) || strings.Contains(path, "/.git/") || e.Links {
		return false
	}
	const hidden = secrets.Hidden | secrets.HiddenByContent | secrets.HiddenAny
	m := w.rules.Name([]byte(e.Name), secrets.Regular)
	return m&hidden != 0 && m&^hidden == 0
}

// judge takes an event in. masks are what can be told by itself: what is hidden
// by its name and content, and in folders that appeared. more says that the plan
// must be made anew.
func (w *wants) judge(ctx context.Context, e watch.Event) (masks []secrets.Mask, more bool) {
	if !w.note(e) {
		return nil, false
	}
	if e.Lost || !w.alone(e, e.Path()) {
		return nil, true
	}
	found, err := secrets.Find(ctx, []secrets.Root{{Path: e.Path()}}, w.rules, nil)
	if err != nil {
		// What is gone is seen by nobody; what cannot be looked at, the plan may know.
		return nil, ctx.Err() == nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTDIR)
	}
	masks = slices.DeleteFunc(found.Masks, func(m secrets.Mask) bool { return slices.Contains(found.Unreadable, m.Path) })
	more = len(found.Unreadable) > 0 || len(found.Locked) > 0 || len(found.GitEntries) > 0 || len(found.BareRepos) > 0
	if e.Folder && (more || len(masks) > 0) {
		w.all = true // of what was known, some may have been moved away with a folder of this name
	}
	return masks, more
}

// form gives a mask the form that it had at the start.
func (w *wants) form(s enforce.Step) enforce.Step {
	if f, ok := w.first[s.Dst]; ok && f.Do == enforce.MaskStub && s.Do == enforce.MaskFile {
		s.Do, s.Size, s.MTime, s.Mode = f.Do, f.Size, f.MTime, f.Mode
	}
	return s
}

// news says whether something happened that no look was begun for.
func (w *wants) news() bool { return w.all || len(w.touched) > 0 }

// start says that a plan begins to be made anew.
func (w *wants) start() {
	w.under.touched, w.under.all = w.touched, w.all
	w.touched, w.all = map[string]bool{}, false
}

// hold says that steps hold now.
func (w *wants) hold(steps []enforce.Step) {
	for _, s := range steps {
		if !w.known(&s) {
			w.late[s.Dst] = s
		}
		w.held[s.Dst] = identity{s.Dev, s.Ino}
	}
}

// quiet says when a new protected place was first seen, and when something last
// happened in it.
type quiet struct{ seen, since time.Time }

// A new protected place is locked when nothing has happened in it for a moment,
// still, and at the latest when it has been seen for as long as patience.
const (
	still    = time.Second
	patience = 3 * time.Second
)

func (q quiet) due() time.Time {
	alone, last := q.since.Add(still), q.seen.Add(patience)
	if last.Before(alone) {
		return last
	}
	return alone
}

// locks says whether a lock is put in now. Where something was locked at the
// start it is at once, in whatever file lies there by now: nobody inside can
// have put that there. What is new may be the command's own work, which could
// not go on: it must have been left alone for a moment, and a repository or
// project that is new as a whole is left to the look at the end.
func (w *wants) locks(s *enforce.Step, waited map[string]quiet) bool {
	if f, ok := w.first[s.Dst]; ok && isLock(&f) {
		return true
	}
	if _, ok := w.late[s.Dst]; ok {
		return true
	}
	top := w.newTop(s.Dst)
	name := []byte(filepath.Base(top))
	if top != s.Dst && w.rules.Name(name, secrets.Directory)&secrets.Locked == 0 && !secrets.GitName(name) {
		return false
	}
	q, waits := waited[s.Dst]
	if !waits {
		q = quiet{time.Now(), time.Now()}
	}
	if time.Now().Before(q.due()) {
		w.quiet[s.Dst] = q
		return false
	}
	return true
}

// newTop returns the outermost of path and the folders around it that was made
// since the command began.
func (w *wants) newTop(path string) string {
	top := path
	for at := path; len(at) > 1 && bornAfter(at, w.begin); at = filepath.Dir(at) {
		top = at
	}
	return top
}

// due is when the next new protected place will have been left alone for long
// enough; zero when none waits.
func (w *wants) due() time.Time {
	var first time.Time
	for _, q := range w.quiet {
		if at := q.due(); first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first
}
