//go:build linux || darwin

package secrets

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tether-sandbox/tether/fault"
	"golang.org/x/sys/unix"
)

// whyUnsearchable marks a hit in a directory that lists its names and lets
// nobody look them up; the walk turns it into an unreadable directory.
const whyUnsearchable = "unsearchable"

// finder is the state of one Find.
type finder struct {
	rules Rules
	cache *Cache
	known *Known
	roots []string

	read, cached atomic.Int64

	found   Found
	hits    []hit
	out     Result
	repos   map[string]bool
	aliases aliasSet
	wanted  map[identity]bool
}

// Find finds the hidden files below roots. See the package's comment for what
// it promises. cache may be nil; the caller saves it.
//
// It fails, with SANDBOX_BAD_WORKSPACE, when a root cannot be opened, when ctx
// ends and when descriptors or memory run out: what was not searched must not
// be shown. All smaller trouble is in the result.
func Find(ctx context.Context, roots []Root, rules Rules, cache *Cache) (Result, error) {
	return (&finder{rules: rules, cache: cache}).find(ctx, roots)
}

func (f *finder) find(ctx context.Context, roots []Root) (Result, error) {
	for _, r := range roots {
		f.roots = append(f.roots, r.Path)
	}
	slices.Sort(f.roots)
	f.roots = slices.Compact(f.roots)
	for _, root := range f.roots {
		if err := f.searchRoot(ctx, root); err != nil {
			return Result{}, fault.Wrap(fault.SandboxBadWorkspace, "cannot search it for secrets", err)
		}
	}
	f.out.Stats.Walks = 1
	f.listEntries()
	f.followLinks()
	f.judgeRefs()
	f.dropPublic()
	if f.wantAliases() {
		f.out.Stats.Walks = 2
		if err := f.findAliases(ctx); err != nil {
			return Result{}, fault.Wrap(fault.SandboxBadWorkspace, "cannot search it for hard links to secrets", err)
		}
	}
	f.mask()
	f.markTracked()
	f.out.Stats.Read, f.out.Stats.Cached = int(f.read.Load()), int(f.cached.Load())
	return f.out, nil
}

// searchRoot walks one root. A root that is a file is judged by its name.
func (f *finder) searchRoot(ctx context.Context, root string) error {
	fd, err := openRoot(root)
	dir, name := splitPath(root)
	if errors.Is(err, unix.ENOTDIR) && name != "" {
		return f.searchFile(dir, name)
	}
	if err != nil {
		return err
	}
	if f.rules.Name != nil && name != "" && f.rules.Name([]byte(name), Directory)&HiddenAny != 0 {
		var st unix.Stat_t
		err := unix.Fstat(fd, &st)
		unix.Close(fd)
		f.hits = append(f.hits, hit{Entry: Entry{Path: root, Type: Directory, Marks: HiddenAny}, id: idOf(&st)})
		return err
	}
	m := f.known.memory(root, f.rules)
	if m == nil {
		m = f.cache.recall(root, f.rules)
	}
	w := &walk{rules: f.rules, inspect: f.inspect, memory: m}
	found, err := w.run(ctx, root, fd)
	if err != nil {
		return err
	}
	if w.memory != nil {
		f.cache.remember(root, w.memory)
		f.out.Stats.Listed += int(w.memory.listed.Load())
	} else {
		f.out.Stats.Listed += found.Dirs
	}
	f.hits = append(f.hits, found.hits...)
	f.found.Entries = append(f.found.Entries, found.Entries...)
	f.found.Dirs += found.Dirs
	f.found.Files += found.Files
	return nil
}

// searchFile judges a root that is a single file.
func (f *finder) searchFile(dir, name string) error {
	fd, err := unix.Open(dir, openPlace, 0)
	if err != nil {
		return fmt.Errorf("open %q: %w", dir, err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return fmt.Errorf("stat %q: %w", join(dir, name), err)
	}
	if st.Mode&unix.S_IFMT == unix.S_IFLNK {
		return fmt.Errorf("root %q is a symbolic link: %w", join(dir, name), unix.ELOOP)
	}
	f.found.Files++
	e := Entry{Path: join(dir, name), Type: typeOf(byte(st.Mode >> 12 & 15)), Ino: st.Ino}
	if f.rules.Name != nil {
		e.Marks = f.rules.Name([]byte(name), e.Type)
	}
	if e.Type == SocketFile {
		e.Marks |= Socket
	}
	if e.Marks&^hiddenMarks != 0 {
		f.found.Entries = append(f.found.Entries, e)
	}
	if e.Marks&hiddenMarks != 0 {
		h, buf := hit{Entry: e}, []byte(nil)
		if f.inspect(fd, name, &h, &buf) {
			f.hits = append(f.hits, h)
		}
	}
	return nil
}

func splitPath(path string) (dir, name string) {
	i := strings.LastIndexByte(path, '/')
	return cmp.Or(path[:max(i, 0)], "/"), path[i+1:]
}

func idOf(st *unix.Stat_t) identity { return identity{uint64(st.Dev), st.Ino} }

// inspect stats an entry with a hidden mark and, when its content decides,
// reads it. Whatever cannot be proven public is secret.
func (f *finder) inspect(dir int, name string, h *hit, buf *[]byte) bool {
	var st unix.Stat_t
	switch err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW|onlyHere); {
	case err == unix.ENOENT:
		return false
	case err == unix.EACCES && !searchable(dir):
		h.why = whyUnsearchable
		return true
	case err != nil:
		return true
	}
	h.fill(&st)
	if h.Type == Directory && h.Marks&HiddenAny == 0 {
		return false // became a directory meanwhile
	}
	if h.Type != Regular || h.Marks&hiddenMarks != HiddenByContent {
		return true
	}
	h.verdict = f.content(dir, name, h, &st, buf)
	return true
}

