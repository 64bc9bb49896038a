package gitmeta

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func (d *discovery) linkedOutside(r Repo, dir string) Repo {
	common, err := d.pointer(filepath.Join(dir, "commondir"), dir, "")
	if err != nil {
		return r.foreign("commondir: " + err.Error())
	}
	r.Kind, r.GitDir, r.CommonDir = Linked, dir, common
	if err := d.backPointer(r, dir, common); err != nil {
		return r.foreign(err.Error())
	}
	if err := d.acceptable(dir, common); err != nil {
		return r.foreign(err.Error())
	}
	r.Verified = true
	return r
}

// backPointer checks that dir is COMMON/worktrees/ID and names r's entry.
func (d *discovery) backPointer(r Repo, dir, common string) error {
	if filepath.Base(filepath.Dir(dir)) != "worktrees" || !same(filepath.Dir(filepath.Dir(dir)), common) {
		return errors.New("it does not lie in the worktrees of its common directory")
	}
	back, err := pointerText(filepath.Join(dir, "gitdir"), "")
	if err != nil {
		return errors.New("it has no back-pointer to a worktree")
	}
	if !filepath.IsAbs(back) {
		back = filepath.Join(dir, back)
	}
	if !same(back, r.Entry) {
		return errors.New("its back-pointer names another worktree")
	}
	return nil
}

// submoduleOutside accepts the workspace that is itself a submodule's worktree.
func (d *discovery) submoduleOutside(r Repo, dir string) Repo {
	if !inModules(dir) {
		return r.foreign("it leads out of the workspace to a directory that does not point back")
	}
	c := d.read(filepath.Join(dir, "config"))
	tree := ""
	for _, e := range c.entries {
		if e.Name == "core.worktree" {
			tree = e.Value
		}
	}
	if tree != "" && !filepath.IsAbs(tree) {
		tree = filepath.Join(dir, tree)
	}
	if tree == "" || !same(tree, r.Worktree) {
		return r.foreign("it leads out of the workspace to a directory that does not point back")
	}
	if err := d.acceptable(dir, dir); err != nil {
		return r.foreign(err.Error())
	}
	r.Kind, r.GitDir, r.CommonDir, r.Verified = Submodule, dir, dir, true
	return r
}

// acceptable says whether a git directory outside the workspace is one, and
// the same user's, and nothing that holds more than a repository.
func (d *discovery) acceptable(dir, common string) error {
	if !gitDirLike(common) {
		return errors.New("its common directory is no git directory")
	}
	want, ok := owner(d.ws)
	for _, p := range []string{dir, common} {
		fi, err := os.Lstat(p)
		if err != nil {
			return err
		}
		if uid, known := owner(fi); !ok || !known || uid != want {
			return errors.New("it belongs to another user than the workspace")
		}
		if inside(p, d.Workspace) {
			return errors.New("it contains the workspace")
		}
		for _, h := range d.Homes {
			if inside(p, h) {
				return errors.New("it is or contains a home directory")
			}
		}
		if systemFolder(p) {
			return errors.New("it is a system folder")
		}
	}
	return nil
}

func systemFolder(p string) bool {
	switch p {
	case "/", "/var", "/opt", "/srv", "/home", "/mnt", "/media", "/tmp", "/var/tmp":
		return true
	}
	top, _, _ := strings.Cut(strings.TrimPrefix(p, "/"), "/")
	return slices.Contains([]string{"usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "etc", "boot", "dev",
		"proc", "sys", "run", "nix", "gnu"}, top)
}

// gitDirLike is git's own test, without reading HEAD.
func gitDirLike(dir string) bool {
	return has(dir, "HEAD") && isDir(dir, "objects") && isDir(dir, "refs")
}

func has(dir, name string) bool {
	_, err := os.Lstat(filepath.Join(dir, name))
	return err == nil
}

func isDir(dir, name string) bool {
	fi, err := os.Stat(filepath.Join(dir, name))
	return err == nil && fi.IsDir()
}

// same compares two paths by identity; a missing one is the same as nothing.
func same(a, b string) bool {
	x, err := os.Lstat(a)
	if err != nil {
		return false
	}
	y, err := os.Lstat(b)
	return err == nil && os.SameFile(x, y)
}

// inside says whether path is dir or lies below it. Both are clean.
func inside(dir, path string) bool {
	if dir == "" || path == "" {
		return false
	}
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(dir, string(filepath.Separator)))
	return ok && (rest == "" || rest[0] == filepath.Separator)
}

// inModules says whether a git directory lies where a superproject keeps those
// of its submodules: .git/modules, or .git/worktrees/ID/modules.
func inModules(dir string) bool {
	_, rest, ok := strings.Cut(dir, "/.git/")
	return ok && strings.Contains("/"+rest, "/modules/")
}
