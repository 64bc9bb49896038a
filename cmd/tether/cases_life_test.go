//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/internal/enforce/landlock"
	"github.com/tether-sandbox/tether/internal/need"
)

// graceTime is how long the product waits between SIGTERM and SIGKILL.
const graceTime = 2 * time.Second

// EC-135: a flood of output is capped and marked, and costs bounded memory.
func TestEC135(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		const most = 1<<20 + 200 // and the mark
		for _, c := range []struct {
			script         string
			exit           float64
			stdout, stderr bool
		}{
			{"yes", 124, true, false},
			{"cat /dev/zero", 124, true, false},
			{"yes >&2", 124, false, true},
			{"yes & yes >&2 & wait", 124, true, true},
			{"head -c 30000000 /dev/zero | tr '\\0' 'x'; exit 7", 7, true, false},
			{`python3 -c 'print("x"*10**8)'`, 0, true, false},
			{"head -c 30000000 /dev/zero >&2; kill -9 $$", 137, false, true},
		} {
			cmd := j.command("--json", "--timeout", "400ms", "--", "sh", "-c", c.script)
			if c.exit != 124 {
				cmd = j.command("--json", "--", "sh", "-c", c.script)
			}
			var out strings.Builder
			cmd.Stdout = &out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() { done <- cmd.Wait() }()
			peak := 0 // kilobytes
			for running := true; running; {
				select {
				case <-done:
					running = false
				case <-time.After(5 * time.Millisecond):
					peak = max(peak, highWater(cmd.Process.Pid))
				case <-time.After(30 * time.Second):
					_ = cmd.Process.Kill()
					t.Fatalf("%s: no end", c.script)
				}
			}
			if peak > 64<<10 {
				t.Errorf("%s: tether took %d kB of memory, want at most 64 MB", c.script, peak)
			}
			var got map[string]any
			if err := json.Unmarshal([]byte(out.String()), &got); err != nil {
				t.Fatalf("%s: %v in %.200q", c.script, err, out.String())
			}
			if got["exit"] != c.exit || got["truncated"] != true || got["timed_out"] != (c.exit == 124) {
				t.Errorf("%s: exit %v, truncated %v, timed_out %v; want %v, true, %v", c.script, got["exit"], got["truncated"],
					got["timed_out"], c.exit, c.exit == 124)
			}
			for name, flooded := range map[string]bool{"stdout": c.stdout, "stderr": c.stderr} {
				text := got[name].(string)
				if flooded != strings.Contains(text, " bytes dropped ...]") || len(text) > most {
					t.Errorf("%s: %s is %d long, marked %v; want at most %d and marked %v", c.script, name, len(text),
						!flooded, most, flooded)
				}
			}
		}
	})
}

// highWater is the most memory that a process has held, in kilobytes.
func highWater(pid int) int {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	n := 0
	for line := range strings.SplitSeq(string(b), "\n") {
		if v, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			_, _ = fmt.Sscan(v, &n)
		}
	}
	return n
}

// EC-136: odd bytes in the output are kept in a stream, and each becomes one
// U+FFFD in JSON; what JSON can say stays.
func TestEC136(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		for _, c := range []struct{ script, raw, text string }{
			{`printf '\377\376\000\r\n\033[31m'`, "\xff\xfe\x00\r\n\x1b[31m", "\ufffd\ufffd\x00\r\n\x1b[31m"},
			{`printf 'no newline'`, "no newline", "no newline"},
			{`:`, "", ""},
			{`printf '\303'; sleep .05; printf '\244\n'`, "ä\n", "ä\n"},
			{`printf '\303\n\360\237\230'`, "\xc3\n\xf0\x9f\x98", "\ufffd\n\ufffd\ufffd\ufffd"},
			{`printf '\\u2028\342\200\250<&>"\\'`, "\\u2028\u2028<&>\"\\", "\\u2028\u2028<&>\"\\"},
		} {
			for _, to := range []string{"stdout", "stderr"} {
				script := c.script
				if to == "stderr" {
					script = "{ " + script + "; } >&2"
				}
				r := j.run(script)
				if got := map[string]string{"stdout": r.stdout, "stderr": r.stderr}[to]; got != c.raw || r.exit != 0 || len(r.all()) != len(c.raw) {
					t.Errorf("%s: %s is %q and exit %d, want %q and 0, and nothing else", script, to, got, r.exit, c.raw)
				}
				if got := j.report(script); got[to] != c.text || got["truncated"] != false {
					t.Errorf("%s: %s in JSON is %q, want %q", script, to, got[to], c.text)
				}
			}
		}
	})
}

