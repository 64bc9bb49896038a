// Package machine says what a machine's settings mean for Tether: which of them
// stands in the way of what, and the exact command that changes it. The facts
// are found by [Look]; what follows from them is pure.
package machine

import (
	"slices"
	"strings"

	"github.com/tether-sandbox/tether/policy"
)

// Facts are what was found of a machine. Zero values mean that a thing is not
// there or not known.
type Facts struct {
	// OS is the Go name of the system; what does not say otherwise is Linux's.
	OS string
	// Release is the kernel's, and Version its build, as uname(2) tells them.
	Release, Version string
	// Distribution is ID, or the first of ID_LIKE where that says more, of
	// os-release(5).
	Distribution string
	// Program is the path of this program.
	Program string
	// Privileged says that we may do what needs CAP_SYS_ADMIN.
	Privileged bool
	// MaxUserNS, UserNSClone and AppArmorUserNS are the settings
	// user.max_user_namespaces, kernel.unprivileged_userns_clone and
	// kernel.apparmor_restrict_unprivileged_userns; empty where there is none.
	MaxUserNS, UserNSClone, AppArmorUserNS string
	// Filter says that a system call filter is around us.
	Filter bool
	// Container is docker, podman, kubernetes, or another word for what we run
	// in; empty: nothing that is known.
	Container string
	// CoveredProc says that parts of /proc are covered, as in a container.
	CoveredProc bool
	// LandlockABI is the version of Landlock; zero: none. LandlockOff says that
	// the kernel has it and was started without. LSM are the kernel's security
	// modules in their order.
	LandlockABI int
	LandlockOff bool
	LSM         string
	// CgroupV2 says that the one hierarchy of version 2 is at /sys/fs/cgroup, with
	// these Controllers. Delegated are those that the caller's own manager has, which
	// is there if Manager says so.
	CgroupV2               bool
	Controllers, Delegated string
	Manager                bool
	// Systemd says that it runs the machine.
	Systemd bool
	// Groups are what was found of control groups by whoever makes them.
	Groups Groups
	// WSLName is the name of the distribution under WSL.
	WSLName string
	// SandboxExecWhy says why there is no sandbox-exec of the system's to be
	// trusted (macOS); empty: there is one.
	SandboxExecWhy string
	// Bwrap is the path of a bwrap that may be trusted; BwrapWhy why there is none.
	Bwrap, BwrapWhy string
	// BareExplicit says that git takes no folder for a repository because it looks
	// like one.
	BareExplicit bool
}

// Groups says what control groups can do for a command of the caller's.
type Groups struct {
	// Memory and Processes say whether these can be limited, Time whether processor
	// time can be counted, and Means by what: control groups of version 1, say.
	Memory, Processes, Time bool
	Means                   string
	// Why says why memory cannot be limited, Way how a command is typed so that it
	// can be; empty where no way is known.
	Why, Way string
}

// Advice is one thing found, and what changes it where it stands in the way.
type Advice struct {
	// What was found.
	What string
	// Good is false for what lowers a grade or keeps a provider from working. What
	// is good may still have a Fix that raises a grade: a flag to be typed.
	Good bool
	// Fix is what to type, in lines for a shell; empty when nothing helps.
	Fix string
	// Then is what the change needs to come into force, in words.
	Then string
	// Blocks names the providers that do not work because of it.
	Blocks []string
	// Raises are the guarantees whose grades the fix raises, apart from making a
	// provider work.
	Raises []policy.Guarantee
}

// Hint is one line to type: the fix, or the verb that prints all of it.
func (a Advice) Hint() string {
	first, _, more := strings.Cut(a.Fix, "\n")
	if more && a.Then != onceOnly {
		return "tether doctor --fix"
	}
	return first
}

// Blame is the first thing that keeps a provider from working.
func Blame(f Facts, provider string) (Advice, bool) {
	for _, a := range Advise(f) {
		if !a.Good && slices.Contains(a.Blocks, provider) {
			return a, true
		}
	}
	return Advice{}, false
}
