// Package inner is the inner stage: the first process in the namespaces of a
// sandbox. It builds the world, restricts itself, checks its own posture,
// starts the command, reaps what the command leaves and reports.
//
// The life of the inner stage (it is process 1 of its process namespace):
//
//	supervisor                       inner stage (pid 1)          command
//	    | clone, exec, maps of ids ------>|
//	    |                                 | ids, undumpable
//	    | order --------------------------| /dev and /proc
//	    |                                 | limits
//	    |                                 | mounts, masks, pivot
//	    |                                 | one thread: no caps, Landlock,
//	    |                                 |   no_new_privs, seccomp, posture
//	    |<------------ started -----------|---- exec from that thread --->|
//	    |------ signal (optional) ------->|------------- kill ----------->|
//	    |<------------- exit -------------|<------------ wait ------------|
//	    |                                 X  the kernel kills all that is left
//
// The other threads of pid 1 keep no capability, either; being undumpable keeps
// them out of the command's reach. What has to be mounted later is mounted by a
// joiner, from outside.
// If the supervisor dies, its end of the control socket closes, pid 1 exits,
// and the kernel kills the whole process namespace.
package inner

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
)

// Name is the argv[0] by which a program knows that it is the inner stage.
const Name = "tether-inner"

// Builder is the first argument by which an inner stage is told that it builds
// the world itself: it begins with the part that is the same for every plan,
// before its order comes.
const Builder = "builder"

// GateBuilder is Builder for an inner stage that also begins to join its network
// to the gate.
const GateBuilder = "gate-builder"

// Launcher is the first argument of the process that puts walls round itself and
// becomes the command, where there are no namespaces. Another inner stage starts
// it and stays outside.
const Launcher = "launcher"

// Undertaker is the first argument of the process that ends what the command
// started, where there are no namespaces.
const Undertaker = "undertaker"

// Holder is the first argument of a process that does nothing until its input
// ends.
const Holder = "holder"

// Joiner is the first argument of the process that goes into a world which
// stands, from outside, and Joined of what it becomes there; OurJoiner and
// OurJoined where an inner stage built that world, and not a launcher.
const (
	Joiner    = "joiner"
	Joined    = "joined"
	OurJoiner = "our-joiner"
	OurJoined = "our-joined"
)

// FDWorld is a joiner's descriptor of the mount namespace that it goes into, FDSteps
// that of the file in memory that it reads steps from, FDKit an OurJoiner's of the
// sources of masks. The first packet on the control socket is the Identity, in ids
// of the world for an OurJoiner and of the host otherwise; those that follow ask to
// Cover. None carries a descriptor: how many of those a user may have on their way
// is one number for all processes, and a command could use it up.
const (
	FDWorld = 4
	FDSteps = 5
	FDKit   = 6
)

// KitPlace is an empty folder without permissions, in a world that a launcher
// builds, for what a joiner needs to have mounted.
const KitPlace = "/run/tether/masks"

// FDOrder and FDSaid are a launcher's descriptors: a memory file with the order,
// and a pipe for the Message that says why there is no command.
const (
	FDOrder = 3
	FDSaid  = 4
)

// GateServes is the answer to Gate.
const GateServes = 'g'

// Wanted says whether args, a program's whole os.Args, ask it to be the inner
// stage: by its own name, or, where a launcher does not let one choose that, by
// the first argument of a program that was started by descriptor.
func Wanted(args []string) bool {
	switch len(args) {
	case 1:
		return args[0] == Name
	case 2:
		return args[0] == Name && slices.Contains([]string{Builder, GateBuilder, Launcher, Undertaker, Holder, Joiner, Joined, OurJoiner, OurJoined}, args[1]) ||
			args[1] == Name && strings.HasPrefix(args[0], "/proc/self/fd/")
	}
	return false
}

// FDControl is the descriptor of the control socket, a SOCK_SEQPACKET. The first
// packet on it carries the order, in a memory file, and the command's 0, 1 and
// 2; those that follow carry the detached mounts that the order asks for.
const FDControl = 3

// FDIdentity is the descriptor of the pipe on which a builder is told its
// Identity, once its ids are mapped.
const FDIdentity = 4

// Identity says which ids a builder takes on.
type Identity struct {
	// Change is false for the ids that it has.
	Change   bool
	UID, GID uint32
}

// identitySize is the length of an encoded Identity, in bytes.
const identitySize = 9

// Encode returns the identity in the form that DecodeIdentity reads.
func (i Identity) Encode() []byte {
	b := make([]byte, 1, identitySize)
	if i.Change {
		b[0] = 1
	}
	b = binary.LittleEndian.AppendUint32(b, i.UID)
	return binary.LittleEndian.AppendUint32(b, i.GID)
}

// DecodeIdentity reads what Encode wrote.
func DecodeIdentity(b []byte) (Identity, error) {
	if len(b) != identitySize || b[0] > 1 {
		return Identity{}, errors.New("malformed identity")
	}
	return Identity{b[0] == 1, binary.LittleEndian.Uint32(b[1:]), binary.LittleEndian.Uint32(b[5:])}, nil
}

