package inner

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/internal/enforce"
)

// stepError says which step failed and why.
type stepError struct {
	step *enforce.Step
	what string
	err  error
}

func (e *stepError) Error() string {
	return fmt.Sprintf("%s %s: %s: %v", e.step.Do, e.step.Dst, e.what, e.err)
}

func (e *stepError) Unwrap() error { return e.err }

// builder builds the world of a command under a new root, with the mount calls
// that work on descriptors (Linux 5.12: open_tree, mount_setattr, move_mount).
type builder struct {
	coverer // its root is the new one, a tmpfs
	trees   []int
	own     map[uint64]bool // devices of file systems that we made: scaffolding may be created there
	late    []lateWrite
	done    []enforce.Step // carried out before the order came

	// last is the folder lastAt, opened or -1: what is made next most often
	// lies beside what was made before.
	last   int
	lastAt string
}

// lateWrite is a sysctl that is opened in its turn and written at the end: the
// limit of mount namespaces counts detached mounts, too (open_tree is ENOSPC).
type lateWrite struct {
	step *enforce.Step
	fd   int
}

// begin makes the new root and carries out the steps that every plan begins
// with.
func begin() (*builder, error) {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return nil, fmt.Errorf("make mounts private: %w", err)
	}
	root, err := newTmpfs("0755", 64<<20)
	if err != nil {
		return nil, fmt.Errorf("new root: %w", err)
	}
	// The new root is stacked on the old one. Lookups that start at "/" do not
	// cross it until pivot_root, so that sources still open by their own paths.
	if err := unix.MoveMount(root, "", unix.AT_FDCWD, "/", unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return nil, fmt.Errorf("attach the new root: %w", err)
	}
	b := &builder{own: map[uint64]bool{}, last: -1,
		coverer: coverer{root: root, kit: -1, masks: map[string]int{}, self: "/proc/self/fd/"}}
	if err := b.mine(root); err != nil {
		return nil, err
	}
	b.done = enforce.Foundation()
	if err := b.carryOut(b.done); err != nil {
		return nil, err
	}
	// Once the limit of mount namespaces is written they cannot be made any more.
	for _, do := range sources {
		if _, err := b.maskSource(do); err != nil {
			return nil, fmt.Errorf("mask sources: %w", err)
		}
	}
	return b, nil
}

// finish carries out the rest of steps and makes the result the root of this
// process.
func (b *builder) finish(steps []enforce.Step, trees []int) error {
	if len(steps) < len(b.done) {
		return errors.New("the steps do not begin as every list does")
	}
	for i := range b.done {
		if !steps[i].Equal(&b.done[i]) {
			return errors.New("the steps do not begin as every list does")
		}
	}
	b.trees = trees
	if err := b.carryOut(steps[len(b.done):]); err != nil {
		return err
	}
	b.forget("")
	if err := setattr(b.root, unix.MOUNT_ATTR_RDONLY, false); err != nil {
		return fmt.Errorf("seal the root: %w", err)
	}
	if err := unix.Fchdir(b.root); err != nil {
		return fmt.Errorf("enter the new root: %w", err)
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("pivot_root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("detach the old root: %w", err)
	}
	if err := unix.Chdir("/"); err != nil {
		return err
	}
	for _, l := range b.late {
		if _, err := unix.Write(l.fd, l.step.Content); err != nil {
			return &stepError{step: l.step, what: "write", err: err}
		}
		unix.Close(l.fd)
	}
	return nil
}

func (b *builder) carryOut(steps []enforce.Step) error {
	for i := range steps {
		s := &steps[i]
		what, err := b.do(s)
		if changed(s, what, err) {
			return &stepError{step: s, what: what, err: fmt.Errorf("%w: %w", errChanged, err)}
		}
		if err == nil || s.Flags&(enforce.Gone|enforce.Optional) != 0 && b.gone(s.Dst, what, err) {
			continue
		}
		return &stepError{step: s, what: what, err: err}
	}
	return nil
}

// changed says whether a step failed because what it was planned for is not
// there any more.
func changed(s *enforce.Step, what string, err error) bool {
	if err == nil || s.Ino == 0 {
		return false
	}
	if s.Do == enforce.Bind && what != "open the source" && what != "compare the source" {
		return false
	}
	return errors.Is(err, errChanged) || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP)
}

