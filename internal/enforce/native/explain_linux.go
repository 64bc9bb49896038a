package native

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/enforce/inner"
	"github.com/tether-sandbox/tether/internal/machine"
	"github.com/tether-sandbox/tether/internal/plan"
)

// refused turns a refusal of the kernel into an error that names the missing
// thing and the way to get it.
func refused(what string, err error) error {
	e := fault.Wrap(fault.IsolationUnavailable, "the kernel did not let us "+what, err)
	if reason, hint := blame(err); reason != "" {
		e.What += " (" + reason + ")"
		e.Hint = hint
	}
	e.Err = fmt.Errorf("%w: %w", enforce.ErrMachine, err)
	return e
}

// blame looks for what forbids user namespaces here.
func blame(err error) (reason, hint string) {
	a, found := machine.Blame(machine.Look(), string(enforce.Native))
	switch {
	case errors.Is(err, syscall.EACCES) && closed():
		reason = "its program may not be read, or is set-group-id: the kernel then closes its processes to whoever starts it"
		if path, err := os.Executable(); err == nil {
			hint = "chmod a+r,ug-s " + path
		}
		return reason, hint
	case found:
		return a.What, a.Hint()
	case errors.Is(err, syscall.ENOSYS):
		return "the kernel is older than 5.14", "tether doctor"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EUSERS):
		return "the limit of namespaces is reached", "sudo sysctl -w user.max_user_namespaces=15000"
	}
	return "", ""
}

// explain turns a failure of the inner stage into an error with a hint.
func explain(m inner.Message) error {
	errno := syscall.Errno(m.Errno)
	if m.Kind == inner.Changed {
		return fault.Wrap(fault.IsolationUnavailable, m.What, plan.ErrChanged)
	}
	e := fault.New(fault.IsolationUnavailable, m.What)
	switch m.Step {
	case "proc", "devices", "tmpfs", "sysctl", "loopback", "":
		// The kernel refused a means, whatever the workspace holds.
		e.Err = enforce.ErrMachine
	}
	switch {
	case m.Step == "proc" && (errno == syscall.EPERM || errno == syscall.EACCES):
		a := machine.Covered(machine.Look())
		e.What, e.Hint = a.What, cmp.Or(a.Hint(), "tether doctor")
	case errno == syscall.ENOSYS:
		e.What += " (the kernel is older than 5.14)"
	case errno == syscall.EPERM || errno == syscall.EACCES:
		if reason, hint := blame(errno); reason != "" {
			e.What += " (" + reason + ")"
			e.Hint = hint
		}
	}
	return e
}

// closed says whether the kernel keeps us undumpable, as it then does what we
// execute again.
func closed() bool {
	dumpable, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	return err == nil && dumpable != 1
}
