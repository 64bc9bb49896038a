package native

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/enforce/inner"
	"github.com/tether-sandbox/tether/internal/enforce/seccomp"
	"github.com/tether-sandbox/tether/internal/plan"
	"github.com/tether-sandbox/tether/policy"
)

func TestMain(m *testing.M) {
	if inner.Wanted(os.Args) {
		inner.Main() // the inner stage is this very program
	}
	os.Exit(m.Run())
}

// planned is a plan of an empty workspace, and the order that comes of it.
func planned(t *testing.T, network enforce.Net, argv ...string) (*plan.Plan, enforce.Order) {
	t.Helper()
	top := t.TempDir()
	for _, d := range []string{"w", "home", "state"} {
		if err := os.Mkdir(filepath.Join(top, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for dir := top; dir != "/tmp" && dir != "/"; dir = filepath.Dir(dir) {
		_ = os.Chmod(dir, 0o755)
	}
	pol := policy.Default(filepath.Join(top, "w"))
	if network == enforce.OwnNet {
		pol.Network.Mode = policy.Offline
	}
	p, err := plan.Resolve(context.Background(), pol, plan.Host{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid()),
		Home: filepath.Join(top, "home"), Homes: []string{filepath.Join(top, "home")}, StateDir: filepath.Join(top, "state")}, "")
	if err != nil {
		t.Fatal(err)
	}
	filter, err := seccomp.Compile(seccomp.Options{Arch: runtime.GOARCH, Inet: true, Unix: true, SetGID: !p.Identity.Root,
		Namespaced: true})
	if err != nil {
		t.Fatal(err)
	}
	return p, enforce.Order{Argv: argv, Env: []string{"PATH=/usr/bin:/bin"}, Dir: p.Dir, Filter: filter, Steps: enforce.Compile(p)}
}

// launched runs an order in a stage and returns what it printed.
func launched(t *testing.T, id plan.Identity, network enforce.Net, order enforce.Order) (enforce.Process, func() string) {
	t.Helper()
	stage, err := Launch(id, network)
	if err != nil {
		t.Fatal(err)
	}
	if !stage.Fits(id, network) || stage.Fits(id, enforce.HostNet-network) || stage.Fits(plan.Identity{UID: id.UID + 1}, network) {
		t.Error("Fits: it fits what it is, and nothing else")
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	timer := time.AfterFunc(30*time.Second, func() { panic("it hangs") })
	t.Cleanup(func() { timer.Stop() })
	p, err := stage.Begin(enforce.Job{Order: order, Stdio: [3]*os.File{null, w, w}})
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	return p, func() string {
		b, _ := io.ReadAll(r)
		return string(b)
	}
}

// A command runs in its workspace, in namespaces of its own, and tells its end.
func TestRuns(t *testing.T) {
	p, order := planned(t, enforce.OwnNet, "sh", "-c", "id -u; echo made > made; echo $$; tail -n +3 /proc/net/dev | cut -d: -f1; ls /home 2>&1 | head -1; exit 7")
	proc, out := launched(t, p.Identity, enforce.OwnNet, order)
	if err := proc.Ready(); err != nil {
		t.Fatal(err)
	}
	text := out()
	e, err := proc.Wait()
	if err != nil || syscall.WaitStatus(e.Status).ExitStatus() != 7 {
		t.Errorf("got %+v, %v", e, err)
	}
	lines := strings.Fields(text)
	if len(lines) < 3 || lines[0] != fmt.Sprint(p.Identity.UID) || lines[2] != "lo" || strings.Contains(text, "eth") {
		t.Errorf("inside: got %q", text)
	}
	if b, err := os.ReadFile(filepath.Join(p.Workspace.Path, "made")); err != nil || string(b) != "made\n" {
		t.Errorf("made: got %q, %v", b, err)
	}
	<-proc.Gone()
}

func TestNoSuchProgram(t *testing.T) {
	p, order := planned(t, enforce.OwnNet, "no-such-program")
	proc, _ := launched(t, p.Identity, enforce.OwnNet, order)
	if err := proc.Ready(); err != nil {
		t.Fatal(err)
	}
	if e, err := proc.Wait(); err != nil || e.NoExec != int(syscall.ENOENT) {
		t.Errorf("got %+v, %v, want ENOENT", e, err)
	}
}

// What is not what was planned stops the start, and nothing runs.
func TestChangedMeanwhile(t *testing.T) {
	p, order := planned(t, enforce.OwnNet, "touch", "ran")
	w := p.Workspace.Path
	if err := os.Rename(w, w+".old"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(w, 0o755); err != nil {
		t.Fatal(err)
	}
	stage, err := Launch(p.Identity, enforce.OwnNet)
	if err != nil {
		t.Fatal(err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	proc, err := stage.Begin(enforce.Job{Order: order, Stdio: [3]*os.File{null, null, null}})
	if err == nil {
		err = proc.Ready()
	}
	if !errors.Is(err, plan.ErrChanged) || fault.CodeOf(err) != fault.IsolationUnavailable {
		t.Errorf("got %v, want that it changed", err)
	}
	for _, dir := range []string{w, w + ".old"} {
		if _, err := os.Lstat(filepath.Join(dir, "ran")); err == nil {
			t.Errorf("it ran in %s", dir)
		}
	}
}

// Killed, the whole tree is gone with the first process.
func TestKillTakesTheTree(t *testing.T) {
	p, order := planned(t, enforce.HostNet, "sh", "-c", "setsid sleep 300 & sleep 300 & echo up; wait")
	proc, out := launched(t, p.Identity, enforce.HostNet, order)
	if err := proc.Ready(); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(200*time.Millisecond, proc.Kill)
	if got := out(); got != "up\n" { // ends only when nobody holds the pipe any more
		t.Errorf("got %q", got)
	}
	if e, err := proc.Wait(); err != nil || syscall.WaitStatus(e.Status).Signal() != syscall.SIGKILL {
		t.Errorf("got %+v, %v, want SIGKILL", e, err)
	}
	<-proc.Gone()
	if syscall.Kill(proc.PID(), 0) != syscall.ESRCH {
		t.Error("process 1 is still there")
	}
}

func TestDiscardedStageEnds(t *testing.T) {
	p, _ := planned(t, enforce.OwnNet)
	stage, err := Launch(p.Identity, enforce.OwnNet)
	if err != nil {
		t.Fatal(err)
	}
	stage.Discard()
	select {
	case <-stage.process.Gone():
	case <-time.After(10 * time.Second):
		t.Error("it is still there")
	}
}

func TestAttributes(t *testing.T) {
	for _, network := range []enforce.Net{enforce.OwnNet, enforce.GatedNet, enforce.HostNet} {
		a := attributes(network)
		for name, flag := range map[string]uintptr{"user": syscall.CLONE_NEWUSER, "mount": syscall.CLONE_NEWNS, "pid": syscall.CLONE_NEWPID,
			"ipc": syscall.CLONE_NEWIPC, "uts": syscall.CLONE_NEWUTS} {
			if a.Cloneflags&flag == 0 {
				t.Errorf("no %s namespace", name)
			}
		}
		if own := a.Cloneflags&syscall.CLONE_NEWNET != 0; own == (network == enforce.HostNet) {
			t.Errorf("network %v: a namespace of its own: %v", network, own)
		}
		if a.Pdeathsig != syscall.SIGKILL {
			t.Error("it would outlive us")
		}
	}
}

// What the inner stage reports becomes an error that says whether another
// provider, or another plan, may be tried.
func TestExplain(t *testing.T) {
	for _, c := range []struct {
		m                inner.Message
		machine, changed bool
		says             string
	}{
		{inner.Message{Kind: inner.Changed, What: "/w/x was replaced"}, false, true, "/w/x was replaced"},
		{inner.Message{Kind: inner.Failed, Step: "proc", Errno: int32(syscall.EPERM), What: "mount"}, true, false, "fresh /proc"},
		{inner.Message{Kind: inner.Failed, Step: "tmpfs", Errno: int32(syscall.ENOMEM), What: "no memory"}, true, false, "no memory"},
		{inner.Message{Kind: inner.Failed, Step: "sysctl", Errno: int32(syscall.ENOSYS), What: "x"}, true, false, "older than 5.14"},
		// A cause that the workspace can bring about never chooses a provider.
		{inner.Message{Kind: inner.Failed, Step: "bind", Errno: int32(syscall.EIO), What: "cannot open"}, false, false, "cannot open"},
		{inner.Message{Kind: inner.Failed, Step: "mask-file", Errno: int32(syscall.EINVAL), What: "cannot hide"}, false, false, "cannot hide"},
		{inner.Message{Kind: inner.Failed, Step: "posture", What: "a capability is left"}, false, false, "a capability is left"},
	} {
		err := explain(c.m)
		if fault.CodeOf(err) != fault.IsolationUnavailable || errors.Is(err, enforce.ErrMachine) != c.machine ||
			errors.Is(err, plan.ErrChanged) != c.changed || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: got %v", c.m, err)
		}
	}
	if err := refused("do it", syscall.ENOSPC); !errors.Is(err, enforce.ErrMachine) || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("refused: got %v", err)
	}
}

// tree opens what was planned, and nothing that came in its place.
func TestTreeIsWhatWasPlanned(t *testing.T) {
	dir := t.TempDir()
	sub := filepath.Join(dir, "sub")
	if err := os.Mkdir(sub, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("sub", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	var st unix.Stat_t
	if err := unix.Stat(sub, &st); err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]enforce.Step{
		"replaced":         {Src: sub, Dev: st.Dev, Ino: st.Ino + 1},
		"gone":             {Src: filepath.Join(dir, "none")},
		"a link":           {Src: filepath.Join(dir, "link"), Dev: st.Dev, Ino: st.Ino},
		"behind a link":    {Src: filepath.Join(dir, "link", "x")},
		"a file in a file": {Src: "/proc/self/exe/x"},
	} {
		if fd, err := tree(&s, -1, false); !errors.Is(err, plan.ErrChanged) {
			t.Errorf("%s: got %d, %v, want that it changed", name, fd, err)
		}
	}
	if os.Geteuid() != 0 {
		return // cloning a mount takes rights
	}
	fd, err := tree(&enforce.Step{Src: sub, Dev: st.Dev, Ino: st.Ino}, -1, false)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	var got unix.Stat_t
	if err := unix.Fstat(fd, &got); err != nil || got.Ino != st.Ino {
		t.Errorf("got inode %d, %v, want %d", got.Ino, err, st.Ino)
	}
}

func TestTreesOutOfOrder(t *testing.T) {
	if err := sendTrees(nil, plan.Identity{}, []enforce.Step{{}, {Tree: 2}}); fault.CodeOf(err) != fault.Internal {
		t.Errorf("got %v, want an error of ours", err)
	}
}
