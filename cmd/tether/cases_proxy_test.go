package main

import (
	"fmt"
	"net/netip"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/tether-sandbox/tether/internal/host"
	"github.com/tether-sandbox/tether/internal/need"
)

// says is shell text that sends bytes to the proxy and prints what comes back.
// AUTH in it becomes the credentials of the environment. SOCKS says hello first.
func says(socks bool, bytes string) string {
	return fmt.Sprintf(`python3 -c 'import os, socket, base64, urllib.parse
u = urllib.parse.urlsplit(os.environ["https_proxy"])
s = socket.create_connection((u.hostname, u.port), 5); s.settimeout(5)
if %v:
    s.sendall(b"\x05\x01\x02"); s.recv(2)
    s.sendall(b"\x01" + bytes([len(u.username)]) + u.username.encode() + bytes([len(u.password)]) + u.password.encode()); s.recv(2)
b = %s
s.sendall(b.replace(b"AUTH", b"Proxy-Authorization: Basic " + base64.b64encode((u.username + ":" + u.password).encode())))
r = b""
try:
    while len(r) < 4000:
        d = s.recv(4000)
        if not d: break
        r += d
except OSError: pass
print(r)'; `, map[bool]string{true: "True", false: "False"}[socks], bytes)
}

// EC-097: a name with a NUL byte, and other names that are none.
func TestEC097(t *testing.T) {
	proxies(t, func(t *testing.T, j *jail, w world) {
		ask := func(name string) string {
			return says(true, `b"\x05\x01\x00\x03" + (lambda n: bytes([len(n)]) + n)(`+name+`) + b"\x00\x50"`)
		}
		for _, name := range []string{`b"denied.test\x00.allowed.test"`, `b"denied.test\n.allowed.test"`, `b"denied.test .allowed.test"`,
			`b"denied.test%00.allowed.test"`, `b"a" * 255`, `b""`, `b"allowed.test/"`, `b"2130706433"`} {
			r, log := w.inside(j, ask(name), "--only-host", "allowed.test", "--only-host", "*.allowed.test")
			if !strings.Contains(r.stdout, `b'\x05\x02`) || strings.Contains(log, "ASKED") || strings.Contains(log, "CAME") {
				t.Errorf("%s: %s\n%s", name, r.all(), log)
			}
		}
		r, log := w.inside(j, ask(`b"ALLOWED.test."`), "--only-host", "allowed.test")
		if !strings.Contains(r.stdout, `b'\x05\x00`) || !strings.Contains(log, "CAME") {
			t.Errorf("control: %s\n%s", r.all(), log)
		}
	})
}

// EC-098: addresses through CONNECT and SOCKS, and by a connection of one's own.
func TestEC098(t *testing.T) {
	connect := func(to string) string {
		return says(false, `b"CONNECT `+to+` HTTP/1.1\r\nHost: x\r\nAUTH\r\n\r\n"`)
	}
	proxies(t, func(t *testing.T, j *jail, w world) {
		four, six := says(true, `b"\x05\x01\x00\x01\x5d\xb8\xd8\x22\x01\xbb"`), says(true, `b"\x05\x01\x00\x04" + bytes.fromhex("26062800000000000000000000000034") + b"\x01\xbb"`)
		for _, refused := range []string{connect(pub + ":443"), connect("[" + pub6 + "]:443"), connect("2130706433:80"), connect("127.0.0.1.:80"),
			connect("[::ffff:127.0.0.1]:80"), connect("x@" + pub + ":443"), four, six, says(false, `b"\x04\x01\x00\x50\x5d\xb8\xd8\x22x\x00"`)} {
			r, log := w.inside(j, refused, "--only-host", "ok.test")
			if strings.Contains(r.stdout, " 200 ") || strings.Contains(r.stdout, `b'\x05\x00`) || strings.Contains(log, "CAME") {
				t.Errorf("%s: %s\n%s", refused, r.all(), log)
			}
		}
		r, log := w.inside(j, connect(pub+":443")+connect("["+pub6+"]:443")+four+six, "--only-host", pub, "--only-host", pub6)
		if strings.Count(r.stdout, " 200 ") != 2 || strings.Count(r.stdout, `b'\x05\x00`) != 2 || strings.Count(log, "CAME") != 4 {
			t.Errorf("control: %s\n%s", r.all(), log)
		}
	})
	t.Run("veth", func(t *testing.T) {
		world{}.hops(gated(t, "native"), []hop{{"http://" + pub + "/", false}, {"http://[" + pub6 + "]/", false}, {"http://ok.test/", true}}, "--only-host", "ok.test")
	})
}

