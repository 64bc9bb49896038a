package supervise

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/enforce/inner"
)

// stage is an inner stage in this very process, which does what a script says.
// It has no process id, so that nothing is ever signalled.
type stage struct {
	t      *testing.T
	script func(s *stage)
	fd     int
	done   chan struct{}
	starts error // what starting it fails with
	ends   error // how it ends
}

func (s *stage) Start(control *os.File) (int, error) {
	s.done = make(chan struct{})
	if s.starts != nil {
		return 0, s.starts
	}
	fd, err := unix.FcntlInt(control.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return 0, err
	}
	s.fd = fd
	go func() {
		defer close(s.done)
		defer unix.Close(s.fd)
		s.script(s)
	}()
	return 0, nil
}

func (s *stage) Await()      { <-s.done }
func (s *stage) Bury() error { return s.ends }

// say sends a message, with descriptors.
func (s *stage) say(m inner.Message, fds ...int) { s.raw(m.Encode(), fds...) }

func (s *stage) raw(b []byte, fds ...int) {
	var oob []byte
	if len(fds) > 0 {
		oob = unix.UnixRights(fds...)
	}
	if err := unix.Sendmsg(s.fd, b, oob, nil, unix.MSG_NOSIGNAL); err != nil && !errors.Is(err, unix.EPIPE) {
		s.t.Errorf("the stage cannot speak: %v", err)
	}
}

// hear receives one packet; nothing is the end.
func (s *stage) hear() (text []byte, files []*os.File) {
	b, oob := make([]byte, 100), make([]byte, unix.CmsgSpace(4*inner.TreesPerPacket))
	n, got, _, _, err := unix.Recvmsg(s.fd, b, oob, unix.MSG_CMSG_CLOEXEC)
	if err != nil || n == 0 {
		return nil, nil
	}
	if messages, err := unix.ParseSocketControlMessage(oob[:got]); err == nil && len(messages) == 1 {
		fds, _ := unix.ParseUnixRights(&messages[0])
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), "passed"))
		}
	}
	return b[:n], files
}

