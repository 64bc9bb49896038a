package local

import "golang.org/x/sys/unix"

// mountsBelow is not asked for here.
func mountsBelow([]string) []string { return nil }

// roomAt asks the file system of a folder what it has left (statfs(2)).
func roomAt(dir string) (room, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return room{}, err
	}
	unit := uint64(fs.Bsize)
	return room{free: fs.Bavail * unit, size: fs.Blocks * unit, names: fs.Ffree, mostNames: fs.Files}, nil
}
