// Package policy says what may happen: profiles, roots, protected files,
// network, limits. It is pure: no file is opened, no link resolved, nothing of
// the machine read. Pinning a policy to a machine is the work of a plan.
//
// Zero is strictest. Policy{} allows nothing; every widening is spelled out.
// [Default] gives what a user gets who says nothing.
//
// What it compares, it compares by spelling: a link, a bind mount or a file
// system that folds names is not seen here. The plan, which knows the files,
// checks again by identity. Paths are those of the confined world, so they
// are written with slashes on every system.
package policy

import "time"

// Policy is what may happen, as a plain value, in the spelling it was given.
// Two policies compare with [Policy.Within] and combine with [Meet].
type Policy struct {
	// Profile is the broad mode; the zero value allows nothing at all.
	Profile Profile
	// Workspace is the folder that the work is about. It is read under every
	// profile but Nothing, and written under WorkspaceWrite.
	Workspace string

	// Reads says what of the machine may be read besides the workspace.
	Reads Reads
	// Read adds roots that may be read; Write roots that may be read and
	// written. They are absolute, or begin with "~/", which is not expanded
	// here: the caller does that.
	Read, Write []string

	// Protect says which files inside the roots stay closed or locked.
	Protect Protect
	// Commands says which commands may be started under ReadOnly.
	Commands Commands
	// Nested lets a command build sandboxes of its own: user namespaces, mount
	// namespaces, and /proc in them. It costs the grade Complete of Write and
	// Secrets, see [Policy.Required].
	Nested bool
	// Network says where bytes may go.
	Network Network
	// Env says which variables of the caller reach the command.
	Env Env
	// Home says what HOME is inside.
	Home Home
	// Limits bound one command. A zero limit is the built-in one.
	Limits Limits
	// Accept lowers what a guarantee must at least be graded; a guarantee
	// that is not named keeps its built-in requirement (see
	// [Policy.Required], also for IPC, which is asked for here).
	Accept map[Guarantee]Grade
}

// Profile is the broad mode of a policy.
type Profile int

// The profiles, from strict to wide.
const (
	// Nothing runs nothing. It is the zero value.
	Nothing Profile = iota
	// ReadOnly reads the workspace and writes nowhere; commands come from an
	// inspection allowlist unless Commands says otherwise.
	ReadOnly
	// WorkspaceWrite also writes in the workspace, the added roots and a
	// private /tmp.
	WorkspaceWrite
	// FullAccess has no jail. Every guarantee is None.
	FullAccess
)

// Reads says what of the machine a command may read.
type Reads struct {
	// System shows the system's folders by allowlist (/usr, /etc, ...).
	System bool
	// Only, when System is false, is exactly what is shown, besides the
	// workspace and what the dynamic linker needs.
	Only []string
}

// Protect names the files that stay closed inside every root. Patterns match
// one base name without case, or, when they hold a slash, a path relative to
// the root; see [CompilePatterns]. What is hidden and locked without being
// named is in [HiddenName] and [LockedName].
type Protect struct {
	// Hidden adds patterns whose files can be neither read nor written.
	Hidden []string
	// Locked adds patterns whose files can be read and not written.
	Locked []string
	// AllowConfig lifts the built-in lock of these paths and of what lies
	// below them (never a hidden one, never git's own or Tether's). A path is
	// relative to every root, or absolute.
	AllowConfig []string
}

// Commands says which commands ReadOnly may start.
type Commands int

// The values of Commands.
const (
	// Inspection allows the documented inspection commands only.
	Inspection Commands = iota
	// Any allows every command; the kernel still stops the writes.
	Any
)

// NetworkMode says how a command meets the network.
type NetworkMode int

// The modes, from strict to wide.
const (
	// Offline has a private loopback and nothing else.
	Offline NetworkMode = iota
	// Gated passes every connection through the gate.
	Gated
	// Open shares the host's network.
	Open
)

// Network says where bytes may go. Rules are kept in the spelling given; the
// gate parses them.
type Network struct {
	Mode NetworkMode
	// Public allows public addresses on the base ports besides Allow.
	Public bool
	// Allow and Deny are rules; deny beats allow.
	Allow, Deny []string
	// AnySNI lets TLS through that names no host or hides the name, where only
	// hosts in Allow are reached. It means nothing with Public, where no name
	// inside of a connection is looked at.
	AnySNI bool
	// Upstream is the URL of an HTTP proxy, without credentials, through which the
	// gate reaches public hosts, or UpstreamEnvironment; empty is none. The proxy
	// resolves the names, so that their addresses are not judged.
	Upstream string
	// Publish lists ports inside that the host may reach.
	Publish []uint16
}

