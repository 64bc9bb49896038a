package landlock

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/need"
)

// The numbers of the pure part are the kernel's.
func TestNumbers(t *testing.T) {
	for _, c := range []struct {
		name      string
		got, want uint64
	}{
		{"execute", fsExecute, unix.LANDLOCK_ACCESS_FS_EXECUTE}, {"write", fsWriteFile, unix.LANDLOCK_ACCESS_FS_WRITE_FILE},
		{"read", fsReadFile, unix.LANDLOCK_ACCESS_FS_READ_FILE}, {"list", fsReadDir, unix.LANDLOCK_ACCESS_FS_READ_DIR},
		{"rmdir", fsRemoveDir, unix.LANDLOCK_ACCESS_FS_REMOVE_DIR}, {"unlink", fsRemoveFile, unix.LANDLOCK_ACCESS_FS_REMOVE_FILE},
		{"char", fsMakeChar, unix.LANDLOCK_ACCESS_FS_MAKE_CHAR}, {"mkdir", fsMakeDir, unix.LANDLOCK_ACCESS_FS_MAKE_DIR},
		{"reg", fsMakeReg, unix.LANDLOCK_ACCESS_FS_MAKE_REG}, {"sock", fsMakeSock, unix.LANDLOCK_ACCESS_FS_MAKE_SOCK},
		{"fifo", fsMakeFifo, unix.LANDLOCK_ACCESS_FS_MAKE_FIFO}, {"block", fsMakeBlock, unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK},
		{"sym", fsMakeSym, unix.LANDLOCK_ACCESS_FS_MAKE_SYM}, {"refer", fsRefer, unix.LANDLOCK_ACCESS_FS_REFER},
		{"truncate", fsTruncate, unix.LANDLOCK_ACCESS_FS_TRUNCATE}, {"ioctl", fsIoctlDev, unix.LANDLOCK_ACCESS_FS_IOCTL_DEV},
		{"bind", netBind, unix.LANDLOCK_ACCESS_NET_BIND_TCP}, {"connect", netConnect, unix.LANDLOCK_ACCESS_NET_CONNECT_TCP},
		{"bind udp", netBindUDP, unix.LANDLOCK_ACCESS_NET_BIND_UDP}, {"send udp", netSendUDP, unix.LANDLOCK_ACCESS_NET_CONNECT_SEND_UDP},
		{"resolve unix", fsResolveUnix, unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX},
		{"abstract", scopeAbstract, unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET}, {"signal", scopeSignal, unix.LANDLOCK_SCOPE_SIGNAL},
		{"path rule", rulePath, unix.LANDLOCK_RULE_PATH_BENEATH},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %#x, want %#x", c.name, c.got, c.want)
		}
	}
}

// both plays r without and with its walls.
func both(t *testing.T, r role, free, walled string) {
	t.Helper()
	control := r
	control.Free = true
	if got := outcome(t, control); got != free {
		t.Fatalf("control: got %q, want %q", got, free)
	}
	if got := outcome(t, r); got != walled {
		t.Errorf("got %q, want %q", got, walled)
	}
}

func abstractName(t *testing.T, kind string) string {
	return fmt.Sprintf("@tether-%s-%d-%s", kind, os.Getpid(), t.Name())
}

func TestScopes(t *testing.T) {
	needABI(t, 6)
	stream, datagram := abstractName(t, "stream"), abstractName(t, "datagram")
	l, err := net.Listen("unix", stream)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	d, err := net.ListenPacket("unixgram", datagram)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	dir := t.TempDir()
	for _, name := range []string{"a/f", "b/g"} {
		put(t, filepath.Join(dir, name))
	}
	try := [][]string{
		{"abstract", stream}, {"abstract-datagram", datagram}, {"abstract-inside", abstractName(t, "inside")},
		{"signal-parent"}, {"pidfd-parent"}, {"signal-self"}, {"signal-child"}, {"memory-parent"},
		// Scopes leave files alone, also renames from folder to folder.
		{"rename", filepath.Join(dir, "a/f"), filepath.Join(dir, "b/f")}, {"rename", filepath.Join(dir, "b/f"), filepath.Join(dir, "a/f")},
	}
	scopes := Ruleset{AnyFile: true, AnyTCP: true, AnyUDP: true}
	both(t, role{Rules: scopes, Try: try},
		"ok ok ok ok ok ok ok ok ok ok",
		"EPERM EPERM ok EPERM EPERM ok ok EACCES ok ok")
	abstractOnly, signalOnly := scopes, scopes
	abstractOnly.AnySignal, signalOnly.AnyAbstract = true, true
	if got, want := outcome(t, role{Rules: abstractOnly, Try: try[:6]}), "EPERM EPERM ok ok ok ok"; got != want {
		t.Errorf("abstract sockets alone: got %q, want %q", got, want)
	}
	if got, want := outcome(t, role{Rules: signalOnly, Try: try[:6]}), "ok ok ok EPERM EPERM ok"; got != want {
		t.Errorf("signals alone: got %q, want %q", got, want)
	}
}

