package bwrap_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/enforce/bwrap"
	"github.com/tether-sandbox/tether/internal/enforce/enforcetest"
	"github.com/tether-sandbox/tether/internal/enforce/inner"
)

var update = flag.Bool("update", false, "write testdata/*.golden anew")

// host is a machine where everything exists but what gone names. It prints
// what is handed over in place of descriptors.
type host struct {
	gone []string
	data []string
}

func (h *host) host() bwrap.Host {
	return bwrap.Host{
		Exists: func(path string) bool { return !slices.Contains(h.gone, path) },
		Data: func(content []byte) int {
			h.data = append(h.data, string(content))
			return 100 + len(h.data)
		},
		Stub: func(size, mtime int64, mode uint32) (string, error) {
			return fmt.Sprintf("/stubs/%d-%d-%o", size, mtime, mode), nil
		},
		Size: true, DisableUserns: true,
	}
}

// words prints arguments with one option on each line.
func words(args []string) string {
	var b strings.Builder
	for i, a := range args {
		if i > 0 {
			if strings.HasPrefix(a, "--") {
				b.WriteByte('\n')
			} else {
				b.WriteByte(' ')
			}
		}
		b.WriteString(a)
	}
	return b.String() + "\n"
}

func TestArgumentsGolden(t *testing.T) {
	for _, c := range []struct {
		name    string
		network bool
		change  func(*host, *bwrap.Host)
	}{
		{"argv", false, func(*host, *bwrap.Host) {}},
		{"argv-network-old", true, func(h *host, b *bwrap.Host) {
			b.Size, b.DisableUserns = false, false
			h.gone = []string{"/home/u/w/.env", "/home/u/w/.git/hooks", "/opt/private", "/opt/home", "/home/u/w"}
		}},
	} {
		h := &host{}
		b := h.host()
		c.change(h, &b)
		args, err := bwrap.Arguments(enforce.Compile(enforcetest.Plan()), c.network, b)
		if err != nil {
			t.Fatal(err)
		}
		got := words(args)
		for i, d := range h.data {
			got += fmt.Sprintf("descriptor %d: %q\n", 101+i, d)
		}
		path := filepath.Join("testdata", c.name+".golden")
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s: got\n%s\nwant\n%s\n(go test ./internal/enforce/bwrap -update)", path, got, want)
		}
	}
}

// translate returns the words of one step alone.
func translate(t *testing.T, h *host, s enforce.Step) string {
	t.Helper()
	empty, err := bwrap.Arguments(nil, true, h.host())
	if err != nil {
		t.Fatal(err)
	}
	all, err := bwrap.Arguments([]enforce.Step{s}, true, h.host())
	if err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	const kit = "--perms 0000 --dir " + inner.KitPlace // before what is sealed
	end := len(empty) - 4 - 2                          // the last two are --remount-ro /
	before, after, found := strings.Cut(strings.Join(all[end:len(all)-2], " "), kit)
	if !found || s.Do == enforce.Seal && before != "" || s.Do != enforce.Seal && after != "" {
		t.Errorf("%s: the folder for masks is not where it must be: %q", s, all)
	}
	return strings.TrimSpace(before + after)
}

