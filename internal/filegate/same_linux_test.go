package filegate

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/need"
	"github.com/tether-sandbox/tether/internal/plan/gitmeta"
	"github.com/tether-sandbox/tether/policy"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// TestSameAsACommand: for random trees, links, roots and profiles the gate
// opens for reading and for writing exactly what a command in the real sandbox
// can open, apart from what the package documents.
func TestSameAsACommand(t *testing.T) {
	binary := build(t)
	asked, opened, runs, refused := 0, 0, 0, 0
	kinds := map[string]int{}
	if f := flag.Lookup("rapid.checks"); f != nil && f.Value.String() == f.DefValue {
		_ = f.Value.Set("15") // each one starts a sandbox
		defer func() { _ = f.Value.Set(f.DefValue) }()
	}
	rapid.Check(t, func(rt *rapid.T) {
		p := newPlace(t)
		defer os.RemoveAll(p.top)
		f := forest{p: p, rt: rt}
		flags := f.grow()
		questions := f.questions()
		runs++
		answers := ask(rt, p, binary, flags, questions)
		if answers == nil {
			refused++
			return
		}
		g, err := Open(p.resolve(), Options{})
		if err != nil {
			// A link can hide the workspace itself.
			for i, q := range questions {
				if inside(p.path(q), p.w) && strings.Contains(answers[i], "y") {
					rt.Fatalf("%s: a command says %s, the gate %v", q, answers[i], err)
				}
			}
			return
		}
		defer g.Close()
		for i, q := range questions {
			ours, theirs := g.verdict(q), answers[i]
			asked++
			kinds[ours+"/"+theirs]++
			if theirs == "fyy" {
				opened++
			}
			why := differs(g, p, q, ours, theirs)
			for try := 0; why != "" && try < 2; try++ {
				// A run that takes long is looked after: what the probe has just made
				// with a name to hide may be hidden before it looks. One question alone
				// is over before that begins.
				if again := ask(rt, p, binary, flags, questions[i:i+1]); again != nil {
					theirs = again[0]
					why = differs(g, p, q, ours, theirs)
				}
			}
			if why != "" {
				rt.Fatalf("%v\n%s %q: the gate says %s, a command %s: %s\n%s", flags, p.w, q, ours, theirs, why, tree(p))
			}
		}
	})
	if refused > 1+runs/10 {
		t.Errorf("control: of %d sandboxes %d were not built", runs, refused)
	}
	if opened <= asked/200 {
		t.Errorf("control: of %d questions only %d were answered with an open file", asked, opened)
	}
	t.Logf("%d questions, answers by gate/command: %v", asked, kinds)
}

// tree prints what there is, for a failure.
func tree(p *place) string {
	out, _ := exec.Command("ls", "-liRa", p.w, p.out).CombinedOutput()
	return string(out)
}

// build makes the real program.
func build(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "filegate-bin-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	_ = os.Chmod(dir, 0o755)
	if tool, err := exec.LookPath("go"); err != nil {
		need.Missing(t, "go", err.Error())
	} else if out, err := exec.Command(tool, "build", "-buildvcs=false", "-o", dir+"/tether", "../../cmd/tether").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return dir + "/tether"
}

// forest makes a random workspace.
type forest struct {
	p     *place
	rt    *rapid.T
	dirs  []string
	files []string
	all   []string
}

var treeNames = []string{"a", "b", "f.txt", "sub", ".env", ".ENV", ".env.example", "id_rsa", "x.pem", "y.key", ".ssh", ".vscode", ".mcp.json", "MY.secret",
	"keep.lock", ".tether", ".git", ".GIT", "config", "hooks", "HEAD", "objects", "refs", ".bashrc~", "notes", "c", "d", "e", "g.go", "h.md", "i", "j"}

func (f *forest) name() string { return rapid.SampledFrom(treeNames).Draw(f.rt, "name") }

