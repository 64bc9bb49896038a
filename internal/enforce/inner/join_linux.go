package inner

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// joiner lets a process of our own into the world of a sandbox that stands, from
// outside: it comes to lie in the namespaces that own the mounts, and in no other,
// so that nothing inside can name, signal or trace it. It never returns.
//
// Only a process of one thread may enter a user namespace, and a Go program has
// more. So a bare copy of this process, in which no line of the runtime runs, does
// it by a list of system calls, the last of which executes this program again.
// ours says that an inner stage built the world.
func joiner(ours bool) {
	runtime.LockOSThread() // the copy dies with the thread that made it
	err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	pid := 0
	if err == nil {
		pid, err = cross(ours)
	}
	if err != nil {
		send(failure(&stage{"join", err}))
		os.Exit(125)
	}
	// The other end of the socket is the copy's alone, and closed when that is gone.
	unix.Close(FDControl)
	for {
		if _, err := unix.Wait4(pid, nil, 0, nil); !errors.Is(err, unix.EINTR) {
			os.Exit(0)
		}
	}
}

// call is one system call of the copy's.
type call struct {
	name                        string
	number                      uintptr
	one, two, three, four, five uintptr
}

// cross makes the copy, and returns when it is another program.
func cross(ours bool) (int, error) {
	// Whatever our caller's caller left open goes no further.
	last := uint(FDSteps)
	if ours {
		last = FDKit
	}
	if err := unix.CloseRange(last+1, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return 0, err
	}
	id, err := identity()
	if err != nil {
		return 0, err
	}
	owner, err := unix.IoctlRetInt(FDWorld, unix.NS_GET_USERNS)
	if err != nil {
		return 0, fmt.Errorf("whose namespace it is: %w", err)
	}
	defer unix.Close(owner)
	if err := another(owner); err != nil {
		return 0, err
	}
	proc, err := unix.Open("/proc", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(proc)
	exe, err := program(id)
	if err != nil {
		return 0, fmt.Errorf("our own program: %w", err)
	}
	defer unix.Close(exe)
	heard, said, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer heard.Close()
	defer unix.Close(FDWorld)
	unix.CloseOnExec(FDWorld)

	var p runtime.Pinner // the list holds addresses, which keep nothing alive
	defer p.Unpin()
	calls := passage(id, ours, owner, proc, exe, &p)
	problem := new([2]uint32)
	p.Pin(problem)
	pid, errno := copyOf(calls, said.Fd(), problem)
	said.Close()
	if errno != 0 {
		return 0, fmt.Errorf("clone: %w", errno)
	}
	var b [8]byte
	if _, err := io.ReadFull(heard, b[:]); errors.Is(err, io.EOF) {
		return int(pid), nil // closed by executing the program
	} else if err != nil {
		return 0, err
	}
	n, errno := binary.NativeEndian.Uint32(b[:]), unix.Errno(binary.NativeEndian.Uint32(b[4:]))
	return 0, fmt.Errorf("%s: %w", calls[min(int(n), len(calls)-1)].name, errno)
}

// identity takes the packet that says which ids to take on.
func identity() (Identity, error) {
	var b [identitySize]byte
	for {
		n, err := unix.Read(FDControl, b[:])
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return Identity{}, err
		}
		if n == 0 {
			os.Exit(125)
		}
		return DecodeIdentity(b[:n])
	}
}

// another refuses a user namespace that is our own: whoever enters a world by
// that has rights over more than the world.
func another(owner int) error {
	var st, own unix.Stat_t
	if err := unix.Fstat(owner, &st); err != nil {
		return err
	}
	if err := unix.Stat("/proc/self/ns/user", &own); err != nil {
		return err
	}
	if st.Ino == own.Ino && st.Dev == own.Dev {
		return errors.New("the world has no user namespace of its own")
	}
	return nil
}

// program opens this program, for ids that may not be able to execute it.
func program(id Identity) (int, error) {
	fd, err := unix.Open("/proc/self/exe", unix.O_PATH|unix.O_CLOEXEC, 0)
	var st unix.Stat_t
	if err == nil {
		err = unix.Fstat(fd, &st)
	}
	const readAndExecute = 0o5
	if err != nil || !id.Change || st.Mode&(st.Mode>>3)&readAndExecute == readAndExecute {
		return fd, err
	}
	unix.Close(fd)
	content, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return -1, err
	}
	if fd, err = unix.MemfdCreate("tether", unix.MFD_CLOEXEC); err != nil {
		return -1, err
	}
	for len(content) > 0 {
		n, err := unix.Write(fd, content)
		if err != nil {
			return -1, err
		}
		content = content[n:]
	}
	// What is open for writing cannot be executed.
	defer unix.Close(fd)
	return unix.Open(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_PATH|unix.O_CLOEXEC, 0)
}

