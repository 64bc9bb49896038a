package seccomp_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/internal/enforce/seccomp"
	"github.com/tether-sandbox/tether/internal/need"
)

// under runs argv with the filter of o (nil: without) in dir.
func under(t testing.TB, o *seccomp.Options, dir string, argv ...string) (string, error) {
	t.Helper()
	c := command(t, role{Options: o, Argv: argv})
	c.Dir = dir
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	err := c.Run()
	return out.String(), err
}

// Ordinary programs, also those that look for refused calls first, do their
// work under the filter as without.
func TestOrdinaryProgramsWork(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "hello.c", `#include <stdio.h>
#include <pthread.h>
static int secret = 41;
static void *work(void *p) { secret++; return p; }
int main(void) { pthread_t t; if (pthread_create(&t, 0, work, 0)) return 1; pthread_join(t, 0); printf("hello %d\n", secret); return 0; }
`)
	put(t, dir, "pool.py", `import multiprocessing as m
from multiprocessing import shared_memory
if __name__ == "__main__":
    s = shared_memory.SharedMemory(create=True, size=10); s.buf[0] = 7; s.close(); s.unlink()
    with m.Pool(2) as p: print("pool", p.map(abs, [-1, -2]))
`)
	put(t, dir, "serve.py", `import http.server, socket, threading, urllib.request
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self): self.send_response(200); self.end_headers(); self.wfile.write(b"served")
    def log_message(self, *a): pass
s = http.server.HTTPServer(("127.0.0.1", 0), H); threading.Thread(target=s.serve_forever, daemon=True).start()
op = urllib.request.build_opener(urllib.request.ProxyHandler({}))
print(op.open("http://127.0.0.1:%d/" % s.server_port).read().decode())
a, b = socket.socketpair(); a.send(b"x"); print("pair", b.recv(1).decode()); print("names", len(socket.if_nameindex()) > 0)
`)
	put(t, dir, "work.js", `const { Worker, isMainThread, parentPort } = require("worker_threads");
if (isMainThread) { const w = new Worker(__filename); w.on("message", m => { require("os").networkInterfaces();
  require("fs").promises.readFile(__filename).then(b => console.log("node", m, b.length > 0)); }); }
else parentPort.postMessage("worker");
`)
	for _, c := range []struct {
		program, want string
		argv          []string
	}{
		{"bash", "total 3", []string{"bash", "-c", `n=0; for i in 1 2; do (exit $i); n=$((n+$?)); done; mkfifo p; (echo x >p &); read -r l <p; cat <(echo sub) | grep -q sub && echo total $n`}},
		{"gcc", "hello 42", []string{"bash", "-c", "gcc -g -pthread -o hello hello.c && ./hello"}},
		{"gdb", "secret = 41", []string{"gdb", "-nx", "-batch", "-ex", "break work", "-ex", "run", "-ex", "printf \"secret = %d\\n\", secret", "-ex", "kill", "./hello"}},
		{"strace", `"hello 42\n"`, []string{"strace", "-f", "./hello"}},
		{"python3", "pool [1, 2]", []string{"python3", "pool.py"}},
		{"python3", "served\npair x\nnames True", []string{"python3", "serve.py"}},
		{"node", "node worker true", []string{"node", "work.js"}},
		{"git", "done 2", []string{"bash", "-ec", `git init -q r; cd r; git config user.email a@b; git config user.name a
echo y>y; git add y; git commit -qm y; git switch -qc f; echo z>y; git commit -qam z; git switch -q -; git merge -q f
echo s>s; git stash -uq; git stash pop -q; git gc -q; git tag t; git branch -qd f; echo done $(git rev-list --count HEAD)`}},
		{"ps", "args", []string{"bash", "-c", "ps -o args; id; df . >/dev/null; nproc; date; uptime; free >/dev/null"}},
		{"go", "go version", []string{"go", "version"}},
	} {
		t.Run(c.program, func(t *testing.T) {
			need.Program(t, c.program)
			for _, o := range []*seccomp.Options{nil, usual()} {
				os.RemoveAll(filepath.Join(dir, "r"))
				os.Remove(filepath.Join(dir, "p"))
				out, err := under(t, o, dir, c.argv...)
				if err != nil || !strings.Contains(out, c.want) {
					t.Errorf("filter %v: got %v and %q, want success and %q", o != nil, err, out, c.want)
				}
			}
		})
	}
}

