//go:build linux

package main

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/internal/host"
	"github.com/tether-sandbox/tether/internal/need"
)

// reaches requires that the machine reaches a server, without Tether.
func reaches(t testing.TB, url string) {
	t.Helper()
	client := http.Client{Timeout: 15 * time.Second}
	resp, err := client.Head(url)
	if err != nil {
		need.Missing(t, "network", err.Error())
	}
	resp.Body.Close()
}

// registry lets a run reach a server of the internet under its default network,
// also on a machine that gives it an address of its own network.
func (j *jail) registry(name string) {
	addrs, err := net.DefaultResolver.LookupNetIP(j.t.Context(), "ip", name)
	if err != nil {
		need.Missing(j.t, "network", err.Error())
	}
	for _, a := range addrs {
		if host.ClassOf(a) != host.Public {
			j.flags = append(j.flags, "--allow-host", a.Unmap().String())
		}
	}
}

// A Go module with a dependency: fetched, built and tested, and built again
// from what is there.
func TestWorkGo(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a good part of the standard library")
	}
	need.Program(t, "go")
	reaches(t, "https://proxy.golang.org/github.com/spf13/cobra/@v/v1.9.1.info")
	providers(t, func(t *testing.T, j *jail) {
		j.registry("proxy.golang.org")
		j.env = append(j.env, "GOFLAGS=-mod=mod")
		j.write("go.mod", "module example.com/m\n\ngo 1.22\n\nrequire github.com/spf13/cobra v1.9.1\n")
		j.write("main.go", `package main

import "github.com/spf13/cobra"

func command() *cobra.Command {
	return &cobra.Command{Use: "m", Run: func(c *cobra.Command, _ []string) { c.Println("cobra ran") }}
}

func main() { _ = command().Execute() }
`)
		j.write("main_test.go", `package main

import "testing"

func TestCommand(t *testing.T) {
	if err := command().Execute(); err != nil {
		t.Fatal(err)
	}
}
`)
		if os.Geteuid() == 0 && j.provider == "bwrap" {
			t.Skip("its caches are in memory, and all is compiled each time; native and the ordinary user cover it")
		}
		first := j.works("go build -o m . && ./m && go test ./... && test -s go.sum", "cobra ran")
		if !strings.Contains(first.all(), "downloading github.com/spf13/cobra") && os.Geteuid() != 0 {
			t.Logf("nothing was fetched, so another cache has it: %s", first.all())
		}
		again := j.works("go build -o m . && go test ./...", "(cached)")
		if strings.Contains(again.all(), "downloading") {
			t.Errorf("fetched again: %s", again.all())
		}
	})
}

// A package of Node's registry, and a script that uses it.
func TestWorkNode(t *testing.T) {
	need.Program(t, "npm")
	reaches(t, "https://registry.npmjs.org/is-number/7.0.0")
	providers(t, func(t *testing.T, j *jail) {
		j.systemPath()
		j.registry("registry.npmjs.org")
		j.write("package.json", `{"name":"top","version":"1.0.0","private":true}`)
		j.write("main.js", `console.log("number", require("is-number")("42"))`)
		j.works("npm install is-number@7.0.0 && node main.js", "number true")
		if os.Geteuid() != 0 || j.provider != "bwrap" {
			// The cache serves it again, in the same policy.
			j.works("rm -rf node_modules && npm ci --offline && node main.js", "number true")
		}
	})
}

// Debuggers of one's own children.
func TestWorkDebuggers(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		need.Program(t, "strace")
		need.Program(t, "gdb")
		need.Program(t, "gcc")
		j.systemPath()
		j.works("strace -f -o trace sh -c 'echo traced; /bin/true' && grep -c execve trace", "traced\n")
		j.works("sleep 9 & child=$!; strace -p $child -o t2 & sleep .3; kill $child; wait; grep -c SIGTERM t2", "2")
		j.write("a.c", "#include <stdio.h>\nint deep(int n) { return n ? deep(n - 1) : 42; }\nint main() { printf(\"%d\\n\", deep(3)); return 0; }\n")
		j.works("gcc -g -o a a.c && gdb -nx -batch -ex 'break deep if n == 0' -ex run -ex bt -ex 'print n' -ex continue ./a", "$1 = 0")
	})
}

