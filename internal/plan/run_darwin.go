package plan

import (
	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/fault"
)

// layout is this system's own.
func layout() *Layout { return Mac() }

func runViews() ([]View, []Link) { return nil, nil }

// hostSockets returns nothing: no socket is reached that lies outside of what
// the command may write, and those in it are found by the search.
func (r *resolver) hostSockets() []string { return nil }

// aliases has nothing to do: what is not shown stays closed under every path
// that the kernel has for it. Mounts inside a folder that is shown are not
// looked at.
func (r *resolver) aliases() error { return nil }

// memoryBytes is how much memory the machine has.
func memoryBytes() (int64, error) {
	n, err := unix.SysctlUint64("hw.memsize")
	if err != nil {
		return 0, fault.Wrap(fault.SandboxUnavailable, "cannot tell how much memory there is", err)
	}
	return int64(n), nil
}

// ownsIDs says that no command runs under another id than the caller's.
func ownsIDs() bool { return false }
