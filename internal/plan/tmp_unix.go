//go:build linux || darwin

package plan

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/tether-sandbox/tether/policy"
)

// ShowTmp shows a folder of Tether's own state as /tmp, in place of one in
// memory. What the plan shows below /tmp gets a place in it first: nothing is
// created there once the sandbox is built. A file or link that commands put in
// the way of such a place is removed.
func (p *Plan) ShowTmp(dir string) error {
	root, _, err := openRoot(dir)
	if err != nil {
		return err
	}
	p.Scratch = slices.DeleteFunc(slices.Clone(p.Scratch), func(s Scratch) bool { return s.Path == p.Tmp })
	if p.InPlace {
		p.Tmp = root.Path
		p.Views = append(p.Views, View{Root: root, Origin: Tmp, Writable: p.Policy.Profile == policy.WorkspaceWrite})
		return nil
	}
	in, err := os.OpenRoot(root.Path)
	if err != nil {
		return err
	}
	defer in.Close()
	for _, at := range p.belowTmp() {
		if err := makePlace(in, at.path, at.file); err != nil {
			return err
		}
	}
	p.Views = append(p.Views, View{Root: root, At: tmp, Origin: Tmp, Writable: p.Policy.Profile == policy.WorkspaceWrite})
	return nil
}

// tmpPlace is something that is shown below /tmp, and in nothing else there.
type tmpPlace struct {
	path string // relative to /tmp
	file bool
}

func (p *Plan) belowTmp() []tmpPlace {
	var all []tmpPlace
	add := func(path string, file bool) {
		if rel, ok := strings.CutPrefix(path, tmp+"/"); ok {
			all = append(all, tmpPlace{rel, file})
		}
	}
	for _, v := range p.Views {
		add(v.Target(), v.File)
	}
	for _, s := range p.Scratch {
		add(s.Path, false)
	}
	for _, f := range p.Files {
		add(f.Path, true)
	}
	slices.SortFunc(all, func(a, b tmpPlace) int { return cmp.Compare(sortKey(a.path), sortKey(b.path)) })
	var outer []tmpPlace
	for _, at := range all {
		if n := len(outer); n == 0 || !inside(at.path, outer[n-1].path) {
			outer = append(outer, at)
		}
	}
	return outer
}

// makePlace makes a folder, or an empty file, and the folders above it, in root.
func makePlace(in *os.Root, path string, file bool) error {
	for end := 0; end < len(path); end++ {
		i := strings.IndexByte(path[end:], '/')
		last := i < 0
		if end += i; last {
			end = len(path)
		}
		at := path[:end]
		folder := !last || !file
		info, err := in.Lstat(at)
		if err == nil && (folder && info.IsDir() || !folder && info.Mode().IsRegular()) {
			continue
		}
		if err == nil {
			err = in.RemoveAll(at)
		} else if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		if err != nil {
			return err
		}
		if !folder {
			f, err := in.OpenFile(at, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
			if err != nil {
				return err
			}
			f.Close()
			continue
		}
		if err := in.Mkdir(at, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := in.Chmod(at, 0o755); err != nil {
			return err
		}
	}
	return nil
}