// EC-163: without a provider nothing runs, unless the grades of the guard are
// accepted by name; then it is said, in text and in JSON.
func TestEC163(t *testing.T) {
	j := newJail(t, "auto")
	// As on a machine without bwrap that forbids user namespaces.
	machine := "mount --bind /dev/null /usr/bin/bwrap\nunshare -U true 2>/dev/null && exit 77"
	if _, err := os.Stat("/usr/bin/bwrap"); err != nil {
		machine = "unshare -U true 2>/dev/null && exit 77"
	}
	run := func(words ...string) result {
		t.Helper()
		return finishCommand(t, j.caged(machine, append([]string{binary}, words...)...))
	}
	accept := []string{"--accept", "read=none", "--accept", "write=none", "--accept", "secrets=none", "--accept", "process=none", "--accept", "network=none"}
	t.Run("control", func(t *testing.T) {
		if r := finishCommand(t, j.caged(machine, "true")); r.exit != 0 {
			t.Fatalf("the machine cannot be made: exit %d: %s", r.exit, r.all())
		}
	})
	for _, c := range []struct {
		name  string
		words []string
	}{
		{"default", nil},
		{"native", []string{"--provider", "native"}},
		{"bwrap", []string{"--provider", "bwrap"}},
		{"the guard alone accepts no grades", []string{"--provider", "guard"}},
		{"one grade is missing", append([]string{"--provider", "guard"}, accept[2:]...)},
		{"json", []string{"--json"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := run(append(append([]string{"run"}, c.words...), "--", "touch", "ran")...)
			if r.exit != exitOurs || !strings.Contains(r.all(), "SANDBOX_UNAVAILABLE") && !strings.Contains(r.all(), "ISOLATION_UNAVAILABLE") {
				t.Errorf("got exit %d: %s; want %d and the code", r.exit, r.all(), exitOurs)
			}
			if strings.Contains(r.all(), "no-sandbox") {
				t.Errorf("a hint suggests to run unconfined: %s", r.all())
			}
			j.absent("ran")
		})
	}
	t.Run("grades alone choose no guard", func(t *testing.T) {
		r := run(append(append([]string{"run", "--json"}, accept...), "--", "echo", "hello")...)
		if _, err := landlock.ABI(); err != nil {
			need.Missing(t, "landlock", err.Error())
		}
		if !strings.Contains(r.stdout, `"provider":"landlock"`) {
			t.Errorf("got exit %d: %s; want landlock, which is held to by the kernel", r.exit, r.all())
		}
	})
	guarded := append([]string{"run", "--provider", "guard"}, accept...)
	t.Run("explicit", func(t *testing.T) {
		r := run(append(guarded, "--", "echo", "hello")...)
		if r.exit != 0 || r.stdout != "hello\n" || !strings.Contains(r.stderr, "tether: ") || !strings.Contains(r.stderr, "nothing confined this command (provider guard, overall None)") {
			t.Errorf("got exit %d, %q and on stderr %q; want it to run and to say that nothing confines it", r.exit, r.stdout, r.stderr)
		}
		r = run(append(guarded, "--json", "--", "echo", "hello")...)
		var got map[string]any
		if err := json.Unmarshal([]byte(r.stdout), &got); err != nil {
			t.Fatalf("%v: %s", err, r.all())
		}
		report := got["report"].(map[string]any)
		if report["overall"] != "None" || report["provider"] != "guard" {
			t.Errorf("the report says %v by %v, want none by guard", report["overall"], report["provider"])
		}
	})
}

// EC-164: nothing is left in the workspace, nor there while a command runs.
func TestEC164(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.write("src/main.go", "package main\n")
		j.write("empty/.keep", "")
		j.mustHost("ln -s src link; ln -s nowhere dangling; mkdir -p sub; git init -q sub; git -C sub commit -q --allow-empty -m x")
		j.plant(".env", "src/deep/.env")
		j.own()
		top := filepath.Dir(j.w)
		outside := func() string { return listing(t, j.w) + listing(t, j.out) }
		tops := func() string {
			entries, err := os.ReadDir(top)
			if err != nil {
				t.Fatal(err)
			}
			return fmt.Sprint(entries)
		}
		beforeTop := tops()
		status := "git --no-optional-locks -C sub -c core.fsmonitor=false status --porcelain --untracked-files=all --ignored"
		clean := j.mustHost(status).stdout
		before := outside()
		for _, words := range [][]string{{"true"}, {"--", "false"}, {"-p", "read-only", "cat", "src/main.go"}, {"--json", "true"},
			{"--no-network", "true"}, {"--home", "private", "true"}, {"--", "/nonexistent"}, {"--timeout", "50ms", "sleep", "9"}} {
			finishCommand(t, j.command(words...))
			after := outside()
			if d := difference(before, after); d != "" {
				t.Errorf("%q changed%s", words, d)
			}
			before = after
			if after := tops(); after != beforeTop {
				t.Errorf("%q left beside the workspace %s, want %s", words, after, beforeTop)
			}
		}
		// During the run, as a git or an editor on the host sees it.
		adopt(t)
		tag := seconds(30)
		cmd := j.command("--", "sleep", tag)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait(); nothingLeft(t, 5*time.Second) }()
		if !soon(10*time.Second, func() bool { return runs(tag, cmd.Process.Pid) }) {
			t.Fatal("the command did not start")
		}
		if d := difference(before, outside()); d != "" {
			t.Errorf("during the run there is changed%s", d)
		}
		if got := j.mustHost(status).stdout; got != clean {
			t.Errorf("during the run git says %q, want %q", got, clean)
		}
		// Killed, it leaves nothing either.
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		nothingLeft(t, 5*time.Second)
		if d := difference(before, outside()); d != "" {
			t.Errorf("killed, it changed%s", d)
		}
	})
}

