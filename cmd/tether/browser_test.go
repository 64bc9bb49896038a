package main

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/tether-sandbox/tether/internal/need"
)

// chromium is Chromium without a display.
const chromium = "chromium-headless-shell"

// looker serves a page on loopback and starts a browser on it. The page's script
// asks the server what it sees of the browser's renderers, which must have
// process namespaces and system call filters that the server has not.
const looker = `import http.server, os, subprocess, sys, threading
PAGE = b"""<!doctype html><body><p id=p>static</p><script>
const x = new XMLHttpRequest(); x.open('GET', '/look', false); x.send()
document.getElementById('p').textContent = 'made ' + 6 * 7 + ', ' + x.responseText
</script></body>"""
def status(pid):
    return dict(line.split(":", 1) for line in open("/proc/%s/status" % pid))
def look():
    own, seen = status("self"), []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if b"--type=renderer" in open("/proc/%s/cmdline" % pid, "rb").read():
                s = status(pid)
                seen.append(len(s["NSpid"].split()) > len(own["NSpid"].split()) and int(s["Seccomp_filters"]) > int(own["Seccomp_filters"]))
        except OSError: pass
    return "renderers " + ("none" if not seen else "confined" if all(seen) else "free")
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.send_header("Content-Type", "text/html"); self.end_headers()
        self.wfile.write(look().encode() if self.path == "/look" else PAGE)
    def log_message(self, *a): pass
s = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=s.serve_forever, daemon=True).start()
sys.exit(subprocess.run(sys.argv[1:] + ["http://127.0.0.1:%d/" % s.server_port], timeout=50).returncode)
`

// TestBrowser: Chromium works with its own sandbox under --nested, also in bwrap
// and in Tether inside; without the flag it says that it has none, and Tether
// what would give it one.
func TestBrowser(t *testing.T) {
	need.Program(t, chromium)
	need.Program(t, "python3")
	need.Program(t, "bwrap")
	j := newNest(t)
	j.write("page.html", `<!doctype html><body><p id=p>static</p><script>document.getElementById('p').textContent = 'made ' + 6 * 7</script></body>`)
	j.write("look.py", looker)
	j.copyTether("t")
	const (
		local = chromium + ` --dump-dom "file://$PWD/page.html"`
		look  = `python3 look.py ` + chromium + ` --dump-dom`
		bwrap = `bwrap --ro-bind / / --tmpfs /tmp --bind "$PWD" "$PWD" --proc /proc --dev /dev --unshare-pid --die-with-parent `
	)
	// The look can tell: without a sandbox of its own, a renderer is seen to be free.
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	free := exec.CommandContext(ctx, "python3", "look.py", chromium, "--no-sandbox", "--dump-dom")
	free.Dir = j.w
	if out, err := free.CombinedOutput(); err != nil || !strings.Contains(string(out), "made 42, renderers free") {
		t.Fatalf("without Tether and --no-sandbox: got %v and %q", err, out)
	}
	for _, c := range []struct{ script, want string }{
		{local, "made 42<"},
		{look, "made 42, renderers confined<"},
		{bwrap + look, "made 42, renderers confined<"},
		{"./t run --nested -- " + look, "made 42, renderers confined<"},
	} {
		if r := j.run(c.script); r.exit != 0 || !strings.Contains(r.stdout, c.want) {
			t.Errorf("%s: got exit %d, %q, want %q", c.script, r.exit, r.all(), c.want)
		}
	}
	j.noSecret(j.run(chromium + ` --dump-dom "file://$PWD/.env"`))
	j.flags = []string{"--no-network"}
	r := j.run(local)
	if r.exit == 0 || strings.Contains(r.stdout, "made") || !strings.Contains(r.stderr, "hint: --nested\n") {
		t.Errorf("without --nested: got exit %d, %q, want it refused, and the flag", r.exit, r.all())
	}
}

// TestBrowserSharedMemory: what is asked how much shared memory there is, as
// browsers' own scripts are, gets one number.
func TestBrowserSharedMemory(t *testing.T) {
	need.Program(t, "findmnt")
	if r := newJail(t, "native").run(`findmnt -bnr -o avail -T /dev/shm | grep -c .`); r.stdout != "1\n" {
		t.Errorf("got %q, want one line", r.all())
	}
}
