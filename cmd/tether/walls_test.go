//go:build linux

package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tether-sandbox/tether/internal/enforce/landlock"
	"github.com/tether-sandbox/tether/internal/need"
)

// confinements take user namespaces away from a command, each in its own way.
func confinements() map[string]func(t *testing.T, cmd *exec.Cmd) {
	return map[string]func(t *testing.T, cmd *exec.Cmd){
		"a limit of none": func(_ *testing.T, cmd *exec.Cmd) {
			// The limit is one of this user namespace alone.
			const sysResource = 24
			cmd.Args = append([]string{"sh", "-c", `echo 0 >/proc/sys/user/max_user_namespaces || exit 99; exec "$@"`, "sh"}, cmd.Args...)
			cmd.Path = "/bin/sh"
			cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, AmbientCaps: []uintptr{sysResource},
				UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}},
				GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}}
		},
		"a filter": func(t *testing.T, cmd *exec.Cmd) {
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			cmd.Args = append([]string{self}, cmd.Args...)
			cmd.Path, cmd.Env = self, append(cmd.Env, containVariable+"=1")
		},
	}
}

// TestWithoutNamespaces: where user namespaces are refused, nothing runs unless
// less is accepted, the error names the flags that accept it, and what they
// accept is then held.
func TestWithoutNamespaces(t *testing.T) {
	if abi, err := landlock.ABI(); err != nil || abi < 6 {
		need.Missing(t, "landlock", "it takes ABI 6")
	}
	for name, confine := range confinements() {
		t.Run(name, func(t *testing.T) {
			j := newJail(t, "auto")
			run := func(words ...string) result {
				t.Helper()
				cmd := exec.Command(binary, append([]string{"run", "-C", j.w}, words...)...)
				cmd.Env, cmd.Dir = j.env, j.w
				confine(t, cmd)
				return finishCommand(t, cmd)
			}
			read := []string{"--accept", "read=partial"} // root of a user namespace is not unknown to the host
			if r := j.run("echo ran", read...); r.stdout != "ran\n" {
				t.Fatalf("control: without the confinement: %q", r.all())
			}
			for _, p := range []string{"native", "bwrap"} {
				r := run("--provider", p, read[0], read[1], "--", "touch", "ran")
				if r.exit != exitOurs || !strings.Contains(r.stderr, "_UNAVAILABLE") {
					t.Fatalf("%s: exit %d, %q; want it refused", p, r.exit, r.all())
				}
				j.absent("ran")
			}
			// The flags that the hint names, typed as they stand.
			hinted := func() []string {
				t.Helper()
				r := run("--", "touch", "ran")
				_, hint, ok := strings.Cut(r.stderr, "--accept ")
				if r.exit != exitOurs || !ok {
					t.Fatalf("exit %d, %q; want it refused, and the flags named", r.exit, r.all())
				}
				j.absent("ran")
				return strings.Fields("--accept " + hint)
			}
			flags := hinted()
			if strings.Contains(strings.Join(flags, " "), "secrets") {
				t.Errorf("%q: nothing is hidden here", flags)
			}
			j.write(filepath.Join(j.out, "notes"), j.secret)
			r := run(append(flags, "--json", "--", "sh", "-c", "echo made >made; echo tmp >$TMPDIR/t && cat $TMPDIR/t; echo x >"+j.out+"/made; cat "+j.out+"/notes; echo $TMPDIR >tmp")...)
			var got struct {
				Exit   int
				Stdout string
				Report struct {
					Provider, Overall string
					Tried             []string
				}
			}
			if err := json.Unmarshal([]byte(r.stdout), &got); err != nil {
				t.Fatalf("%v: %q", err, r.all())
			}
			if got.Report.Provider != "landlock" || len(got.Report.Tried) != 2 || got.Stdout != "tmp\n" {
				t.Errorf("got %+v", got)
			}
			j.noSecret(r)
			j.unchanged("made", "made\n")
			j.absent(filepath.Join(j.out, "made"))
			if tmp, err := os.ReadFile(filepath.Join(j.w, "tmp")); err != nil || len(tmp) < 10 {
				t.Errorf("the temporary folder: %q, %v", tmp, err)
			} else {
				j.absent(strings.TrimSpace(string(tmp)))
			}
			j.plant(".env")
			if r := run(append(flags, "--", "touch", "ran")...); r.exit != exitOurs || !strings.Contains(r.stderr, "git worktree") {
				t.Errorf("with a hidden file: exit %d, %q; want it refused, and another way shown", r.exit, r.all())
			}
			j.absent("ran")
			if more := hinted(); !strings.Contains(strings.Join(more, " "), "secrets=None") {
				t.Errorf("with a hidden file: %q, want secrets=None named", more)
			} else if r := run(append(more, "--", "echo", "ran")...); r.stdout != "ran\n" {
				t.Errorf("with all that is named: %q", r.all())
			}
			// What is only read is opened round what is hidden.
			r = run(append(flags, "-p", "read-only", "--commands", "any", "--", "sh", "-c", "cat .env; cat made; echo x >new")...)
			if r.stdout != "made\n" || strings.Contains(r.all(), j.secret) {
				t.Errorf("read-only: %q, want the hidden file closed and the other one open", r.all())
			}
			j.absent("new")
		})
	}
}