// EC-166: what a command leaves in the background ends with it.
func TestEC166(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		adopt(t)
		tag := seconds(777)
		daemon := j.write("daemon.py", `
import os, sys, time
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
for fd in range(3): os.close(fd)
os.execvp("sleep", ["sleep", sys.argv[1]])
`)
		script := `setsid sh -c 'sleep 1; touch late' >/dev/null 2>&1 &
nohup sleep ` + tag + ` >/dev/null 2>&1 & disown
python3 ` + daemon + ` ` + tag + `
sleep ` + tag + ` &
(trap '' TERM HUP INT; sleep ` + tag + `) &
sleep .1; touch early`
		words := []string{"--", "bash", "-c", script}
		r := finishCommand(t, j.command(words...))
		if r.exit != 0 || r.took > 3*time.Second {
			t.Errorf("exit %d after %v: %s; want 0 at once", r.exit, r.took, r.all())
		}
		nothingLeft(t, 0) // when it has returned, not some time later
		if left := living(tag); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
		if _, err := os.Stat(filepath.Join(j.w, "early")); err != nil {
			t.Fatal("control: the command did not get so far")
		}
		time.Sleep(1300 * time.Millisecond)
		j.absent("late")
	})
}

// EC-167: a child that holds the output does not hold up the end.
func TestEC167(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		adopt(t)
		base := j.run("echo done").took
		for _, c := range []struct{ script, last string }{
			{"sleep 60 & echo done", "done\n"},
			{"(while :; do echo x; sleep .1; done) & sleep .2; echo done", "done\n"},
			{"yes >&2 & echo done", "done\n"},
			{"setsid sleep 60 <&0 & echo done", "done\n"},
			{"cat <&0 & echo done", "done\n"},
			{"echo done; exec 1>&- 2>&-; sleep 60 & exit 0", "done\n"},
		} {
			for _, mode := range []string{"", "--json"} {
				var r result
				var out string
				if mode == "" {
					r = j.run(c.script)
					out = r.stdout
				} else {
					r = finishCommand(t, j.command("--json", "--", "sh", "-c", c.script))
					var got map[string]any
					if err := json.Unmarshal([]byte(r.stdout), &got); err != nil {
						t.Fatalf("%s: %v: %.300s", c.script, err, r.all())
					}
					out = got["stdout"].(string)
				}
				if r.exit != 0 || !strings.Contains(out, c.last) || r.took > base+time.Second {
					t.Errorf("%s (%s): exit %d after %v with %.200q, want 0 within a second with %q", c.script, mode, r.exit, r.took, out, c.last)
				}
				nothingLeft(t, 0)
			}
		}
	})
}

