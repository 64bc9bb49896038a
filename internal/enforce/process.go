package enforce

import (
	"errors"
	"os"
)

// ErrMachine says that the machine forbids what a provider needs, whatever the
// workspace holds: then, and only then, another provider may be tried. A cause
// that the content of a workspace can bring about must never choose one.
var ErrMachine = errors.New("this machine does not allow it")

// Job is one start of a command in a planned world.
type Job struct {
	Order Order
	// Stdio are the command's descriptors 0, 1 and 2: pipes or a terminal of
	// ours, never the caller's own files.
	Stdio [3]*os.File
	// Terminal returns them in place of Stdio, where the order asks for a
	// terminal, and is given its master, which is the callee's from then on.
	// It may be called once for each provider that is tried.
	Terminal func(master *os.File) ([3]*os.File, error)
	// Gate takes the sockets that Order.Gate asked for, which are the callee's
	// from then on, and why there is no better link. When it returns the gate
	// serves them. It may be called once for each provider that is tried.
	Gate func(s GateSockets, why string) error
	// Enter, when not nil, is given the provider's process before any of the
	// command runs, and puts it and what it has started where they are limited. Its
	// error is for people.
	Enter func(pid int) error
}

// Process is a command in its sandbox.
type Process interface {
	// PID is the first process of the sandbox, on the host; under a provider
	// that starts it in its own way it is the provider's.
	PID() int
	// Beside are, once the command runs, the processes of ours on the host that run
	// beside it, and are not what its limits are about.
	Beside() []int
	// Signal sends sig to the command's process group, or to every process of
	// the sandbox. A command that has ended is not an error.
	Signal(sig int, all bool)
	// Connect connects to a server on the command's own loopback, once the
	// command runs.
	Connect(port uint16) (*os.File, error)
	// Cover makes sure, while the command runs, that masks and locks hold: steps
	// that name what must lie at their place. The error is ErrStands where this
	// world cannot be changed any more.
	Cover(steps []Step) (Coverage, error)
	// Kill ends every process of the sandbox at once.
	Kill()
	// Ready returns once the command runs, or its program could not be
	// executed; an error means that the sandbox could not be built and that
	// nothing of the command ran.
	Ready() error
	// Wait returns when every process of the sandbox is gone.
	Wait() (Ended, error)
	// Gone is closed when the provider's own processes are gone and reaped,
	// too. It may be a moment after Wait.
	Gone() <-chan struct{}
}

// ErrStands says that nothing can be added to a world that stands.
var ErrStands = errors.New("nothing can be covered while the command runs")

// Coverage says what became of steps that had to hold in a world that stands.
type Coverage struct {
	// Done counts what was missing and is there now, Changed what was not where it
	// was seen, so that another look is needed.
	Done, Changed int
	// Failed counts what could not be done, and Why says why.
	Failed int
	Why    string
}

// Ended says how a command ended.
type Ended struct {
	// Status is its wait status, when it ran.
	Status uint32
	// NoExec is why the program itself could not be executed, zero when it
	// was.
	NoExec int
	// Met are the limits that it was seen to meet; Full is the folder for
	// MetScratch.
	Met  Met
	Full string
}
