package enforcetest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// Attacks are all that there are, by guarantee.
func Attacks() []Attack {
	return slices.Concat(readAttacks(), writeAttacks(), secretAttacks(), lateAttacks(), networkAttacks(), processAttacks(), ipcAttacks(),
		limitAttacks(), lifecycleAttacks())
}

// errNothing says that a step worked and gave nothing.
var errNothing = errors.New("it did not show the secret")

// shows is nil when the file at path can be read and has the secret. It never
// waits.
func (s *Scene) shows(path string) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return s.tells(fd)
}

// tells is nil when the secret is in what fd holds, and closes it.
func (s *Scene) tells(fd int) error {
	defer unix.Close(fd)
	buf := make([]byte, 64<<10)
	for n := 0; n < len(buf); {
		m, err := unix.Read(fd, buf[n:])
		if m <= 0 || err != nil {
			return or(err, errNothing)
		}
		if n += m; bytes.Contains(buf[:n], []byte(s.Secret)) {
			return nil
		}
	}
	return errNothing
}

func or(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}

// any is nil as soon as one step is.
func anyOf(steps ...error) error {
	var all error
	for _, err := range steps {
		if err == nil {
			return nil
		}
		all = errors.Join(all, err)
	}
	return all
}

// opens is nil when path can be opened; nothing is written.
func opens(path string, flags int) error {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return unix.Close(fd)
}

// call is nil when a system call succeeds; what it opened stays open.
func call(nr uintptr, args ...uintptr) error {
	var a [6]uintptr
	copy(a[:], args)
	if _, _, errno := unix.RawSyscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5]); errno != 0 {
		return errno
	}
	return nil
}

func (s *Scene) in(name string) string      { return filepath.Join(s.Workspace, name) }
func (s *Scene) outside(name string) string { return filepath.Join(s.Outside, name) }