func (b *builder) do(s *enforce.Step) (string, error) {
	switch s.Do {
	case enforce.Bind:
		return b.bind(s)
	case enforce.Self:
		return b.self(s)
	case enforce.Tmpfs:
		return b.tmpfs(s)
	case enforce.Dir:
		fd, err := b.target(s)
		if err == nil {
			unix.Close(fd)
		}
		return "make the folder", err
	case enforce.Symlink:
		return b.symlink(s)
	case enforce.File:
		return b.file(s)
	case enforce.MaskFile, enforce.MaskDir, enforce.MaskStub, enforce.Cover:
		return b.mask(s)
	case enforce.Proc:
		return b.filesystem(s, "proc", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
	case enforce.Devices:
		return b.devices(s)
	case enforce.Sysctl:
		return b.sysctl(s)
	case enforce.Seal:
		return b.seal(s)
	}
	return "carry out", unix.ENOSYS
}

func (b *builder) bind(s *enforce.Step) (string, error) {
	var tree int
	if s.Tree != 0 {
		if int(s.Tree) > len(b.trees) {
			return "take the passed tree", unix.EBADF
		}
		tree = b.trees[s.Tree-1]
	} else {
		how := unix.OpenHow{Flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC,
			Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS}
		src, err := retry(func() (int, error) { return unix.Openat2(unix.AT_FDCWD, s.Src, &how) })
		if err != nil {
			return "open the source", err
		}
		defer unix.Close(src)
		if s.Ino != 0 {
			if err := sameFile(src, s.Dev, s.Ino); err != nil {
				return "compare the source", err
			}
		}
		if tree, err = clone(src, s.Flags&enforce.Flat == 0); err != nil {
			return "clone the source", err
		}
		defer unix.Close(tree)
	}
	return b.place(s, tree)
}

func (b *builder) self(s *enforce.Step) (string, error) {
	at, err := b.target(s)
	if err != nil {
		return "open", err
	}
	defer unix.Close(at)
	tree, err := clone(at, true)
	if err != nil {
		return "clone", err
	}
	defer unix.Close(tree)
	if err := setattr(tree, attrs(s.Flags), true); err != nil {
		return "restrict", err
	}
	return "attach", b.attach(tree, at, s.Dst)
}

// place restricts a detached tree as the step says and attaches it at Dst.
func (b *builder) place(s *enforce.Step, tree int) (string, error) {
	if err := setattr(tree, attrs(s.Flags), true); err != nil {
		return "restrict", err
	}
	at, err := b.target(s)
	if err != nil {
		return "open the place", err
	}
	defer unix.Close(at)
	return "attach", b.attach(tree, at, s.Dst)
}

func (b *builder) tmpfs(s *enforce.Step) (string, error) {
	tree, err := newTmpfs(strconv.FormatUint(uint64(s.Mode), 8), s.Size)
	if err != nil {
		return "make", err
	}
	defer unix.Close(tree)
	if err := b.mine(tree); err != nil {
		return "make", err
	}
	return b.place(s, tree)
}

func (b *builder) symlink(s *enforce.Step) (string, error) {
	dir, name, err := b.parent(s.Dst)
	if err != nil {
		return "make the parent", err
	}
	return "link", unix.Symlinkat(s.Src, dir, name)
}

// file shows a read-only file with the step's content.
func (b *builder) file(s *enforce.Step) (string, error) {
	name := "f" + strconv.Itoa(b.stubs)
	b.stubs++
	if err := b.fill(name, s); err != nil {
		return "fill", err
	}
	return b.attachKit(s, name)
}

func (b *builder) filesystem(s *enforce.Step, kind string, attr uint64, options ...string) (string, error) {
	tree, err := newFS(kind, attr, options...)
	if err != nil {
		return "mount", err
	}
	defer unix.Close(tree)
	at, err := b.target(s)
	if err != nil {
		return "open the place", err
	}
	defer unix.Close(at)
	return "attach", b.attach(tree, at, s.Dst)
}

func (b *builder) seal(s *enforce.Step) (string, error) {
	fd, err := b.lookup(s.Dst)
	if err != nil {
		return "open", err
	}
	defer unix.Close(fd)
	return "make read-only", setattr(fd, unix.MOUNT_ATTR_RDONLY, false)
}

func (b *builder) sysctl(s *enforce.Step) (string, error) {
	fd, err := unix.Openat(b.root, strings.TrimPrefix(s.Dst, "/"), unix.O_WRONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return "open", err
	}
	b.late = append(b.late, lateWrite{step: s, fd: fd})
	return "", nil
}

func attrs(f enforce.Flags) uint64 {
	attr := uint64(unix.MOUNT_ATTR_NOSUID)
	if f&enforce.AllowDevices == 0 {
		attr |= unix.MOUNT_ATTR_NODEV
	}
	if f&enforce.ReadOnly != 0 {
		attr |= unix.MOUNT_ATTR_RDONLY
	}
	if f&enforce.NoExec != 0 {
		attr |= unix.MOUNT_ATTR_NOEXEC
	}
	return attr
}
