package enforce_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/enforce/enforcetest"
	"github.com/tether-sandbox/tether/internal/plan"
	"github.com/tether-sandbox/tether/internal/plan/secrets"
)

var update = flag.Bool("update", false, "write testdata/*.golden anew")

// golden compares got with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got == string(want) {
		return
	}
	have, asked := strings.Split(got, "\n"), strings.Split(string(want), "\n")
	for i := range max(len(have), len(asked)) {
		h, a := "(end)", "(end)"
		if i < len(have) {
			h = have[i]
		}
		if i < len(asked) {
			a = asked[i]
		}
		if h != a {
			t.Fatalf("%s line %d:\n got %s\nwant %s\n(go test ./internal/enforce -update)", path, i+1, h, a)
		}
	}
}

// full is everything that a step says, on one line.
func full(s enforce.Step) string {
	out := fmt.Sprintf("%s %s", s.Do, s.Dst)
	if s.Src != "" {
		out += " <- " + s.Src
	}
	if s.Flags != 0 {
		out += " [" + s.Flags.String() + "]"
	}
	for _, f := range []struct {
		name  string
		value int64
	}{{"dev", int64(s.Dev)}, {"ino", int64(s.Ino)}, {"tree", int64(s.Tree)}, {"size", s.Size}, {"mtime", s.MTime}} {
		if f.value != 0 {
			out += fmt.Sprintf(" %s=%d", f.name, f.value)
		}
	}
	if s.Mode != 0 {
		out += fmt.Sprintf(" mode=%04o", s.Mode)
	}
	if len(s.Content) > 0 {
		out += fmt.Sprintf(" %q", s.Content)
	}
	return out
}

func printAll(steps []enforce.Step) string {
	var b strings.Builder
	for _, s := range steps {
		fmt.Fprintln(&b, full(s))
	}
	return b.String()
}

func TestCompileGolden(t *testing.T) {
	p := enforcetest.Plan()
	golden(t, "steps", printAll(enforce.Compile(p)))
	p.Identity.Root, p.Identity.Idmapped = true, true
	golden(t, "steps-root", printAll(enforce.Compile(p)))
	golden(t, "steps-empty", printAll(enforce.Compile(&plan.Plan{})))
}

// TestCompileLeavesThePlan holds Compile to reading: a plan is read by others
// afterwards, and compiles to the same again.
func TestCompileLeavesThePlan(t *testing.T) {
	p := enforcetest.Plan()
	before := fmt.Sprintf("%+v", p)
	first := enforce.Compile(p)
	if got := fmt.Sprintf("%+v", p); got != before {
		t.Errorf("the plan changed:\n got %s\nwant %s", got, before)
	}
	if again := enforce.Compile(p); printAll(again) != printAll(first) {
		t.Errorf("the second time:\n got %s\nwant %s", printAll(again), printAll(first))
	}
}

// compiled returns the steps of one path, without those of the fixed scaffolding.
func compiled(p *plan.Plan, dst string) []enforce.Step {
	var out []enforce.Step
	for _, s := range enforce.Compile(p) {
		if s.Dst == dst {
			out = append(out, s)
		}
	}
	return out
}

