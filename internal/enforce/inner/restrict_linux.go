package inner

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/internal/enforce"
)

// secureBits keep uid 0 inside from meaning anything, for good: NOROOT (bit 0),
// NO_SETUID_FIXUP (2) and NO_CAP_AMBIENT_RAISE (6), each with its lock bit
// (linux/securebits.h).
const secureBits = 1<<0 | 1<<1 | 1<<2 | 1<<3 | 1<<6 | 1<<7

// restrict takes everything away from the calling thread. Order matters: what
// needs a capability comes before the capabilities go, the filter comes last.
//
// The descriptor is the filter's listener, or negative.
func restrict(order *enforce.Order) (int, error) {
	// Nothing but 0, 1 and 2 crosses to the command, whatever was inherited.
	if err := unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return -1, &stage{"descriptors", err}
	}
	if err := joinKeyring(); err != nil {
		return -1, err
	}
	wall, done, err := planWall(order)
	defer done()
	if err != nil {
		return -1, &stage{"landlock", err}
	}
	if err := limit(&order.Limits); err != nil {
		return -1, err
	}
	if err := dropCapabilities(order.Build); err != nil {
		return -1, &stage{"capabilities", err}
	}
	if order.Build {
		if err := dropOthers(); err != nil {
			return -1, &stage{"capabilities of process 1", err}
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return -1, &stage{"no_new_privs", err}
	}
	return raiseWall(wall, order.Filter)
}

// joinKeyring leaves the caller's session keyring.
func joinKeyring() error {
	// A session keyring of its own: the caller's may hold keys. Kernels
	// without keyrings have none to leak.
	const joinSessionKeyring = 1 // KEYCTL_JOIN_SESSION_KEYRING, with no name
	if _, _, errno := unix.Syscall(unix.SYS_KEYCTL, joinSessionKeyring, 0, 0); errno != 0 && errno != unix.ENOSYS &&
		errno != unix.EPERM && errno != unix.EOPNOTSUPP {
		return &stage{"keyring", errno}
	}
	return nil
}

func dropCapabilities(native bool) error {
	if native {
		// In a namespace of ours we hold CAP_SETPCAP. Under bwrap the bounding
		// set is empty already, which the posture check confirms.
		if err := dropBounding(); err != nil {
			return err
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("ambient set: %w", err)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return unix.Capset(&header, &none[0])
}

// dropOthers takes the capabilities of every other thread of this process: what
// is mounted from now on is mounted from outside. In a program that is linked with
// C libraries not all threads are known; there, process 1 keeps them.
func dropOthers() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	_, _, errno := syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&none)), 0)
	if errno != 0 && errno != unix.ENOTSUP {
		return errno
	}
	return nil
}

// dropBounding keeps programs from ever bringing capabilities. It takes
// CAP_SETPCAP.
func dropBounding() error {
	if err := unix.Prctl(unix.PR_SET_SECUREBITS, secureBits, 0, 0, 0); err != nil {
		return fmt.Errorf("securebits: %w", err)
	}
	for c := uintptr(0); ; c++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if errors.Is(err, unix.EINVAL) {
			return nil // past the last capability
		}
		if err != nil {
			return fmt.Errorf("bounding set: %w", err)
		}
	}
}

// checkPosture refuses to go on when this thread, from which the command will
// be started, is not exactly as strict as it must be.
func checkPosture(order *enforce.Order) error {
	want := map[string]string{"CapInh": "0", "CapPrm": "0", "CapEff": "0", "CapBnd": "0", "CapAmb": "0",
		"NoNewPrivs": "1", "Seccomp": filtered}
	if err := checkStatus(want); err != nil {
		return err
	}
	if os.Getpid() != 1 {
		return errors.New("not process 1 of a process namespace")
	}
	return checkMounts(order)
}

// checkStatus compares what the kernel says of the calling thread.
func checkStatus(want map[string]string) error {
	status, err := os.ReadFile("/proc/thread-self/status")
	if err != nil {
		return err
	}
	for line := range strings.SplitSeq(string(status), "\n") {
		key, value, _ := strings.Cut(line, ":")
		w, ok := want[key]
		if !ok {
			continue
		}
		value = strings.TrimSpace(value)
		if strings.HasPrefix(key, "Cap") {
			if value = strings.TrimLeft(value, "0"); value == "" {
				value = "0"
			}
		}
		if value != w {
			return fmt.Errorf("%s is %s, must be %s", key, value, w)
		}
		delete(want, key)
	}
	for key := range want {
		return fmt.Errorf("%s is not to be seen in /proc", key)
	}
	return nil
}

// checkMounts compares the mounts that stand with those that were planned.
func checkMounts(order *enforce.Order) error {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	defer f.Close()
	there, err := readMounts(f)
	if err != nil {
		return err
	}
	absent, err := compare(there, order.Steps, order.Build)
	if err != nil {
		return err
	}
	for _, path := range absent {
		if canReach(path) || movedAway(path, there, order.Steps) {
			return fmt.Errorf("%w: the mount at %s is missing", errChanged, path)
		}
	}
	if order.Build {
		return nil // each was compared as it was mounted
	}
	return checkIdentities(order.Steps)
}

// movedAway says whether a file that had to be covered is not where it was, in a
// folder that is shown: then it is somewhere else there.
func movedAway(path string, there map[string]mount, steps []enforce.Step) bool {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != unix.ENOENT && err != unix.ENOTDIR {
		return false
	}
	planned, around := false, ""
	for i := range steps {
		s := &steps[i]
		planned = planned || s.Dst == path && s.Ino != 0
		if s.Do == enforce.Bind && strings.HasPrefix(path, s.Dst+"/") && len(s.Dst) > len(around) {
			around = s.Dst
		}
	}
	_, shown := there[around]
	return planned && shown
}

// checkIdentities compares what is shown at each place with what was planned to
// be. A launcher that takes paths may have been led elsewhere by a link that
// came into one of them meanwhile.
func checkIdentities(steps []enforce.Step) error {
	last := make(map[string]*enforce.Step, len(steps))
	for i := range steps {
		last[steps[i].Dst] = &steps[i]
	}
	for _, s := range last {
		if s.Ino == 0 || s.Do != enforce.Bind && s.Do != enforce.Self {
			continue
		}
		var st unix.Stat_t
		err := unix.Fstatat(unix.AT_FDCWD, s.Dst, &st, unix.AT_SYMLINK_NOFOLLOW)
		if errors.Is(err, unix.EACCES) || err == unix.ENOENT && s.Flags&(enforce.Gone|enforce.Optional) != 0 {
			continue // out of the command's reach: absent was judged above
		}
		if err != nil {
			return fmt.Errorf("%w: %s: %w", errChanged, s.Dst, err)
		}
		if st.Dev != s.Dev || st.Ino != s.Ino {
			return fmt.Errorf("%w: %s shows something else", errChanged, s.Dst)
		}
	}
	return nil
}

// canReach says whether path is there for the command, now or after it opened
// a folder of its own on the way.
func canReach(path string) bool {
	var st unix.Stat_t
	err := unix.Lstat(path, &st)
	for at := path; errors.Is(err, unix.EACCES) && at != "/"; {
		at = filepath.Dir(at)
		if err = unix.Lstat(at, &st); err != nil {
			continue
		}
		var fs unix.Statfs_t
		if err := unix.Statfs(at, &fs); err == nil && fs.Flags&unix.ST_RDONLY != 0 {
			return false // also what a masked folder is
		}
		return int(st.Uid) == unix.Geteuid()
	}
	return err == nil
}
