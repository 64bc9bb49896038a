package stream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// leaks fails the test when it leaves goroutines or descriptors behind.
func leaks(t *testing.T) {
	t.Helper()
	fds := func() int {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	warm := make(chan os.Signal, 1) // the runtime keeps a goroutine from the first use on
	signal.Notify(warm, unix.SIGWINCH)
	signal.Stop(warm)
	before, files := runtime.NumGoroutine(), fds()
	t.Cleanup(func() {
		var now, open int
		for range 100 {
			if now, open = runtime.NumGoroutine(), fds(); now <= before && open <= files {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		stack := make([]byte, 1<<16)
		t.Errorf("left behind: %d goroutines, %d descriptors\n%s", now-before, open-files, stack[:runtime.Stack(stack, true)])
	})
}

// command runs a shell script on a Set as the caller of this package does. Its
// process group stands for the tree: it is killed when the shell has ended.
type command struct {
	*exec.Cmd
	set *Set
}

func start(t *testing.T, o Options, script string) *command {
	t.Helper()
	set, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { set.Close() })
	c := &command{exec.Command("/bin/sh", "-c", script), set}
	ends := set.Child()
	c.Stdin, c.Stdout, c.Stderr = ends[0], ends[1], ends[2]
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: !set.Terminal(), Setsid: set.Terminal(), Setctty: set.Terminal()}
	if err := c.Cmd.Start(); err != nil {
		t.Fatal(err)
	}
	set.Start()
	return c
}

func (c *command) finish(t *testing.T) *os.ProcessState {
	t.Helper()
	_ = c.Wait()
	_ = unix.Kill(-c.Process.Pid, unix.SIGKILL)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := c.set.Settled(ctx); err != nil {
		t.Errorf("settled: %v", err)
	}
	if err := c.set.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	return c.ProcessState
}

func run(t *testing.T, o Options, script string) *os.ProcessState {
	t.Helper()
	return start(t, o, script).finish(t)
}

func text(c *Capture) string { s, _, _ := c.Text(); return s }

func TestOutputIsCaptured(t *testing.T) {
	leaks(t)
	for _, c := range []struct{ name, script, out, errs string }{
		{"both", "echo out; echo err >&2", "out\n", "err\n"},
		{"empty", "true", "", ""},
		{"only stderr", "printf x >&2", "", "x"},
		{"odd bytes", `printf '\377\376\000\r\n\033[31m'`, "\ufffd\ufffd\x00\r\n\x1b[31m", ""},
		{"opened again by name", "echo a >/dev/stdout; echo b >/dev/stderr", "a\n", "b\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out, errs Capture
			if st := run(t, Options{Stdout: &out, Stderr: &errs}, c.script); !st.Success() {
				t.Errorf("status: got %v", st)
			}
			if text(&out) != c.out || text(&errs) != c.errs {
				t.Errorf("got %q, %q; want %q, %q", text(&out), text(&errs), c.out, c.errs)
			}
		})
	}
}

