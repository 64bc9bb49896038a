package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha1"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tether-sandbox/tether/internal/need"
)

// tlsPort is where that internet speaks TLS, HTTP/2 among others.
const tlsPort = "8444"

// serveTLS serves mux by TLS, with a certificate that nobody signed.
func serveTLS(mux http.Handler, say func(string, ...any)) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"ok.test"}},
		&x509.Certificate{}, &key.PublicKey, key)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", ":"+tlsPort)
	if err != nil {
		return err
	}
	s := &http.Server{Handler: mux, TLSConfig: &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}}
	go func() { _ = s.ServeTLS(logged{l, say}, "", "") }()
	return nil
}

// webSocket says back what comes in one short frame (RFC 6455).
func webSocket(w http.ResponseWriter, r *http.Request) {
	sum := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	c, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer c.Close()
	fmt.Fprintf(rw, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n", base64.StdEncoding.EncodeToString(sum[:]))
	if rw.Flush() != nil {
		return
	}
	var head [6]byte // the last four are the mask
	if _, err := io.ReadFull(rw, head[:]); err != nil {
		return
	}
	text := make([]byte, head[1]&0x7f)
	if _, err := io.ReadFull(rw, text); err != nil {
		return
	}
	for i := range text {
		text[i] ^= head[2+i%4]
	}
	_, _ = rw.Write(append([]byte{0x81, byte(len(text) + 5)}, append([]byte("ECHO "), text...)...))
	_ = rw.Flush()
	_, _ = io.Copy(io.Discard, rw)
}

// TestDig: the client that people debug with, over UDP and TCP, whichever server
// it asks.
func TestDig(t *testing.T) {
	need.Program(t, "dig")
	j, w := gated(t, "native"), world{}
	for _, flags := range []string{"", "+tcp", "@8.8.8.8", "@8.8.8.8 +tcp", "@2606:4700::1111"} {
		r, log := w.inside(j, "dig +time=2 +tries=1 "+flags+" ok.test; dig +time=2 +tries=1 "+flags+" denied.test", "--deny-host", "denied.test")
		ok, denied, _ := strings.Cut(r.stdout, "denied.test")
		if !strings.Contains(ok, "status: NOERROR") || !strings.Contains(ok, "198.18.1.") || !strings.Contains(denied, "status: NXDOMAIN") || strings.Contains(log, "ASKED denied.test.") {
			t.Errorf("%s: %s\n%s", flags, r.all(), log)
		}
	}
	if r, log := w.inside(j, "dig +time=2 +tries=1 both.test AAAA; dig +time=2 +tries=1 ok.test TXT; dig +time=2 +tries=1 -x 198.18.1.0"); !strings.Contains(r.stdout, "fd7e:7e74:6874:6573::") ||
		!strings.Contains(r.stdout, "status: NOTIMP") || !strings.Contains(r.stdout, "both.test.") {
		t.Errorf("%s\n%s", r.all(), log)
	}
}

// TestHTTP2: by TLS, under either base.
func TestHTTP2(t *testing.T) {
	gates(t, func(t *testing.T, j *jail, w world) {
		const get = "curl -sSk --http2 -m 5 -w ' v%{http_version}\\n' https://ok.test:" + tlsPort + "/; curl -sSk --http1.1 -m 5 -w ' v%{http_version}\\n' https://ok.test:" + tlsPort + "/"
		for _, flag := range []string{"--allow-host", "--only-host"} {
			r, log := w.inside(j, get, flag, "ok.test:"+tlsPort)
			if strings.Count(r.stdout, servedHTTP) != 2 || !strings.Contains(r.stdout, " v2\n") || !strings.Contains(r.stdout, " v1.1\n") {
				t.Errorf("%s: %s\n%s", flag, r.all(), log)
			}
		}
	})
}

// TestWebSocket: what begins as a request and goes on as something else.
func TestWebSocket(t *testing.T) {
	need.Program(t, "node")
	const byHand = `python3 -c 'import socket, os, base64, urllib.parse
u = urllib.parse.urlsplit(os.environ.get("https_proxy", ""))
s = socket.create_connection((u.hostname, u.port) if u.hostname else ("ok.test", 80), 5)
if u.hostname:
    s.sendall(b"CONNECT ok.test:80 HTTP/1.1\r\nProxy-Authorization: Basic " + base64.b64encode((u.username + ":" + u.password).encode()) + b"\r\n\r\n"); s.recv(999)
s.sendall(b"GET /ws HTTP/1.1\r\nHost: ok.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
r = s.makefile("rb")
while r.readline() != b"\r\n": pass
s.sendall(b"\x81\x85\x01\x02\x03\x04" + bytes(c ^ (1 + i % 4) for i, c in enumerate(b"hello")))
r.read(2); print(r.read(10).decode())'`
	const byNode = `node --experimental-websocket --no-warnings -e 'const w = new WebSocket("ws://ok.test/ws");
w.onopen = () => w.send("hello"); w.onmessage = e => { console.log(e.data); process.exit() }; w.onerror = e => { console.log(String(e.message)); process.exit() }'`
	gates(t, func(t *testing.T, j *jail, w world) {
		for _, flags := range [][]string{nil, {"--only-host", "ok.test"}} {
			r, log := w.inside(j, byHand, flags...)
			if r.stdout != "ECHO hello\n" {
				t.Errorf("%q: %s\n%s", flags, r.all(), log)
			}
			if j.provider != "native" || w.oneNet {
				continue // node's WebSocket knows of no proxies
			}
			if r, log := w.inside(j, byNode, flags...); r.stdout != "ECHO hello\n" {
				t.Errorf("node, %q: %s\n%s", flags, r.all(), log)
			}
		}
	})
}

// asKeeper runs a server of the system in that internet: they refuse root, which
// whoever sets it up is there. Files that are the test's are the keeper's.
const asKeeper = "nsenter --net=$FAR -- unshare -U --map-user=64321 --map-group=64321 -- "

// accounts are what the servers and clients find in /etc/passwd.
func accounts(j *jail) string {
	text := "root:x:0:0::/root:/bin/sh\nkeeper:*:64321:64321::/nonexistent:/bin/sh\n"
	for _, uid := range []int{1000, foreignUID, max(os.Geteuid(), 1)} {
		text += fmt.Sprintf("u%d:x:%d:%d::/nonexistent:/bin/sh\n", uid, uid, uid)
	}
	return "mount --bind " + j.write(filepath.Join(j.out, "passwd"), text) + " /etc/passwd\n"
}

// systemProgram finds a program where only servers look for it.
func systemProgram(t *testing.T, name string) string {
	t.Helper()
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	for _, path := range append(found, "/usr/sbin/"+name) {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return need.Program(t, name)
}

// TestPostgres: psql and a real server.
func TestPostgres(t *testing.T) {
	psql := filepath.Join(filepath.Dir(systemProgram(t, "initdb")), "psql")
	if _, err := os.Stat(psql); err != nil {
		psql = need.Program(t, "psql")
	}
	initdb, postgres := systemProgram(t, "initdb"), systemProgram(t, "postgres")
	j := gated(t, "native")
	data := filepath.Join(j.out, "data")
	made := exec.Command("unshare", "-U", "--map-user=65534", "--map-group=65534", "--", initdb, // it wants a name for whoever runs it
		"-D", data, "-U", "me", "-A", "trust", "--no-sync", "--no-instructions")
	made.Env, made.Dir = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"}, "/"
	if out, err := made.CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v: %s", err, out)
	}
	w := world{ports: "80", setup: accounts(j) + asKeeper + "setpriv --pdeathsig QUIT " + postgres + " -D " + data + " -h '" + pub + "' -k '' -F -c shared_buffers=1MB >" + j.out + "/pg.log 2>&1 &\n" +
		"for i in $(seq 200); do grep -qs 'ready to accept' " + j.out + "/pg.log && break; sleep 0.05; done"}
	j.write(filepath.Join(data, "pg_hba.conf"), "host all all all trust\n")
	const ask = ` -h ok.test -U me -d postgres -Atc "select 6*7; create table t as select generate_series(1,10000) n; select sum(n) from t"`
	r, log := w.inside(j, psql+ask, "--allow-host", "ok.test:5432")
	if pg, _ := os.ReadFile(j.out + "/pg.log"); r.stdout != "42\nSELECT 10000\n50005000\n" {
		t.Fatalf("%s\n%s\n%s", r.all(), log, pg)
	}
	r, _ = w.inside(j, psql+ask)
	if r.exit == 0 || !strings.Contains(r.stderr, "Connection refused") || !strings.Contains(r.stderr, "ok.test port 5432: port 5432 is not one of base public\nhint: --allow-host ok.test:5432\n") {
		t.Errorf("without a rule: %s", r.all())
	}
}

// TestGitOverSSH: clone and push, with a real sshd whose key is checked.
func TestGitOverSSH(t *testing.T) {
	need.Program(t, "ssh-keygen")
	sshd := systemProgram(t, "sshd")
	gates(t, func(t *testing.T, j *jail, w world) {
		j.mustHost("mkdir -p $OUT/git && git init -q -b main $OUT/work && cd $OUT/work && echo CLONED >f && git add f && git commit -qm c && git clone -q --bare . $OUT/git/r.git && " +
			"ssh-keygen -q -t ed25519 -N '' -f $OUT/host && ssh-keygen -q -t ed25519 -N '' -f $W/deploy && cp $W/deploy.pub $OUT/keys && " +
			"echo \"ok.test $(cut -d' ' -f1,2 $OUT/host.pub)\" >$W/known && chmod 600 $W/deploy $OUT/host")
		j.write(filepath.Join(j.out, "gitconfig"), "[safe]\n\tdirectory = *\n")
		j.write(filepath.Join(j.out, "sshd"), fmt.Sprintf("Port 22\nListenAddress %s\nHostKey %s/host\nAuthorizedKeysFile %s/keys\nPidFile none\nUsePAM no\nStrictModes no\nPasswordAuthentication no\n"+
			"SetEnv GIT_CONFIG_GLOBAL=%s/gitconfig\nLogLevel VERBOSE\n", pub, j.out, j.out, j.out))
		w.ports = "80"
		w.setup = "afar sh -c 'echo 0 >/proc/sys/net/ipv4/ip_unprivileged_port_start'\n" + accounts(j) + asKeeper + "setpriv --pdeathsig TERM " + sshd + " -D -e -f " + j.out + "/sshd >" + j.out + "/sshd.log 2>&1 &\n" +
			"for i in $(seq 200); do grep -qs 'Server listening' " + j.out + "/sshd.log && break; sleep 0.05; done"
		const with = `export GIT_SSH_COMMAND="${GIT_SSH_COMMAND:-ssh} -i $PWD/deploy -o IdentitiesOnly=yes -o BatchMode=yes -o StrictHostKeyChecking=yes -o UserKnownHostsFile=$PWD/known"; `
		url := "ssh://keeper@ok.test" + j.out + "/git/r.git"
		r, log := w.inside(j, with+"git clone -q "+url+" c && cd c && cat f && echo PUSHED >f && git -c user.name=a -c user.email=a@b commit -qam p && git push -q origin main && echo done")
		if said, _ := os.ReadFile(j.out + "/sshd.log"); r.stdout != "CLONED\ndone\n" || !strings.Contains(string(said), "Accepted publickey") {
			t.Fatalf("%s\n%s\n%s", r.all(), log, said)
		}
		if got := j.mustHost("git -c safe.directory=* -C $OUT/git/r.git show main:f"); got.stdout != "PUSHED\n" {
			t.Errorf("not pushed: %s", got.all())
		}
		r, _ = w.inside(j, with+"git clone -q "+url+" d", "--only-host", "other.test:22")
		if r.exit == 0 || !strings.Contains(r.stderr, "ok.test") || !strings.Contains(r.stderr, "EGRESS_DENIED") {
			t.Errorf("not allowed: %s", r.all())
		}
	})
}
