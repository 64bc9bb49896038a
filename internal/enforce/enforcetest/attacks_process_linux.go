package enforcetest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

func processAttacks() []Attack {
	const g = "process"
	plain := func(name string, f func(s *Scene) error) Attack { return Attack{Name: name, Guarantee: g, Try: f} }
	each := func(name string, f func(s *Scene, pid int) error) Attack {
		return plain(name, func(s *Scene) error { return s.each(func(pid int) error { return f(s, pid) }) })
	}
	root := func(a Attack) Attack { a.Root = true; return a }
	optional := func(a Attack) Attack { a.Optional = true; return a }
	space := func(name string, flags uintptr) Attack {
		return plain("a "+name+" namespace of its own", func(*Scene) error {
			cmd := exec.Command("/bin/true")
			cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | flags}
			return cmd.Run()
		})
	}
	return []Attack{
		plain("a signal to a process of the host", func(s *Scene) error {
			if s.Control {
				return unix.Kill(s.Victim, 0)
			}
			return anyOf(unix.Kill(s.Victim, 0), unix.Kill(s.Supervisor, 0))
		}),
		plain("another place in the queue for a process of the host", func(s *Scene) error {
			return unix.Setpriority(unix.PRIO_PROCESS, s.Victim, 19)
		}),
		plain("other processors for a process of the host", func(s *Scene) error {
			was, now := unix.CPUSet{}, unix.CPUSet{}
			if err := unix.SchedGetaffinity(s.Victim, &was); err != nil {
				return err
			}
			last := 0
			for n := range 8 * len(was) {
				if was.IsSet(n) {
					last = n
				}
			}
			now.Set(last)
			if err := unix.SchedSetaffinity(s.Victim, &now); err != nil {
				return err
			}
			// Success may be pretended; with one processor alone it does not show.
			if err := unix.SchedGetaffinity(s.Victim, &now); err != nil || now == was && (was.Count() > 1 || !s.Control) {
				return errors.Join(err, errors.New("nothing changed"))
			}
			return unix.SchedSetaffinity(s.Victim, &was)
		}),
		{Name: "a list of the host's processes", Guarantee: g, Limits: map[string]string{"landlock": "they can be seen, and nothing of them opened"},
			Try: func(s *Scene) error {
				return anyOf(opens(of(s.Victim, "stat"), unix.O_RDONLY), opens(of(s.Supervisor, "stat"), unix.O_RDONLY))
			}},
		optional(each("tracing a process", func(_ *Scene, pid int) error {
			const seize = 0x4206 // PTRACE_SEIZE, which does not stop it
			return call(unix.SYS_PTRACE, seize, uintptr(pid), 0, 0)
		})),
		optional(each("the memory of a process by /proc", func(s *Scene, pid int) error { return s.peek(pid) })),
		optional(each("the memory of a process by process_vm_readv", func(s *Scene, pid int) error { return s.peekBy(pid) })),
		optional(each("writing the memory of a process", func(_ *Scene, pid int) error { return opens(of(pid, "mem"), unix.O_WRONLY) })),
		each("the layout of a process", func(_ *Scene, pid int) error { return something(os.ReadFile(of(pid, "maps"))) }),
		each("the program of a process", func(_ *Scene, pid int) error { return opens(of(pid, "exe"), unix.O_RDONLY) }),
		optional(each("a descriptor taken out of a process", func(s *Scene, pid int) error {
			p, err := unix.PidfdOpen(pid, 0)
			if err != nil {
				return err
			}
			defer unix.Close(p)
			fd, err := unix.PidfdGetfd(p, 0, 0)
			if err != nil {
				return err
			}
			return unix.Close(fd)
		})),
		root(each("the mount namespace of a process", func(_ *Scene, pid int) error {
			if err := unix.Unshare(unix.CLONE_FS); err != nil {
				return err
			}
			return joins(pid, "mnt", unix.CLONE_NEWNS)
		})),
		root(each("the other namespaces of a process", func(_ *Scene, pid int) error {
			return anyOf(joins(pid, "pid", unix.CLONE_NEWPID), joins(pid, "ipc", unix.CLONE_NEWIPC), joins(pid, "uts", unix.CLONE_NEWUTS))
		})),
		optional(space("user", 0)), optional(space("mount", syscall.CLONE_NEWNS)), optional(space("process", syscall.CLONE_NEWPID)),
		optional(space("network", syscall.CLONE_NEWNET)),
		optional(plain("a user namespace by clone3", func(*Scene) error {
			args := struct{ flags, pidfd, child, parent, exit, stack, size, tls, set, setSize, cgroup uint64 }{flags: unix.CLONE_NEWUSER, exit: uint64(unix.SIGCHLD)}
			return clone3(unsafe.Pointer(&args), unsafe.Sizeof(args))
		})),
		optional(plain("calls by a ring in shared memory", func(*Scene) error {
			var params [120]byte
			return call(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params[0])))
		})),
		optional(plain("calls by interrupt 0x80", func(*Scene) error { return foreign(int80, 20) })),
		optional(plain("calls by the numbers of x32", func(*Scene) error { return foreign(plainCall, 39|1<<30) })),
		optional(plain("programs in the kernel", func(*Scene) error {
			attr := [16]uint32{2, 4, 4, 1} // BPF_MAP_TYPE_ARRAY: key, value, entries
			return call(unix.SYS_BPF, 0, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
		})),
		optional(plain("measuring with the kernel's counters", func(s *Scene) error {
			attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})), Bits: unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv}
			fd, err := unix.PerfEventOpen(&attr, 0, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
			if err != nil {
				return err
			}
			return unix.Close(fd)
		})),
		optional(plain("stopping the kernel in the middle of a copy", func(*Scene) error {
			const userModeOnly = 1
			return call(unix.SYS_USERFAULTFD, userModeOnly|unix.O_CLOEXEC)
		})),
		root(optional(plain("a module for the kernel", func(*Scene) error {
			// Without a sandbox it gets as far as looking at the descriptor.
			err := call(unix.SYS_FINIT_MODULE, ^uintptr(0), uintptr(unsafe.Pointer(&[1]byte{})), 0)
			if errors.Is(err, unix.EBADF) {
				return nil
			}
			return err
		}))),
		root(optional(plain("another kernel", func(*Scene) error {
			// No segments and flags that do not exist: refused at the second look.
			if err := call(unix.SYS_KEXEC_LOAD, 0, 0, 0, 1<<15); !errors.Is(err, unix.EINVAL) {
				return or(err, nil)
			}
			return nil
		}))),
		root(plain("the clock of the host", func(*Scene) error {
			// A time that does not exist is looked at after the right to set it.
			if err := call(unix.SYS_CLOCK_SETTIME, 0, uintptr(unsafe.Pointer(&[2]int64{0, -1}))); !errors.Is(err, unix.EINVAL) {
				return or(err, nil)
			}
			return nil
		})),
		root(plain("capabilities that are left", capable)),
		plain("the bits of a set-user-id program", func(*Scene) error {
			on, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
			if err != nil || on != 0 {
				return or(err, errors.New("no_new_privs is set"))
			}
			return nil
		}),
		{Name: "keys typed into the terminal", Guarantee: g, Alone: true, Optional: true, Try: typed},
		root(optional(plain("a process saved from the memory killer", func(*Scene) error {
			f, err := os.OpenFile("/proc/self/oom_score_adj", os.O_RDWR, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			var was int
			if _, err := fmt.Fscan(f, &was); err != nil {
				return err
			}
			if _, err := f.WriteString("-900"); err != nil {
				return err
			}
			_, _ = fmt.Fprint(f, was)
			return nil
		}))),
		root(plain("precedence over others", func(*Scene) error { return unix.Setpriority(unix.PRIO_PROCESS, 0, -5) })),
	}
}

