package enforcetest

import (
	"errors"
	"os"
	"os/exec"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/policy"
)

func ipcAttacks() []Attack {
	const g = "ipc"
	plain := func(name string, f func(s *Scene) error) Attack { return Attack{Name: name, Guarantee: g, Try: f} }
	optional := func(a Attack) Attack { a.Optional = true; return a }
	abstract := func(s *Scene) error { return s.asksUnix("@" + s.Abstract) }
	signal := func(s *Scene) error {
		return anyOf(unix.Kill(s.Victim, 0), unix.Kill(s.Supervisor, 0))
	}
	return []Attack{
		plain("an abstract socket", abstract),
		{Name: "with the host's network: an abstract socket", Guarantee: g, Under: Open, Grade: policy.Partial, Try: abstract},
		{Name: "with the host's network: a signal", Guarantee: g, Under: Open, Try: signal},
		plain("a socket in the workspace", func(s *Scene) error { return s.asksUnix(s.Sockets[0]) }),
		plain("a socket outside", func(s *Scene) error { return s.asksUnix(s.Sockets[1]) }),
		plain("a socket by a link in the workspace", func(s *Scene) error {
			link := s.in("sock")
			defer os.Remove(link)
			return then(os.Symlink(s.Sockets[1], link), func() error { return s.asksUnix(link) })
		}),
		{Name: "a socket of a service in /run", Guarantee: g, Root: true, Try: func(s *Scene) error {
			if len(s.Sockets) < 3 {
				return errors.New("no such socket")
			}
			return anyOf(s.asksUnix(s.Sockets[2]), s.asksUnix("/var"+s.Sockets[2]))
		}},
		optional(plain("shared memory of System V", func(s *Scene) error {
			id, _, errno := unix.RawSyscall(unix.SYS_SHMGET, uintptr(s.Shm), 0, 0)
			if errno != 0 {
				return errno
			}
			at, err := unix.SysvShmAttach(int(id), 0, unix.SHM_RDONLY)
			if err != nil {
				return err
			}
			defer func() { _ = unix.SysvShmDetach(at) }()
			if string(at[:len(s.Secret)]) != s.Secret {
				return errNothing
			}
			return nil
		})),
		optional(plain("a message queue", func(s *Scene) error {
			name, err := unix.BytePtrFromString(s.Queue)
			if err != nil || s.Queue == "" {
				return errors.New("there is none")
			}
			return call(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(name)), unix.O_RDWR|unix.O_CLOEXEC, 0, 0)
		})),
		plain("a file of shared memory", func(s *Scene) error { return s.shows(s.ShmFile) }),
		optional(plain("a key of the user", func(s *Scene) error {
			if s.Key == "" {
				return errors.New("there is none")
			}
			id, err := unix.KeyctlSearch(unix.KEY_SPEC_USER_KEYRING, "user", s.Key, 0)
			if err != nil {
				return err
			}
			buf := make([]byte, 64)
			n, err := unix.KeyctlBuffer(unix.KEYCTL_READ, id, buf, 0)
			if err != nil || string(buf[:min(n, len(buf))]) != s.Secret {
				return or(err, errNothing)
			}
			return nil
		})),
		plain("a terminal of the host", func(s *Scene) error {
			var there unix.Stat_t
			if err := unix.Stat(s.Pty, &there); err != nil {
				return err
			}
			return opens(s.Pty, unix.O_RDWR)
		}),
	}
}

// asksUnix is nil when who listens on a socket tells the secret.
func (s *Scene) asksUnix(path string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	wait := unix.NsecToTimeval(patience.Nanoseconds())
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait)
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		return err
	}
	_, _ = unix.Write(fd, []byte("?\n"))
	buf := make([]byte, 64)
	n, err := unix.Read(fd, buf)
	if n <= 0 || string(buf[:n]) != s.Secret {
		return or(err, errNothing)
	}
	return nil
}

// TooMany is the last attack under Limited: a provider may end the call for it.
const TooMany = "twice as many processes as allowed"

func limitAttacks() []Attack {
	const g = "limits"
	limited := func(name string, f func(s *Scene) error) Attack {
		return Attack{Name: name, Guarantee: g, Under: Limited, Try: f}
	}
	file := func(name, where string, f func(*os.File, int64) error) Attack {
		return limited(name, func(s *Scene) error {
			if where == "" {
				where = s.Workspace
			}
			f1, err := os.CreateTemp(where, "enforcetest-big-")
			if err != nil {
				return err
			}
			defer os.Remove(f1.Name())
			defer f1.Close()
			return f(f1, s.FileBytes+1)
		})
	}
	fill := func(f *os.File, n int64) error { _, err := f.Write(make([]byte, n)); return err }
	return []Attack{
		file("a file larger than allowed, in the workspace", "", fill),
		file("a file larger than allowed, in /tmp", "/tmp", fill),
		file("a file larger than allowed, in memory", "/dev/shm", fill),
		file("a file larger than allowed, by its length", "", func(f *os.File, n int64) error { return f.Truncate(n) }),
		file("a file larger than allowed, by reservation", "", func(f *os.File, n int64) error { return unix.Fallocate(int(f.Fd()), 0, 0, n) }),
		limited("a limit lifted again", func(s *Scene) error {
			all := []error{}
			for _, which := range []int{unix.RLIMIT_FSIZE, unix.RLIMIT_NPROC} {
				var was unix.Rlimit
				if err := unix.Getrlimit(which, &was); err != nil {
					return err
				}
				more := unix.Rlimit{Cur: 1 << 40, Max: 1 << 40}
				err := unix.Setrlimit(which, &more)
				_ = unix.Setrlimit(which, &was)
				all = append(all, err)
			}
			return anyOf(all...)
		}),
		// The last, since it may be the end of the call.
		limited(TooMany, func(s *Scene) error {
			var all []*exec.Cmd
			defer func() {
				for _, c := range all {
					_ = c.Process.Kill()
					_ = c.Wait()
				}
			}()
			for range 2 * s.Processes { // threads of our own count, too

				c := exec.Command("sleep", "60")
				if err := c.Start(); err != nil {
					return err
				}
				all = append(all, c)
			}
			time.Sleep(500 * time.Millisecond) // where they are looked at, that is not at once
			for _, c := range all {
				if err := c.Process.Signal(unix.Signal(0)); err != nil {
					return err
				}
			}
			return nil
		}),
	}
}
