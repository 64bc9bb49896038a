// Package walls makes the kernel hold a plan where there are no namespaces to be
// had: the provider landlock. The command stays in the host's own world, with
// walls round it that open only what the plan shows (package landlock), a system
// call filter, and a supervisor that buries its whole process tree.
//
// A rule opens a folder with all that lies in it, and nothing inside can be
// closed again. So a writable folder is open whole, with its hidden and locked
// files; where a folder is only read, its entries are opened one by one round
// what must stay closed. What the plan shows in another place than the host's,
// and what it has in memory, lies in a private folder of this run.
package walls

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/plan"
	"github.com/tether-sandbox/tether/internal/plan/secrets"
)

// Entry is one entry of a folder of the host.
type Entry struct {
	Name string
	// Dir is a folder, Link a symbolic link.
	Dir, Link bool
	// Dev and Ino are what it is.
	Dev, Ino uint64
}

// Host is what a translation asks of the machine.
type Host struct {
	// Private is a folder of this run alone, outside of all that the plan shows.
	Private string
	// List lists a folder.
	List func(dir string) ([]Entry, error)
	// Closed are paths that must stay closed besides the plan's: what the
	// command's ids could open by owning it.
	Closed []string
	// NoState says that the command's ids do not reach the state folder, in which
	// the caches and a session's /tmp are.
	NoState bool
}

// World is what a plan comes to.
type World struct {
	// Steps are Dir and File in the private folder, to be made before; then Allow;
	// then MaskFile, for what must turn out to be where it was, and closed, and
	// MaskDir, in which names can be seen.
	Steps []enforce.Step
	// Env is the command's environment.
	Env []string
}

// maxRules bounds the rules: a folder with more entries round something that
// must stay closed is not opened.
const maxRules = 50_000

const tmp = "/tmp"

// Translate turns a plan into rules. It changes nothing on the machine.
func Translate(p *plan.Plan, host Host) (World, error) {
	for _, own := range p.Own {
		for i := range p.Views {
			if v := &p.Views[i]; v.Writable && v.At == "" && (own == v.Path || below(own, v.Path)) {
				return World{}, fault.New(fault.SandboxUnavailable, "provider landlock cannot lock "+own+", which is Tether's own, in the writable folder "+v.Path).
					WithHint("keep tether and its folders outside of what commands write")
			}
		}
	}
	t := &translator{p: p, host: host, rules: map[string]enforce.Flags{}, known: map[string]plan.Root{}}
	t.move()
	t.close()
	for i := range p.Views {
		if err := t.view(&p.Views[i]); err != nil {
			return World{}, err
		}
	}
	t.devices()
	t.private()
	for path, flags := range t.rules {
		t.allow = append(t.allow, enforce.Step{Do: enforce.Allow, Dst: path, Flags: flags, Dev: t.known[path].Dev, Ino: t.known[path].Ino})
	}
	slices.SortFunc(t.allow, func(a, b enforce.Step) int { return cmp.Compare(a.Dst, b.Dst) })
	return World{Steps: slices.Concat(t.made, t.allow, t.kept()), Env: t.environment(p.Env)}, nil
}

type translator struct {
	p    *plan.Plan
	host Host
	// moved says where things lie that the plan shows elsewhere, the longest
	// paths first.
	moved []move
	// closed are paths that stay closed in what is only read; around are the
	// folders on the way to them.
	closed, around map[string]bool
	rules          map[string]enforce.Flags
	known          map[string]plan.Root
	made, allow    []enforce.Step
}

type move struct{ from, to string }

// move says where the places are that exist in no folder of the host.
func (t *translator) move() {
	add := func(from, to string) { t.moved = append(t.moved, move{from, to}) }
	add(plan.Private, t.host.Private+"/run")
	add(tmp, t.host.Private+tmp)
	for i := range t.p.Views {
		if v := &t.p.Views[i]; v.At != "" && !t.unreached(v) {
			t.moved = slices.DeleteFunc(t.moved, func(m move) bool { return m.from == v.At })
			add(v.At, v.Path)
		}
	}
	slices.SortFunc(t.moved, func(a, b move) int { return cmp.Compare(len(b.from), len(a.from)) })
}