func put(t *testing.T, name string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
}

// tree makes r, w and x (open) and o (outside), each with a file and a folder.
func tree(t *testing.T) func(string) string {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{"r", "w", "x", "o"} {
		put(t, filepath.Join(dir, d, "sub/file"))
		put(t, filepath.Join(dir, d, "file"))
	}
	return func(name string) string { return filepath.Join(dir, name) }
}

func TestFiles(t *testing.T) {
	needABI(t, 5)
	for _, c := range []struct {
		words        string
		free, walled string
	}{
		{"read r/file", "ok", "ok"},
		{"read r/sub/file", "ok", "ok"},
		{"list r", "ok", "ok"},
		{"write r/file", "ok", "EACCES"},
		{"truncate r/file", "ok", "EACCES"},
		{"create r/new", "ok", "EACCES"},
		{"remove r/file", "ok", "EACCES"},
		{"read o/file", "ok", "EACCES"},
		{"list o", "ok", "EACCES"},
		{"stat o/file", "ok", "ok"}, // a stated limit
		{"read r/../o/file", "ok", "EACCES"},
		{"write o/file", "ok", "EACCES"},
		{"truncate o/file", "ok", "EACCES"},
		{"read w/file", "ok", "EACCES"}, // writing does not include reading
		{"write w/file", "ok", "ok"},
		{"truncate w/sub/file", "ok", "ok"},
		{"create w/new", "ok", "ok"},
		{"mkdir w/new", "ok", "ok"},
		{"rmdir w/empty", "ok", "ok"},
		{"remove w/file", "ok", "ok"},
		{"symlink w/link", "ok", "ok"},
		{"pipe w/pipe", "ok", "ok"},
		{"rename w/file w/sub/moved", "ok", "ok"},
		{"link w/file w/sub/linked", "ok", "ok"},
		{"rename w/file o/moved", "ok", "EACCES"},
		{"rename r/file w/moved", "ok", "EACCES"},
		{"link o/file w/linked", "ok", "EXDEV"}, // would gain the folder's rights
		{"mkdir o/new", "ok", "EACCES"},
		{"symlink o/link", "ok", "EACCES"},
		{"write one", "ok", "ok"}, // a rule on a file
		{"remove one", "ok", "EACCES"},
		{"write other", "ok", "EACCES"},
		{"run /bin/true", "ok", "ok"},
		{"run x/true", "ok", "ok"},
		{"run r/true", "ok", "EACCES"},
		{"read x/file", "ok", "ok"},
		{"list x", "ok", "EACCES"},
		{"write x/file", "ok", "EACCES"},
		{"ioctl /dev/null", "ENOTTY", "ENOTTY"},
		{"ioctl /dev/zero", "ENOTTY", "EACCES"},
	} {
		t.Run(strings.ReplaceAll(c.words, "/", "."), func(t *testing.T) {
			for free, want := range map[bool]string{true: c.free, false: c.walled} {
				in := tree(t)
				put(t, in("one"))
				put(t, in("other"))
				copyTrue(t, in("x/true"), in("r/true"))
				if err := os.Mkdir(in("w/empty"), 0o755); err != nil {
					t.Fatal(err)
				}
				words := strings.Fields(c.words)
				for i, w := range words[1:] {
					if !filepath.IsAbs(w) {
						words[i+1] = filepath.Dir(in("x")) + "/" + w
					}
				}
				r := role{Free: free, Rules: Ruleset{AnySocket: true, AnyTCP: true, AnyUDP: true, AnyAbstract: true, AnySignal: true},
					Read: []string{in("r"), "/usr", "/lib", "/etc", "/dev/null", "/dev/zero"}, Write: []string{in("w"), in("one")},
					Exec: []string{in("x"), "/usr", "/bin", "/lib"}, Device: []string{"/dev/null"}, Try: [][]string{words}}
				r.Read, r.Exec = append(r.Read, lib64()...), append(r.Exec, lib64()...)
				if got := outcome(t, r); got != want {
					t.Errorf("free %v: got %s, want %s", free, got, want)
				}
			}
		})
	}
}

