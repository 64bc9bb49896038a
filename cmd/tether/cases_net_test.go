package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tether-sandbox/tether/internal/enforce/landlock"
	"github.com/tether-sandbox/tether/internal/need"
)

// gates runs f over each data path: a pair of interfaces, and a proxy, made by
// native where the machine allows no second network namespace, and by bwrap.
func gates(t *testing.T, f func(t *testing.T, j *jail, w world)) {
	t.Helper()
	t.Run("veth", func(t *testing.T) { f(t, gated(t, "native"), world{}) })
	proxies(t, f)
}

// proxies runs f where the gate is a proxy.
func proxies(t *testing.T, f func(t *testing.T, j *jail, w world)) {
	t.Helper()
	t.Run("proxy", func(t *testing.T) { f(t, gated(t, "native"), world{oneNet: true}) })
	t.Run("bwrap", func(t *testing.T) {
		// To whoever is not root, the tests' internet is a user namespace in which
		// bwrap seems to be nobody's and is not trusted.
		if os.Geteuid() == 0 {
			f(t, gated(t, "bwrap"), world{})
		}
	})
	t.Run("landlock", func(t *testing.T) {
		if abi, err := landlock.ABI(); err != nil || abi < 6 {
			need.Missing(t, "landlock", "it takes ABI 6")
		}
		f(t, gated(t, "landlock"), world{})
	})
}

func gated(t *testing.T, provider string) *jail {
	j := newJail(t, provider)
	j.systemPath()
	j.flags = append(j.flags, "--network", "gated")
	return j
}

// hop is what is expected of one request.
type hop struct {
	url  string
	open bool
}

// hops makes every request in one run. Each is made without Tether first, where
// all of them are answered.
func (w world) hops(j *jail, list []hop, flags ...string) (stderr, log string) {
	j.t.Helper()
	var script strings.Builder
	for i, h := range list {
		fmt.Fprintf(&script, "curl -sS -g -m 5 '%s' | sed 's/^/%d /'; ", h.url, i)
	}
	script.WriteString("true")
	r, log := w.outside(j, script.String())
	for i, h := range list {
		if !strings.Contains(r.stdout, fmt.Sprintf("%d %s", i, servedHTTP)) {
			j.t.Fatalf("control: %s is not answered: %s\n%s", h.url, r.all(), log)
		}
	}
	r, log = w.inside(j, script.String(), flags...)
	for i, h := range list {
		if got := strings.Contains(r.stdout, fmt.Sprintf("%d %s", i, servedHTTP)); got != h.open {
			j.t.Errorf("flags %q: %s: answered: %v, want %v: %s\n%s", flags, h.url, got, h.open, r.all(), log)
		}
	}
	return r.stderr, log
}

// TestGateHolds is the first look: what is public is reached by name and by
// address, what is not is refused at once with the one flag that would allow it.
func TestGateHolds(t *testing.T) {
	gates(t, func(t *testing.T, j *jail, w world) {
		stderr, log := w.hops(j, []hop{{"http://ok.test/", true}, {"http://six.test:8080/", true}, {"http://both.test/", true},
			{"http://" + pub + "/", true}, {"http://[" + pub6 + "]/", true}, {"http://private.test/", false}, {"http://" + private + ":8080/", false},
			{"http://ok.test:5432/", false}, {"http://" + metadata + "/", false}, {"http://meta.test/", false}, {"http://nat64.test/", false}})
		if strings.Count(log, "CAME") != 5 {
			t.Errorf("not five connections came: %s", log)
		}
		for _, want := range []string{"private.test (10.0.0.5) port 80: it is a private address\nhint: --allow-host 10.0.0.5\n",
			private + " port 8080: it is a private address\nhint: --allow-host 10.0.0.5:8080\n",
			"ok.test port 5432: port 5432 is not one of base public\nhint: --allow-host ok.test:5432\n",
			metadata + " port 80: it is a cloud metadata address\n", "meta.test (" + metadata + ") port 80: it is a cloud metadata address\n",
			"nat64.test (64:ff9b::5db8:d822) port 80: it is a NAT64 address\n"} {
			if !strings.Contains(stderr, want) {
				t.Errorf("stderr does not tell %q: %s", want, stderr)
			}
		}
		// The one flag opens that and no more.
		w.hops(j, []hop{{"http://private.test:8080/", true}, {"http://private.test/", false}, {"http://ok.test/", true}}, "--allow-host", private+":8080")
		w.hops(j, []hop{{"http://ok.test:5432/", true}, {"http://ok.test:3000/", false}}, "--allow-host", "ok.test:5432")
	})
}