func TestArgumentsEach(t *testing.T) {
	for _, c := range []struct {
		name string
		step enforce.Step
		want string
	}{
		{"bind", enforce.Step{Do: enforce.Bind, Src: "/a", Dst: "/b"}, "--bind /a /b"},
		{"read-only bind", enforce.Step{Do: enforce.Bind, Src: "/a", Dst: "/b", Flags: enforce.ReadOnly}, "--ro-bind /a /b"},
		{"tmpfs", enforce.Step{Do: enforce.Tmpfs, Dst: "/t", Mode: 0o1777}, "--perms 1777 --tmpfs /t"},
		{"sized tmpfs", enforce.Step{Do: enforce.Tmpfs, Dst: "/t", Mode: 0o700, Size: 5}, "--perms 0700 --size 5 --tmpfs /t"},
		{"pin", enforce.Step{Do: enforce.Self, Dst: "/p"}, "--bind /p /p"},
		{"lock", enforce.Step{Do: enforce.Self, Dst: "/p", Flags: enforce.ReadOnly}, "--ro-bind /p /p"},
		{"bwrap closes /proc itself", enforce.Step{Do: enforce.Self, Dst: "/proc/sys", Flags: enforce.ReadOnly}, ""},
		{"what only begins like /proc", enforce.Step{Do: enforce.Self, Dst: "/process", Flags: enforce.ReadOnly}, "--ro-bind /process /process"},
		{"mask", enforce.Step{Do: enforce.MaskFile, Dst: "/m"}, "--ro-bind /dev/null /m"},
		{"masked folder", enforce.Step{Do: enforce.MaskDir, Dst: "/m"}, "--perms 0000 --tmpfs /m --remount-ro /m"},
		{"stand-in", enforce.Step{Do: enforce.MaskStub, Dst: "/m", Size: 3, MTime: 4, Mode: 0o111}, "--ro-bind /stubs/3-4-111 /m"},
		{"cover", enforce.Step{Do: enforce.Cover, Dst: "/c"}, "--perms 0555 --tmpfs /c --remount-ro /c"},
		{"file", enforce.Step{Do: enforce.File, Dst: "/f", Content: []byte("x")}, "--perms 0444 --ro-bind-data 101 /f"},
		{"folder", enforce.Step{Do: enforce.Dir, Dst: "/d"}, "--perms 0755 --dir /d"},
		{"empty file", enforce.Step{Do: enforce.Dir, Dst: "/d", Flags: enforce.IsFile}, "--perms 0444 --file 101 /d"},
		{"link", enforce.Step{Do: enforce.Symlink, Dst: "/bin", Src: "usr/bin"}, "--symlink usr/bin /bin"},
		{"seal", enforce.Step{Do: enforce.Seal, Dst: "/s"}, "--remount-ro /s"},
		{"sysctl", enforce.Step{Do: enforce.Sysctl, Dst: "/proc/sys/x"}, ""},
		{"a mask of what is gone would be made on the host", enforce.Step{Do: enforce.MaskFile, Dst: "/gone", Flags: enforce.Gone}, ""},
		{"what may not be gone is bwrap's to refuse", enforce.Step{Do: enforce.Bind, Src: "/gone", Dst: "/gone"}, "--bind /gone /gone"},
	} {
		if got := translate(t, &host{gone: []string{"/gone"}}, c.step); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestArgumentsRefuse(t *testing.T) {
	h := &host{}
	if args, err := bwrap.Arguments([]enforce.Step{{Do: 99, Dst: "/x"}}, true, h.host()); fault.CodeOf(err) != fault.Internal {
		t.Errorf("an unknown step: got %v (%v), want %s", args, err, fault.Internal)
	}
	b := h.host()
	b.Stub = func(int64, int64, uint32) (string, error) { return "", errors.New("no room") }
	if _, err := bwrap.Arguments([]enforce.Step{{Do: enforce.MaskStub, Dst: "/x"}}, true, b); err == nil {
		t.Error("a stand-in that cannot be made: got nil, want an error")
	}
}

// TestTooManyMasks: what bwrap cannot take is refused before it is tried, and
// one less is taken.
func TestTooManyMasks(t *testing.T) {
	h := &host{}
	none, err := bwrap.Arguments(nil, false, h.host())
	if err != nil {
		t.Fatal(err)
	}
	const own = 16 // words of the command line itself
	fits := (bwrap.MaxArguments - own - len(none)) / 3
	steps := make([]enforce.Step, fits+1)
	for i := range steps {
		steps[i] = enforce.Step{Do: enforce.MaskFile, Dst: fmt.Sprintf("/w/%d/.env", i)}
	}
	if args, err := bwrap.Arguments(steps[:fits], false, h.host()); err != nil || len(args) > bwrap.MaxArguments-own {
		t.Errorf("%d masks: got %d words, %v; want at most %d and no error", fits, len(args), err, bwrap.MaxArguments-own)
	}
	_, err = bwrap.Arguments(steps, false, h.host())
	if fault.CodeOf(err) != fault.SandboxUnavailable {
		t.Fatalf("%d masks: got %v, want %s", len(steps), err, fault.SandboxUnavailable)
	}
	if hint := fault.HintOf(err); strings.Contains(hint, "no-sandbox") || !strings.Contains(hint, "native") {
		t.Errorf("got the hint %q, want the provider that can", hint)
	}
}

func TestReachable(t *testing.T) {
	steps := []enforce.Step{
		{Do: enforce.Bind, Src: "/open", Dst: "/1", Flags: enforce.Optional | enforce.ReadOnly},
		{Do: enforce.Bind, Src: "/shut", Dst: "/2", Flags: enforce.Optional | enforce.ReadOnly, Dev: 1, Ino: 2, Tree: 3},
		{Do: enforce.Bind, Src: "/shut", Dst: "/3", Flags: enforce.Optional | enforce.Make, Dev: 1, Ino: 2, Tree: 3},
		{Do: enforce.Bind, Src: "/shut", Dst: "/4"},
		{Do: enforce.MaskFile, Dst: "/5", Flags: enforce.Optional},
	}
	got := bwrap.Reachable(steps, func(path string) bool { return path != "/shut" })
	want := []string{"bind /1", "tmpfs /3", "bind /4", "mask-file /5"}
	var have []string
	for _, s := range got {
		have = append(have, s.Do.String()+" "+s.Dst)
	}
	if !slices.Equal(have, want) {
		t.Fatalf("got %q, want %q", have, want)
	}
	if s := got[1]; s.Src != "" || s.Ino != 0 || s.Tree != 0 || s.Mode != 0o700 || s.Flags&enforce.Make == 0 {
		t.Errorf("the folder in memory: got %+v, want nothing of the host's, closed to others", s)
	}
}

// TestExpected: what the inner stage looks for afterwards is what bwrap mounts,
// and no content is carried twice.
func TestExpected(t *testing.T) {
	steps := enforce.Compile(enforcetest.Plan())
	got := bwrap.Expected(steps)
	at := map[string]bool{}
	for _, s := range got {
		at[s.Dst] = true
		if s.Content != nil || s.Tree != 0 {
			t.Errorf("%s carries content or a tree", s)
		}
		if s.Do == enforce.Sysctl {
			t.Errorf("%s is expected and bwrap cannot do it", s)
		}
	}
	for _, s := range steps {
		own := s.Do == enforce.Sysctl || s.Do == enforce.Self && strings.HasPrefix(s.Dst, "/proc/")
		if at[s.Dst] == own {
			t.Errorf("%s: expected %v, want %v", s, at[s.Dst], !own)
		}
	}
	if len(steps) > 0 && steps[len(steps)-1].Do != enforce.Seal {
		t.Error("the steps were changed")
	}
}
