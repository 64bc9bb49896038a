package inner

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/enforce/landlock"
	"github.com/tether-sandbox/tether/internal/enforce/seccomp"
)

// saidError is a failure that a launcher has put into words.
type saidError struct{ Message }

func (e *saidError) Error() string { return e.What }

// startLauncher starts the process that becomes the command, and waits until it
// has. The supervisor stays outside of the walls, so that nothing inside can
// signal or trace it: a thread of its own inside could be killed, and the whole
// of it with that. The launcher dies with the calling thread.
func startLauncher(order *enforce.Order, u *undertaker) (int, error) {
	if err := u.hire(); err != nil {
		return 0, &stage{"undertaker", err}
	}
	file, err := unix.MemfdCreate("tether-order", unix.MFD_CLOEXEC)
	if err != nil {
		return 0, &stage{"order", err}
	}
	defer unix.Close(file)
	if _, err := unix.Write(file, order.Encode()); err != nil {
		return 0, &stage{"order", err}
	}
	heard, said, err := os.Pipe()
	if err != nil {
		return 0, &stage{"launcher", err}
	}
	defer heard.Close()
	if order.Walls.Change {
		for fd := range 3 {
			if err := own(fd, order.Walls); err != nil {
				return 0, &stage{"descriptors", err}
			}
		}
	}
	attr := &syscall.ProcAttr{Env: []string{"GOGC=off"}, Files: []uintptr{0, 1, 2, uintptr(file), said.Fd()},
		Sys: &syscall.SysProcAttr{Setsid: true, Setctty: order.Terminal, Ctty: 0, Pdeathsig: syscall.SIGKILL}}
	pid, err := syscall.ForkExec("/proc/self/exe", []string{Name, Launcher}, attr)
	said.Close()
	if err != nil {
		return 0, &stage{"launcher", err}
	}
	b, err := io.ReadAll(io.LimitReader(heard, MaxMessage))
	if err == nil && len(b) == 0 {
		return pid, nil
	}
	m, derr := DecodeMessage(b)
	if err := errors.Join(err, derr); err != nil {
		return 0, &stage{"launcher", err}
	}
	return 0, &saidError{m}
}

// own makes a pipe or terminal the command's, so that it may open it again, as
// /dev/stdin. Those were made for it; what is neither is the host's own
// /dev/null, which must stay root's.
func own(fd int, w *enforce.WallsOrder) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFIFO {
		if _, err := unix.IoctlGetTermios(fd, unix.TCGETS); err != nil {
			return nil
		}
	}
	return unix.Fchown(fd, int(w.UID), int(w.GID))
}

// launcher puts walls round itself and becomes the command. It never returns.
func launcher() {
	runtime.LockOSThread()
	err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	unix.CloseOnExec(FDSaid)
	if err == nil {
		err = becomeCommand()
	}
	m := failure(err)
	_, _ = unix.Write(FDSaid, m.Encode())
	os.Exit(125)
}

func becomeCommand() error {
	f := os.NewFile(FDOrder, "order")
	raw, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<30))
	f.Close()
	if err != nil {
		return &stage{"order", err}
	}
	order, err := enforce.DecodeOrder(raw)
	if err != nil || order.Walls == nil {
		return &stage{"order", errors.New("an order for another kind of inner stage")}
	}
	spread(order.CPUs)
	if err := wallIn(order); err != nil {
		return err
	}
	path, err := lookPath(order.Argv[0], order.Env)
	if err == nil {
		err = syscall.Exec(path, order.Argv, order.Env)
	}
	if errors.Is(err, syscall.ENOEXEC) {
		err = syscall.Exec(shell, byShell(path, order.Argv), order.Env)
	}
	return &execError{order.Argv[0], err}
}

