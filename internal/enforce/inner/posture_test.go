package inner

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/tether-sandbox/tether/internal/enforce"
)

// escape is what the kernel does to a path of mountinfo.
func escape(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if strings.IndexByte(" \t\n\\#", s[i]) >= 0 {
			fmt.Fprintf(&b, `\%03o`, s[i])
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func FuzzReadMounts(f *testing.F) {
	f.Add("36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw\n")
	f.Add("1 1 0:1 / / ro - tmpfs t rw\n2 1 0:2 / /a\\040b rw\n")
	f.Add("\n")
	f.Fuzz(func(t *testing.T, info string) {
		there, err := readMounts(strings.NewReader(info))
		if err == nil && len(there) > strings.Count(info, "\n") {
			t.Errorf("%d mounts of %d lines", len(there), strings.Count(info, "\n"))
		}
	})
}

// line is a line of mountinfo.
func line(id, parent int, at, options string) string {
	return fmt.Sprintf("%d %d 8:1 / %s %s - ext4 /dev/x rw\n", id, parent, escape(at), options)
}

func TestReadMounts(t *testing.T) {
	const safe = "nosuid,nodev"
	for _, c := range []struct {
		name, info string
		want       map[string]string // nil for an error
	}{
		{"nothing", "", map[string]string{}},
		{"one", line(2, 1, "/a b", "ro"), map[string]string{"/a b": "ro"}},
		{"without optional fields", "2 1 8:1 / /a ro - ext4 x rw\n", map[string]string{"/a": "ro"}},
		{"the upper one, told last", line(2, 1, "/a", "rw") + line(3, 2, "/a", "ro"), map[string]string{"/a": "ro"}},
		{"the upper one, told first", line(3, 2, "/a", "ro") + line(2, 1, "/a", "rw"), map[string]string{"/a": "ro"}},
		{"too short a line", "2 1 8:1 / /a ro\n", nil},
		{"a line that is cut off", strings.TrimSuffix(line(2, 1, "/a", safe), "\n"), nil},
		{"an empty line", "\n", nil},
		{"a line that is too long to be one", line(2, 1, "/"+strings.Repeat("x", 1<<16), safe), nil},
	} {
		there, err := readMounts(strings.NewReader(c.info))
		if (err != nil) != (c.want == nil) {
			t.Errorf("%s: got %v, %v; want %v", c.name, there, err, c.want)
			continue
		}
		got := map[string]string{}
		for at, m := range there {
			got[at] = m.options
		}
		if c.want != nil && !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
	if _, err := readMounts(iotest.TimeoutReader(strings.NewReader(strings.Repeat(line(2, 1, "/a", safe), 9000)))); err == nil {
		t.Error("a file that cannot be read to its end: got nil, want an error")
	}
}

// world is a mountinfo with a root and the given mounts, each "path options".
func world(t *testing.T, mounts ...string) map[string]mount {
	t.Helper()
	info := line(1, 0, "/", "ro,nosuid,nodev")
	for i, m := range mounts {
		at, options, _ := strings.Cut(m, " ")
		info += line(i+2, 1, at, options)
	}
	there, err := readMounts(strings.NewReader(info))
	if err != nil {
		t.Fatal(err)
	}
	return there
}

func TestCompare(t *testing.T) {
	bind := func(at string, f enforce.Flags) enforce.Step {
		return enforce.Step{Do: enforce.Bind, Dst: at, Src: at, Flags: f}
	}
	do := func(v enforce.Verb, at string, f enforce.Flags) enforce.Step {
		return enforce.Step{Do: v, Dst: at, Flags: f}
	}
	const ro, rw, gone = "ro,nosuid,nodev", "rw,nosuid,nodev", enforce.Gone
	for _, c := range []struct {
		name   string
		steps  []enforce.Step
		mounts []string
		wrong  string // a part of the error, "" for none
		absent []string
	}{
		{"nothing", nil, nil, "", nil},
		{"as planned", []enforce.Step{bind("/w", 0), bind("/usr", enforce.ReadOnly)}, []string{"/w " + rw, "/usr " + ro}, "", nil},
		{"stricter than planned", []enforce.Step{bind("/w", 0)}, []string{"/w " + ro}, "", nil},
		{"a view is missing", []enforce.Step{bind("/w", 0)}, nil, "/w is missing", nil},
		{"a view is writable", []enforce.Step{bind("/usr", enforce.ReadOnly)}, []string{"/usr " + rw}, "/usr is writable", nil},
		{"set-uid programs work", []enforce.Step{bind("/w", 0)}, []string{"/w rw,nodev"}, "set-uid", nil},
		{"devices work", []enforce.Step{bind("/w", 0)}, []string{"/w rw,nosuid"}, "devices", nil},
		{"an option that only holds the word", []enforce.Step{bind("/usr", enforce.ReadOnly)}, []string{"/usr errors=remount-ro,nosuid,nodev"}, "writable", nil},
		{"a mask is missing and so may be its file", []enforce.Step{do(enforce.MaskFile, "/m", gone)}, nil, "", []string{"/m"}},
		{"a mask that must be there", []enforce.Step{do(enforce.MaskFile, "/m", 0)}, nil, "missing", nil},
		{"a mask is writable", []enforce.Step{do(enforce.MaskFile, "/m", gone)}, []string{"/m " + rw}, "writable", nil},
		{"a masked folder is writable", []enforce.Step{do(enforce.MaskDir, "/m", gone)}, []string{"/m " + rw}, "writable", nil},
		{"a stand-in is writable", []enforce.Step{do(enforce.MaskStub, "/m", gone)}, []string{"/m " + rw}, "writable", nil},
		{"a cover is writable", []enforce.Step{do(enforce.Cover, "/m", gone)}, []string{"/m " + rw}, "writable", nil},
		{"a file is writable", []enforce.Step{do(enforce.File, "/m", 0)}, []string{"/m " + rw}, "writable", nil},
		{"a lock over a view of the same path", []enforce.Step{bind("/w", 0), do(enforce.Self, "/w", enforce.ReadOnly)}, []string{"/w " + rw}, "writable", nil},
		{"a pin", []enforce.Step{do(enforce.Self, "/w/.git", gone)}, []string{"/w/.git " + rw}, "", nil},
		{"sealed", []enforce.Step{do(enforce.Tmpfs, "/t", 0), do(enforce.Seal, "/t", 0)}, []string{"/t " + ro}, "", nil},
		{"not sealed", []enforce.Step{do(enforce.Tmpfs, "/t", 0), do(enforce.Seal, "/t", 0)}, []string{"/t " + rw}, "writable", nil},
		{"links and folders are no mounts", []enforce.Step{do(enforce.Symlink, "/bin", 0), do(enforce.Dir, "/d", 0), do(enforce.Sysctl, "/proc/sys/x", 0)}, nil, "", nil},
		{"an unplanned mount", []enforce.Step{bind("/w", 0)}, []string{"/w " + rw, "/x " + ro}, "unplanned mount at /x", nil},
		{"what a view brings along", []enforce.Step{bind("/w", 0)}, []string{"/w " + rw, "/w/sub rw"}, "", nil},
		{"what only begins like a view", []enforce.Step{bind("/w", 0)}, []string{"/w " + rw, "/ww " + ro}, "unplanned", nil},
		{"what lies in private memory", []enforce.Step{do(enforce.Tmpfs, "/t", 0)}, []string{"/t " + rw, "/t/x " + rw}, "unplanned", nil},
		{"devices", []enforce.Step{do(enforce.Devices, "/dev", 0)}, []string{"/dev " + ro, "/dev/null rw"}, "", nil},
		{"a writable /dev", []enforce.Step{do(enforce.Devices, "/dev", 0)}, []string{"/dev " + rw}, "writable", nil},
	} {
		absent, err := compare(world(t, c.mounts...), c.steps, true)
		switch {
		case c.wrong == "" && err != nil || c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)):
			t.Errorf("%s: got %v, want %q", c.name, err, c.wrong)
		case !slices.Equal(absent, c.absent):
			t.Errorf("%s: absent: got %q, want %q", c.name, absent, c.absent)
		}
	}
	open, err := readMounts(strings.NewReader(line(1, 0, "/", rw)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := compare(open, nil, true); err == nil {
		t.Error("a writable root: got nil, want an error")
	}
	// bwrap adds mounts of its own; they are not held against it.
	if _, err := compare(world(t, "/x "+rw), nil, false); err != nil {
		t.Errorf("an unplanned mount of another builder: got %v, want nil", err)
	}
	if _, err := compare(world(t, "/w "+rw), []enforce.Step{bind("/w", enforce.ReadOnly)}, false); err == nil {
		t.Error("a writable view of another builder: got nil, want an error")
	}
}
