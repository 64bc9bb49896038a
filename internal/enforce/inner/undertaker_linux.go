package inner

import (
	"encoding/binary"
	"errors"
	"os"
	"runtime"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/internal/enforce/landlock"
)

// scopes is the first version of Landlock that keeps signals inside.
const scopes = 6

// undertaker is a process that ends, at one stroke, everything that the command
// started, where no process namespace does. Whoever goes through the tree and
// kills what it sees loses against processes that do nothing but make another
// and exit. The kernel's kill(2) of everybody does not: nothing is forked
// meanwhile. And "everybody" are those behind a wall of the undertaker's own,
// behind which the command's walls stand: the command cannot signal it. When the
// supervisor dies it does the same. The zero value is none.
type undertaker struct {
	mu   sync.Mutex
	pid  int
	bell *os.File // closing it, or dying, is the word
}

// hire puts a wall about signals round the calling thread, which must not be a
// program's first, and starts the undertaker behind it. What the thread starts
// from now on is the undertaker's to end. Kernels without such walls have none.
func (u *undertaker) hire() error {
	abi, err := landlock.ABI()
	if err != nil || abi < scopes {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	root, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(root)
	// A wall that does not look at files closes moves from folder to folder, where
	// another one does look at them (landlock(7), LANDLOCK_ACCESS_FS_REFER).
	all := []landlock.Path{{FD: root, Name: "/"}}
	if err := landlock.Restrict(landlock.Ruleset{Read: all, Exec: all, Write: all, Device: all, AnySocket: true, AnyTCP: true, AnyUDP: true, AnyAbstract: true}); err != nil {
		return err
	}
	theirs, bell, err := os.Pipe()
	if err != nil {
		return err
	}
	defer theirs.Close()
	heard, said, err := os.Pipe()
	if err != nil {
		bell.Close()
		return err
	}
	defer heard.Close()
	pid, err := syscall.ForkExec("/proc/self/exe", []string{Name, Undertaker}, &syscall.ProcAttr{Dir: "/", Env: []string{"GOGC=off"},
		Files: []uintptr{theirs.Fd(), said.Fd()}, Sys: &syscall.SysProcAttr{Setsid: true}})
	said.Close()
	if err == nil {
		// Whose child it is: typed by hand, it would end its caller's processes.
		_, err = bell.Write(binary.LittleEndian.AppendUint32(nil, uint32(os.Getpid())))
	}
	if err == nil {
		var b [1]byte
		if n, rerr := heard.Read(b[:]); n != 1 {
			err = errors.Join(errors.New("it did not begin"), rerr)
		}
	}
	if err != nil {
		bell.Close()
		return err
	}
	u.pid, u.bell = pid, bell
	return nil
}

// bury ends everything that was started since hire, once.
func (u *undertaker) bury() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.bell == nil {
		return
	}
	u.bell.Close()
	for {
		// Whoever waits for any child may have met it first.
		if _, err := unix.Wait4(u.pid, nil, 0, nil); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	u.pid, u.bell = 0, nil
}

// number is its process id, zero for none.
func (u *undertaker) number() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.pid
}

// is says whether a process is the undertaker.
func (u *undertaker) is(pid int) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return pid == u.pid
}

// undertake is what the undertaker does. It never returns.
func undertake() {
	runtime.LockOSThread()
	// Its supervisor has the same rights and stands outside: unless the wall is
	// there, nothing is killed.
	if unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) != nil || !errors.Is(unix.Kill(os.Getppid(), 0), unix.EPERM) {
		os.Exit(125)
	}
	var parent [4]byte
	if n, err := unix.Read(0, parent[:]); err != nil || n != len(parent) || int(binary.LittleEndian.Uint32(parent[:])) != os.Getppid() {
		os.Exit(125)
	}
	var b [1]byte
	if _, err := unix.Write(1, b[:]); err != nil {
		os.Exit(125)
	}
	unix.Close(1)
	for {
		// Without the runtime, which could want a thread when there is none to be had.
		_, _, errno := unix.RawSyscall(unix.SYS_READ, 0, uintptr(unsafe.Pointer(&b)), 1)
		if errno != unix.EINTR {
			break
		}
	}
	_ = unix.Kill(-1, unix.SIGKILL)
	os.Exit(0)
}
