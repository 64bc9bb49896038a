package main

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// below lists the processes below pid whose arguments end with a word.
func below(pid int, word string) (out []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, path := range lists {
		raw, _ := os.ReadFile(path)
		for f := range strings.FieldsSeq(string(raw)) {
			kid, _ := strconv.Atoi(f)
			line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", kid))
			if bytes.HasSuffix(line, []byte(word+"\x00")) {
				out = append(out, kid)
			}
			out = append(out, below(kid, word)...)
		}
	}
	return out
}

// status returns the values of a key in the status of every thread of a process.
func status(pid int, key string) (out []string) {
	all, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	for _, path := range all {
		raw, _ := os.ReadFile(path)
		for line := range strings.Lines(string(raw)) {
			if k, v, _ := strings.Cut(line, ":"); k == key {
				out = append(out, strings.TrimSpace(v))
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// linksC says whether the program that is tested is linked with C libraries: such
// a one does not know all of its threads.
func linksC(t *testing.T) bool {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	return !slices.Contains(info.Settings, debug.BuildSetting{Key: "CGO_ENABLED", Value: "0"})
}

// TestJoiner: who covers things while a command runs lies outside of its process
// namespace, has three capabilities and nothing else, is started again when it is
// killed, and ends with the sandbox. Nothing inside keeps a capability.
func TestJoiner(t *testing.T) {
	lateProviders(t, func(t *testing.T, j *jail) {
		j.own()
		cmd := j.command("--", "sh", "-c", lateWords+`appears one/.env; closes one/.env; touch ready; appears two/.env; closes two/.env; ls /proc | grep -c '^[0-9]'`)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		wait := func(what string, cond func() bool) {
			t.Helper()
			for end := time.Now().Add(20 * time.Second); !cond(); time.Sleep(10 * time.Millisecond) {
				if time.Now().After(end) {
					_ = cmd.Process.Kill()
					t.Fatalf("not in time: %s", what)
				}
			}
		}
		var joined []int
		wait("a joiner", func() bool { joined = below(cmd.Process.Pid, "joined"); return len(joined) == 1 })
		j.plant("one/.env")
		wait("the first secret is hidden", func() bool { _, err := os.Stat(j.w + "/ready"); return err == nil })
		pid := joined[0]
		if caps := status(pid, "CapEff"); !slices.Equal(caps, []string{fmt.Sprintf("%016x", 1<<1|1<<2|1<<21)}) {
			t.Errorf("the joiner's capabilities are %v", caps)
		}
		if v := status(pid, "NoNewPrivs"); !slices.Equal(v, []string{"1"}) {
			t.Errorf("no_new_privs: %v", v)
		}
		first := firstInside(cmd.Process.Pid)
		if caps := status(first, "CapEff"); !linksC(t) && !slices.Equal(caps, []string{"0000000000000000"}) {
			t.Errorf("process 1 keeps %v", caps)
		}
		if os.Geteuid() == 0 {
			ns := func(pid int, kind string) string {
				to, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", pid, kind))
				if err != nil {
					t.Error(err)
				}
				return to
			}
			if ns(pid, "mnt") != ns(first, "mnt") || ns(pid, "pid") != ns(os.Getpid(), "pid") || ns(first, "pid") == ns(pid, "pid") || ns(pid, "user") == ns(os.Getpid(), "user") {
				t.Error("the joiner lies in other namespaces than it must")
			}
			if env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)); err != nil || len(env) > 0 {
				t.Errorf("the joiner's environment: %q, %v", env, err)
			}
			files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
			for _, f := range files {
				to, _ := os.Readlink(f)
				if info, err := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/%s", pid, filepath.Base(f))); strings.HasPrefix(to, "/memfd:tether-steps") &&
					err == nil && regexp.MustCompile(`flags:\s+0\d*0\n`).Match(info) {
					continue // to be read alone
				}
				// Ours in the world: its root, the kit and what lies in that.
				if to != "/dev/null" && !strings.HasPrefix(to, "socket:") && !strings.HasPrefix(to, "anon_inode:") && to != "/" &&
					!strings.HasPrefix(to, "/mask-") && !strings.HasPrefix(to, "/dev/") && !strings.HasPrefix(to, "/run/tether/masks/") {
					t.Errorf("the joiner holds %s: %s", filepath.Base(f), to)
				}
			}
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
		j.plant("two/.env")
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
		text := out.String()
		if !strings.Contains(text, "CLOSED one/.env\nCLOSED two/.env\n") || strings.Contains(text, j.secret) {
			t.Errorf("got %q", text)
		}
		var seen int
		if _, err := fmt.Sscan(text[strings.LastIndexByte(strings.TrimSpace(text), '\n')+1:], &seen); err != nil || seen > 5 {
			t.Errorf("%d processes are seen inside: %v", seen, err)
		}
		if joined := below(os.Getpid(), "joined"); len(joined) > 0 {
			t.Errorf("joiners are left: %v", joined)
		}
	})
}