// EC-168: the time limit ends the whole tree, whatever it does.
func TestEC168(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		adopt(t)
		base := j.run("true").took
		for i, c := range []struct {
			script string
			gentle bool // SIGTERM is enough
		}{
			{"echo partial; sleep SLEEP", true},
			{"echo partial; trap '' TERM INT HUP; sleep SLEEP & wait", false},
			{"echo partial; kill -STOP $$; sleep SLEEP", true},
			{"echo partial; trap '' TERM; while :; do :; done", false},
			{"echo partial; i=0; while [ $i -lt 500 ]; do sleep SLEEP & i=$((i+1)); done; wait", true},
			{"echo partial; setsid setsid sleep SLEEP & setsid nohup sleep SLEEP >/dev/null 2>&1 & sleep SLEEP", true},
			{"echo partial; trap 'echo ended; exit 9' TERM; while :; do sleep .05; done", true},
			{"echo partial; (trap '' TERM; kill -STOP 0; sleep SLEEP) & sleep SLEEP", true},
		} {
			tag := seconds(300)
			limit := time.Second
			if i > 2 { // one second is the case; the others are as good with less
				limit = 400 * time.Millisecond
			}
			r := finishCommand(t, j.command("--timeout", limit.String(), "--", "sh", "-c", strings.ReplaceAll(c.script, "SLEEP", tag)))
			most := base + limit + time.Second
			if !c.gentle {
				most += graceTime
			}
			if r.exit != 124 || !strings.Contains(r.stderr, "tether: LIMIT_TIME: ") || !strings.HasPrefix(r.stdout, "partial\n") {
				t.Errorf("%s: exit %d, stdout %q, stderr %q; want 124, the output so far and LIMIT_TIME", c.script, r.exit, r.stdout, r.stderr)
			}
			if r.took > most || r.took < limit {
				t.Errorf("%s: took %v, want between %v and %v", c.script, r.took, limit, most)
			}
			nothingLeft(t, 0)
			if left := living(tag); len(left) > 0 {
				t.Errorf("%s: left behind: %v", c.script, left)
			}
		}
		got := j.report("echo partial; sleep 60", "--timeout", "100ms")
		if got["outcome"] != "timed-out" || got["timed_out"] != true || got["exit"] != 124.0 || got["stdout"] != "partial\n" {
			t.Errorf("JSON: %v, want the time limit and the output so far", got)
		}
	})
}

// rounds is how often EC-169 kills; TETHER_ROUNDS changes it (the corpus says
// 200).
func rounds(t testing.TB) int {
	n := 60
	if v := os.Getenv("TETHER_ROUNDS"); v != "" {
		if _, err := fmt.Sscan(v, &n); err != nil {
			t.Fatalf("TETHER_ROUNDS: %v", err)
		}
	}
	if testing.Short() {
		n = 12
	}
	return n
}

// EC-169: when Tether is killed, at whatever moment, everything dies with it.
func TestEC169(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		adopt(t)
		j.plant(".env", "sub/.env")
		j.own()
		before, mounted := listing(t, j.w), mounts(t)
		delays := []time.Duration{0, time.Millisecond, 5 * time.Millisecond, 20 * time.Millisecond, 10 * time.Millisecond,
			40 * time.Millisecond, 80 * time.Millisecond}
		ran := 0
		for i := range rounds(t) {
			delay := delays[i%len(delays)]
			if i%20 == 19 {
				delay = time.Second
			}
			tag := seconds(888)
			cmd := j.command("--", "sh", "-c", "trap '' TERM HUP; setsid sleep "+tag+" & sleep "+tag)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(delay)
			if len(living("sleep "+tag)) > 1 {
				ran++
			}
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			nothingLeft(t, 2*time.Second)
			if left := living(tag); len(left) > 0 {
				t.Errorf("killed after %v: left behind: %v", delay, left)
			}
		}
		if ran == 0 {
			t.Error("control: no round got as far as to run the command")
		}
		if d := difference(before, listing(t, j.w)); d != "" {
			t.Errorf("the workspace changed%s", d)
		}
		if after := mounts(t); after != mounted {
			t.Errorf("there are %d mounts, want %d as before", after, mounted)
		}
		// The next run settles what those left, records included.
		if r := j.run("true"); r.exit != 0 {
			t.Errorf("the next run: exit %d: %s", r.exit, r.all())
		}
		if left := j.pending(); len(left) > 0 {
			t.Errorf("records of dead runs are left: %v", left)
		}
	})
}

