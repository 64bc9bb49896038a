package enforce

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tether-sandbox/tether/internal/plan"
	"github.com/tether-sandbox/tether/internal/plan/secrets"
)

// Compile turns a plan into the list of steps that builds its world. The order
// is the meaning: a later mount covers an earlier one, so views and pins come
// parents first, then what locks, then what hides, and the seals last.
// Protected beats writable because of that order alone.
//
// No step relies on what an earlier one did to its source: a provider may take
// the source of a Self from the host, where nothing is read-only yet and no
// deeper view is there.
func Compile(p *plan.Plan) []Step {
	c := compiler{root: p.Identity.Root}
	steps := make([]Step, 0, 64+len(p.Masks)+2*len(p.Locks))

	steps = append(steps, Foundation()...)
	if p.Policy.Nested {
		steps = append(steps, nested()...)
	}
	steps = append(steps, Step{Do: Tmpfs, Dst: "/dev/shm", Mode: 0o1777, Size: p.ShmBytes, Flags: NoExec})
	for _, l := range p.Links {
		steps = append(steps, Step{Do: Symlink, Dst: l.Path, Src: l.To, Flags: Make})
	}

	// Scratch folders and views share one order, by path: a workspace below
	// /tmp lies on top of the private /tmp, a private folder inside a view on
	// top of that view.
	steps = append(steps, c.places(p)...)
	for _, d := range p.Dirs {
		s := Step{Do: Dir, Dst: strings.TrimSuffix(d, "/"), Flags: Make}
		if s.Dst == d {
			s.Flags |= IsFile
		}
		steps = append(steps, s)
	}
	for _, f := range p.Files {
		steps = append(steps, Step{Do: File, Dst: f.Path, Content: f.Content, Flags: Make | IsFile})
	}
	// What lies in a covered folder is not there any more.
	for _, l := range p.Locks {
		if !isPin(l) && !c.covered(l.Path) && !slices.Contains(p.Covers, l.Path) {
			steps = append(steps, lock(l))
		}
	}
	for _, s := range p.Sockets {
		if !c.covered(s) {
			steps = append(steps, Step{Do: MaskFile, Dst: s, Flags: Gone})
		}
	}
	steps = c.masks(steps, p.Masks)
	// Sealed only now: the scaffolding of deeper views was made in them.
	for _, s := range p.Scratch {
		if !s.Writable {
			steps = append(steps, Step{Do: Seal, Dst: s.Path})
		}
	}
	for _, path := range c.open {
		steps = append(steps, Step{Do: Seal, Dst: path, Flags: Gone})
	}
	return steps
}

type compiler struct {
	root  bool
	trees uint32
	// covers are the covered folders, shown what lies on top of them at some
	// depth; open are the covers that must take such a thing.
	covers, open []string
	shown        map[string]bool
}

// covered says whether path lies in a covered folder and in nothing that is
// shown on top of it.
func (c *compiler) covered(path string) bool {
	if !slices.ContainsFunc(c.covers, func(cover string) bool { return below(path, cover) }) {
		return false
	}
	for at := path; ; {
		if c.shown[at] {
			return false
		}
		i := strings.LastIndexByte(at, '/')
		if i <= 0 {
			return true
		}
		if at = at[:i]; slices.Contains(c.covers, at) {
			return true
		}
	}
}

// below says whether path lies in the folder dir, and is not dir itself.
func below(path, dir string) bool {
	return len(path) > len(dir) && path[len(dir)] == '/' && path[:len(dir)] == dir
}

// cover hides a folder behind an empty one, which is made ready to take what
// the plan shows inside of it.
func (c *compiler) cover(path string) Step {
	for at := range c.shown {
		if below(at, path) {
			c.open = append(c.open, path)
			return Step{Do: Tmpfs, Dst: path, Mode: 0o555, Size: 1 << 20, Flags: Gone}
		}
	}
	return Step{Do: Cover, Dst: path, Flags: Gone}
}

// places orders scratch folders, covers, views and pins by path.
func (c *compiler) places(p *plan.Plan) []Step {
	var steps []Step
	c.covers, c.shown = p.Covers, make(map[string]bool, len(p.Views)+len(p.Scratch))
	for _, s := range p.Scratch {
		c.shown[s.Path] = true
		steps = append(steps, Step{Do: Tmpfs, Dst: s.Path, Mode: s.Mode, Size: s.Bytes, Flags: Make})
	}
	for i := range p.Views {
		v := &p.Views[i]
		c.shown[v.Target()] = true
		s := Step{Do: Bind, Src: v.Path, Dst: v.Target(), Dev: v.Dev, Ino: v.Ino, Flags: Make | writable(v.Writable)}
		if v.File {
			s.Flags |= IsFile
		}
		if v.NoExec {
			s.Flags |= NoExec
		}
		if v.Origin == plan.Toolchain || v.Origin == plan.Cache || v.Origin == plan.Tmp {
			s.Flags |= Optional
		}
		steps = append(steps, s)
	}
	// After the views: a cover of a folder that is a view itself hides it.
	for _, path := range p.Covers {
		if !c.covered(path) {
			steps = append(steps, c.cover(path))
		}
	}
	for _, l := range p.Locks {
		if isPin(l) && !c.covered(l.Path) {
			steps = append(steps, lock(l))
		}
	}
	slices.SortStableFunc(steps, func(a, b Step) int { return cmp.Compare(key(a.Dst), key(b.Dst)) })
	steps = pins(steps)
	if c.root {
		// The inner stage is not root any more and cannot reach what only root may
		// read, so that everything but the system is opened by the supervisor.
		origin := make(map[string]plan.Origin, len(p.Views))
		for i := range p.Views {
			origin[p.Views[i].Target()] = p.Views[i].Origin
		}
		for i := range steps {
			if steps[i].Do == Bind && origin[steps[i].Dst] != plan.System {
				c.trees++
				steps[i].Tree = c.trees
			}
		}
	}
	return steps
}

