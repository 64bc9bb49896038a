package inner

import (
	"errors"
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/internal/enforce"
)

// clone returns a detached copy of the mount at fd.
func clone(fd int, recursive bool) (int, error) {
	flags := uint(unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC | unix.AT_EMPTY_PATH)
	if recursive {
		flags |= unix.AT_RECURSIVE
	}
	return unix.OpenTree(fd, "", flags)
}

func attach(tree, at int) error {
	return unix.MoveMount(tree, "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

func setattr(fd int, set uint64, recursive bool) error {
	flags := uint(unix.AT_EMPTY_PATH)
	if recursive {
		flags |= unix.AT_RECURSIVE
	}
	return unix.MountSetattr(fd, "", flags, &unix.MountAttr{Attr_set: set})
}

// newFS makes a new instance of a file system, detached.
func newFS(kind string, attr uint64, options ...string) (int, error) {
	fs, err := unix.Fsopen(kind, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("fsopen %s: %w", kind, err)
	}
	defer unix.Close(fs)
	for i := 0; i+1 < len(options); i += 2 {
		if err := unix.FsconfigSetString(fs, options[i], options[i+1]); err != nil {
			return -1, fmt.Errorf("option %s=%s: %w", options[i], options[i+1], err)
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return -1, fmt.Errorf("create %s: %w", kind, err)
	}
	mnt, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, int(attr))
	if err != nil {
		return -1, fmt.Errorf("fsmount %s: %w", kind, err)
	}
	return mnt, nil
}

// newTmpfs makes a tmpfs of at most size bytes; zero takes the kernel's limit,
// half of the memory.
func newTmpfs(mode string, size int64) (int, error) {
	options := []string{"source", "tmpfs", "mode", mode}
	if size > 0 {
		options = append(options, "size", strconv.FormatInt(size, 10))
	}
	return newFS("tmpfs", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV, options...)
}

// nodes are the device files of the minimal /dev.
var nodes = [...]string{"null", "zero", "full", "random", "urandom", "tty"}

// devices builds a minimal /dev: a few nodes of the host's, a terminal space
// of its own and a place for shared memory.
func (b *builder) devices(s *enforce.Step) (string, error) {
	dir := *s
	dir.Flags |= enforce.Make
	dir.Mode = 0o755
	if what, err := b.tmpfs(&dir); err != nil {
		return what, err
	}
	for _, n := range nodes {
		node := enforce.Step{Do: enforce.Bind, Src: "/dev/" + n, Dst: s.Dst + "/" + n,
			Flags: enforce.AllowDevices | enforce.Make | enforce.IsFile | enforce.NoExec}
		if what, err := b.bind(&node); err != nil {
			return what + " " + n, err
		}
	}
	for _, l := range [...][2]string{{"fd", "/proc/self/fd"}, {"stdin", "/proc/self/fd/0"},
		{"stdout", "/proc/self/fd/1"}, {"stderr", "/proc/self/fd/2"}, {"ptmx", "pts/ptmx"}} {
		link := enforce.Step{Dst: s.Dst + "/" + l[0], Src: l[1]}
		if what, err := b.symlink(&link); err != nil {
			return what + " " + l[0], err
		}
	}
	// Shared memory is mounted by a step of its own, which knows its size.
	shm, err := b.make(s.Dst+"/shm", false)
	if err != nil {
		return "make shm", err
	}
	unix.Close(shm)
	// The sources of masks lie below the terminals, where nobody sees them. Not
	// below shared memory: browsers ask findmnt how much of that there is, and it
	// counts what lies below, too.
	if err := b.openKit(s.Dst + "/pts"); err != nil {
		return "mount the mask sources", err
	}
	pts := enforce.Step{Dst: s.Dst + "/pts", Flags: enforce.Make}
	if what, err := b.filesystem(&pts, "devpts", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC,
		"ptmxmode", "0666", "mode", "0620"); err != nil {
		return what + " pts", err
	}
	return b.seal(s)
}

// retry repeats a scoped lookup that raced with a rename elsewhere (EAGAIN, see
// openat2(2)), a bounded number of times.
func retry(open func() (int, error)) (int, error) {
	const tries = 1000
	for n := 1; ; n++ {
		fd, err := open()
		if n < tries && (errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN)) {
			continue
		}
		return fd, err
	}
}