// TestWallsTree: without a process namespace, nothing of a tree is left: not
// what forks faster than it can be listed, and not when Tether itself is killed.
func TestWallsTree(t *testing.T) {
	need.Program(t, "python3")
	if abi, err := landlock.ABI(); err != nil || abi < 6 {
		need.Missing(t, "landlock", "it takes ABI 6")
	}
	j := newJail(t, "landlock")
	mark := "chain-" + j.secret
	j.write("chain.py", "import os\nif os.fork(): os._exit(0)\nos.setsid()\nwhile True:\n    if os.fork(): os._exit(0)\n")
	tree := "python3 chain.py " + mark + " & (setsid sh -c 'sleep 600; : " + mark + "' &) ; : >started; "
	left := func() string {
		out, _ := exec.Command("pgrep", "-f", mark).Output() // its own arguments are not matched
		return strings.TrimSpace(string(out))
	}
	gone := func(when string) {
		t.Helper()
		for end := time.Now().Add(10 * time.Second); left() != ""; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: %s are left", when, left())
			}
		}
	}
	if r := j.run(tree + "sleep .3; echo done"); r.stdout != "done\n" {
		t.Fatalf("got %q", r.all())
	}
	if l := left(); l != "" {
		t.Errorf("after the command: %s are left", l)
		gone("later")
	}
	_ = os.Remove(filepath.Join(j.w, "started"))
	cmd := j.command("--", "sh", "-c", tree+"sleep 600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(j.w, "started")); err == nil && left() != "" {
			break
		}
		if time.Now().After(end) {
			t.Fatal("it does not start")
		}
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	gone("after Tether was killed")
}

