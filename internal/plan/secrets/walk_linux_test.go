package secrets

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// everything marks each entry.
var everything = Rules{Name: func([]byte, Type) Mark { return Locked }}

// TestWalkSeesWhatWalkDirSees is a law over random trees.
func TestWalkSeesWhatWalkDirSees(t *testing.T) {
	base := tempRoot(t)
	runs := 0
	rapid.Check(t, func(rt *rapid.T) {
		runs++
		root := filepath.Join(base, fmt.Sprint(runs))
		if err := os.Mkdir(root, 0o755); err != nil {
			rt.Fatal(err)
		}
		dirs := []string{root}
		for range rapid.IntRange(0, 60).Draw(rt, "entries") {
			name := rapid.StringMatching(`[a-zA-Z.\xff\n "-]{1,12}`).Draw(rt, "name")
			path := filepath.Join(rapid.SampledFrom(dirs).Draw(rt, "dir"), "_"+name)
			switch rapid.IntRange(0, 4).Draw(rt, "kind") {
			case 0, 1:
				if os.Mkdir(path, 0o755) == nil {
					dirs = append(dirs, path)
				}
			case 2:
				os.Symlink(root, path)
			default:
				os.WriteFile(path, nil, 0o644)
			}
		}
		var want []string
		filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if path != root {
				want = append(want, path)
			}
			return err
		})
		slices.Sort(want)
		found, err := Walk(context.Background(), root, everything)
		if err != nil {
			rt.Fatal(err)
		}
		got := found.With(Locked)
		if !slices.Equal(got, want) {
			rt.Fatalf("got %q, want %q", got, want)
		}
		if found.Dirs+found.Files != len(want)+1 {
			rt.Fatalf("count: got %d dirs and %d files, want %d in all", found.Dirs, found.Files, len(want)+1)
		}
		os.RemoveAll(root)
	})
}

// TestWalkDeeperThanAnyPath goes below PATH_MAX and keeps more folders waiting
// than it may keep open.
func TestWalkDeeperThanAnyPath(t *testing.T) {
	root := tempRoot(t)
	fd, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	const depth = 2*keptFDs + 100
	for range depth {
		for _, name := range []string{"long-name-to-fill-up", "second"} {
			if err := unix.Mkdirat(fd, name, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		next, err := unix.Openat(fd, "long-name-to-fill-up", unix.O_PATH|unix.O_DIRECTORY, 0)
		if err != nil {
			t.Fatal(err)
		}
		unix.Close(fd)
		fd = next
	}
	unix.Close(fd)
	before := openFDs(t)
	found, err := Walk(context.Background(), root, everything)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := found.Dirs, 2*depth+1; got != want {
		t.Errorf("directories: got %d, want %d", got, want)
	}
	if got := openFDs(t); got > before {
		t.Errorf("descriptors: got %d, want %d as before", got, before)
	}
}

func openFDs(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// TestWalkWhileTheTreeChanges must neither fail, leave the root nor leak.
func TestWalkWhileTheTreeChanges(t *testing.T) {
	root, outside := tempRoot(t), tempRoot(t)
	plant(t, outside, "outside-only", "x")
	for i := range 50 {
		plant(t, root, fmt.Sprintf("d%d/x/y/z", i), "x")
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ; i = (i + 1) % 50 {
			select {
			case <-stop:
				return
			default:
			}
			dir := filepath.Join(root, fmt.Sprintf("d%d", i))
			os.RemoveAll(dir)
			os.Symlink(outside, dir)
			os.Remove(dir)
			os.MkdirAll(dir+"/x/y/z", 0o755)
		}
	}()
	before := openFDs(t)
	for range 200 {
		found, err := Walk(context.Background(), root, everything)
		if err != nil {
			t.Error(err)
			break
		}
		for _, e := range found.Entries {
			if filepath.Base(e.Path) == "outside-only" {
				t.Fatalf("left the root: %q", e.Path)
			}
		}
	}
	close(stop)
	<-done
	if got := openFDs(t); got > before {
		t.Errorf("descriptors: got %d, want %d as before", got, before)
	}
}
