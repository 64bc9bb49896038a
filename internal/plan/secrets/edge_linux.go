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

// keepsTime says whether a file system changes a directory's change time with
// its entries, at once and for everybody. Only local ones that are known to do
// so count.
func keepsTime(fd int) bool {
	var st unix.Statfs_t
	if unix.Fstatfs(fd, &st) != nil {
		return false
	}
	switch st.Type {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC, unix.F2FS_SUPER_MAGIC, unix.OVERLAYFS_SUPER_MAGIC:
		return true
	}
	return false
}
