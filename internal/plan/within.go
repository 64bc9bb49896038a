package plan

import (
	"strings"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/policy"
)

// Identify returns the identity of the file at a path, following no link at its
// end; ok is false when there is none.
type Identify func(path string) (dev, ino uint64, ok bool)

// Within returns nil if child, a plan of the same world, opens nothing that
// parent does not, and otherwise an error that names the first thing.
//
// [policy.Policy.Within] compares spellings; this compares what was found when
// the spellings were followed. Whatever path one thinks of: if child writes
// there, parent does; if child shows what the host has there, parent does. So
// views must lie in views, writable ones in writable ones, and what parent
// hides, locks, covers or shows filtered, child must not open where it shows it
// at all. A folder is the same only if its device and inode are.
//
// It also compares profile, network mode and ids. It does not compare
// environment, commands, limits and what the network's rules say: those have no
// identity, and policies compare them. The private caches of a plan are its
// own and are not looked at.
//
// It errs on the strict side: a folder that child reaches by another path than
// parent, through a bind mount, is refused.
func Within(child, parent *Plan, identify Identify) error {
	if parent.Policy.Profile == policy.FullAccess {
		return nil
	}
	switch c, p := child.Policy, parent.Policy; {
	case c.Profile > p.Profile:
		return wider("the profile " + c.Profile.String() + " is wider than " + p.Profile.String())
	case c.Network.Mode > p.Network.Mode:
		return wider("the network " + c.Network.Mode.String() + " is wider than " + p.Network.Mode.String())
	case child.Identity.HostUID != parent.Identity.HostUID || child.Identity.HostGID != parent.Identity.HostGID:
		return wider("it runs under other ids")
	}
	w := within{child: indexOf(child), parent: indexOf(parent), identify: identify}
	for _, v := range child.Views {
		if err := w.root(v); err != nil {
			return err
		}
	}
	// What a path may be used for changes at these paths only: to compare there
	// is to compare everywhere.
	for _, x := range []*index{w.child, w.parent} {
		for path := range x.places {
			if err := w.compare(path); err != nil {
				return err
			}
		}
		for path := range x.closed {
			if err := w.compare(path); err != nil {
				return err
			}
		}
	}
	return nil
}

func wider(what string) error {
	return fault.New(fault.SandboxViolation, "the child's plan is not within its parent's: "+what)
}

// closure says what is taken away at a path and below.
type closure uint8

const (
	hidden closure = 1 << iota
	locked
)

// placed is the last thing that stands at a path.
type placed struct {
	view  *View // nil for what shows nothing of the host
	write bool
}

// index answers what a plan makes of a path, in as many steps as it has parts.
type index struct {
	places map[string]placed
	closed map[string]closure
	// masked are the identities of what is hidden.
	masked map[[2]uint64]string
}

func indexOf(p *Plan) *index {
	x := &index{places: make(map[string]placed, len(p.Views)), closed: make(map[string]closure, len(p.Masks)+len(p.Locks)),
		masked: make(map[[2]uint64]string, len(p.Masks))}
	for _, s := range p.Scratch {
		x.places[s.Path] = placed{}
	}
	for i := range p.Views {
		if v := &p.Views[i]; v.Origin == Cache || v.Origin == Tmp {
			x.places[v.Target()] = placed{}
		} else {
			x.places[v.Target()] = placed{view: v, write: v.Writable}
		}
	}
	for _, c := range p.Covers {
		x.places[c] = placed{}
	}
	for _, l := range p.Locks {
		switch {
		case l.Content != nil:
			x.closed[l.Path] |= hidden // as it is, it is not shown
		case !l.Writable:
			x.closed[l.Path] |= locked
		}
	}
	for _, s := range p.Sockets {
		x.closed[s] |= hidden
	}
	for i := range p.Masks {
		m := &p.Masks[i]
		x.closed[m.Path] |= hidden
		if m.Ino != 0 {
			x.masked[[2]uint64{m.Dev, m.Ino}] = m.Path
		}
	}
	return x
}

// use is what may be done at a path.
type use struct {
	read, write bool
	view        *View // the view that decides
	by          string
}

// at says what may be done at path. by names what takes something away there.
func (x *index) at(path string) use {
	var u use
	var taken closure
	found := false
	for dir := path; ; {
		if c := x.closed[dir]; c != 0 {
			taken |= c
			u.by = dir
		}
		if p, ok := x.places[dir]; ok && !found {
			found = true
			u.view, u.read, u.write = p.view, p.view != nil, p.write
		}
		if dir == "/" || dir == "" {
			break
		}
		if dir = dir[:strings.LastIndexByte(dir, '/')]; dir == "" {
			dir = "/"
		}
	}
	u.read = u.read && taken&hidden == 0
	u.write = u.write && taken == 0
	return u
}

type within struct {
	child, parent *index
	identify      Identify
}

// root compares one view of the child by identity.
func (w *within) root(v View) error {
	if w.child.at(v.Target()).view == nil {
		return nil // the child's own cache, or covered
	}
	if m, ok := w.parent.masked[[2]uint64{v.Dev, v.Ino}]; ok && w.child.at(v.Target()).read {
		return wider("it shows " + quote(v.Path) + ", which is the hidden " + quote(m))
	}
	in := w.parent.at(v.Path).view
	switch {
	case v.At != "" && v.At != v.Path:
		// At another path nothing below can be compared with the parent's.
		return wider("it shows " + quote(v.Path) + " at " + quote(v.At))
	case in == nil:
		return wider("it shows " + quote(v.Path))
	case in.Path == v.Path && (in.Dev != v.Dev || in.Ino != v.Ino):
		return wider(quote(v.Path) + " is another folder than it was")
	case in.Path != v.Path:
		if dev, ino, ok := w.identify(in.Path); !ok || dev != in.Dev || ino != in.Ino {
			return wider(quote(in.Path) + ", around " + quote(v.Path) + ", is another folder than it was")
		}
	}
	return nil
}

// compare compares what both plans make of one path.
func (w *within) compare(path string) error {
	c, p := w.child.at(path), w.parent.at(path)
	if c.read && !p.read {
		if p.by != "" && w.gone(path) {
			return nil // there is nothing left to hide
		}
		return wider("it shows " + quote(path))
	}
	if c.write && !p.write {
		if p.by != "" && p.view != nil && p.view.Writable && w.gone(path) {
			return nil
		}
		return wider("it writes " + quote(path))
	}
	return nil
}

// gone says whether there is nothing at a path that the parent closes.
func (w *within) gone(path string) bool {
	_, closes := w.parent.closed[path]
	_, _, there := w.identify(path)
	return closes && !there
}

// inside says whether path is dir or lies below it. Both are canonical.
func inside(path, dir string) bool {
	if dir == "/" {
		return true
	}
	return path == dir || strings.HasPrefix(path, dir) && path[len(dir)] == '/'
}