func (f *forest) grow() (flags []string) {
	p, rt := f.p, f.rt
	f.dirs = []string{p.w, p.out}
	for range rapid.IntRange(1, 5).Draw(rt, "dirs") {
		dir := rapid.SampledFrom(f.dirs).Draw(rt, "in") + "/" + f.name()
		if os.Mkdir(dir, 0o755) == nil {
			f.dirs = append(f.dirs, dir)
		}
	}
	const public = "-----BEGIN RSA PUBLIC KEY-----\nMAYCAQECAQE=\n-----END RSA PUBLIC KEY-----\n"
	for range rapid.IntRange(6, 24).Draw(rt, "files") {
		path := rapid.SampledFrom(append(slices.Clone(f.dirs), p.w, p.w)).Draw(rt, "in") + "/" + f.name()
		if _, err := os.Lstat(path); err == nil || path == p.w+"/.tether" {
			continue // what is no folder there stops every run
		}
		f.all = append(f.all, path)
		switch rapid.IntRange(0, 9).Draw(rt, "kind") {
		case 0, 1:
			to := rapid.SampledFrom(append(slices.Clone(f.all), "/etc/passwd", "..", ".", "a", "../a", "../out/a", "sub/../f.txt", "/", p.out, p.w+"/new", ".env")).Draw(rt, "to")
			if rel, err := filepath.Rel(filepath.Dir(path), to); err == nil && to[0] == '/' && rapid.Bool().Draw(rt, "relative") {
				to = rel
			}
			_ = os.Symlink(to, path)
		case 2:
			if len(f.files) > 0 {
				_ = os.Link(rapid.SampledFrom(f.files).Draw(rt, "link of"), path)
			}
		default:
			content := rapid.SampledFrom([]string{"", "text\n", public, "[core]\n\tbare = false\n", "[remote \"o\"]\n\turl = https://u:p@h/\n", "gitdir: ../x\n"}).Draw(rt, "content")
			mode := rapid.SampledFrom([]os.FileMode{0o644, 0o644, 0o644, 0o444, 0o200, 0o000}).Draw(rt, "mode")
			if os.WriteFile(path, []byte(content), 0o644) == nil {
				_ = os.Chmod(path, mode)
				f.files = append(f.files, path)
			}
		}
	}
	return f.policy()
}

// policy draws a policy and the flags that make the same one.
func (f *forest) policy() (flags []string) {
	p, rt := f.p, f.rt
	flags = []string{"-p", "workspace-write"}
	if rapid.IntRange(0, 4).Draw(rt, "profile") == 0 {
		p.pol.Profile, p.pol.Commands = policy.ReadOnly, policy.Any
		flags = []string{"-p", "read-only", "--commands", "any"}
	}
	if rapid.Bool().Draw(rt, "hide") {
		p.pol.Protect.Hidden = []string{"*.secret", "sub/a"}
		flags = append(flags, "--protect", "*.secret", "--protect", "sub/a")
	}
	if rapid.Bool().Draw(rt, "lock") {
		p.pol.Protect.Locked = []string{"keep.*"}
		flags = append(flags, "--lock", "keep.*")
	}
	if rapid.IntRange(0, 3).Draw(rt, "allow") == 0 {
		p.pol.Protect.AllowConfig = []string{".vscode"}
		flags = append(flags, "--allow-config", ".vscode")
	}
	roots := slices.DeleteFunc(append(slices.Clone(f.dirs[1:]), f.p.out), func(dir string) bool {
		return slices.ContainsFunc(strings.Split(dir, "/"), func(name string) bool {
			return policy.HiddenName([]byte(name)) == policy.HiddenAny // such a root is refused
		})
	})
	root := rapid.SampledFrom(roots).Draw(rt, "root")
	switch rapid.IntRange(0, 3).Draw(rt, "added") {
	case 0:
		p.pol.Read = []string{root}
		flags = append(flags, "--allow-read", root)
	case 1:
		if p.pol.Profile == policy.ReadOnly {
			break
		}
		p.pol.Write = []string{root}
		flags = append(flags, "--allow-write", root)
	}
	return flags
}

