package tether_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tether-sandbox/tether"
)

// count is what a process that embeds Tether could leak.
type count struct{ descriptors, children, goroutines int }

func counted(t testing.TB) count {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	children := 0
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		b, _ := os.ReadFile("/proc/self/task/" + task.Name() + "/children")
		children += len(strings.Fields(string(b)))
	}
	return count{len(fds), children, runtime.NumGoroutine()}
}

// Many runs in one process leave no descriptor, no child and no goroutine.
func TestSoak(t *testing.T) {
	n := 200
	if testing.Short() {
		n = 20
	}
	for _, provider := range []string{"native", "bwrap"} {
		t.Run(provider, func(t *testing.T) {
			s, dir := open(t, func(o *tether.Options) { o.Provider = provider })
			if provider == "bwrap" {
				if os.Geteuid() == 0 {
					// bwrap runs as the workspace's owner, see docs/decisions.
					if err := errors.Join(os.Chown(dir, 54321, 54321), os.Chmod(filepath.Dir(dir), 0o755)); err != nil {
						t.Fatal(err)
					}
				}
				if _, err := os.Stat("/usr/bin/bwrap"); err != nil {
					t.Skip("need: bwrap is missing")
				}
			}
			scripts := []string{"true", "exit 3", "sleep 60 & true", "kill -9 $$", "yes | head -100000", "cat nothing"}
			some := func(n int) {
				var group sync.WaitGroup
				for k := range 4 {
					group.Go(func() {
						for i := k; i < n; i += 4 {
							run(t, s, scripts[i%len(scripts)])
						}
					})
				}
				group.Wait()
			}
			some(20)
			before := counted(t)
			some(n)
			var after count
			for range 200 { // a dead goroutine may need a moment to be gone
				if after = counted(t); after.descriptors <= before.descriptors && after.children <= before.children && after.goroutines <= before.goroutines {
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
			t.Errorf("after %d runs there are %+v, want %+v", n, after, before)
		})
	}
}

// Many recorded sessions, opened, used and closed, leave no descriptor, no child
// and no goroutine; nor do those that could not be opened.
func TestSessionsLeaveNothing(t *testing.T) {
	h := newHouse(t)
	out := t.TempDir()
	use := func(n int) {
		for i := range n {
			s, err := tether.Open(ctx, h.options(fmt.Sprintf("s%d", i%3)))
			if err != nil {
				t.Fatal(err)
			}
			if err := s.StartTurn(ctx, ""); err != nil {
				t.Fatal(err)
			}
			c, err := s.Child(ctx, s.Policy())
			if err != nil {
				t.Fatal(err)
			}
			files, err := c.Files(ctx)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = files.View(tether.ViewRequest{Path: out + "/nothing"})
			run(t, c, "true")
			for _, close := range []func() error{files.Close, c.Close, s.Close} {
				if err := close(); err != nil {
					t.Fatal(err)
				}
			}
			again, err := tether.Open(ctx, h.options(c.ID())) // with its parent
			if err != nil {
				t.Fatal(err)
			}
			if err := again.Close(); err != nil {
				t.Fatal(err)
			}
			o := h.options("s0")
			o.Policy.Workspace = out
			if _, err := tether.Open(ctx, o); err == nil {
				t.Fatal("a session moved")
			}
		}
	}
	use(3)
	before := counted(t)
	use(12)
	var after count
	for range 200 { // a dead goroutine may need a moment to be gone
		if after = counted(t); after.descriptors <= before.descriptors && after.children <= before.children && after.goroutines <= before.goroutines {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("after 12 sessions there are %+v, want %+v", after, before)
}
