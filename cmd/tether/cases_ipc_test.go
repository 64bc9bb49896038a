package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/tether-sandbox/tether/internal/enforce/landlock"
	"github.com/tether-sandbox/tether/internal/need"
)

// networks are the ways of the network that hold today.
var networks = []string{"open", "none", "gated"}

// EC-070: a path socket outside /run, reached through a read-only mount.
func TestEC070(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.systemPath()
		path := filepath.Join(j.out, "host.sock")
		listen(t, "unix", path)
		deep := filepath.Join(j.out, "a/b/deep.sock")
		listen(t, "unix", deep)
		j.mustHost("ln -s $OUT/host.sock link.sock; ln -s $OUT/a linked")
		for _, p := range []string{path, deep, "link.sock", "linked/b/deep.sock"} {
			j.opens(connect(p), hostData)
		}
		for _, n := range networks {
			// Out of sight, shown read-only, and shown writable.
			for _, show := range [][]string{nil, {"--allow-read", j.out}, {"--allow-write", j.out}} {
				flags := append([]string{"--network", n}, show...)
				j.own()
				if show != nil && show[0] == "--allow-write" && os.Geteuid() == 0 && j.provider == "bwrap" {
					continue // bwrap runs as the workspace's owner
				}
				j.stays(connect(path)+"; "+connect(deep)+"; "+connect("link.sock")+"; "+connect("linked/b/deep.sock"), hostData, flags...)
			}
		}
	})
	// In a folder of the system, where no one walks.
	t.Run("system", func(t *testing.T) {
		need.Root(t)
		providers(t, func(t *testing.T, j *jail) {
			j.systemPath()
			server := j.write("server.py", `import os, socket
s = socket.socket(socket.AF_UNIX); s.bind("/opt/host.sock"); s.listen(); os.chmod("/opt/host.sock", 0o777)
if os.fork(): os._exit(0)
os.close(0); os.close(1); os.close(2)
s.settimeout(8)
while True:
    try: c, _ = s.accept()
    except OSError: break
    c.send(b"HOSTDATA"); c.close()
`)
			setup := "mount -t tmpfs t /opt; python3 " + server
			if r := j.inMountsHost(setup, connect("/opt/host.sock")); !strings.Contains(r.stdout, hostData) {
				t.Fatalf("control: %s", r.all())
			}
			for _, n := range networks {
				if r := j.inMounts(setup, connect("/opt/host.sock"), "--network", n); strings.Contains(r.stdout, hostData) {
					t.Errorf("network %s: %s", n, r.all())
				}
			}
		})
	})
}

// EC-071: an abstract socket.
func TestEC071(t *testing.T) {
	abi, _ := landlock.ABI()
	providers(t, func(t *testing.T, j *jail) {
		j.systemPath()
		name := "@" + filepath.Base(filepath.Dir(j.w))
		listen(t, "unix", name)
		j.closed(connect(name), hostData, "--no-network")
		if abi < 6 {
			t.Log("Landlock has no scopes here: only --no-network closes abstract sockets")
			return
		}
		j.closed(connect(name), hostData, "--network", "open")
		// Own ones work, also between processes.
		for _, n := range networks {
			j.works(`python3 -c 'import os, socket
s = socket.socket(socket.AF_UNIX); s.bind("\0own"); s.listen()
if os.fork() == 0:
    c = socket.socket(socket.AF_UNIX); c.connect("\0own"); c.send(b"OWN"); os._exit(0)
print(s.accept()[0].recv(9).decode())'`, "OWN", "--network", n)
		}
	})
}

