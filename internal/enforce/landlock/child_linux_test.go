package landlock

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/internal/need"
)

// Walls cannot be taken down again, so the test binary starts itself anew for
// every test that builds some. The role crosses in one variable.
const roleVar = "TETHER_LANDLOCK_TEST"

type role struct {
	// Free builds no walls: the control.
	Free bool
	// Rules and the names of what is opened for them.
	Rules                     Ruleset
	Read, Exec, Write, Device []string
	// ABI downgrades Rules before use; zero does not.
	ABI int
	// Mount binds From to To, in a mount namespace of its own, before.
	From, To string
	// Try are what to try, as words of attempt.
	Try [][]string
}

func TestMain(m *testing.M) {
	if text := os.Getenv(roleVar); text != "" {
		var r role
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			die("role", err)
		}
		results, err := r.play()
		if err != nil {
			die("play", err)
		}
		if err := json.NewEncoder(os.Stdout).Encode(results); err != nil {
			die("report", err)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func die(what string, err error) {
	fmt.Fprintf(os.Stderr, "test child: %s: %v\n", what, err)
	os.Exit(99)
}

// play returns, for each attempt, the error's text or "ok".
func (r *role) play() ([]string, error) {
	runtime.LockOSThread()
	if r.To != "" {
		if err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_FS); err != nil {
			return nil, err
		}
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			return nil, err
		}
		if err := unix.Mount(r.From, r.To, "", unix.MS_BIND, ""); err != nil {
			return nil, err
		}
	}
	for _, l := range []struct {
		names []string
		to    *[]Path
	}{{r.Read, &r.Rules.Read}, {r.Exec, &r.Rules.Exec}, {r.Write, &r.Rules.Write}, {r.Device, &r.Rules.Device}} {
		for _, name := range l.names {
			fd, err := unix.Open(name, unix.O_PATH|unix.O_CLOEXEC, 0)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			*l.to = append(*l.to, Path{fd, name})
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return nil, err
	}
	rules := r.Rules
	if r.ABI != 0 {
		rules, _ = rules.Downgrade(r.ABI)
	}
	if !r.Free {
		if err := Restrict(rules); err != nil {
			return nil, err
		}
	}
	var out []string
	for _, words := range r.Try {
		err := attempt(words[0], words[1:])
		switch errno := syscall.Errno(0); {
		case err == nil:
			out = append(out, "ok")
		case errors.As(err, &errno):
			out = append(out, unix.ErrnoName(errno))
		default:
			return nil, fmt.Errorf("%v: %w", words, err)
		}
	}
	return out, nil
}

// outcome plays r in a child and returns the results on one line.
func outcome(t testing.TB, r role) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), self)
	// The race detector would linger for a second at each child's end.
	c.Env = append(os.Environ(), roleVar+"="+string(text), "GORACE=atexit_sleep_ms=0")
	var stderr strings.Builder
	c.Stderr = &stderr
	stdout, err := c.Output()
	if err != nil {
		t.Fatalf("test child: %v: %s", err, stderr.String())
	}
	var results []string
	if err := json.Unmarshal(stdout, &results); err != nil {
		t.Fatal(err)
	}
	return strings.Join(results, " ")
}

func needABI(t testing.TB, least int) {
	t.Helper()
	abi, err := ABI()
	if err != nil {
		need.Missing(t, "landlock", err.Error())
	}
	if abi < least {
		need.Missing(t, "landlock", fmt.Sprintf("ABI %d, the test needs %d", abi, least))
	}
}

// attempt makes one attempt. It uses plain system calls on this thread: the
// others have no walls.
func attempt(what string, args []string) error {
	arg := func(i int) string {
		if i < len(args) {
			return args[i]
		}
		return ""
	}
	open := func(flags int) error {
		fd, err := unix.Open(arg(0), flags|unix.O_CLOEXEC|unix.O_NONBLOCK, 0o600)
		if err == nil {
			unix.Close(fd)
		}
		return err
	}
	switch what {
	case "read":
		return open(unix.O_RDONLY)
	case "list":
		return open(unix.O_RDONLY | unix.O_DIRECTORY)
	case "write":
		return open(unix.O_WRONLY)
	case "create":
		return open(unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL)
	case "truncate":
		return unix.Truncate(arg(0), 0)
	case "mkdir":
		return unix.Mkdir(arg(0), 0o700)
	case "rmdir":
		return unix.Rmdir(arg(0))
	case "remove":
		return unix.Unlink(arg(0))
	case "symlink":
		return unix.Symlink("target", arg(0))
	case "pipe":
		return unix.Mknod(arg(0), unix.S_IFIFO|0o600, 0)
	case "device":
		return unix.Mknod(arg(0), unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3)))
	case "rename":
		return unix.Rename(arg(0), arg(1))
	case "link":
		return unix.Link(arg(0), arg(1))
	case "stat":
		var st unix.Stat_t
		return unix.Stat(arg(0), &st)
	case "mount":
		return unix.Mount(arg(0), arg(0), "", unix.MS_BIND, "")
	case "ioctl":
		return ioctl(arg(0))
	case "run":
		return run(arg(0))
	case "signal-parent":
		return unix.Kill(unix.Getppid(), 0)
	case "pidfd-parent":
		fd, err := unix.PidfdOpen(unix.Getppid(), 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.PidfdSendSignal(fd, 0, nil, 0)
	case "signal-self":
		return unix.Kill(unix.Getpid(), 0)
	case "signal-child":
		return signalChild()
	case "memory-parent":
		args = []string{fmt.Sprintf("/proc/%d/mem", unix.Getppid())}
		return open(unix.O_RDONLY)
	}
	return attemptNet(what, arg(0))
}

func ioctl(name string) error {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.IoctlGetTermios(fd, unix.TCGETS)
	return err
}

// run executes a program from this thread.
func run(name string) error {
	p, err := os.StartProcess(name, []string{name}, &os.ProcAttr{})
	if err != nil {
		return err
	}
	_, err = p.Wait()
	return err
}

// signalChild starts a child behind the same walls and kills it.
func signalChild() error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer w.Close()
	p, err := os.StartProcess("/proc/self/exe", []string{"x"}, &os.ProcAttr{
		Env:   []string{roleVar + `={"Free":true,"Try":[["wait"]]}`},
		Files: []*os.File{r, nil, os.Stderr}})
	r.Close()
	if err != nil {
		return err
	}
	err = unix.Kill(p.Pid, unix.SIGKILL)
	if _, werr := p.Wait(); err == nil {
		err = werr
	}
	return err
}

// waitForEnd waits for the end of standard input.
func waitForEnd() error {
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}
