package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tether-sandbox/tether/internal/need"
)

// hostData is what listeners of the host answer with.
const hostData = "HOSTDATA"

// listen answers every connection with hostData, on the host, until the test
// ends. Everybody may connect, so that no mode bits pass for a denial.
func listen(t testing.TB, network, address string) net.Listener {
	t.Helper()
	if network == "unix" && address[0] == '/' {
		if err := os.MkdirAll(filepath.Dir(address), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	if network == "unix" && address[0] == '/' {
		if err := os.Chmod(address, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				fmt.Fprintln(c, hostData)
				// Whoever is in the middle of a request must not see a reset.
				if w, ok := c.(interface{ CloseWrite() error }); ok {
					_ = w.CloseWrite()
				}
				_ = c.SetReadDeadline(time.Now().Add(2 * time.Second))
				_, _ = io.Copy(io.Discard, c)
			}()
		}
	}()
	return l
}

// connect is shell text that prints what a socket answers. "@" begins an
// abstract name.
func connect(address string) string {
	if host, port, err := net.SplitHostPort(address); err == nil && address[0] != '/' && address[0] != '@' {
		return fmt.Sprintf(`python3 -c 'import socket; s=socket.create_connection((%q, %s), 3); print(s.recv(99).decode())'`, host, port)
	}
	return fmt.Sprintf(`python3 -c 'import socket
n=%q
s=socket.socket(socket.AF_UNIX); s.settimeout(3)
s.connect("\0"+n[1:] if n[0]=="@" else n); print(s.recv(99).decode())'`, address)
}

// closed fails when shell text that shows want without Tether shows it inside.
// That it does outside is proven first.
func (j *jail) closed(script, want string, flags ...string) result {
	j.t.Helper()
	j.opens(script, want)
	return j.stays(script, want, flags...)
}

// stays is closed without the proof, for controls of another form.
func (j *jail) stays(script, want string, flags ...string) result {
	j.t.Helper()
	r := j.run(script, flags...)
	if strings.Contains(r.all(), want) {
		j.t.Errorf("inside %q (flags %q) showed %q: exit %d: %s", script, flags, want, r.exit, r.all())
	}
	return r
}

// works fails unless shell text succeeds inside and shows want.
func (j *jail) works(script, want string, flags ...string) result {
	j.t.Helper()
	r := j.run(script, flags...)
	if r.exit != 0 || !strings.Contains(r.all(), want) {
		j.t.Errorf("inside %q (flags %q): exit %d, %q; want exit 0 and %q", script, flags, r.exit, r.all(), want)
	}
	return r
}

// set gives a variable to the jail's host side, once.
func (j *jail) set(name, value string) {
	for i, kv := range j.env {
		if strings.HasPrefix(kv, name+"=") {
			j.env[i] = name + "=" + value
			return
		}
	}
	j.env = append(j.env, name+"="+value)
}

// systemPath takes the developer's own tools off PATH: wrappers there make
// every start of an interpreter slow.
func (j *jail) systemPath() {
	j.set("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
}

// inMounts runs Tether in a mount namespace of its own, after setup: what the
// setup mounts exists nowhere else and is gone with it.
func (j *jail) inMounts(setup, script string, flags ...string) result {
	j.t.Helper()
	need.Root(j.t)
	return j.built(finishCommand(j.t, j.inMountsCommand(setup, script, flags...)))
}

func (j *jail) inMountsCommand(setup, script string, flags ...string) *exec.Cmd {
	cmd := j.command(append(flags, "--", "sh", "-c", script)...)
	words := append([]string{"-m", "--propagation", "private", "--", "sh", "-c", "set -e\n" + setup + "\nexec \"$@\"", "sh"}, cmd.Args...)
	out := exec.Command("unshare", words...)
	out.Env, out.Dir = append(cmd.Env, "W="+j.w, "OUT="+j.out, "SECRET="+j.secret), cmd.Dir
	return out
}

// inMountsHost runs script in such a namespace without Tether: a control.
func (j *jail) inMountsHost(setup, script string) result {
	j.t.Helper()
	need.Root(j.t)
	cmd := exec.Command("unshare", "-m", "--propagation", "private", "--", "sh", "-c", "set -e\n"+setup+"\n"+script)
	cmd.Env, cmd.Dir = append(append([]string{}, j.env...), "W="+j.w, "OUT="+j.out, "SECRET="+j.secret), j.w
	return finishCommand(j.t, cmd)
}

// hostProcess starts a process of the host that ends with the test.
func hostProcess(t testing.TB, words ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); _ = cmd.Wait() })
	return cmd
}