// EC-171: the exit status is the command's own, and ours is never taken for it.
func TestEC171(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.write("plain.txt", "not a program\n")
		j.mustHost(`printf 'echo ran as a script\n' > script; chmod 755 script; printf '#!/nonexistent/sh\n' > lost; chmod 755 lost`)
		for _, c := range []struct {
			words []string
			want  int
		}{
			{[]string{"true"}, 0}, {[]string{"false"}, 1},
			{[]string{"sh", "-c", "exit 42"}, 42}, {[]string{"sh", "-c", "exit 77"}, 77}, {[]string{"sh", "-c", "exit 255"}, 255},
			{[]string{"sh", "-c", "exit 124"}, 124}, {[]string{"sh", "-c", "exit 125"}, 125},
			{[]string{"sh", "-c", "kill -9 $$"}, 137}, {[]string{"sh", "-c", "kill -TERM $$"}, 143},
			{[]string{"sh", "-c", "kill -INT $$"}, 130}, {[]string{"sh", "-c", "kill -SEGV $$"}, 139},
			{[]string{"sh", "-c", "kill -PIPE $$"}, 141}, {[]string{"python3", "-c", "import os; os.abort()"}, 134},
			{[]string{"sh", "-c", "exec /nonexistent"}, 127}, {[]string{"sh", "-c", "/tmp"}, 126}, {[]string{"sh", "-c", "if"}, 2},
			{[]string{"./script"}, 0},
		} {
			if c.words[0] != "./script" { // exec(2) by itself runs no such script
				if control := finishCommand(t, commandIn(j.w, c.words...)); control.exit != c.want {
					t.Fatalf("control: %q without Tether: exit %d, want %d", c.words, control.exit, c.want)
				}
			}
			r := j.argv(c.words...)
			if r.exit != c.want || strings.Contains(r.stderr, "tether:") {
				t.Errorf("%q: exit %d and %q, want %d and not a word of ours", c.words, r.exit, r.stderr, c.want)
			}
		}
		for _, c := range []struct {
			words []string
			want  int
			code  string
		}{
			{[]string{"/nonexistent"}, 127, "COMMAND_NOT_FOUND"}, {[]string{"no-such-program"}, 127, "COMMAND_NOT_FOUND"},
			{[]string{"/etc/hostname/x"}, 127, "COMMAND_NOT_FOUND"}, {[]string{""}, 127, "COMMAND_NOT_FOUND"},
			{[]string{"./lost"}, 127, "COMMAND_NOT_FOUND"},
			{[]string{"/tmp"}, 126, "COMMAND_NOT_EXECUTABLE"}, {[]string{"./plain.txt"}, 126, "COMMAND_NOT_EXECUTABLE"},
		} {
			r := j.argv(c.words...)
			if r.exit != c.want || !strings.Contains(r.stderr, "tether: "+c.code+": ") {
				t.Errorf("%q: exit %d and %q, want %d and %s", c.words, r.exit, r.stderr, c.want, c.code)
			}
		}
		// A failure of ours is 125 with a code.
		r := finishCommand(t, j.command("-C", "/", "--", "touch", filepath.Join(j.w, "ran")))
		if r.exit != exitOurs || !strings.Contains(r.stderr, "tether: SANDBOX_BAD_WORKSPACE: ") {
			t.Errorf("a bad workspace: exit %d and %q", r.exit, r.stderr)
		}
		j.absent("ran")
	})
}

// EC-172: a command without input meets its end at once and never gets at what
// the user types.
func TestEC172(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.mustHost(`git init -q . && git add -A && seq 100000 > big`)
		for _, c := range []struct {
			script string
			want   []int
		}{
			{"cat", []int{0}}, {"read x", []int{1}}, {"python3 -c 'input()'", []int{1}}, {"ssh -o BatchMode=no -T nosuchhost.invalid", []int{255}},
			{"git commit --allow-empty", []int{1, 128}}, {"sudo true", []int{1, 127}}, {"less big >/dev/null", []int{0}},
			{"bash -i </dev/null; :", []int{0}}, {"python3 </dev/null", []int{0}}, {"passwd", []int{1, 10, 127}}, {"read x </dev/tty", []int{1, 2}},
			{"cat /dev/stdin", []int{0}},
		} {
			for _, stdin := range []string{"null", "pipe", "file"} {
				cmd := j.command("--timeout", "20s", "--", "sh", "-c", c.script)
				switch stdin {
				case "pipe":
					cmd.Stdin = strings.NewReader("")
				case "file":
					f, err := os.Open(j.write(filepath.Join(j.out, "empty"), ""))
					if err != nil {
						t.Fatal(err)
					}
					defer f.Close()
					cmd.Stdin = f
				}
				r := finishCommand(t, cmd)
				ok := false
				for _, w := range c.want {
					ok = ok || r.exit == w
				}
				if !ok || r.took > 10*time.Second {
					t.Errorf("%s (%s): exit %d after %v: %.300s; want one of %v at once", c.script, stdin, r.exit, r.took, r.all(), c.want)
				}
			}
		}
		// Input that there is arrives, whole.
		cmd := j.command("--", "sh", "-c", "wc -c; read x; echo $?")
		cmd.Stdin = strings.NewReader(strings.Repeat("x", 3<<20))
		if r := finishCommand(t, cmd); strings.Fields(r.stdout)[0] != fmt.Sprint(3<<20) {
			t.Errorf("3 MiB of input: got %s", r.all())
		}
		// The terminal that Tether was started from is out of reach.
		master, tty := openTerminal(t)
		defer master.Close()
		defer tty.Close()
		if _, err := master.WriteString("keystrokes\n"); err != nil {
			t.Fatal(err)
		}
		cmd = commandIn(j.w, "sh", "-c", "read -r x </dev/tty; echo got $x")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 3}
		cmd.ExtraFiles = []*os.File{tty}
		if r := finishCommand(t, cmd); r.stdout != "got keystrokes\n" {
			t.Fatalf("control: without Tether the keystrokes are read: got %s", r.all())
		}
		if _, err := master.WriteString("keystrokes\n"); err != nil {
			t.Fatal(err)
		}
		cmd = j.command("--", "sh", "-c", "read -r x </dev/tty; echo got $x; echo loud >/dev/tty; cat; python3 -c 'open(\"/dev/tty\")'")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 3}
		cmd.ExtraFiles = []*os.File{tty}
		if r := finishCommand(t, cmd); r.stdout != "got\n" || !strings.Contains(r.stderr, "No such device or address") {
			t.Errorf("the user's terminal was reached: %s", r.all())
		}
		b := make([]byte, 100)
		if err := unix.SetNonblock(int(tty.Fd()), true); err != nil {
			t.Fatal(err)
		}
		if n, err := unix.Read(int(tty.Fd()), b); err != nil || string(b[:n]) != "keystrokes\n" {
			t.Errorf("what was typed must still be there: got %q, %v", b[:max(n, 0)], err)
		}
	})
}

