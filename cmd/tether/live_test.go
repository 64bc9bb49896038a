package main

import (
	"fmt"
	"strings"
	"testing"
)

// onTerminal is a program that runs shell text on a terminal of its own, types
// one answer whenever a question is put there, and prints what it saw.
const onTerminal = `import os, pty, sys
pid, fd = pty.fork()
if pid == 0:
    os.execvp("sh", ["sh", "-c", sys.argv[1]])
seen = b""
while True:
    try:
        b = os.read(fd, 4096)
    except OSError:
        break
    if not b:
        break
    seen += b
    if seen.endswith(b"anything else is no: "):
        os.write(fd, sys.argv[2].encode() + b"\n")
        seen += b"\n"
_, status = os.waitpid(pid, 0)
sys.stdout.buffer.write(seen)
sys.exit(os.waitstatus_to_exitcode(status))`

// TestGrantWhileRunning: a host that was refused is asked about while the command
// runs, and once it is granted the command's own next try gets through: to this
// host and port, and after a grant for once in this command alone. The control is
// the answer no.
func TestGrantWhileRunning(t *testing.T) {
	gates(t, func(t *testing.T, j *jail, w world) {
		// It tries until it gets through or has tried ten times.
		script := `for i in 1 2 3 4 5 6 7 8 9 10; do curl -sSf -m 5 http://ok.test/ && break; sleep 0.3; done; curl -sSf -m 5 http://bad.test:8080/ && echo OTHER; true`
		run := func(id, answer string) (out, screen string) {
			t.Helper()
			cmd := j.command("--session", id, "--only-host", "other.test", "--", "sh", "-c", script)
			quoted := make([]string, len(cmd.Args))
			for i, a := range cmd.Args {
				quoted[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
			}
			shell := fmt.Sprintf("%s </dev/null >OUT 2>&1; s=$?; echo SAID; cat OUT; rm OUT; exit $s", strings.Join(quoted, " "))
			r, log := w.run(j, []string{"python3", "-c", onTerminal, shell, answer})
			screen, out, ok := strings.Cut(r.stdout, "SAID")
			if !ok || r.exit != 0 {
				t.Fatalf("%s: %s\n%s", id, r.all(), log)
			}
			return out, screen
		}
		out, screen := run("no-"+j.provider, "no")
		if strings.Contains(out, servedHTTP) || !strings.Contains(screen, "ok.test:80") {
			t.Errorf("answered no: %s\n%s", out, screen)
		}
		out, screen = run("yes-"+j.provider, "o")
		if !strings.Contains(out, servedHTTP+" host=ok.test") || strings.Count(screen, "connect to ok.test:80\r") != 1 || strings.Contains(out, "grant yes-"+j.provider+" --host ok.test:80") {
			t.Errorf("granted once: %s\n%s", out, screen)
		}
		// It was for that command.
		r, _ := w.inside(j, `curl -sS -m 5 http://ok.test/; true`, "--session", "yes-"+j.provider)
		if strings.Contains(r.stdout, servedHTTP) {
			t.Errorf("the next command has it, too: %s", r.all())
		}
	})
}
