package secrets

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/tether-sandbox/tether/internal/need"
	"golang.org/x/sys/unix"
)

// growTree makes folders folders with 10 files each, nested four deep.
func growTree(b testing.TB, folders int) string {
	b.Helper()
	root, err := filepath.EvalSymlinks(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	for i := range folders {
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
	return root
}

func growKeys(b testing.TB, root string, n int) {
	b.Helper()
	dir := filepath.Join(root, "certs")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		b.Fatal(err)
	}
	for i := range n {
		text := fmt.Appendf(nil, "-----BEGIN PRIVATE KEY-----\n%s\n-----END PRIVATE KEY-----\n", bytes.Repeat([]byte("A"), 1600))
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.pem", i)), text, 0o644); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFind reports the time of Find and its ratio to find's own on the
// same warm tree of 100,000 files in 10,000 folders.
func BenchmarkFind(b *testing.B) {
	find := need.Program(b, "find")
	rules := builtinRules(b)
	root := growTree(b, 10000)
	outside := func() time.Duration {
		start := time.Now()
		if err := exec.Command(find, root).Run(); err != nil { // output goes to /dev/null
			b.Fatal(err)
		}
		return time.Since(start)
	}
	outside()
	run := func(b *testing.B, cache string) {
		var theirs time.Duration
		for b.Loop() {
			b.StopTimer()
			theirs += outside()
			b.StartTimer()
			var c *Cache
			if cache != "" {
				c = OpenCache(cache)
			}
			if _, err := Find(context.Background(), []Root{{root}}, rules, c); err != nil {
				b.Fatal(err)
			}
			if err := c.Save(); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.Elapsed())/float64(theirs), "x-find")
	}
	b.Run("plain", func(b *testing.B) { run(b, "") })
	time.Sleep(settled)
	b.Run("plain-remembered", func(b *testing.B) { run(b, privateFolder(b)) })
	growKeys(b, root, 10000)
	b.Run("10000-pem", func(b *testing.B) { run(b, "") })
	time.Sleep(settled)
	b.Run("10000-pem-remembered", func(b *testing.B) { run(b, privateFolder(b)) })
}

// BenchmarkKnown is the search of a session, which keeps a watch, and the look
// after its command, in 100,000 files in 10,000 folders: when nothing happened,
// when something did in 100 folders, and with 1,000 secrets.
func BenchmarkKnown(b *testing.B) {
	rules, ctx := builtinRules(b), context.Background()
	root := growTree(b, 10000)
	run := func(name string, touch func()) {
		w := newWatched(b)
		both := func(b *testing.B) {
			if err := w.catchUp(); err != nil {
				b.Fatal(err)
			}
			if _, err := w.before.Find(ctx, []Root{{root}}, rules, nil); err != nil {
				b.Fatal(err)
			}
			if _, err := w.after.Walk(ctx, root, laterRules(time.Now())); err != nil {
				b.Fatal(err)
			}
		}
		both(nil)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				touch()
				b.StartTimer()
				both(b)
			}
		})
	}
	run("nothing", func() {})
	n := 0
	run("100-folders", func() {
		n++
		for i := range 100 {
			path := filepath.Join(root, fmt.Sprintf("a%d/b%d/new%d", i%10, i/10, n))
			if err := os.WriteFile(path, nil, 0o644); err != nil {
				b.Fatal(err)
			}
		}
	})
	for i := range 1000 {
		if err := os.WriteFile(filepath.Join(root, fmt.Sprintf("a%d/b%d/c%d/.env", i%10, i/10%10, i/100)), nil, 0o644); err != nil {
			b.Fatal(err)
		}
	}
	run("1000-secrets", func() {})
}

// BenchmarkStatFolders is what a remembered walk is measured against: a stat of
// each of the 10,000 folders, by as many goroutines as there are processors.
func BenchmarkStatFolders(b *testing.B) {
	root := growTree(b, 10000)
	var dirs []string
	filepath.WalkDir(root, func(path string, d os.DirEntry, _ error) error {
		if d.IsDir() {
			dirs = append(dirs, path)
		}
		return nil
	})
	n := runtime.GOMAXPROCS(0)
	for b.Loop() {
		var g sync.WaitGroup
		for w := range n {
			g.Go(func() {
				for i := w; i < len(dirs); i += n {
					var st unix.Stat_t
					if err := unix.Lstat(dirs[i], &st); err != nil {
						b.Error(err)
					}
				}
			})
		}
		g.Wait()
	}
}