// something is nil when something was read.
func something(raw []byte, err error) error {
	if err == nil && len(raw) == 0 {
		return errNothing
	}
	return err
}

// capable is nil when this thread has a capability. What bounds those of programs
// with set-user-id bits is not one.
func capable(*Scene) error {
	raw, err := os.ReadFile("/proc/thread-self/status")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(raw)) {
		if key, value, _ := strings.Cut(line, ":"); strings.HasPrefix(key, "Cap") && key != "CapBnd" && strings.Trim(value, "0 \t\n") != "" {
			return nil
		}
	}
	return errors.New("there is none")
}

// clone3 is nil when a process could be made with args; it ends at once.
func clone3(args unsafe.Pointer, size uintptr) error {
	pid, _, errno := unix.RawSyscall(unix.SYS_CLONE3, uintptr(args), size, 0)
	if errno != 0 {
		return errno
	}
	if pid == 0 {
		for {
			unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
	}
	_, err := unix.Wait4(int(pid), nil, 0, nil)
	return err
}

// foreign is nil when getpid under another number, or through another door,
// tells our number.
func foreign(door func(nr uintptr) (int, error), nr uintptr) error {
	got, err := door(nr)
	if err == nil && got != os.Getpid() {
		err = fmt.Errorf("got %d", got)
	}
	return err
}

func plainCall(nr uintptr) (int, error) {
	r, _, errno := unix.RawSyscall(nr, 0, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(r), nil
}

// typed types into a terminal of the process's own that it leads.
func typed(*Scene) error {
	master, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if err := unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0); err != nil {
		return err
	}
	n, err := unix.IoctlGetInt(master, unix.TIOCGPTN)
	if err != nil {
		return err
	}
	slave, err := unix.Open(fmt.Sprintf("/dev/pts/%d", n), unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return call(unix.SYS_IOCTL, uintptr(slave), unix.TIOCSTI, uintptr(unsafe.Pointer(&[1]byte{'x'})))
}