func TestCompileEach(t *testing.T) {
	view := func(path string, write bool) plan.View {
		return plan.View{Root: plan.Root{Path: path, Dev: 1, Ino: 2}, Origin: plan.Added, Writable: write}
	}
	when := time.Unix(7, 9)
	for _, c := range []struct {
		name string
		plan plan.Plan
		at   string
		want string // one line for each step, "" for none
	}{
		{"a view is read-only unless it says otherwise", plan.Plan{Views: []plan.View{view("/a", false)}}, "/a",
			"bind /a <- /a [ro,make] dev=1 ino=2"},
		{"a writable view", plan.Plan{Views: []plan.View{view("/a", true)}}, "/a", "bind /a <- /a [make] dev=1 ino=2"},
		{"a file view", plan.Plan{Views: []plan.View{{Root: plan.Root{Path: "/a"}, File: true, NoExec: true}}}, "/a",
			"bind /a <- /a [ro,noexec,make,file]"},
		{"a view shown elsewhere", plan.Plan{Views: []plan.View{{Root: plan.Root{Path: "/c"}, At: "/run/c", Origin: plan.Cache, Writable: true}}},
			"/run/c", "bind /run/c <- /c [make,optional]"},
		{"a toolchain can be done without", plan.Plan{Views: []plan.View{{Root: plan.Root{Path: "/t"}, Origin: plan.Toolchain}}}, "/t",
			"bind /t <- /t [ro,make,optional]"},
		{"writable scratch is not sealed", plan.Plan{Scratch: []plan.Scratch{{Path: "/s", Mode: 0o1777, Bytes: 5, Writable: true}}}, "/s",
			"tmpfs /s [make] size=5 mode=1777"},
		{"other scratch is", plan.Plan{Scratch: []plan.Scratch{{Path: "/s", Mode: 0o755}}}, "/s",
			"tmpfs /s [make] mode=0755\nseal /s"},
		{"a cover", plan.Plan{Covers: []string{"/a"}}, "/a", "cover /a [gone]"},
		{"a cover over a view", plan.Plan{Views: []plan.View{view("/a", false)}, Covers: []string{"/a"}}, "/a",
			"bind /a <- /a [ro,make] dev=1 ino=2\ncover /a [gone]"},
		{"a cover that something lies in", plan.Plan{Views: []plan.View{view("/a", false), view("/a/b/c", true)}, Covers: []string{"/a/b"}}, "/a/b",
			"tmpfs /a/b [gone] size=1048576 mode=0555\nseal /a/b [gone]"},
		{"a cover below another", plan.Plan{Views: []plan.View{view("/a", false)}, Covers: []string{"/a/b", "/a/b/c"}}, "/a/b/c", ""},
		{"a cover beside what only begins like it", plan.Plan{Views: []plan.View{view("/a", false), view("/a/bc", true)}, Covers: []string{"/a/b"}}, "/a/b",
			"cover /a/b [gone]"},
		{"a mask in a cover", plan.Plan{Covers: []string{"/a"}, Masks: []secrets.Mask{{Path: "/a/m"}}}, "/a/m", ""},
		{"a mask in a view in a cover", plan.Plan{Views: []plan.View{view("/a/v", false)}, Covers: []string{"/a"}, Masks: []secrets.Mask{{Path: "/a/v/m"}}},
			"/a/v/m", "mask-file /a/v/m [gone]"},
		{"a socket in a cover", plan.Plan{Covers: []string{"/a"}, Sockets: []string{"/a/s"}}, "/a/s", ""},
		{"a socket", plan.Plan{Sockets: []string{"/a/s"}}, "/a/s", "mask-file /a/s [gone]"},
		{"a folder of the scaffolding", plan.Plan{Dirs: []string{"/d/"}}, "/d", "dir /d [make]"},
		{"a file of the scaffolding", plan.Plan{Dirs: []string{"/d"}}, "/d", "dir /d [make,file]"},
		{"a file", plan.Plan{Files: []plan.File{{Path: "/f", Content: []byte("x")}}}, "/f", `file /f [make,file] "x"`},
		{"an empty file", plan.Plan{Files: []plan.File{{Path: "/f"}}}, "/f", "file /f [make,file]"},
		{"a link", plan.Plan{Links: []plan.Link{{Path: "/bin", To: "usr/bin"}}}, "/bin", "symlink /bin <- usr/bin [make]"},
		{"a lock", plan.Plan{Views: []plan.View{view("/a", true)}, Locks: []plan.Lock{{Path: "/a/l"}}}, "/a/l", "self /a/l [ro,gone]"},
		{"a lock with content", plan.Plan{Locks: []plan.Lock{{Path: "/l", Content: []byte("c"), MTime: 3}}}, "/l", `file /l [file,gone] mtime=3 "c"`},
		{"a lock with empty content", plan.Plan{Locks: []plan.Lock{{Path: "/l", Content: []byte{}}}}, "/l", "file /l [file,gone]"},
		{"content beats a pin", plan.Plan{Locks: []plan.Lock{{Path: "/l", Content: []byte{}, Writable: true}}}, "/l", "file /l [file,gone]"},
		{"a pin", plan.Plan{Views: []plan.View{view("/a", true)}, Locks: []plan.Lock{{Path: "/a/l", Writable: true}}}, "/a/l", "self /a/l [gone]"},
		{"a pin in a read-only view", plan.Plan{Views: []plan.View{view("/a", false)}, Locks: []plan.Lock{{Path: "/a/l", Writable: true}}}, "/a/l",
			"self /a/l [ro,gone]"},
		{"a pin in no view", plan.Plan{Locks: []plan.Lock{{Path: "/a/l", Writable: true}}}, "/a/l", "self /a/l [ro,gone]"},
		{"a pin of a view", plan.Plan{Views: []plan.View{view("/a", true)}, Locks: []plan.Lock{{Path: "/a", Writable: true}}}, "/a",
			"bind /a <- /a [make] dev=1 ino=2"},
		{"a mask of a file", plan.Plan{Masks: []secrets.Mask{{Path: "/m", Size: 9, MTime: when, Mode: 0o644}}}, "/m", "mask-file /m [gone]"},
		{"a mask of a folder", plan.Plan{Masks: []secrets.Mask{{Path: "/m", Kind: secrets.MaskDir}}}, "/m", "mask-dir /m [gone]"},
		{"a mask of a tracked file tells only what git compares", plan.Plan{Masks: []secrets.Mask{{Path: "/m", Kind: secrets.MaskStub, Size: 9, MTime: when, Mode: 0o755}}},
			"/m", "mask-stub /m [gone] size=9 mtime=7000000009 mode=0111"},
		{"a mask of an unknown kind is the strict one", plan.Plan{Masks: []secrets.Mask{{Path: "/m", Kind: 99}}}, "/m", "mask-file /m [gone]"},
		{"nothing is hidden twice", plan.Plan{Masks: []secrets.Mask{{Path: "/m", Kind: secrets.MaskDir}, {Path: "/m/x"}, {Path: "/m"}}}, "/m/x", ""},
		{"a name that only begins like a hidden folder", plan.Plan{Masks: []secrets.Mask{{Path: "/m", Kind: secrets.MaskDir}, {Path: "/mx"}}}, "/mx",
			"mask-file /mx [gone]"},
	} {
		var lines []string
		for _, s := range compiled(&c.plan, c.at) {
			lines = append(lines, full(s))
		}
		if got := strings.Join(lines, "\n"); got != c.want {
			t.Errorf("%s:\n got %q\nwant %q", c.name, got, c.want)
		}
	}
}