// wallIn takes everything away from the calling thread, and refuses to go on
// unless it is then as strict as it must be.
func wallIn(order *enforce.Order) error {
	files, err := manyFiles()
	if err != nil {
		return &stage{"descriptors", err}
	}
	rules, err := ruleset(order)
	if err != nil {
		return err
	}
	abi, err := landlock.ABI()
	if err != nil {
		return &stage{"landlock", err}
	}
	// What this kernel lacks was told by the grades.
	rules, _ = rules.Downgrade(abi)
	if order.Walls.Gate != 0 && rules.AnyTCP {
		return &stage{"landlock", errors.New("this kernel cannot hold TCP to the gate's port")}
	}
	if err := joinKeyring(); err != nil {
		return err
	}
	bounded, err := takeIDs(order.Walls)
	if err != nil {
		return &stage{"ids", err}
	}
	if err := dropCapabilities(false); err != nil {
		return &stage{"capabilities", err}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return &stage{"no_new_privs", err}
	}
	if order.Walls.Closed != "" {
		if err := opens(order.Walls.Closed); err != nil {
			return &stage{"walls", fmt.Errorf("the file that must turn out closed cannot be opened before: %w", err)}
		}
	}
	if err := landlock.Restrict(rules); err != nil {
		return &stage{"landlock", err}
	}
	if err := unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return &stage{"descriptors", err}
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		return &stage{"descriptors", err}
	}
	if err := seccomp.Load(order.Filter); err != nil {
		return &stage{"seccomp", err}
	}
	if err := checkWalls(order, bounded); err != nil {
		return &stage{"posture", err}
	}
	// Only now: the descriptors that the rules are about are still open.
	// They share the user's count of processes: all that is known of the command's
	// own, its supervisor watches.
	bounds := order.Limits
	bounds.Processes = 0
	return limit(&bounds)
}

// manyFiles lets rules be about more files than the caller has open, and returns
// the limit to go back to.
func manyFiles() (unix.Rlimit, error) {
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &own); err != nil {
		return own, err
	}
	return own, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: own.Max, Max: own.Max})
}

// ruleset opens what the steps allow. What lies there must be what was planned.
func ruleset(order *enforce.Order) (landlock.Ruleset, error) {
	r := landlock.Ruleset{AnyTCP: order.Walls.AnyTCP, AnyUDP: order.Walls.AnyTCP}
	if order.Walls.Gate != 0 {
		r.Connect = []uint16{order.Walls.Gate}
	}
	for i := range order.Steps {
		s := &order.Steps[i]
		if s.Do == enforce.MaskFile || s.Do == enforce.MaskDir {
			continue // no rule; see checkHidden
		}
		if s.Do != enforce.Allow {
			return r, &stepError{step: s, what: "allow", err: errors.New("not a step for walls")}
		}
		fd, err := unix.Openat2(unix.AT_FDCWD, s.Dst, &unix.OpenHow{Flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC,
			Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS})
		var st unix.Stat_t
		if err == nil {
			err = unix.Fstat(fd, &st)
		}
		gone := err == unix.ENOENT || err == unix.ENOTDIR || err == unix.ELOOP
		switch {
		case err != nil && s.Flags&(enforce.Gone|enforce.Optional) != 0:
			continue // one rule less
		case gone, err == nil && s.Ino != 0 && (st.Dev != s.Dev || st.Ino != s.Ino):
			return r, &stepError{step: s, what: "open", err: fmt.Errorf("%w: it is not what it was", errChanged)}
		case err != nil:
			return r, &stepError{step: s, what: "open", err: err}
		}
		p := landlock.Path{FD: fd, Name: s.Dst}
		if s.Flags&enforce.Listing != 0 {
			r.List = append(r.List, p)
			continue
		}
		r.Read = append(r.Read, p)
		if s.Flags&enforce.NoExec == 0 {
			r.Exec = append(r.Exec, p)
		}
		if s.Flags&enforce.ReadOnly == 0 {
			r.Write = append(r.Write, p)
		}
		if s.Flags&enforce.AllowDevices != 0 {
			r.Device = append(r.Device, p)
		}
	}
	if order.Terminal {
		// The command's own, and none of the user's others.
		own := landlock.Path{FD: 0, Name: "the terminal"}
		r.Read, r.Write, r.Device = append(r.Read, own), append(r.Write, own), append(r.Device, own)
	}
	return r, nil
}

