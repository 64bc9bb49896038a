//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/tether-sandbox/tether/internal/need"
)

// EC-191: ten thousand protected files.
func TestEC191(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		const n = 10000
		for i := range n {
			j.write(fmt.Sprintf("certs/%d.pem", i+1), "-----BEGIN PRIVATE KEY-----\n"+j.secret+"\n")
		}
		j.own()
		const read = "cat certs/1.pem certs/5000.pem certs/10000.pem; cat certs/*.pem 2>/dev/null | head -c 100"
		j.opens(read, j.secret)
		if j.provider == "bwrap" {
			// bwrap takes 9000 words. More is a refusal, and names the way out.
			r := finishCommand(t, j.command("--", "touch", "ran"))
			if r.exit != exitOurs || !strings.Contains(r.stderr, "tether: SANDBOX_UNAVAILABLE: ") || !strings.Contains(r.stderr, "--provider native") {
				t.Errorf("exit %d: %s", r.exit, r.all())
			}
			j.absent("ran")
			if r.took > 3*time.Second {
				t.Errorf("it took %v to refuse", r.took)
			}
			return
		}
		j.run("true") // the machine's own cost of reading ten thousand fresh files
		r := j.run("true")
		if r.exit != 0 || r.took > 3*time.Second {
			t.Errorf("exit %d after %v: %s; want 0 within 3 s", r.exit, r.took, r.all())
		}
		r = j.run(read)
		j.noSecret(r)
		if strings.Count(r.stderr, "Permission denied") != 3 {
			t.Errorf("got %s, want three refusals", r.all())
		}
		if got := j.report("true")["report"].(map[string]any)["hidden"].(float64); got < n || got > n+100 { // and what toolchains have
			t.Errorf("%v files are hidden, want %d", got, n)
		}
	})
}

// EC-192: a folder that is called like a secret is a folder.
func TestEC192(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.systemPath()
		j.mustHost("python3 -m venv --without-pip .env && mkdir x.pem keys.key && echo a > x.pem/a && echo b > keys.key/b")
		j.plant(".env/.env", "x.pem/id_rsa")
		j.works(`. .env/bin/activate && python -c 'import sys; print("in", sys.prefix)' && cat x.pem/a keys.key/b && touch keys.key/new`, "in "+j.w+"/.env")
		j.closed("cat .env/.env x.pem/id_rsa", j.secret)
	})
}

// EC-194: links with a protected name that lead nowhere or out of the tree.
func TestEC194(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.plant("real/.env", filepath.Join(j.out, "certs/a.pem"), "plain/id_rsa")
		for _, c := range []struct {
			name, link string
			secret     bool // it can be read through on the host
		}{
			{".env", "nowhere", false}, {".env.local", "/nix/store/x/.env", false}, {"a.pem", filepath.Join(j.out, "certs/a.pem"), true},
			{"b.pem", "../out/certs/a.pem", true}, {"d", "real", false}, {"linked.key", "d/.env", true}, {"dd", "d", false},
			{"loop.pem", "loop.pem", false}, {".ssh", "no/such/folder", false}, {"x.key", "plain/id_rsa", true},
			{"notes", "plain/id_rsa", true}, {"sub.pem", "real", false},
		} {
			if err := os.Symlink(c.link, filepath.Join(j.w, c.name)); err != nil {
				t.Fatal(err)
			}
			if c.secret {
				j.opens("cat "+c.name, j.secret)
			}
		}
		j.own()
		before := listing(t, filepath.Dir(j.w))
		before = before[strings.Index(before, `"w"`):]
		j.works("echo started", "started")
		after := listing(t, filepath.Dir(j.w))
		if d := difference(before, after[strings.Index(after, `"w"`):]); d != "" {
			t.Errorf("it changed%s", d)
		}
		for _, script := range []string{"cat .env .env.local a.pem b.pem d/.env linked.key dd/.env loop.pem x.key notes", "find -L . -type f -exec cat {} +; grep -r S3 ."} {
			j.closed(script, j.secret)
		}
		j.absent("nowhere")
	})
}