// questions are all that is there, in several spellings, and what is not.
func (f *forest) questions() []string {
	q := append(slices.Clone(f.all), f.p.out+"/f.txt", "/etc/passwd", "../out/a", f.p.w+"/../out/notes")
	for _, dir := range f.dirs {
		q = append(q, dir+"/new", dir+"/../notes")
		q = append(q, dir+"/"+f.name())
	}
	for range 8 {
		q = append(q, rapid.SampledFrom(append(slices.Clone(f.all), f.dirs...)).Draw(f.rt, "below")+"/"+f.name())
	}
	for i, path := range q {
		if rel, err := filepath.Rel(f.p.w, path); err == nil && inside(path, f.p.w) && !strings.Contains(path, "..") && i%2 == 0 {
			q[i] = rel
		}
	}
	slices.Sort(q)
	return slices.Compact(q)
}

// probe answers for one path: what it is, whether it opens for reading and for
// writing, and whether it can be made. It changes nothing that stays; through a
// link that dangles it makes nothing.
const probe = `q() {
	if [ -d "$1" ]; then echo d
	elif [ -e "$1" ]; then
		r=n; w=n
		true 2>/dev/null <"$1" && r=y
		true 2>/dev/null >>"$1" && w=y
		echo f$r$w
	elif [ -L "$1" ]; then echo -
	elif true 2>/dev/null >"$1"; then rm -f -- "$1"; echo ay
	else echo an
	fi
}
`

func ask(t rapid.TB, p *place, binary string, flags, questions []string) []string {
	t.Helper()
	var script strings.Builder
	script.WriteString(probe)
	for _, q := range questions {
		script.WriteString("q '" + q + "'\n")
	}
	args := append(append([]string{"run", "--provider", "native", "--no-network", "-C", p.w}, flags...), "--", "sh", "-c", script.String())
	cmd := exec.Command(binary, args...)
	cmd.Dir = p.w
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.top + "/home", "XDG_STATE_HOME=" + p.top + "/state", "XDG_CONFIG_HOME=" + p.top + "/config"}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	said := stderr.String()
	if strings.HasPrefix(said, "tether: ISOLATION_UNAVAILABLE") || strings.HasPrefix(said, "tether: SANDBOX_VIOLATION") {
		return nil // some trees, with every kind of protection on one path, and hidden roots are refused whole
	}
	if len(lines) != len(questions) {
		t.Fatalf("tether %v: %d answers to %d questions: %v\n%s\n%s", args[:len(args)-1], len(lines), len(questions), err, said, tree(p))
	}
	return lines
}

// verdict is the gate's answer in the same words.
func (g *Gate) verdict(path string) string {
	answer := "-"
	_ = g.enter(func() error {
		w, err := g.walk(path)
		if err != nil {
			return err
		}
		defer w.close()
		n := w.end()
		switch {
		case len(w.missing) == 1 && n.is(unix.S_IFDIR):
			answer = "an"
		case len(w.missing) > 0:
		case n.is(unix.S_IFDIR):
			answer = "d"
		default:
			r, o := "n", "n"
			_, err := w.read(MaxFile)
			if err == nil {
				r = "y"
			}
			if w.admit() == nil && (err == nil || !n.v.byContent) {
				if fd, err := openat(n.dir, n.name, unix.O_WRONLY); err == nil {
					unix.Close(fd)
					o = "y"
				}
			}
			answer = "f" + r + o
		}
		return nil
	})
	if to := path; answer == "an" {
		if to[0] != '/' {
			to = join(g.layout.workspace, to)
		}
		if _, err := os.Readlink(to); err == nil {
			return "-"
		}
		if r, err := g.Write(WriteRequest{Path: path, New: true}); err == nil {
			answer = "ay"
			at := r.Path
			if at[0] != '/' {
				at = g.layout.workspace + "/" + at
			}
			_ = os.Remove(at)
		} else if fault.CodeOf(err) == fault.Internal {
			answer = err.Error()
		}
	}
	return answer
}

