//go:build linux || darwin

package local

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/fault"
)

// Clean removes Tether's own folders of the calling user.
func Clean(quarantine bool) ([]string, error) {
	host, err := caller(os.Environ())
	if err != nil {
		return nil, err
	}
	names := []string{"cache", "stubs", "verdicts"}
	if quarantine {
		names = append(names, "quarantine")
	}
	var removed []string
	var errs []error
	if busy(filepath.Join(host.StateDir, "pending")) {
		return nil, fault.New(fault.UsageInvalid, "a command is running; its caches cannot be removed").
			WithHint("wait until it has ended")
	}
	for _, n := range names {
		dir := filepath.Join(host.StateDir, n)
		if _, err := os.Lstat(dir); err != nil {
			continue
		}
		if err := removeTree(dir); err != nil {
			errs = append(errs, fault.Wrap(fault.Internal, "cannot remove "+dir, err))
			continue
		}
		removed = append(removed, dir)
	}
	return removed, errors.Join(errs...)
}

// removeTree removes a tree, also folders that their tools made read-only, as
// Go's module cache is. It follows no link.
func removeTree(dir string) error {
	root, err := os.OpenRoot(filepath.Dir(dir))
	if err != nil {
		return err
	}
	defer root.Close()
	name := filepath.Base(dir)
	_ = fs.WalkDir(root.FS(), name, func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			_ = root.Chmod(path, 0o700)
		}
		return nil
	})
	return root.RemoveAll(name)
}

// busy says whether a record below dir is locked by a run that lives.
func busy(dir string) bool {
	workspaces, _ := os.ReadDir(dir)
	for _, w := range workspaces {
		records, _ := os.ReadDir(filepath.Join(dir, w.Name()))
		for _, r := range records {
			if !strings.HasPrefix(r.Name(), "run-") {
				continue
			}
			f, err := os.Open(filepath.Join(dir, w.Name(), r.Name()))
			if err != nil {
				continue
			}
			err = unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
			f.Close()
			if err != nil {
				return true
			}
		}
	}
	return false
}
