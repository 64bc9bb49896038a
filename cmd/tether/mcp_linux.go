package main

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/fault"
)

// mcpProgram is the second program, which has the protocol linked; see
// docs/decisions/0005-mcp-is-a-second-program.md.
const mcpProgram = "tether-mcp"

func mcpVerb(args []string, _ stdio) (int, error) { return become(args) }

// fetchVerb is a verb of the same program.
func fetchVerb(args []string, _ stdio) (int, error) {
	return become(append([]string{"fetch"}, args...))
}

// become becomes the second program. That is the file
// beside our own real one, whoever can write there could replace us as well,
// and no other: not one on PATH, in the current folder or in the workspace.
func become(args []string) (int, error) {
	fd, dir, err := openBeside(mcpProgram)
	if err != nil {
		return 0, fault.Wrap(fault.McpMissing, "there is no program "+mcpProgram+" in "+dir+", where this one lies", err).
			WithHint("go install github.com/tether-sandbox/tether/cmd/...@latest")
	}
	// What was opened is what is executed.
	err = syscall.Exec("/proc/self/fd/"+strconv.Itoa(fd), append([]string{mcpProgram}, args...), os.Environ())
	return 0, fault.Wrap(fault.McpMissing, "cannot execute "+filepath.Join(dir, mcpProgram), err).
		WithHint("go install github.com/tether-sandbox/tether/cmd/...@latest")
}

// openBeside opens a regular file in the folder of the file that we run from.
func openBeside(name string) (fd int, dir string, err error) {
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return -1, "", err
	}
	dir = filepath.Dir(self)
	folder, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, dir, err
	}
	defer unix.Close(folder)
	fd, err = unix.Openat(folder, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, dir, err
	}
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil && st.Mode&unix.S_IFMT != unix.S_IFREG {
		err = errors.New("it is not a regular file")
	}
	if err != nil {
		unix.Close(fd)
		return -1, dir, err
	}
	return fd, dir, nil
}
