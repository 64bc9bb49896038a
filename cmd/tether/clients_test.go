package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tether-sandbox/tether/internal/need"
)

// EC-211: programs that know of no proxy work, or say what stands in the way.
func TestEC211(t *testing.T) {
	need.Program(t, "node")
	need.Program(t, "go")
	gates(t, func(t *testing.T, j *jail, w world) {
		proxied := j.provider != "native" || w.oneNet
		// Built outside: what is tried is a program and not its build.
		src := j.write(filepath.Join(j.out, "get.go"), `package main
import ("fmt"; "io"; "net/http"; "os")
func main() { r, err := http.Get(os.Args[1]); if err != nil { fmt.Println(err); return }; b, _ := io.ReadAll(r.Body); fmt.Println(string(b)) }
`)
		build := exec.Command("go", "build", "-o", filepath.Join(j.w, "get"), src)
		build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("go build: %v: %s", err, out)
		}
		for name, command := range map[string]string{
			"curl": "curl -sS -m 5 URL", "go": "./get URL",
			"python":     `python3 -c 'import urllib.request; print(urllib.request.urlopen("URL", timeout=5).read().decode())'`,
			"node fetch": `node -e 'fetch("URL").then(r => r.text()).then(console.log, e => console.log(String(e.cause || e)))'`,
			"node http":  `node -e 'require("http").get("URL", r => r.pipe(process.stdout)).on("error", e => console.log(String(e)))'`,
		} {
			r, log := w.inside(j, strings.ReplaceAll(command, "URL", "http://ok.test/"))
			if proxied && strings.HasPrefix(name, "node") && !nodeKnowsProxies(t) {
				continue
			}
			if !strings.Contains(r.stdout, servedHTTP) {
				t.Errorf("%s: %s\n%s", name, r.all(), log)
			}
			r, _ = w.inside(j, strings.ReplaceAll(command, "URL", "http://10.0.0.5/"))
			if strings.Contains(r.stdout, servedHTTP) || !strings.Contains(r.stderr, "EGRESS_DENIED: connection to 10.0.0.5 port 80") {
				t.Errorf("%s, refused: %s", name, r.all())
			}
		}
	})
}

// TestGitOverHTTP clones from a server.
func TestGitOverHTTP(t *testing.T) {
	gates(t, func(t *testing.T, j *jail, w world) {
		w.repo = filepath.Join(j.out, "git")
		j.mustHost("mkdir $OUT/git && git init -q $OUT/work && cd $OUT/work && echo CLONED >f && git add f && git commit -qm c && " +
			"git clone -q --bare . $OUT/git/r.git && git -C $OUT/git/r.git update-server-info && chmod -R a+rX $OUT/git")
		r, log := w.inside(j, "git clone -q http://ok.test/repo/r.git c && cat c/f")
		if r.stdout != "CLONED\n" {
			t.Errorf("%s\n%s", r.all(), log)
		}
	})
}

