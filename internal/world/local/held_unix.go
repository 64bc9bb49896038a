//go:build linux || darwin

package local

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/internal/plan"
	"github.com/tether-sandbox/tether/internal/plan/gitmeta"
	"github.com/tether-sandbox/tether/internal/plan/secrets"
)

// held is a place that belonged to what lay there. A command can move the
// folder around a locked name, and put up another under the old one.
type held struct {
	Path []byte `json:"path"`
	Dev  uint64 `json:"dev"`
	Ino  uint64 `json:"ino"`
	// Link is what a symbolic link said: its number says little, another one
	// may get the same.
	Link []byte `json:"link,omitempty"`
}

func heldOf(p *plan.Plan) []held {
	out := make([]held, 0, len(p.Held))
	for _, h := range p.Held {
		out = append(out, held{[]byte(h.Path), h.Dev, h.Ino, []byte(h.Link)})
	}
	return out
}

const takesPlace = "it took the place of a locked file or folder"

// takenOver finds what lies in a held place and does not belong there: neither
// what lay there, nor another thing that was held and therefore unchanged, nor
// a copy of what lay there, as a checkout makes one. An empty place is nobody's.
func (r *record) takenOver(root string, seen *secrets.Found) []gitmeta.Finding {
	var out []gitmeta.Finding
	for i := range r.Held {
		h := &r.Held[i]
		path := string(h.Path)
		if !strings.HasPrefix(path, root+"/") {
			continue
		}
		at := r.taker(root, h)
		if at == "" || at == path && r.copyOf(h, root, seen) ||
			slices.ContainsFunc(out, func(f gitmeta.Finding) bool { return f.Path == at }) {
			continue
		}
		out = append(out, gitmeta.Finding{Path: at, Kind: gitmeta.KindReplaced, What: takesPlace})
	}
	return out
}

// taker returns what stands in a held place: the place itself, or a link that
// now lies on the way to it. Empty: nothing that matters.
func (r *record) taker(root string, h *held) string {
	path := string(h.Path)
	for i := len(root) + 1; i <= len(path); i++ {
		if i < len(path) && path[i] != '/' {
			continue
		}
		at := path[:i]
		var st unix.Stat_t
		if unix.Lstat(at, &st) != nil {
			return ""
		}
		if at == path {
			if r.belongs(h, path, &st) {
				return ""
			}
			return at
		}
		if st.Mode&unix.S_IFMT != unix.S_IFLNK {
			continue
		}
		real, err := filepath.EvalSymlinks(at)
		if err != nil || real != root && !strings.HasPrefix(real, root+"/") {
			return at // who knows what will come there
		}
		real = filepath.Join(real, path[i:])
		if unix.Lstat(real, &st) != nil || r.belongs(h, real, &st) {
			return ""
		}
		return at
	}
	return ""
}

// belongs says whether what lies at path, in the place of h, was held before.
func (r *record) belongs(h *held, path string, st *unix.Stat_t) bool {
	if st.Mode&unix.S_IFMT != unix.S_IFLNK {
		return slices.ContainsFunc(r.Held, func(k held) bool { return len(k.Link) == 0 && k.Dev == uint64(st.Dev) && k.Ino == st.Ino })
	}
	to, err := os.Readlink(path)
	return err == nil && len(h.Link) > 0 && to == string(h.Link)
}

// copyOf says whether what lies in the place of h now holds nothing but what
// the original does, which has been moved elsewhere in root, unchanged.
func (r *record) copyOf(h *held, root string, seen *secrets.Found) bool {
	if len(h.Link) > 0 {
		return false
	}
	for _, e := range seen.Entries {
		var st unix.Stat_t
		if filepath.Base(e.Path) != filepath.Base(string(h.Path)) || unix.Lstat(e.Path, &st) != nil || uint64(st.Dev) != h.Dev || st.Ino != h.Ino {
			continue
		}
		left := copyBudget
		return sameTree(string(h.Path), e.Path, &left)
	}
	return false
}

// copyBudget bounds what is compared: bytes, with some for each name.
const copyBudget = 16 << 20

// sameTree says whether all that lies at path lies at original, too. What it
// cannot tell is not the same.
func sameTree(path, original string, left *int) bool {
	if *left -= 4096; *left < 0 {
		return false
	}
	var a, b unix.Stat_t
	if unix.Lstat(path, &a) != nil || unix.Lstat(original, &b) != nil || a.Mode&unix.S_IFMT != b.Mode&unix.S_IFMT {
		return false
	}
	switch a.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		entries, err := os.ReadDir(path)
		if err != nil {
			return false
		}
		return !slices.ContainsFunc(entries, func(e os.DirEntry) bool {
			return !sameTree(filepath.Join(path, e.Name()), filepath.Join(original, e.Name()), left)
		})
	case unix.S_IFLNK:
		x, errX := os.Readlink(path)
		y, errY := os.Readlink(original)
		return errX == nil && errY == nil && x == y
	case unix.S_IFREG:
		if *left -= int(min(a.Size, copyBudget)); *left < 0 || a.Size != b.Size || a.Mode&0o111 != b.Mode&0o111 {
			return false
		}
		x, y := readRegular(path, a.Size), readRegular(original, b.Size)
		return x != nil && bytes.Equal(x, y)
	}
	return false
}

// readRegular returns the content of a file of a known size, or nothing.
func readRegular(path string, size int64) []byte {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	raw := make([]byte, size)
	if _, err := io.ReadFull(f, raw); err != nil {
		return nil
	}
	return raw
}
