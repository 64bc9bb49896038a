// Package bwrap makes the kernel hold a plan through the system's bubblewrap,
// for machines that let only that program make user namespaces. It translates
// the same steps that package native carries out itself.
//
// What bwrap cannot do is not hidden: see Translate.
package bwrap

import (
	"fmt"
	"strconv"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/enforce/inner"
)

// MaxArguments is how many words bwrap takes in all, by command line and by
// --args together (its MAX_ARGS).
const MaxArguments = 9000

// Host is what a translation asks of the machine, and where it puts what must
// be handed over.
type Host struct {
	// Exists says whether a path exists. bwrap creates mount points that are
	// missing, on the host, and leaves them there; none may ever be missing.
	Exists func(path string) bool
	// Data makes content readable by bwrap and returns the descriptor.
	Data func(content []byte) int
	// Stub returns the path of a file with that size, time and mode that nobody can
	// open.
	Stub func(size, mtime int64, mode uint32) (string, error)
	// Size and DisableUserns say which options this bwrap has (0.8.0).
	Size, DisableUserns bool
}

// Arguments are bwrap's arguments up to, and without, the command.
//
// Steps on the new /proc are left to bwrap, which covers sys, sysrq-trigger,
// irq and bus by itself; sysctls cannot be written, so nested mount namespaces
// are stopped by the system call filter and --disable-userns alone. All paths
// were resolved by the plan, and the inner stage compares what was mounted with
// what was planned. That everything ends with us is the inner stage's business,
// too; --die-with-parent can leave a process that waits for ever, see Start.
func Arguments(steps []enforce.Step, network bool, host Host) ([]string, error) {
	a := []string{"--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
		"--as-pid-1", "--cap-drop", "ALL"}
	if !network {
		a = append(a, "--unshare-net")
	}
	if host.DisableUserns {
		a = append(a, "--disable-userns")
	}
	t := translator{host: host, args: a}
	for i := range steps {
		if steps[i].Do == enforce.Seal {
			t.kit()
		}
		if err := t.step(&steps[i]); err != nil {
			return nil, err
		}
	}
	t.kit()
	t.add("--remount-ro", "/")
	if len(t.args) > MaxArguments-16 {
		return nil, fault.New(fault.SandboxUnavailable, fmt.Sprintf(
			"bwrap takes %d words, this plan needs %d: too many hidden files", MaxArguments, len(t.args))).
			WithHint("tether run --provider native -- CMD")
	}
	return t.args, nil
}

type translator struct {
	host   Host
	args   []string
	hasKit bool
}

// kit makes the folder for what is mounted while the command runs, once, before
// anything is sealed.
func (t *translator) kit() {
	if !t.hasKit {
		t.hasKit = true
		t.add("--perms", "0000", "--dir", inner.KitPlace)
	}
}

func (t *translator) add(words ...string) { t.args = append(t.args, words...) }

func (t *translator) step(s *enforce.Step) error {
	if s.Flags&enforce.Gone != 0 && !t.host.Exists(s.Dst) {
		return nil
	}
	perms := fmt.Sprintf("%04o", s.Mode)
	switch s.Do {
	case enforce.Bind:
		if s.Flags&enforce.ReadOnly != 0 {
			t.add("--ro-bind", s.Src, s.Dst)
		} else {
			t.add("--bind", s.Src, s.Dst)
		}
	case enforce.Tmpfs:
		t.add("--perms", perms)
		if s.Size > 0 && t.host.Size {
			t.add("--size", strconv.FormatInt(s.Size, 10))
		}
		t.add("--tmpfs", s.Dst)
	case enforce.Dir:
		if s.Flags&enforce.IsFile != 0 {
			t.add("--perms", "0444", "--file", strconv.Itoa(t.host.Data(nil)), s.Dst)
		} else {
			t.add("--perms", "0755", "--dir", s.Dst)
		}
	case enforce.Symlink:
		t.add("--symlink", s.Src, s.Dst)
	case enforce.File:
		t.add("--perms", "0444", "--ro-bind-data", strconv.Itoa(t.host.Data(s.Content)), s.Dst)
	case enforce.Self:
		switch {
		case isProc(s.Dst):
			// bwrap's own /proc has them read-only, except fs, where nothing
			// can be written without privileges.
		case s.Flags&enforce.ReadOnly != 0:
			t.add("--ro-bind", s.Dst, s.Dst)
		default:
			t.add("--bind", s.Dst, s.Dst)
		}
	case enforce.MaskFile:
		// A plain bind is nodev, so that opening it is EACCES.
		t.add("--ro-bind", "/dev/null", s.Dst)
	case enforce.MaskStub:
		stub, err := t.host.Stub(s.Size, s.MTime, s.Mode)
		if err != nil {
			return err
		}
		t.add("--ro-bind", stub, s.Dst)
	case enforce.MaskDir:
		t.add("--perms", "0000", "--tmpfs", s.Dst, "--remount-ro", s.Dst)
	case enforce.Cover:
		t.add("--perms", "0555", "--tmpfs", s.Dst, "--remount-ro", s.Dst)
	case enforce.Proc:
		t.add("--proc", s.Dst)
	case enforce.Devices:
		t.add("--dev", s.Dst, "--remount-ro", s.Dst)
	case enforce.Seal:
		t.add("--remount-ro", s.Dst)
	case enforce.Sysctl:
	default:
		return fault.New(fault.Internal, "bwrap cannot translate the step "+s.String())
	}
	return nil
}

func isProc(path string) bool { return len(path) > 6 && path[:6] == "/proc/" }

// Reachable settles the optional steps for ids that may not reach what the
// caller can: a bind that is only read is left out, one that is written becomes
// an empty folder in memory.
func Reachable(steps []enforce.Step, reach func(path string) bool) []enforce.Step {
	out := make([]enforce.Step, 0, len(steps))
	for _, s := range steps {
		if s.Do == enforce.Bind && s.Flags&enforce.Optional != 0 && !reach(s.Src) {
			if s.Flags&enforce.ReadOnly != 0 {
				continue
			}
			s = enforce.Step{Do: enforce.Tmpfs, Dst: s.Dst, Mode: 0o700, Flags: s.Flags}
		}
		out = append(out, s)
	}
	return out
}

// Unreachable are the places that Reachable leaves out.
func Unreachable(steps []enforce.Step, reach func(path string) bool) []string {
	var out []string
	for i := range steps {
		if s := &steps[i]; s.Do == enforce.Bind && s.Flags&enforce.Optional != 0 && s.Flags&enforce.ReadOnly != 0 && !reach(s.Src) {
			out = append(out, s.Dst)
		}
	}
	return out
}

// Expected drops the steps that bwrap carries out in its own way, so that the
// inner stage expects exactly the mounts that must be there.
func Expected(steps []enforce.Step) []enforce.Step {
	out := make([]enforce.Step, 0, len(steps))
	for _, s := range steps {
		if s.Do == enforce.Sysctl || s.Do == enforce.Self && isProc(s.Dst) {
			continue
		}
		// bwrap opens the sources itself: no mount is passed.
		s.Content, s.Tree = nil, 0
		out = append(out, s)
	}
	return out
}