// close frees descriptors that were passed.
func closeFiles(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// untilEnd waits until the other end is closed.
func (s *stage) untilEnd() {
	for {
		text, files := s.hear()
		closeFiles(files)
		if text == nil {
			return
		}
	}
}

// patient ends a test that waits for something that never comes.
func patient(t *testing.T) {
	t.Helper()
	timer := time.AfterFunc(20*time.Second, func() { panic(t.Name() + ": it hangs") })
	t.Cleanup(func() { timer.Stop() })
}

// begin starts a stage and gives it a job with three files of its own.
func begin(t *testing.T, s *stage, change func(*enforce.Job)) (*Process, error) {
	t.Helper()
	patient(t)
	s.t = t
	p, err := Launch(s, func(m inner.Message) error { return errors.New("explained: " + m.Step + ": " + m.What) })
	if err != nil {
		t.Fatal(err)
	}
	job := enforce.Job{Order: enforce.Order{Argv: []string{"true"}, Dir: "/w"}}
	for i := range job.Stdio {
		f, err := os.CreateTemp(t.TempDir(), "")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		_, _ = f.WriteString(string(rune('0' + i)))
		job.Stdio[i] = f
	}
	if change != nil {
		change(&job)
	}
	return p, p.Begin(&job)
}

// ended is what must hold of every process at the end.
func ended(t *testing.T, p *Process) {
	t.Helper()
	select {
	case <-p.Gone():
	case <-time.After(10 * time.Second):
		t.Error("it is not gone")
	}
	p.Kill() // has no effect, and must not hit whoever has the id now
	p.Signal(15, true)
}

func TestOrderAndDescriptorsArrive(t *testing.T) {
	heard := make(chan *enforce.Order, 1)
	stdio := make(chan string, 1)
	s := &stage{script: func(s *stage) {
		_, files := s.hear()
		defer closeFiles(files)
		if len(files) != 4 {
			s.t.Errorf("got %d descriptors, want the order and three", len(files))
			return
		}
		var texts []string
		for _, f := range files {
			_, _ = f.Seek(0, io.SeekStart)
			b, _ := io.ReadAll(f)
			texts = append(texts, string(b))
		}
		o, err := enforce.DecodeOrder([]byte(texts[0]))
		if err != nil {
			s.t.Error(err)
		}
		heard <- o
		stdio <- strings.Join(texts[1:], "")
		s.say(inner.Message{Kind: inner.Started})
		s.say(inner.Message{Kind: inner.Exited, Status: 7 << 8})
		s.untilEnd()
	}}
	p, err := begin(t, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Ready(); err != nil {
		t.Errorf("ready: %v", err)
	}
	if o := <-heard; !reflect.DeepEqual(o.Argv, []string{"true"}) || o.Dir != "/w" {
		t.Errorf("order: got %+v", o)
	}
	if got := <-stdio; got != "012" {
		t.Errorf("descriptors: got %q, want 012", got)
	}
	e, err := p.Wait()
	if err != nil || syscall.WaitStatus(e.Status).ExitStatus() != 7 || e.NoExec != 0 || !p.Heard() {
		t.Errorf("got %+v, %v, want exit status 7", e, err)
	}
	ended(t, p)
}

// What an inner stage can say, and what becomes of it.
func TestEnds(t *testing.T) {
	started, exited := inner.Message{Kind: inner.Started}, inner.Message{Kind: inner.Exited, Status: 3 << 8}
	for _, c := range []struct {
		name   string
		says   []inner.Message
		ready  string // what Ready fails with
		wait   string // what Wait fails with
		status uint32
		noExec int
	}{
		{"exits", []inner.Message{started, exited}, "", "", 3 << 8, 0},
		{"no such program", []inner.Message{{Kind: inner.NoExec, Errno: int32(syscall.ENOENT)}}, "", "", 0, int(syscall.ENOENT)},
		{"fails", []inner.Message{{Kind: inner.Failed, Step: "proc", What: "no /proc"}}, "explained: proc: no /proc", "explained: proc: no /proc", 0, 0},
		{"changed", []inner.Message{{Kind: inner.Changed, What: "moved"}}, "explained: : moved", "explained: : moved", 0, 0},
		{"says nothing", nil, "before the command started", "before the command started", 0, 0},
		{"killed while the command runs", []inner.Message{started}, "", "", uint32(syscall.SIGKILL), 0},
		{"fails when it had started", []inner.Message{started, {Kind: inner.Failed, Step: "x", What: "y"}}, "", "explained: x: y", 0, 0},
		{"an exit out of nothing", []inner.Message{exited}, "", "", 3 << 8, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := begin(t, &stage{ends: errors.New("exit status 9"), script: func(s *stage) {
				_, files := s.hear()
				closeFiles(files)
				for _, m := range c.says {
					s.say(m)
				}
			}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			check := func(what string, err error, want string) {
				t.Helper()
				if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
					t.Errorf("%s: got %v, want %q", what, err, want)
				}
			}
			check("ready", p.Ready(), c.ready)
			e, err := p.Wait()
			check("wait", err, c.wait)
			if err == nil && (e.Status != c.status || e.NoExec != c.noExec) {
				t.Errorf("got %+v, want status %d, errno %d", e, c.status, c.noExec)
			}
			ended(t, p)
		})
	}
}

// Whoever says what nobody understands is not listened to any more.
func TestNonsenseEnds(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for name, say := range map[string]func(s *stage){
		"too short":                 func(s *stage) { s.raw([]byte("S")) },
		"a terminal nobody wanted":  func(s *stage) { s.say(inner.Message{Kind: inner.Terminal}, int(null.Fd())) },
		"a terminal without one":    func(s *stage) { s.say(inner.Message{Kind: inner.Terminal}) },
		"a file with another word":  func(s *stage) { s.say(inner.Message{Kind: inner.Started}, int(null.Fd())) },
		"two files with a terminal": func(s *stage) { s.say(inner.Message{Kind: inner.Terminal}, int(null.Fd()), int(null.Fd())) },
	} {
		t.Run(name, func(t *testing.T) {
			p, err := begin(t, &stage{script: func(s *stage) {
				_, files := s.hear()
				closeFiles(files)
				say(s)
				s.untilEnd() // it is hung up on
			}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Ready(); err == nil {
				t.Error("ready: got nil, want an error")
			}
			if _, err := p.Wait(); err == nil {
				t.Error("wait: got nil, want an error")
			}
			ended(t, p)
		})
	}
}

func TestTerminalChangesHands(t *testing.T) {
	for _, fail := range []bool{false, true} {
		master, err := os.CreateTemp(t.TempDir(), "")
		if err != nil {
			t.Fatal(err)
		}
		defer master.Close()
		_, _ = master.WriteString("master")
		p, err := begin(t, &stage{script: func(s *stage) {
			_, files := s.hear()
			if len(files) != 1 {
				s.t.Errorf("got %d descriptors, want the order alone", len(files))
			}
			closeFiles(files)
			s.say(inner.Message{Kind: inner.Terminal}, int(master.Fd()))
			_, files = s.hear()
			if want := 3; !fail && len(files) != want || fail && len(files) != 0 {
				s.t.Errorf("answer: got %d descriptors", len(files))
			}
			closeFiles(files)
			if !fail {
				s.say(inner.Message{Kind: inner.Started})
				s.say(inner.Message{Kind: inner.Exited})
			}
			s.untilEnd()
		}}, func(job *enforce.Job) {
			stdio := job.Stdio
			job.Order.Terminal = true
			job.Terminal = func(m *os.File) ([3]*os.File, error) {
				defer m.Close()
				b := make([]byte, 6)
				if _, err := m.ReadAt(b, 0); err != nil || string(b) != "master" {
					t.Errorf("the terminal: got %q, %v", b, err)
				}
				if fail {
					return stdio, errors.New("no terminal today")
				}
				return stdio, nil
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.Wait()
		if fail != (err != nil) || fail && !strings.Contains(err.Error(), "no terminal today") {
			t.Errorf("fail %v: got %v", fail, err)
		}
		ended(t, p)
	}
	if _, err := begin(t, &stage{script: (*stage).untilEnd}, func(job *enforce.Job) { job.Order.Terminal = true }); fault.CodeOf(err) != fault.Internal {
		t.Errorf("a terminal that nobody takes: got %v", err)
	}
}

func TestStartFails(t *testing.T) {
	p, err := begin(t, &stage{starts: syscall.EPERM}, nil)
	if !errors.Is(err, syscall.EPERM) {
		t.Errorf("got %v, want EPERM", err)
	}
	ended(t, p)
	p.Discard()
}

// More descriptors than one packet holds arrive in order.
func TestPassManyInPackets(t *testing.T) {
	const n = 2*inner.TreesPerPacket + 3
	var fds []int
	for i := range n {
		f, err := os.CreateTemp(t.TempDir(), "")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		_, _ = f.WriteAt([]byte{byte(i % 251)}, 0)
		fds = append(fds, int(f.Fd()))
	}
	got := make(chan []byte, 1)
	p, err := begin(t, &stage{script: func(s *stage) {
		_, files := s.hear()
		closeFiles(files)
		var bytes []byte
		for len(bytes) < n {
			_, files := s.hear()
			if len(files) == 0 || len(files) > inner.TreesPerPacket {
				s.t.Errorf("a packet of %d", len(files))
				break
			}
			for _, f := range files {
				b := make([]byte, 1)
				_, _ = f.ReadAt(b, 0)
				bytes = append(bytes, b[0])
			}
			closeFiles(files)
		}
		got <- bytes
		s.say(inner.Message{Kind: inner.Exited})
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Pass(fds); err != nil {
		t.Fatal(err)
	}
	for i, b := range <-got {
		if b != byte(i%251) {
			t.Fatalf("descriptor %d came out of order", i)
		}
	}
	if _, err := p.Wait(); err != nil {
		t.Error(err)
	}
	ended(t, p)
}

func TestSignalsAndHangUp(t *testing.T) {
	heard := make(chan string, 4)
	p, err := begin(t, &stage{script: func(s *stage) {
		_, files := s.hear()
		closeFiles(files)
		s.say(inner.Message{Kind: inner.Started})
		for {
			b, _ := s.hear()
			if b == nil {
				heard <- "the end"
				s.say(inner.Message{Kind: inner.Exited, Status: 9})
				return
			}
			heard <- string(b)
		}
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Ready(); err != nil {
		t.Fatal(err)
	}
	p.Signal(2, false)
	p.Signal(15, true)
	if a, b := <-heard, <-heard; a != "c\x02" || b != "a\x0f" {
		t.Errorf("got %q and %q", a, b)
	}
	p.HangUp()
	if got := <-heard; got != "the end" {
		t.Errorf("hung up: got %q", got)
	}
	if e, err := p.Wait(); err != nil || e.Status != 9 {
		t.Errorf("got %+v, %v", e, err)
	}
	ended(t, p)
}

// direct starts a real program with a control socket of the test's own.
func direct(t *testing.T, d *Direct) (conn int, err error) {
	t.Helper()
	patient(t)
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	theirs := os.NewFile(uintptr(pair[1]), "control")
	defer theirs.Close()
	t.Cleanup(func() { unix.Close(pair[0]) })
	_, err = d.Start(theirs)
	return pair[0], err
}

// A program gets its descriptors and its environment, and nothing of our folder.
func TestDirectHandsOver(t *testing.T) {
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = file.WriteString("four")
	_, _ = file.Seek(0, io.SeekStart)
	begun := 0
	d := &Direct{Path: "/bin/sh", Args: []string{"sh", "-c", `cat <&4 >&3; echo >&3; /bin/pwd >&3; echo "$A-$HOME" >&3; a=$(readlink /proc/$$/fd/0 /proc/$$/fd/1 /proc/$$/fd/2); echo "$a" >&3; exit 5`},
		Env: []string{"A=1", "PATH=/usr/bin:/bin"}, Files: []*os.File{file}, Begun: func(pid int) error { begun = pid; return nil }}
	conn, err := direct(t, d)
	if err != nil {
		t.Fatal(err)
	}
	var out []byte
	for b := make([]byte, 1000); ; {
		n, err := unix.Read(conn, b)
		if n <= 0 || err != nil {
			break
		}
		out = append(out, b[:n]...)
	}
	d.Await()
	err = d.Bury()
	const want = "four\n/\n1-\n/dev/null\n/dev/null\n/dev/null\n"
	if got := string(out); got != want || err == nil || err.Error() != "exit status 5" || begun == 0 {
		t.Errorf("got %q, %v, begun %d; want %q, exit status 5", got, err, begun, want)
	}
	if _, err := file.Stat(); err == nil {
		t.Error("our copy of the file is still open")
	}
}

func TestDirectEnds(t *testing.T) {
	d := &Direct{Path: "/bin/sh", Args: []string{"sh", "-c", "kill -9 $$"}}
	if _, err := direct(t, d); err != nil {
		t.Fatal(err)
	}
	d.Await()
	if err := d.Bury(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("killed: got %v", err)
	}
	if _, err := direct(t, &Direct{Path: filepath.Join(t.TempDir(), "none"), Args: []string{"x"}}); !errors.Is(err, syscall.ENOENT) {
		t.Errorf("no program: got %v, want ENOENT", err)
	}
	// What fails after the start leaves nothing behind.
	var pid int
	_, err := direct(t, &Direct{Path: "/bin/sleep", Args: []string{"sleep", "300"}, Begun: func(p int) error { pid = p; return syscall.EPERM }})
	if !errors.Is(err, syscall.EPERM) || syscall.Kill(pid, 0) != syscall.ESRCH {
		t.Errorf("begun fails: got %v; process %d: %v, want it gone", err, pid, syscall.Kill(pid, 0))
	}
}

// A program that never becomes an inner stage is ended, whoever asks.
func TestKillEndsWhatDoesNotListen(t *testing.T) {
	for name, end := range map[string]func(p *Process) error{
		"killed":     func(p *Process) error { p.Kill(); return p.Ready() },
		"hung up on": func(p *Process) error { p.HangUp(); return p.Ready() },
	} {
		t.Run(name, func(t *testing.T) {
			patient(t)
			p, err := Launch(&Direct{Path: "/bin/sleep", Args: []string{"sleep", "300"}}, func(inner.Message) error { return nil })
			if err != nil {
				t.Fatal(err)
			}
			null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer null.Close()
			if err := p.Begin(&enforce.Job{Stdio: [3]*os.File{null, null, null}}); err != nil {
				t.Fatal(err)
			}
			if syscall.Kill(p.PID(), 0) != nil {
				t.Fatal("control: it must run")
			}
			err = end(p)
			if fault.CodeOf(err) != fault.IsolationUnavailable || p.Heard() {
				t.Errorf("got %v, want ISOLATION_UNAVAILABLE", err)
			}
			ended(t, p)
			if syscall.Kill(p.PID(), 0) != syscall.ESRCH {
				t.Errorf("process %d is still there", p.PID())
			}
		})
	}
}

// One that was killed before it gave its child the word, as bwrap can be, leaves
// nobody who holds the control socket and waits.
func TestOrphanEnds(t *testing.T) {
	patient(t)
	file := filepath.Join(t.TempDir(), "pid")
	cmd := &exec.Cmd{Path: "/bin/sh", Args: []string{"sh", "-c", "sleep 300 & echo $! >" + file + "; kill -9 $$"},
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true}}
	p, err := Launch(&Indirect{Cmd: cmd}, func(inner.Message) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if err := p.Begin(&enforce.Job{Stdio: [3]*os.File{null, null, null}}); err != nil {
		t.Fatal(err)
	}
	if err := p.Ready(); fault.CodeOf(err) != fault.IsolationUnavailable {
		t.Errorf("got %v, want ISOLATION_UNAVAILABLE", err)
	}
	ended(t, p)
	raw, _ := os.ReadFile(file)
	pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil {
		t.Fatalf("control: the child has no id: %v", err)
	}
	for range 200 {
		status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil || strings.Contains(string(status), ") Z ") {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("process %d is still there", pid)
}

func TestDiscard(t *testing.T) {
	patient(t)
	p, err := Launch(&Direct{Path: "/bin/sleep", Args: []string{"sleep", "300"}}, func(inner.Message) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	p.Discard()
	ended(t, p)
}

func TestMemory(t *testing.T) {
	f, err := Memory("x", []byte("content"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := make([]byte, 20)
	if n, _ := f.ReadAt(b, 0); string(b[:n]) != "content" {
		t.Errorf("got %q", b[:n])
	}
	if flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
		t.Errorf("flags %d, %v: want it closed on exec", flags, err)
	}
}

func TestUnlessGone(t *testing.T) {
	for _, c := range []struct {
		err  error
		pass bool
	}{{nil, false}, {unix.EPIPE, false}, {os.ErrClosed, false}, {os.NewSyscallError("write", unix.ECONNRESET), false}, {unix.EAGAIN, true}, {unix.EBADF, true}} {
		if got := unlessGone(c.err); (got != nil) != c.pass {
			t.Errorf("%v: got %v", c.err, got)
		}
	}
}

// TestCoverOfTheDead: whoever asks an inner stage that is gone is told so.
func TestCoverOfTheDead(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	steps, theirs, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := theirs.Write([]byte("x")); err == nil {
		t.Error("a joiner can write to what it reads")
	}
	theirs.Close()
	p := &Process{control: os.NewFile(uintptr(pair[0]), "control"), steps: steps, over: make(chan struct{})}
	unix.Close(pair[1])
	for _, what := range []string{"its end is closed", "ours is closed, too"} {
		if _, err := p.cover(nil); !errors.Is(err, os.ErrClosed) {
			t.Errorf("%s: %v", what, err)
		}
		p.control.Close()
		p.steps.Close()
	}
}
