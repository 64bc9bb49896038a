package native

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/enforce/inner"
	"github.com/tether-sandbox/tether/internal/enforce/supervise"
	"github.com/tether-sandbox/tether/internal/plan"
)

// Stage is an inner stage in namespaces of its own that waits for its job.
type Stage struct {
	id      plan.Identity
	network enforce.Net
	process *supervise.Process
}

// Launch starts an inner stage before its job is known, and does not wait for
// it: starting it and planning the job take about as long.
//
// The inner stage is this very program, executed again; the caller must have
// lent it (see package inner).
func Launch(id plan.Identity, network enforce.Net) (*Stage, error) {
	maps, told, err := os.Pipe()
	if err != nil {
		return nil, fault.Wrap(fault.IsolationUnavailable, "no pipe for the inner stage", err)
	}
	kind := inner.Builder
	if network == enforce.GatedNet {
		kind = inner.GateBuilder
	}
	program := &supervise.Direct{Path: "/proc/self/exe", Args: []string{inner.Name, kind}, Env: []string{"GOGC=off"},
		Files: []*os.File{maps}, Sys: attributes(network), Fenced: true,
		Begun: func(pid int) error {
			defer told.Close()
			return identify(pid, id, told)
		}}
	if id.Root {
		if err := makeExecutable(program); err != nil {
			maps.Close()
			told.Close()
			return nil, err
		}
	}
	p, err := supervise.Launch(program, explain)
	if err != nil {
		return nil, err
	}
	p.Joins(inner.Identity{Change: id.Root, UID: id.UID, GID: id.GID})
	return &Stage{id, network, p}, nil
}

// Fits says whether the stage is one for these ids and this network.
func (s *Stage) Fits(id plan.Identity, network enforce.Net) bool {
	return s.id == id && s.network == network
}

// Discard ends a stage that is not needed.
func (s *Stage) Discard() { s.process.Discard() }

// Begin gives the stage its job.
func (s *Stage) Begin(job enforce.Job) (enforce.Process, error) {
	job.Order.Build = true
	job.Order.Loopback = s.network == enforce.OwnNet
	if err := s.process.Begin(&job); err != nil {
		s.process.Discard()
		return nil, refused("start the inner stage", err)
	}
	if err := sendTrees(s.process, s.id, job.Order.Steps); err != nil {
		s.process.Kill()
		// A stage that is gone already knows better why.
		if _, why := s.process.Wait(); why != nil && s.process.Heard() {
			return nil, why
		}
		return nil, err
	}
	return s.process, nil
}

// makeExecutable lets the inner stage be executed by root without root's rights,
// who may not execute our own file when it is somebody else's.
func makeExecutable(program *supervise.Direct) error {
	var st unix.Stat_t
	if err := unix.Stat("/proc/self/exe", &st); err != nil {
		return fault.Wrap(fault.IsolationUnavailable, "cannot look at our own program", err)
	}
	if opens(&st) {
		return nil
	}
	content, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return fault.Wrap(fault.IsolationUnavailable, "cannot read our own program", err)
	}
	copied, err := supervise.Memory("tether", content)
	if err != nil {
		return fault.Wrap(fault.IsolationUnavailable, "cannot copy our own program to memory", err)
	}
	program.Files = append(program.Files, copied)
	program.Path = "/proc/self/fd/5" // after the control socket and the pipe
	return nil
}

// opens says whether a program can be executed, and read, by root without
// root's rights, whatever its groups. What cannot be read is closed to us, too,
// in /proc, once it is executed.
func opens(st *unix.Stat_t) bool {
	const readAndExecute = 0o5
	bits := st.Mode & (st.Mode >> 3) // others may, and those of them who are in the file's group
	if st.Uid == 0 {
		bits = st.Mode >> 6
	}
	return bits&readAndExecute == readAndExecute
}

// lastCap is CAP_CHECKPOINT_RESTORE, the last capability of Linux 6.x.
const lastCap = 40