// TestGateCarries: 500 connections at once, both halves of one, transfers both
// ways, resets and refusals as they are.
func TestGateCarries(t *testing.T) {
	const many = `python3 -c 'import asyncio, os, base64, urllib.parse
u = urllib.parse.urlsplit(os.environ.get("https_proxy", ""))
async def dial(host, port):
    if not u.hostname: return await asyncio.open_connection(host, port)
    r, w = await asyncio.open_connection(u.hostname, u.port)
    w.write(("CONNECT %s:%d HTTP/1.1\r\nHost: x\r\nProxy-Authorization: Basic %s\r\n\r\n" % (host, port, base64.b64encode((u.username + ":" + u.password).encode()).decode())).encode())
    head = await r.readuntil(b"\r\n\r\n")
    if b" 200 " not in head: raise OSError(head)
    return r, w
async def one(i):
    r, w = await dial("ok.test", 9418)
    await asyncio.sleep(1)
    w.write(b"%06d" % i); w.write_eof() # the answer comes after our half is closed
    b = await r.read(); w.close()
    return b == b"%06d" % i
async def big():
    r, w = await dial("ok.test", 9418)
    n = 64 << 20
    async def send():
        for _ in range(64): w.write(b"x" * (1 << 20)); await w.drain()
        w.write_eof()
    t = asyncio.create_task(send()); got = 0
    while True:
        d = await r.read(1 << 20)
        if not d: break
        got += len(d)
    await t; w.close()
    return got == n
async def end():
    r, w = await dial("ok.test", 9418)
    w.write(b"RESET")
    try: return await r.read() == b"" and "closed"
    except ConnectionResetError: return "reset"
async def main():
    print("many", all(await asyncio.gather(*(one(i) for i in range(500)))))
    print("big", await big())
    print("end", await end())
    try: await dial("gone.test", 9418); print("gone connected")
    except OSError as e: print("gone", type(e).__name__)
asyncio.run(main())'`
	gates(t, func(t *testing.T, j *jail, w world) {
		w.setup = "ulimit -n 8192"
		r, log := w.inside(j, many, "--network", "gated")
		for _, want := range []string{"many True", "big True", "end reset"} {
			if !strings.Contains(r.stdout, want) {
				t.Errorf("want %q: %s\n%s", want, r.all(), tail(log))
			}
		}
		if strings.Contains(r.stdout, "gone connected") {
			t.Errorf("let in before the other end was there: %s", r.all())
		}
	})
}

func tail(s string) string { return s[max(0, len(s)-2000):] }

// TestGateDNS asks by hand, over UDP and TCP, whichever server is named.
func TestGateDNS(t *testing.T) {
	j, w := gated(t, "native"), world{}
	for _, server := range []string{"198.18.0.1", "8.8.8.8", "fd7e:7e74:6874:6572::1", "2606:4700::1111"} {
		for _, network := range []string{"udp", "tcp"} {
			r, log := w.inside(j, query(server, "ok.test", network)+"; "+query(server, "denied.test", network)+"; "+query(server, "nowhere.test", network), "--deny-host", "denied.test")
			lines := strings.Split(r.stdout, "\n")
			if len(lines) != 4 || !strings.HasPrefix(lines[0], "rcode 0 answers 1 198.18.1.") || !strings.HasPrefix(lines[1], "rcode 3 answers 0") ||
				!strings.HasPrefix(lines[2], "rcode 3 answers 0") || strings.Contains(log, "ASKED denied.test.") {
				t.Errorf("%s %s: %s\n%s", server, network, r.all(), log)
			}
		}
	}
}

// TestSNI: where only listed hosts are allowed, the name inside of TLS counts.
func TestSNI(t *testing.T) {
	hello := func(to, name string) string {
		return fmt.Sprintf(`python3 -c 'import socket, ssl, os, base64, urllib.parse
u = urllib.parse.urlsplit(os.environ.get("https_proxy", ""))
s = socket.create_connection((u.hostname, u.port) if u.hostname else (%q, 443), 5)
if u.hostname:
    s.sendall(b"CONNECT " + %q.encode() + b":443 HTTP/1.1\r\nProxy-Authorization: Basic " + base64.b64encode((u.username + ":" + u.password).encode()) + b"\r\n\r\n"); s.recv(999)
c = ssl.create_default_context(); c.check_hostname = False; c.verify_mode = ssl.CERT_NONE
try: c.wrap_socket(s, server_hostname=%s)
except Exception as e: print(%q, type(e).__name__, e)'; `, to, to, name, to+" "+strings.Trim(name, `"`))
	}
	gates(t, func(t *testing.T, j *jail, w world) {
		// The server speaks no TLS: what it says to a greeting proves that it came.
		r, log := w.inside(j, hello("allowed.test", `"allowed.test"`)+hello("allowed.test", `"evil.test"`)+hello("allowed.test", "None")+
			hello("allowed.test", `"ok.test"`), "--only-host", "allowed.test", "--only-host", "ok.test")
		for what, came := range map[string]bool{"allowed.test allowed.test": true, "allowed.test evil.test": false, "allowed.test None": false, "allowed.test ok.test": true} {
			_, line, ok := strings.Cut(r.stdout, what+" ")
			line, _, _ = strings.Cut(line, "\n")
			if denied := strings.Contains(strings.ToLower(line), "access denied"); !ok || denied == came {
				t.Errorf("%s: %q: %s\n%s", what, line, r.all(), log)
			}
		}
		for _, want := range []string{"evil.test port 443: its TLS on a connection to allowed.test names this host, and no rule allows it", "names no host, and only listed hosts are allowed\nhint: --sni any\n"} {
			if !strings.Contains(r.stderr, want) {
				t.Errorf("stderr does not tell %q: %s", want, r.stderr)
			}
		}
		r, log = w.inside(j, hello("allowed.test", "None")+hello("allowed.test", `"evil.test"`), "--only-host", "allowed.test", "--sni", "any")
		if n := strings.Count(strings.ToLower(r.stdout), "access denied"); n != 1 || !strings.Contains(r.stderr, "names this host, and no rule allows it") {
			t.Errorf("--sni any: %s\n%s", r.all(), log)
		}
		if r, log := w.inside(j, hello("allowed.test", `"evil.test"`)); strings.Contains(strings.ToLower(r.stdout), "access denied") {
			t.Errorf("base public: %s\n%s", r.all(), log)
		}
	})
}