// EC-173: interrupts, without a terminal and on one.
func TestEC173(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		adopt(t)
		const stubborn = "trap '' INT TERM HUP QUIT; echo ready; while :; do sleep .05; done"
		const ordinary = "echo ready; exec sleep 300"
		const tidy = "trap 'echo tidied; exit 5' INT TERM HUP; echo ready; while :; do sleep .05; done"
		for _, c := range []struct {
			name, script string
			signals      []syscall.Signal
			want         int
			text         string
			most         time.Duration
		}{
			{"INT", ordinary, []syscall.Signal{syscall.SIGINT}, 130, "", time.Second},
			{"TERM", ordinary, []syscall.Signal{syscall.SIGTERM}, 143, "", time.Second},
			{"HUP", ordinary, []syscall.Signal{syscall.SIGHUP}, 129, "", time.Second},
			{"QUIT", ordinary, []syscall.Signal{syscall.SIGQUIT}, 131, "", time.Second},
			{"INT, tidied", tidy, []syscall.Signal{syscall.SIGINT}, 5, "tidied", time.Second},
			{"TERM, tidied", tidy, []syscall.Signal{syscall.SIGTERM}, 5, "tidied", time.Second},
			{"INT twice", stubborn, []syscall.Signal{syscall.SIGINT, syscall.SIGINT}, 130, "", time.Second},
			{"TERM ignored", stubborn, []syscall.Signal{syscall.SIGTERM}, 143, "", graceTime + time.Second},
			{"HUP ignored", stubborn, []syscall.Signal{syscall.SIGHUP}, 129, "", graceTime + time.Second},
			{"INT, then TERM", stubborn, []syscall.Signal{syscall.SIGINT, syscall.SIGTERM}, 143, "", time.Second},
		} {
			cmd := j.command("--", "sh", "-c", c.script)
			pipe, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			b := make([]byte, 100)
			for !strings.Contains(out.String(), "ready") {
				n, err := pipe.Read(b)
				out.Write(b[:n])
				if err != nil {
					t.Fatalf("%s: it ended early: %q", c.name, out.String())
				}
			}
			begin := time.Now()
			for _, sig := range c.signals {
				_ = cmd.Process.Signal(sig)
				time.Sleep(50 * time.Millisecond)
			}
			timer := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
			for {
				n, err := pipe.Read(b)
				out.Write(b[:n])
				if err != nil {
					break
				}
			}
			_ = cmd.Wait()
			timer.Stop()
			if took, got := time.Since(begin), cmd.ProcessState.ExitCode(); got != c.want || took > c.most+500*time.Millisecond || !strings.Contains(out.String(), c.text) {
				t.Errorf("%s: exit %d after %v with %q, want %d within %v with %q", c.name, got, took, out.String(), c.want, c.most, c.text)
			}
			nothingLeft(t, 0)
		}
		t.Run("terminal", func(t *testing.T) { interruptsOnTerminal(t, j) })
	})
}