// differs says why two answers cannot both be right; empty: they can.
func differs(g *Gate, p *place, path, ours, theirs string) string {
	if ours == theirs || ours == "-" && theirs != "d" && !strings.Contains(theirs, "y") {
		return ""
	}
	names := canonicalNames(p, path)
	odd := slices.ContainsFunc(names, func(n string) bool { return n != ".git" && gitmeta.DotGit(n) })
	git := slices.ContainsFunc(names, gitmeta.DotGit) || repository(p, path)
	switch {
	case odd && ours == "-":
		return "" // refused by its name, whatever it is
	case ours == "-" && system(p, path):
		return "" // the system's files are for commands
	case ours == "-" && theirs == "d":
		// A hidden folder is there, for a command, and empty; a folder outside is
		// there because it leads to a root.
		return ""
	case ours == "-" && strings.HasPrefix(theirs, "a"), ours == "an" && theirs == "ay":
		if git || slices.ContainsFunc(names, refusedNew) || strings.Contains(strings.Join(names, "/")+"/", "/sub/a/") {
			return ""
		}
		return "it can be made"
	case ours == "-" && strings.HasPrefix(theirs, "fn") && theirs[2] == 'n':
		return ""
	case ours == "fyn" && theirs == "fyy", ours == "fnn" && theirs == "fny":
		// A key that cannot be read by those who can write it: nobody knows.
		unread := ours == "fnn" && slices.ContainsFunc(names, func(n string) bool { return policy.HiddenName([]byte(n)) == policy.HiddenByContent })
		if git || unread || lockedAlias(g, p, path) {
			return ""
		}
		return "it can be written"
	case ours == "-" && theirs == "an":
		return ""
	}
	return "they differ"
}

// system says whether a path leads to a folder of the system.
func system(p *place, path string) bool {
	real, err := filepath.EvalSymlinks(p.path(path))
	return err == nil && !inside(real, p.top)
}

// refusedNew says whether the gate refuses to make such a name.
func refusedNew(name string) bool {
	return policy.HiddenName([]byte(name)) != policy.NotHidden || policy.LockedName([]byte(name)) || gitmeta.DotGit(name) ||
		strings.HasSuffix(name, ".secret") || strings.HasPrefix(name, "keep.")
}

// canonicalNames are the names of a path as it is spelled, of the links on its
// way, and of where it leads.
func canonicalNames(p *place, path string) []string {
	todo, at, seen := strings.Split(p.path(path), "/"), "/", []string(nil)
	for range 400 {
		if len(todo) == 0 {
			break
		}
		name := todo[0]
		todo, seen = todo[1:], append(seen, name)
		next := filepath.Join(at, name)
		to, err := os.Readlink(next)
		switch {
		case err != nil:
			at = next
		case to[0] == '/':
			at, todo = "/", append(strings.Split(to, "/"), todo...)
		default:
			todo = append(strings.Split(to, "/"), todo...)
		}
	}
	return append(seen, strings.Split(at, "/")...)
}

// repository says whether git takes a folder above the file for a repository,
// or would with it.
func repository(p *place, path string) bool {
	real := p.path(path)
	if r, err := filepath.EvalSymlinks(real); err == nil {
		real = r
	} else if dir, err := filepath.EvalSymlinks(filepath.Dir(real)); err == nil {
		real = dir + "/" + filepath.Base(real)
	}
	for at := real; at != "/"; at = filepath.Dir(at) {
		if gitmeta.BareLooking(func(name string) bool {
			_, err := os.Lstat(filepath.Dir(at) + "/" + name)
			return err == nil || name == filepath.Base(at)
		}) {
			return true
		}
	}
	return false
}

// lockedAlias says whether a file has other names, and is locked by one.
func lockedAlias(g *Gate, p *place, path string) bool {
	var st syscall.Stat_t
	if syscall.Stat(p.path(path), &st) != nil || st.Nlink < 2 {
		return false
	}
	_, locked := g.rules.lockedIDs[fileID{st.Dev, st.Ino}]
	return locked
}