// EC-196: strange names, of the workspace and of secrets.
func TestEC196(t *testing.T) {
	names := []string{"with space", "quo'te", `dou"ble`, "new\nline", "$(touch x)", "-dash", "\U0001F600", "b\xff\xfe", `back\slash`, "tab\there", "`id`", "%s%n",
		"a:b", "*?[", "\x1b[31m", "trailing ", ".dot."}
	providers(t, func(t *testing.T, j *jail) {
		top := j.w
		for _, name := range names {
			j.w = filepath.Join(top, name)
			for _, dir := range names {
				j.plant(filepath.Join(dir, ".env"))
			}
			j.plant(".env")
			const all = `find . -name .env -exec cat {} +`
			j.opens(all, j.secret)
			r := j.run(all)
			j.noSecret(r)
			if n := strings.Count(r.stderr, "Permission denied"); n != len(names)+1 {
				t.Errorf("in %q %d files are refused, want %d: %s", name, n, len(names)+1, r.all())
			}
			out := j.report(`ls -a; pwd; touch "$(printf 'made\377')" && ls | grep -c made`, "--report", filepath.Join(j.out, "report"))
			if out["exit"] != 0.0 || !strings.Contains(out["stdout"].(string), "\n1\n") {
				t.Errorf("in %q: %v", name, out)
			}
			b, err := os.ReadFile(filepath.Join(j.out, "report"))
			if err != nil || !json.Valid(b) || !utf8.Valid(b) {
				t.Errorf("in %q the report is no JSON: %v, %q", name, err, b)
			}
			// What is printed of them for people has no control characters.
			e := finishCommand(t, commandWith(j, "explain", "--provider", j.provider, "-C", j.w))
			//lint:ignore SA1011 any invalid byte is what is looked for
			if e.exit != 0 || strings.ContainsAny(e.all(), "\x1b\xff") {
				t.Errorf("explain in %q: exit %d, %q", name, e.exit, e.all())
			}
		}
		j.w = top
		j.absent("x")
	})
}

// commandWith prepares any verb of the real program in a jail.
func commandWith(j *jail, words ...string) *exec.Cmd {
	j.own()
	cmd := exec.Command(binary, words...)
	cmd.Env, cmd.Dir = j.env, j.w
	return cmd
}

// asOrdinary makes a command of root's test run as an ordinary user who owns
// the workspace; other tests run as one anyway.
func (j *jail) asOrdinary(cmd *exec.Cmd) *exec.Cmd {
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: foreignUID, Gid: foreignUID}}
	}
	return cmd
}

