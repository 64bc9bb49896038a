package local

import (
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/internal/mountinfo"
)

// mountsBelow lists where something is mounted below folders, at most a hundred.
func mountsBelow(dirs []string) (out []string) {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	const most = 100
	for line := range strings.Lines(string(table)) {
		f := strings.SplitN(line, " ", 6)
		if len(f) < 6 {
			continue
		}
		at := mountinfo.Unescape(f[4])
		if slices.ContainsFunc(dirs, func(dir string) bool { return strings.HasPrefix(at, strings.TrimSuffix(dir, "/")+"/") }) {
			if out = append(out, at); len(out) == most {
				break
			}
		}
	}
	return out
}

// roomAt asks the file system of a folder what it has left (statfs(2)).
func roomAt(dir string) (room, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return room{}, err
	}
	unit := uint64(fs.Frsize)
	if unit == 0 {
		unit = uint64(fs.Bsize)
	}
	return room{free: uint64(fs.Bavail) * unit, size: uint64(fs.Blocks) * unit, names: fs.Ffree, mostNames: fs.Files}, nil
}
