package inner

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

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
	if len(os.Args) == 2 && os.Args[1] == Launcher {
		launcher()
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
	status, err := run(builder, gated)
	if err != nil {
		send(failure(err))
		os.Exit(125)
	}
	killTree()
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

func run(builds, gated bool) (syscall.WaitStatus, error) {
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
	pid, err := start(order)
	if err != nil {
		return 0, err
	}
	if err := letGo(null, order.Terminal); err != nil {
		return 0, &stage{"null device", err}
	}
	send(Message{Kind: Started})
	go obey(pid, order, &late{b: b})
	ws, spent, err := reap(pid)
	if err == nil && ws != 0 {
		tellMet(order, metBy(&order.Limits, ws, &spent))
	}
	return ws, err
}

// letGo gives up the command's descriptors, which are only the command's from
// now on: nothing that we might say, such as why we crashed when it took away
// what we need, is taken for its output. A terminal stays open, since the
// command may close it and open it again by name.
func letGo(null int, terminal bool) error {
	if terminal {
		if _, err := unix.FcntlInt(0, unix.F_DUPFD_CLOEXEC, 3); err != nil {
			return err
		}
	}
	for fd := range 3 {
		if err := unix.Dup3(null, fd, 0); err != nil {
			return err
		}
	}
	return unix.Close(null)
}

// start restricts one thread for good and starts the command from it. The
// child inherits the thread's credentials and filters; the thread then ends.
func start(order *enforce.Order) (int, error) {
	type result struct {
		pid int
		err error
	}
	done := make(chan result, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if order.Walls != nil {
			pid, err := startLauncher(order)
			done <- result{pid, err}
			select {} // the launcher dies with this thread
		}
		spread(order.CPUs)
		if err := confine(order); err != nil {
			done <- result{0, err}
			return
		}
		pid, err := launch(order)
		done <- result{pid, err}
		// Stay until the process ends, so that nothing tied to this thread
		// (such as a parent-death signal of a grandchild) fires early.
		select {}
	}()
	r := <-done
	return r.pid, r.err
}

// spread lets the calling thread, and the command that it will start, use the
// processors that the caller could. If they were taken away meanwhile, the
// kernel has widened or will refuse the mask; the command then keeps ours.
func spread(cpus []int) {
	if len(cpus) == 0 {
		return
	}
	var set unix.CPUSet
	for _, n := range cpus {
		set.Set(n)
	}
	_ = unix.SchedSetaffinity(0, &set)
}

// confine restricts the calling thread and refuses to go on unless it is then
// exactly as strict as it must be. Bare orders ask for no sandbox.
func confine(order *enforce.Order) error {
	if order.Bare {
		if err := unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil {
			return err
		}
		return limit(&order.Limits)
	}
	if err := restrict(order); err != nil {
		return err
	}
	if err := checkPosture(order); err != nil {
		return &stage{"posture", err}
	}
	if err := checkPlaces(order); err != nil {
		return &stage{"places", err}
	}
	return nil
}

// execError says that the program itself could not be executed.
type execError struct {
	name string
	err  error
}

func (e *execError) Error() string { return e.name + ": " + e.err.Error() }
func (e *execError) Unwrap() error { return e.err }

func launch(order *enforce.Order) (int, error) {
	path, err := lookPath(order.Argv[0], order.Env)
	if err != nil {
		return 0, &execError{order.Argv[0], err}
	}
	attr := &syscall.ProcAttr{Env: order.Env, Files: []uintptr{0, 1, 2},
		Sys: &syscall.SysProcAttr{Setsid: true, Setctty: order.Terminal, Ctty: 0}}
	pid, err := syscall.ForkExec(path, order.Argv, attr)
	if errors.Is(err, syscall.ENOEXEC) {
		pid, err = syscall.ForkExec(shell, byShell(path, order.Argv), attr)
	}
	if err != nil {
		return 0, &execError{order.Argv[0], err}
	}
	return pid, nil
}

const shell = "/bin/sh"

// byShell are the words for a script without a first line that names its
// interpreter: shells and execvp(3) run it by sh.
func byShell(path string, argv []string) []string {
	return append([]string{"sh", path}, argv[1:]...)
}

// lookPath finds a program as execvp(3) does, in the PATH of the command.
func lookPath(name string, env []string) (string, error) {
	if name == "" {
		return "", syscall.ENOENT
	}
	if strings.Contains(name, "/") {
		return name, executable(name)
	}
	path := ""
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = v
		}
	}
	var denied error
	for dir := range strings.SplitSeq(path, ":") {
		if dir == "" {
			dir = "."
		}
		file := dir + "/" + name
		err := executable(file)
		if err == nil {
			return file, nil
		}
		if errors.Is(err, syscall.EACCES) {
			denied = err
		}
	}
	if denied != nil {
		return "", denied
	}
	return "", syscall.ENOENT
}

