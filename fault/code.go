package fault

// Code names one kind of failure. The set only grows: a code is never renamed
// and never used for something else.
type Code string

// The codes.
const (
	// SandboxUnavailable: no provider on this machine can build a jail for
	// this policy at the grades that it requires.
	SandboxUnavailable Code = "SANDBOX_UNAVAILABLE"
	// IsolationUnavailable: a provider that can build the jail was refused
	// something by the kernel this time.
	IsolationUnavailable Code = "ISOLATION_UNAVAILABLE"
	// SandboxBadWorkspace: the workspace is missing, not a directory, or so
	// wide (/, a home, an ancestor of one) that it would protect nothing.
	SandboxBadWorkspace Code = "SANDBOX_BAD_WORKSPACE"
	// SandboxNarrowDenied: a running turn asked for a narrower mode.
	SandboxNarrowDenied Code = "SANDBOX_NARROW_DENIED"
	// SandboxSplitWorld: capabilities of one session point to different worlds.
	SandboxSplitWorld Code = "SANDBOX_SPLIT_WORLD"
	// SandboxViolation: a path lies outside the roots, is protected, or is not
	// writable under this policy; or a command wanted to build a sandbox of its own.
	SandboxViolation Code = "SANDBOX_VIOLATION"
	// CommandDenied: the guard refuses this command line.
	CommandDenied Code = "COMMAND_DENIED"
	// CommandNotFound: there is no such program inside the sandbox.
	CommandNotFound Code = "COMMAND_NOT_FOUND"
	// CommandNotExecutable: the program was found but cannot be executed.
	CommandNotExecutable Code = "COMMAND_NOT_EXECUTABLE"
	// PolicyInvalid: a policy value, file or flag is malformed or contradicts
	// itself.
	PolicyInvalid Code = "POLICY_INVALID"
	// UsageInvalid: the command line of tether itself is wrong.
	UsageInvalid Code = "USAGE_INVALID"
	// LimitTime: the time limit ended the command.
	LimitTime Code = "LIMIT_TIME"
	// LimitOutput: output beyond the limit was dropped.
	LimitOutput Code = "LIMIT_OUTPUT"
	// LimitMemory: the memory limit ended the command, or left too little for it to start.
	LimitMemory Code = "LIMIT_MEMORY"
	// LimitProcesses: a process or thread was not made for the limit.
	LimitProcesses Code = "LIMIT_PROCESSES"
	// LimitCPU: the limit of processor time ended a process.
	LimitCPU Code = "LIMIT_CPU"
	// LimitFileSize: the limit of a file's size ended a process.
	LimitFileSize Code = "LIMIT_FILE_SIZE"
	// LimitScratch: a private folder was full, or holds more than it may.
	LimitScratch Code = "LIMIT_SCRATCH"
	// LimitDisk: too little was left free on a disk that the command may write.
	LimitDisk Code = "LIMIT_DISK"
	// OutputLost: the command ran, and its output could not be delivered.
	OutputLost Code = "OUTPUT_LOST"
	// LimitUnenforceable: a limit was asked for that cannot be enforced here.
	LimitUnenforceable Code = "LIMIT_UNENFORCEABLE"
	// ApprovalDenied: what was wanted needs an approval and did not get one.
	ApprovalDenied Code = "APPROVAL_DENIED"
	// StoreUnavailable: the log cannot be opened, read or written here; what
	// was to be recorded was not, not even in part.
	StoreUnavailable Code = "STORE_UNAVAILABLE"
	// StoreCorrupt: a record of the log is not what was written there.
	StoreCorrupt Code = "STORE_CORRUPT"
	// FileNotFound: there is no such file or folder.
	FileNotFound Code = "FILE_NOT_FOUND"
	// FileMismatch: a file does not hold what an edit expects of it, or exists
	// where a new one was wanted.
	FileMismatch Code = "FILE_MISMATCH"
	// FileUnfit: a file is of a kind, size or encoding that the request cannot
	// work on.
	FileUnfit Code = "FILE_UNFIT"
	// FileFailed: the operating system refused, or failed at, an operation on
	// a file that the policy allows.
	FileFailed Code = "FILE_FAILED"
	// Cancelled: the caller took the call back; what it had started was killed.
	Cancelled Code = "CANCELLED"
	// EgressDenied: the policy lets no bytes go there.
	EgressDenied Code = "EGRESS_DENIED"
	// EgressSecret: what was to leave holds a secret.
	EgressSecret Code = "EGRESS_SECRET"
	// FetchFailed: a web request failed, or its answer cannot be used.
	FetchFailed Code = "FETCH_FAILED"
	// LimitResponse: a web answer is larger than the limit.
	LimitResponse Code = "LIMIT_RESPONSE"
	// TextRedacted: a text that was to be written holds a mark, [REDACTED:NAME],
	// where the original has a secret.
	TextRedacted Code = "TEXT_REDACTED"
	// EmbedMissing: the embedding program did not lend its binary to the inner
	// stage (see tether.Inner).
	EmbedMissing Code = "EMBED_MISSING"
	// McpMissing: the program that serves MCP is not where it is looked for.
	McpMissing Code = "MCP_MISSING"
	// Internal: a fault of Tether's own; please report it.
	Internal Code = "INTERNAL"
)
