//go:build linux

package tether_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether"
	"github.com/tether-sandbox/tether/fact"
	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/need"
	"github.com/tether-sandbox/tether/policy"
)

// scriptedSession does a bit of everything in a session called s, with the
// house in a folder.
func scriptedSession(dir string) {
	must := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	o := tether.Options{Policy: policy.Default(dir + "/w"), Session: "s", By: fact.Person,
		Environ: []string{"PATH=" + os.Getenv("PATH"), "XDG_STATE_HOME=" + dir + "/state", "XDG_CONFIG_HOME=" + dir + "/config"}}
	o.Policy.Network.Mode = policy.Offline
	s, err := tether.Open(ctx, o)
	must(err)
	person := tether.Request{By: fact.Person}
	must(s.StartTurn(ctx, "scripted"))
	_, err = s.Run(ctx, tether.Command{Args: []string{"touch", "run-1"}})
	must(err)
	files, err := s.Files(ctx)
	must(err)
	_, err = files.Write(tether.WriteRequest{Path: "edit-1", Text: "x"})
	must(err)
	must(s.EndTurn(ctx))
	_, err = s.Grant(ctx, fact.Grant{Mode: "full-access", Scope: fact.Session}, person)
	must(err)
	must(s.EnterMode(ctx, policy.ReadOnly, person))
	must(s.EnterMode(ctx, policy.WorkspaceWrite, person))
	_, err = s.Run(ctx, tether.Command{Args: []string{"touch", "run-2"}})
	must(err)
	must(s.Close())
}

// TestCrash kills the process after each record that it writes. Whatever was
// done stands in the log, what the log says holds again, and the session goes on.
func TestCrash(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	lost, ends := 0, 0
	for k := 1; ; k++ {
		h := newHouse(t)
		sessions := filepath.Join(h.state(), "sessions")
		if err := os.MkdirAll(sessions, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(h.state(), 0o700); err != nil {
			t.Fatal(err)
		}
		watch, err := unix.InotifyInit1(unix.IN_CLOEXEC)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := unix.InotifyAddWatch(watch, sessions, unix.IN_MODIFY|unix.IN_CREATE); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(exe)
		cmd.Env = append(os.Environ(), scripted+"="+filepath.Dir(h.w))
		var said bytes.Buffer
		cmd.Stderr = &said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- cmd.Wait() }()
		killed := false
		for over := false; !over; {
			fds := []unix.PollFd{{Fd: int32(watch), Events: unix.POLLIN}}
			n, _ := unix.Poll(fds, 50)
			if n > 0 {
				_, _ = unix.Read(watch, make([]byte, 64<<10))
			}
			raw, _ := os.ReadFile(filepath.Join(sessions, "s.log"))
			if bytes.Count(raw, []byte("\n")) >= k && !killed {
				_ = cmd.Process.Kill()
				killed = true
			}
			select {
			case err = <-done:
				over = true
			default:
			}
		}
		unix.Close(watch)
		finished := err == nil
		if !finished && !killed {
			t.Fatalf("kill %d: %v: %s", k, err, said.String())
		}
		if finished {
			if k < 10 {
				t.Errorf("only %d records were written", k)
			}
			break
		}
		facts := h.facts("s")
		in, out := map[string]bool{}, map[string]bool{}
		for _, f := range facts {
			switch f.Kind {
			case fact.Intent, fact.Edit:
				for _, name := range []string{"run-1", "run-2", "edit-1"} {
					if strings.Contains(f.What, name) {
						in[name] = true
					}
				}
			case fact.Outcome:
				out[f.ID] = true
			}
		}
		for _, name := range []string{"run-1", "run-2", "edit-1"} {
			if _, err := os.Stat(filepath.Join(h.w, name)); err == nil && !in[name] {
				t.Errorf("kill %d: %s was done and is not recorded", k, name)
			}
		}
		// What the log says now is what holds in the session that goes on.
		before := fact.Fold(facts)
		for _, r := range before.Running {
			if out[r.ID] {
				t.Errorf("kill %d: %s has an outcome and is running", k, r.ID)
			}
			lost++
		}
		o := h.options("s")
		s, err := tether.Open(ctx, o)
		if err != nil {
			t.Fatalf("kill %d: %v", k, err)
		}
		st, err := s.State()
		if err != nil {
			t.Fatal(err)
		}
		if st.InTurn() {
			t.Errorf("kill %d: the turn of the dead is open", k)
		}
		if before.InTurn() {
			ends++
		}
		if a, b := st.Permissions(o.Default), before.Permissions(o.Default); a != b || len(st.Grants) != len(before.Grants) {
			t.Errorf("kill %d: got %+v, want %+v", k, a, b)
		}
		if res, err := s.Run(ctx, tether.Command{Args: []string{"ls"}}); err != nil || res.Unrecorded != "" {
			t.Errorf("kill %d: the session does not go on: %v %s", k, err, res.Unrecorded)
		}
		s.Close()
		if _, err := h.sessions().Verify("s", ""); err != nil {
			t.Errorf("kill %d: %v", k, err)
		}
	}
	if lost == 0 || ends == 0 {
		t.Errorf("%d intents without an outcome and %d open turns were met", lost, ends)
	}
}

