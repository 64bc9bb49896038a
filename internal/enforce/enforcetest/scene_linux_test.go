package enforcetest_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/internal/enforce/enforcetest"
)

// foreignUID owns the workspaces of root's tests with providers that cannot map
// root's own files to an unused id, see docs/decisions.
const foreignUID = 54321

// scene sets up everything that an attacker is after, for one provider.
type scene struct {
	enforcetest.Scene
	t *testing.T
	// file is the scene as the attacker reads it; program is the attacker.
	file, program string
	inherited     *os.File
}

func newScene(t *testing.T) *scene {
	t.Helper()
	top, err := os.MkdirTemp("", "tether-attack-")
	if err != nil {
		t.Fatal(err)
	}
	if top, err = filepath.EvalSymlinks(top); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(top); err != nil {
			t.Error(err)
		}
	})
	s := &scene{t: t, Scene: enforcetest.Scene{Real: os.Geteuid() == 0, Secret: fmt.Sprintf("S3CRET%07x", rand.Uint32()>>4),
		Workspace: top + "/w", ReadOnly: top + "/ro", Outside: top + "/out", State: top + "/state/tether",
		Supervisor: os.Getpid(), Processes: 40, FileBytes: 1 << 20}}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Chmod(top, 0o755))
	for _, d := range []string{"w/sub/deep", "w/.ssh", "w/.git/hooks", "w/.git/objects", "w/.git/refs/heads", "w/.vscode", "w/in/.vscode", "ro", "out", "state"} {
		must(os.MkdirAll(filepath.Join(top, d), 0o755))
	}
	must(os.Mkdir(s.State, 0o700))
	for name, text := range map[string]string{"out/secret": s.Secret, "out/input": "plain", "w/.env": s.Secret, "w/sub/deep/.env": s.Secret, "w/.ssh/id_rsa": s.Secret,
		"ro/f": "plain", "w/.git/HEAD": "ref: refs/heads/main\n", "w/.git/config": "[core]\n\tbare = false\n", "w/.vscode/tasks.json": "{}"} {
		must(os.WriteFile(filepath.Join(top, name), []byte(text), 0o644))
	}
	must(os.Link(s.Workspace+"/.env", s.Workspace+"/plain.txt"))
	me, err := user.Current()
	must(err)
	home, err := os.CreateTemp(me.HomeDir, ".enforcetest-")
	must(err)
	s.Home = home.Name()
	t.Cleanup(func() { os.Remove(s.Home) })
	_, err = home.WriteString(s.Secret)
	must(err)
	must(home.Close())
	must(os.Chmod(s.Home, 0o644))

	s.program = s.Workspace + "/attacker"
	exe, err := os.ReadFile("/proc/self/exe")
	must(err)
	must(os.WriteFile(s.program, exe, 0o755))

	s.startVictim()
	s.handles()
	s.listen()
	s.handOver()
	s.systemV()
	s.disk()
	s.plants()
	dir, err := os.Open(s.Outside)
	must(err)
	t.Cleanup(func() { dir.Close() })
	// Left open for whoever we start, as careless callers do.
	_, err = unix.FcntlInt(dir.Fd(), unix.F_SETFD, 0)
	must(err)
	s.inherited = dir
	t.Setenv("ENFORCETEST_SECRET", s.Secret)

	s.file = s.Workspace + "/scene.json"
	raw, err := json.Marshal(s.Scene)
	must(err)
	must(os.WriteFile(s.file, raw, 0o644))
	return s
}

// plants writes secrets where an attacker asks for them, as an editor would.
func (s *scene) plants() {
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
			asked, _ := filepath.Glob(s.Workspace + "/" + enforcetest.AskPrefix + "*")
			for _, ask := range asked {
				name, err := os.ReadFile(ask)
				if err != nil || len(name) == 0 || !filepath.IsLocal(string(name)) {
					continue
				}
				_ = os.Remove(ask)
				at := filepath.Join(s.Workspace, string(name))
				if err := os.WriteFile(at+".new", []byte(s.Secret), 0o644); err == nil {
					_ = os.Rename(at+".new", at)
				}
			}
		}
	}()
	s.t.Cleanup(func() { close(stop); <-done })
}

// own gives the workspace to whom the command will run as, after the control,
// which leaves files of ours.
func (s *scene) own(p enforcetest.Provider) {
	if !s.Real || !p.OwnsNothing {
		return
	}
	for _, d := range []string{s.Workspace, filepath.Dir(s.State)} {
		if err := filepath.WalkDir(d, func(path string, _ os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return os.Lchown(path, foreignUID, foreignUID)
		}); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *scene) startVictim() {
	cmd := exec.Command("/proc/self/exe", victimWord, s.Outside, s.Secret)
	cmd.Env = append(os.Environ(), "VICTIM_SECRET="+s.Secret)
	cmd.Dir = s.Outside
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err := cmd.StdinPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { in.Close(); _ = cmd.Wait() })
	if _, err := fmt.Fscan(out, &s.Address); err != nil {
		s.t.Fatal(err)
	}
	s.Victim = cmd.Process.Pid
}

func (s *scene) handles() {
	get := func(path string) []byte {
		h, _, err := unix.NameToHandleAt(unix.AT_FDCWD, path, 0)
		if err != nil {
			return nil // stacked file systems have none
		}
		s.Kind = h.Type()
		return h.Bytes()
	}
	s.Handle, s.HiddenHandle = get(s.Outside+"/secret"), get(s.Workspace+"/.env")
}

