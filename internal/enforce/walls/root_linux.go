package walls

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/plan"
)

// searched are the folders of the system in which root keeps things to itself.
// The others hold programs that are installed for everybody.
var searched = [...]string{"/etc", "/opt", "/var"}

// mostSearched bounds the search, in entries.
const mostSearched = 200_000

// rootsOwn lists what the shown folders of the system keep from everybody but
// root, or a group: a command that runs as root without root's rights would
// still own it, or be of its group gid.
func rootsOwn(p *plan.Plan, gid uint32) ([]string, error) {
	var closed []string
	n := 0
	for i := range p.Views {
		v := &p.Views[i]
		top := v.Path
		if v.Origin != plan.System || !slices.ContainsFunc(searched[:], func(s string) bool { return top == s || below(top, s) }) {
			continue
		}
		err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
			if n++; n > mostSearched {
				return fault.New(fault.SandboxUnavailable, top+" holds too much to be searched for what only root may read").
					WithHint("run tether as an ordinary user")
			}
			if errors.Is(err, os.ErrNotExist) {
				return nil
			}
			if err != nil {
				closed = append(closed, path)
				return fs.SkipDir
			}
			if d.Type()&fs.ModeSymlink != 0 {
				return nil
			}
			for i := range p.Views {
				if v := &p.Views[i]; v.Path == path && v.Origin != plan.System {
					return skip(d) // shown by name
				}
			}
			for _, c := range p.Covers {
				if c == path {
					return skip(d)
				}
			}
			info, err := d.Info()
			if err != nil {
				return nil // gone
			}
			if !public(info, gid) {
				closed = append(closed, path)
				return skip(d)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return closed, nil
}

func skip(d fs.DirEntry) error {
	if d.IsDir() {
		return fs.SkipDir
	}
	return nil
}

// public says whether everybody may read a file, or list and enter a folder, that
// root or the group gid could; permissions hold for what is others'.
func public(info fs.FileInfo, gid uint32) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || st.Uid != 0 && st.Gid != 0 && st.Gid != gid {
		return ok // not root's: its permissions hold
	}
	need := os.FileMode(0o004)
	if info.IsDir() {
		need = 0o005
	}
	return info.Mode().Perm()&need == need
}
