//go:build linux || darwin

package secrets

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"golang.org/x/sys/unix"
)

// followLinks replaces symbolic links with hidden names by what they lead to,
// where that lies below a root.
func (f *finder) followLinks() {
	links := []hit(nil)
	f.hits = slices.DeleteFunc(f.hits, func(h hit) bool {
		if h.Type == Symlink {
			links = append(links, h)
		}
		return h.Type == Symlink
	})
	var buf []byte
	for _, l := range links {
		p, err := resolve(l.Path)
		switch {
		case errors.Is(err, errAutomount), errors.Is(err, unix.EACCES):
			f.out.Outside = append(f.out.Outside, Link{Path: l.Path, Why: err.Error()})
		case err != nil: // dangling, or a loop: there is nothing to hide
		case !f.inside(p.path):
			f.out.Outside = append(f.out.Outside, Link{Path: l.Path, Target: p.path, Why: "leads out of the roots"})
			p.close()
		default:
			h := hit{Entry: Entry{Path: p.path, Marks: l.Marks & hiddenMarks}}
			if f.inspect(p.dir, p.name, &h, &buf) && h.why == "" {
				h.why = "target of a link with a hidden name"
				f.hits = append(f.hits, h)
			}
			p.close()
		}
	}
	slices.SortFunc(f.out.Outside, func(a, b Link) int { return cmp.Compare(a.Path, b.Path) })
}

// inside says whether path lies below a root, or is one that is a file.
func (f *finder) inside(path string) bool {
	for _, r := range f.roots {
		if within(path, r) {
			return true
		}
	}
	return false
}

// wantAliases says whether a hidden file has names that were not found.
func (f *finder) wantAliases() bool {
	names := map[identity]map[string]bool{}
	links := map[identity]uint64{}
	exact := map[identity]bool{}
	for _, h := range f.hits {
		if h.links < 2 || h.Type == Directory {
			continue
		}
		if names[h.id] == nil {
			names[h.id] = map[string]bool{}
		}
		names[h.id][h.Path] = true
		links[h.id] = max(links[h.id], h.links)
		exact[h.id] = exact[h.id] || h.exact
	}
	f.aliases.inodes, f.wanted = map[uint64]bool{}, map[identity]bool{}
	for id, n := range names {
		if uint64(len(n)) >= links[id] {
			continue
		}
		f.wanted[id] = true
		f.aliases.inodes[id.ino] = true
		f.aliases.every = f.aliases.every || !exact[id]
	}
	return len(f.wanted) > 0
}

// findAliases walks the roots again for other names of hidden files.
func (f *finder) findAliases(ctx context.Context) error {
	for _, root := range f.roots {
		fd, err := openRoot(root)
		if errors.Is(err, unix.ENOTDIR) {
			var st unix.Stat_t
			if unix.Lstat(root, &st) == nil && f.wanted[idOf(&st)] {
				h := hit{Entry: Entry{Path: root, Ino: st.Ino}, why: whyAlias}
				h.fill(&st)
				f.hits = append(f.hits, h)
			}
			continue
		}
		if err != nil {
			return err
		}
		w := &walk{aliases: &f.aliases, inspect: f.isAlias}
		found, err := w.run(ctx, root, fd)
		if err != nil {
			return err
		}
		f.hits = append(f.hits, found.hits...)
	}
	return nil
}

const whyAlias = "hard link to a hidden file"

func (f *finder) isAlias(dir int, name string, h *hit, _ *[]byte) bool {
	var st unix.Stat_t
	if unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW|onlyHere) != nil || !f.wanted[idOf(&st)] {
		return false
	}
	h.fill(&st)
	h.why = whyAlias
	return true
}