// listen tells the secret to whoever asks, in every way that a host listens.
func (s *scene) listen() {
	serve := func(l net.Listener) {
		s.t.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = c.Read(make([]byte, 16))
				_, _ = c.Write([]byte(s.Secret))
				c.Close()
			}
		}()
	}
	must := func(l net.Listener, err error) net.Listener {
		s.t.Helper()
		if err != nil {
			s.t.Fatal(err)
		}
		serve(l)
		return l
	}
	any4 := "127.0.0.1:0"
	if s.Real {
		s.Near, s.Metadata, any4 = "10.77.0.1", "169.254.169.254", "0.0.0.0:0"
		if err := upLoopback(map[string]string{"lo": "127.0.0.1", "lo:1": s.Near, "lo:2": s.Metadata}); err != nil {
			s.t.Fatal(err)
		}
	}
	s.TCP = must(net.Listen("tcp4", any4)).Addr().(*net.TCPAddr).Port
	if l, err := net.Listen("tcp6", "[::1]:0"); err == nil {
		serve(l)
		s.TCP6 = l.Addr().(*net.TCPAddr).Port
	}
	udp, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { udp.Close() })
	s.UDP = udp.LocalAddr().(*net.UDPAddr).Port
	go func() {
		for buf := make([]byte, 512); ; {
			_, from, err := udp.ReadFrom(buf)
			if err != nil {
				return
			}
			_, _ = udp.WriteTo([]byte(s.Secret), from)
		}
	}()
	s.Abstract = "enforcetest-" + s.Secret
	must(net.Listen("unix", "@"+s.Abstract))
	s.Sockets = []string{s.Workspace + "/s.sock", s.Outside + "/s.sock"}
	if s.Real {
		s.Sockets = append(s.Sockets, fmt.Sprintf("/run/enforcetest-%d.sock", os.Getpid()))
	}
	for _, path := range s.Sockets {
		must(net.Listen("unix", path))
		if err := os.Chmod(path, 0o777); err != nil {
			s.t.Fatal(err)
		}
	}
	name := "/dev/shm/enforcetest-" + s.Secret
	if err := os.WriteFile(name, []byte(s.Secret), 0o644); err == nil {
		s.t.Cleanup(func() { os.Remove(name) })
	}
	s.ShmFile = name
	s.pty()
}

// handOver hands two folders to whoever listens for them in the workspace.
func (s *scene) handOver() {
	var fds []int
	for _, dir := range []string{s.Outside, s.ReadOnly} {
		fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			s.t.Fatal(err)
		}
		fds = append(fds, fd)
	}
	stop, done := make(chan struct{}), make(chan struct{})
	s.t.Cleanup(func() {
		close(stop)
		<-done
		for _, fd := range fds {
			unix.Close(fd)
		}
	})
	to := &net.UnixAddr{Name: filepath.Join(s.Workspace, enforcetest.Handover), Net: "unix"}
	go func() {
		defer close(done)
		for tick := time.NewTicker(10 * time.Millisecond); ; {
			select {
			case <-stop:
				tick.Stop()
				return
			case <-tick.C:
			}
			c, err := net.DialUnix("unix", nil, to)
			if err != nil {
				continue
			}
			_, _, _ = c.WriteMsgUnix([]byte("!"), unix.UnixRights(fds...), nil)
			c.Close()
		}
	}()
}

func (s *scene) pty() {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { master.Close() })
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		s.t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		s.t.Fatal(err)
	}
	s.Pty = "/dev/pts/" + strconv.Itoa(n)
}

// systemV makes a segment, a queue and a key; kernels may be built without.
func (s *scene) systemV() {
	s.Shm = int(rand.Int32())
	if id, err := unix.SysvShmGet(s.Shm, 4096, unix.IPC_CREAT|unix.IPC_EXCL|0o666); err == nil {
		s.t.Cleanup(func() { _, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil) })
		if at, err := unix.SysvShmAttach(id, 0, 0); err == nil {
			copy(at, s.Secret)
			_ = unix.SysvShmDetach(at)
		}
	}
	queue := "enforcetest-" + s.Secret
	name, err := unix.BytePtrFromString(queue)
	if err != nil {
		s.t.Fatal(err)
	}
	if fd, _, errno := unix.RawSyscall6(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(name)), unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC, 0o666, 0, 0, 0); errno == 0 {
		unix.Close(int(fd))
		s.Queue = queue
		s.t.Cleanup(func() { unix.RawSyscall(unix.SYS_MQ_UNLINK, uintptr(unsafe.Pointer(name)), 0, 0) })
	}
	if id, err := unix.AddKey("user", queue, []byte(s.Secret), unix.KEY_SPEC_USER_KEYRING); err == nil {
		s.Key = queue
		s.t.Cleanup(func() { _, _ = unix.KeyctlInt(unix.KEYCTL_UNLINK, id, unix.KEY_SPEC_USER_KEYRING, 0, 0) })
	}
}

// disk finds the number of a block device.
func (s *scene) disk() {
	raw, err := os.ReadFile("/proc/partitions")
	if err != nil {
		return
	}
	for line := range strings.Lines(string(raw)) {
		var major, minor uint32
		if n, _ := fmt.Sscan(line, &major, &minor); n == 2 {
			s.Disk = unix.Mkdev(major, minor)
			return
		}
	}
}