// TreesPerPacket is how many descriptors one packet on the control socket
// carries at most (the kernel's SCM_MAX_FD is 253).
const TreesPerPacket = 128

// MaxMessage is the length of the longest message, in bytes. What is said in more
// words is cut.
const MaxMessage = 8 << 10

// Kind is what a message from the inner stage says.
type Kind byte

// The kinds of messages.
const (
	// Terminal: the packet carries the master of a terminal in the sandbox's own
	// /dev/pts; the command's descriptors are expected in answer.
	Terminal Kind = 'T'
	// Gate: the packet carries the sockets of the gate, in the order of
	// enforce.GateSockets; Step is the link, Status is 1 with IPv6, What says why
	// there is no better link. The byte GateServes is expected in answer.
	Gate Kind = 'G'
	// Reached: the answer to Reach; Status is its number. With Errno zero the
	// packet carries a connected socket.
	Reached Kind = 'R'
	// Covered: the answer to Cover; Status is its number. With Errno zero What is
	// a Coverage, otherwise it says why nothing was done.
	Covered Kind = 'V'
	// Started: the command runs. Status is the process id of the undertaker, zero
	// where there is none. Where there is a world of its own, the packet carries its
	// mount namespace, if it can be had, and the sources of masks, if an inner stage
	// built it.
	Started Kind = 'S'
	// Failed: it was not started; What says why. Nothing of it ran.
	Failed Kind = 'F'
	// Changed: as Failed, because something was not what was planned for.
	Changed Kind = 'C'
	// NoExec: the program itself could not be executed; Errno says why.
	NoExec Kind = 'N'
	// Limited: the command has met the limits in Status, an enforce.Met, or was
	// refused a user namespace; What is
	// the folder that is full.
	Limited Kind = 'L'
	// Exited: the command ended with Status, a wait status.
	Exited Kind = 'X'
)

// Message is one message from the inner stage.
type Message struct {
	Kind   Kind
	Step   string // Failed: the verb of the step, or a stage of the inner stage
	Errno  int32
	Status uint32
	What   string
}

// Encode returns the message as one packet.
func (m Message) Encode() []byte {
	if most := MaxMessage - 10 - len(m.Step); len(m.What) > most {
		m.What = m.What[:max(most, 0)]
	}
	b := []byte{byte(m.Kind)}
	b = binary.LittleEndian.AppendUint32(b, uint32(m.Errno))
	b = binary.LittleEndian.AppendUint32(b, m.Status)
	b = append(b, m.Step...)
	b = append(b, 0)
	return append(b, m.What...)
}

var errMessage = errors.New("malformed message from the inner stage")

// DecodeMessage reads one packet.
func DecodeMessage(b []byte) (Message, error) {
	if len(b) < 10 {
		return Message{}, errMessage
	}
	step, what, ok := bytes.Cut(b[9:], []byte{0})
	if !ok {
		return Message{}, errMessage
	}
	return Message{Kind: Kind(b[0]), Errno: int32(binary.LittleEndian.Uint32(b[1:])),
		Status: binary.LittleEndian.Uint32(b[5:]), Step: string(step), What: string(what)}, nil
}

// Coverage says what became of steps that had to hold in a world that stands.
type Coverage struct {
	// Done counts what was missing and is there now, Changed what was not where it
	// was seen, Failed what could not be done, and Why says why.
	Done, Changed, Failed uint32
	Why                   string
}

// Encode returns the coverage in the form that DecodeCoverage reads.
func (c Coverage) Encode() []byte {
	b := binary.LittleEndian.AppendUint32(nil, c.Done)
	b = binary.LittleEndian.AppendUint32(b, c.Changed)
	b = binary.LittleEndian.AppendUint32(b, c.Failed)
	return append(b, c.Why...)
}

// DecodeCoverage reads what Encode wrote.
func DecodeCoverage(b []byte) (Coverage, error) {
	if len(b) < 12 {
		return Coverage{}, errMessage
	}
	return Coverage{Done: binary.LittleEndian.Uint32(b), Changed: binary.LittleEndian.Uint32(b[4:]),
		Failed: binary.LittleEndian.Uint32(b[8:]), Why: string(b[12:])}, nil
}

// A request to the inner stage is two bytes, whom and which signal; or, with
// Reach, that byte, a port and a number, in little endian; or, with Cover, that
// byte and a number.
const (
	// Cover asks for the steps in FDSteps to be carried out in the world that
	// stands: an order that holds nothing else.
	Cover = 'v'
	// CoverLen is the length of such a request.
	CoverLen = 1 + 4
	// Reach asks for a connection to a port of the command's own loopback.
	Reach = 'r'
	// ReachLen is the length of such a request.
	ReachLen = 1 + 2 + 4
	// ToCommand signals the command's process group.
	ToCommand = 'c'
	// ToAll signals every process of the sandbox.
	ToAll = 'a'
)