// handed listens where a host's program connects to and hands in two folders of
// its own view, the one outside and the one that is read-only.
func (s *Scene) handed(f func(outside, readOnly int) error) error {
	l, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(l)
	path := s.in(Handover)
	defer os.Remove(path)
	if err := unix.Bind(l, &unix.SockaddrUnix{Name: path}); err != nil {
		return err
	}
	if err := unix.Chmod(path, 0o777); err != nil {
		return err
	}
	if err := unix.Listen(l, 1); err != nil {
		return err
	}
	wait := unix.NsecToTimeval(patience.Nanoseconds())
	_ = unix.SetsockoptTimeval(l, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait)
	c, _, err := unix.Accept4(l, unix.SOCK_CLOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(c)
	_ = unix.SetsockoptTimeval(c, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait)
	oob := make([]byte, unix.CmsgSpace(8))
	_, n, _, _, err := unix.Recvmsg(c, make([]byte, 1), oob, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return err
	}
	msgs, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil || len(msgs) != 1 {
		return or(err, errNothing)
	}
	fds, err := unix.ParseUnixRights(&msgs[0])
	if err != nil || len(fds) != 2 {
		return or(err, errNothing)
	}
	defer unix.Close(fds[0])
	defer unix.Close(fds[1])
	return f(fds[0], fds[1])
}

// targets are processes of others: without a sandbox the victim alone, inside
// also those that only a hole would reach.
func (s *Scene) targets() []int {
	if s.Control {
		return []int{s.Victim}
	}
	return []int{s.Victim, s.Supervisor, 1}
}

// each is nil when f is for one of the targets.
func (s *Scene) each(f func(pid int) error) error {
	var all []error
	for _, pid := range s.targets() {
		all = append(all, f(pid))
	}
	return anyOf(all...)
}

func of(pid int, name string) string { return "/proc/" + strconv.Itoa(pid) + "/" + name }

func readAttacks() []Attack {
	const g = "read"
	reads := func(name string, path func(*Scene) string) Attack {
		return Attack{Name: name, Guarantee: g, Try: func(s *Scene) error { return s.shows(path(s)) }}
	}
	root := func(a Attack) Attack { a.Root = true; return a }
	optional := func(a Attack) Attack { a.Optional = true; return a }
	return []Attack{
		reads("a file outside by its path", func(s *Scene) string { return s.outside("secret") }),
		reads("a file outside by way of ..", func(s *Scene) string { return "../out/secret" }),
		{Name: "a file outside by a folder that the host hands in", Guarantee: g, Try: func(s *Scene) error {
			return s.handed(func(outside, _ int) error {
				fd, err := unix.Openat(outside, "secret", unix.O_RDONLY|unix.O_CLOEXEC, 0)
				if err != nil {
					return err
				}
				return s.tells(fd)
			})
		}},
		reads("a file in the home", func(s *Scene) string { return s.Home }),
		{Name: "a link in the workspace to a file outside", Guarantee: g, Try: func(s *Scene) error {
			link := s.in("link-out")
			defer os.Remove(link)
			if err := os.Symlink(s.outside("secret"), link); err != nil {
				return err
			}
			return s.shows(link)
		}},
		{Name: "the root of another process", Guarantee: g, Try: func(s *Scene) error {
			return s.each(func(pid int) error { return s.shows(of(pid, "root") + s.outside("secret")) })
		}},
		{Name: "the working folder of another process", Guarantee: g, Try: func(s *Scene) error {
			return s.each(func(pid int) error { return s.shows(of(pid, "cwd/secret")) })
		}},
		{Name: "an open file of another process", Guarantee: g, Try: func(s *Scene) error {
			return s.each(func(pid int) error {
				var all []error
				for fd := range 16 {
					all = append(all, s.shows(of(pid, "fd/"+strconv.Itoa(fd))))
				}
				return anyOf(all...)
			})
		}},
		{Name: "a descriptor that the caller left open", Guarantee: g, Try: func(s *Scene) error {
			var all []error
			for fd := range 256 {
				if file, err := unix.Openat(fd, "secret", unix.O_RDONLY|unix.O_CLOEXEC, 0); err == nil {
					all = append(all, s.tells(file))
				}
			}
			return anyOf(append(all, errNothing)...)
		}},
		{Name: "a program from a memory file", Guarantee: g, Alone: true, Try: func(s *Scene) error {
			return fromMemory(s)
		}},
		root(Attack{Name: "the passwords of the accounts", Guarantee: g, Try: func(*Scene) error { return opens("/etc/shadow", unix.O_RDONLY) }}),
		root(Attack{Name: "a file handle made outside", Guarantee: g, Try: func(s *Scene) error { return byHandle(s, s.Handle) }}),
		root(Attack{Name: "a folder held across chroot", Guarantee: g, Alone: true, Try: func(s *Scene) error {
			up, err := unix.Open("..", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
			if err != nil {
				return err
			}
			if err := unix.Chroot("."); err != nil {
				return err
			}
			f, err := unix.Openat(up, "out/secret", unix.O_RDONLY, 0)
			if err != nil {
				return err
			}
			return s.tells(f)
		}}),
		root(Attack{Name: "a device file of the disk, made in the workspace", Guarantee: g, Optional: true, Try: func(s *Scene) error {
			if s.Disk == 0 {
				return errors.New("no disk")
			}
			node := s.in("disk")
			defer os.Remove(node)
			if err := unix.Mknod(node, unix.S_IFBLK|0o600, int(s.Disk)); err != nil {
				return err
			}
			return opens(node, unix.O_RDONLY)
		}}),
		root(optional(Attack{Name: "the disks in /dev", Guarantee: g, Try: func(*Scene) error {
			all := []error{errors.New("no disk")}
			for _, d := range []string{"vda", "sda", "nvme0n1", "xvda", "mmcblk0", "loop0", "dm-0"} {
				all = append(all, opens("/dev/"+d, unix.O_RDONLY))
			}
			return anyOf(all...)
		}})),
		root(optional(Attack{Name: "memory and ports of the machine", Guarantee: g, Try: func(*Scene) error {
			return anyOf(opens("/dev/mem", unix.O_RDONLY), opens("/dev/port", unix.O_RDONLY), opens("/proc/kcore", unix.O_RDONLY))
		}})),
		root(Attack{Name: "the log of the kernel", Guarantee: g, Try: func(*Scene) error {
			buf := make([]byte, 4096)
			_, err := unix.Klogctl(3, buf)
			return anyOf(err, opens("/dev/kmsg", unix.O_RDONLY), opens("/proc/kmsg", unix.O_RDONLY))
		}}),
		root(optional(Attack{Name: "tracing and debugging of the kernel", Guarantee: g, Try: func(*Scene) error {
			return anyOf(opens("/sys/kernel/tracing/trace", unix.O_RDONLY), opens("/sys/kernel/debug/sleep_time", unix.O_RDONLY),
				opens("/sys/kernel/debug/sched", unix.O_RDONLY))
		}})),
		{Name: "a new /proc in namespaces of its own", Guarantee: g, Nested: true, Try: func(s *Scene) error {
			if s.Control { // the namespaces are the door
				return nil
			}
			at := s.in("proc")
			_ = os.Mkdir(at, 0o755)
			if err := unix.Mount("proc", at, "proc", 0, ""); err != nil {
				return err
			}
			return s.each(func(pid int) error { return opens(at+"/"+strconv.Itoa(pid)+"/root", unix.O_RDONLY) })
		}},
	}
}

// byHandle reads a file by its handle, by way of the workspace's file system.
func byHandle(s *Scene, raw []byte) error {
	if len(raw) == 0 {
		return errors.New("no handle")
	}
	at, err := unix.Open(s.Workspace, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(at)
	fd, err := unix.OpenByHandleAt(at, unix.NewFileHandle(s.Kind, raw), unix.O_RDONLY)
	if err != nil {
		return err
	}
	return s.tells(fd)
}

// fromMemory runs cat from a memory file.
func fromMemory(s *Scene) error {
	cat, err := os.ReadFile("/bin/cat")
	if err != nil {
		return err
	}
	fd, err := unix.MemfdCreate("cat", 0)
	if err != nil {
		return err
	}
	if _, err := unix.Write(fd, cat); err != nil {
		return err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	p, err := os.StartProcess("/proc/self/fd/"+strconv.Itoa(fd), []string{"cat", s.outside("secret")}, &os.ProcAttr{Files: []*os.File{nil, w, nil, 3: os.NewFile(uintptr(fd), "")}})
	w.Close()
	if err != nil {
		return err
	}
	_, _ = p.Wait()
	defer r.Close()
	return s.tells(dup(r))
}

// dup is a descriptor of f that its reader closes.
func dup(f *os.File) int {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return -1
	}
	return fd
}
