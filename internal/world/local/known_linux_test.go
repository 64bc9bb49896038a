package local

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/internal/need"
	"github.com/tether-sandbox/tether/internal/plan/secrets"
	"github.com/tether-sandbox/tether/internal/watch"
	"github.com/tether-sandbox/tether/policy"
)

// newStanding watches a folder and knows what is in it.
func newStanding(t *testing.T, root string) *standing {
	t.Helper()
	tree, err := watch.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tree.Close)
	s := &standing{roots: []string{root}, tree: tree, search: secrets.NewKnown(tree.Watch), look: secrets.NewKnown(tree.Watch)}
	if err := s.armAll(); err != nil {
		t.Fatal(err)
	}
	s.learn(policy.Default(root))
	return s
}

// same compares a search by what is known with one that knows nothing, and says
// what that hides and how many folders were listed for it.
func (s *standing) same(t *testing.T, what string) (hidden []string, listed int) {
	t.Helper()
	rules, err := secrets.RulesOf(policy.Protect{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, roots := context.Background(), []secrets.Root{{Path: s.roots[0]}}
	if !s.current() {
		t.Fatalf("%s: nothing may be taken as known", what)
	}
	got, err := s.search.Find(ctx, roots, rules, nil)
	if err != nil {
		t.Fatal(err)
	}
	want, err := secrets.Find(ctx, roots, rules, nil)
	if err != nil {
		t.Fatal(err)
	}
	listed, want.Stats.Listed = got.Stats.Listed, got.Stats.Listed
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %+v\nwant %+v", what, got, want)
	}
	after, err := s.walk(ctx, s.roots[0], laterRules())
	if err != nil {
		t.Fatal(err)
	}
	if plain, err := secrets.Walk(ctx, s.roots[0], laterRules()); err != nil || !reflect.DeepEqual(after, plain) {
		t.Errorf("%s: afterwards: got %+v\nwant %+v, %v", what, after, plain, err)
	}
	for _, m := range got.Masks {
		hidden = append(hidden, m.Path[len(s.roots[0])+1:])
	}
	return hidden, listed
}

// inMounts has a test run in a mount namespace of its own.
const inMounts = "TETHER_TEST_MOUNTS"

// TestKnownAcrossMounts: what no watch tells of is looked at each time. A mount is
// no change of the folder that it covers, and what lies under an overlay can be
// changed past it.
func TestKnownAcrossMounts(t *testing.T) {
	if os.Getenv(inMounts) == "" {
		flags := []string{"-Urm"}
		if os.Geteuid() == 0 {
			flags = []string{"-m"}
		}
		cmd := exec.Command(need.Program(t, "unshare"), append(flags, os.Args[0], "-test.run=^TestKnownAcrossMounts$", "-test.v")...)
		cmd.Env = append(os.Environ(), inMounts+"=1")
		out, err := cmd.CombinedOutput()
		t.Logf("%s", out)
		if err != nil && !strings.Contains(string(out), "TestKnownAcrossMounts") {
			need.Missing(t, "userns", err.Error())
		}
		if err != nil {
			t.Error(err)
		}
		return
	}
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(top, "w")
	at := func(name string) string { return filepath.Join(root, name) }
	put := func(path string) {
		t.Helper()
		if err := os.WriteFile(path, []byte("S"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{"w/a/b", "w/m", "w/other/x", "w/over", "lower/sub", "upper", "work"} {
		if err := os.MkdirAll(filepath.Join(top, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	mount := func(source, where, kind string, flags uintptr, data string) {
		t.Helper()
		if err := unix.Mount(source, where, kind, flags, data); err != nil {
			need.Missing(t, "mounts", err.Error())
		}
		t.Cleanup(func() { _ = unix.Unmount(where, unix.MNT_DETACH) })
	}
	put(at("other/x/.env"))
	s := newStanding(t, root)
	if hidden, listed := s.same(t, "nothing happened"); listed != 0 || !slices.Equal(hidden, []string{"other/x/.env"}) {
		t.Errorf("control: hidden %q, listed %d", hidden, listed)
	}
	mount("tmpfs", at("m"), "tmpfs", 0, "")
	put(at("m/.env"))
	if hidden, _ := s.same(t, "a mount"); !slices.Contains(hidden, "m/.env") {
		t.Errorf("a mount: hidden %q", hidden)
	}
	if _, listed := s.same(t, "the same mount"); listed != 0 {
		t.Errorf("the same mount: listed %d", listed)
	}
	if err := unix.Unmount(at("m"), 0); err != nil {
		t.Fatal(err)
	}
	if hidden, _ := s.same(t, "it is gone"); slices.Contains(hidden, "m/.env") {
		t.Errorf("it is gone: hidden %q", hidden)
	}
	mount(at("other"), at("a/b"), "", unix.MS_BIND, "")
	if hidden, _ := s.same(t, "a second way"); !slices.Contains(hidden, "a/b/x/.env") {
		t.Errorf("a second way: hidden %q", hidden)
	}
	put(at("other/x/id_rsa")) // through the first one
	if hidden, _ := s.same(t, "by the first way"); !slices.Contains(hidden, "a/b/x/id_rsa") || !slices.Contains(hidden, "other/x/id_rsa") {
		t.Errorf("by the first way: hidden %q", hidden)
	}
	mount("overlay", at("over"), "overlay", 0, "lowerdir="+top+"/lower,upperdir="+top+"/upper,workdir="+top+"/work")
	s.same(t, "an overlay")
	put(filepath.Join(top, "lower/sub/.env")) // past it
	if hidden, listed := s.same(t, "under an overlay"); !slices.Contains(hidden, "over/sub/.env") || listed == 0 {
		t.Errorf("under an overlay: hidden %q, listed %d", hidden, listed)
	}
}

// TestBorrowedWatch: a plan for no run uses the watch that stands, alone, and gives
// it back; one that can no longer be relied on is not kept.
func TestBorrowedWatch(t *testing.T) {
	pol := policy.Default(t.TempDir())
	at := World{Keep: &Keeper{}}
	defer at.Keep.Close()
	known := func() (bool, func()) {
		k, done := at.known(pol, nil)
		return k != nil, done
	}
	if got, done := known(); got {
		t.Error("something is known without a watch")
	} else {
		done()
	}
	s := newStanding(t, pol.Workspace)
	s.key = watchKey(pol)
	at.Keep.putWatch(s)
	got, done := known()
	if !got {
		t.Fatal("nothing is known by the watch")
	}
	if again, none := known(); again {
		t.Error("two use one watch")
	} else {
		none()
	}
	done()
	if at.Keep.watch != s {
		t.Error("it was not given back")
	}
	other := pol
	other.Protect.Hidden = []string{"x"}
	if k, _ := at.known(other, nil); k != nil {
		t.Error("what is known under one policy is known under another")
	}
	s.lost = true
	if got, done = known(); got {
		t.Error("a watch with gaps is relied on")
	}
	if done(); at.Keep.watch != nil {
		t.Error("a watch with gaps is kept")
	}
	if (World{}).Keep.takeWatch(pol) != nil {
		t.Error("no keeper has one")
	}
}

// TestKnownAfterLoss: when events were lost, all of it is searched again.
func TestKnownAfterLoss(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(root, "a/b/c"), 0o755); err != nil {
		t.Fatal(err)
	}
	s := newStanding(t, root)
	if _, listed := s.same(t, "nothing happened"); listed != 0 {
		t.Fatalf("control: listed %d", listed)
	}
	raw, err := os.ReadFile("/proc/sys/fs/inotify/max_queued_events")
	if err != nil {
		t.Fatal(err)
	}
	most := 0
	for _, c := range raw {
		if c >= '0' && c <= '9' {
			most = most*10 + int(c-'0')
		}
	}
	if most > 1<<17 {
		need.Missing(t, "inotify", "its queue is too long to be filled")
	}
	path := filepath.Join(root, "a/b/f")
	for range most/3 + 2 {
		if err := os.WriteFile(path, nil, 0o644); err != nil { // made, closed, removed
			t.Fatal(err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "a/b/c/.env"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if hidden, listed := s.same(t, "lost"); listed != 4 || len(hidden) != 1 {
		t.Errorf("lost: hidden %q, listed %d", hidden, listed)
	}
	if _, listed := s.same(t, "again"); listed != 0 {
		t.Errorf("again: listed %d", listed)
	}
}