// TestSSHThroughProxy: git's ssh finds its way by the command that stands in the
// environment. The server is none of ssh; that ssh reads what it says is the
// proof. Git over a real sshd went the same way.
func TestSSHThroughProxy(t *testing.T) {
	need.Program(t, "ssh")
	need.Program(t, "bash")
	proxies(t, func(t *testing.T, j *jail, w world) {
		accounts := "root:x:0:0::/root:/bin/sh\n"
		for _, uid := range []int{1000, foreignUID, max(os.Geteuid(), 1)} {
			accounts += fmt.Sprintf("u%d:x:%d:%d::/nonexistent:/bin/sh\n", uid, uid, uid) // ssh wants a name for whoever runs it
		}
		w.setup = "mount --bind " + j.write(filepath.Join(j.out, "passwd"), accounts) + " /etc/passwd"
		r, log := w.inside(j, `eval "$GIT_SSH_COMMAND -v -o BatchMode=yes -o UserKnownHostsFile=/dev/null root@ok.test true"; true`)
		if !strings.Contains(r.stderr, "400 Bad Request") || !strings.Contains(log, "CAME "+pub+":22") {
			t.Errorf("%s\n%s", r.all(), log)
		}
		r, log = w.inside(j, `eval "$GIT_SSH_COMMAND -o BatchMode=yes -o UserKnownHostsFile=/dev/null root@private.test true"; true`)
		if strings.Contains(log, "CAME") || !strings.Contains(r.stderr, "private.test (10.0.0.5) port 22: it is a private address") {
			t.Errorf("%s\n%s", r.all(), log)
		}
	})
}

// TestGateBound: more connections at once than the gate has descriptors for are
// refused at once and told of, and there is place again when others have ended.
func TestGateBound(t *testing.T) {
	const script = `python3 -c 'import socket, os, base64, urllib.parse
u = urllib.parse.urlsplit(os.environ.get("https_proxy", ""))
def dial():
    s = socket.create_connection((u.hostname, u.port) if u.hostname else ("ok.test", 9418), 10)
    if u.hostname:
        s.sendall(b"CONNECT ok.test:9418 HTTP/1.1\r\nProxy-Authorization: Basic " + base64.b64encode((u.username + ":" + u.password).encode()) + b"\r\n\r\n")
        if b" 200 " not in s.recv(999): raise ConnectionRefusedError()
    s.sendall(b"xxxxx")
    assert s.recv(5) == b"xxxxx"
    return s
held, refused = [], 0
for i in range(80):
    try: held.append(dial())
    except ConnectionRefusedError: refused += 1
print(len(held), "held", refused, "refused")
for s in held: s.close()
import time
for i in range(50):
    try: dial(); print("again"); break
    except ConnectionRefusedError: time.sleep(0.1)'`
	gates(t, func(t *testing.T, j *jail, w world) {
		if r, log := w.inside(j, script); r.stdout != "80 held 0 refused\nagain\n" {
			t.Fatalf("control: %s\n%s", r.all(), tail(log))
		}
		w.setup = "ulimit -n 600"
		r, log := w.inside(j, script)
		if r.stdout != "57 held 23 refused\nagain\n" || !strings.Contains(r.stderr, "ok.test port 9418 (") ||
			!strings.Contains(r.stderr, "no more than 57 connections are carried at once, because of the limit of open files (ulimit -n)\n") {
			t.Errorf("%s\n%s", r.all(), tail(log))
		}
	})
}