// EC-197: parts of the tree that the user cannot read, or does not own.
func TestEC197(t *testing.T) {
	need.Root(t) // to make what an ordinary user cannot read
	providers(t, func(t *testing.T, j *jail) {
		j.write("src/a", "a\n")
		give := func() {
			_ = filepath.WalkDir(j.w, func(path string, _ os.DirEntry, err error) error { return os.Lchown(path, foreignUID, foreignUID) })
			_ = os.Chown(j.state, foreignUID, foreignUID)
		}
		give()
		j.plant("pgdata/.env", "pgdata/base/1", "shared/.env", "theirs.txt")
		for path, mode := range map[string]os.FileMode{"pgdata": 0o700, "shared": 0o755, "shared/.env": 0o644, "theirs.txt": 0o600, "pgdata/base": 0o700} {
			if err := os.Chmod(filepath.Join(j.w, path), mode); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(filepath.Dir(j.w), 0o711); err != nil { // the parent cannot be listed
			t.Fatal(err)
		}
		own, work := j.provider, "cat src/a && touch new && mkdir d && mv new d/ && rm -r d && ls -A"
		words := []string{"run", "--provider", own, "-C", j.w, "--"}
		r := finishCommand(t, j.asOrdinary(&exec.Cmd{Path: binary, Args: append(append([]string{binary}, words...), "sh", "-c", work), Env: j.env, Dir: j.w}))
		if r.exit != 0 || !strings.Contains(r.stdout, "pgdata") {
			t.Errorf("exit %d: %s", r.exit, r.all())
		}
		read := "cat pgdata/.env pgdata/base/1 shared/.env theirs.txt; ls pgdata; chmod 755 pgdata; find . -type f -exec cat {} +"
		r = finishCommand(t, j.asOrdinary(&exec.Cmd{Path: binary, Args: append(append([]string{binary}, words...), "sh", "-c", read), Env: j.env, Dir: j.w}))
		j.noSecret(r)
		// It is said that there is something that could not be looked into.
		args := append([]string{binary, "run", "--json"}, words[1:]...)
		r = finishCommand(t, j.asOrdinary(&exec.Cmd{Path: binary, Args: append(args, "true"), Env: j.env, Dir: j.w}))
		if r.exit != 0 || !strings.Contains(r.stdout, "pgdata") {
			t.Errorf("the report does not speak of pgdata: exit %d: %s", r.exit, r.all())
		}
	})
}

// EC-198: the workspace is reached through links.
func TestEC198(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.write("sub/file", "x\n")
		j.plant(".env")
		if err := os.Symlink(j.w, filepath.Join(j.out, "proj")); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Dir(j.w), filepath.Join(j.out, "parent")); err != nil {
			t.Fatal(err)
		}
		for _, at := range []string{j.out + "/proj", j.out + "/parent/w", j.out + "/proj/sub/..", j.w + "/../w", j.w + "/"} {
			for _, how := range []string{"cd", "-C"} {
				j.own()
				// A shell keeps the link in PWD.
				cmd := exec.Command("sh", "-c", `cd "$1"; shift; exec "$@"`, "sh", at, binary, "run", "--provider", j.provider)
				if how == "-C" {
					cmd.Args = append(cmd.Args[:5:5], "/", binary, "run", "--provider", j.provider, "-C", at)
					cmd.Args = []string{"sh", "-c", `cd "$1"; shift; exec "$@"`, "sh", "/", binary, "run", "--provider", j.provider, "-C", at}
				}
				cmd.Args = append(cmd.Args, "--", "sh", "-c", `pwd; pwd -P; echo "$PWD"; readlink /proc/self/cwd; echo new > made; cat sub/file; cat .env`)
				cmd.Env = j.env
				r := finishCommand(t, cmd)
				if want := strings.Repeat(j.w+"\n", 4) + "x\n"; r.stdout != want {
					t.Errorf("%s %s: got %q and %q, want %q", how, at, r.stdout, r.stderr, want)
				}
				j.noSecret(r)
				j.unchanged("made", "new\n")
				_ = os.Remove(filepath.Join(j.w, "made"))
			}
		}
	})
}

// EC-199: a workspace below a folder that is hidden.
func TestEC199(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		places := []string{"/mnt/d/p", "/media/x/p", "/srv/p", "/run/user/1/p", "/home/u/p", "/var/tmp/tether-p/p", "/tmp/tether-p/p", "/data/p", "/root/w/p"}
		for _, p := range places {
			top := p[:strings.IndexByte(p[1:], '/')+1]
			dir := filepath.Dir(p)
			setup := fmt.Sprintf(`top=%s
case $top in
/tmp|/var) rm -rf %[2]s; mkdir -m 755 %[2]s ;; # ours to write, and nothing is mounted there
*) test -d $top || exit 77; mount -t tmpfs t $top; chmod 755 $top; mkdir -p -m 755 %[2]s ;;
esac
mkdir %[3]s %[2]s/sibling && echo $SECRET > %[2]s/sibling/file && echo $SECRET > %[3]s/.env && echo ours > %[3]s/file
test "$OWNER" = "" || chown -R $OWNER %[3]s`, top, dir, p)
			words := []string{binary, "run", "--provider", j.provider, "-C", p, "--", "sh", "-c", `cat file; touch t && ls; ls -A ..; cat ../sibling/file .env`}
			if j.provider == "bwrap" {
				words = asOwner(words...)
			}
			cmd := j.withMounts(setup, words...)
			cmd.Env = append(cmd.Env, "SECRET="+j.secret)
			if os.Geteuid() == 0 && j.provider == "bwrap" {
				cmd.Env = append(cmd.Env, fmt.Sprintf("OWNER=%d", foreignUID))
			}
			r := finishCommand(t, cmd)
			if r.exit == 77 {
				t.Logf("%s: the machine has no such folder", p)
				continue
			}
			if want := "ours\nfile\nt\np\n"; r.stdout != want {
				t.Errorf("%s: exit %d, %q and %q; want %q", p, r.exit, r.stdout, r.stderr, want)
			}
			j.noSecret(r)
			if top == "/tmp" || top == "/var" {
				_ = os.RemoveAll(dir)
			}
		}
	})
}

