package main

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/tether-sandbox/tether/internal/need"
)

// The host of these tests and its internet are two network namespaces of their
// own, joined by a pair of interfaces. The far one has addresses that are public,
// private or worse elsewhere. A server answers on all of them, and is the only
// resolver; another one answers on whatever addresses the host has. Hosts and
// resolv.conf are theirs, too. Nothing of the machine's network is touched, and
// nothing leaves it.
const (
	pub, pub6  = "93.184.216.34", "2606:2800::34"
	pub2       = "93.184.216.35"
	private    = "10.0.0.5"
	metadata   = "169.254.169.254"
	resolver   = "93.184.216.53"
	servedHTTP = "SERVED"
)

// somewhere lists the addresses of that internet.
var somewhere = []string{pub, pub2, resolver, private, metadata, "100.64.0.1", "100.100.100.200", "198.19.0.1", "192.168.7.7", "169.254.170.2",
	pub6, "fd00::5", "fd00:ec2::254", "64:ff9b::5db8:d822"}

// zone is what the resolver says. A name with several lines takes them in turn.
var zone = map[string][]string{
	"ok.test.": {pub}, "six.test.": {pub6}, "both.test.": {pub + " " + pub6}, "other.test.": {pub2}, "private.test.": {private},
	"inner.test.": {"127.0.0.1"}, "mixed.test.": {pub + " ::1"}, "meta.test.": {metadata}, "nat64.test.": {"64:ff9b::5db8:d822"},
	"rebind.test.": {pub, "127.0.0.1"}, "example.com.": {pub}, "www.example.com.": {pub}, "evil-example.com.": {pub}, "notexample.com.": {pub},
	"example.com.evil.test.": {pub}, "a.example.org.": {pub}, "xexample.org.": {pub}, "bad.test.": {pub}, "allowed.test.": {pub},
	"denied.test.": {pub2}, "c2vjcmv0.allowed.test.": {pub}, "gone.test.": {"93.184.216.99"}, "fake.test.": {"198.19.0.1"},
	"own.test.": {own}, "own2.test.": {own2}, "own6.test.": {own6}, "half.test.": {pub + " " + own},
}

// own, own2 and own6 are public addresses of the host itself; own2 is a second
// one of the same interface.
const own, own2, own6 = "93.184.217.1", "93.184.217.2", "2606:2800:1::1"

// serveInternet is this program as a server: of the internet, or of the host. It
// says READY when it serves, logs each question and each connection to its
// standard output, and ends with the process that started it.
func serveInternet() {
	parent := os.Getppid()
	go func() {
		for os.Getppid() == parent {
			time.Sleep(100 * time.Millisecond)
		}
		os.Exit(0)
	}()
	ports := strings.Fields(os.Getenv("TETHER_TEST_PORTS"))
	var mu sync.Mutex
	say := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Printf(format+"\n", args...)
	}
	fatal := func(err error) {
		if err != nil {
			fmt.Println("server:", err)
			os.Exit(1)
		}
	}
	mine := []string{"127.0.0.1"}
	if os.Getenv("TETHER_TEST_SERVER") == "internet" {
		mine = somewhere
		u, err := net.ListenPacket("udp", resolver+":53")
		fatal(err)
		go serveNames(u, say)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		say("SERVED %s %s %s", r.Host, r.URL, r.Context().Value(http.LocalAddrContextKey))
		n, _ := io.Copy(io.Discard, r.Body)
		fmt.Fprintf(w, "%s host=%s got=%d auth=%q\n", servedHTTP, r.Host, n, r.Header.Get("Proxy-Authorization"))
	})
	mux.HandleFunc("/big", func(w http.ResponseWriter, r *http.Request) {
		b := make([]byte, 1<<20)
		for range 64 {
			_, _ = w.Write(b)
		}
	})
	mux.HandleFunc("/none", http.NotFound)
	mux.HandleFunc("/ws", webSocket)
	fatal(serveTLS(mux, say))
	for _, p := range ports {
		for _, network := range []string{"tcp4", "tcp6"} {
			l, err := net.Listen(network, ":"+p)
			fatal(err)
			go func() { _ = (&http.Server{Handler: mux}).Serve(logged{l, say}) }()
		}
	}
	if dir := os.Getenv("TETHER_TEST_REPO"); dir != "" {
		git := http.FileServer(http.Dir(dir))
		mux.Handle("/repo/", http.StripPrefix("/repo/", git))
	}
	// An echo that knows half-close, and one whose other end resets.
	l, err := net.Listen("tcp", ":9418")
	fatal(err)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			say("CAME %s", c.LocalAddr())
			go func() {
				defer c.Close()
				r := bufio.NewReader(c)
				if b, err := r.Peek(5); err == nil && string(b) == "RESET" {
					_ = c.(*net.TCPConn).SetLinger(0)
					return
				}
				_, _ = io.Copy(c, r)
			}()
		}
	}()
	// UDP that would answer, from where it was asked.
	for _, a := range mine {
		d, err := net.ListenPacket("udp", net.JoinHostPort(a, "4433"))
		fatal(err)
		go func() {
			b := make([]byte, 2048)
			for {
				_, from, err := d.ReadFrom(b)
				if err != nil {
					return
				}
				say("DATAGRAM")
				_, _ = d.WriteTo([]byte(hostData), from)
			}
		}()
	}
	// A proxy that wants credentials, and knows a name that nobody else does.
	x, err := net.Listen("tcp", ":3128")
	fatal(err)
	go func() {
		for {
			c, err := x.Accept()
			if err != nil {
				return
			}
			go serveProxy(c, say)
		}
	}()
	say("READY")
	select {}
}