// unreached says whether an empty folder of this run takes the place of a view.
func (t *translator) unreached(v *plan.View) bool {
	return t.host.NoState && (v.Origin == plan.Cache || v.Origin == plan.Tmp)
}

// place returns where a path of the plan's private places lies on the host.
func (t *translator) place(path string) (string, bool) {
	for _, m := range t.moved {
		if path == m.from || below(path, m.from) {
			return m.to + path[len(m.from):], true
		}
	}
	return path, false
}

// below says whether path lies in the folder dir, and is not dir itself.
func below(path, dir string) bool {
	return len(path) > len(dir) && path[len(dir)] == '/' && path[:len(dir)] == dir
}

func (t *translator) close() {
	t.closed, t.around = map[string]bool{}, map[string]bool{}
	add := func(path string) {
		t.closed[path] = true
		for i := strings.LastIndexByte(path, '/'); i > 0; i = strings.LastIndexByte(path[:i], '/') {
			t.around[path[:i]] = true
		}
	}
	for _, c := range t.p.Covers {
		add(c)
	}
	for i := range t.p.Masks {
		add(t.p.Masks[i].Path)
	}
	for i := range t.p.Locks {
		if Conceals(&t.p.Locks[i]) {
			add(t.p.Locks[i].Path)
		}
	}
	for _, c := range t.host.Closed {
		add(c)
	}
}

// Conceals says whether a lock shows other content than a file's own because
// that holds what the command must not see.
func Conceals(l *plan.Lock) bool { return l.Content != nil && !strings.HasPrefix(l.Path, "/etc/") }

// view opens what one view shows.
func (t *translator) view(v *plan.View) error {
	if t.unreached(v) {
		at, _ := t.place(v.At)
		t.dir(at, 0o700)
		if v.Writable {
			t.open(at, 0)
		} else {
			t.open(at, enforce.ReadOnly)
		}
		return nil
	}
	flags := enforce.Flags(0)
	if !v.Writable {
		flags |= enforce.ReadOnly
	}
	if v.NoExec {
		flags |= enforce.NoExec
	}
	if v.File {
		flags |= enforce.IsFile
	}
	if v.Origin == plan.Toolchain {
		flags |= enforce.Optional
	}
	t.known[v.Path] = v.Root
	switch {
	case v.Writable:
		t.open(v.Path, flags)
		return nil
	case t.closed[v.Path] || t.hidden(v.Path):
		return nil
	case !t.around[v.Path]:
		t.open(v.Path, flags)
		return nil
	}
	return t.round(v.Path, flags|enforce.Gone)
}

// hidden says whether path lies in a hidden folder. In a covered one it may be
// shown by name.
func (t *translator) hidden(path string) bool {
	for i := range t.p.Masks {
		if below(path, t.p.Masks[i].Path) {
			return true
		}
	}
	return false
}

// kept lists what the plan hides in folders that are only read. No rule opens
// where it lies; somewhere else, one could.
func (t *translator) kept() (out []enforce.Step) {
	add := func(do enforce.Verb, path string, dev, ino uint64) {
		shown := false
		for i := range t.p.Views {
			v := &t.p.Views[i]
			if path != v.Path && !below(path, v.Path) && v.Path != "/" {
				continue
			}
			if v.Writable {
				return // it is open, as the grade says
			}
			shown = true
		}
		if shown {
			out = append(out, enforce.Step{Do: do, Dst: path, Dev: dev, Ino: ino})
		}
	}
	for i := range t.p.Masks {
		m := &t.p.Masks[i]
		do := enforce.MaskFile
		if m.Kind == secrets.MaskDir {
			do = enforce.MaskDir
		}
		add(do, m.Path, m.Dev, m.Ino)
	}
	for i := range t.p.Locks {
		if l := &t.p.Locks[i]; Conceals(l) {
			add(enforce.MaskFile, l.Path, l.Dev, l.Ino)
		}
	}
	return out
}

// open adds a rule; of two for one path both hold.
func (t *translator) open(path string, flags enforce.Flags) {
	if have, ok := t.rules[path]; ok {
		const takes = enforce.ReadOnly | enforce.NoExec | enforce.Listing
		flags = flags&have&takes | (flags|have)&^takes
	}
	t.rules[path] = flags
}