// TestProcIsClosed names what a fresh /proc would still open of the machine.
func TestProcIsClosed(t *testing.T) {
	steps := enforce.Compile(&plan.Plan{})
	for _, c := range []struct {
		path string
		do   enforce.Verb
	}{
		{"/proc/sys", enforce.Self}, {"/proc/sysrq-trigger", enforce.Self}, {"/proc/irq", enforce.Self},
		{"/proc/bus", enforce.Self}, {"/proc/fs", enforce.Self},
		{"/proc/kcore", enforce.MaskFile}, {"/proc/keys", enforce.MaskFile}, {"/proc/kallsyms", enforce.MaskFile},
	} {
		i := slices.IndexFunc(steps, func(s enforce.Step) bool { return s.Dst == c.path })
		if i < 0 || steps[i].Do != c.do || c.do == enforce.Self && steps[i].Flags&enforce.ReadOnly == 0 {
			t.Errorf("%s: got step %d of %v, want %s (read-only)", c.path, i, steps, c.do)
		}
	}
	sysctl := slices.IndexFunc(steps, func(s enforce.Step) bool { return s.Dst == "/proc/sys/user/max_mnt_namespaces" })
	if sysctl < 0 || !bytes.Equal(steps[sysctl].Content, []byte("0")) {
		t.Error("nested mount namespaces are not forbidden")
	}
}

func TestStepString(t *testing.T) {
	for _, c := range []struct {
		step enforce.Step
		want string
	}{
		{enforce.Step{Do: enforce.Bind, Dst: "/a", Src: "/a", Flags: enforce.ReadOnly | enforce.Make | enforce.IsFile}, "bind      /a [ro]"},
		{enforce.Step{Do: enforce.Bind, Dst: "/a", Src: "/b"}, "bind      /a <- /b"},
		{enforce.Step{Do: enforce.MaskFile, Dst: "/m", Content: []byte("secret"), Flags: enforce.Gone | enforce.Optional}, "mask-file /m [gone,optional]"},
		{enforce.Step{}, "verb(0)   "},
		{enforce.Step{Do: 200, Dst: "/x"}, "verb(200) /x"},
	} {
		if got := c.step.String(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
