//go:build linux

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether"
	"github.com/tether-sandbox/tether/fact"
	"github.com/tether-sandbox/tether/fault"
)

// asking is a folder with a read-only session, in which touch needs a word.
type asking struct {
	t   testing.TB
	w   string
	env []string
}

func newAsking(t testing.TB) *asking {
	t.Helper()
	top := t.TempDir()
	a := &asking{t: t, w: filepath.Join(top, "w"), env: append(os.Environ(), "XDG_STATE_HOME="+top+"/state", "XDG_CONFIG_HOME="+top+"/config")}
	if err := os.Mkdir(a.w, 0o755); err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *asking) command(args ...string) *exec.Cmd {
	cmd := exec.Command(binary, args...)
	cmd.Dir, cmd.Env = a.w, a.env
	return cmd
}

func (a *asking) start(args ...string) *screen {
	return onScreen(a.t, a.command(args...), unix.Winsize{Row: 40, Col: 200})
}

func (a *asking) log() string {
	a.t.Helper()
	out, err := a.command("session", "log", "s").CombinedOutput()
	if err != nil {
		a.t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

var touching = []string{"run", "--session", "s", "-p", "read-only", "--", "touch", "x\x1b[2J\u202ey"}

// TestAskOnTerminal: every answer, and what is shown before it.
func TestAskOnTerminal(t *testing.T) {
	const prompt = "anything else is no: "
	for _, c := range []struct {
		keys   string
		status int
		log    string
	}{
		{"o\n", 1, "for once"}, // allowed by us, and refused by the kernel
		{"session\n", 1, "for session"},
		{"P\n", 1, "for project"},
		{"\n", 125, "denial"},
		{"nonsense\n", 125, "denial"},
		{"\x04", 125, "denial"},
		{"\x03", 130, "denial"},
	} {
		t.Run(strings.TrimSpace(c.keys), func(t *testing.T) {
			a := newAsking(t)
			s := a.start(touching...)
			text := s.expect(prompt)
			for _, want := range []string{"COMMAND_DENIED", "allow    run exactly: touch", a.w} {
				if !strings.Contains(text, want) {
					t.Errorf("the question lacks %q: %q", want, text)
				}
			}
			if strings.Contains(text, "\x1b[2J") || strings.Contains(text, "\u202e") {
				t.Errorf("control characters reach the terminal: %q", text)
			}
			s.send(c.keys)
			if got := s.wait(); got != c.status {
				t.Errorf("got status %d, want %d: %s", got, c.status, s.text())
			}
			s.restored()
			if log := a.log(); !strings.Contains(log, c.log) {
				t.Errorf("the log lacks %q:\n%s", c.log, log)
			}
		})
	}
	t.Run("typed ahead", func(t *testing.T) {
		a := newAsking(t)
		plain := onScreen(t, func() *exec.Cmd {
			cmd := exec.Command("/bin/sh", "-c", "sleep 0.5; exec \"$0\" \"$@\"", binary, "run", "--session", "s", "-p", "read-only", "--", "touch", "x")
			cmd.Dir, cmd.Env = a.w, a.env
			return cmd
		}(), unix.Winsize{Row: 40, Col: 200})
		plain.send("o\n")
		plain.expect(prompt)
		time.Sleep(200 * time.Millisecond)
		plain.send("\n")
		if got := plain.wait(); got != 125 {
			t.Errorf("got %d; want that what was typed before the question is no answer", got)
		}
	})
	t.Run("not through stdin", func(t *testing.T) {
		a := newAsking(t)
		cmd := a.command("run", "--session", "s", "-p", "read-only", "--", "touch", "x")
		cmd.Stdin = strings.NewReader("o\no\no\n")
		var out bytes.Buffer
		cmd.Stderr = &out
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // without a terminal
		err := cmd.Run()
		if cmd.ProcessState.ExitCode() != 125 || !strings.Contains(out.String(), "APPROVAL_DENIED") || !strings.Contains(out.String(), "hint: tether session grant s -- touch x") {
			t.Errorf("got %v: %s", err, out.String())
		}
	})
	t.Run("edit", func(t *testing.T) {
		a := newAsking(t)
		out := filepath.Join(filepath.Dir(a.w), "outside")
		if err := os.WriteFile(out, []byte("of the outside\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		s := a.start("edit", "view", out, "--session", "s")
		text := s.expect(prompt)
		if !strings.Contains(text, "read "+out+" and what lies below") {
			t.Errorf("got %q", text)
		}
		s.send("o\n")
		s.expect("of the outside")
		if got := s.wait(); got != 0 {
			t.Errorf("got %d", got)
		}
	})
	t.Run("raw mode", func(t *testing.T) {
		a := newAsking(t)
		for keys, status := range map[string]int{"s\r": 1, "\x03": 130} {
			s := onScreen(t, func() *exec.Cmd {
				cmd := exec.Command("/bin/sh", "-c", `stty raw -echo; "$0" "$@"; x=$?; stty sane; exit $x`, binary, "run", "--session", "s", "-p", "read-only", "--", "touch", "x"+keys[:1])
				cmd.Dir, cmd.Env = a.w, a.env
				return cmd
			}(), unix.Winsize{Row: 40, Col: 200})
			s.expect(prompt)
			s.send(keys)
			if got := s.wait(); got != status {
				t.Errorf("%q: got %d, want %d: %s", keys, got, status, s.text())
			}
		}
	})
	t.Run("mode", func(t *testing.T) {
		a := newAsking(t)
		if out, err := a.command("run", "--session", "s", "-p", "read-only", "--", "ls").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		s := a.start("session", "mode", "s", "workspace-write")
		s.expect("enter the mode workspace-write")
		s.expect(prompt)
		s.send("y\n")
		if got := s.wait(); got != 0 || !strings.Contains(a.log(), "sandbox/mode      workspace-write") {
			t.Errorf("got %d: %s\n%s", got, s.text(), a.log())
		}
	})
}

// TestQuestion: what nobody could read is not asked.
func TestQuestion(t *testing.T) {
	q := tether.Question{Workspace: "/w", Grant: fact.Grant{Command: []string{"touch", strings.Repeat("x", longest)}}}
	if _, err := question(q); fault.CodeOf(err) != fault.ApprovalDenied {
		t.Errorf("got %v", err)
	}
	q.Grant.Command[1] = "x\n  allow    nothing at all"
	text, err := question(q)
	if err != nil || strings.Count(text, "\n  allow ") != 1 {
		t.Errorf("got %q, %v; want one line that says what would be allowed", text, err)
	}
}