// doorsPast tries what could lead past a gate to a server of the host: the port
// is the first argument. Each door prints a line: its name, and what the server
// said or the error.
const doorsPast = `import os, socket, struct, sys, ctypes
port = int(sys.argv[1]); ask = b"GET / HTTP/1.0\r\n\r\n"
MSG_FASTOPEN, libc = 0x20000000, ctypes.CDLL(None, use_errno=True)
def answer(s):
    b = b""
    while True:
        d = s.recv(4096)
        if not d: return b.decode().split()[-1]
        b += d
def tcp(family=socket.AF_INET, proto=0):
    s = socket.socket(family, socket.SOCK_STREAM, proto) # blocking, as the first packet needs it
    for o in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO): s.setsockopt(socket.SOL_SOCKET, o, struct.pack("ll", 3, 0))
    return s
def connect():
    s = tcp(); s.connect(("127.0.0.1", port)); s.sendall(ask); return answer(s)
def mapped():
    s = tcp(socket.AF_INET6); s.connect(("::ffff:127.0.0.1", port)); s.sendall(ask); return answer(s)
def sendto():
    s = tcp(); s.sendto(ask, MSG_FASTOPEN, ("127.0.0.1", port)); return answer(s)
def sendmsg():
    s = tcp(); s.sendmsg([ask], [], MSG_FASTOPEN, ("127.0.0.1", port)); return answer(s)
def sendmmsg():
    s = tcp()
    class V(ctypes.Structure): _fields_ = [("base", ctypes.c_char_p), ("len", ctypes.c_size_t)]
    class H(ctypes.Structure): _fields_ = [("name", ctypes.c_char_p), ("namelen", ctypes.c_uint), ("iov", ctypes.POINTER(V)), ("iovlen", ctypes.c_size_t),
        ("control", ctypes.c_void_p), ("controllen", ctypes.c_size_t), ("flags", ctypes.c_int), ("sent", ctypes.c_uint)]
    to = struct.pack("<H", 2) + struct.pack(">H", port) + bytes([127, 0, 0, 1]) + bytes(8)
    v = V(ask, len(ask)); h = H(to, 16, ctypes.pointer(v), 1, None, 0, 0, 0)
    if libc.sendmmsg(s.fileno(), ctypes.byref(h), 1, MSG_FASTOPEN) < 0: raise OSError(ctypes.get_errno(), "sendmmsg")
    return answer(s)
def delayed():
    s = tcp(); s.setsockopt(socket.IPPROTO_TCP, 30, 1) # TCP_FASTOPEN_CONNECT
    s.connect(("127.0.0.1", port)); s.sendall(ask); return answer(s)
def again():
    # Another way on a socket that the walls let connect once, where there is a gate.
    import urllib.parse
    u = urllib.parse.urlsplit(os.environ.get("http_proxy", "http://127.0.0.1:%d" % port))
    s = tcp(); s.connect((u.hostname, u.port))
    if libc.connect(s.fileno(), b"\0" * 16, 16) < 0: raise OSError(ctypes.get_errno(), "unspec")
    s.connect(("127.0.0.1", port)); s.sendall(ask); return answer(s)
def udp():
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM); return "OPEN"
def udp6():
    socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); return "OPEN"
def listen():
    s = tcp(); s.listen(1); return "OPEN" # takes a port without a bind
def bind():
    s = tcp(); s.bind(("127.0.0.1", 0)); return "OPEN"
def ulp():
    try: tcp().setsockopt(socket.IPPROTO_TCP, 31, b"tether-none")
    except OSError as e:
        if e.errno == 2: return "OPEN" # looked for, and not there
        raise
def uring():
    if libc.syscall(425, 0, None) < 0 and ctypes.get_errno() != 38: return "OPEN"
    raise OSError(ctypes.get_errno(), "uring")
for door in (connect, mapped, sendto, sendmsg, sendmmsg, delayed, again, udp, udp6, listen, bind, ulp, uring):
    try: print(door.__name__, door())
    except OSError as e: print(door.__name__, "error", e.errno)
`

