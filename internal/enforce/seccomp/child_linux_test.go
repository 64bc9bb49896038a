package seccomp_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/internal/enforce/seccomp"
)

// A filter cannot be taken off again, so the test binary starts itself anew
// for every test that loads one. The role and its input cross in one variable.
const roleVar = "TETHER_SECCOMP_TEST"

type role struct {
	// Options are those of the filter; nil loads none (the control).
	Options *seccomp.Options
	// Argv is what to execute; empty makes the probes.
	Argv []string
	// Asks makes so many user namespaces under the filter's listener, and prints
	// how many were refused with EPERM, and how often that was told.
	Asks int
}

func TestMain(m *testing.M) {
	if text := os.Getenv(roleVar); text != "" {
		var r role
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			die("role", err)
		}
		os.Unsetenv(roleVar)
		child(r)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func child(r role) {
	runtime.LockOSThread()
	if r.Asks > 0 {
		ask(r)
		return
	}
	path := ""
	if len(r.Argv) > 0 {
		var err error
		if path, err = exec.LookPath(r.Argv[0]); err != nil {
			die("look up", err)
		}
	}
	if err := confine(r.Options); err != nil {
		die("confine", err)
	}
	if path != "" {
		die("exec", syscall.Exec(path, r.Argv, os.Environ()))
	}
	results := map[string]result{}
	for _, p := range probes() {
		results[p.name] = p.try()
	}
	if err := json.NewEncoder(os.Stdout).Encode(results); err != nil {
		die("report", err)
	}
}

// ask makes user namespaces from this thread, while others answer.
func ask(r role) {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		die("no_new_privs", err)
	}
	prog, err := seccomp.Compile(*r.Options)
	if err != nil {
		die("compile", err)
	}
	listener, err := seccomp.Listen(prog)
	if err != nil {
		die("listen", err)
	}
	told := 0
	if listener >= 0 {
		go func() {
			for seccomp.Answer(listener, func() { told++ }) == nil {
			}
		}()
	}
	refused := 0
	for range r.Asks {
		if err := unix.Unshare(unix.CLONE_NEWUSER); err == unix.EPERM {
			refused++
		}
	}
	again, err := seccomp.Listen(prog)
	fmt.Printf("refused %d told %d, a second one %v %v\n", refused, told, again, err)
}

// confine loads the filter of o on this thread; nil loads none.
func confine(o *seccomp.Options) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if o == nil {
		return nil
	}
	prog, err := seccomp.Compile(*o)
	if err != nil {
		return err
	}
	return seccomp.Load(prog)
}

func die(what string, err error) {
	fmt.Fprintf(os.Stderr, "test child: %s: %v\n", what, err)
	os.Exit(99)
}

// command returns the test binary in a role, in a session of its own so that
// no probe meets a terminal.
func command(t testing.TB, r role) *exec.Cmd {
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
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	return c
}

func usual() *seccomp.Options {
	return &seccomp.Options{Arch: runtime.GOARCH, Inet: true, Unix: true, SetGID: true, Namespaced: true}
}
