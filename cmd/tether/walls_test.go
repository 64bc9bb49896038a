//go:build linux

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tether-sandbox/tether/internal/enforce/landlock"
	"github.com/tether-sandbox/tether/internal/need"
)

// confinements take user namespaces away from a command, each in its own way.
func confinements() map[string]func(t *testing.T, cmd *exec.Cmd) {
	return map[string]func(t *testing.T, cmd *exec.Cmd){
		"a limit of none": func(_ *testing.T, cmd *exec.Cmd) {
			// The limit is one of this user namespace alone.
			const sysResource = 24
			cmd.Args = append([]string{"sh", "-c", `echo 0 >/proc/sys/user/max_user_namespaces || exit 99; exec "$@"`, "sh"}, cmd.Args...)
			cmd.Path = "/bin/sh"
			cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, AmbientCaps: []uintptr{sysResource},
				UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}},
				GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}}
		},
		"a filter": func(t *testing.T, cmd *exec.Cmd) {
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			cmd.Args = append([]string{self}, cmd.Args...)
			cmd.Path, cmd.Env = self, append(cmd.Env, containVariable+"=1")
		},
	}
}

// TestWithoutNamespaces: where user namespaces are refused, nothing runs unless
// less is accepted, the error names the flags that accept it, and what they
// accept is then held.
func TestWithoutNamespaces(t *testing.T) {
	if abi, err := landlock.ABI(); err != nil || abi < 6 {
		need.Missing(t, "landlock", "it takes ABI 6")
	}
	for name, confine := range confinements() {
		t.Run(name, func(t *testing.T) {
			j := newJail(t, "auto")
			run := func(words ...string) result {
				t.Helper()
				cmd := exec.Command(binary, append([]string{"run", "-C", j.w}, words...)...)
				cmd.Env, cmd.Dir = j.env, j.w
				confine(t, cmd)
				return finishCommand(t, cmd)
			}
			read := []string{"--accept", "read=partial"} // root of a user namespace is not unknown to the host
			if r := j.run("echo ran", read...); r.stdout != "ran\n" {
				t.Fatalf("control: without the confinement: %q", r.all())
			}
			for _, p := range []string{"native", "bwrap"} {
				r := run("--provider", p, read[0], read[1], "--", "touch", "ran")
				if r.exit != exitOurs || !strings.Contains(r.stderr, "_UNAVAILABLE") {
					t.Fatalf("%s: exit %d, %q; want it refused", p, r.exit, r.all())
				}
				j.absent("ran")
			}
			// The flags that the hint names, typed as they stand.
			hinted := func() []string {
				t.Helper()
				r := run("--", "touch", "ran")
				_, hint, ok := strings.Cut(r.stderr, "--accept ")
				if r.exit != exitOurs || !ok {
					t.Fatalf("exit %d, %q; want it refused, and the flags named", r.exit, r.all())
				}
				j.absent("ran")
				return strings.Fields("--accept " + hint)
			}
			flags := hinted()
			if strings.Contains(strings.Join(flags, " "), "secrets") {
				t.Errorf("%q: nothing is hidden here", flags)
			}
			j.write(filepath.Join(j.out, "notes"), j.secret)
			r := run(append(flags, "--json", "--", "sh", "-c", "echo made >made; echo tmp >$TMPDIR/t && cat $TMPDIR/t; echo x >"+j.out+"/made; cat "+j.out+"/notes; echo $TMPDIR >tmp")...)
			var got struct {
				Exit   int
				Stdout string
				Report struct {
					Provider, Overall string
					Tried             []string
				}
			}
			if err := json.Unmarshal([]byte(r.stdout), &got); err != nil {
				t.Fatalf("%v: %q", err, r.all())
			}
			if got.Report.Provider != "landlock" || len(got.Report.Tried) != 2 || got.Stdout != "tmp\n" {
				t.Errorf("got %+v", got)
			}
			j.noSecret(r)
			j.unchanged("made", "made\n")
			j.absent(filepath.Join(j.out, "made"))
			if tmp, err := os.ReadFile(filepath.Join(j.w, "tmp")); err != nil || len(tmp) < 10 {
				t.Errorf("the temporary folder: %q, %v", tmp, err)
			} else {
				j.absent(strings.TrimSpace(string(tmp)))
			}
			j.plant(".env")
			if r := run(append(flags, "--", "touch", "ran")...); r.exit != exitOurs || !strings.Contains(r.stderr, "git worktree") {
				t.Errorf("with a hidden file: exit %d, %q; want it refused, and another way shown", r.exit, r.all())
			}
			j.absent("ran")
			if more := hinted(); !strings.Contains(strings.Join(more, " "), "secrets=None") {
				t.Errorf("with a hidden file: %q, want secrets=None named", more)
			} else if r := run(append(more, "--", "echo", "ran")...); r.stdout != "ran\n" {
				t.Errorf("with all that is named: %q", r.all())
			}
			// What is only read is opened round what is hidden.
			r = run(append(flags, "-p", "read-only", "--commands", "any", "--", "sh", "-c", "cat .env; cat made; echo x >new")...)
			if r.stdout != "made\n" || strings.Contains(r.all(), j.secret) {
				t.Errorf("read-only: %q, want the hidden file closed and the other one open", r.all())
			}
			j.absent("new")
		})
	}
}

// TestWallsTree: without a process namespace, nothing of a tree is left: not
// what forks faster than it can be listed, and not when Tether itself is killed.
func TestWallsTree(t *testing.T) {
	need.Program(t, "python3")
	if abi, err := landlock.ABI(); err != nil || abi < 6 {
		need.Missing(t, "landlock", "it takes ABI 6")
	}
	j := newJail(t, "landlock")
	mark := "chain-" + j.secret
	j.write("chain.py", "import os\nif os.fork(): os._exit(0)\nos.setsid()\nwhile True:\n    if os.fork(): os._exit(0)\n")
	tree := "python3 chain.py " + mark + " & (setsid sh -c 'sleep 600; : " + mark + "' &) ; : >started; "
	left := func() string {
		out, _ := exec.Command("pgrep", "-f", mark).Output() // its own arguments are not matched
		return strings.TrimSpace(string(out))
	}
	gone := func(when string) {
		t.Helper()
		for end := time.Now().Add(10 * time.Second); left() != ""; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: %s are left", when, left())
			}
		}
	}
	if r := j.run(tree + "sleep .3; echo done"); r.stdout != "done\n" {
		t.Fatalf("got %q", r.all())
	}
	if l := left(); l != "" {
		t.Errorf("after the command: %s are left", l)
		gone("later")
	}
	_ = os.Remove(filepath.Join(j.w, "started"))
	cmd := j.command("--", "sh", "-c", tree+"sleep 600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(j.w, "started")); err == nil && left() != "" {
			break
		}
		if time.Now().After(end) {
			t.Fatal("it does not start")
		}
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	gone("after Tether was killed")
}
