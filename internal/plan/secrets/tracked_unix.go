//go:build linux || darwin

package secrets

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// maxIndex bounds an index file: about two million entries.
const maxIndex = 256 << 20

// markTracked finds out which masked files git tracks and makes their masks
// stubs. A file belongs to the worktree nearest above it.
func (f *finder) markTracked() {
	trees := map[string]map[string]int{} // worktree, path in it, index of the mask
	for _, e := range f.out.GitEntries {
		tree, _ := splitPath(e.Path)
		trees[tree] = map[string]int{}
	}
	for _, root := range f.roots {
		if tree := enclosing(root); tree != "" {
			trees[tree] = map[string]int{}
		}
	}
	if len(trees) == 0 {
		return
	}
	for i, m := range f.out.Masks {
		if m.Kind == MaskDir {
			continue
		}
		for tree := m.Path; tree != "/"; {
			tree, _ = splitPath(tree)
			if want, ok := trees[tree]; ok {
				want[strings.TrimPrefix(m.Path[len(tree):], "/")] = i
				break
			}
		}
	}
	for _, tree := range slices.Sorted(maps.Keys(trees)) {
		if len(trees[tree]) > 0 {
			f.markTree(join(tree, ".git"), trees[tree])
		}
	}
	slices.Sort(f.out.TrackedSecrets)
}

// enclosing returns the nearest folder above root that has a .git, empty if
// none has: git finds a repository from a folder inside it.
func enclosing(root string) string {
	for dir := root; dir != "/"; {
		dir, _ = splitPath(dir)
		var st unix.Stat_t
		if unix.Lstat(join(dir, ".git"), &st) == nil {
			return dir
		}
	}
	return ""
}

// markTree marks the files that one worktree tracks.
func (f *finder) markTree(git string, files map[string]int) {
	dir, err := gitDir(git)
	if err != nil {
		return // not a repository; git would say so too
	}
	defer unix.Close(dir)
	index, err := readAt(dir, "index", maxIndex)
	if err == unix.ENOENT {
		return // nothing tracked yet
	}
	want := make(map[string]bool, len(files))
	for rel := range files {
		want[rel] = true
	}
	tracked := map[string]bool{}
	if err == nil {
		tracked, err = Tracked(index, func(name string) []byte {
			b, _ := readAt(dir, name, maxIndex)
			return b
		}, want)
	}
	if err != nil {
		f.out.Odd = append(f.out.Odd, git)
	}
	for rel := range tracked {
		m := &f.out.Masks[files[rel]]
		m.Kind = MaskStub
		f.out.TrackedSecrets = append(f.out.TrackedSecrets, m.Path)
	}
}

// gitDir opens the directory that .git is or names ("gitdir: <path>").
func gitDir(git string) (int, error) {
	p, err := resolve(git)
	if err != nil {
		return -1, err
	}
	defer p.close()
	if p.stat.Mode&unix.S_IFMT == unix.S_IFDIR {
		return unix.FcntlInt(uintptr(p.fd), unix.F_DUPFD_CLOEXEC, 3)
	}
	text, err := readAt(p.dir, p.name, 8<<10)
	if err != nil {
		return -1, err
	}
	target, ok := bytes.CutPrefix(bytes.TrimRight(text, "\r\n"), []byte("gitdir: "))
	if !ok || len(target) == 0 || bytes.IndexByte(target, 0) >= 0 {
		return -1, unix.EINVAL
	}
	path := string(target)
	if path[0] != '/' {
		base, _ := splitPath(p.path)
		path = join(base, path)
	}
	d, err := resolve(path)
	if err != nil {
		return -1, err
	}
	defer d.close()
	if d.stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		return -1, unix.ENOTDIR
	}
	return unix.FcntlInt(uintptr(d.fd), unix.F_DUPFD_CLOEXEC, 3)
}

// readAt reads a regular file of at most limit bytes. It never waits: not for
// a FIFO, not for a device.
func readAt(dir int, name string, limit int64) ([]byte, error) {
	var st unix.Stat_t
	if err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return nil, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG { // opening alone can do something
		return nil, unix.EINVAL
	}
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, unix.EINVAL
	}
	if st.Size > limit {
		return nil, unix.EFBIG
	}
	b := make([]byte, st.Size)
	n, err := readFull(fd, b)
	return b[:n], err
}