// EC-202: temporary files.
func TestEC202(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.systemPath()
		j.env = append(j.env, "TMPDIR="+j.out) // of the host, and not there inside
		for _, script := range []string{"mktemp", "mktemp -d", "python3 -c 'import tempfile; print(tempfile.mkdtemp())'", `test -d "$TMPDIR" && test -w "$TMPDIR"`,
			"TMPDIR= mktemp", "unset TMPDIR; mktemp", "touch /tmp/x /var/tmp/x /dev/shm/x", "mkdir -m 1777 /tmp/d && mktemp -p /tmp/d",
			`f=$(mktemp); printf '#!/bin/sh\necho ran\n' > $f; chmod +x $f; $f | grep ran`, "cat <<X\nheredoc\nX", "bash -c 'cat <(echo substituted)'",
			"sort -S 1k -T /tmp /etc/passwd | wc -l", "python3 -c 'import tempfile; f=tempfile.TemporaryFile(); f.write(b\"x\"); print(tempfile.gettempdir())'",
			"mv $(mktemp) here && rm here", "mkfifo /tmp/fifo && (echo x > /tmp/fifo & cat /tmp/fifo)"} {
			if r := j.run(script); r.exit != 0 || r.stderr != "" {
				t.Errorf("%s: exit %d: %s", script, r.exit, r.all())
			}
		}
		entries, _ := os.ReadDir(j.out)
		if len(entries) != 0 {
			t.Errorf("the host's folder was used: %v", entries)
		}
	})
}

// EC-204: process pools and shared memory.
func TestEC204(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.systemPath()
		need.Program(t, "python3")
		j.works(`python3 -c 'import multiprocessing as m; print(m.Pool(2).map(abs,[-1]))'`, "[1]")
		j.write("pool.py", `
import multiprocessing as m
from multiprocessing import shared_memory
from concurrent.futures import ProcessPoolExecutor
def f(x): return x * x
if __name__ == "__main__":
    for method in ("fork", "spawn", "forkserver"):
        with m.get_context(method).Pool(2) as p: print(method, p.map(f, [3]))
    s = shared_memory.SharedMemory(create=True, size=1 << 20); s.buf[0] = 7
    t = shared_memory.SharedMemory(name=s.name); print("shared", t.buf[0]); t.close(); s.close(); s.unlink()
    with ProcessPoolExecutor(2) as e: print("executor", list(e.map(f, [4])))
    q = m.Queue(); q.put(5); print("queue", q.get())
    with m.Manager() as g: print("manager", g.list([6])[0])
    print("lock", m.Lock().acquire(), m.Semaphore(2).acquire())
`)
		j.works("python3 pool.py", "lock True True")
		j.works("python3 pool.py", "manager 6", "--no-network")
		need.Program(t, "node")
		j.works(`node -e 'const {Worker}=require("worker_threads"); new Worker("require(\"worker_threads\").parentPort.postMessage(41+1)",{eval:true}).on("message",m=>console.log("worker",m))'`, "worker 42")
		j.works(`node -e 'require("child_process").exec("echo child",(e,o)=>console.log(o))'`, "child")
	})
}

