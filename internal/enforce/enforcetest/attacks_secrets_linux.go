package enforcetest

import (
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// hidden files of the workspace hold the secret: .env, sub/deep/.env, .ssh/id_rsa,
// and plain.txt, which is another name of .env.
func secretAttacks() []Attack {
	const g = "secrets"
	plain := func(name string, f func(s *Scene) error) Attack { return Attack{Name: name, Guarantee: g, Try: f} }
	masked := func(name string, f func(s *Scene) error) Attack {
		return Attack{Name: name, Guarantee: g, Masked: true, Try: f}
	}
	return []Attack{
		plain("a hidden file by its name", func(s *Scene) error { return s.shows(s.in(".env")) }),
		plain("a hidden file deep in the tree", func(s *Scene) error { return s.shows(s.in("sub/deep/.env")) }),
		plain("a hidden folder", func(s *Scene) error { return s.shows(s.in(".ssh/id_rsa")) }),
		plain("another name of a hidden file, made before", func(s *Scene) error { return s.shows(s.in("plain.txt")) }),
		plain("a hard link to a hidden file", func(s *Scene) error {
			defer os.Remove(s.in("l"))
			return anyOf(os.Link(s.in(".env"), s.in("l")), s.shows(s.in("l")))
		}),
		plain("a symbolic link to a hidden file", func(s *Scene) error {
			defer os.Remove(s.in("l2"))
			return then(os.Symlink(".env", s.in("l2")), func() error { return s.shows(s.in("l2")) })
		}),
		plain("a hidden file moved", func(s *Scene) error {
			return then(os.Rename(s.in(".env"), s.in("moved")), func() error {
				defer func() { _ = os.Rename(s.in("moved"), s.in(".env")) }()
				return s.shows(s.in("moved"))
			})
		}),
		plain("the folder around a hidden file moved", func(s *Scene) error {
			return then(os.Rename(s.in("sub"), s.in("sub2")), func() error {
				defer func() { _ = os.Rename(s.in("sub2"), s.in("sub")) }()
				return s.shows(s.in("sub2/deep/.env"))
			})
		}),
		plain("a hidden file exchanged with another", func(s *Scene) error {
			if err := os.WriteFile(s.in("other"), nil, 0o600); err != nil {
				return err
			}
			defer os.Remove(s.in("other"))
			swap := func() error {
				return unix.Renameat2(unix.AT_FDCWD, s.in("other"), unix.AT_FDCWD, s.in(".env"), unix.RENAME_EXCHANGE)
			}
			return then(swap(), func() error { defer func() { _ = swap() }(); return s.shows(s.in("other")) })
		}),
		plain("links swapped under a reader", swapped),
		plain("a descriptor for the path of a hidden file, opened again", func(s *Scene) error {
			fd, err := unix.Open(s.in(".env"), unix.O_PATH|unix.O_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return s.shows(fmt.Sprintf("/proc/self/fd/%d", fd))
		}),
		plain("a hidden file by way of process roots", func(s *Scene) error {
			return anyOf(s.shows("/proc/self/root"+s.in(".env")), s.shows("/proc/self/cwd/.env"), s.shows("/proc/1/root"+s.in(".env")),
				s.shows(of(s.Victim, "root")+s.in(".env")))
		}),
		plain("a hidden file cloned or copied by the kernel", func(s *Scene) error {
			from, err := unix.Open(s.in(".env"), unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer unix.Close(from)
			to, err := os.Create(s.in("copy"))
			if err != nil {
				return err
			}
			defer os.Remove(to.Name())
			defer to.Close()
			if _, err := unix.CopyFileRange(from, nil, int(to.Fd()), nil, 64, 0); err != nil {
				return err
			}
			return s.shows(to.Name())
		}),
		plain("a hidden file overwritten", func(s *Scene) error { return opens(s.in(".env"), unix.O_WRONLY) }),
		{Name: "a hidden file by its handle", Guarantee: g, Root: true, Try: func(s *Scene) error { return byHandle(s, s.HiddenHandle) }},
		plain("watching whole file systems for open files", func(s *Scene) error {
			const reportFID = 0x200 // FAN_REPORT_FID, which ordinary users may ask for
			return call(unix.SYS_FANOTIFY_INIT, reportFID, unix.O_RDONLY)
		}),
		masked("a mask taken off", func(s *Scene) error {
			return then(unix.Unmount(s.in(".env"), 0), func() error { return s.shows(s.in(".env")) })
		}),
		masked("a mask taken off lazily", func(s *Scene) error {
			return then(unix.Unmount(s.in(".env"), unix.MNT_DETACH), func() error { return s.shows(s.in(".env")) })
		}),
		masked("the workspace mounted elsewhere without its masks", func(s *Scene) error {
			at := s.in("mnt")
			_ = os.Mkdir(at, 0o755)
			if err := unix.Mount(s.Workspace, at, "", unix.MS_BIND, ""); err != nil {
				return err
			}
			defer func() { _ = unix.Unmount(at, unix.MNT_DETACH) }()
			return s.shows(at + "/.env")
		}),
		masked("a copy of the mount without its masks", func(s *Scene) error {
			fd, err := unix.OpenTree(unix.AT_FDCWD, s.Workspace, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			f, err := unix.Openat(fd, ".env", unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				return err
			}
			return s.tells(f)
		}),
		masked("a mask moved away", func(s *Scene) error {
			at := s.in("away")
			if err := os.WriteFile(at, nil, 0o600); err != nil {
				return err
			}
			return then(unix.MoveMount(unix.AT_FDCWD, s.in(".env"), unix.AT_FDCWD, at, 0), func() error { return s.shows(s.in(".env")) })
		}),
		masked("an overlay over the workspace", func(s *Scene) error {
			at := s.in("over")
			_ = os.Mkdir(at, 0o755)
			if err := unix.Mount("o", at, "overlay", 0, "lowerdir="+s.Workspace+":"+s.ReadOnly); err != nil {
				return err
			}
			defer func() { _ = unix.Unmount(at, unix.MNT_DETACH) }()
			return s.shows(at + "/.env")
		}),
		{Name: "masks taken off in namespaces of its own", Guarantee: g, Nested: true, Try: func(s *Scene) error {
			if s.Control { // the namespaces are the door
				return nil
			}
			_ = unix.Unmount(s.in(".env"), unix.MNT_DETACH)
			at := s.in("mnt2")
			_ = os.Mkdir(at, 0o755)
			_ = unix.Mount(s.Workspace, at, "", unix.MS_BIND, "")
			return anyOf(s.shows(s.in(".env")), s.shows(at+"/.env"))
		}},
		plain("a secret of the caller's environment", func(s *Scene) error {
			all := []error{errNothing}
			if strings.Contains(strings.Join(os.Environ(), "\n"), s.Secret) {
				all = append(all, nil)
			}
			if !s.Control {
				all = append(all, s.shows("/proc/1/environ"), s.shows(of(os.Getppid(), "environ")))
			}
			return anyOf(all...)
		}),
		plain("the arguments of process 1", func(s *Scene) error {
			// Without a sandbox the victim stands for it.
			pid := 1
			if s.Control {
				pid = s.Victim
			}
			return s.shows(of(pid, "cmdline"))
		}),
		plain("the environment of another process", func(s *Scene) error {
			return s.each(func(pid int) error { return s.shows(of(pid, "environ")) })
		}),
	}
}

// cmpThen goes on where the first step worked.
func then(err error, then func() error) error {
	if err != nil {
		return err
	}
	return then()
}

// swapped exchanges a link between a plain file and a hidden one, while it is
// read.
func swapped(s *Scene) error {
	link, plain := s.in("swap"), s.in("swap-plain")
	if err := os.WriteFile(plain, []byte("plain"), 0o600); err != nil {
		return err
	}
	defer os.Remove(plain)
	defer os.Remove(link)
	var stop atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !stop.Load() {
			for _, to := range []string{"swap-plain", ".env", "sub/deep/.env"} {
				_ = os.Symlink(to, link+".new")
				_ = os.Rename(link+".new", link)
			}
		}
	}()
	defer func() { stop.Store(true); <-done; os.Remove(link + ".new") }()
	err := errNothing
	for i, end := 0, time.Now().Add(60*time.Millisecond); i < 300 || time.Now().Before(end); i++ {
		if e := s.shows(link); e == nil {
			return nil
		}
	}
	return err
}

// peek reads the victim's memory, at the secret.
func (s *Scene) peek(pid int) error {
	f, err := os.Open(of(pid, "mem"))
	if err != nil {
		return err
	}
	defer f.Close()
	buf := make([]byte, len(s.Secret))
	if _, err := f.ReadAt(buf, int64(s.Address)); err != nil {
		return err
	}
	if string(buf) != s.Secret {
		return errNothing
	}
	return nil
}

// peekBy reads the victim's memory by process_vm_readv.
func (s *Scene) peekBy(pid int) error {
	buf := make([]byte, len(s.Secret))
	local := []unix.Iovec{{Base: &buf[0], Len: uint64(len(buf))}}
	remote := []unix.RemoteIovec{{Base: uintptr(s.Address), Len: len(buf)}}
	if _, err := unix.ProcessVMReadv(pid, local, remote, 0); err != nil {
		return err
	}
	if string(buf) != s.Secret {
		return errNothing
	}
	return nil
}
