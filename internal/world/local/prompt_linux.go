package local

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/internal/plan/gitmeta"
	"github.com/tether-sandbox/tether/internal/plan/secrets"
	"github.com/tether-sandbox/tether/internal/watch"
	"github.com/tether-sandbox/tether/policy"
)

// prompt takes back, while a command runs, what the look at its end would take
// back: what the host's git would run or obey must not stand until then, and no
// mask inside keeps the host from it. It asks the code of that look, about the
// places at which something happened, see [gitmeta.Early] for what is left to
// the end.
type prompt struct {
	r      *record
	roots  []promptRoot
	around ways // what the command may close on the way to them
	// dirs are the git directories that were there before, by path, with the root
	// that they belong to; moved are those that lie elsewhere by now.
	dirs, moved map[string]int
	// named are what configuration named in the tree, and the folders on the way.
	named map[string]bool

	news promptNews
	// open are those that are looked at every time, see [gitmeta.Early.Settle].
	open map[string]int
	pace

	done  chan promptDone
	tally tally
}

type promptRoot struct {
	path  string
	early *gitmeta.Early
}

// promptNews is where something happened that was not looked at yet.
type promptNews struct {
	all    bool
	dirs   map[string]int // git directories, with their root
	links  map[string]int // links in them
	walks  map[string]int // folders that appeared in them
	tether map[int]bool   // roots in which a .tether appeared
	tree   bool           // something that configuration named
}

type promptDone struct {
	found []gitmeta.Finding
	open  map[string]int
}

const (
	// again is when the open ones are looked at though nothing happened.
	again = 500 * time.Millisecond
	// mostNews bounds what is remembered one by one; beyond it all is looked at.
	mostNews = 1024
	// promptShare is to prompt what share is to the rest of a vigil.
	promptShare = 12
)

// newPrompt returns nil where nothing is taken back at the end either. loose says
// that the provider locks nothing.
func newPrompt(r *record, p string, loose bool, around ways) *prompt {
	if r.file == nil {
		return nil
	}
	q := &prompt{r: r, around: around, dirs: map[string]int{}, moved: map[string]int{}, named: map[string]bool{}, done: make(chan promptDone, 1),
		pace: pace{timer: time.NewTimer(0), share: promptShare}}
	for i, root := range r.Roots {
		s := &r.Snapshots[i]
		early := gitmeta.NewEarly(*s, filepath.Join(p, "quarantine"))
		early.Loose = loose
		q.roots = append(q.roots, promptRoot{string(root), early})
		for _, dir := range early.Dirs() {
			q.dirs[dir] = i
		}
		for _, h := range s.Hooks {
			q.name(string(root), h.Path)
		}
		for _, f := range s.Includes {
			q.name(string(root), f)
		}
	}
	if loose {
		q.lookAtAll()
	}
	return q
}

// lookAtAll asks for a look at everything: what happened is not known.
func (q *prompt) lookAtAll() {
	q.news.all = true
	at := time.Now()
	if !q.began.IsZero() {
		at = at.Add(slow)
	}
	q.want(at)
}

// name notes a place that configuration named, and the folders on the way.
func (q *prompt) name(root, path string) {
	for at := path; len(at) > len(root) && strings.HasPrefix(at, root); at = filepath.Dir(at) {
		q.named[at] = true
	}
}

// note takes an event in. watchIt says that the folder should be watched again:
// we open what was closed when the watch was put up.
func (q *prompt) note(e watch.Event) (watchIt bool) {
	if e.Lost {
		q.news.all = true
		q.want(time.Now())
		return false
	}
	path := e.Path()
	before := q.news.count()
	if e.Folder && e.From != "" {
		q.follow(e.From, path)
	}
	dir, root := q.gitDir(path)
	switch {
	case dir != "" && path != dir:
		q.inGit(e, dir, root)
		watchIt = e.Folder && e.Links
	case dir != "":
		put(&q.news.dirs, dir, root)
	case e.New && q.isTether(e):
	case q.named[path] || q.named[e.Dir]:
		q.news.tree = true
	}
	if q.news.count() != before || q.news.all {
		q.want(time.Now())
	}
	return watchIt
}

// count grows with each thing that is new.
func (n *promptNews) count() int {
	c := len(n.dirs) + len(n.links) + len(n.walks) + len(n.tether)
	if n.tree {
		c++
	}
	if c > mostNews {
		*n = promptNews{all: true}
	}
	return c
}

func put(m *map[string]int, path string, root int) {
	if *m == nil {
		*m = map[string]int{}
	}
	(*m)[path] = root
}

// gitDir returns the innermost git directory that path lies in, or is, of those
// that were there before.
func (q *prompt) gitDir(path string) (dir string, root int) {
	for at := path; len(at) > 1; at = at[:max(strings.LastIndexByte(at, '/'), 0)] {
		if i, ok := q.dirs[at]; ok {
			return at, i
		}
		if i, ok := q.moved[at]; ok {
			return at, i
		}
	}
	return "", 0
}

// inGit notes what happened in a git directory.
func (q *prompt) inGit(e watch.Event, dir string, root int) {
	path := e.Path()
	first, _, _ := strings.Cut(path[len(dir)+1:], "/")
	switch string(policy.Fold(nil, []byte(first))) {
	case "config", "config.worktree", "commondir", "hooks", "info", "remotes", "branches":
		put(&q.news.dirs, dir, root)
	}
	switch {
	case !e.New:
	case e.Folder:
		put(&q.news.walks, path, root)
	default:
		if isLink(path) {
			put(&q.news.links, path, root)
		}
	}
}