// serveNames answers questions for names.
func serveNames(u net.PacketConn, say func(string, ...any)) {
	turn := map[string]int{}
	b := make([]byte, 4096)
	for {
		n, from, err := u.ReadFrom(b)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(b[:n]) != nil || len(m.Questions) != 1 {
			continue
		}
		q := m.Questions[0]
		name := strings.ToLower(q.Name.String())
		say("ASKED %s %v", name, q.Type)
		m.Header = dnsmessage.Header{ID: m.ID, Response: true, RecursionAvailable: true}
		m.Additionals = nil
		lines, known := zone[name]
		if !known {
			m.RCode = dnsmessage.RCodeNameError
		} else {
			i := turn[name]
			if q.Type == dnsmessage.TypeA {
				turn[name]++
			}
			for _, a := range strings.Fields(lines[min(i, len(lines)-1)]) {
				ip := net.ParseIP(a)
				h := dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET}
				if v4 := ip.To4(); v4 != nil && q.Type == dnsmessage.TypeA {
					m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AResource{A: [4]byte(v4)}})
				} else if v4 == nil && q.Type == dnsmessage.TypeAAAA {
					m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AAAAResource{AAAA: [16]byte(ip)}})
				}
			}
		}
		if out, err := m.Pack(); err == nil {
			_, _ = u.WriteTo(out, from)
		}
	}
}

// proxyPassword is what the proxy of that internet wants of its user, me.
const proxyPassword = "pr0xy-pa55word-QxZ17"

// serveProxy serves one tunnel, to wherever it is asked to.
func serveProxy(c net.Conn, say func(string, ...any)) {
	defer c.Close()
	r := bufio.NewReader(c)
	q, err := http.ReadRequest(r)
	if err != nil {
		return
	}
	say("TUNNEL %s %s", q.Method, q.RequestURI)
	credentials := "Basic " + base64.StdEncoding.EncodeToString([]byte("me:"+proxyPassword))
	if q.Header.Get("Proxy-Authorization") != credentials {
		_, _ = io.WriteString(c, "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
		return
	}
	name, port, _ := net.SplitHostPort(q.RequestURI)
	addr := name
	if lines := zone[name+"."]; len(lines) > 0 {
		addr = strings.Fields(lines[0])[0]
	}
	switch name {
	case "only-the-proxy.test":
		addr = pub
	case "sneak.test":
		addr = resolver // which is the proxy itself
	}
	if net.ParseIP(addr) == nil {
		_, _ = io.WriteString(c, "HTTP/1.1 502 Bad Gateway\r\n\r\n")
		return
	}
	server, err := net.Dial("tcp", net.JoinHostPort(addr, port))
	if err != nil {
		_, _ = io.WriteString(c, "HTTP/1.1 502 Bad Gateway\r\n\r\n")
		return
	}
	defer server.Close()
	_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
	go func() {
		_, _ = io.Copy(server, r)
		_ = server.(*net.TCPConn).CloseWrite()
	}()
	_, _ = io.Copy(c, server)
}

// logged tells of every connection.
type logged struct {
	net.Listener
	say func(string, ...any)
}

func (l logged) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		l.say("CAME %s", c.LocalAddr())
	}
	return c, err
}

// world is one use of that internet.
type world struct {
	ports string
	// setup runs before the server, hosts is more of the hosts file.
	setup, hosts string
	// oneNet lets the run make one network namespace and no second.
	oneNet bool
	// keepLimit leaves the limit to setup.
	keepLimit bool
	repo      string
}

// inside runs shell text in a jail that lies in the tests' internet. The log is
// what came to the server.
func (w world) inside(j *jail, script string, flags ...string) (r result, log string) {
	j.t.Helper()
	cmd := j.command(append(flags, "--", "sh", "-c", script)...)
	r, log = w.run(j, cmd.Args)
	return j.built(r), log
}

// outside runs shell text there without Tether: a control.
func (w world) outside(j *jail, script string) (r result, log string) {
	j.t.Helper()
	return w.run(j, []string{"sh", "-c", script})
}