// lib64 is where amd64 keeps the dynamic linker.
func lib64() []string {
	if _, err := os.Stat("/lib64"); err != nil {
		return nil
	}
	return []string{"/lib64"}
}

func copyTrue(t *testing.T, to ...string) {
	t.Helper()
	b, err := os.ReadFile(need.Program(t, "true"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range to {
		if err := os.WriteFile(name, b, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// Walls follow the object through mounts, device files cannot be made, and
// file rules forbid mounting.
func TestMounts(t *testing.T) {
	needABI(t, 5)
	need.Root(t)
	in := tree(t)
	if err := os.Mkdir(in("w/m"), 0o755); err != nil {
		t.Fatal(err)
	}
	r := role{Rules: Ruleset{AnySocket: true, AnyTCP: true, AnyUDP: true, AnyAbstract: true, AnySignal: true}, Write: []string{in("w")},
		From: in("o"), To: in("w/m"),
		Try: [][]string{
			{"write", in("w/m/file")}, // bound into an open folder: open there
			{"write", in("o/file")},   // the same file by its other name
			{"mount", in("w/sub")},
			{"device", in("w/null")}, {"remove", in("w/null")},
		}}
	both(t, r, "ok ok ok ok ok", "ok EACCES EPERM EACCES ENOENT")

	// An open folder stays open where it is bound to.
	r.From, r.To = in("w"), in("o/sub")
	r.Try = [][]string{{"write", in("o/sub/file")}, {"write", in("o/file")}}
	both(t, r, "ok ok", "ok EACCES")
}

func TestTCP(t *testing.T) {
	needABI(t, 4)
	var ports []string
	var numbers []uint16
	for range 2 {
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		n := l.Addr().(*net.TCPAddr).Port
		ports, numbers = append(ports, strconv.Itoa(n)), append(numbers, uint16(n))
	}
	rules := Ruleset{AnyFile: true, AnyUDP: true, AnyAbstract: true, AnySignal: true, Connect: numbers[:1]}
	try := [][]string{{"connect", ports[0]}, {"connect", ports[1]}, {"bind", "0"}}
	both(t, role{Rules: rules, Try: try}, "ok ok ok", "ok EACCES EACCES")
	rules.Connect, rules.Bind = nil, []uint16{0}
	both(t, role{Rules: rules, Try: try}, "ok ok ok", "EACCES EACCES ok")
}

// What Downgrade leaves for an older ABI loads and holds here too.
func TestDowngradedRulesHold(t *testing.T) {
	abi, err := ABI()
	if err != nil {
		need.Missing(t, "landlock", err.Error())
	}
	in := tree(t)
	name := abstractName(t, "stream")
	l, err := net.Listen("unix", name)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	path := in("w/socket")
	lp, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer lp.Close()
	udp, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	port := strconv.Itoa(udp.LocalAddr().(*net.UDPAddr).Port)
	for older := 1; older <= abi; older++ {
		put(t, in("w/file"))
		r := role{ABI: older, Write: []string{in("w")}, Read: []string{"/proc"}, Try: [][]string{
			{"write", in("o/file")}, {"write", in("w/file")}, {"truncate", in("o/file")},
			{"rename", in("w/file"), in("w/sub/moved")}, {"ioctl", "/dev/null"}, {"abstract", name}, {"signal-parent"},
			{"path", path}, {"path-inside", in("w/inside")}, {"udp-send", port}, {"udp-bind", "0"}}}
		r.Read = append(r.Read, "/dev/null")
		want := []string{"EACCES", "ok", "ok", "EXDEV", "ENOTTY", "ok", "ok", "ok", "ok", "ok", "ok"}
		if older >= 2 {
			want[3] = "ok"
		}
		if older >= 3 {
			want[2] = "EACCES"
		}
		if older >= 5 {
			want[4] = "EACCES"
		}
		if older >= 6 {
			want[5], want[6] = "EPERM", "EPERM"
		}
		if older >= 9 {
			want[7] = "EACCES"
		}
		if older >= 10 {
			want[9], want[10] = "EACCES", "EACCES"
		}
		if got := outcome(t, r); got != strings.Join(want, " ") {
			t.Errorf("rules for ABI %d: got %q, want %q", older, got, strings.Join(want, " "))
		}
	}
}

// on runs f on a thread of its own, which dies afterwards.
func on(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		done <- f()
	}()
	return <-done
}

func TestRestrictRefuses(t *testing.T) {
	needABI(t, 6)
	scopes := Ruleset{AnyFile: true, AnyTCP: true, AnyUDP: true}
	for _, c := range []struct {
		name  string
		nnp   bool
		rules Ruleset
		want  fault.Code
	}{
		{"nothing to restrict", true, Ruleset{AnyFile: true, AnyTCP: true, AnyUDP: true, AnyAbstract: true, AnySignal: true}, fault.Internal},
		{"a bad descriptor", true, Ruleset{AnySocket: true, AnyUDP: true, Read: []Path{{-1, "nothing"}}}, fault.IsolationUnavailable},
		{"without no_new_privs", false, scopes, fault.Internal},
		{"control", true, scopes, ""},
	} {
		err := on(func() error {
			if c.nnp {
				if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
					return err
				}
			} else if set, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); err != nil || set != 0 {
				return fault.New(c.want, "set for the test itself")
			}
			return Restrict(c.rules)
		})
		if got := fault.CodeOf(err); got != c.want {
			t.Errorf("%s: got %v, want code %q", c.name, err, c.want)
		}
	}
}

// The walls are the thread's alone.
func TestRestrictLeavesOtherThreadsAlone(t *testing.T) {
	needABI(t, 1)
	abi, err := ABI()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "file")
	put(t, name)
	inside := on(func() error {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			t.Error(err)
		}
		files, _ := Ruleset{AnySocket: true, AnyTCP: true, AnyUDP: true, AnyAbstract: true, AnySignal: true}.Downgrade(abi)
		if err := Restrict(files); err != nil {
			t.Error(err)
		}
		return attempt("read", []string{name})
	})
	if inside != unix.EACCES {
		t.Errorf("the thread: got %v, want %v", inside, unix.EACCES)
	}
	if err := attempt("read", []string{name}); err != nil {
		t.Errorf("another thread: got %v, want no error", err)
	}
}

func BenchmarkOpen(b *testing.B) {
	needABI(b, 6)
	name := filepath.Join(b.TempDir(), "a/b/c/d")
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(name, nil, 0o644); err != nil {
		b.Fatal(err)
	}
	root, err := unix.Open("/", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer unix.Close(root)
	scopes := Ruleset{AnyFile: true, AnyTCP: true, AnyUDP: true}
	for as, r := range map[string]*Ruleset{"free": nil, "scopes": &scopes, "files": {AnySocket: true, AnyUDP: true, Read: []Path{{root, "/"}}}} {
		b.Run(as, func(b *testing.B) {
			err := on(func() error {
				if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
					return err
				}
				if r != nil {
					if err := Restrict(*r); err != nil {
						return err
					}
				}
				b.ResetTimer()
				defer b.StopTimer()
				for range b.N {
					if err := attempt("read", []string{name}); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				b.Fatal(err)
			}
		})
	}
}

func BenchmarkRestrict(b *testing.B) {
	needABI(b, 6)
	for range b.N {
		b.StopTimer()
		err := on(func() error {
			if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
				return err
			}
			b.StartTimer()
			defer b.StopTimer()
			return Restrict(Ruleset{AnyFile: true, AnyTCP: true, AnyUDP: true})
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}
