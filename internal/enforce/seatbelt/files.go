package seatbelt

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/tether-sandbox/tether/internal/plan"
	"github.com/tether-sandbox/tether/internal/plan/secrets"
)

// place is where the answer for all that lies below changes.
type place struct {
	path            string
	shown, writable bool
	file, noexec    bool
}

// files writes the rules about files: first what is shown, parents before what
// lies in them, so that the deepest place counts; then what is locked; then what
// is hidden.
func files(w *writer, p *plan.Plan) {
	list := places(w, p)
	w.note("What is shown, outermost first: the deepest place counts.")
	for _, at := range list {
		at.write(w)
	}
	ways(w, p, list)
	sockets(w, list)
	locks(w, p, list)
	masks(w, p)
}

// places lists them in order. Of several at one path the last one counts: a view
// lies on top of a private folder, and a cover hides them both.
func places(w *writer, p *plan.Plan) []place {
	var list []place
	for _, s := range p.Scratch {
		list = append(list, place{path: s.Path, shown: true, writable: s.Writable})
	}
	for i := range p.Views {
		v := &p.Views[i]
		if v.Target() != v.Path && w.err == nil {
			w.err = refuse("nothing can be shown at another path than its own: " + v.Path)
		}
		list = append(list, place{path: v.Path, shown: true, writable: v.Writable, file: v.File, noexec: v.NoExec})
	}
	for _, f := range p.Files {
		list = append(list, place{path: f.Path, shown: true, file: true, noexec: true})
	}
	for _, c := range p.Covers {
		list = append(list, place{path: c})
	}
	slices.SortStableFunc(list, func(a, b place) int { return cmp.Compare(key(a.path), key(b.path)) })
	return list
}

// key makes parents sort before their children.
func key(path string) string { return strings.ReplaceAll(path, "/", "\x00") }

// write says of every operation what it may do here: what lies around may have
// said otherwise.
func (at place) write(w *writer) {
	here := subpath(at.path)
	if at.file {
		here = literal(at.path)
	}
	if !at.shown {
		w.rule("deny", contents+" "+write+" "+start, here)
		w.rule("deny", look, below(at.path))
		return
	}
	w.rule("allow", look+" "+contents, here)
	w.rule(verdict(at.writable), write, here)
	w.rule(verdict(!at.noexec), start, here)
}

func verdict(allow bool) string {
	if allow {
		return "allow"
	}
	return "deny"
}

// ways lets programs ask what the folders are that lead to a place, and follow
// the links of the system. They list nothing.
func ways(w *writer, p *plan.Plan, list []place) {
	way := map[string]bool{}
	for _, at := range list {
		if at.shown {
			above(at.path, func(dir string) { way[dir] = true })
		}
	}
	for _, l := range p.Links {
		way[l.Path] = true
		above(l.Path, func(dir string) { way[dir] = true })
	}
	w.note("The way there, and links of the system: what they are, not what they hold.")
	for _, dir := range slices.Sorted(maps.Keys(way)) {
		w.rule("allow", look, literal(dir))
	}
}

// above calls f with every folder around a canonical path but the top.
func above(of string, f func(dir string)) {
	if len(of) == 0 || of[0] != '/' {
		return // quoting it refuses
	}
	for dir := path.Dir(of); dir != "/"; dir = path.Dir(dir) {
		f(dir)
	}
}

// sockets lets the command use sockets where it may make one.
func sockets(w *writer, list []place) {
	if !slices.ContainsFunc(list, func(at place) bool { return at.shown && at.writable && !at.file }) {
		return
	}
	w.note("Local sockets, in what the command may write.")
	w.rule("allow", "system-socket", filter{text: "(socket-domain AF_UNIX)"})
	for _, at := range list {
		allow := at.shown && at.writable
		if at.file || !allow && !writableAt(list, path.Dir(at.path)) {
			continue
		}
		w.rule(verdict(allow), "network-outbound", socket("remote", subpath(at.path)))
		w.rule(verdict(allow), "network-bind", socket("local", subpath(at.path)))
	}
}

// locks keeps files from being changed, and every folder around what is
// protected from being moved: rules go by path, and what is protected would be
// found at another one.
func locks(w *writer, p *plan.Plan, list []place) {
	w.note("Locked: read, and not changed.")
	fixed := map[string]bool{}
	pin := func(of string) {
		above(of, func(dir string) {
			if writableAt(list, dir) {
				fixed[dir] = true
			}
		})
	}
	for _, l := range p.Locks {
		switch {
		case l.Writable && l.Content == nil:
			fixed[l.Path] = true
		case l.Content != nil:
			// Shown as it is it would tell what was to be left out.
			w.rule("deny", contents+" "+write+" "+start, literal(l.Path), subpath(l.Path))
		default:
			w.rule("deny", write, literal(l.Path), subpath(l.Path))
		}
		pin(l.Path)
	}
	for _, at := range list {
		if at.shown && at.writable {
			fixed[at.path] = true // as the others, it is the root of something
		}
		pin(at.path)
	}
	for i := range p.Masks {
		pin(p.Masks[i].Path)
	}
	for _, s := range p.Sockets {
		pin(s)
	}
	w.note("Not moved: what is protected would go with it.")
	for _, dir := range slices.Sorted(maps.Keys(fixed)) {
		w.rule("deny", unlink, literal(dir))
	}
}

// writableAt says whether the command may write at path, as far as places go.
func writableAt(list []place, path string) bool {
	write := false
	for _, at := range list {
		if path == at.path || !at.file && strings.HasPrefix(path, at.path+"/") {
			write = at.shown && at.writable
		}
	}
	return write
}

// masks hides files, and folders with all that is in them. That something is
// there, and how old and large it is, can be seen, as git needs it to.
func masks(w *writer, p *plan.Plan) {
	w.note("Hidden.")
	for i := range p.Masks {
		m := &p.Masks[i]
		w.rule("deny", contents+" "+write+" "+start, literal(m.Path), subpath(m.Path))
		if m.Kind == secrets.MaskDir {
			w.rule("deny", look, below(m.Path))
			w.rule("deny", "network-outbound", socket("remote", subpath(m.Path)))
			w.rule("deny", "network-bind", socket("local", subpath(m.Path)))
		}
	}
	for _, s := range p.Sockets {
		w.rule("deny", contents+" "+write, literal(s))
		w.rule("deny", "network-outbound", socket("remote", literal(s)))
		w.rule("deny", "network-bind", socket("local", literal(s)))
	}
}
