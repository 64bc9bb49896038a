package local

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

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
