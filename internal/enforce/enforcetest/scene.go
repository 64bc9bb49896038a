package enforcetest

// Handover names a socket in the workspace: who listens there is handed two
// folders by the host, as careless programs do.
const Handover = "handover.sock"

// Scene is what an attacker knows: all of it, so that only the sandbox stands
// between it and its aim.
type Scene struct {
	// Control says that there is no sandbox.
	Control bool
	// Real says that the control runs as real root.
	Real bool
	// Secret stands in every file, variable and memory that must stay closed.
	Secret string
	// Workspace is writable; ReadOnly is a root that the policy adds for
	// reading; Outside is shown by nothing; State is Tether's own folder.
	Workspace, ReadOnly, Outside, State string
	// Home is a file in the caller's home.
	Home string
	// Victim is a process of the caller; Address is where the secret lies in
	// its memory. Supervisor is who started the sandbox.
	Victim, Supervisor int
	Address            uint64
	// Handle is the file handle of the file outside, HiddenHandle that of the
	// hidden file; Kind is their type.
	Handle, HiddenHandle []byte
	Kind                 int32
	// Disk is a block device, by its number; 0 where there is none.
	Disk uint64
	// TCP, TCP6 and UDP are ports on the host's loopback where the secret is
	// told to whoever asks; Near and Metadata are addresses of the host with
	// the same TCP port, empty where there are none.
	TCP, TCP6, UDP int
	Near, Metadata string
	// Abstract names a socket without a file; Sockets are files of sockets.
	Abstract string
	Sockets  []string
	// Shm is the key of a segment, Queue the name of a message queue, both of
	// the host; 0 and empty where there are none.
	Shm   int
	Queue string
	// ShmFile is a file in the host's /dev/shm, Pty a terminal of the host.
	ShmFile, Pty string
	// Key describes a key on the user's keyring; empty where there is none.
	Key string
	// Limits are those of the setup Limited.
	Processes, FileBytes int64
}