// What must fail, fails with a message that people understand, and works
// without the filter or, for user namespaces, with the option.
func TestDeniedProgramsFail(t *testing.T) {
	need.Program(t, "unshare")
	nested := usual()
	nested.NestedUserNS = true
	mounts := *nested
	mounts.NestedMounts = true
	for _, c := range []struct {
		argv string
		opens, shuts,
		also *seccomp.Options
	}{
		{"unshare -Ur true", nil, usual(), nested},
		{"unshare -Urn true", nil, usual(), nested},
		{"unshare -Urm true", nil, nested, &mounts},
		{"mkdir -p m && unshare -Urm mount -t tmpfs x m", nil, nested, &mounts},
	} {
		dir := t.TempDir()
		if out, err := under(t, c.opens, dir, "sh", "-c", c.argv); err != nil {
			need.Missing(t, "userns", out)
		}
		if out, err := under(t, c.shuts, dir, "sh", "-c", c.argv); err == nil || !strings.Contains(out, "Operation not permitted") {
			t.Errorf("%s: got %v and %q, want failure and \"Operation not permitted\"", c.argv, err, out)
		}
		if out, err := under(t, c.also, dir, "sh", "-c", c.argv); err != nil {
			t.Errorf("%s with the option: got %v and %q, want success", c.argv, err, out)
		}
	}
}

// The two other doors into an x86 kernel: interrupt 0x80 with the numbers of
// i386, and the x32 numbers.
func TestForeignDoors(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the doors are those of amd64")
	}
	need.Program(t, "gcc")
	dir := t.TempDir()
	put(t, dir, "doors.c", `#include <stdio.h>
static long int80(long nr) { long r; __asm__ volatile("int $0x80" : "=a"(r) : "a"(nr), "b"(0L), "c"(0L), "d"(0L) : "memory", "r8", "r9", "r10", "r11"); return (int)r; }
static long call(long nr) { long r; __asm__ volatile("syscall" : "=a"(r) : "a"(nr), "D"(0L), "S"(0L), "d"(0L) : "rcx", "r11", "memory"); return r; }
int main(void) {
	long plain = call(39), i386 = int80(20), x32 = call(39 | 1L << 30);
	printf("plain %d i386 %s x32 %s\n", plain > 0, i386 == plain ? "open" : i386 == -38 ? "ENOSYS" : "odd",
		x32 == plain ? "open" : x32 == -38 ? "ENOSYS" : "odd");
	return 0;
}
`)
	if out, err := exec.Command("gcc", "-o", filepath.Join(dir, "doors"), filepath.Join(dir, "doors.c")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	free, err := under(t, nil, dir, "./doors")
	if err != nil {
		t.Fatalf("without the filter: %v: %s", err, free)
	}
	got, err := under(t, usual(), dir, "./doors")
	if want := "plain 1 i386 ENOSYS x32 ENOSYS\n"; err != nil || got != want {
		t.Errorf("got %v and %q, want %q", err, got, want)
	}
	if !strings.Contains(free, "i386 open") {
		need.Missing(t, "i386", "this kernel has no such door: "+free)
	}
	// Few kernels have x32; TestDoors shows that the filter refuses it.
	if !strings.Contains(free, "x32 open") {
		t.Log("no control for x32: this kernel has no such door")
	}
}

func put(t testing.TB, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// The price of a call: without a filter, under it where the kernel remembers
// that the call passes (getppid), and where it must look (ioctl).
func BenchmarkCall(b *testing.B) {
	loops := map[string]func(int){
		"getppid": func(n int) {
			for range n {
				unix.RawSyscall(unix.SYS_GETPPID, 0, 0, 0)
			}
		},
		"ioctl": func(n int) {
			for range n {
				unix.RawSyscall(unix.SYS_IOCTL, ^uintptr(0), 0x5401, 0)
			}
		},
	}
	for _, name := range []string{"getppid", "ioctl"} {
		for as, o := range map[string]*seccomp.Options{"free": nil, "filter": usual()} {
			b.Run(name+"/"+as, func(b *testing.B) {
				done := make(chan error)
				go func() {
					runtime.LockOSThread() // never unlocked: the thread dies with us
					err := confine(o)
					b.ResetTimer()
					loops[name](b.N)
					b.StopTimer()
					done <- err
				}()
				if err := <-done; err != nil {
					b.Fatal(err)
				}
			})
		}
	}
}

func BenchmarkLoad(b *testing.B) {
	prog := compile(b, *usual())
	for range b.N {
		done := make(chan error)
		b.StopTimer()
		go func() {
			runtime.LockOSThread()
			err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
			if err == nil {
				b.StartTimer()
				err = seccomp.Load(prog)
				b.StopTimer()
			}
			done <- err
		}()
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
}

// What is told is refused all the same: with a listener, with none since nothing
// is to be told, and under a filter that lets nobody listen.
func TestToldIsRefused(t *testing.T) {
	plain, tells := usual(), usual()
	tells.Tell = true
	for _, c := range []struct {
		o    *seccomp.Options
		want string
	}{
		{plain, "refused 3 told 0, a second one -1 <nil>\n"},
		{tells, "refused 3 told 3, a second one -1 <nil>\n"},
	} {
		out, err := command(t, role{Options: c.o, Asks: 3}).CombinedOutput()
		if err != nil || string(out) != c.want {
			t.Errorf("tell %v: got %v and %q, want %q", c.o.Tell, err, out, c.want)
		}
	}
}