// EC-072: the user's tmux server.
func TestEC072(t *testing.T) {
	need.Program(t, "tmux")
	providers(t, func(t *testing.T, j *jail) {
		// A server of the test's own name, where tmux keeps its sockets.
		name := filepath.Base(filepath.Dir(j.w))
		tmux := "env -u TMUX tmux -L " + name + " "
		if r := j.host(tmux + "new -d sleep 30"); r.exit != 0 {
			need.Missing(t, "tmux", r.all())
		}
		t.Cleanup(func() { j.host(tmux + "kill-server; rm -f /tmp/tmux-$(id -u)/" + name) })
		j.mustHost(tmux + "new-window 'touch $OUT/CONTROL'; for i in $(seq 50); do test -e $OUT/CONTROL && exit; sleep 0.05; done; exit 1")
		socket := j.mustHost(tmux + "display -p '#{socket_path}'").stdout
		script := tmux + "new-window 'touch " + j.out + "/PWN'; tmux -S " + strings.TrimSpace(socket) + " new-window 'touch " + j.out + "/PWN'; " +
			"tmux -S /tmp/tmux-$(id -u)/" + name + " new-window 'touch " + j.out + "/PWN'; tmux -S /tmp/tmux-0/" + name + " list-sessions && echo FOUND"
		for _, n := range networks {
			j.set("TMUX", strings.TrimSpace(socket)+",1,0")
			j.stays(script+"; env | grep -a TMUX= && echo FOUND", "FOUND", "--network", n)
			j.stays(script, "FOUND", "--network", n, "--allow-read", j.out)
		}
		j.mustHost("sleep 0.3")
		j.absent(j.out + "/PWN")
	})
}

// EC-073: container daemons.
func TestEC073(t *testing.T) {
	need.Program(t, "curl")
	providers(t, func(t *testing.T, j *jail) {
		run := j.out + "/run"
		listen(t, "unix", run+"/docker.sock")
		listen(t, "unix", run+"/podman/podman.sock")
		j.set("XDG_RUNTIME_DIR", run)
		j.set("DOCKER_HOST", "unix://"+run+"/docker.sock")
		j.set("CONTAINER_HOST", "unix://"+run+"/podman/podman.sock")
		const dial = `for s in "$XDG_RUNTIME_DIR/docker.sock" "${DOCKER_HOST#unix://}" ` +
			`"${CONTAINER_HOST#unix://}"; do curl -s -m 3 --http0.9 --unix-socket "$s" http://x/ ; done; echo done`
		for _, n := range networks {
			j.closed(dial, hostData, "--network", n)
			j.stays("curl -s -m 3 --http0.9 --unix-socket "+run+"/docker.sock http://x/", hostData, "--network", n)
			j.stays("env | grep -ac '^DOCKER_HOST=\\|^CONTAINER_HOST='", "1", "--network", n)
		}
	})
	t.Run("run", func(t *testing.T) {
		need.Root(t)
		providers(t, func(t *testing.T, j *jail) {
			j.systemPath()
			server := j.write("server.py", `import os, socket
all = []
for p in ("/run/docker.sock", "/run/podman/podman.sock", "/run/containerd/containerd.sock", "/run/user/1000/docker.sock", "/opt/d.sock"):
    os.makedirs(os.path.dirname(p), exist_ok=True)
    s = socket.socket(socket.AF_UNIX); s.bind(p); s.listen(); os.chmod(p, 0o777)
    if os.fork() == 0:
        os.close(0); os.close(1); os.close(2); s.settimeout(8)
        while True:
            try: c, _ = s.accept()
            except OSError: break
            c.send(b"HOSTDATA\n"); c.shutdown(1); c.settimeout(2)
            try:
                while c.recv(4096): pass
            except OSError: pass
            c.close()
        os._exit(0)
`)
			setup := "mount -t tmpfs t /run; mount -t tmpfs t /opt; python3 " + server
			const dial = "for s in /var/run/docker.sock /run/podman/podman.sock /run/containerd/containerd.sock /run/user/1000/docker.sock /opt/d.sock; do " +
				"curl -s -m 3 --http0.9 --unix-socket $s http://x/; done; echo done"
			if r := j.inMountsHost(setup, dial); strings.Count(r.stdout, hostData) != 5 {
				t.Fatalf("control: %s", r.all())
			}
			for _, n := range networks {
				r := j.inMounts(setup, dial, "--network", n)
				if strings.Contains(r.stdout, hostData) || !strings.Contains(r.stdout, "done") {
					t.Errorf("network %s: %s", n, r.all())
				}
			}
		})
	})
}