// TestEC204Postgres: initdb, which uses shared memory, semaphores and a server
// of its own. It refuses root, also outside.
func TestEC204Postgres(t *testing.T) {
	need.Ordinary(t)
	need.Program(t, "initdb")
	providers(t, func(t *testing.T, j *jail) {
		if r := j.host("initdb -D ../out/db"); r.exit != 0 {
			need.Missing(t, "initdb", r.all())
		}
		j.works("initdb -D db && postgres --single -D db postgres </dev/null", "Success")
	})
}

// EC-205: servers and sockets of one's own.
func TestEC205(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.systemPath()
		need.Program(t, "python3")
		need.Program(t, "curl")
		j.write("page", "PAGE\n")
		serve := func(address string) string {
			return `python3 -u -c '
import http.server, socket, sys
class S(http.server.ThreadingHTTPServer): address_family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
s = S((sys.argv[1], 0), http.server.SimpleHTTPRequestHandler)
print(s.server_address[1])
s.serve_forever()' ` + address + ` >port 2>/dev/null & until test -s port; do sleep .02; done; curl -sS --max-time 5 http://` + hostOf(address) + `:$(cat port)/page; rm port`
		}
		for _, flags := range [][]string{{"--network", "open"}, {"--no-network"}} {
			for _, address := range []string{"127.0.0.1", "::1", "0.0.0.0"} {
				j.works(serve(address), "PAGE", flags...)
			}
			j.works(`python3 -c '
import socket
a, b = socket.socketpair(); a.send(b"pair"); print(b.recv(9))
import os
for path in (os.environ["PWD"] + "/u.sock", "/tmp/u.sock", "\0abstract"):
    s = socket.socket(socket.AF_UNIX); s.bind(path); s.listen()
    c = socket.socket(socket.AF_UNIX); c.connect(path); d, _ = s.accept(); c.send(b"x"); assert d.recv(1) == b"x"
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.bind(("127.0.0.1", 0)); u.sendto(b"x", u.getsockname()); assert u.recv(1) == b"x"
print("done")'; rm u.sock`, "done", flags...)
			j.works(`python3 -c 'import socket; print(socket.gethostbyname("localhost"))'`, "127.0.0.1", flags...)
		}
		if r := j.host("ls -A"); strings.Contains(r.stdout, "sock") {
			t.Errorf("left: %s", r.stdout)
		}
	})
}

func hostOf(address string) string {
	switch address {
	case "::1":
		return "[::1]"
	case "0.0.0.0":
		return "127.0.0.1"
	}
	return address
}

// EC-208: the program itself lies below a hidden folder.
func TestEC208(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		home := strings.TrimSpace(j.mustHost(`getent passwd $(id -u) | cut -d: -f6`).stdout)
		for _, at := range []string{j.out + "/bin/tether", "/mnt/x/tether", home + "/.local/bin/tether"} {
			setup := "at=" + at + `
case $at in $OUT/*) ;; *) cp $TETHER $OUT/copy; mount -t tmpfs t ` + filepath.Dir(filepath.Dir(at)) + ` || mount -t tmpfs t /mnt;; esac
mkdir -p $(dirname $at); cp $TETHER $at 2>/dev/null || cp $OUT/copy $at`
			if strings.HasPrefix(at, home) {
				setup = "mount -t tmpfs t " + home + "\nmkdir -p " + filepath.Dir(at) + "\ncp $TETHER " + at
			}
			r := finishCommand(t, j.withMounts(setup, at, "run", "--provider", j.provider, "-C", j.w, "--", "sh", "-c", "echo ran; cat "+at+" | head -c 4"))
			if !strings.HasPrefix(r.stdout, "ran\n") {
				t.Errorf("%s: exit %d: %s", at, r.exit, r.all())
			}
		}
		// As a program that only its owner may execute.
		private := filepath.Join(j.out, "private")
		b, err := os.ReadFile(binary)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(private, b, 0o700); err != nil {
			t.Fatal(err)
		}
		r := finishCommand(t, commandIn(j.w, private, "version"))
		if r.exit != 0 {
			t.Fatal(r.all())
		}
		cmd := commandWith(j, "run", "--provider", j.provider, "-C", j.w, "--", "echo", "ran")
		cmd.Path = private
		if r := finishCommand(t, cmd); r.stdout != "ran\n" && (os.Geteuid() != 0 || j.provider == "native") {
			t.Errorf("a private program: exit %d: %s", r.exit, r.all())
		}
	})
}