// An interactive shell, as somebody at a terminal has it.
func TestWorkTerminal(t *testing.T) {
	need.Program(t, "bash")
	providers(t, func(t *testing.T, j *jail) {
		adopt(t)
		j.set("TERM", "xterm-256color")
		j.plant(".env")
		s := onScreen(t, j.command("--", "bash", "--norc", "-i"), unix.Winsize{Row: 33, Col: 99})
		s.expect("bash-")
		if s.mode().Lflag&unix.ICANON != 0 {
			t.Error("the outer terminal must hand over every key")
		}
		s.send("PS1='READY> '\n")
		s.expect("READY> ")
		s.expect("READY> ")
		ask := func(line, want string) {
			t.Helper()
			s.send(line + "\n")
			s.expect("\n") // what was typed is echoed
			s.expect(want)
			s.expect("READY> ")
		}
		ask("stty size", "33 99")
		ask("echo $TERM $- ${COLUMNS}", "xterm-256color himBHs 99")
		ask("tty", "/dev/pts/")
		ask("test -t 0 && test -t 1 && test -t 2 && echo all three", "all three")
		ask("python3 -c 'import os; print(os.ttyname(0), os.get_terminal_size().lines, os.isatty(1))'", "33 True")
		ask("echo through >/dev/tty", "through")
		ask(`printf '\033[31mred\033[0m\n'`, "\x1b[31mred\x1b[0m")
		ask("ls --color=always -d .", "\x1b[")
		// Neither writing the clipboard nor asking the terminal gets through.
		ask(`printf 'a\033]52;c;c2VjcmV0\007b\033]52;c;?\033\\c\033[21td\n'`, "abcd")
		if strings.Contains(s.text(), "\x1b]52") {
			t.Errorf("the clipboard was reached: %q", s.text())
		}
		// A window that is dragged.
		s.resize(unix.Winsize{Row: 20, Col: 70})
		ask("sleep .2; stty size", "20 70")
		// Job control.
		s.send("sleep 100\n")
		time.Sleep(200 * time.Millisecond)
		s.send("\x03")
		s.expect("READY> ")
		ask("echo rc=$?", "rc=130")
		s.send("sleep 100\n")
		time.Sleep(200 * time.Millisecond)
		s.send("\x1a")
		s.expect("Stopped")
		s.expect("READY> ")
		ask("jobs | wc -l", "1")
		s.send("fg\n")
		time.Sleep(200 * time.Millisecond)
		s.send("\x03")
		s.expect("READY> ")
		ask("jobs | wc -l", "0")
		ask("sleep 100 &", "[1]")
		ask("kill %1; wait %1; echo ended", "ended")
		// What is hidden stays hidden, and the history is kept nowhere here.
		ask("cat .env; echo looked", "looked")
		s.send("cat\n")
		time.Sleep(200 * time.Millisecond) // bash has left its own mode
		s.send("typed\n")
		s.expect("typed")
		s.expect("typed")
		s.send("\x04") // Ctrl-D ends the input of cat, not the shell
		s.expect("READY> ")
		s.send("exit 7\n")
		if got := s.wait(); got != 7 {
			t.Errorf("exit %d, want 7", got)
		}
		s.restored()
		if strings.Contains(s.text(), j.secret) {
			t.Error("the secret was seen")
		}
		nothingLeft(t, 0)
	})
}

// A program that draws on the whole screen and is killed: the terminal is put
// back.
func TestWorkScreen(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.set("TERM", "xterm")
		s := onScreen(t, j.command("--", "sh", "-c", `stty raw -echo; printf '\033[?1049h\033[?25l\033[?1000hdrawn'; kill -9 $$`), unix.Winsize{Row: 24, Col: 80})
		s.expect("drawn")
		if got := s.wait(); got != 137 {
			t.Errorf("exit %d, want 137", got)
		}
		s.restored()
		for _, undone := range []string{"\x1b[?1049l", "\x1b[?25h", "\x1b[?1000l"} {
			if !soon(time.Second, func() bool { _, after, _ := strings.Cut(s.text(), "drawn"); return strings.Contains(after, undone) }) {
				t.Errorf("%q is not undone in %q", undone, s.text())
			}
		}
		// After a run on a terminal one line tells what was worth knowing.
		j.plant(".env")
		s = onScreen(t, j.command("--", "true"), unix.Winsize{Row: 24, Col: 80})
		if got := s.wait(); got != 0 {
			t.Errorf("exit %d", got)
		}
		s.expect(" hidden")
	})
}