// takeIDs takes on the command's ids, and says whether the bounding set could be
// emptied. Whoever is not root cannot do that; no_new_privs makes it mean nothing.
func takeIDs(w *enforce.WallsOrder) (bounded bool, err error) {
	err = dropBounding()
	bounded = err == nil
	if err != nil && !errors.Is(err, unix.EPERM) {
		return false, err
	}
	if !w.Change {
		return bounded, nil
	}
	// Every thread's, by the library; they all become the command or nothing.
	if err := syscall.Setgroups(nil); err != nil {
		return false, err
	}
	if err := syscall.Setresgid(int(w.GID), int(w.GID), int(w.GID)); err != nil {
		return false, err
	}
	if err := syscall.Setresuid(int(w.UID), int(w.UID), int(w.UID)); err != nil {
		return false, err
	}
	// A change of ids clears it (prctl(2)).
	return bounded, unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0)
}

// checkWalls refuses to go on when this thread is not as strict as it must be,
// or a file that no rule opens can be opened.
func checkWalls(order *enforce.Order, bounded bool) error {
	want := map[string]string{"CapInh": "0", "CapPrm": "0", "CapEff": "0", "CapAmb": "0", "NoNewPrivs": "1", "Seccomp": "2"}
	if bounded {
		want["CapBnd"] = "0"
	}
	if err := checkStatus(want); err != nil {
		return err
	}
	if w := order.Walls; w.Change && (os.Getuid() != int(w.UID) || os.Geteuid() != int(w.UID) || os.Getgid() != int(w.GID)) {
		return errors.New("the ids are not the command's")
	}
	if order.Walls.Closed == "" {
		return errors.New("there is no file that must turn out closed")
	}
	if err := opens(order.Walls.Closed); !errors.Is(err, unix.EACCES) {
		return fmt.Errorf("the walls do not stand: opening what no rule opens says %v", err)
	}
	if err := checkHidden(order); err != nil {
		return err
	}
	if order.Walls.Gate != 0 {
		return checkPort()
	}
	return nil
}

// checkHidden makes sure that what must stay closed is where it was, where it
// turns out to be closed. Walls go by where a file lies: somewhere else it could
// have come under a rule.
func checkHidden(order *enforce.Order) error {
	times := 1
	if order.Wary {
		times = looks
	}
	for ; ; time.Sleep(time.Duration(rand.Int64N(int64(3 * time.Millisecond)))) {
		for i := range order.Steps {
			if s := &order.Steps[i]; s.Do != enforce.Allow {
				if err := hidden(s); err != nil {
					return err
				}
			}
		}
		if times--; times == 0 {
			return nil
		}
	}
}

func hidden(s *enforce.Step) error {
	if err := opens(s.Dst); s.Do == enforce.MaskFile && !errors.Is(err, unix.EACCES) {
		return fmt.Errorf("%w: opening %s, which must be closed, says %v", errChanged, s.Dst, err)
	}
	var st unix.Stat_t
	err := unix.Lstat(s.Dst, &st)
	if errors.Is(err, unix.EACCES) || s.Ino == 0 {
		return nil // a folder on the way is closed to the command's ids
	}
	if err != nil || st.Dev != s.Dev || st.Ino != s.Ino {
		return fmt.Errorf("%w: %s is not what it was: %v", errChanged, s.Dst, err)
	}
	return nil
}

// checkPort tries what the walls refuse before a packet is sent: a connection to
// another port than the gate's, and a port of one's own.
func checkPort() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("no way to the gate: %w", err)
	}
	defer unix.Close(fd)
	const never = 1 // no gate has a port below 1024
	at := &unix.SockaddrInet4{Port: never, Addr: [4]byte{127, 0, 0, 1}}
	if err := unix.Connect(fd, at); !errors.Is(err, unix.EACCES) {
		return fmt.Errorf("the walls do not stand: connecting past the gate says %v", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: at.Addr}); !errors.Is(err, unix.EACCES) {
		return fmt.Errorf("the walls do not stand: taking a port says %v", err)
	}
	return nil
}

func opens(path string) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err == nil {
		unix.Close(fd)
	}
	return err
}