func isLink(path string) bool {
	var st unix.Stat_t
	return unix.Lstat(path, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK
}

// isTether notes a .tether at the top of a root.
func (q *prompt) isTether(e watch.Event) bool {
	if string(policy.Fold(nil, []byte(e.Name))) != tetherFolder {
		return false
	}
	for i := range q.roots {
		if q.roots[i].path == e.Dir {
			if q.news.tether == nil {
				q.news.tether = map[int]bool{}
			}
			q.news.tether[i] = true
			return true
		}
	}
	return false
}

// follow notes that a folder is elsewhere now, with the git directories in it.
func (q *prompt) follow(from, to string) {
	came := map[string]int{}
	for _, m := range []map[string]int{q.dirs, q.moved} {
		for dir, root := range m {
			if dir == from || strings.HasPrefix(dir, from+"/") {
				came[to+dir[len(from):]] = root
			}
		}
	}
	for dir := range q.moved {
		if dir == from || strings.HasPrefix(dir, from+"/") {
			delete(q.moved, dir)
		}
	}
	for dir, root := range came {
		if len(q.moved) < mostNews {
			q.moved[dir] = root
			put(&q.news.dirs, dir, root)
			put(&q.news.walks, dir, root)
		}
	}
}

// begin looks at what is new.
func (q *prompt) begin() {
	news := q.news
	q.news = promptNews{}
	q.start()
	for dir, root := range q.open {
		if dir == "" {
			news.tree = true
		} else {
			put(&news.dirs, dir, root)
		}
	}
	if news.all {
		news.tree = true
		for _, m := range []map[string]int{q.dirs, q.moved} {
			for dir, root := range m {
				put(&news.dirs, dir, root)
				put(&news.walks, dir, root)
			}
		}
	}
	go func() { q.done <- q.look(&news) }()
}

// look takes back what there is to be taken back. What fails is left to the end.
func (q *prompt) look(news *promptNews) promptDone {
	var out promptDone
	q.around.reopen()
	for i := range q.roots {
		root := &q.roots[i]
		if news.all || news.tether[i] {
			out.add(q.tether(root))
		}
		dirs := of(news.dirs, i)
		if len(dirs) == 0 && !news.tree {
			continue
		}
		found, open, err := root.early.Settle(dirs)
		if err != nil {
			open = dirs // closed to us for now
		}
		for _, dir := range open {
			put(&out.open, dir, i)
		}
		out.add(found)
	}
	for i := range q.roots {
		out.add(q.takeLinks(i, of(news.links, i), of(news.walks, i)))
	}
	return out
}

func (d *promptDone) add(found []gitmeta.Finding) { d.found = append(d.found, found...) }

// of are the paths of a root, sorted.
func of(m map[string]int, root int) []string {
	var out []string
	for path, i := range m {
		if i == root {
			out = append(out, path)
		}
	}
	slices.Sort(out)
	return out
}

// tether takes a policy folder away that the command made.
func (q *prompt) tether(root *promptRoot) []gitmeta.Finding {
	if slices.ContainsFunc(q.r.Tether, func(t []byte) bool { return string(t) == root.path }) {
		return nil
	}
	entries, err := os.ReadDir(root.path)
	if err != nil {
		return nil
	}
	var seen secrets.Found
	for _, e := range entries {
		seen.Entries = append(seen.Entries, secrets.Entry{Path: filepath.Join(root.path, e.Name())})
	}
	found, _ := root.early.TakeAway(root.path, tetherFolders(root.path, &seen))
	return found
}

// takeLinks takes away the links among paths, and those in folders.
func (q *prompt) takeLinks(i int, links, folders []string) []gitmeta.Finding {
	var seen secrets.Found
	for _, path := range links {
		if isLink(path) {
			seen.Entries = append(seen.Entries, secrets.Entry{Path: path, Type: secrets.Symlink, Marks: secrets.GitLink})
		}
	}
	every := secrets.Rules{Name: func(_ []byte, t secrets.Type) secrets.Mark {
		if t == secrets.Symlink {
			return secrets.GitLink
		}
		return 0
	}}
	for k, dir := range folders {
		if k > 0 && strings.HasPrefix(dir, folders[k-1]+"/") {
			continue
		}
		in, err := secrets.Walk(context.Background(), dir, every)
		if err != nil {
			continue // gone, or closed: the end opens it
		}
		seen.Entries = append(seen.Entries, in.Entries...)
	}
	seen.Entries = slices.DeleteFunc(seen.Entries, func(e secrets.Entry) bool {
		// git writes to no file with such a name; editors keep their locks so.
		return e.Type != secrets.Symlink || strings.HasPrefix(filepath.Base(e.Path), ".#")
	})
	root := &q.roots[i]
	var out []gitmeta.Finding
	for _, top := range append([]string{root.path}, q.r.Snapshots[i].Commons...) {
		here := secrets.Found{Entries: slices.DeleteFunc(slices.Clone(seen.Entries), func(e secrets.Entry) bool { return !strings.HasPrefix(e.Path, top+"/") })}
		found, _ := root.early.TakeAway(top, q.r.gitLinks(top, &here, nil))
		out = append(out, found...)
	}
	return out
}

// end takes in what a look did.
func (q *prompt) end(d promptDone) {
	q.rest()
	for _, f := range d.found {
		q.tally.add(f)
	}
	if q.open = d.open; len(q.open) > 0 {
		q.want(time.Now().Add(again))
	}
}