// TestReplay: a session that is opened again is in the state that it was left in.
func TestReplay(t *testing.T) {
	h := newHouse(t)
	s := h.open("s")
	person := tether.Request{By: fact.Person}
	if _, err := s.Grant(ctx, fact.Grant{Command: []string{"make"}, Scope: fact.Session}, person); err != nil {
		t.Fatal(err)
	}
	run(t, s, "true")
	if err := s.EnterMode(ctx, policy.ReadOnly, person); err != nil {
		t.Fatal(err)
	}
	before, err := s.State()
	if err != nil {
		t.Fatal(err)
	}
	head, err := h.sessions().Verify("s", "")
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	after, err := h.open("s").State()
	if err != nil || fmt.Sprintf("%+v", after) != fmt.Sprintf("%+v", before) {
		t.Errorf("got %+v, %v; want %+v", after, err, before)
	}
	if _, err := h.sessions().Verify("s", head.Head); err != nil {
		t.Error(err)
	}
}

// TestStoreFails: what cannot be recorded is not done.
func TestStoreFails(t *testing.T) {
	touch := tether.Command{Args: []string{"touch", "ran"}}
	ran := func(h *house) bool {
		_, err := os.Stat(h.w + "/ran")
		return err == nil
	}
	log := func(h *house) string { return filepath.Join(h.state(), "sessions", "s.log") }
	t.Run("corrupt", func(t *testing.T) {
		h := newHouse(t)
		s := h.open("s")
		run(t, s, "true")
		raw, err := os.ReadFile(log(h))
		if err != nil {
			t.Fatal(err)
		}
		bad := bytes.Replace(raw, []byte("person"), []byte("Person"), 1)
		if err := os.WriteFile(log(h), bad, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err = tether.Open(ctx, h.options("s"))
		wants(t, "a changed record", err, fault.StoreCorrupt)
		_, err = h.sessions().Verify("s", "")
		wants(t, "verify", err, fault.StoreCorrupt)
		if err := os.WriteFile(log(h), raw[:len(raw)-40], 0o600); err != nil {
			t.Fatal(err)
		}
		_, err = s.Run(ctx, touch)
		wants(t, "a log that was cut", err, fault.StoreCorrupt)
		// A good one goes on: the test means what it says.
		if err := os.WriteFile(log(h), raw, 0o600); err != nil {
			t.Fatal(err)
		}
		if ran(h) {
			t.Error("it ran")
		}
		if _, err := h.open("s").Run(ctx, touch); err != nil || !ran(h) {
			t.Errorf("control: %v", err)
		}
	})
	t.Run("removed", func(t *testing.T) {
		h := newHouse(t)
		s := h.open("s")
		if err := os.Remove(log(h)); err != nil {
			t.Fatal(err)
		}
		_, err := s.Run(ctx, touch)
		wants(t, "a log that is gone", err, fault.StoreUnavailable)
		files, err := s.Files(ctx)
		if err == nil {
			_, err = files.Write(tether.WriteRequest{Path: "ran", Text: "x"})
		}
		wants(t, "an edit", err, fault.StoreUnavailable)
		if ran(h) {
			t.Error("it ran")
		}
	})
	for _, kind := range []string{"full", "read-only"} {
		t.Run(kind, func(t *testing.T) {
			need.Root(t)
			h := newHouse(t)
			state := filepath.Dir(h.state())
			if err := os.Mkdir(state, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := unix.Mount("none", state, "tmpfs", unix.MS_NOSUID, "size=1m,mode=700"); err != nil {
				need.Missing(t, "mount", err.Error())
			}
			t.Cleanup(func() { _ = unix.Unmount(state, unix.MNT_DETACH) })
			s := h.open("s")
			run(t, s, "true")
			if kind == "full" {
				f, err := os.Create(filepath.Join(state, "filler"))
				if err != nil {
					t.Fatal(err)
				}
				for err == nil {
					_, err = f.Write(make([]byte, 4096))
				}
				f.Close()
				// The last page of the log may have room for a record or two.
				for range 40 {
					if _, err = s.Run(ctx, tether.Command{Args: []string{"true", strings.Repeat("x", 2000)}}); err != nil {
						break
					}
				}
				if !slices.Contains([]fault.Code{fault.StoreUnavailable, fault.SandboxUnavailable}, fault.CodeOf(err)) {
					t.Errorf("got %v, want that the disk is full", err)
				}
				if err := s.EnterMode(ctx, policy.ReadOnly, tether.Request{By: fact.Person, Why: strings.Repeat("x", 5000)}); fault.CodeOf(err) != fault.StoreUnavailable {
					t.Errorf("got %v, want that nothing is recorded", err)
				}
			} else {
				s.Close() // whose files are open for writing
				if err := unix.Mount("", state, "", unix.MS_REMOUNT|unix.MS_RDONLY|unix.MS_NOSUID, ""); err != nil {
					t.Fatal(err)
				}
				_, err := tether.Open(ctx, h.options("s"))
				wants(t, "to go on", err, fault.StoreUnavailable)
			}
			_, err := s.Run(ctx, touch)
			if err == nil || ran(h) {
				t.Errorf("got %v, ran: %v", err, ran(h))
			}
			_, err = tether.Open(ctx, h.options("new"))
			wants(t, "a new session", err, fault.StoreUnavailable)
			if err := unix.Unmount(state, unix.MNT_DETACH); err != nil {
				t.Fatal(err)
			}
			if _, err := h.open("s").Run(ctx, touch); err != nil || !ran(h) {
				t.Errorf("control: %v", err)
			}
		})
	}
}
