package enforce

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/tether-sandbox/tether/internal/enforce/seccomp"
)

// Order is all that the inner stage needs to know. It crosses by descriptor,
// never in arguments or environment, so that no other user can read it.
type Order struct {
	// Build says that the inner stage builds the world from Steps itself
	// (native). Without it the world stands already, and Steps only tell what
	// must be found in it.
	Build bool
	// Bare says that there is no sandbox at all: the inner stage only keeps
	// hold of the process tree.
	Bare bool
	// Walls, when not nil, says that there are no namespaces: a launcher puts
	// walls round itself, by what Steps allow, and becomes the command.
	Walls *WallsOrder
	Steps []Step
	// Argv, Env and Dir are the command's.
	Argv, Env []string
	Dir       string
	// Loopback brings the loopback interface of a new network namespace up.
	Loopback bool
	// Gate, when not nil, asks for the gate's sockets; the command is not
	// started before the gate serves them.
	Gate *GateOrder
	// Wary says that another command can move folders while this sandbox is
	// built.
	Wary bool
	// Terminal makes descriptor 0 the controlling terminal. The inner stage opens
	// it, see package inner.
	Terminal bool
	// ScopeAbstract and ScopeSignal restrict abstract sockets and signals to
	// the sandbox by Landlock, where the kernel can.
	ScopeAbstract, ScopeSignal bool
	// WallFiles closes by Landlock what does not lie in the sandbox, and writing
	// where Steps do not let it; WallSockets, with it, Unix sockets that were made
	// outside, whatever their path.
	WallFiles, WallSockets bool
	// CPUs are the processors that the command may use, when the inner stage was
	// started on fewer of them; none leaves it as it is.
	CPUs []int
	// Limits bound the command.
	Limits Limits
	// Filter is the seccomp program.
	Filter []seccomp.Insn
}

// WallsOrder is what a launcher is told besides.
type WallsOrder struct {
	// Change says that the caller is root, who takes on these ids for good.
	Change   bool
	UID, GID uint32
	// Closed is a file that the command's ids may read and no step allows: the
	// launcher refuses to go on if it can be opened all the same.
	Closed string
	// AnyTCP leaves TCP to the filter.
	AnyTCP bool
	// Gate is the one port of TCP that can be connected to without AnyTCP, zero for
	// none.
	Gate uint16
}

// Limits bound one command, whatever holds it otherwise; zero sets none.
type Limits struct {
	// Processes bounds the processes and threads of the user namespace. Behind
	// walls, where the command shares the caller's, the inner stage ends everything
	// once it sees more; without either it means nothing.
	Processes int64
	// UserProcesses bounds the processes and threads that the user has anywhere,
	// for commands that share the caller's user namespace. The kernel does not hold
	// root to it.
	UserProcesses int64
	// FileBytes, OpenFiles and CPUSeconds hold for each process.
	FileBytes, OpenFiles, CPUSeconds int64
	// CountCPU asks the inner stage to hold CPUSeconds for all processes
	// together, where nobody else counts for it.
	CountCPU bool
	// ScratchBytes is what the steps say of folders in memory, for providers
	// that may not be able to.
	ScratchBytes int64
}

// OwnThreads is how many threads the inner stage may come to have, which count
// as the command's do.
const OwnThreads = 24

// LateThreads is how many of them may come after the command has started, and
// those of what covers late secrets in its user namespace (8 and 2, as measured):
// without them a command with a small limit could start nothing more.
const LateThreads = 10

// Met says which limits a command has met, as far as that can be seen.
type Met uint32

// The limits that can be seen to be met.
const (
	MetProcesses Met = 1 << iota
	MetFileSize
	MetCPU
	MetScratch
	MetMemory
	// MetTreeCPU: all processes together, and not one alone, met it.
	MetTreeCPU
	// MetNamespaces is no limit: the command wanted a user namespace, in which
	// sandboxes are built, and was refused.
	MetNamespaces
	// MetUncounted: what all processes together have used cannot be counted any more.
	MetUncounted
)

// maxCPUs is more than any kernel has.
const maxCPUs = 1 << 16

const orderMagic = "tether-order-1\n"

var errOrder = errors.New("malformed order")

// Encode returns the order in the form that Decode reads.
func (o *Order) Encode() []byte {
	e := make(encoder, 0, 4096+96*len(o.Steps)+8*len(o.Filter))
	e = append(e, orderMagic...)
	e.bool(o.Build)
	e.bool(o.Bare)
	e.bool(o.Loopback)
	e.bool(o.Wary)
	e.bool(o.Terminal)
	e.bool(o.ScopeAbstract)
	e.bool(o.ScopeSignal)
	e.bool(o.WallFiles)
	e.bool(o.WallSockets)
	for _, n := range [...]int64{o.Limits.Processes, o.Limits.FileBytes, o.Limits.OpenFiles, o.Limits.CPUSeconds, o.Limits.ScratchBytes} {
		e.num(uint64(n))
	}
	e.bool(o.Limits.CountCPU)
	e.num(uint64(o.Limits.UserProcesses))
	e.str(o.Dir)
	e.strs(o.Argv)
	e.strs(o.Env)
	e.num(uint64(len(o.CPUs)))
	for _, n := range o.CPUs {
		e.num(uint64(n))
	}
	e.bool(o.Gate != nil)
	if o.Gate != nil {
		e.ports(o.Gate.Ports)
		e.ports(o.Gate.Local)
		e.strs(o.Gate.Env)
	}
	e.bool(o.Walls != nil)
	if w := o.Walls; w != nil {
		e.bool(w.Change)
		e.num(uint64(w.UID))
		e.num(uint64(w.GID))
		e.str(w.Closed)
		e.bool(w.AnyTCP)
		e.num(uint64(w.Gate))
	}
	e.num(uint64(len(o.Filter)))
	for _, i := range o.Filter {
		e.num(uint64(i.Code)<<48 | uint64(i.Jt)<<40 | uint64(i.Jf)<<32 | uint64(i.K))
	}
	e.num(uint64(len(o.Steps)))
	for i := range o.Steps {
		e.step(&o.Steps[i])
	}
	return e
}

