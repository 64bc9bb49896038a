package inner

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/internal/enforce"
)

// joined is what a joiner becomes: it lies in the user and mount namespaces of the
// sandbox, carries out what it is told, and ends with whoever tells it. It never
// returns.
func joined(ours bool) {
	runtime.LockOSThread() // the parent-death signal is the thread's
	c, err := arrive(ours)
	if err != nil {
		send(failure(&stage{"join", err}))
		os.Exit(125)
	}
	send(Message{Kind: Started})
	var b [CoverLen]byte
	steps := os.NewFile(FDSteps, "steps")
	for {
		n, err := unix.Read(FDControl, b[:])
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n == 0 {
			os.Exit(0)
		}
		if n != CoverLen || b[0] != Cover {
			os.Exit(125)
		}
		c.answer(binary.LittleEndian.Uint32(b[1:]), steps)
	}
}

// arrive makes ready to cover, and refuses to go on where it is not as it must be.
func arrive(ours bool) (*coverer, error) {
	// Executing a program made it open to those who have our ids, outside.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return nil, err
	}
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return nil, err
	}
	unix.CloseOnExec(FDControl)
	unix.CloseOnExec(FDSteps)
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var have [2]unix.CapUserData
	if err := unix.Capget(&header, &have[0]); err != nil {
		return nil, err
	}
	if have[0].Effective != keeps || have[0].Permitted != keeps || have[1].Permitted != 0 {
		return nil, fmt.Errorf("capabilities are %x and %x, must be %x", have[0].Permitted, have[1].Permitted, uint32(keeps))
	}
	// The world's own /proc knows us by no number: neither does anybody inside.
	if _, err := os.Readlink("/proc/self"); !errors.Is(err, unix.ENOENT) {
		return nil, fmt.Errorf("processes of the sandbox can see the joiner: %v", err)
	}
	root, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	c := &coverer{root: root, kit: FDKit, masks: map[string]int{}}
	if ours {
		unix.CloseOnExec(FDKit)
		return c, c.adopt()
	}
	c.foreign = true
	if err := c.pitch(KitPlace); err != nil {
		return nil, fmt.Errorf("a place for the sources of masks: %w", err)
	}
	for _, do := range sources {
		if _, err := c.maskSource(do); err != nil {
			return nil, fmt.Errorf("mask sources: %w", err)
		}
	}
	return c, nil
}

// adopt finds the sources of masks in a kit of the builder's.
func (c *coverer) adopt() error {
	for _, do := range sources {
		fd, err := child(c.kit, do.String())
		if err != nil {
			return fmt.Errorf("mask sources: %w", err)
		}
		c.masks[do.String()] = fd
	}
	return nil
}

// pitch mounts the tmpfs for the sources of masks in a world in which a command
// runs: inside of a folder in memory that is closed for good before anybody sees
// it, on an empty folder of the scaffolding. The command, which has no right to
// pass a folder without permissions, never comes to it.
func (c *coverer) pitch(path string) error {
	door, err := newTmpfs("0700", 1<<16)
	if err != nil {
		return err
	}
	defer unix.Close(door)
	if err := unix.Mkdirat(door, "kit", 0o700); err != nil {
		return err
	}
	if err := unix.Fchmodat(door, ".", 0, 0); err != nil {
		return err
	}
	if err := setattr(door, attrs(enforce.ReadOnly|enforce.NoExec), false); err != nil {
		return err
	}
	kit, err := newTmpfs("0700", 64<<20)
	if err != nil {
		return err
	}
	c.kit = kit
	at, err := c.lookup(path)
	if err != nil {
		return err
	}
	defer unix.Close(at)
	if err := attach(door, at); err != nil {
		return err
	}
	in, err := child(door, "kit")
	if err != nil {
		return err
	}
	defer unix.Close(in)
	return attach(kit, in)
}