// TestWallsGate: without namespaces the gate is a proxy on the host's loopback, to
// whose port the walls hold TCP. Names and addresses that a rule opens are
// reached through it, and nothing is past it.
func TestWallsGate(t *testing.T) {
	need.Program(t, "python3")
	need.Program(t, "curl")
	if abi, err := landlock.ABI(); err != nil || abi < 6 {
		need.Missing(t, "landlock", "it takes ABI 6")
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "OPEN") }))
	defer server.Close()
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for name, confine := range confinements() {
		t.Run(name, func(t *testing.T) {
			j := newJail(t, "landlock")
			j.write("doors.py", doorsPast)
			run := func(script string, words ...string) result {
				t.Helper()
				cmd := exec.Command(binary, append(append([]string{"run", "-C", j.w, "--network", "gated"}, words...), "--", "sh", "-c", script)...)
				cmd.Env, cmd.Dir = j.env, j.w
				confine(t, cmd)
				return finishCommand(t, cmd)
			}
			doors := "python3 doors.py " + port
			control := j.mustHost(doors)
			inside := run(doors, "--allow-host", "localhost:"+port)
			free := strings.Split(strings.TrimSpace(control.stdout), "\n")
			held := strings.Split(strings.TrimSpace(inside.stdout), "\n")
			if len(free) != strings.Count(doorsPast, "\ndef ")-2 || len(held) != len(free) {
				t.Fatalf("control: %s; inside: %s", control.all(), inside.all())
			}
			for i, door := range free {
				name, what, _ := strings.Cut(door, " ")
				if what != "OPEN" {
					if name == "uring" || strings.HasSuffix(name, "6") || name == "mapped" {
						t.Logf("no such door on this machine: %s", door)
						continue
					}
					t.Errorf("control: %s", door)
				}
				if !strings.HasPrefix(held[i], name+" error ") {
					t.Errorf("inside: %s", held[i])
				}
			}
			curl := "curl -sS -m 5 http://localhost:" + port + "/; curl -sS -m 5 http://127.0.0.1:" + port + "/; true"
			if r := run(curl, "--allow-host", "localhost:"+port, "--allow-host", "127.0.0.1:"+port, "-v"); r.stdout != "OPENOPEN" || !strings.Contains(r.stderr, "network  Partial") {
				t.Errorf("by the gate, with a rule: %s", r.all())
			}
			if r := run(curl); strings.Contains(r.stdout, "OPEN") || !strings.Contains(r.stderr, "hint: --allow-host 127.0.0.1:"+port) {
				t.Errorf("by the gate, without a rule: %s", r.all())
			}
			for _, unset := range []string{"unset http_proxy HTTP_PROXY all_proxy ALL_PROXY; ", "export http_proxy=$(echo $http_proxy | sed s/:[0-9a-f]*@/:no@/); "} {
				if r := run(unset+curl, "--allow-host", "localhost:"+port, "--allow-host", "127.0.0.1:"+port); strings.Contains(r.stdout, "OPEN") {
					t.Errorf("%s: %s", unset, r.all())
				}
			}
			// What is accepted is what is said: a listener on the gate's port at
			// another address is reached.
			past := `python3 -c 'import os, socket, urllib.parse; p = urllib.parse.urlsplit(os.environ["http_proxy"]).port
print(p, flush=True); input(); s = socket.create_connection(("127.0.0.2", p), 3); print(s.recv(9).decode())'`
			cmd := exec.Command(binary, "run", "-C", j.w, "--network", "gated", "--", "sh", "-c", past)
			cmd.Env, cmd.Dir = j.env, j.w
			confine(t, cmd)
			reached(t, cmd)
		})
	}
	j := newJail(t, "landlock")
	j.write(filepath.Join(j.state, "tether/policy.toml"), strings.Replace(acceptWalls, `, "network=partial"`, "", 1))
	r := finishCommand(t, j.command("--network", "gated", "--", "touch", "ran"))
	if r.exit != exitOurs || !strings.Contains(r.stderr, "hint: --accept network=Partial\n") || !strings.Contains(r.stderr, "by port and not by address") {
		t.Errorf("exit %d, %q; want it refused, and the flag named", r.exit, r.all())
	}
	j.absent("ran")
}

// reached runs a command that prints a port, and connects to 127.0.0.2 there.
func reached(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	lines := bufio.NewScanner(out)
	lines.Scan()
	port, err := strconv.Atoi(lines.Text())
	if err != nil || port < 61000 {
		t.Fatalf("the gate's port: %q, %v", lines.Text(), err)
	}
	l, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.2", lines.Text()))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		if c, err := l.Accept(); err == nil {
			_, _ = io.WriteString(c, "PAST")
			c.Close()
		}
	}()
	_, _ = io.WriteString(in, "\n")
	if lines.Scan(); lines.Text() != "PAST" {
		t.Errorf("got %q: the grade says that this is reached", lines.Text())
	}
}