// UpstreamEnvironment is a value of Network.Upstream: the proxies that the
// caller's variables HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY name.
const UpstreamEnvironment = "environment"

// Env says which of the caller's variables reach a command.
type Env struct {
	// Pass names variables handed through from the caller, also those that
	// are otherwise refused.
	Pass []string
	// Set gives variables their value. It beats Pass.
	Set map[string]string
	// NoScrub hands the caller's whole environment through; FullAccess only.
	NoScrub bool
	// Redact names variables whose values are secrets whatever they look like:
	// they are kept out of everything that comes back, also where the variable
	// itself is passed.
	Redact []string
}

// Home says what HOME is inside.
type Home int

// The values of Home.
const (
	// HomePrivate gives a private, empty folder.
	HomePrivate Home = iota
	// HomeWorkspace names the workspace.
	HomeWorkspace
)

// The built-in limits, which a zero in [Limits] stands for.
const (
	BuiltinTime        = 120 * time.Second
	BuiltinOutputBytes = 1 << 20
	// BuiltinProcesses leaves room for large parallel builds and browsers, and
	// is a small part of what a machine can have (32,768 ids at least), so that
	// one that only ever forks does not take them all.
	BuiltinProcesses = 4096
	// BuiltinFreeDisk is the most; a disk smaller than 20 GiB keeps 5 % free.
	BuiltinFreeDisk = 1 << 30
)

// LeastOpenFiles is the smallest limit of open files: with fewer no program
// starts.
const LeastOpenFiles = 16

// Limits bound one command. Zero means the built-in limit; where none is named
// that is whatever the machine has. All but Time, OutputBytes and FreeDisk are
// enforced with the kernel's help, and that is required (see [Policy.Required]) once one
// of them is set.
type Limits struct {
	// Time ends the command. Built-in: 120 s in the library, in MCP and with
	// --json; none on a streaming command line. Comparing counts zero as
	// [BuiltinTime].
	Time time.Duration
	// OutputBytes is what is kept of stdout and of stderr, each. Built-in: 1 MiB.
	OutputBytes int64
	// Processes is how many processes and threads may exist at once. Built-in:
	// [BuiltinProcesses].
	Processes int64
	// MemoryBytes is the memory of the whole tree, private folders in memory
	// included.
	MemoryBytes int64
	// FileBytes is the size of one written file.
	FileBytes int64
	// OpenFiles is how many descriptors each process may have, at least
	// [LeastOpenFiles]. The caller's own limit is never exceeded.
	OpenFiles int64
	// CPU is the processor time of the whole tree, in whole seconds, rounded up.
	CPU time.Duration
	// ScratchBytes is what each private folder in memory (/tmp, /var/tmp,
	// /dev/shm, a private home) may hold. It only lowers the built-in limit, a
	// share of the machine's memory.
	ScratchBytes int64
	// FreeDisk is how many bytes stay free on each disk of the host that the
	// command may write, and of its files the same share: a command that runs
	// when less is left is ended. More is stricter. A disk that has less from the
	// beginning keeps half of that. Built-in: [BuiltinFreeDisk], or less on a
	// small disk, for which comparing counts zero as one byte less.
	FreeDisk int64
}

// kernel tells whether a limit is set that is enforced with the kernel's help.
func (l Limits) kernel() bool {
	l.Time, l.OutputBytes, l.FreeDisk = 0, 0, 0
	return l != Limits{}
}

// Guarantee is one promise that a provider is graded on.
type Guarantee int

// The guarantees.
const (
	Read Guarantee = iota
	Write
	Secrets
	NetworkGuarantee
	Process
	IPC
	LimitsGuarantee
)

// Guarantees lists all of them, in the order of reports.
var Guarantees = [...]Guarantee{Read, Write, Secrets, NetworkGuarantee, Process, IPC, LimitsGuarantee}

// Grade says how far a guarantee holds.
type Grade int

// The grades.
const (
	// None: nothing holds it.
	None Grade = iota
	// Partial: something holds it, with known gaps.
	Partial
	// Complete: the kernel stops every operation against it.
	Complete
)