func TestOutputsOfOnePlaceKeepTheirOrder(t *testing.T) {
	leaks(t)
	script := "for i in 1 2 3 4 5 6 7 8 9; do echo o$i; echo e$i >&2; done"
	var want strings.Builder
	for i := 1; i < 10; i++ {
		fmt.Fprintf(&want, "o%d\ne%d\n", i, i)
	}
	var both Capture
	run(t, Options{Stdout: &both, Stderr: &both}, script)
	if got := text(&both); got != want.String() {
		t.Errorf("one capture: got %q, want %q", got, want.String())
	}
	path := filepath.Join(t.TempDir(), "log")
	a, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	fd, err := unix.Dup(int(a.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	b := os.NewFile(uintptr(fd), "2>&1")
	defer b.Close()
	run(t, Options{Stdout: a, Stderr: b}, script)
	if got, _ := os.ReadFile(path); string(got) != want.String() {
		t.Errorf("one file: got %q, want %q", got, want.String())
	}
}

func TestFloodIsBounded(t *testing.T) {
	leaks(t)
	out := NewCapture(1000)
	if st := run(t, Options{Stdout: out, Stderr: out}, "head -c 30000000 /dev/zero; echo end >&2; exit 3"); st.ExitCode() != 3 {
		t.Errorf("status: got %v, want 3", st)
	}
	got, truncated, dropped := out.Text()
	if !truncated || dropped != 30000004-1000 || !strings.HasSuffix(got, "end\n") || out.Total() != 30000004 {
		t.Errorf("got %v, %d dropped of %d, ends in %q", truncated, dropped, out.Total(), got[len(got)-10:])
	}
}

// soon is at once, on a busy machine; what is not would take longer, or for ever.
const soon = 10 * time.Second

func TestBackgroundChildDoesNotHoldTheCall(t *testing.T) {
	leaks(t)
	for _, script := range []string{
		"sleep 60 & echo done",
		"(while :; do echo x; sleep .1; done) & echo done",
		"setsid sleep 20 & echo done", // not in the tree that we kill: it holds the pipe
	} {
		var out Capture
		begin := time.Now()
		st := run(t, Options{Stdout: &out, Stderr: &out}, script)
		if d := time.Since(begin); d > soon || !st.Success() || !strings.Contains(text(&out), "done\n") {
			t.Errorf("%s: got %q, %v after %v; want done at once", script, text(&out), st, d)
		}
	}
}

func TestEverythingWrittenBeforeTheEndArrives(t *testing.T) {
	leaks(t)
	for range 50 {
		var out Capture
		run(t, Options{Stdout: &out}, "head -c 60000 /dev/zero; sleep 9 & printf end")
		if out.Total() != 60003 {
			t.Fatalf("got %d bytes, want 60003", out.Total())
		}
	}
}

func TestInput(t *testing.T) {
	leaks(t)
	path := filepath.Join(t.TempDir(), "in")
	if err := os.WriteFile(path, []byte("one\ntwo\nthree\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := func() *os.File {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	null, err := os.OpenFile("/dev/null", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	dir, err := os.Open("/")
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	var none *os.File
	for _, c := range []struct {
		name         string
		in           io.Reader
		script, want string
	}{
		{"none is empty at once", nil, "cat; echo end", "end\n"},
		{"none is no pipe", nil, "test -c /dev/stdin && echo device", "device\n"},
		{"nil file", none, "cat; echo end", "end\n"},
		{"null device stays one", null, "cat; test -c /dev/stdin && echo device", "device\n"},
		{"null device is read-only", null, "echo x >&0 || echo refused", "refused\n"},
		{"reader", strings.NewReader("text"), "cat", "text"},
		{"reader, unread", strings.NewReader(strings.Repeat("x", 1<<20)), "echo end", "end\n"},
		{"reader that never ends", endless{}, "head -c 3", "xxx"},
		{"file", file(), "cat", "one\ntwo\nthree\n"},
		{"file is not handed over", file(), "test -p /dev/stdin && echo pipe", "pipe\n"},
		{"directory", dir, "cat; echo end", "end\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out Capture
			run(t, Options{Stdin: c.in, Stdout: &out}, c.script)
			if text(&out) != c.want {
				t.Errorf("got %q, want %q", text(&out), c.want)
			}
		})
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return copy(p, bytes.Repeat([]byte("x"), len(p))), nil }

// What a file's reader does with a direct descriptor is the model.
func TestFileIsLeftWhereTheCommandStopped(t *testing.T) {
	leaks(t)
	path := filepath.Join(t.TempDir(), "in")
	long := "one\ntwo\n" + strings.Repeat("x", 200000)
	if err := os.WriteFile(path, []byte(long), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		script string
		want   int64
	}{
		{"true", 4}, {"read l", 8}, {"cat", int64(len(long))}, {"head -c 100000", 100004},
	} {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.Seek(4, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		run(t, Options{Stdin: f}, c.script)
		if got, _ := f.Seek(0, io.SeekCurrent); got != c.want {
			t.Errorf("%s: file left at %d, want %d", c.script, got, c.want)
		}
	}
}

func TestPipeKeepsWhatTheCommandDoesNotRead(t *testing.T) {
	leaks(t)
	for _, c := range []struct{ script, out, left string }{
		{"true", "", "one\ntwo\nthree\n"},
		{"read l; echo $l", "one\n", "two\nthree\n"},
		{"cat", "one\ntwo\nthree\n", ""},
		{"head -c 8 | cat", "one\ntwo\n", ""}, // head reads more than it prints
	} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.WriteString("one\ntwo\nthree\n"); err != nil {
			t.Fatal(err)
		}
		w.Close()
		var out Capture
		run(t, Options{Stdin: r, Stdout: &out}, c.script)
		left, err := io.ReadAll(r)
		r.Close()
		if text(&out) != c.out || err != nil || c.script != "head -c 8 | cat" && string(left) != c.left {
			t.Errorf("%s: got %q, left %q (%v); want %q, %q", c.script, text(&out), left, err, c.out, c.left)
		}
	}
}

func TestLargePipesArriveWhole(t *testing.T) {
	leaks(t)
	const size = 40 << 20
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	feed := exec.Command("sh", "-c", "yes 0123456 | head -c 41943040")
	feed.Stdout = w
	if err := feed.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	outR, outW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer outR.Close()
	sum := make(chan int)
	go func() {
		n, bad, at := 0, 0, make([]byte, 1<<16)
		for {
			k, err := outR.Read(at)
			for i, b := range at[:k] {
				if b != "0123456\n"[(n+i)%8] {
					bad++
				}
			}
			if n += k; err != nil {
				break
			}
		}
		sum <- n - bad
	}()
	run(t, Options{Stdin: r, Stdout: outW}, "cat")
	outW.Close()
	if got := <-sum; got != size {
		t.Errorf("got %d good bytes, want %d", got, size)
	}
	_ = feed.Wait()
}

func TestInputThatWaitsDoesNotHoldTheCall(t *testing.T) {
	leaks(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	begin := time.Now()
	run(t, Options{Stdin: r}, "true")
	if d := time.Since(begin); d > soon {
		t.Errorf("took %v", d)
	}
	// A reader that cannot be interrupted is left behind, not waited for.
	pr, pw := io.Pipe()
	run(t, Options{Stdin: pr}, "true")
	if d := time.Since(begin); d > 2*soon {
		t.Errorf("took %v", d)
	}
	pw.Close()
}

// `tether run -- yes | head -1` must end, and without a signal to ourselves.
func TestReaderThatLeavesEndsTheCommand(t *testing.T) {
	leaks(t)
	for name, file := range map[string]bool{"file": true, "writer": false} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
		var out io.Writer = w
		if !file {
			out = struct{ io.Writer }{w}
		}
		begin := time.Now()
		st := run(t, Options{Stdout: out}, "exec yes")
		w.Close()
		ws := st.Sys().(syscall.WaitStatus)
		if !ws.Signaled() || ws.Signal() != unix.SIGPIPE || time.Since(begin) > soon {
			t.Errorf("%s: got %v after %v, want SIGPIPE at once", name, st, time.Since(begin))
		}
	}
}

type failing struct{}

var errDisk = errors.New("no space")

func (failing) Write([]byte) (int, error) { return 0, errDisk }

func TestWriterThatFailsIsReported(t *testing.T) {
	leaks(t)
	c := start(t, Options{Stdout: failing{}}, "exec yes")
	_ = c.Wait()
	if err := c.set.Settled(context.Background()); !errors.Is(err, errDisk) {
		t.Errorf("got %v, want %v", err, errDisk)
	}
	if f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0); err == nil {
		defer f.Close()
		c := start(t, Options{Stdout: f}, "exec yes")
		_ = c.Wait()
		if err := c.set.Settled(context.Background()); !errors.Is(err, unix.ENOSPC) {
			t.Errorf("got %v, want %v", err, unix.ENOSPC)
		}
	}
}

func TestSlowReaderHoldsUntilTheContextEnds(t *testing.T) {
	leaks(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	c := start(t, Options{Stdout: w}, "exec yes")
	time.Sleep(50 * time.Millisecond)
	_ = c.Process.Kill()
	_ = c.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if err := c.set.Settled(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
	}
}

func TestCloseAtAnyTime(t *testing.T) {
	leaks(t)
	set, err := Pipes(Options{Stdin: strings.NewReader("x"), Stdout: new(Capture), Stderr: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	set.Close()
	set.Start() // too late: nothing happens
	if err := set.Settled(context.Background()); err != nil {
		t.Error(err)
	}
	c := start(t, Options{Stdout: new(Capture)}, "exec sleep 60")
	c.set.Close()
	c.set.Close()
	_ = c.Process.Kill()
	_ = c.Wait()
}

func TestOwnerMayOpenItsEnds(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("need: runs as root only")
	}
	leaks(t)
	as := func(o *Owner) string {
		var out Capture
		set, err := Pipes(Options{Stdout: &out, Stderr: &out, Owner: o})
		if err != nil {
			t.Fatal(err)
		}
		c := exec.Command("/bin/sh", "-c", "echo x >/dev/stderr || true")
		c.Stdout, c.Stderr = set.Child()[1], set.Child()[2]
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		set.Start()
		_ = c.Wait()
		if err := set.Settled(context.Background()); err != nil {
			t.Error(err)
		}
		set.Close()
		return text(&out)
	}
	if got := as(nil); !strings.Contains(got, "ermission denied") {
		t.Errorf("control: got %q, want it refused without an owner", got)
	}
	if got := as(&Owner{65534, 65534}); got != "x\n" {
		t.Errorf("got %q, want x", got)
	}
}

// upper is a redactor that holds back a byte until it is closed.
type upper struct {
	w    io.Writer
	held []byte
}

func (u *upper) Write(p []byte) (int, error) {
	all := append(u.held, bytes.ToUpper(p)...)
	u.held = append([]byte(nil), all[len(all)-1:]...)
	_, err := u.w.Write(all[:len(all)-1])
	return len(p), err
}

func (u *upper) Close() error { _, err := u.w.Write(u.held); return err }

type closing struct {
	Capture
	closed bool
}

func (c *closing) Close() error { c.closed = true; return nil }

func TestThrough(t *testing.T) {
	leaks(t)
	var out, plain closing
	run(t, Options{Stdout: &out, Through: func(w io.Writer) io.Writer { return &upper{w: w} }}, "echo text")
	run(t, Options{Stdout: &plain, Through: func(w io.Writer) io.Writer { return w }}, "echo text")
	if got, got2 := text(&out.Capture), text(&plain.Capture); got != "TEXT\n" || got2 != "text\n" {
		t.Errorf("got %q, %q", got, got2)
	}
	if out.closed || plain.closed {
		t.Error("the caller's own writer was closed")
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	run(t, Options{Stdout: w, Through: func(w io.Writer) io.Writer { return &upper{w: w} }}, "echo text")
	w.Close()
	if got, _ := io.ReadAll(r); string(got) != "TEXT\n" {
		t.Errorf("to a pipe: got %q", got)
	}
}

// The door that the pipes close: a program opens its own standard streams
// again and destroys or reads what the caller has there.
func TestCallersFilesCannotBeOpenedAgain(t *testing.T) {
	leaks(t)
	script := "echo stolen 2>/dev/null >/proc/self/fd/0; : >/proc/self/fd/1; printf x"
	attack := func(start func(in, out *os.File)) (string, string) {
		dir := t.TempDir()
		in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
		for _, p := range []string{in, out} {
			if err := os.WriteFile(p, []byte("precious\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		r, err := os.Open(in)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		w, err := os.OpenFile(out, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		start(r, w)
		a, _ := os.ReadFile(in)
		b, _ := os.ReadFile(out)
		return string(a), string(b)
	}
	a, b := attack(func(in, out *os.File) {
		c := exec.Command("/bin/sh", "-c", script)
		c.Stdin, c.Stdout = in, out
		_ = c.Run()
	})
	if a != "stolen\n" || b != "x" {
		t.Fatalf("control: got %q, %q; want both files destroyed without us", a, b)
	}
	a, b = attack(func(in, out *os.File) { run(t, Options{Stdin: in, Stdout: out}, script) })
	if a != "precious\n" || b != "precious\nx" {
		t.Errorf("got %q, %q", a, b)
	}
}