// TestGatePorts: a local port serves for more than one host, as it does for a
// program that connects by itself.
func TestGatePorts(t *testing.T) {
	const script = `for p in 80 443 8080 22; do for i in $(seq 24); do curl -s -m 9 -o /dev/null -w '%{http_code}\n' http://ok.test:$p/; done; done | sort | uniq -c`
	gates(t, func(t *testing.T, j *jail, w world) {
		w.setup = "echo 40000 40039 >/proc/sys/net/ipv4/ip_local_port_range"
		if r, log := w.outside(j, script); strings.Join(strings.Fields(r.stdout), " ") != "96 200" {
			t.Fatalf("control: %s\n%s", r.all(), tail(log))
		}
		if r, log := w.inside(j, script); strings.Join(strings.Fields(r.stdout), " ") != "96 200" {
			t.Errorf("%s\n%s", r.all(), tail(log))
		}
	})
}

// TestSecretLikeTLS: a secret in clear text is found behind what only begins like
// TLS, which is carried otherwise. That TLS passes is TestHTTP2's to show.
func TestSecretLikeTLS(t *testing.T) {
	say := func(bytes string) string {
		return `python3 -c 'import socket, os, base64, urllib.parse
u = urllib.parse.urlsplit(os.environ.get("https_proxy", ""))
s = socket.create_connection((u.hostname, u.port) if u.hostname else ("ok.test", 9418), 5); s.settimeout(9)
if u.hostname:
    s.sendall(b"CONNECT ok.test:9418 HTTP/1.1\r\nProxy-Authorization: Basic " + base64.b64encode((u.username + ":" + u.password).encode()) + b"\r\n\r\n"); s.recv(999)
s.sendall(` + bytes + `); s.shutdown(socket.SHUT_WR)
r = b""
try:
    while True:
        d = s.recv(9999)
        if not d: break
        r += d
except OSError: pass
print(len(r), b"AbCdEfGhIj" in r)'; `
	}
	const token = `b"tok-0123456789-" + b"AbCdEfGhIj"`
	gates(t, func(t *testing.T, j *jail, w world) {
		j.env = append(j.env, "MY_TOKEN=tok-0123456789-AbCdEfGhIj")
		for _, begin := range []string{`b"\x16" + `, `b"\x16\x03\x01\x00\x40\x01" + `, `b"\x16\x03\x01\x00\x1d\x02\x00\x00\x19" + `} {
			if r, log := w.outside(j, say(begin+token)); !strings.Contains(r.stdout, "True") {
				t.Fatalf("control: %s\n%s", r.all(), log)
			}
			if r, log := w.inside(j, say(begin+token)); strings.Contains(r.stdout, "True") || !strings.Contains(r.stderr, "EGRESS_SECRET") {
				t.Errorf("%s: %s\n%s", begin, r.all(), log)
			}
		}
		if r, log := w.inside(j, say(`b"\x16\x03\x01\x00\x40\x01 harmless"`)); r.stdout != "15 False\n" {
			t.Errorf("harmless: %s\n%s", r.all(), log)
		}
	})
}