// TestGateLink: the report names the data path, which was chosen by trying.
func TestGateLink(t *testing.T) {
	gates(t, func(t *testing.T, j *jail, w world) {
		want := "(proxy: "
		if j.provider == "native" && !w.oneNet {
			want = "(veth: "
		}
		grade := "network  Complete"
		if j.provider == "landlock" {
			grade = "network  Partial"
		}
		r, _ := w.inside(j, "echo ran", "-v")
		if !strings.Contains(r.stderr, want) || !strings.Contains(r.stderr, grade) || r.stdout != "ran\n" {
			t.Errorf("want %q: %s", want, r.all())
		}
	})
}

// EC-091: an empty list allows nothing, and no list is base public.
func TestEC091(t *testing.T) {
	gates(t, func(t *testing.T, j *jail, w world) {
		list := []hop{{"http://allowed.test/", true}}
		w.hops(j, list)
		policy := func(text string) {
			if j.provider == "landlock" {
				text = acceptWalls + text
			}
			j.write(filepath.Join(j.state, "tether/policy.toml"), text)
		}
		policy("network = \"gated\"\nallow-host = []\n")
		w.hops(j, list)
		list[0].open = false
		policy("network = \"gated\"\nonly-host = []\n")
		stderr, log := w.hops(j, list)
		if strings.Contains(log, "ASKED allowed.test.") || !strings.Contains(stderr, "hint: --allow-host allowed.test\n") {
			t.Errorf("a name that is not allowed was asked for: %s\n%s", stderr, log)
		}
	})
}

// EC-092: a list that parses to nothing is an error.
func TestEC092(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		for _, rule := range []string{",", "  ", " ,", "\t"} {
			for _, flag := range []string{"--allow-host", "--only-host", "--deny-host"} {
				if r := j.run("echo RAN", "--network", "gated", flag, rule); r.exit != exitOurs || !strings.Contains(r.stderr, "POLICY_INVALID") || r.stdout != "" {
					t.Errorf("%s %q: %s", flag, rule, r.all())
				}
			}
			j.write(filepath.Join(j.state, "tether/policy.toml"), fmt.Sprintf("network = \"gated\"\nallow-host = [%q]\n", rule))
			if r := j.run("echo RAN"); r.exit != exitOurs || !strings.Contains(r.stderr, "POLICY_INVALID") || !strings.Contains(r.stderr, "policy.toml:2:") {
				t.Errorf("file %q: %s", rule, r.all())
			}
		}
		j.write(filepath.Join(j.state, "tether/policy.toml"), "network = \"gated\"\nallow-host = [\"\"]\n")
		if r := j.run("echo RAN"); r.exit != exitOurs || !strings.Contains(r.stderr, "POLICY_INVALID") {
			t.Errorf("file with an empty rule: %s", r.all())
		}
	})
}

// EC-093: a suffix has a label's border before it.
func TestEC093(t *testing.T) {
	gates(t, func(t *testing.T, j *jail, w world) {
		w.hops(j, []hop{{"http://example.com/", true}, {"http://a.example.org/", true}, {"http://evil-example.com/", false},
			{"http://notexample.com/", false}, {"http://example.com.evil.test/", false}, {"http://xexample.org/", false}},
			"--only-host", "example.com", "--only-host", "*.example.org")
	})
}

// EC-095: case and one trailing dot do not matter, to allow and to deny.
func TestEC095(t *testing.T) {
	gates(t, func(t *testing.T, j *jail, w world) {
		w.hops(j, []hop{{"http://EXAMPLE.com./", true}, {"http://Example.COM:8080/", true}, {"http://example.com/", true}},
			"--only-host", "example.com", "--only-host", "EXAMPLE.COM.:8080")
		if r, log := w.inside(j, "curl -sS -m 5 http://example.com../", "--only-host", "example.com"); strings.Contains(r.stdout, servedHTTP) {
			t.Errorf("two dots: %s\n%s", r.all(), log)
		}
		w.hops(j, []hop{{"http://BAD.test./", false}, {"http://ok.test/", true}}, "--deny-host", "bad.TEST.")
	})
}

// EC-099: a rule without ports means 80 and 443, one with them those.
func TestEC099(t *testing.T) {
	gates(t, func(t *testing.T, j *jail, w world) {
		w.ports = "80 443 22 25 6379 8443"
		list := []hop{{"http://allowed.test/", true}, {"http://allowed.test:443/", true}, {"http://allowed.test:22/", false}, {"http://allowed.test:25/", false},
			{"http://allowed.test:6379/", false}}
		w.hops(j, list, "--only-host", "allowed.test")
		list[0].open, list[1].open, list[4].open = false, false, true
		w.hops(j, list, "--only-host", "allowed.test:6379")
	})
}