// Tether as $SHELL, for programs that start one.
func TestWorkShell(t *testing.T) {
	need.Program(t, "bash")
	need.Program(t, "python3")
	for _, provider := range []string{"auto"} {
		j := newJail(t, provider)
		j.plant(".env")
		link := filepath.Join(j.out, "tether-sh")
		if err := os.Symlink(binary, link); err != nil {
			t.Fatal(err)
		}
		in := func(words ...string) result {
			t.Helper()
			cmd := commandIn(j.w, words...)
			cmd.Env = append(append([]string{}, j.env...), "SHELL="+link)
			return finishCommand(t, cmd)
		}
		for _, words := range [][]string{{link, "-c", "echo $TETHER; cat .env"}, {binary, "-c", "echo $TETHER; cat .env"}, {binary, "-lc", "echo $TETHER; cat .env"},
			{binary, "sh", "-c", "echo $TETHER; cat .env"},
			// As agents and editors do it.
			{"python3", "-c", `import os, subprocess; subprocess.run([os.environ["SHELL"], "-c", "echo $TETHER; cat .env"])`},
			{"python3", "-c", `import os, subprocess; subprocess.run("echo $TETHER; cat .env", shell=True, executable=os.environ["SHELL"])`},
			{"sh", "-c", `printf 'all:\n\t@echo $$TETHER; cat .env\n' > Makefile; make -s SHELL=$SHELL; :`}} {
			r := in(words...)
			if r.stdout != "1\n" || !strings.Contains(r.stderr, "Permission denied") {
				t.Errorf("%q: exit %d: %s", words, r.exit, r.all())
			}
		}
		// It is a shell: quoting, arguments, pipes, status, input.
		for _, c := range []struct {
			words []string
			out   string
			exit  int
		}{
			{[]string{"-c", `printf '<%s>' "a  b" '*' '$HOME' "$1"`, "name", "x y"}, "<a  b><*><$HOME><x y>", 0},
			{[]string{"-c", `echo '{"a": [1, "b c"]}' | cat`}, "{\"a\": [1, \"b c\"]}\n", 0},
			{[]string{"-c", `false || exit 9`}, "", 9},
			{[]string{"-c", `[[ ab == a* ]] && echo "${BASH_VERSION:+bash}"`}, "bash\n", 0},
			{[]string{"-c", "exit 300"}, "", 44},
			{[]string{"-c", "kill -TERM $$"}, "", 143},
			{[]string{"-e", "-c", "false; echo not"}, "", 1},
			{[]string{"-l", "-c", "echo login"}, "login\n", 0},
			{[]string{"-c", "if"}, "", 2},
			{[]string{"script.sh", "one"}, "script one\n", 0},
		} {
			j.write("script.sh", "echo script $1\n")
			r := in(append([]string{link}, c.words...)...)
			if r.stdout != c.out || r.exit != c.exit {
				t.Errorf("%q: exit %d, %q and %q; want %d and %q", c.words, r.exit, r.stdout, r.stderr, c.exit, c.out)
			}
		}
		cmd := commandIn(j.w, link)
		cmd.Env, cmd.Stdin = j.env, strings.NewReader("echo from input; exit 4\n")
		if r := finishCommand(t, cmd); r.stdout != "from input\n" || r.exit != 4 {
			t.Errorf("a script on the input: exit %d: %s", r.exit, r.all())
		}
		// On a terminal it is an interactive one.
		shell := commandIn(j.w, link)
		shell.Env = append(append([]string{}, j.env...), "TERM=xterm")
		s := onScreen(t, shell, unix.Winsize{Row: 24, Col: 80})
		s.expect("\x1b[?2004h") // it edits lines, so it is ready
		s.send("echo $-; exit 3\n")
		s.expect("\n")
		s.expect("himBHs")
		if got := s.wait(); got != 3 {
			t.Errorf("exit %d, want 3", got)
		}
		s.restored()
	}
}