// EC-074: the user's service manager and session bus.
func TestEC074(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.systemPath()
		run := j.out + "/run"
		for _, s := range []string{"/bus", "/systemd/private", "/at-spi/bus", "/pipewire-0", "/wayland-0", "/gnupg/S.gpg-agent", "/keyring/ssh"} {
			listen(t, "unix", run+s)
		}
		listen(t, "unix", "@/tmp/dbus-"+filepath.Base(filepath.Dir(j.w)))
		j.set("XDG_RUNTIME_DIR", run)
		j.set("DBUS_SESSION_BUS_ADDRESS", "unix:path="+run+"/bus")
		j.set("SSH_AUTH_SOCK", run+"/keyring/ssh")
		j.set("WAYLAND_DISPLAY", run+"/wayland-0")
		j.opens(connect(run+"/bus"), hostData)
		for _, n := range networks {
			for _, s := range []string{"/bus", "/systemd/private", "/gnupg/S.gpg-agent"} {
				j.stays(connect(run+s), hostData, "--network", n)
			}
			j.stays("env | grep -a "+run+" && echo SHOWN", "SHOWN", "--network", n)
			r := j.run("timeout 5 systemd-run --user touch "+j.out+"/PWN; timeout 5 busctl --user list; "+
				"DBUS_SESSION_BUS_ADDRESS=unix:path="+run+"/bus timeout 5 gdbus call --session --dest org.freedesktop.DBus --object-path / --method a.b; "+
				"DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/$(id -u)/bus timeout 5 busctl --user list; "+
				"timeout 5 systemctl list-units; timeout 5 busctl list", "--network", n)
			if strings.Contains(r.stdout, "org.freedesktop") {
				t.Errorf("a bus was reached: %s", r.all())
			}
		}
		j.absent(j.out + "/PWN")
	})
}

// EC-076: display and editor sockets.
func TestEC076(t *testing.T) {
	abi, _ := landlock.ABI()
	providers(t, func(t *testing.T, j *jail) {
		j.systemPath()
		n := strconv.Itoa(70000 + os.Getpid()%10000)
		sockets := []string{"/tmp/.X11-unix/X" + n, "@/tmp/.X11-unix/X" + n, "/tmp/vscode-ipc-" + n + ".sock", "/tmp/.ICE-unix/" + n}
		for _, s := range sockets {
			if s[0] == '/' {
				t.Cleanup(func() { os.Remove(s); os.Remove(filepath.Dir(s)) }) // the folder only if it is empty
			}
			listen(t, "unix", s)
		}
		j.set("DISPLAY", ":"+n)
		j.set("VSCODE_IPC_HOOK_CLI", sockets[2])
		for _, s := range sockets {
			j.closed(connect(s), hostData, "--no-network")
			if s[0] == '/' || abi >= 6 {
				j.stays(connect(s), hostData, "--network", "open")
			}
		}
		j.stays("env | grep -a '^DISPLAY=\\|^VSCODE_IPC' && echo SHOWN", "SHOWN")
	})
}

// EC-078: a socket of the host inside the workspace.
func TestEC078(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.systemPath()
		listen(t, "unix", filepath.Join(j.w, ".s.app"))
		listen(t, "unix", filepath.Join(j.w, "a/b/c/app"))
		for _, n := range networks {
			j.closed(connect(".s.app"), hostData, "--network", n)
			j.closed(connect("a/b/c/app"), hostData, "--network", n)
			j.stays("mv .s.app moved; "+connect("moved"), hostData, "--network", n)
			j.stays("mv a z; "+connect("z/b/c/app"), hostData, "--network", n)
			j.mustHost("test -e a || mv z a")
			const own = `python3 -c 'import os, socket
for p in ("u.sock", "/tmp/u.sock", os.environ["XDG_RUNTIME_DIR"] + "/u.sock"):
    s = socket.socket(socket.AF_UNIX); s.bind(p); s.listen()
    if os.fork() == 0:
        c = socket.socket(socket.AF_UNIX); c.connect(p); c.send(b"OWN"); os._exit(0)
    print(s.accept()[0].recv(9).decode()); os.unlink(p)'`
			if r := j.works(own, "OWN", "--network", n); strings.Count(r.stdout, "OWN") != 3 {
				t.Errorf("own sockets: %s", r.all())
			}
		}
	})
}