// EC-106: without proxy variables the kernel says that there is no way, or the
// gate judges as ever.
func TestEC106(t *testing.T) {
	gates(t, func(t *testing.T, j *jail, w world) {
		const tries = `env -u HTTP_PROXY -u HTTPS_PROXY -u ALL_PROXY -u http_proxy -u https_proxy -u all_proxy curl -sS -m 5 http://10.0.0.5/
curl --noproxy '*' -sS -m 5 http://10.0.0.5/; NO_PROXY='*' no_proxy='*' curl -sS -m 5 http://10.0.0.5/
python3 -c 'import socket; s = socket.create_connection(("10.0.0.5", 80), 5); s.send(b"GET / HTTP/1.0\r\n\r\n"); print(s.recv(999))'
bash -c 'exec 3<>/dev/tcp/10.0.0.5/80 && printf "GET / HTTP/1.0\r\n\r\n" >&3 && cat <&3'; true`
		if r, log := w.outside(j, tries); strings.Count(r.stdout, servedHTTP) != 5 {
			t.Fatalf("control: %s\n%s", r.all(), log)
		}
		r, log := w.inside(j, tries)
		if strings.Contains(r.stdout, servedHTTP) || strings.Contains(log, "CAME") || r.took.Seconds() > 10 {
			t.Errorf("took %v: %s\n%s", r.took, r.all(), log)
		}
	})
}

// EC-107: no question for a name and no datagram leaves but through the gate.
func TestEC107(t *testing.T) {
	gates(t, func(t *testing.T, j *jail, w world) {
		datagram := func(to string) string {
			return fmt.Sprintf(`python3 -c 'import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(2); s.connect((%q, 4433)); s.send(b"x"); print(s.recv(99))'; `, to)
		}
		script := datagram("127.0.0.1") + datagram(pub) + datagram(private) + query(resolver, "secret.denied.test", "udp") + "; " +
			query(resolver, "secret.denied.test", "tcp") + "; getent hosts x.test; getent hosts other.test; true"
		r, log := w.outside(j, script)
		if strings.Count(r.stdout, hostData) != 3 || !strings.Contains(log, "ASKED secret.denied.test.") || !strings.Contains(r.stdout, pub2) {
			t.Fatalf("control: %s\n%s", r.all(), log)
		}
		for _, flags := range [][]string{{"--only-host", "ok.test"}, {"--no-network"}} {
			if flags[0] == "--no-network" {
				j.flags = nil
			}
			r, log = w.inside(j, script, flags...)
			if strings.Contains(r.stdout, hostData) || strings.Contains(log, "ASKED") || strings.Contains(log, "DATAGRAM") || strings.Contains(r.stdout, pub2) {
				t.Errorf("%q: %s\n%s", flags, r.all(), log)
			}
		}
	})
	// Where every program's packets come to the gate, it says so.
	j, w := gated(t, "native"), world{}
	r, _ := w.inside(j, `python3 -c 'import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(2); s.connect(("`+pub+`", 443)); t = time.time(); s.send(b"x")
try: s.recv(9)
except OSError as e: print(type(e).__name__, time.time() - t < 1)
p = socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP); p.settimeout(2); p.connect(("`+pub+`", 0)); p.send(b"\x08\0\0\0\0\1\0\1")
try: p.recv(9)
except OSError as e: print(e, time.time() - t < 1)'`)
	if !strings.Contains(r.stdout, "ConnectionRefusedError True") || !strings.Contains(r.stderr, pub+" port 443 by udp: only TCP and names pass the gate\nhint: --network open\n") {
		t.Errorf("a refused datagram: %s", r.all())
	}
	if strings.Contains(r.stderr, "PermissionError") { // ping sockets are for groups that the machine names
		t.Log("no ping sockets here")
	} else if !strings.Contains(r.stderr, pub+" by icmp: only TCP and names pass the gate") || strings.Contains(r.stdout, "timed out") {
		t.Errorf("a refused ping: %s", r.all())
	}
}

// EC-109: what goes below an allowed wildcard is let out, and stands in the
// resolver's log, which is the documented limit.
func TestEC109(t *testing.T) {
	gates(t, func(t *testing.T, j *jail, w world) {
		w.hops(j, []hop{{"http://c2VjcmV0.allowed.test/", true}, {"http://allowed.test/", false}}, "--only-host", "*.allowed.test")
	})
}

