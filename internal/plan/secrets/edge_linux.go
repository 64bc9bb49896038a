package secrets

import "golang.org/x/sys/unix"

const (
	// openPlace opens a directory for what lies in it, and not to be listed.
	openPlace = unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC
	// asOwner leaves the time of access alone; it is refused to all but owners.
	asOwner = unix.O_NOATIME
	// onlyHere keeps a look at a mount point from mounting something.
	onlyHere = unix.AT_NO_AUTOMOUNT
	// direntHead is the length of a linux_dirent64 before its name, direntKind
	// where its type stands.
	direntHead, direntKind = 19, 18
)

func readDir(fd int, buf []byte) (int, error) { return unix.Getdents(fd, buf) }

// fileSystem says what can be relied on in a file system.
type fileSystem struct {
	// keepsTime: a directory's change time changes with its entries, at once and
	// for everybody.
	keepsTime bool
	// tells: whatever changes in it passes through this kernel, which tells a watch.
	tells bool
}

// fileSystemOf knows only local ones, as of which both are known. What lies under
// an overlay can be changed past it.
func fileSystemOf(fd int) fileSystem {
	var st unix.Statfs_t
	if unix.Fstatfs(fd, &st) != nil {
		return fileSystem{}
	}
	switch st.Type {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC, unix.F2FS_SUPER_MAGIC:
		return fileSystem{keepsTime: true, tells: true}
	case unix.OVERLAYFS_SUPER_MAGIC:
		return fileSystem{keepsTime: true}
	}
	return fileSystem{}
}

// lockable says whether a directory's names are encrypted: they turn into others
// with the key, and nobody is told.
func lockable(fd int) bool {
	var st unix.Statx_t
	return unix.Statx(fd, "", unix.AT_EMPTY_PATH, 0, &st) != nil || st.Attributes&unix.STATX_ATTR_ENCRYPTED != 0
}

// openBelow opens the directory at a path below dir, following no link. What it
// refuses may still be reached step by step.
func openBelow(dir int, rel string) (int, error) {
	return unix.Openat2(dir, rel, &unix.OpenHow{Flags: openPlace | unix.O_NOFOLLOW, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS})
}