func attributes(network enforce.Net) *syscall.SysProcAttr {
	flags := syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC |
		syscall.CLONE_NEWUTS
	if network != enforce.HostNet {
		flags |= syscall.CLONE_NEWNET
	}
	// Without these two package syscall copies our whole address space when there
	// is a user namespace, since it then writes the maps while the child waits.
	// We write them when the child has become another program.
	flags |= syscall.CLONE_VM | syscall.CLONE_VFORK
	attr := &syscall.SysProcAttr{Cloneflags: uintptr(flags), Pdeathsig: syscall.SIGKILL}
	// Whoever is not uid 0 of the new user namespace, and before there are maps
	// nobody is, loses its capabilities in exec unless they are ambient
	// (capabilities(7)).
	for c := uintptr(0); c <= lastCap; c++ {
		attr.AmbientCaps = append(attr.AmbientCaps, c)
	}
	return attr
}

// identify maps the ids of a new user namespace and tells its first process,
// which waits for it, what to become.
func identify(pid int, id plan.Identity, told *os.File) error {
	dir := fmt.Sprintf("/proc/%d/", pid)
	if !id.Root {
		// Without rights over the outer ids a group map is allowed only where
		// groups can no longer be dropped (user_namespaces(7)).
		if err := os.WriteFile(dir+"setgroups", []byte("deny"), 0); err != nil {
			return err
		}
	}
	if err := os.WriteFile(dir+"uid_map", fmt.Appendf(nil, "%d %d 1\n", id.UID, id.HostUID), 0); err != nil {
		return err
	}
	if err := os.WriteFile(dir+"gid_map", fmt.Appendf(nil, "%d %d 1\n", id.GID, id.HostGID), 0); err != nil {
		return err
	}
	_, err := told.Write(inner.Identity{Change: id.Root, UID: id.UID, GID: id.GID}.Encode())
	return err
}

// sendTrees passes the detached mounts that steps ask for, mapped by the user
// namespace of the inner stage.
func sendTrees(p *supervise.Process, id plan.Identity, steps []enforce.Step) error {
	var fds []int
	defer func() {
		for _, fd := range fds {
			unix.Close(fd)
		}
	}()
	userns := -1
	for i := range steps {
		s := &steps[i]
		if s.Tree == 0 {
			continue
		}
		if int(s.Tree) != len(fds)+1 {
			return fault.New(fault.Internal, "the steps number their trees out of order")
		}
		if userns < 0 {
			fd, err := unix.Open(fmt.Sprintf("/proc/%d/ns/user", p.PID()), unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				return refused("open the user namespace", err)
			}
			userns = fd
			defer unix.Close(fd)
		}
		fd, err := tree(s, userns, id.Idmapped)
		if err != nil {
			return err
		}
		fds = append(fds, fd)
	}
	if err := p.Pass(fds); err != nil {
		return refused("pass the mounts", err)
	}
	return nil
}

// tree returns a detached clone of a step's source, idmapped where the command
// runs under ids that own nothing.
func tree(s *enforce.Step, userns int, idmapped bool) (int, error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS}
	src, err := unix.Openat2(unix.AT_FDCWD, s.Src, &how)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return -1, fault.Wrap(fault.IsolationUnavailable, s.Src, fmt.Errorf("%w: %w", plan.ErrChanged, err))
	}
	if err != nil {
		return -1, fault.Wrap(fault.IsolationUnavailable, "cannot open "+s.Src, err)
	}
	defer unix.Close(src)
	var st unix.Stat_t
	if err := unix.Fstat(src, &st); err != nil {
		return -1, fault.Wrap(fault.IsolationUnavailable, "cannot open "+s.Src, err)
	}
	if s.Ino != 0 && (st.Dev != s.Dev || st.Ino != s.Ino) {
		return -1, fault.Wrap(fault.IsolationUnavailable, s.Src+" was replaced", plan.ErrChanged)
	}
	fd, err := unix.OpenTree(src, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH|unix.AT_RECURSIVE)
	if err != nil {
		return -1, fault.Wrap(fault.IsolationUnavailable, "cannot clone "+s.Src, err)
	}
	attr := unix.MountAttr{Propagation: unix.MS_PRIVATE}
	if idmapped {
		attr.Attr_set, attr.Userns_fd = unix.MOUNT_ATTR_IDMAP, uint64(userns)
	}
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr); err != nil {
		unix.Close(fd)
		return -1, fault.Wrap(fault.IsolationUnavailable, "cannot map the owner of "+s.Src+
			" (its file system does not support idmapped mounts)", err).
			WithHint("run tether as an ordinary user")
	}
	return fd, nil
}