// EC-110: deny beats allow.
func TestEC110(t *testing.T) {
	gates(t, func(t *testing.T, j *jail, w world) {
		w.hops(j, []hop{{"http://bad.test/", false}, {"http://ok.test/", true}}, "--deny-host", "bad.test", "--allow-host", "bad.test")
		w.hops(j, []hop{{"http://bad.test/", false}, {"http://ok.test/", false}, {"http://" + pub2 + "/", true}}, "--deny-host", pub, "--allow-host", "ok.test")
		for _, flag := range []string{"--allow-host", "--deny-host"} {
			if r := finishCommand(t, j.command(flag, "*", "--", "echo", "RAN")); r.exit != exitOurs || !strings.Contains(r.stderr, "would match every host") {
				t.Errorf("%s *: %s", flag, r.all())
			}
		}
	})
}

// EC-112: what is no host is refused with the right spelling; what is one means
// what it says.
func TestEC112(t *testing.T) {
	j := gated(t, "native")
	for rule, hint := range map[string]string{"https://example.com/": "write it as example.com", "example.com/path": "write it as example.com",
		"*": "leave it out", "exa*mple.com": "write it like *.example.com", " example.com ": "write it as example.com", "127.1": "write it as 127.0.0.1",
		"10.0.0.1/8": "write 10.0.0.0/8", "example.com:99999": "write ports like"} {
		if r := finishCommand(t, j.command("--allow-host", rule, "--", "echo", "RAN")); r.exit != exitOurs || !strings.Contains(r.stderr, "POLICY_INVALID") ||
			!strings.Contains(r.stderr, "hint: "+hint) {
			t.Errorf("%q: %s", rule, r.all())
		}
	}
	gates(t, func(t *testing.T, j *jail, w world) {
		w.hops(j, []hop{{"http://example.com/", true}, {"http://ok.test/", false}, {"http://" + private + "/", false}}, "--only-host", "*.com")
		w.hops(j, []hop{{"http://" + private + "/", true}, {"http://192.168.7.7/", false}, {"http://ok.test/", false}}, "--only-host", "10.0.0.0/8")
	})
}

// EC-115: where the kernel gives no network namespace nothing runs.
func TestEC115(t *testing.T) {
	for _, network := range []string{"none", "gated"} {
		j := newJail(t, "native")
		j.systemPath()
		w := world{setup: "LIMIT='echo 0 > /proc/sys/user/max_net_namespaces;'", oneNet: true, keepLimit: true}
		j.flags = []string{"--network", network}
		cmd := j.command("--", "sh", "-c", "echo RAN")
		r, _ := w.run(j, cmd.Args)
		if r.exit != exitOurs || r.stdout != "" || !strings.Contains(r.stderr, "ISOLATION_UNAVAILABLE") || !strings.Contains(r.stderr, "hint: ") {
			t.Errorf("%s: exit %d: %s", network, r.exit, r.all())
		}
		j.flags = []string{"--network", "open"}
		if r, _ := w.run(j, j.command("--", "sh", "-c", "echo RAN").Args); r.stdout != "RAN\n" {
			t.Errorf("control: the same with the host's network: %s", r.all())
		}
	}
}

// EC-127: what is connected to is what was judged, however the answers change.
func TestEC127(t *testing.T) {
	gates(t, func(t *testing.T, j *jail, w world) {
		const script = `curl -sS -m 5 http://rebind.test/; sleep 5.3; curl -sS -m 5 http://rebind.test/; curl -sS -m 5 http://rebind.test/ http://rebind.test/; true`
		r, log := w.inside(j, script)
		if strings.Count(r.stdout, servedHTTP) < 1 || strings.Contains(log, "127.0.0.1:80") {
			t.Errorf("%s\n%s", r.all(), log)
		}
		if !strings.Contains(r.stderr, "rebind.test (127.0.0.1) port 80 (3 times): it is a loopback address") {
			t.Errorf("the second answer was never judged: %s\n%s", r.all(), log)
		}
		if r, log := w.inside(j, "curl -sS -m 5 http://mixed.test/; true"); strings.Contains(log, "CAME") || !strings.Contains(r.stderr, "mixed.test (::1)") {
			t.Errorf("one bad answer: %s\n%s", r.all(), log)
		}
	})
}

