package supervise

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// Program is something that can be started once. Its methods are called from one
// thread, in this order.
type Program interface {
	// Start starts it with control as descriptor 3.
	Start(control *os.File) (pid int, err error)
	// Await returns when it has ended. Its id stays taken until Bury.
	Await()
	// Bury gives its id back and says how it ended.
	Bury() error
}

// Direct is a program that needs nothing of what package os/exec does: that
// package first tries what the kernel's process descriptors can do, which takes
// another process, and registers each file for polling.
type Direct struct {
	Path      string
	Args, Env []string
	// Files are its descriptors from 4 on. 0 to 2 are /dev/null.
	Files []*os.File
	Sys   *syscall.SysProcAttr
	// Fenced says that it makes a user namespace at once, and so must leave room
	// for us.
	Fenced bool
	// Begun, when not nil, is called as soon as the program is executed. When it
	// fails the program is killed, and was not started.
	Begun func(pid int) error

	pid int
}

// Start is part of Program.
func (d *Direct) Start(control *os.File) (int, error) {
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(null)
	n := uintptr(null)
	attr := &syscall.ProcAttr{Dir: "/", Env: d.Env, Files: []uintptr{n, n, n, control.Fd()}, Sys: d.Sys}
	for _, f := range d.Files {
		attr.Files = append(attr.Files, f.Fd())
	}
	start := func() (int, error) { return syscall.ForkExec(d.Path, d.Args, attr) }
	if d.Fenced {
		d.pid, err = keepRoom(start)
	} else {
		d.pid, err = start()
	}
	for _, f := range d.Files {
		f.Close()
	}
	if err != nil || d.Begun == nil {
		return d.pid, err
	}
	if err := d.Begun(d.pid); err != nil {
		_ = syscall.Kill(d.pid, syscall.SIGKILL)
		_ = d.Bury()
		return 0, err
	}
	return d.pid, nil
}

// Await is part of Program.
func (d *Direct) Await() { await(d.pid) }

// Bury is part of Program.
func (d *Direct) Bury() error {
	var ws syscall.WaitStatus
	for {
		_, err := syscall.Wait4(d.pid, &ws, 0, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		switch {
		case err != nil:
			return err
		case ws.Signaled():
			return fmt.Errorf("signal: %v", ws.Signal())
		case ws.ExitStatus() != 0:
			return fmt.Errorf("exit status %d", ws.ExitStatus())
		}
		return nil
	}
}

// Indirect is a program that becomes the inner stage by way of another one,
// whose output may be wanted.
type Indirect struct{ Cmd *exec.Cmd }

// Start is part of Program.
func (i *Indirect) Start(control *os.File) (int, error) {
	i.Cmd.ExtraFiles = append([]*os.File{control}, i.Cmd.ExtraFiles...)
	return keepRoom(func() (int, error) {
		if err := i.Cmd.Start(); err != nil {
			return 0, err
		}
		return i.Cmd.Process.Pid, nil
	})
}

// Await is part of Program.
func (i *Indirect) Await() { await(i.Cmd.Process.Pid) }

// Bury is part of Program. What is left of a process group of its own ends with
// it: one that was killed may leave a child that waits for its word for ever, and
// holds the control socket open.
func (i *Indirect) Bury() error {
	if sys := i.Cmd.SysProcAttr; sys != nil && sys.Setpgid && sys.Pgid == 0 {
		_ = syscall.Kill(-i.Cmd.Process.Pid, syscall.SIGKILL) // the id is still taken
	}
	return i.Cmd.Wait()
}

// await waits for a child and leaves it a zombie, so that its id cannot come to
// name another process before nobody signals it any more.
func await(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}
