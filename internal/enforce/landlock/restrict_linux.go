package landlock

import (
	"errors"
	"fmt"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/fault"
)

// ABI returns the version of Landlock in the running kernel, 1 or higher. The
// error is SANDBOX_UNAVAILABLE and says whether the kernel lacks Landlock or
// was started without it; the version is then 0.
func ABI() (int, error) {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	switch {
	case errno == 0:
		return int(v), nil
	case errors.Is(errno, unix.ENOSYS):
		return 0, fault.Wrap(fault.SandboxUnavailable, "this kernel is built without Landlock", errno)
	case errors.Is(errno, unix.EOPNOTSUPP):
		return 0, fault.Wrap(fault.SandboxUnavailable, "this kernel was started without Landlock", errno)
	}
	return 0, fault.Wrap(fault.SandboxUnavailable, "cannot ask for Landlock", errno)
}

// The kernel's structs; newer kernels have longer ones and take the rest as 0.
type (
	rulesetAttr struct{ fs, net, scoped uint64 }
	pathAttr    struct {
		access uint64
		fd     int32
	}
	portAttr struct{ access, port uint64 }
)

const (
	rulePath = 1
	rulePort = 2
)

// Restrict puts r in force for the calling thread and whatever it starts, for
// good. The caller has locked the goroutine to its thread and set
// no_new_privs, without which Restrict refuses; it should exec soon, because a
// Go program with walls round one of its threads only is hard to reason about
// (on kernels before 6.15 threads of one process could not signal each other
// across such a wall).
//
// Rulesets add up: nothing that is loaded later opens what r closes. The
// kernel takes 16 of them, one upon another.
//
// Errors: SANDBOX_UNAVAILABLE if the kernel lacks Landlock or something that r
// asks for (see [Ruleset.Downgrade]), ISOLATION_UNAVAILABLE if it refuses,
// INTERNAL for a ruleset that restricts nothing. After an error nothing is in
// force.
func Restrict(r Ruleset) error {
	if r.Empty() {
		return fault.New(fault.Internal, "a Landlock ruleset that restricts nothing")
	}
	abi, err := ABI()
	if err != nil {
		return err
	}
	if _, missing := r.Downgrade(abi); len(missing) > 0 {
		words := make([]string, len(missing))
		for i, m := range missing {
			words[i] = m.String()
		}
		return fault.New(fault.SandboxUnavailable, strings.Join(words, "; "))
	}
	nnp, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	if err != nil {
		return fault.Wrap(fault.IsolationUnavailable, "cannot read no_new_privs", err)
	}
	if nnp != 1 {
		return fault.New(fault.Internal, "Landlock before no_new_privs")
	}
	w := r.walls()
	attr := rulesetAttr(w)
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return fault.Wrap(fault.IsolationUnavailable, "the kernel refused a Landlock ruleset", errno)
	}
	defer unix.Close(int(fd))
	if err := fill(int(fd), &r); err != nil {
		return fault.Wrap(fault.IsolationUnavailable, "the kernel refused a Landlock rule", err)
	}
	// One thread, as promised: the runtime must not be asked to help.
	if _, _, errno := unix.RawSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); errno != 0 {
		return fault.Wrap(fault.IsolationUnavailable, "the kernel refused to enforce Landlock", errno)
	}
	return nil
}

// fill adds r's rules to the ruleset fd.
func fill(fd int, r *Ruleset) error {
	for _, o := range r.openings() {
		if err := addPath(fd, o); err != nil {
			return fmt.Errorf("%s: %w", o.path.Name, err)
		}
	}
	for _, p := range r.ports() {
		attr := portAttr{p.access, uint64(p.number)}
		if err := addRule(fd, rulePort, unsafe.Pointer(&attr)); err != nil {
			return fmt.Errorf("port %d: %w", p.number, err)
		}
	}
	return nil
}

func addPath(fd int, o opening) error {
	var st unix.Stat_t
	if err := unix.Fstat(o.path.FD, &st); err != nil {
		return err
	}
	access := o.access
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		access &= fsOfFile
	}
	if access == 0 {
		return nil // such as ioctl where the kernel does not know of it
	}
	attr := pathAttr{access, int32(o.path.FD)}
	return addRule(fd, rulePath, unsafe.Pointer(&attr))
}

func addRule(fd, kind int, attr unsafe.Pointer) error {
	if _, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(fd), uintptr(kind), uintptr(attr), 0, 0, 0); errno != 0 {
		return errno
	}
	return nil
}