func (h *hit) fill(st *unix.Stat_t) {
	h.id, h.links, h.size = idOf(st), uint64(st.Nlink), st.Size
	h.mtime, h.mode = time.Unix(st.Mtim.Unix()), uint32(st.Mode)&0o777
	h.Type = typeOf(byte(st.Mode >> 12 & 15))
	h.exact = st.Ino == h.Ino
}

// content judges a regular file by what is in it, or by what is remembered.
func (f *finder) content(dir int, name string, h *hit, st *unix.Stat_t, buf *[]byte) verdict {
	if st.Size > maxContent {
		return secret
	}
	key := keyOf(st)
	if v, ok := f.cache.get(key); ok {
		f.cached.Add(1)
		return v
	}
	// O_NONBLOCK: it may have become a FIFO since the stat.
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return secret
	}
	defer unix.Close(fd)
	if unix.Fstat(fd, st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Size > maxContent {
		return secret
	}
	if keyOf(st) != key {
		key = keyOf(st)
		h.fill(st)
	}
	if cap(*buf) <= int(st.Size) {
		*buf = make([]byte, max(16<<10, 2*int(st.Size)))
	}
	data := (*buf)[:st.Size+1] // one more shows that it grew
	n, err := unix.Read(fd, data)
	if err == nil && int64(n) < st.Size {
		var more int
		more, err = readFull(fd, data[n:])
		n += more
	}
	if err != nil || int64(n) != st.Size {
		return secret
	}
	f.read.Add(1)
	v := judge(data[:n])
	f.cache.put(key, v, time.Now())
	return v
}

func keyOf(st *unix.Stat_t) cacheKey {
	return cacheKey{idOf(st), st.Ctim.Nano(), st.Size}
}

// listEntries sorts what the walk marked into the result's lists.
func (f *finder) listEntries() {
	slices.SortFunc(f.found.Entries, func(a, b Entry) int { return cmp.Compare(a.Path, b.Path) })
	f.found.Entries = mergeMarks(f.found.Entries)
	f.out.Stats.Dirs, f.out.Stats.Files = f.found.Dirs, f.found.Files
	f.out.Sockets = f.found.With(Socket)
	f.out.BareRepos = f.found.With(Bare)
	f.out.Locked = f.found.With(Locked)
	f.out.Unreadable = f.found.With(Unreadable)
	f.out.GitLinks = f.found.With(GitLink)
	f.repos = map[string]bool{}
	for _, e := range f.found.Entries {
		if e.Marks&Git != 0 {
			f.out.GitEntries = append(f.out.GitEntries, e)
		}
		if e.Marks&Bare != 0 {
			f.repos[e.Path] = true
		}
	}
}

// judgeRefs decides on files that read like a git ref or reflog: they are
// public in the refs or logs of a repository, or of one of its worktrees.
func (f *finder) judgeRefs() {
	for i := range f.hits {
		h := &f.hits[i]
		if h.verdict != gitRef {
			continue
		}
		h.verdict = secret
		for at := 1; at < len(h.Path); at++ {
			if h.Path[at] != '/' {
				continue
			}
			rest := h.Path[at:]
			if !strings.HasPrefix(rest, "/refs/") && !strings.HasPrefix(rest, "/logs/") {
				continue
			}
			if f.isRepo(h.Path[:at]) {
				h.verdict = public
				break
			}
		}
	}
}

// isRepo says whether dir is a repository, or what one keeps of a worktree.
func (f *finder) isRepo(dir string) bool {
	if f.repos[dir] {
		return true
	}
	up, _ := splitPath(dir)
	repo, ok := strings.CutSuffix(up, "/worktrees")
	return ok && f.repos[repo]
}

// dropPublic keeps the hits that are to be masked.
func (f *finder) dropPublic() {
	f.hits = slices.DeleteFunc(f.hits, func(h hit) bool {
		if h.verdict == public {
			f.out.Stats.Public++
		}
		return h.verdict == public
	})
}

// mask turns hits and unreadable directories into masks.
func (f *finder) mask() {
	for _, h := range f.hits {
		m := Mask{Path: h.Path, Dev: h.id.dev, Ino: h.id.ino, Size: h.size, MTime: h.mtime, Mode: h.mode, Why: h.reason()}
		if h.Type == Directory {
			m.Kind = MaskDir
		}
		f.out.Masks = append(f.out.Masks, m)
	}
	for _, path := range f.out.Unreadable {
		m := Mask{Path: path, Kind: MaskDir, Why: "cannot be read, so what it holds is unknown"}
		var st unix.Stat_t
		if unix.Lstat(path, &st) == nil {
			m.Dev, m.Ino = uint64(st.Dev), st.Ino
		}
		f.out.Masks = append(f.out.Masks, m)
	}
	f.out.Masks = sortMasks(f.out.Masks)
}

func (h *hit) reason() string {
	switch {
	case h.why != "":
		return h.why
	case h.Marks&(Hidden|HiddenAny) != 0:
		return "hidden by name"
	}
	return "hidden: its content is not public"
}