func (w world) run(j *jail, argv []string) (result, string) {
	t := j.t
	t.Helper()
	for _, p := range []string{"ip", "unshare", "curl", "python3"} {
		need.Program(t, p)
	}
	if w.ports == "" {
		w.ports = "80 443 8080 22 5432 3000"
	}
	dir := filepath.Dir(j.w)
	logFile, hosts := filepath.Join(dir, "server.log"), filepath.Join(dir, "hosts")
	for path, text := range map[string]string{logFile: "", hosts: "127.0.0.1 localhost\n::1 localhost ip6-localhost\n" + w.hosts,
		filepath.Join(dir, "resolv.conf"): "nameserver " + resolver + "\noptions timeout:1 attempts:1\n"} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var setup, far, near strings.Builder
	fmt.Fprintf(&near, "addr add %s/24 dev eth0\naddr add %s/24 dev eth0\naddr add %s dev eth0 nodad\n", own, own2, own6)
	for _, a := range somewhere { // whatever has no route there is nowhere
		via, now := "172.31.255.1", ""
		if strings.Contains(a, ":") {
			via, now = "fd31::1", "nodad"
		}
		fmt.Fprintf(&far, "addr add %s dev lo %s\n", a, now)
		fmt.Fprintf(&near, "route add %s via %s\n", a, via)
	}
	fmt.Fprintf(&setup, `set -e
export FAR=%s/far
touch $FAR
unshare --net=$FAR true
afar() { nsenter --net=$FAR -- "$@"; }
ip -batch - <<'END'
link set lo up
link add eth0 type veth peer name eth0 netns %[1]s/far
link set eth0 up
addr add 172.31.255.2/30 dev eth0
addr add fd31::2/64 dev eth0 nodad
%[2]sEND
afar ip -batch - <<'END'
link set lo up
link set eth0 up
addr add 172.31.255.1/30 dev eth0
addr add fd31::1/64 dev eth0 nodad
route add 93.184.217.0/24 via 172.31.255.2
route add %[3]s via fd31::2
%[4]sEND
mount --bind %[5]s /etc/hosts
mount --bind %[1]s/resolv.conf /etc/resolv.conf
%[6]s
export TETHER_TEST_PORTS=%[7]q TETHER_TEST_REPO=%[8]q
TETHER_TEST_SERVER=internet nsenter --net=$FAR -- %[9]s >>%[10]s 2>&1 &
TETHER_TEST_SERVER=host %[9]s >>%[10]s 2>&1 &
unset TETHER_TEST_PORTS TETHER_TEST_REPO
for i in $(seq 400); do
	[ "$(grep -c READY %[10]s)" = 2 ] && break
	! grep -q server: %[10]s || break
	sleep 0.025
done
[ "$(grep -c READY %[10]s)" = 2 ] || { cat %[10]s; exit 99; }
`, dir, near.String(), own6, far.String(), hosts, w.setup, w.ports, w.repo, self, logFile)
	words := []string{"-n", "-m", "--propagation", "private", "--"}
	uid := os.Geteuid()
	if w.oneNet || uid != 0 {
		// Root of a user namespace sets it up; whoever runs then is not.
		words = append([]string{"-U", "-r"}, words...)
		if w.oneNet && !w.keepLimit {
			// Namespaces count where they are made: the limit is that of the user
			// namespace below.
			setup.WriteString("LIMIT='echo 1 > /proc/sys/user/max_net_namespaces;'\n")
		}
		if uid == 0 {
			uid = 1000
		}
		fmt.Fprintf(&setup, "exec unshare -U -r sh -c \"$LIMIT exec unshare -U --map-user=%d --map-group=%d -- \\\"\\$@\\\"\" sh \"$@\"", uid, uid)
	} else {
		setup.WriteString("exec \"$@\"")
	}
	words = append(words, "sh", "-c", setup.String(), "sh")
	out := exec.Command("unshare", append(words, argv...)...)
	out.Env, out.Dir = j.env, j.w
	r := finishCommand(t, out)
	log, _ := os.ReadFile(logFile)
	if r.exit == 99 || !strings.Contains(string(log), "READY") {
		t.Fatalf("the tests' internet was not built: %s%s", r.all(), log)
	}
	return r, string(log)
}

// query is a question for a name by hand, over UDP or TCP.
func query(server, name, network string) string {
	return fmt.Sprintf(`python3 -c 'import socket, struct
q = struct.pack(">HHHHHH", 7, 0x100, 1, 0, 0, 0) + b"".join(bytes([len(l)]) + l.encode() for l in %q.split(".")) + b"\0" + struct.pack(">HH", 1, 1)
tcp = %q == "tcp"
s = socket.socket(socket.AF_INET6 if ":" in %q else socket.AF_INET, socket.SOCK_STREAM if tcp else socket.SOCK_DGRAM); s.settimeout(3)
s.connect((%q, 53))
s.send((struct.pack(">H", len(q)) if tcp else b"") + q)
r = s.recv(4096)
r = r[2:] if tcp else r
print("rcode", r[3] & 15, "answers", struct.unpack(">H", r[6:8])[0], socket.inet_ntoa(r[-4:]))'`, name, network, server, server)
}