// EC-209: package managers of Node.
func TestEC209(t *testing.T) {
	together(t, func(t *testing.T, j *jail) {
		j.systemPath()
		need.Program(t, "npm")
		j.write("pkg/package.json", `{"name":"pkg","version":"1.0.0","main":"i.js","scripts":{"postinstall":"node i.js > ran"}}`)
		j.write("pkg/i.js", "console.log('ran')\n")
		j.write("package.json", `{"name":"top","version":"1.0.0","private":true}`)
		j.write("more/package.json", `{"name":"more","version":"1.0.0"}`)
		// A package that brings what has a protected name.
		j.mustHost(`mkdir -p pack/package/.vscode pack/package/.idea pack/package/test && cd pack/package &&
printf '{"name":"odd","version":"1.0.0","main":"i.js"}' > package.json && echo 'module.exports=42' > i.js && echo '{}' > .vscode/settings.json &&
echo x > .idea/w.xml && echo A=1 > .env.test && printf -- '-----BEGIN PRIVATE KEY-----\nx\n' > test/key.pem && cd .. && tar czf ../odd-1.0.0.tgz package && cd .. && rm -r pack`)
		for _, flags := range [][]string{{"--no-network"}, {"--network", "open"}} {
			j.works("npm install --offline ./pkg ./odd-1.0.0.tgz && node -p 'require(\"odd\")' && ls -A node_modules/odd", "42", flags...)
			// With all of it there, and what came protected now, work goes on, but
			// for replacing just that package: what hides a file pins it.
			j.works("npm install --offline && npm ls && node -p 'require(\"odd\")'", "42", flags...)
			j.works("npm install --offline ./more && npm uninstall more && npm ls", "pkg", flags...)
			if r := j.run("cat node_modules/odd/.env.test; npm uninstall odd", flags...); !strings.Contains(r.stderr, "EBUSY") {
				t.Errorf("the limit has changed: exit %d: %s", r.exit, r.all())
			}
			j.mustHost("rm -rf node_modules package-lock.json && printf '{\"name\":\"top\",\"version\":\"1.0.0\",\"private\":true}' > package.json")
		}
		if r := j.host("ls -A " + j.w); strings.Contains(r.stdout, ".npm") {
			t.Errorf("a cache lies in the workspace: %s", r.stdout)
		}
		j.works("npm config get cache; test -w $(npm config get cache)", "/run/tether/cache/npm")
		for _, tool := range []string{"pnpm", "yarn"} {
			if _, err := exec.LookPath(tool); err == nil {
				j.works(tool+" --version", ".")
			}
		}
	})
}

