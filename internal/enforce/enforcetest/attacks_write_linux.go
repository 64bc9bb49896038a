package enforcetest

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

func writeAttacks() []Attack {
	const (
		g     = "write"
		whole = "a writable folder is writable whole"
	)
	knob := func(name string, paths ...string) Attack {
		return Attack{Name: name, Guarantee: g, Root: true, Optional: true, Try: func(*Scene) error {
			var all []error
			for _, p := range paths {
				all = append(all, opens(p, unix.O_WRONLY))
			}
			return anyOf(all...)
		}}
	}
	locked := func(name string, f func(s *Scene) error) Attack {
		return Attack{Name: name, Guarantee: g, Limits: map[string]string{"landlock": whole}, Try: f}
	}
	return []Attack{
		{Name: "a file outside, written", Guarantee: g, Try: func(s *Scene) error { return opens(s.outside("secret"), unix.O_WRONLY) }},
		{Name: "a new file outside", Guarantee: g, Try: func(s *Scene) error { return creates(s.outside("new")) }},
		{Name: "a new file in the home", Guarantee: g, Try: func(s *Scene) error { return creates(filepath.Dir(s.Home) + "/.enforcetest-new") }},
		{Name: "a file of the system", Guarantee: g, Root: true, Try: func(*Scene) error {
			return anyOf(opens("/etc/passwd", unix.O_WRONLY), opens("/bin/cat", unix.O_WRONLY), creates("/usr/enforcetest"), creates("/etc/enforcetest"))
		}},
		{Name: "a file of a root that is read-only", Guarantee: g, Try: func(s *Scene) error { return opens(s.ReadOnly+"/f", unix.O_WRONLY) }},
		{Name: "a file of a root that is read-only, by a folder that the host hands in", Guarantee: g, Try: func(s *Scene) error {
			return s.handed(func(_, readOnly int) error {
				fd, err := unix.Openat(readOnly, "f", unix.O_WRONLY|unix.O_CLOEXEC, 0)
				if err != nil {
					return err
				}
				return unix.Close(fd)
			})
		}},
		{Name: "a hard link to a file of a root that is read-only", Guarantee: g, Try: func(s *Scene) error {
			link := s.in("hard")
			defer os.Remove(link)
			if err := os.Link(s.ReadOnly+"/f", link); err != nil {
				return err
			}
			return opens(link, unix.O_WRONLY)
		}},
		{Name: "a descriptor for reading, opened again for writing", Guarantee: g, Try: func(s *Scene) error {
			return reopened(s.ReadOnly+"/f", unix.O_RDONLY)
		}},
		{Name: "a descriptor for its path alone, opened again for writing", Guarantee: g, Try: func(s *Scene) error {
			return reopened(s.ReadOnly+"/f", unix.O_PATH)
		}},
		{Name: "a mode, a time or an owner of what is read-only", Guarantee: g, Limits: map[string]string{
			"landlock": "no rule of Landlock is about them; the user's own files"}, Try: func(s *Scene) error {
			return anyOf(os.Chmod(s.ReadOnly+"/f", 0o644), unix.Utimes(s.ReadOnly+"/f", nil), os.Chown(s.ReadOnly+"/f", os.Getuid(), os.Getgid()),
				unix.Setxattr(s.ReadOnly+"/f", "user.x", []byte("x"), 0))
		}},
		{Name: "what is read-only mounted anew for writing", Guarantee: g, Masked: true, Try: func(s *Scene) error {
			attr := unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}
			if err := anyOf(unix.Mount("", s.ReadOnly, "", unix.MS_REMOUNT|unix.MS_BIND, ""), unix.MountSetattr(unix.AT_FDCWD, s.ReadOnly, 0, &attr)); err != nil {
				return err
			}
			return opens(s.ReadOnly+"/f", unix.O_WRONLY)
		}},
		{Name: "the file that the caller gave as input, opened again for writing", Guarantee: g, Try: func(*Scene) error {
			var st unix.Stat_t
			if err := unix.Fstat(0, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
				return or(err, errors.New("the input is no plain file"))
			}
			return opens("/proc/self/fd/0", unix.O_WRONLY)
		}},
		{Name: "Tether's own folder", Guarantee: g, Try: func(s *Scene) error { return creates(s.State + "/new") }},
		locked("git's configuration", func(s *Scene) error { return opens(s.in(".git/config"), unix.O_WRONLY) }),
		locked("git's configuration, by a new file in its place", func(s *Scene) error {
			if err := os.WriteFile(s.in("config"), []byte("[core]\n"), 0o644); err != nil {
				return err
			}
			defer os.Remove(s.in("config"))
			return there(s, ".git/config", func() error { return os.Rename(s.in("config"), s.in(".git/config")) })
		}),
		locked("git's configuration, by exchange", func(s *Scene) error {
			if err := os.WriteFile(s.in("config"), []byte("[core]\n"), 0o644); err != nil {
				return err
			}
			defer os.Remove(s.in("config"))
			return there(s, ".git/config", func() error {
				return unix.Renameat2(unix.AT_FDCWD, s.in("config"), unix.AT_FDCWD, s.in(".git/config"), unix.RENAME_EXCHANGE)
			})
		}),
		locked("git's configuration, removed", func(s *Scene) error {
			return there(s, ".git/config", func() error { return os.Remove(s.in(".git/config")) })
		}),
		locked("git's configuration, by a hard link", func(s *Scene) error {
			defer os.Remove(s.in("hard"))
			if err := os.Link(s.in(".git/config"), s.in("hard")); err != nil {
				return err
			}
			return opens(s.in("hard"), unix.O_WRONLY)
		}),
		locked("git's folder moved aside", func(s *Scene) error {
			if err := os.Rename(s.in(".git"), s.in("git2")); err != nil {
				return err
			}
			return os.Rename(s.in("git2"), s.in(".git"))
		}),
		locked("a hook of git", func(s *Scene) error { return creates(s.in(".git/hooks/pre-commit")) }),
		locked("the tasks of an editor", func(s *Scene) error { return creates(s.in(".vscode/new.json")) }),
		{Name: "git's configuration in a new repository, while the command runs", Guarantee: g, Limits: everywhere(
			"it stands until the command ends, and is then found and moved to quarantine"), Try: func(s *Scene) error {
			defer os.RemoveAll(s.in("new"))
			if err := os.MkdirAll(s.in("new/.git"), 0o755); err != nil {
				return err
			}
			return creates(s.in("new/.git/config"))
		}},
		{Name: "the folder around a lock moved, while the command runs", Guarantee: g, Limits: everywhere(
			"moving folders is ordinary work; what comes in the old place is found at the end and moved to quarantine"), Try: func(s *Scene) error {
			return then(os.Rename(s.in("in"), s.in("in2")), func() error { return os.Rename(s.in("in2"), s.in("in")) })
		}},
		{Name: "a bind mount over a lock", Guarantee: g, Masked: true, Try: func(s *Scene) error {
			mine := s.in("mine")
			if err := os.WriteFile(mine, []byte("[core]\n"), 0o644); err != nil {
				return err
			}
			if err := unix.Mount(mine, s.in(".git/config"), "", unix.MS_BIND, ""); err != nil {
				return err
			}
			defer func() { _ = unix.Unmount(s.in(".git/config"), unix.MNT_DETACH) }()
			return opens(s.in(".git/config"), unix.O_WRONLY)
		}},
		{Name: "a lock taken off", Guarantee: g, Masked: true, Try: func(s *Scene) error {
			return unix.Unmount(s.in(".git/config"), unix.MNT_DETACH)
		}},
		{Name: "a mount put over the workspace in namespaces of its own", Guarantee: g, Nested: true, Try: func(s *Scene) error {
			return unix.Mount("t", s.Workspace, "tmpfs", 0, "")
		}},
		{Name: "a set-user-id bit", Guarantee: g, Try: func(s *Scene) error {
			f := s.in("suid")
			defer os.Remove(f)
			if err := os.WriteFile(f, nil, 0o755); err != nil {
				return err
			}
			return anyOf(unix.Chmod(f, 0o4755), viaOpen(s))
		}},
		{Name: "capabilities of a file", Guarantee: g, Root: true, Try: func(s *Scene) error {
			f := s.in("caps")
			defer os.Remove(f)
			if err := os.WriteFile(f, nil, 0o755); err != nil {
				return err
			}
			// Version 2, effective, CAP_NET_RAW (linux/capability.h).
			return unix.Setxattr(f, "security.capability", []byte{1, 0, 0, 2, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 0)
		}},
		{Name: "a file given to another owner", Guarantee: g, Root: true, Try: func(s *Scene) error {
			f := s.in("given")
			defer os.Remove(f)
			if err := os.WriteFile(f, nil, 0o755); err != nil {
				return err
			}
			return os.Chown(f, 12345, 12345)
		}},
		{Name: "a file that nobody can remove", Guarantee: g, Root: true, Optional: true, Try: func(s *Scene) error {
			f, err := os.Create(s.in("immutable"))
			if err != nil {
				return err
			}
			defer os.Remove(f.Name())
			defer f.Close()
			const get, set, immutable = 0x80086601, 0x40086602, 0x10 // FS_IOC_GETFLAGS, FS_IOC_SETFLAGS, FS_IMMUTABLE_FL
			var flags int
			if err := call(unix.SYS_IOCTL, f.Fd(), get, uintptr(unsafe.Pointer(&flags))); err != nil {
				return err
			}
			with := flags | immutable
			if err := call(unix.SYS_IOCTL, f.Fd(), set, uintptr(unsafe.Pointer(&with))); err != nil {
				return err
			}
			return call(unix.SYS_IOCTL, f.Fd(), set, uintptr(unsafe.Pointer(&flags)))
		}},
		{Name: "a device file made in the workspace", Guarantee: g, Root: true, Try: func(s *Scene) error {
			defer os.Remove(s.in("null"))
			if err := unix.Mknod(s.in("null"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))); err != nil {
				return err
			}
			return opens(s.in("null"), unix.O_WRONLY)
		}},
		knob("who handles core dumps", "/proc/sys/kernel/core_pattern"),
		knob("which programs the kernel starts", "/proc/sys/kernel/modprobe", "/proc/sys/kernel/hotplug", "/sys/kernel/uevent_helper"),
		knob("how programs are executed", "/proc/sys/fs/binfmt_misc/register", "/proc/sys/fs/binfmt_misc/status"),
		knob("settings of the kernel", "/proc/sys/kernel/hostname", "/proc/sys/vm/drop_caches", "/proc/sys/net/ipv4/ip_forward", "/proc/sys/user/max_user_namespaces"),
		knob("keys and power of the machine", "/proc/sysrq-trigger", "/sys/power/state"),
		knob("control groups of the host", "/sys/fs/cgroup/cgroup.procs", "/sys/fs/cgroup/memory/cgroup.procs", "/sys/fs/cgroup/unified/cgroup.procs",
			"/sys/fs/cgroup/memory/release_agent", "/sys/fs/cgroup/pids/release_agent"),
		{Name: "a control group of its own making", Guarantee: g, Root: true, Optional: true, Nested: true, Try: func(s *Scene) error {
			at := s.in("cg")
			_ = os.Mkdir(at, 0o755)
			return anyOf(unix.Mount("c", at, "cgroup2", 0, ""), unix.Mount("c", at, "cgroup", 0, "memory"), unix.Mount("t", at, "tmpfs", 0, ""))
		}},
	}
}

// everywhere are the limits of every provider.
func everywhere(why string) map[string]string {
	return map[string]string{"native": why, "bwrap": why, "landlock": why}
}

// creates is nil when a file can be made; it is removed.
func creates(path string) error {
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return err
	}
	unix.Close(fd)
	return os.Remove(path)
}

// reopened is nil when what was opened with flags can be opened for writing.
func reopened(path string, flags int) error {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return opens("/proc/self/fd/"+strconv.Itoa(fd), unix.O_WRONLY)
}

// there is nil when act worked; the file of that name is put back.
func there(s *Scene, name string, act func() error) error {
	raw, err := os.ReadFile(s.in(name))
	if err != nil {
		return err
	}
	if err := act(); err != nil {
		return err
	}
	return os.WriteFile(s.in(name), raw, 0o644)
}

// viaOpen makes a set-user-id file at once.
func viaOpen(s *Scene) error {
	path := s.in("suid2")
	defer os.Remove(path)
	old := unix.Umask(0)
	defer unix.Umask(old)
	fd, err := unix.Open(path, unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o4755)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_ISUID == 0 {
		return or(err, errors.New("the bit was not set"))
	}
	return nil
}