// key makes parents sort before their children and siblings stay together.
func key(path string) string { return strings.ReplaceAll(path, "/", "\x00") }

func writable(w bool) Flags {
	if w {
		return 0
	}
	return ReadOnly
}

// Foundation returns the steps that every list begins with, whatever the plan:
// an inner stage may carry them out while the plan is still being made.
func Foundation() []Step {
	return append([]Step{{Do: Devices, Dst: "/dev", Flags: Make}}, proc()...)
}

// proc mounts a fresh /proc and closes the parts of it that reach the machine
// and not only the processes inside.
func proc() []Step {
	steps := []Step{
		{Do: Proc, Dst: "/proc", Flags: Make},
		// A nested mount namespace could detach the masks; a nested user
		// namespace is the way to one, and attack surface of the kernel.
		{Do: Sysctl, Dst: "/proc/sys/user/max_mnt_namespaces", Content: []byte("0")},
		{Do: Sysctl, Dst: "/proc/sys/user/max_user_namespaces", Content: []byte("0")},
	}
	for _, path := range []string{"/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs"} {
		steps = append(steps, Step{Do: Self, Dst: path, Flags: ReadOnly | NoExec | Gone})
	}
	for _, path := range []string{"/proc/kcore", "/proc/keys", "/proc/key-users", "/proc/kallsyms", "/proc/timer_list",
		"/proc/latency_stats", "/proc/sched_debug"} {
		steps = append(steps, Step{Do: MaskFile, Dst: path, Flags: Gone})
	}
	for _, path := range []string{"/proc/scsi", "/proc/acpi"} {
		steps = append(steps, Step{Do: MaskDir, Dst: path, Flags: Gone})
	}
	return steps
}

// nested gives a /proc back of which nothing is covered, since only whoever has
// one may mount another, and lets namespaces be made.
func nested() []Step {
	return []Step{
		{Do: Proc, Dst: "/proc"},
		{Do: Sysctl, Dst: "/proc/sys/user/max_mnt_namespaces", Content: []byte("1000")},
		{Do: Sysctl, Dst: "/proc/sys/user/max_user_namespaces", Content: []byte("1000")},
	}
}

// pins looks at each pin with the place that it lies in: it never opens what
// that keeps read-only, and is left out where a mount stands already.
func pins(steps []Step) []Step {
	out := steps[:0]
	var around []Step // the places that hold the next one, outermost first
	for _, s := range steps {
		for len(around) > 0 && s.Dst != around[len(around)-1].Dst && !below(s.Dst, around[len(around)-1].Dst) {
			around = around[:len(around)-1]
		}
		if s.Do == Self {
			in := Step{}
			if len(around) > 0 {
				in = around[len(around)-1]
			}
			if in.Dst == s.Dst {
				continue
			}
			if in.Do != Bind && in.Do != Self {
				in.Flags = ReadOnly
			}
			s.Flags |= in.Flags & ReadOnly
		}
		out, around = append(out, s), append(around, s)
	}
	return out
}

// isPin says whether a lock only keeps its folder from being moved.
func isPin(l plan.Lock) bool { return l.Writable && l.Content == nil }

func lock(l plan.Lock) Step {
	if l.Content != nil {
		return Step{Do: File, Dst: l.Path, Dev: l.Dev, Ino: l.Ino, Content: l.Content, Flags: IsFile | Gone, MTime: l.MTime}
	}
	return Step{Do: Self, Dst: l.Path, Dev: l.Dev, Ino: l.Ino, Flags: Gone | writable(l.Writable)}
}

// masks appends the steps that hide. Below a folder that is hidden already
// there is nothing left to hide, and nowhere to put a mask.
func (c *compiler) masks(steps []Step, list []secrets.Mask) []Step {
	hidden := map[string]bool{}
	for i := range list {
		m := &list[i]
		if c.covered(m.Path) || within(m.Path, hidden) {
			continue
		}
		if m.Kind == secrets.MaskDir {
			hidden[m.Path] = true
		}
		steps = append(steps, Mask(m))
	}
	return steps
}

// within says whether path is one of dirs or lies in one.
func within(path string, dirs map[string]bool) bool {
	if len(dirs) == 0 {
		return false
	}
	for end := len(path); end > 0; end = strings.LastIndexByte(path[:end], '/') {
		if dirs[path[:end]] {
			return true
		}
	}
	return false
}

// Mask is the step that hides one file or folder.
func Mask(m *secrets.Mask) Step {
	s := Step{Dst: m.Path, Dev: m.Dev, Ino: m.Ino, Flags: Gone}
	switch m.Kind {
	case secrets.MaskDir:
		s.Do = MaskDir
	case secrets.MaskStub:
		s.Do, s.Size, s.MTime, s.Mode = MaskStub, m.Size, m.MTime.UnixNano(), m.Mode&0o111
	default:
		s.Do = MaskFile
	}
	return s
}