// EC-210: builds of Go, Rust and Java.
func TestEC210(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles Go's runtime with an empty cache")
	}
	together(t, func(t *testing.T, j *jail) {
		need.Program(t, "go")
		j.write("go.mod", "module example.com/m\n\ngo 1.22\n")
		j.write("m.go", "package main\n\nfunc main() { println(\"built\") }\n")
		j.mustHost("git init -q . && git add -A && git commit -qm x")
		j.works("go build -o m . && go vet ./... && ./m", "built", "--no-network")
		if r := j.run("rm -f m && go build -o /tmp/m . && go build -x -o /tmp/m2 .", "--no-network"); r.exit != 0 || strings.Contains(r.stderr, "/compile ") {
			t.Errorf("the second build reuses no cache: exit %d: %s", r.exit, r.all())
		}
		if os.Geteuid() != 0 || j.provider != "bwrap" { // there it is in memory
			if r := j.run("go build -x -o /tmp/m2 .", "--no-network"); r.exit != 0 || strings.Contains(r.stderr, "/compile ") {
				t.Errorf("the second run reuses no cache: exit %d: %s", r.exit, r.all())
			}
		}
		j.works("GOFLAGS=-buildvcs=true go build -o m . && go version -m m", "vcs.revision", "--no-network")
		if _, err := os.Stat(filepath.Join(j.w, "go")); err == nil {
			t.Error("a module cache lies in the workspace")
		}
		if cargo, err := exec.LookPath("cargo"); err == nil {
			j.mustHost("mkdir -p c/src && printf '[package]\\nname=\"c\"\\nversion=\"0.1.0\"\\nedition=\"2021\"\\n' > c/Cargo.toml && echo 'fn main(){println!(\"rust\");}' > c/src/main.rs")
			if os.Geteuid() == 0 && j.provider == "bwrap" && strings.HasPrefix(cargo, "/root/") {
				t.Log("cargo lies in root's home, which the workspace's owner cannot reach")
			} else {
				j.works("cd c && cargo build --offline -q && ./target/debug/c", "rust", "--no-network")
			}
		}
		if _, err := exec.LookPath("javac"); err == nil {
			j.write("J.java", "class J { public static void main(String[] a) { System.out.println(\"java\"); } }\n")
			j.works("javac J.java && java J", "java", "--no-network")
		}
		if _, err := exec.LookPath("mvn"); err == nil {
			j.works("mvn -o -version", "Maven", "--no-network")
		}
	})
}

// EC-214: inside a container, of any kind, it works or says what is missing.
func TestEC214(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		named := func(r result, words ...string) {
			t.Helper()
			ok := r.exit == exitOurs && (strings.Contains(r.stderr, "ISOLATION_UNAVAILABLE") || strings.Contains(r.stderr, "SANDBOX_UNAVAILABLE"))
			for _, w := range words {
				ok = ok && strings.Contains(r.stderr, w)
			}
			if !ok {
				t.Errorf("exit %d: %s; want %d, a code and %q", r.exit, r.all(), exitOurs, words)
			}
			j.absent("ran")
		}
		run := []string{binary, "run", "--provider", j.provider, "-C", j.w, "--accept", "read=partial", "--", "touch", "ran"}
		contained := func(cmd *exec.Cmd) result {
			// The workspace's owner is nobody there.
			_ = os.Chown(j.state, os.Geteuid(), os.Getegid())
			_ = os.Chown(j.w, os.Geteuid(), os.Getegid())
			return finishCommand(t, cmd)
		}
		// Where user namespaces are off.
		named(contained(j.caged("", run...)), "user")
		// Within itself: its own sandbox is such a place.
		copied := filepath.Join(j.w, "tether")
		b, err := os.ReadFile(binary)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(copied, b, 0o755); err != nil {
			t.Fatal(err)
		}
		named(finishCommand(t, j.command("--", "sh", "-c", "mkdir w; ./tether run --provider "+j.provider+" -C w -- touch ran")), "filter around us")
		// As in Docker's default: /proc is partly covered, so that the kernel
		// gives nobody a fresh one.
		cmd := exec.Command("unshare", append([]string{"--user", "--map-root-user", "--mount", "--pid", "--fork", "--mount-proc", "sh", "-c",
			`mount -t tmpfs -o ro t /proc/irq && mount -t tmpfs -o ro t /proc/bus && exec "$@"`, "sh"}, run...)...)
		cmd.Env, cmd.Dir = j.env, j.w
		if j.provider == "native" {
			named(contained(cmd), "/proc", "systempaths=unconfined")
		} else {
			named(contained(cmd), "proc")
		}
	})
}

