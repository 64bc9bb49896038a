package local

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/tether-sandbox/tether/internal/need"
	"github.com/tether-sandbox/tether/internal/plan"
	"github.com/tether-sandbox/tether/internal/plan/gitmeta"
)

// BenchmarkSettle is the look after a command, in a workspace of 100,000 files
// in 10,000 folders none of which changed, and its ratio to find's own time.
func BenchmarkSettle(b *testing.B) {
	find := need.Program(b, "find")
	root, err := filepath.EvalSymlinks(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	for i := range 10000 {
		dir := filepath.Join(root, fmt.Sprintf("a%d/b%d/c%d/d%d", i%10, i/10%10, i/100%10, i/1000))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			b.Fatal(err)
		}
		for j := range 10 {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("source_file_%d.go", j)), nil, 0o644); err != nil {
				b.Fatal(err)
			}
		}
	}
	p := &plan.Plan{StateDir: b.TempDir()}
	r := &record{remembered: remembered{Begin: time.Now().Add(time.Second), Roots: [][]byte{[]byte(root)},
		Snapshots: []gitmeta.Snapshot{{Workspace: root}}}}
	outside := func() time.Duration {
		start := time.Now()
		if err := exec.Command(find, root).Run(); err != nil {
			b.Fatal(err)
		}
		return time.Since(start)
	}
	outside()
	var theirs time.Duration
	for b.Loop() {
		b.StopTimer()
		theirs += outside()
		b.StartTimer()
		if found, err := r.inspect(p); err != nil || len(found) != 0 {
			b.Fatalf("got %v, %v, want nothing found", found, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed())/float64(theirs), "x-find")
}
