package bwrap

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tether-sandbox/tether/internal/need"
)

// TestTrusted: a launcher is taken only where nobody but root can put one.
func TestTrusted(t *testing.T) {
	need.Root(t)
	const foreign = 54321
	for _, c := range []struct {
		name  string
		make  func(t *testing.T, dir string) string
		wrong string // what the reason says, "" for trusted
	}{
		{"a program of root's", func(t *testing.T, dir string) string { return program(t, dir, 0o755) }, ""},
		{"through a link", func(t *testing.T, dir string) string {
			to := filepath.Join(dir, "link")
			must(t, os.Symlink(program(t, dir, 0o755), to))
			return to
		}, ""},
		{"somebody else's", func(t *testing.T, dir string) string {
			p := program(t, dir, 0o755)
			must(t, os.Chown(p, foreign, 0))
			return p
		}, "others than root"},
		{"somebody else's through root's link", func(t *testing.T, dir string) string {
			p, to := program(t, dir, 0o755), filepath.Join(dir, "link")
			must(t, os.Chown(p, foreign, 0))
			must(t, os.Symlink(p, to))
			return to
		}, "others than root"},
		{"writable by the group", func(t *testing.T, dir string) string { return program(t, dir, 0o775) }, "others than root"},
		{"writable by all", func(t *testing.T, dir string) string { return program(t, dir, 0o757) }, "others than root"},
		{"set-uid", func(t *testing.T, dir string) string { return program(t, dir, 0o755|os.ModeSetuid) }, "set-uid"},
		{"set-gid", func(t *testing.T, dir string) string { return program(t, dir, 0o755|os.ModeSetgid) }, "set-uid"},
		{"a folder", func(t *testing.T, dir string) string { return dir }, "not a regular file"},
		{"in a folder of somebody else's", func(t *testing.T, dir string) string {
			p := program(t, dir, 0o755)
			must(t, os.Chown(dir, foreign, 0))
			return p
		}, "others than root"},
		{"in a folder that the group writes", func(t *testing.T, dir string) string {
			p := program(t, dir, 0o755)
			must(t, os.Chmod(dir, 0o775))
			return p
		}, "others than root"},
		{"in a folder that all write, where only owners move", func(t *testing.T, dir string) string {
			p := program(t, dir, 0o755)
			must(t, os.Chmod(dir, 0o777|os.ModeSticky))
			return p
		}, ""},
		{"a link in a folder of somebody else's", func(t *testing.T, dir string) string {
			theirs := filepath.Join(dir, "theirs")
			must(t, os.Mkdir(theirs, 0o755))
			must(t, os.Symlink(program(t, dir, 0o755), filepath.Join(theirs, "bwrap")))
			must(t, os.Chown(theirs, foreign, 0))
			return filepath.Join(theirs, "bwrap")
		}, "others than root"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := trusted(c.make(t, t.TempDir()))
			switch {
			case c.wrong == "" && err != nil:
				t.Errorf("got %v, want it trusted", err)
			case c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)):
				t.Errorf("got %v, want %q", err, c.wrong)
			}
		})
	}
}

// TestTrustedHere is the control that needs no rights: the system's own
// programs are trusted, what the caller made is not, what is missing is told
// apart.
func TestTrustedHere(t *testing.T) {
	if err := trusted("/bin/sh"); err != nil {
		t.Errorf("/bin/sh: got %v, want it trusted", err)
	}
	if err := trusted(filepath.Join(t.TempDir(), "missing")); !os.IsNotExist(err) {
		t.Errorf("a missing one: got %v, want that it does not exist", err)
	}
	if os.Geteuid() != 0 {
		if err := trusted(program(t, t.TempDir(), 0o755)); err == nil {
			t.Error("the caller's own program is trusted")
		}
	}
}

func program(t *testing.T, dir string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(dir, "bwrap")
	must(t, os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755))
	must(t, os.Chmod(path, mode))
	return path
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