// EC-206: the user's own server on purpose, and no more.
func TestEC206(t *testing.T) {
	gates(t, func(t *testing.T, j *jail, w world) {
		local := []string{"--allow-host", "localhost:3000"}
		if j.provider == "landlock" {
			// There is no loopback of its own: an address is asked for as what it is.
			local = append(local, "--allow-host", "127.0.0.1:3000", "--allow-host", "[::1]:3000")
		}
		w.hops(j, []hop{{"http://localhost:3000/", true}, {"http://127.0.0.1:3000/", true}, {"http://[::1]:3000/", true},
			{"http://127.0.0.1:8080/", false}, {"http://localhost:80/", false}, {"http://" + metadata + "/", false}, {"http://inner.test/", false},
			{"http://" + private + ":3000/", false}}, local...)
		// A resolver that makes addresses up, and one behind NAT64.
		w.hops(j, []hop{{"http://fake.test/", false}, {"http://nat64.test/", false}})
		w.hops(j, []hop{{"http://fake.test/", true}, {"http://nat64.test/", true}, {"http://" + metadata + "/", false}},
			"--allow-host", "198.18.0.0/15", "--allow-host", "64:ff9b::/96")
		// A name of the host's hosts file.
		w.hosts = pub + " box\n"
		w.hops(j, []hop{{"http://box/", true}, {"http://ok.test/", false}}, "--only-host", "box")
	})
}

// TestPublish: the host reaches a server inside on an address that is this
// workspace's own, and only the ports that are named.
func TestPublish(t *testing.T) {
	for _, network := range []string{"none", "gated"} {
		providers(t, func(t *testing.T, j *jail) {
			j.systemPath()
			cmd := j.command("--network", network, "--publish", "8099", "--", "sh", "-c",
				"echo INSIDE >f; python3 -m http.server 8099 --bind 127.0.0.1 & python3 -m http.server 8098 --bind 127.0.0.1 & wait")
			stderr, err := cmd.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
			line, err := bufio.NewReader(stderr).ReadString('\n')
			at, ok := strings.CutPrefix(strings.TrimSpace(line), "tether: port 8099 inside is ")
			at = strings.TrimSuffix(at, " here")
			if !ok || !strings.HasPrefix(at, "127.") || strings.HasPrefix(at, "127.0.") {
				t.Fatalf("%q: %v", line, err)
			}
			got := j.mustHost("for i in $(seq 60); do curl -sS -m 5 http://" + at + "/f && exit; sleep 0.1; done; exit 1")
			if got.stdout != "INSIDE\n" {
				t.Errorf("got %s", got.all())
			}
			if r := j.host("curl -sS -m 2 http://127.0.0.1:8099/f; curl -sS -m 2 http://" + strings.Replace(at, ":8099", ":8098", 1) + "/f"); strings.Contains(r.stdout, "INSIDE") {
				t.Errorf("reached elsewhere: %s", r.all())
			}
		})
	}
}

// TestHostsReplaced: a hosts file that nothing can be mounted on, because it is a
// bind mount whose source was replaced, is told of; the gate works as ever.
func TestHostsReplaced(t *testing.T) {
	gates(t, func(t *testing.T, j *jail, w world) {
		hosts := filepath.Join(filepath.Dir(j.w), "hosts")
		w.hosts = pub + " listed.test\n"
		const get = "curl -sS -m 5 http://ok.test/ http://listed.test/; cat /etc/hosts; true"
		flags := []string{"-v", "--only-host", "ok.test", "--only-host", "listed.test"}
		const told = "/etc/hosts stays inside as it is: it is a bind mount whose source was replaced"
		if r, log := w.inside(j, get, flags...); strings.Count(r.stdout, servedHTTP) != 2 || strings.Contains(r.stdout, "listed.test\n127") || strings.Contains(r.stderr, told) {
			t.Fatalf("control: one that was not replaced: %s\n%s", r.all(), log)
		}
		w.setup = "cp " + hosts + " " + hosts + ".new; mv " + hosts + ".new " + hosts + "; grep -q '//deleted /etc/hosts ' /proc/self/mountinfo || exit 99"
		r, log := w.inside(j, get, flags...)
		if !strings.Contains(r.stdout, "host=ok.test") || !strings.Contains(r.stdout, pub+" listed.test\n") || !strings.Contains(r.stderr, told) {
			t.Errorf("%s\n%s", r.all(), log)
		}
		direct := j.provider == "native" && !w.oneNet // a proxy is told the name
		if direct && (strings.Contains(r.stdout, "host=listed.test") || !strings.Contains(r.stderr, pub+" port 80: no rule allows it\nhint: --allow-host "+pub+"\n")) {
			t.Errorf("%s\n%s", r.all(), log)
		}
		if r, log := w.inside(j, get, append(flags, "--only-host", pub)...); strings.Count(r.stdout, servedHTTP) != 2 {
			t.Errorf("its address is allowed: %s\n%s", r.all(), log)
		}
	})
}