// EC-101: a request names one host, or it is none. On a connection of one's own
// each request is held to the name that was dialled.
func TestEC101(t *testing.T) {
	flags := []string{"--only-host", "allowed.test"}
	proxies(t, func(t *testing.T, j *jail, w world) {
		get := func(head string) string { return says(false, `b"`+head+`AUTH\r\n\r\n"`) }
		r, log := w.inside(j, get(`GET http://allowed.test/ HTTP/1.1\r\nHost: evil.test\r\n`), flags...)
		if !strings.Contains(r.stdout, `host=allowed.test got=0 auth=""`) || strings.Contains(log, "evil") {
			t.Errorf("another Host: %s\n%s", r.all(), log)
		}
		for _, bad := range []string{`GET http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\nHost: evil.test\r\n`,
			`GET http://x@allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n`, `GET http://allowed.test/ HTTP/1.1\r\nHost : evil.test\r\n`,
			`GET http://allowed.test/ HTTP/1.1\r\n Host: evil.test\r\n`, `GET http://allowed.test/ HTTP/1.1\nHost: evil.test\r\n`,
			`POST http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n`,
			`POST http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\nContent-Length: 1\r\nContent-Length: 2\r\n`,
			`GET http://allowed.test\\@evil.test/ HTTP/1.1\r\nHost: allowed.test\r\n`, `GET / HTTP/1.1\r\nHost: allowed.test\r\n`} {
			if r, log := w.inside(j, get(bad), flags...); strings.Contains(r.stdout, servedHTTP) || strings.Contains(log, "CAME") || !strings.Contains(r.stdout, "HTTP/1.1 4") {
				t.Errorf("%s: %s\n%s", bad, r.all(), log)
			}
		}
		// What follows the first request on the same connection goes nowhere.
		r, log = w.inside(j, says(false, `b"GET http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\nAUTH\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: evil.test\r\n\r\n"`), flags...)
		if !strings.Contains(r.stdout, servedHTTP) || strings.Contains(log, "smuggled") {
			t.Errorf("a second request: %s\n%s", r.all(), log)
		}
		if r, _ := w.inside(j, strings.ReplaceAll(get(`GET http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n`), "u.password", `"wrong"`), flags...); !strings.Contains(r.stdout, "407") || strings.Contains(r.stdout, servedHTTP) {
			t.Errorf("without the secret: %s", r.all())
		}
	})
	t.Run("veth", func(t *testing.T) {
		j := gated(t, "native")
		send := func(bytes string) string {
			return `python3 -c 'import socket
s = socket.create_connection(("allowed.test", 80), 5); s.settimeout(3); s.sendall(` + bytes + `)
r = b""
try:
    while True:
        d = s.recv(4000)
        if not d: break
        r += d
except OSError: pass
print(r)'; `
		}
		const asks = `GET / HTTP/1.1\r\nHost: allowed.test\r\nUpgrade: x\r\n\r\n` // and the server does not hear it
		const good, evil = `GET / HTTP/1.1\r\nHost: allowed.test\r\n\r\n`, `GET /evil HTTP/1.1\r\nHost: evil.test\r\n\r\n`
		for _, tt := range []struct {
			bytes  string
			served int
		}{{good, 1}, {good + good, 2}, {evil, 0}, {good + evil, 1}, {`GET / HTTP/1.1\r\nHost: allowed.test\r\nHost: evil.test\r\n\r\n`, 0},
			{`\r\n` + evil, 0}, {` ` + evil, 0}, {strings.Replace(evil, "GET", "get", 1), 0}, {strings.Replace(evil, "GET", "X-Y", 1), 0},
			{asks + evil, 1}, {asks + `\r\n` + evil, 1}, {asks + good, 2},
			{`PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n`, 0}, {`CONNECT evil.test:80 HTTP/1.1\r\nHost: allowed.test\r\n\r\n`, 0}} {
			r, log := world{}.inside(j, send(`b"`+tt.bytes+`"`), flags...)
			if strings.Count(log, "SERVED ") != tt.served || strings.Contains(log, "evil") || strings.Count(r.stdout, servedHTTP) != tt.served {
				t.Errorf("%s: %s\n%s", tt.bytes, r.all(), log)
			}
			if tt.served == 0 && !strings.Contains(r.stderr, "EGRESS_DENIED") {
				t.Errorf("%s: no denial: %s", tt.bytes, r.all())
			}
		}
	})
}

