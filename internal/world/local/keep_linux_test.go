package local

import (
	"os"
	"testing"

	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/enforce/inner"
	"github.com/tether-sandbox/tether/internal/need"
	"github.com/tether-sandbox/tether/policy"
)

func TestMain(m *testing.M) {
	if inner.Wanted(os.Args) {
		inner.Main()
	}
	os.Exit(m.Run())
}

// TestKeeper throws away what saw other mounts, and keeps none where none is
// wanted.
func TestKeeper(t *testing.T) {
	pol := policy.Default(t.TempDir())
	var k Keeper
	defer k.Close()
	if k.take() != nil {
		t.Fatal("there is something from the start")
	}
	k.fill(pol, enforce.Auto)
	first := k.stage
	if first == nil {
		need.Missing(t, "userns", "no inner stage starts here")
	}
	k.fill(pol, enforce.Auto)
	if k.stage != first {
		t.Error("a second one took the place of the first")
	}
	if s := k.take(); s != first || k.stage != nil {
		t.Error("it is not taken, once")
	}
	first.Discard()

	k.fill(pol, enforce.Auto)
	k.mounts = append(k.mounts, "1 2 0:1 / /new rw - tmpfs t rw\n"...)
	if k.take() != nil || k.stage != nil {
		t.Error("a stage that sees other mounts was taken")
	}
	for _, kind := range []enforce.Kind{enforce.Bwrap, enforce.Guard, enforce.Unconfined} {
		if k.fill(pol, kind); k.stage != nil {
			t.Errorf("%s: a stage waits", kind)
		}
	}
	k.Close()
	if k.fill(pol, enforce.Auto); k.stage != nil {
		t.Error("a stage waits after Close")
	}
	if (*Keeper)(nil).take() != nil {
		t.Error("no keeper has one")
	}
}