func interruptsOnTerminal(t *testing.T, j *jail) {
	size := unix.Winsize{Row: 24, Col: 80}
	start := func(script string) *screen {
		t.Helper()
		s := onScreen(t, j.command("--", "sh", "-c", script), size)
		s.expect("ready")
		return s
	}
	s := start("echo ready; exec sleep 300")
	s.send("\x03")
	if got := s.wait(); got != 130 {
		t.Errorf("Ctrl-C: exit %d, want 130", got)
	}
	s.restored()
	nothingLeft(t, 0)

	// The program decides; Ctrl-C is only a key to it.
	s = start("trap 'echo caught' INT; echo ready; while :; do sleep .05; done")
	s.send("\x03")
	s.expect("caught")
	s.send("\x03")
	s.expect("caught")
	s.send("\x1c") // Ctrl-\
	if got := s.wait(); got != 131 {
		t.Errorf("Ctrl-\\: exit %d, want 131", got)
	}
	s.restored()
	nothingLeft(t, 0)

	// A signal from outside ends also what ignores it, and puts the mode back.
	for _, c := range []struct {
		sig  syscall.Signal
		want int
	}{{syscall.SIGTERM, 143}, {syscall.SIGHUP, 129}} {
		s = start("trap '' INT TERM HUP; echo ready; while :; do sleep .05; done")
		_ = s.cmd.Process.Signal(c.sig)
		if got := s.wait(); got != c.want {
			t.Errorf("%v: exit %d, want %d", c.sig, got, c.want)
		}
		s.restored()
		nothingLeft(t, 0)
	}

	// The window is closed.
	s = start("trap '' HUP; echo ready; sleep 300")
	s.close()
	begin := time.Now()
	s.wait()
	if took := time.Since(begin); took > graceTime+2*time.Second {
		t.Errorf("the window was closed: it took %v to end", took)
	}
	nothingLeft(t, 0)
}

// EC-174: many runs on one workspace at the same time.
func TestEC174(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		adopt(t)
		j.plant(".env", "sub/.env")
		j.mustHost("git init -q .")
		j.own()
		before, mounted, open := listing(t, filepath.Join(j.w, "sub")), mounts(t), descriptors(t)
		const n = 50
		results := make([]result, n)
		var group sync.WaitGroup
		for i := range n {
			cmd := j.command("--", "sh", "-c", fmt.Sprintf(
				`for k in 1 2 3; do echo x > f%[1]d.$k && mv f%[1]d.$k g%[1]d && rm g%[1]d || exit 9; done
				mkdir "$XDG_CACHE_HOME/d%[1]d" && echo %[1]d > "$XDG_CACHE_HOME/d%[1]d/x" && mktemp >/dev/null || exit 8
				cat .env sub/.env; echo end`, i))
			group.Go(func() { results[i] = finishCommand(t, cmd) })
		}
		group.Wait()
		for i, r := range results {
			j.noSecret(r)
			if r.exit != 0 || r.stdout != "end\n" || strings.Count(r.stderr, "Permission denied") != 2 || strings.Contains(r.stderr, "tether") {
				t.Errorf("run %d: exit %d: %s", i, r.exit, r.all())
			}
		}
		nothingLeft(t, 0)
		if d := difference(before, listing(t, filepath.Join(j.w, "sub"))); d != "" {
			t.Errorf("the workspace changed%s", d)
		}
		entries, _ := os.ReadDir(j.w)
		if len(entries) != 3 { // .env, .git, sub
			t.Errorf("left in the workspace: %v", entries)
		}
		if left := j.pending(); len(left) > 0 {
			t.Errorf("records are left: %v", left)
		}
		if got := mounts(t); got != mounted {
			t.Errorf("%d mounts, want %d", got, mounted)
		}
		if got := descriptors(t); got > open {
			t.Errorf("%d descriptors, want %d", got, open)
		}
		// They share one folder of caches; other workspaces do not.
		if os.Geteuid() == 0 && j.provider == "bwrap" {
			return // the workspace's owner cannot reach root's folders: the caches are in memory
		}
		r := j.run(`ls "$XDG_CACHE_HOME" | grep -c '^d'; cat "$XDG_CACHE_HOME/d49/x"`)
		if r.stdout != fmt.Sprintf("%d\n49\n", n) {
			t.Errorf("the cache that the runs share: %s", r.all())
		}
		other := newJail(t, j.provider)
		other.state, other.env = j.state, j.env
		if r := other.run(`ls "$XDG_CACHE_HOME" | grep -c '^d'`); r.stdout != "0\n" {
			t.Errorf("another workspace sees this one's caches: %s", r.all())
		}
	})
}

