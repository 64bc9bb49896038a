package inner

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/internal/enforce"
)

// stage says in which part of the inner stage something failed.
type stage struct {
	name string
	err  error
}

func (s *stage) Error() string { return s.name + ": " + s.err.Error() }
func (s *stage) Unwrap() error { return s.err }

// Main runs the inner stage and never returns.
func Main() {
	if len(os.Args) == 2 {
		switch os.Args[1] {
		case Launcher:
			launcher()
		case Holder:
			_, _ = io.Copy(io.Discard, os.Stdin)
			os.Exit(0)
		case Undertaker:
			undertake()
		case Joiner, OurJoiner:
			joiner(os.Args[1] == OurJoiner)
		case Joined, OurJoined:
			joined(os.Args[1] == OurJoined)
		}
	}
	gated := len(os.Args) == 2 && os.Args[1] == GateBuilder
	builder := gated || len(os.Args) == 2 && os.Args[1] == Builder
	if builder {
		// Our ids are nobody's until they are mapped, from outside, by whoever
		// must be able to open our files in /proc for it.
		if err := identify(); err != nil {
			os.Exit(125)
		}
	}
	firstToGo()
	// Then, out of reach: until this is done nothing of the command exists, and
	// afterwards /proc/1 is closed to it.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		os.Exit(125)
	}
	unix.CloseOnExec(FDControl)
	// Signals are for the command, never for us. They are caught and not
	// ignored, since the command would inherit an ignored one.
	signal.Notify(make(chan os.Signal, 1), unix.SIGINT, unix.SIGTERM, unix.SIGQUIT, unix.SIGTSTP, unix.SIGTTIN,
		unix.SIGTTOU, unix.SIGHUP, unix.SIGPIPE)
	if os.Getpid() == 1 {
		deafen()
	}
	var u undertaker
	status, err := run(builder, gated, &u)
	if err != nil {
		send(failure(err))
		os.Exit(125)
	}
	killTree(&u)
	send(Message{Kind: Exited, Status: uint32(status)})
	os.Exit(0)
}

// identify waits until our ids are mapped and takes on those that we are told.
func identify() error {
	f := os.NewFile(FDIdentity, "identity")
	raw, err := io.ReadAll(f)
	f.Close()
	if err != nil {
		return err
	}
	id, err := DecodeIdentity(raw)
	if err != nil || !id.Change {
		return err
	}
	if err := syscall.Setgroups(nil); err != nil {
		return err
	}
	if err := syscall.Setresgid(int(id.GID), int(id.GID), int(id.GID)); err != nil {
		return err
	}
	if err := syscall.Setresuid(int(id.UID), int(id.UID), int(id.UID)); err != nil {
		return err
	}
	// A change of ids clears it (prctl(2)). A supervisor that died before shows
	// by its end of the control socket.
	return unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0)
}

func run(builds, gated bool, u *undertaker) (syscall.WaitStatus, error) {
	var b *builder
	var g *gate
	if gated {
		g = beginGate()
	}
	if builds {
		var err error
		if b, err = begin(); err != nil {
			return 0, err
		}
	}
	order, trees, err := readOrder()
	if err != nil {
		return 0, &stage{"order", err}
	}
	if order.Build != (b != nil) {
		return 0, &stage{"order", errors.New("an order for another kind of inner stage")}
	}
	// 1 and not 0: a core handler behind a pipe runs whatever the limit is,
	// except that 1 makes the kernel give up (fs/coredump.c).
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Cur: 1, Max: 1}); err != nil {
		return 0, &stage{"core limit", err}
	}
	if order.Bare || order.Walls != nil {
		// No process namespace ends with us; orphans come to us instead.
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			return 0, &stage{"subreaper", err}
		}
	}
	link := enforce.NoLink
	if order.Gate != nil {
		if link, err = makeGate(g, order.Gate); err != nil {
			return 0, &stage{"gate", err}
		}
	} else if g != nil {
		close(g.order)
	}
	if b != nil {
		if err := b.finish(order.Steps, trees); err != nil {
			return 0, err
		}
	}
	for _, fd := range trees {
		unix.Close(fd)
	}
	if order.Loopback {
		if err := loopbackUp(); err != nil {
			return 0, &stage{"loopback", err}
		}
	}
	if err := unix.Chdir(order.Dir); err != nil {
		return 0, &stage{"start folder", fmt.Errorf("%s: %w", order.Dir, err)}
	}
	if link != enforce.NoLink {
		if err := awaitGate(); err != nil {
			return 0, &stage{"gate", err}
		}
	}
	if link == enforce.Proxy {
		order.Env = withEnv(order.Env, order.Gate.Env)
	}
	if order.Terminal {
		if err := openTerminal(); err != nil {
			return 0, &stage{"terminal", err}
		}
	}
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, &stage{"null device", err}
	}
	if order.Walls != nil {
		KeepThreads(wallThreads)
	}
	// Before there is a command, which may change our limits.
	world := ownWorld(order, b)
	pid, listener, err := start(order, u)
	if err != nil {
		return 0, err
	}
	if order.Walls == nil {
		if err := holdProcesses(pid, &order.Limits); err != nil {
			return 0, &stage{"process limit", err}
		}
	}
	if err := letGo(null, order.Terminal); err != nil {
		return 0, &stage{"null device", err}
	}
	sendWith(Message{Kind: Started, Status: uint32(u.number())}, world...)
	go obey(pid, order, u, told{listener: listener})
	go holdCPU(order, u)
	if order.Walls == nil {
		go watchProcesses(order.Limits.Processes)
	} else {
		go watchTree(order.Limits.Processes, u)
	}
	ws, spent, err := reap(pid)
	if err == nil && ws != 0 {
		tellMet(order, metBy(&order.Limits, ws, &spent))
	}
	return ws, err
}