// round opens the entries of a folder one by one, but for what stays closed.
func (t *translator) round(dir string, flags enforce.Flags) error {
	entries, err := t.host.List(dir)
	if err != nil {
		return nil // what cannot be listed is not opened
	}
	t.open(dir, enforce.Listing|enforce.ReadOnly|enforce.NoExec|enforce.Gone)
	for _, e := range entries {
		path := dir + "/" + e.Name
		t.known[path] = plan.Root{Dev: e.Dev, Ino: e.Ino}
		switch {
		case e.Link || t.closed[path]:
		case e.Dir && t.around[path]:
			if err := t.round(path, flags); err != nil {
				return err
			}
		case e.Dir:
			t.open(path, flags&^enforce.IsFile)
		default:
			t.open(path, flags|enforce.IsFile)
		}
	}
	if len(t.rules) > maxRules {
		return fault.New(fault.SandboxUnavailable, fmt.Sprintf("what must stay closed in %s takes more than %d rules", dir, maxRules)).
			WithHint("--provider native")
	}
	return nil
}

// devices opens the few device files that programs expect, and /proc.
func (t *translator) devices() {
	for _, path := range [...]string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"} {
		t.open(path, enforce.NoExec|enforce.IsFile)
	}
	t.open("/dev/tty", enforce.NoExec|enforce.IsFile|enforce.AllowDevices|enforce.Gone)
	// Whose a process is decides there: what is told by /proc/PID/environ, mem,
	// fd and the like of processes outside, the walls refuse.
	t.open("/proc", enforce.ReadOnly|enforce.NoExec)
}

// private makes the places that exist in no folder of the host, and opens them.
func (t *translator) private() {
	t.dir(t.host.Private+"/run", 0o755)
	t.open(t.host.Private+"/run", enforce.ReadOnly)
	for _, s := range t.p.Scratch {
		at, ok := t.place(s.Path)
		if s.Path != tmp && !below(s.Path, plan.Private) || !ok {
			continue // the host's own, which stays closed; or scaffolding for mounts
		}
		if strings.HasPrefix(at, t.host.Private+"/") {
			t.dir(at, s.Mode)
		}
		flags := enforce.ReadOnly
		if s.Writable {
			flags = 0
		}
		t.open(at, flags)
	}
	for _, d := range t.p.Dirs {
		if at, ok := t.place(strings.TrimSuffix(d, "/")); ok && strings.HasSuffix(d, "/") {
			t.dir(at, 0o700)
		} else if ok {
			t.file(at, nil)
		}
	}
	for _, f := range t.p.Files {
		if at, ok := t.place(f.Path); ok {
			t.file(at, []byte(t.relocate(string(f.Content))))
		}
	}
}

func (t *translator) dir(path string, mode uint32) {
	t.made = append(t.made, enforce.Step{Do: enforce.Dir, Dst: path, Mode: mode})
}

func (t *translator) file(path string, content []byte) {
	t.made = append(t.made, enforce.Step{Do: enforce.File, Dst: path, Mode: 0o444, Content: content, Flags: enforce.IsFile})
}

// environment names the places where they are.
func (t *translator) environment(env []string) []string {
	out := make([]string, 0, len(env))
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		if name == "TMPDIR" {
			value, _ = t.place(value)
		}
		out = append(out, name+"="+t.relocate(value))
	}
	return out
}

// relocate replaces the names of Tether's private places in a text.
func (t *translator) relocate(text string) string {
	var out strings.Builder
	for {
		i := strings.Index(text, plan.Private)
		if i < 0 {
			out.WriteString(text)
			return out.String()
		}
		end := i
		for end < len(text) && !strings.ContainsRune(":;,= \t\n\"'", rune(text[end])) {
			end++
		}
		path := text[i:end]
		if i == 0 || text[i-1] != '/' && !wordByte(text[i-1]) {
			path, _ = t.place(path)
		}
		out.WriteString(text[:i] + path)
		text = text[end:]
	}
}

func wordByte(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '_' || b == '-' || b == '.'
}