// DecodeOrder reads what Encode wrote. It never panics, whatever the bytes.
func DecodeOrder(b []byte) (*Order, error) {
	if len(b) < len(orderMagic) || string(b[:len(orderMagic)]) != orderMagic {
		return nil, errOrder
	}
	d := decoder{rest: b[len(orderMagic):]}
	o := &Order{Build: d.bool(), Bare: d.bool(), Loopback: d.bool(), Wary: d.bool(), Terminal: d.bool(),
		ScopeAbstract: d.bool(), ScopeSignal: d.bool(), WallFiles: d.bool(), WallSockets: d.bool(),
		Limits: Limits{Processes: int64(d.num()), FileBytes: int64(d.num()), OpenFiles: int64(d.num()), CPUSeconds: int64(d.num()),
			ScratchBytes: int64(d.num()), CountCPU: d.bool(), UserProcesses: int64(d.num())}, Dir: d.str(), Argv: d.strs(), Env: d.strs()}
	for range d.count() {
		n := d.num()
		d.bad = d.bad || n >= maxCPUs
		o.CPUs = append(o.CPUs, int(n))
	}
	if d.bool() {
		o.Gate = &GateOrder{Ports: d.ports(), Local: d.ports(), Env: d.strs()}
	}
	if d.bool() {
		o.Walls = &WallsOrder{Change: d.bool(), UID: d.id(), GID: d.id(), Closed: d.str(), AnyTCP: d.bool(), Gate: d.port()}
	}
	for range d.count() {
		v := d.num()
		o.Filter = append(o.Filter, seccomp.Insn{Code: uint16(v >> 48), Jt: uint8(v >> 40), Jf: uint8(v >> 32), K: uint32(v)})
	}
	for range d.count() {
		o.Steps = append(o.Steps, d.step())
		if d.bad {
			break
		}
	}
	if d.bad || len(d.rest) != 0 {
		return nil, errOrder
	}
	return o, nil
}

type encoder []byte

func (e *encoder) num(v uint64) { *e = binary.AppendUvarint(*e, v) }
func (e *encoder) bool(b bool) {
	v := byte(0)
	if b {
		v = 1
	}
	*e = append(*e, v)
}
func (e *encoder) str(s string) {
	e.num(uint64(len(s)))
	*e = append(*e, s...)
}
func (e *encoder) strs(l []string) {
	e.num(uint64(len(l)))
	for _, s := range l {
		e.str(s)
	}
}
func (e *encoder) ports(l []uint16) {
	e.num(uint64(len(l)))
	for _, p := range l {
		e.num(uint64(p))
	}
}
func (e *encoder) step(s *Step) {
	*e = append(*e, byte(s.Do))
	e.num(uint64(s.Flags))
	e.str(s.Dst)
	e.str(s.Src)
	e.num(s.Dev)
	e.num(s.Ino)
	e.num(uint64(s.Tree))
	e.num(uint64(s.Mode))
	e.num(uint64(s.Size))
	e.num(uint64(s.MTime))
	e.str(string(s.Content))
}

type decoder struct {
	rest []byte
	bad  bool
}

func (d *decoder) num() uint64 {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 {
		d.bad, d.rest = true, nil
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

// count reads a number of elements, each of which takes at least one byte.
func (d *decoder) count() int {
	v := d.num()
	if v > uint64(len(d.rest)) || v > math.MaxInt32 {
		d.bad, d.rest = true, nil
		return 0
	}
	return int(v)
}
func (d *decoder) bool() bool {
	if len(d.rest) == 0 || d.rest[0] > 1 {
		d.bad, d.rest = true, nil
		return false
	}
	b := d.rest[0] == 1
	d.rest = d.rest[1:]
	return b
}
func (d *decoder) str() string {
	n := d.count()
	s := string(d.rest[:n])
	d.rest = d.rest[n:]
	return s
}
func (d *decoder) id() uint32 {
	v := d.num()
	d.bad = d.bad || v > math.MaxUint32
	return uint32(v)
}
func (d *decoder) strs() []string {
	n := d.count()
	if n == 0 {
		return nil
	}
	l := make([]string, 0, n)
	for range n {
		l = append(l, d.str())
		if d.bad {
			return nil
		}
	}
	return l
}
func (d *decoder) port() uint16 {
	p := d.num()
	d.bad = d.bad || p > math.MaxUint16
	return uint16(p)
}
func (d *decoder) ports() []uint16 {
	var l []uint16
	for range d.count() {
		l = append(l, d.port())
	}
	return l
}
func (d *decoder) step() Step {
	if len(d.rest) == 0 {
		d.bad = true
		return Step{}
	}
	s := Step{Do: Verb(d.rest[0])}
	d.rest = d.rest[1:]
	s.Flags = Flags(d.num())
	s.Dst, s.Src = d.str(), d.str()
	s.Dev, s.Ino = d.num(), d.num()
	s.Tree, s.Mode = uint32(d.num()), uint32(d.num())
	s.Size, s.MTime = int64(d.num()), int64(d.num())
	if c := d.str(); c != "" {
		s.Content = []byte(c)
	}
	return s
}