// EC-105: the same verdict by every route.
func TestEC105(t *testing.T) {
	need.Program(t, "node")
	gates(t, func(t *testing.T, j *jail, w world) {
		routes := func(name string) string {
			return strings.ReplaceAll(`curl -sS -m 5 http://NAME/; curl -sS -m 5 -p http://NAME/; [ -z "$ALL_PROXY" ] || curl -sS -m 5 -x "$ALL_PROXY" http://NAME/
python3 -c 'import urllib.request; print(urllib.request.urlopen("http://NAME/", timeout=5).read().decode())'
node -e 'fetch("http://NAME/").then(r => r.text()).then(console.log, e => console.log(String(e)))'
python3 -c 'import os, socket, threading, urllib.parse, subprocess
u = urllib.parse.urlsplit(os.environ.get("http_proxy", "http://NAME:80"))
l = socket.create_server(("127.0.0.1", 0)) # a relay inside
def relay():
    c, _ = l.accept(); s = socket.create_connection((u.hostname, u.port or 80), 5)
    threading.Thread(target=lambda: [c.sendall(d) for d in iter(lambda: s.recv(9999), b"")], daemon=True).start()
    [s.sendall(d) for d in iter(lambda: c.recv(9999), b"")]
threading.Thread(target=relay, daemon=True).start()
at = "http://%%s127.0.0.1:%%d" %% (u.username + ":" + u.password + "@" if u.username else "", l.getsockname()[1])
print(subprocess.run(["curl", "-sS", "-m", "5", "-x", at, "http://NAME/"] if u.username else ["curl", "-sS", "-m", "5", "-H", "Host: NAME", at + "/"], capture_output=True, text=True).stdout)'; true`, "NAME", strings.ReplaceAll(name, "%", ""))
		}
		script := func(name string) string { return strings.ReplaceAll(routes(name), "%%", "%") }
		r, log := w.inside(j, script("denied.test"), "--only-host", "allowed.test")
		if strings.Contains(r.stdout, servedHTTP) || strings.Contains(log, "CAME") || strings.Contains(log, "ASKED") {
			t.Errorf("%s\n%s", r.all(), log)
		}
		want := 5
		if proxied := j.provider != "native" || w.oneNet; proxied && nodeKnowsProxies(t) {
			want = 6
		}
		if j.provider == "landlock" {
			want-- // the relay: nothing inside can listen
		}
		if r, log := w.inside(j, script("allowed.test"), "--only-host", "allowed.test"); strings.Count(r.stdout, servedHTTP) != want {
			t.Errorf("control: want %d: %s\n%s", want, r.all(), log)
		}
	})
}

// nodeKnowsProxies says whether Node's fetch looks at NODE_USE_ENV_PROXY.
func nodeKnowsProxies(t *testing.T) bool {
	out, err := exec.Command("node", "-p", "parseInt(process.versions.node)").Output()
	if err != nil {
		t.Fatal(err)
	}
	major, err := strconv.Atoi(strings.TrimSpace(string(out)))
	return err == nil && major >= 24
}

// EC-120: addresses that carry an IPv4 address.
func TestEC120(t *testing.T) {
	for _, a := range []string{"64:ff9b::a9fe:a9fe", "64:ff9b:1::a9fe:a9fe", "2002:7f00:1::", "::127.0.0.1", "2001:0:4136:e378:8000:63bf:3fff:fdd2",
		"::5efe:10.0.0.1", "fec0::1"} {
		if c := host.ClassOf(netip.MustParseAddr(a)); c == host.Public || c == host.Unknown {
			t.Errorf("%s is %v", a, c)
		}
	}
	world{}.hops(gated(t, "native"), []hop{{"http://[64:ff9b::5db8:d822]/", false}, {"http://[" + pub6 + "]/", true}})
}

// EC-121: special ranges beyond the private ones.
func TestEC121(t *testing.T) {
	for _, a := range []string{"100.64.0.1", "192.0.0.192", "168.63.129.16", "198.18.0.1", "240.0.0.1", "255.255.255.255", "224.0.0.1", "192.0.2.1", "ff02::1",
		"fd00:ec2::254", "fe80::1"} {
		if c := host.ClassOf(netip.MustParseAddr(a)); c == host.Public || c == host.Unknown {
			t.Errorf("%s is %v", a, c)
		}
	}
	world{}.hops(gated(t, "native"), []hop{{"http://100.64.0.1/", false}, {"http://100.100.100.200/", false}, {"http://198.19.0.1/", false},
		{"http://169.254.170.2/", false}, {"http://[fd00:ec2::254]/", false}, {"http://[fd00::5]/", false}, {"http://" + pub + "/", true}})
}
