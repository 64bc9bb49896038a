//go:build linux || darwin

package secrets

import (
	"cmp"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// pruneName is a file whose time says when a folder of caches was last
	// looked through; pruneEvery is how long that does.
	pruneName  = "pruned"
	pruneEvery = 24 * time.Hour
	// What has not been read or written for keepFor goes, and the oldest beyond
	// keepBytes or keepFiles: what is missed is found again by a search.
	keepFor   = 30 * 24 * time.Hour
	keepBytes = int64(256 << 20)
	keepFiles = 1024
	// unfinished is how long nobody takes to write a file.
	unfinished = time.Hour
)

// Prune bounds what is remembered in the folder dir of [OpenCache]. It costs
// one look at a file, and once a day a look at each. What fails is tried again
// the next day.
func Prune(dir string, now time.Time) {
	fd, err := openState(dir)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if unix.Fstatat(fd, pruneName, &st, unix.AT_SYMLINK_NOFOLLOW) == nil {
		if age := now.Sub(time.Unix(st.Mtim.Unix())); age >= 0 && age < pruneEvery {
			return
		}
	}
	if replaceFile(fd, pruneName, nil) != nil {
		return
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	type kept struct {
		name string
		used int64
		size int64
	}
	var keep []kept
	for _, e := range entries {
		name := e.Name()
		if name == pruneName || name == cacheName || unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil ||
			st.Mode&unix.S_IFMT != unix.S_IFREG {
			continue
		}
		used := max(st.Atim.Nano(), st.Mtim.Nano())
		limit := keepFor
		if temporary(name) {
			limit = unfinished
		}
		if now.UnixNano()-used > int64(limit) {
			_ = unix.Unlinkat(fd, name, 0)
			continue
		}
		keep = append(keep, kept{name, used, st.Size})
	}
	slices.SortFunc(keep, func(a, b kept) int { return cmp.Compare(b.used, a.used) })
	var bytes int64
	for i, k := range keep {
		if bytes += k.size; i >= keepFiles || bytes > keepBytes {
			_ = unix.Unlinkat(fd, k.name, 0)
		}
	}
}

// temporary says whether replaceFile gives such a name to what it has not
// finished.
func temporary(name string) bool { return slices.Contains([]byte(name), '.') }
