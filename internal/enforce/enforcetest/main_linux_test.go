package enforcetest_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether"
	"github.com/tether-sandbox/tether/internal/enforce/enforcetest"
	"github.com/tether-sandbox/tether/policy"
)

// Roles in which this program starts itself.
const (
	victimWord     = "enforcetest-victim"
	supervisorWord = "enforcetest-supervisor"
	stubbornWord   = "enforcetest-stubborn"
	daemonWord     = "enforcetest-daemon"
	hopperWord     = "enforcetest-hopper"
	netVar         = "ENFORCETEST_NET"
)

func TestMain(m *testing.M) {
	tether.Inner()
	enforcetest.Main(os.Args)
	if len(os.Args) > 2 {
		switch os.Args[1] {
		case victimWord:
			victim(os.Args[2])
		case supervisorWord:
			supervisor(os.Args[2:])
		case stubbornWord:
			signal.Ignore()
			time.Sleep(time.Minute)
			os.Exit(0)
		case hopperWord:
			for range 100 {
				hop()
			}
			time.Sleep(time.Minute)
			os.Exit(0)
		case daemonWord:
			daemon(os.Args[2:])
		}
	}
	if os.Geteuid() == 0 && os.Getenv(netVar) == "" {
		os.Exit(inOwnNetwork())
	}
	os.Exit(m.Run())
}

// inOwnNetwork starts the tests anew in a network namespace, where addresses
// can be given to the host without harm.
func inOwnNetwork() int {
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	cmd := exec.Command(exe, os.Args[1:]...)
	cmd.Env = append(os.Environ(), netVar+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Run(); err != nil {
		if cmd.ProcessState == nil {
			fmt.Fprintln(os.Stderr, "a network namespace:", err)
			return 1
		}
		return max(1, cmd.ProcessState.ExitCode())
	}
	return 0
}

// victim is a process of the caller: it has the secret in its environment, in
// its arguments, in its memory and in an open file, and ends with its input.
func victim(dir string) {
	secret := []byte(os.Getenv("VICTIM_SECRET"))
	f, err := os.Open(dir + "/secret")
	if err != nil {
		panic(err)
	}
	defer f.Close()
	fmt.Println(uintptr(unsafe.Pointer(&secret[0])))
	_, _ = io.Copy(io.Discard, os.Stdin)
	runtime.KeepAlive(secret)
	os.Exit(0)
}

// supervisor runs a command until somebody kills it: provider, workspace,
// network, words.
func supervisor(args []string) {
	o := tether.Options{Policy: policy.Default(args[1]), Provider: args[0]}
	o.Policy.Network.Mode = policy.Offline
	for _, p := range enforcetest.Providers() {
		if p.Name == args[0] {
			o.Policy.Accept = p.Accept
			if args[2] == "gated" && !slices.Contains(p.Refuses, enforcetest.Gated) {
				o.Policy.Network.Mode = policy.Gated
			}
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	s, err := tether.Open(ctx, o)
	if err == nil {
		_, err = s.Run(ctx, tether.Command{Args: args[3:]})
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// daemon starts words in a session of their own, with nothing of ours, twice
// removed.
func daemon(words []string) {
	signal.Ignore()
	attr := &os.ProcAttr{Files: []*os.File{nil, nil, nil}, Env: os.Environ(), Sys: &syscall.SysProcAttr{Setsid: true}}
	if words[0] == "again" {
		words = words[1:]
	} else {
		words = append([]string{os.Args[0], daemonWord, "again"}, words...)
	}
	path := words[0]
	if !strings.Contains(path, "/") {
		path, _ = exec.LookPath(path)
	}
	if _, err := os.StartProcess(path, words, attr); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// upLoopback sets up the loopback of a new network namespace and gives it
// addresses that clouds and private networks have.
func upLoopback(addresses map[string]string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	req, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	req.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, req); err != nil {
		return err
	}
	for name, addr := range addresses {
		if err := enforcetest.Address(fd, name, addr); err != nil {
			return err
		}
	}
	return nil
}

// hop makes a process that makes another and exits, which does the same, as long
// as there is a file "go" in the current folder. The last one makes the file
// "lived".
func hop() {
	file, lived, here := [...]byte{'g', 'o', 0}, [...]byte{'l', 'i', 'v', 'e', 'd', 0}, unix.AT_FDCWD
	nap := unix.Timespec{Nsec: 300_000}
	// A forked child has one thread and no runtime: nothing but calls.
	if pid, _, _ := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0); pid != 0 {
		return
	}
	for {
		if _, _, errno := unix.RawSyscall(unix.SYS_FACCESSAT, uintptr(here), uintptr(unsafe.Pointer(&file)), 0); errno != 0 {
			_, _, _ = unix.RawSyscall6(unix.SYS_OPENAT, uintptr(here), uintptr(unsafe.Pointer(&lived)), unix.O_CREAT|unix.O_WRONLY, 0o666, 0, 0)
			_, _, _ = unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
		_, _, _ = unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&nap)), 0, 0)
		if pid, _, _ := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0); pid != 0 {
			_, _, _ = unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
	}
}
