package local

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/internal/need"
	"github.com/tether-sandbox/tether/internal/plan"
	"github.com/tether-sandbox/tether/internal/plan/gitmeta"
)

// TestCapabilities: a file that was given capabilities loses them, another keeps
// them.
func TestCapabilities(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives a file capabilities")
	}
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	// Version 2, effective, with CAP_NET_RAW (linux/capability.h).
	caps := []byte{1, 0, 0, 2, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	give := func(name string) string {
		path := filepath.Join(root, name)
		if err := os.WriteFile(path, nil, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := unix.Setxattr(path, "security.capability", caps, 0); err != nil {
			t.Skipf("the file system keeps no capabilities: %v", err)
		}
		return path
	}
	has := func(path string) bool {
		n, err := unix.Lgetxattr(path, "security.capability", nil)
		return err == nil && n > 0
	}
	old := give("old")
	time.Sleep(3 * tick)
	r := &record{remembered: remembered{Begin: time.Now(), AnyMode: true, Roots: [][]byte{[]byte(root)}, Snapshots: []gitmeta.Snapshot{{Workspace: root}}}}
	fresh := give("new")
	if !has(fresh) || !has(old) {
		t.Fatal("control: both must have capabilities")
	}
	found, err := r.inspect(&plan.Plan{StateDir: t.TempDir()})
	if err != nil || len(found) != 1 || found[0].Path != fresh || found[0].Action != gitmeta.Stripped || found[0].Kind != gitmeta.KindSetID {
		t.Errorf("got %+v, %v, want that new was stripped", found, err)
	}
	if has(fresh) || !has(old) {
		t.Errorf("new has capabilities: %v, old: %v; want only old", has(fresh), has(old))
	}
}

// TestStripOthers: what another user owns keeps its bits, also when the command
// moved it: the same file may lie outside.
func TestStripOthers(t *testing.T) {
	need.Root(t)
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root, outside := filepath.Join(top, "w"), filepath.Join(top, "o")
	if err := errors.Join(os.Mkdir(root, 0o755), os.Mkdir(outside, 0o755)); err != nil {
		t.Fatal(err)
	}
	for name, uid := range map[string]int{"theirs": 54321, "own": 0} {
		path := filepath.Join(outside, name)
		if err := errors.Join(os.WriteFile(path, nil, 0o755), os.Chown(path, uid, 0), unix.Chmod(path, 0o4755)); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(3 * tick)
	r := &record{remembered: remembered{Begin: time.Now(), AnyMode: true, Roots: [][]byte{[]byte(root)}, Snapshots: []gitmeta.Snapshot{{Workspace: root}}}}
	for _, name := range []string{"theirs", "own"} {
		if err := os.Link(filepath.Join(outside, name), filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	found, err := r.inspect(&plan.Plan{StateDir: t.TempDir()})
	if err != nil || len(found) != 2 {
		t.Fatalf("got %+v, %v, want both", found, err)
	}
	for _, f := range found {
		info, err := os.Lstat(f.Path)
		if err != nil {
			t.Fatal(err)
		}
		theirs := filepath.Base(f.Path) == "theirs"
		if kept := info.Mode()&os.ModeSetuid != 0; kept != theirs || (f.Action == gitmeta.Stripped) == theirs {
			t.Errorf("%+v: the bit is kept: %v, want %v", f, kept, theirs)
		}
	}
}

// TestBounded: thousands of files of a kind are told in a bounded list.
func TestBounded(t *testing.T) {
	all := []gitmeta.Finding{{Kind: "x", Action: gitmeta.Quarantined}}
	for range mostOfKind + 2 {
		all = append(all, gitmeta.Finding{Kind: "x", Action: gitmeta.Reported})
	}
	got := bounded("/w", slices.Clone(all))
	if len(got) != mostOfKind+2 || got[0].Action != gitmeta.Quarantined || got[len(got)-1].What != "2 more of this kind in it" {
		t.Errorf("got %d findings, the last %+v, want %d and that 2 were left out", len(got), got[len(got)-1], mostOfKind+2)
	}
	if got := bounded("/w", slices.Clone(all[:mostOfKind+1])); len(got) != mostOfKind+1 {
		t.Errorf("got %d findings, want all %d", len(got), mostOfKind+1)
	}
}