func executable(file string) error {
	var st syscall.Stat_t
	if err := syscall.Stat(file, &st); err != nil {
		return err
	}
	if st.Mode&syscall.S_IFMT == syscall.S_IFDIR {
		return syscall.EACCES
	}
	return unix.Faccessat(unix.AT_FDCWD, file, unix.X_OK, unix.AT_EACCESS)
}

// obey carries out the supervisor's requests. When the supervisor is gone, so
// are we, and with us everything inside.
func obey(pid int, order *enforce.Order, l *late) {
	var b [ReachLen]byte
	oob := make([]byte, unix.CmsgSpace(4*TreesPerPacket))
	for {
		n, fd, err := request(b[:], oob)
		if err != nil || n == 0 {
			for os.Getpid() != 1 {
				// No namespace ends with us. The main thread, which buries
				// the dead, ends us when there is nobody left.
				signalTree(unix.SIGKILL)
				time.Sleep(5 * time.Millisecond)
			}
			os.Exit(125)
		}
		if n == ReachLen && b[0] == Reach {
			go reach(binary.LittleEndian.Uint16(b[1:]), binary.LittleEndian.Uint32(b[3:]))
			continue
		}
		if fd >= 0 {
			if n == CoverLen && b[0] == Cover {
				go l.cover(number(b[:]), fd)
			} else {
				unix.Close(fd)
			}
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
			signalTree(unix.Signal(b[1]))
			signalTree(unix.SIGCONT) // a stopped process cannot act on it otherwise
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

// readOrder waits for the order and takes over the command's descriptors.
func readOrder() (*enforce.Order, []int, error) {
	fds, err := receive()
	if err != nil {
		return nil, nil, err
	}
	if len(fds) != 1 && len(fds) != 4 {
		return nil, nil, errors.New("an order comes alone or with three descriptors")
	}
	f := os.NewFile(uintptr(fds[0]), "order")
	raw, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<30))
	if err != nil {
		return nil, nil, err
	}
	f.Close()
	if err := takeOver(fds[1:]); err != nil {
		return nil, nil, err
	}
	order, err := enforce.DecodeOrder(raw)
	if err != nil {
		return nil, nil, err
	}
	if len(order.Argv) == 0 || order.Terminal != (len(fds) == 1) {
		return nil, nil, errors.New("no command, or no descriptors for it")
	}
	n := 0
	for i := range order.Steps {
		n = max(n, int(order.Steps[i].Tree))
	}
	// The detached mounts come after the order, since they are mapped by this
	// process's own user namespace.
	var trees []int
	for len(trees) < n {
		more, err := receive()
		if err != nil {
			return nil, nil, err
		}
		trees = append(trees, more...)
	}
	return order, trees, nil
}

// takeOver makes descriptors 0 and up of those.
func takeOver(fds []int) error {
	for i, fd := range fds {
		if err := unix.Dup3(fd, i, 0); err != nil {
			return err
		}
		unix.Close(fd)
	}
	return nil
}

// openTerminal opens a terminal where the command can find it by name, as
// ttyname(3) does, and leaves all else about it to the supervisor.
func openTerminal() error {
	master, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer unix.Close(master)
	if err := unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0); err != nil {
		return err
	}
	err = unix.Sendmsg(FDControl, Message{Kind: Terminal}.Encode(), unix.UnixRights(master), nil, unix.MSG_NOSIGNAL)
	if err != nil {
		return err
	}
	fds, err := receive()
	if err != nil {
		return err
	}
	if len(fds) != 3 {
		return errors.New("no descriptors for the command")
	}
	return takeOver(fds)
}

// receive takes the descriptors of one packet from the supervisor. If that is
// gone before it has said anything, so are we.
func receive() ([]int, error) {
	var b [1]byte
	oob := make([]byte, unix.CmsgSpace(4*TreesPerPacket))
	for {
		n, got, _, _, err := unix.Recvmsg(FDControl, b[:], oob, unix.MSG_CMSG_CLOEXEC)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if n == 0 {
			os.Exit(125)
		}
		messages, err := unix.ParseSocketControlMessage(oob[:got])
		if err != nil || len(messages) != 1 {
			return nil, errors.New("a packet without descriptors")
		}
		return unix.ParseUnixRights(&messages[0])
	}
}

func send(m Message) {
	for {
		err := unix.Send(FDControl, m.Encode(), unix.MSG_NOSIGNAL)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
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
