package local

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/plan"
	"github.com/tether-sandbox/tether/internal/plan/secrets"
	"github.com/tether-sandbox/tether/internal/watch"
	"github.com/tether-sandbox/tether/policy"
)

// covers is a process in whose world nothing can be covered.
type covers struct {
	enforce.Process
	err error
}

func (c covers) Cover([]enforce.Step) (enforce.Coverage, error) { return enforce.Coverage{}, c.err }

// TestCoverFails: a command that ends while something is being hidden from it was
// watched to its end; what fails while it runs is told, and tried again where
// that may help.
func TestCoverFails(t *testing.T) {
	broken := errors.New("broken")
	for _, tt := range []struct {
		err, want error
		again     bool
		failing   error
		over      bool
	}{{os.ErrClosed, nil, false, nil, true}, {enforce.ErrStands, enforce.ErrStands, false, nil, false}, {broken, nil, true, broken, false}} {
		v := &vigil{proc: covers{err: tt.err}}
		v.ctx, v.end = context.WithCancel(context.Background())
		again, err := v.cover(nil)
		if !errors.Is(err, tt.want) || again != tt.again || v.failing != tt.failing || (v.ctx.Err() != nil) != tt.over {
			t.Errorf("%v: %v, again %v, failing %v, over: %v", tt.err, err, again, v.failing, v.ctx.Err())
		}
		v.end()
	}
}

// TestJudgeWhatCannotBeLookedAt: what fails to be judged asks for a plan, unless
// it is gone.
func TestJudgeWhatCannotBeLookedAt(t *testing.T) {
	rules, err := secrets.RulesOf(policy.Default("/w").Protect)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, tt := range []struct {
		what, dir string
		want      bool
	}{{"gone", dir, false}, {"its folder is gone", dir + "/none", false}, {"too long a path", dir + strings.Repeat("/x", 4096), true}} {
		var w wants
		w.init(&plan.Plan{}, rules, time.Now())
		if masks, more := w.judge(t.Context(), watch.Event{Dir: tt.dir, Name: ".env"}); more != tt.want || masks != nil {
			t.Errorf("%s: %v, %v; want %v", tt.what, masks, more, tt.want)
		}
	}
	var w wants
	w.init(&plan.Plan{}, rules, time.Now())
	if err := os.WriteFile(filepath.Join(dir, ".env"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if masks, _ := w.judge(t.Context(), watch.Event{Dir: dir, Name: ".env"}); len(masks) != 1 {
		t.Errorf("control: one that is there: %v", masks)
	}
}

// TestBeforeFails: a watch whose news could not all be followed is not kept.
func TestBeforeFails(t *testing.T) {
	p := &plan.Plan{Policy: policy.Default("/w")}
	p.Views = []plan.View{{Root: plan.Root{Path: t.TempDir()}, Origin: plan.Workspace}}
	for _, closed := range []bool{false, true} {
		tree, err := watch.New()
		if err != nil {
			t.Fatal(err)
		}
		defer tree.Close()
		if closed {
			tree.Close()
		}
		s := &standing{tree: tree}
		if err := s.before(t.Context(), p); (err != nil) != closed || s.lost != closed {
			t.Errorf("closed %v: %v, lost %v", closed, err, s.lost)
		}
	}
}

// TestArmTooDeep: whoever makes folders that cannot be watched does not end a
// vigil by it; that the watch has gaps is told.
func TestArmTooDeep(t *testing.T) {
	tree, err := watch.New()
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	v, s := &vigil{tree: tree, ctx: t.Context()}, &standing{tree: tree}
	long := t.TempDir() + strings.Repeat("/d", 4096)
	made := watch.Event{Dir: long, Name: "d", Folder: true, New: true}
	if err := errors.Join(v.arm(made.Path()), s.follow(made)); err != nil || v.full == nil || s.full == nil {
		t.Errorf("%v; gaps: %v, %v", err, v.full, s.full)
	}
}

// TestArmAtTheEnd: that a command ends while its folders are being watched leaves
// no gap in a watch that goes on.
func TestArmAtTheEnd(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(dir+"/a/b/c", 0o755); err != nil {
		t.Fatal(err)
	}
	over, end := context.WithCancel(t.Context())
	end()
	for _, stands := range []bool{false, true} {
		tree, err := watch.New()
		if err != nil {
			t.Fatal(err)
		}
		defer tree.Close()
		v := &vigil{tree: tree, ctx: over}
		if stands {
			v.stands = &standing{tree: tree}
		}
		if err := v.arm(dir); stands != (err == nil) || stands != (tree.Len() == 4) {
			t.Errorf("goes on %v: %d folders, %v", stands, tree.Len(), err)
		}
	}
}
