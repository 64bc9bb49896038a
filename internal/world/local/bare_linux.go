package local

import (
	"os/exec"
	"syscall"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/enforce/inner"
	"github.com/tether-sandbox/tether/internal/enforce/supervise"
)

// startBare starts a job with no sandbox. The inner stage still stands between:
// it keeps hold of the process tree, and ends it when the command has ended or
// we are gone.
func startBare(job enforce.Job) (enforce.Process, error) {
	cmd := &exec.Cmd{Path: "/proc/self/exe", Args: []string{inner.Name}, Env: []string{}, Dir: "/",
		Stdin: job.Stdio[0], Stdout: job.Stdio[1], Stderr: job.Stdio[2],
		SysProcAttr: &syscall.SysProcAttr{Setsid: true}}
	return supervise.Start(cmd, &job.Order, func(m inner.Message) error {
		return fault.New(fault.Internal, m.What)
	})
}