// TestEC214Root: as root of a rootless container, with nobody else to become,
// the command runs as that root, and the grade of reading says so.
func TestEC214Root(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		container := func(words ...string) result {
			cmd := exec.Command("unshare", append([]string{"--user", "--map-root-user", "--mount", "--pid", "--fork", "--mount-proc", binary, "run", "--provider", j.provider, "-C", j.w}, words...)...)
			cmd.Env, cmd.Dir = j.env, j.w
			return finishCommand(t, cmd)
		}
		if r := container("--", "touch", "ran"); r.exit != exitOurs || !strings.Contains(r.stderr, "--accept read=Partial") {
			t.Errorf("exit %d: %s", r.exit, r.all())
		}
		j.absent("ran")
		if os.Geteuid() != 0 && j.provider == "bwrap" {
			return // the system's bwrap is nobody's there, and not trusted
		}
		if r := container("--accept", "read=partial", "--", "sh", "-c", "id -u; touch ran"); r.exit != 0 || r.stdout != "0\n" {
			t.Errorf("exit %d: %s", r.exit, r.all())
		}
	})
}

// EC-216: the small programs that tell of the system.
func TestEC216(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.systemPath()
		named := os.Geteuid() != 0 || j.provider != "bwrap" // else the workspace's owner has no name, outside too
		outside := hostProcess(t, "sleep", seconds(60))
		for _, c := range []struct {
			script, want string
		}{
			{"ps aux", "ps aux"}, {"top -bn1", "COMMAND"}, {"id", "uid="}, {"df .", "%"}, {"df", "/tmp"}, {"nproc", ""}, {"date", ""}, {"hostname", ""},
			{"uptime", "load"}, {"free", "Mem"}, {"uname -a", "Linux"}, {"ls -l /dev", "null"}, {"mount", " / "}, {"cat /proc/cpuinfo", "processor"},
			{"cat /proc/meminfo", "MemTotal"}, {"env", "PATH"}, {"ulimit -a", ""}, {"pgrep -c .", ""}, {"lscpu", "CPU"}, {"stat .", "Inode"}, {"vmstat", "free"},
			{"which sh", "/sh"}, {"locale", "LANG"}, {"getconf _NPROCESSORS_ONLN", ""}, {"kill -l", ""}, {"lsof -p $$", "cwd"},
		} {
			prog := strings.Fields(c.script)[0]
			r := j.run("command -v " + prog + " >/dev/null || exit 99; " + c.script)
			if r.exit == 99 {
				continue
			}
			if r.exit != 0 || !strings.Contains(r.stdout, c.want) {
				t.Errorf("%s: exit %d: %s; want 0 and %q", c.script, r.exit, r.all(), c.want)
			}
		}
		if r := j.run("tty"); r.exit != 1 || r.stdout != "not a tty\n" {
			t.Errorf("tty: exit %d, %q", r.exit, r.all())
		}
		if named {
			me := strings.TrimSpace(j.mustHost("id -un").stdout)
			j.works("whoami; getent passwd $(id -u) | cut -d: -f1; id -un", strings.Repeat(me+"\n", 3))
			j.works(`echo "$USER $LOGNAME"`, me+" "+me)
		}
		if r := j.run("ps -e -o args="); strings.Contains(r.stdout, outside.Args[1]) || len(strings.Split(strings.TrimSpace(r.stdout), "\n")) > 4 {
			t.Errorf("processes of others are seen: %s", r.stdout)
		}
	})
}

// EC-217: sudo is refused at once.
func TestEC217(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		for _, c := range []string{"sudo -n true", "sudo true", "su -c true root", "sudo -S true </dev/null", "pkexec true", "doas true"} {
			r := j.run(c + "; echo rc=$?")
			ok := false
			for _, rc := range []string{"rc=1\n", "rc=127\n", "rc=126\n"} {
				ok = ok || strings.HasSuffix(r.stdout, rc)
			}
			if !ok || r.took > 5*time.Second || strings.Contains(r.stdout, "assword") && !strings.Contains(r.stderr, "failure") {
				t.Errorf("%s: exit %d after %v: %s", c, r.exit, r.took, r.all())
			}
		}
	})
}