// obey carries out the supervisor's requests. When the supervisor is gone, so
// are we, and with us everything inside.
func obey(pid int, order *enforce.Order, u *undertaker, t told) {
	var b [ReachLen]byte
	for {
		t.await()
		n, err := unix.Read(FDControl, b[:])
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n == 0 {
			if os.Getpid() != 1 {
				endAll(u) // no namespace ends with us
			}
			os.Exit(125)
		}
		if n == ReachLen && b[0] == Reach {
			go reach(binary.LittleEndian.Uint16(b[1:]), binary.LittleEndian.Uint32(b[3:]))
			continue
		}
		if n != 2 {
			continue
		}
		switch b[0] {
		case ToCommand:
			_ = unix.Kill(-pid, unix.Signal(b[1]))
		case ToAll:
			tellMet(order, 0) // as long as there is something to be seen
			// Beside: going through a tree that grows takes long, and must not
			// keep us from hearing that everything is to end.
			go func(sig unix.Signal) {
				signalTree(sig, u)
				signalTree(unix.SIGCONT, u) // a stopped process cannot act on it otherwise
			}(unix.Signal(b[1]))
		}
	}
}

// reap waits for every child until the command itself has ended.
func reap(pid int) (syscall.WaitStatus, syscall.Rusage, error) {
	for {
		var ws syscall.WaitStatus
		var spent syscall.Rusage
		got, err := syscall.Wait4(-1, &ws, 0, &spent)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			return 0, spent, &stage{"wait", err}
		}
		if got == pid && (ws.Exited() || ws.Signaled()) {
			return ws, spent, nil
		}
	}
}

func send(m Message) { sendWith(m) }

// sendWith sends a message with descriptors, and closes them.
func sendWith(m Message, fds ...int) {
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	for {
		err := unix.Sendmsg(FDControl, m.Encode(), rights, nil, unix.MSG_NOSIGNAL)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	for _, fd := range fds {
		unix.Close(fd)
	}
}

// ownWorld opens what a joiner needs: our mount namespace, and what masks are made
// of, if that is ours. Without it nothing can be covered, and that is told.
func ownWorld(order *enforce.Order, b *builder) []int {
	if order.Bare || order.Walls != nil {
		return nil
	}
	fd, err := unix.Open("/proc/self/ns/mnt", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	switch {
	case err != nil:
		return nil
	case b != nil:
		return []int{fd, b.kit}
	}
	return []int{fd}
}

func failure(err error) Message {
	if said, ok := errors.AsType[*saidError](err); ok {
		return said.Message
	}
	m := Message{Kind: Failed, What: err.Error()}
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		m.Errno = int32(errno)
	}
	if e, ok := errors.AsType[*stepError](err); ok {
		m.Step = e.step.Do.String()
	} else if e, ok := errors.AsType[*stage](err); ok {
		m.Step = e.name
	} else if e, ok := errors.AsType[*execError](err); ok {
		m.Kind, m.What = NoExec, e.name
	}
	if errors.Is(err, errChanged) {
		m.Kind = Changed
	}
	return m
}

func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	ifr, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, ifr); err != nil {
		return err
	}
	ifr.SetUint16(ifr.Uint16() | unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, ifr)
}
