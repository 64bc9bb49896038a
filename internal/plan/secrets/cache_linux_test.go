package secrets

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tether-sandbox/tether/internal/need"
)

// savedCache makes a state folder with one verdict in it.
func savedCache(t *testing.T) (dir, file string) {
	t.Helper()
	dir = tempRoot(t)
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	c := OpenCache(dir)
	c.put(cacheKey{size: 1}, public, time.Now())
	if err := c.Save(); err != nil {
		t.Fatal(err)
	}
	if len(OpenCache(dir).old) != 1 {
		t.Fatal("control: nothing was stored")
	}
	return dir, filepath.Join(dir, cacheName)
}

func TestCacheTrustsOnlyItsOwn(t *testing.T) {
	for name, spoil := range map[string]func(dir, file string) error{
		"file open to others":   func(_, file string) error { return os.Chmod(file, 0o640) },
		"folder open to others": func(dir, _ string) error { return os.Chmod(dir, 0o770) },
		"second name":           func(dir, file string) error { return os.Link(file, dir+"/x") },
		"symbolic link": func(dir, file string) error {
			if err := os.Rename(file, dir+"/x"); err != nil {
				return err
			}
			return os.Symlink("x", file)
		},
		"cut":     func(_, file string) error { return os.Truncate(file, 30) },
		"huge":    func(_, file string) error { return os.Truncate(file, 1<<40) },
		"missing": func(_, file string) error { return os.Remove(file) },
		"folder": func(_, file string) error {
			if err := os.Remove(file); err != nil {
				return err
			}
			return os.Mkdir(file, 0o700)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, file := savedCache(t)
			if err := spoil(dir, file); err != nil {
				t.Fatal(err)
			}
			c := OpenCache(dir)
			if len(c.old) != 0 {
				t.Errorf("got %v, want nothing", c.old)
			}
			// What can be repaired is rewritten.
			if name == "folder" || name == "folder open to others" {
				if c.put(cacheKey{size: 2}, public, time.Now()); c.Save() == nil {
					t.Error("got saved, want an error")
				}
				return
			}
			c.put(cacheKey{size: 2}, public, time.Now())
			if err := c.Save(); err != nil {
				t.Fatal(err)
			}
			if len(OpenCache(dir).old) != 1 {
				t.Error("got nothing back after the repair")
			}
			if st, err := os.Lstat(file); err != nil || st.Mode() != 0o600 {
				t.Errorf("got mode %v, %v, want 0600", st.Mode(), err)
			}
		})
	}
}

func TestCacheOfSomebodyElse(t *testing.T) {
	need.Root(t)
	dir, file := savedCache(t)
	if err := os.Chown(file, 1, 1); err != nil {
		t.Fatal(err)
	}
	if got := OpenCache(dir).old; len(got) != 0 {
		t.Errorf("another owner's file: got %v, want nothing", got)
	}
	dir, _ = savedCache(t)
	if err := os.Chown(dir, 1, 1); err != nil {
		t.Fatal(err)
	}
	if got := OpenCache(dir).old; len(got) != 0 {
		t.Errorf("another owner's folder: got %v, want nothing", got)
	}
}