func descriptors(t testing.TB) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// EC-176: a launcher that is broken is told of, and soon.
func TestEC176(t *testing.T) {
	need.Program(t, "bwrap")
	need.Root(t) // who can put a bwrap in the system's place
	real, err := filepath.EvalSymlinks("/usr/bin/bwrap")
	if err != nil {
		need.Missing(t, "bwrap", err.Error())
	}
	for _, c := range []struct{ name, script, mode, why string }{
		{"exits 1", "#!/bin/sh\nexit 1\n", "755", ""},
		{"says why", "#!/bin/sh\necho 'bwrap: no permission to this' >&2\nexit 1\n", "755", "no permission to this"},
		{"hangs", "#!/bin/sh\nexec sleep 30\n", "755", ""},
		{"hangs deaf", "#!/bin/sh\ntrap '' TERM\nexec sleep 30\n", "755", ""},
		{"hangs later", "#!/bin/sh\ncase $1 in --version) echo bubblewrap 0.8.0;; *) exec sleep 30;; esac\n", "755", ""},
		{"prints", "#!/bin/sh\necho hello\n", "755", ""},
		{"floods", "#!/bin/sh\nexec yes\n", "755", ""},
		{"floods the other way", "#!/bin/sh\nexec yes >&2\n", "755", ""},
		{"is old", "#!/bin/sh\ncase $1 in --version) echo bubblewrap 0.3.0;; *) echo 'bwrap: Unknown option --perms' >&2; exit 1;; esac\n", "755", "Unknown option"},
		{"is set-uid", "#!/bin/sh\nexit 0\n", "4755", "set-uid"},
		{"is writable by all", "#!/bin/sh\nexit 0\n", "777", "changed by others"},
		{"is no program", "\x00\x00", "755", ""},
		{"is not executable", "#!/bin/sh\nexit 0\n", "644", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := newJail(t, "bwrap")
			adopt(t)
			fake := j.write(filepath.Join(j.out, "bwrap"), c.script)
			setup := "chmod " + c.mode + " " + fake + "\nmount --bind " + fake + " " + real
			r := finishCommand(t, j.withMounts(setup, asOwner(binary, "run", "--provider", "bwrap", "--", "touch", "ran")...))
			if r.exit != exitOurs || !regexp.MustCompile(`tether: (ISOLATION|SANDBOX)_UNAVAILABLE: .`).MatchString(r.stderr) || !strings.Contains(r.stderr, c.why) {
				t.Errorf("exit %d and %q; want %d, the code and the reason %q", r.exit, r.all(), exitOurs, c.why)
			}
			if r.stdout != "" || len(r.stderr) > 8192 {
				t.Errorf("the launcher's own output came through: %d and %d bytes", len(r.stdout), len(r.stderr))
			}
			if r.took > 3*time.Second { // 2 s, and what the machine needs besides
				t.Errorf("it took %v, want 2 s at most", r.took)
			}
			j.absent("ran")
			nothingLeft(t, 100*time.Millisecond)
			if left := j.pending(); len(left) > 0 {
				t.Errorf("records are left: %v", left)
			}
		})
	}
}

// EC-178: the same inputs give the same decisions, whatever the locale, the
// home, the order of files and the umask.
func TestEC178(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		names := []string{".env", "Ä/.env", "a b/.env.local", "z/server.pem", "B/id_rsa", "b/id_rsa", "ä/x.key", "node_modules/p/.env", ".vscode/tasks.json",
			".mcp.json", "sub/.claude/settings.json"}
		explain := func(w string, env []string) string {
			t.Helper()
			cmd := j.command()
			cmd.Args = []string{binary, "explain", "--json", "--provider", j.provider, "-C", w, "--allow-read", "/usr/share", "--protect", "*.secret", "--", "true"}
			cmd.Env = append(append([]string{}, j.env...), env...)
			r := finishCommand(t, cmd)
			if r.exit != 0 {
				t.Fatalf("explain: exit %d: %s", r.exit, r.all())
			}
			text := strings.ReplaceAll(r.stdout, w, "WORKSPACE")
			text = regexp.MustCompile(`"[^"]*/tether/(cache|pending|stubs)/[^"]*"`).ReplaceAllString(text, `"STATE"`)
			return text
		}
		var got [2]string
		for i, env := range [][]string{{"LC_ALL=C", "LANG=C", "HOME=/nowhere", "TZ=UTC"}, {"LC_ALL=tr_TR.UTF-8", "LANG=de_DE.UTF-8", "HOME=/tmp", "TZ=Asia/Tokyo"}} {
			w := filepath.Join(j.w, fmt.Sprint("w", i))
			old := syscall.Umask([]int{0o022, 0o002}[i])
			for k := range names {
				n := names[k]
				if i == 1 {
					n = names[len(names)-1-k]
				}
				j.write(filepath.Join(w, n), "S3\n")
			}
			syscall.Umask(old)
			got[i] = explain(w, env)
		}
		if got[0] != got[1] {
			t.Errorf("got\n%s\nand\n%s\nwant the same", got[0], got[1])
		}
		for _, n := range names[:8] {
			if !strings.Contains(got[0], n) {
				t.Errorf("control: %q is not in the list", n)
			}
		}
	})
}