// EC-079: TCP services of the host on its loopback, where there is no network or
// only the gate.
// With --network open they are reached, which the report says.
func TestEC079(t *testing.T) {
	need.Program(t, "curl")
	providers(t, func(t *testing.T, j *jail) {
		j.systemPath()
		addresses := []string{"127.0.0.1:0", "[::1]:0"}
		if ifs, err := net.InterfaceAddrs(); err == nil {
			for _, a := range ifs {
				if ip, ok := a.(*net.IPNet); ok && !ip.IP.IsLoopback() && ip.IP.To4() != nil {
					addresses = append(addresses, net.JoinHostPort(ip.IP.String(), "0"))
					break
				}
			}
		}
		for _, a := range addresses {
			l, err := net.Listen("tcp", a)
			if err != nil {
				t.Logf("%s: %v", a, err)
				continue
			}
			l.Close()
			addr := listen(t, "tcp", a).Addr().String()
			host, port, _ := net.SplitHostPort(addr)
			dials := []string{"curl -s -m 3 --http0.9 http://" + addr + "/", connect(addr),
				fmt.Sprintf("bash -c 'exec 3<>/dev/tcp/%s/%s && cat <&3'", host, port)}
			if host == "127.0.0.1" {
				dials = append(dials, "curl -s -m 3 --http0.9 http://localhost:"+port+"/", "curl -s -m 3 --http0.9 http://0.0.0.0:"+port+"/")
			}
			for _, d := range dials {
				j.closed(d, hostData, "--no-network")
				j.stays(d, hostData, "--network", "gated")
			}
			j.works(dials[0], hostData, "--network", "open")
			j.works(dials[0], hostData, "--network", "gated", "--allow-host", addr)
		}
		// A loopback of its own is up.
		j.works(`python3 -c 'import socket
for family, a in (socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"):
    s = socket.socket(family); s.bind((a, 0)); s.listen()
    c = socket.create_connection(s.getsockname()[:2], 3); s.accept()[0].send(b"OWN"); print(c.recv(9).decode())'`, "OWN", "--no-network")
	})
}

// EC-081: System V and POSIX objects.
func TestEC081(t *testing.T) {
	ipcmk, err := exec.LookPath("ipcmk")
	if err != nil {
		need.Missing(t, "ipcmk", err.Error())
	}
	providers(t, func(t *testing.T, j *jail) {
		j.systemPath()
		for _, kind := range []string{"-M 4096", "-Q", "-S 1"} {
			out := j.mustHost(ipcmk + " " + kind + " -p 0666").stdout
			id := out[strings.LastIndexByte(strings.TrimSpace(out), ' ')+1:]
			flag := map[byte]string{'M': "-m", 'Q': "-q", 'S': "-s"}[kind[1]]
			t.Cleanup(func() { j.host("ipcrm " + flag + " " + id) })
			list := "ipcs " + flag + " | grep -c '^0x'"
			j.opens("ipcs "+flag+" -i "+strings.TrimSpace(id)+" | grep "+strings.TrimSpace(id), strings.TrimSpace(id))
			if r := j.run(list); strings.TrimSpace(r.stdout) != "0" {
				t.Errorf("ipcs %s shows %s objects", flag, r.all())
			}
			if kind[1] == 'M' {
				attach := `python3 -c 'import ctypes
libc = ctypes.CDLL(None); libc.shmat.restype = ctypes.c_void_p
print("ATTACHED" if libc.shmat(` + strings.TrimSpace(id) + `, None, 0) not in (None, 2**64 - 1) else "refused")'`
				j.closed(attach, "ATTACHED")
			}
		}
		name := "/" + filepath.Base(filepath.Dir(j.w))
		queue := `python3 -c 'import ctypes, os, sys
libc = ctypes.CDLL(None)
fd = libc.mq_open(b"` + name + `", os.O_RDWR | int(sys.argv[1]), 0o666, None)
print("OPENED" if fd >= 0 else "refused")
if sys.argv[2:]: libc.mq_unlink(b"` + name + `")' `
		j.mustHost(queue + "64") // O_CREAT
		t.Cleanup(func() { j.host(queue + "0 unlink") })
		j.closed(queue+"0", "OPENED")
		// Shared memory by name.
		shm := "/dev/shm" + name
		if err := os.WriteFile(shm, []byte(j.secret), 0o644); err != nil {
			t.Skip(err)
		}
		t.Cleanup(func() { os.Remove(shm) })
		j.noSecret(j.closed("cat "+shm, j.secret))
		// Own objects work, as pools and databases need them.
		j.works(`python3 -c 'import multiprocessing.shared_memory as m, ctypes
s = m.SharedMemory(create=True, size=64); s.buf[0] = 7; s.close(); s.unlink()
libc = ctypes.CDLL(None); print("OWN" if libc.shmget(0, 4096, 0o1600) >= 0 else "refused")'`, "OWN")
	})
}
