package inner

import (
	"errors"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/internal/enforce"
)

// execError says that the program itself could not be executed.
type execError struct {
	name string
	err  error
}

func (e *execError) Error() string { return e.name + ": " + e.err.Error() }
func (e *execError) Unwrap() error { return e.err }

func launch(order *enforce.Order) (int, error) {
	path, err := lookPath(order.Argv[0], order.Env)
	if err != nil {
		return 0, &execError{order.Argv[0], err}
	}
	attr := &syscall.ProcAttr{Env: order.Env, Files: []uintptr{0, 1, 2},
		Sys: &syscall.SysProcAttr{Setsid: true, Setctty: order.Terminal, Ctty: 0}}
	pid, err := syscall.ForkExec(path, order.Argv, attr)
	if errors.Is(err, syscall.ENOEXEC) {
		pid, err = syscall.ForkExec(shell, byShell(path, order.Argv), attr)
	}
	if err != nil {
		return 0, &execError{order.Argv[0], err}
	}
	return pid, nil
}

const shell = "/bin/sh"

// byShell are the words for a script without a first line that names its
// interpreter: shells and execvp(3) run it by sh.
func byShell(path string, argv []string) []string {
	return append([]string{"sh", path}, argv[1:]...)
}

// lookPath finds a program as execvp(3) does, in the PATH of the command.
func lookPath(name string, env []string) (string, error) {
	if name == "" {
		return "", syscall.ENOENT
	}
	if strings.Contains(name, "/") {
		return name, executable(name)
	}
	path := ""
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = v
		}
	}
	var denied error
	for dir := range strings.SplitSeq(path, ":") {
		if dir == "" {
			dir = "."
		}
		file := dir + "/" + name
		err := executable(file)
		if err == nil {
			return file, nil
		}
		if errors.Is(err, syscall.EACCES) {
			denied = err
		}
	}
	if denied != nil {
		return "", denied
	}
	return "", syscall.ENOENT
}

func executable(file string) error {
	var st syscall.Stat_t
	if err := syscall.Stat(file, &st); err != nil {
		return err
	}
	if st.Mode&syscall.S_IFMT == syscall.S_IFDIR {
		return syscall.EACCES
	}
	return unix.Faccessat(unix.AT_FDCWD, file, unix.X_OK, unix.AT_EACCESS)
}