// keeps are the rights of a joiner: to mount, and to look into folders that the
// command closed. Both mean something in the sandbox's namespace alone.
const keeps = 1<<unix.CAP_SYS_ADMIN | 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_DAC_READ_SEARCH

// passage lists what the copy does.
func passage(id Identity, ours bool, owner, proc, exe int, p *runtime.Pinner) []call {
	address := func(b []byte) uintptr {
		p.Pin(&b[0])
		return uintptr(unsafe.Pointer(&b[0]))
	}
	var calls []call
	add := func(name string, number uintptr, args ...uintptr) {
		var a [5]uintptr
		copy(a[:], args)
		calls = append(calls, call{name, number, a[0], a[1], a[2], a[3], a[4]})
	}
	// No more than the command's own ids reach what is below the world's mounts.
	take := func() {
		if id.Change {
			add("setgroups", unix.SYS_SETGROUPS)
			add("setresgid", unix.SYS_SETRESGID, uintptr(id.GID), uintptr(id.GID), uintptr(id.GID))
			add("setresuid", unix.SYS_SETRESUID, uintptr(id.UID), uintptr(id.UID), uintptr(id.UID))
		}
	}
	// A launcher's user namespace belongs to these ids, one of ours to us.
	if !ours {
		take()
	}
	add("enter the user namespace", unix.SYS_SETNS, uintptr(owner), unix.CLONE_NEWUSER)
	add("enter the mount namespace", unix.SYS_SETNS, FDWorld, unix.CLONE_NEWNS)
	// Mounts are made by path, and inside there is none to our own descriptors.
	add("fchdir", unix.SYS_FCHDIR, uintptr(proc))
	add("chdir", unix.SYS_CHDIR, address([]byte("self/fd\x00")))
	// Being uid 0 gives nothing, and nothing is ever gained again.
	add("securebits", unix.SYS_PRCTL, unix.PR_SET_SECUREBITS, secureBits&^(1<<6|1<<7))
	if ours {
		take()
	}
	header := &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	data := &[2]unix.CapUserData{{Effective: keeps, Permitted: keeps, Inheritable: keeps}}
	p.Pin(header)
	p.Pin(data)
	add("capset", unix.SYS_CAPSET, uintptr(unsafe.Pointer(header)), uintptr(unsafe.Pointer(data)))
	for c := range uintptr(32) {
		if keeps&(1<<c) != 0 {
			add("ambient", unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, c)
		}
	}
	add("no_new_privs", unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1)
	add("parent-death signal", unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL))
	word := Joined
	if ours {
		word = OurJoined
	}
	argv := &[3]uintptr{address([]byte(Name + "\x00")), address([]byte(word + "\x00"))}
	envp := new([1]uintptr)
	p.Pin(argv)
	p.Pin(envp)
	add("execute our own program", unix.SYS_EXECVEAT, uintptr(exe), address([]byte{0}), uintptr(unsafe.Pointer(argv)),
		uintptr(unsafe.Pointer(envp)), unix.AT_EMPTY_PATH)
	return calls
}

// copyOf makes a copy of this process that makes the calls, one after the other.
// At the first that fails it says which and why, and ends. In the copy there is
// one thread and no runtime: nothing but system calls.
//
//go:nosplit
//go:norace
//go:noinline
func copyOf(calls []call, said uintptr, problem *[2]uint32) (uintptr, unix.Errno) {
	pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 || pid != 0 {
		return pid, errno
	}
	for i := range calls {
		c := &calls[i]
		if _, _, errno = unix.RawSyscall6(c.number, c.one, c.two, c.three, c.four, c.five, 0); errno != 0 {
			problem[0], problem[1] = uint32(i), uint32(errno)
			break
		}
	}
	_, _, _ = unix.RawSyscall(unix.SYS_WRITE, said, uintptr(unsafe.Pointer(problem)), 8)
	for {
		_, _, _ = unix.RawSyscall(unix.SYS_EXIT_GROUP, 125, 0, 0)
	}
}
