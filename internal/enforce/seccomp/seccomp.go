// Package seccomp narrows the kernel that a command can talk to: a table of
// system calls that are refused, each with its reason and with the error that
// makes ordinary programs fall back, compiled to a filter of the kernel's
// classic BPF.
//
// The filter is a second wall. Namespaces, mounts and dropped privileges make
// the guarantees; the filter takes away kernel code that a command has no need
// of, and the few doors that those walls leave open, such as pushing input into
// a terminal. It is a list of what is refused, not of what is allowed: a call
// that no rule names passes, except that numbers which this package does not
// know ([Ceiling] and the gaps below it), every number of a foreign
// architecture and the x32 numbers answer ENOSYS, as on an older kernel.
//
// What it cannot do: a filter sees numbers and register values, never memory.
// It cannot judge paths, addresses or clone3's flags (hence clone3 is refused
// as a whole), and a refused call leaves no trace for a report, but for those
// that are [Told] of to whoever listens ([Listen]). Set-id bits in chmod and open
// are not its business either; what they did is found after the command settles.
//
// Cost: since Linux 5.11 the kernel remembers, per filter, the calls that pass
// without a look at their arguments, and does not run the filter for them. The
// compiled form keeps to the instructions that this cache understands, so that
// read, write, mmap, futex and all but a handful of others pay only for the
// look into the cache, some tens of nanoseconds; ioctl, clone, socket and the
// few more that are looked at pay about a hundred.
//
// Numbers and argument types are those of Linux's own tables as published with
// golang.org/x/sys/unix; seccomp(2) describes the machine.
package seccomp

import "strconv"

// Options say what a filter leaves open. The zero value with an Arch is the
// strictest filter.
type Options struct {
	// Arch is the Go name of the architecture: "amd64" or "arm64".
	Arch string
	// Inet leaves IPv4, IPv6 and routing information open. Without it even
	// loopback is refused; a sandbox with a network namespace of its own
	// grants it.
	Inet bool
	// TCP leaves clients of TCP open, and no other use of IPv4 and IPv6: for
	// walls whose rules are about connect(2) on TCP and about nothing else. Inet
	// includes it.
	TCP bool
	// Unix leaves Unix sockets open. Without it only pairs that are born
	// connected can be made.
	Unix bool
	// NestedUserNS leaves user namespaces, and those that they own, open:
	// pid, network, ipc, uts, cgroup and time. Mount namespaces stay closed.
	NestedUserNS bool
	// NestedMounts leaves mount namespaces and the mount calls open. A
	// command can then take apart the mounts that hide its files, unless
	// something else prevents it.
	NestedMounts bool
	// SetGID leaves set-gid bits open, which git's shared repositories put on
	// folders. Set-uid bits are always refused.
	SetGID bool
	// Namespaced leaves System V IPC, POSIX queues and the limits of other
	// processes open: a sandbox with ipc and process namespaces of its own
	// grants it.
	Namespaced bool
	// Tell gives what is Told to a listener, which must answer: see Listen.
	Tell bool
}

// granted is the set of rules' conditions that o meets.
func (o Options) granted() Lift {
	var l Lift
	for _, f := range [...]struct {
		on  bool
		bit Lift
	}{{o.Inet, LiftInet}, {o.Inet || o.TCP, LiftTCP}, {o.Unix, LiftUnix}, {o.NestedUserNS, LiftUserNS}, {o.NestedMounts, LiftMounts}, {o.SetGID, LiftSetGID}, {o.Namespaced, LiftNamespaced}} {
		if f.on {
			l |= f.bit
		}
	}
	return l
}

// Lift names the options that switch a rule off.
type Lift uint8

// The reasons to lift a rule.
const (
	LiftInet Lift = 1 << iota
	LiftUnix
	LiftUserNS
	LiftMounts
	LiftSetGID
	LiftNamespaced
	LiftTCP
)

// Rule refuses a system call with an error.
type Rule struct {
	// Call is the name of the system call.
	Call string
	// AMD64 and ARM64 are its numbers, negative where it does not exist.
	AMD64, ARM64 int
	// Errno is what the caller gets.
	Errno Errno
	// Lift names the options that, all together, switch the rule off. None
	// means that nothing does.
	Lift Lift
	// When must hold as a whole for the rule to apply; empty always holds.
	// Of several rules for one call the first that applies counts.
	When []Cond
	// Why is the reason, in one line.
	Why string
}

// Number returns the rule's number on arch; ok is false where the call does
// not exist.
func (r Rule) Number(arch string) (nr uint32, ok bool) {
	n := -1
	switch arch {
	case "amd64":
		n = r.AMD64
	case "arm64":
		n = r.ARM64
	}
	return uint32(max(n, 0)), n >= 0
}

// String prints the rule on one line: call, error, reason.
func (r Rule) String() string { return r.Call + ": " + r.Errno.String() + ": " + r.Why }

// Cond looks at one half of an argument.
type Cond struct {
	// Arg is the argument's index, 0 to 5.
	Arg uint8
	// High chooses the upper 32 bits. The kernel reads an int from the lower
	// half alone, whatever the upper one holds, and so does a Cond for it.
	High bool
	// Mask chooses bits of the half.
	Mask uint32
	// Not turns the condition round.
	Not bool
	// In holds the values one of which the masked half must have.
	In []uint32
}

// Errno is an error number of Linux, the same on amd64 and arm64.
type Errno uint16

// The errors that rules give.
const (
	// Pretended is success without anything being done.
	Pretended       Errno = 0
	EPERM           Errno = 1
	EACCES          Errno = 13
	EINVAL          Errno = 22
	ENOSYS          Errno = 38
	EPROTONOSUPPORT Errno = 93
	ESOCKTNOSUPPORT Errno = 94
	EOPNOTSUPP      Errno = 95
	EAFNOSUPPORT    Errno = 97
	// Told is EPERM, which under Options.Tell a listener gives.
	Told Errno = 1<<15 | EPERM
)

// String returns the symbolic name.
func (e Errno) String() string {
	switch e {
	case Pretended:
		return "success"
	case EPERM:
		return "EPERM"
	case EACCES:
		return "EACCES"
	case EINVAL:
		return "EINVAL"
	case ENOSYS:
		return "ENOSYS"
	case EPROTONOSUPPORT:
		return "EPROTONOSUPPORT"
	case ESOCKTNOSUPPORT:
		return "ESOCKTNOSUPPORT"
	case EOPNOTSUPP:
		return "EOPNOTSUPP"
	case EAFNOSUPPORT:
		return "EAFNOSUPPORT"
	case Told:
		return "EPERM, told"
	}
	return "errno " + strconv.Itoa(int(e))
}

// Insn is one instruction of classic BPF, in the layout of struct sock_filter.
type Insn struct {
	Code   uint16
	Jt, Jf uint8
	K      uint32
}
