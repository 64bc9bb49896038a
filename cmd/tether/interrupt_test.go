//go:build linux

package main

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// Ctrl-C ends a shell's loop around a run, as around any program; $? is 130
// where the shell goes on.
func TestInterruptEndsLoops(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		for _, in := range []string{"", " </dev/null", " | cat"} {
			cmd := j.command("--", "sh", "-c", "echo ready; exec sleep 300")
			var words []string
			for _, a := range cmd.Args {
				words = append(words, "'"+a+"'")
			}
			line := strings.Join(words, " ")
			shell := exec.Command("bash", "--norc", "-i")
			shell.Dir, shell.Env = cmd.Dir, append(cmd.Env, "PS1=ask> ", "HISTFILE=/dev/null", "BASH_SILENCE_DEPRECATION_WARNING=1")
			s := onScreen(t, shell, unix.Winsize{Row: 24, Col: 200})
			s.expect("ask> ")
			s.send("set -o pipefail; " + line + in + "\r")
			s.expect("ready\r\n")
			s.send("\x03")
			s.expect("ask> ")
			s.send("echo status=$?\r")
			s.expect("\r\n")
			s.expect("status=130")
			s.expect("ask> ")
			s.send("for i in 1 2 3; do echo round$i; " + line + in + "; done; echo after\r")
			s.expect("round1\r\n")
			s.expect("ready\r\n")
			s.send("\x03")
			if got := s.expect("ask> "); strings.Contains(got, "round2\r\n") || strings.Contains(got, "after\r\n") {
				t.Errorf("loop %q: got %q, want its end", in, got)
			}
			s.send("exit\r")
			s.wait()
			nothingLeft(t, 0)
		}
	})
}

// So does a script on a terminal, which sees nothing of the key itself.
func TestInterruptEndsScripts(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		for _, c := range []struct {
			name, inside, keys string
			stops              bool
		}{
			{"Ctrl-C", "echo ready; exec sleep 300", "\x03", true},
			{"Ctrl-C that the command takes", "trap 'echo caught; exit 3' INT; echo ready; while :; do sleep .05; done", "\x03", false},
			{"a signal of the command's own", "echo ready; read x; kill -INT $$", "\r", false},
		} {
			cmd := j.command("--", "sh", "-c", c.inside)
			var words []string
			for _, a := range cmd.Args {
				words = append(words, "'"+strings.ReplaceAll(a, "'", `'\''`)+"'")
			}
			script := exec.Command("bash", "-c", "for i in 1 2; do echo round$i; "+strings.Join(words, " ")+"; echo status=$?; done; echo after")
			script.Dir, script.Env = cmd.Dir, cmd.Env
			s := onScreen(t, script, unix.Winsize{Row: 24, Col: 200})
			s.expect("ready\r\n")
			s.send(c.keys)
			if !c.stops {
				s.expect("round2\r\n")
				s.expect("ready\r\n")
				s.send(c.keys)
				s.expect("after\r\n")
			}
			s.wait()
			if got := strings.Contains(s.text(), "after\r\n"); got == c.stops {
				t.Errorf("%s: got %q", c.name, s.text())
			}
			nothingLeft(t, 0)
		}
	})
}

// A program that starts us without a terminal gets the status.
func TestInterruptWithoutTerminal(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		cmd := j.command("--", "sh", "-c", "kill -INT $$")
		_ = finishCommand(t, cmd)
		if ws := cmd.ProcessState.Sys().(syscall.WaitStatus); !ws.Exited() || ws.ExitStatus() != 130 {
			t.Errorf("got %v, want the status 130", cmd.ProcessState)
		}
	})
}
