package enforcetest_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tether-sandbox/tether"
	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/enforce/enforcetest"
	"github.com/tether-sandbox/tether/internal/enforce/landlock"
	"github.com/tether-sandbox/tether/internal/need"
	"github.com/tether-sandbox/tether/policy"
)

// eachProvider runs f for every provider that this machine has.
func eachProvider(t *testing.T, f func(t *testing.T, p enforcetest.Provider)) {
	t.Helper()
	for _, p := range enforcetest.Providers() {
		t.Run(p.Name, func(t *testing.T) {
			if p.Name == "bwrap" {
				need.Program(t, "bwrap")
			}
			if abi, err := landlock.ABI(); p.ABI > 0 && (err != nil || abi < p.ABI) {
				s := newScene(t)
				s.own(p)
				s.refused(p, enforcetest.Offline)
				t.Skipf("need: landlock %d is missing: this kernel has %d, and the provider refuses", p.ABI, abi)
			}
			f(t, p)
		})
	}
}

// options are those of a session for a provider under a setup.
func (s *scene) options(p enforcetest.Provider, under enforcetest.Setup) tether.Options {
	pol := policy.Default(s.Workspace)
	pol.Accept = p.Accept
	pol.Read = []string{s.ReadOnly}
	pol.Network = policy.Network{Mode: policy.Offline}
	switch under {
	case enforcetest.Gated:
		pol.Network = policy.Network{Mode: policy.Gated, Public: true}
	case enforcetest.Open:
		pol.Network.Mode = policy.Open
	case enforcetest.Limited:
		pol.Limits.Processes, pol.Limits.FileBytes = s.Processes, s.FileBytes
	}
	state := s.Workspace + "/../state"
	return tether.Options{Policy: pol, Provider: p.Name,
		Environ: append(os.Environ(), "XDG_STATE_HOME="+state, "XDG_CONFIG_HOME="+state)}
}

// attack runs the attacks of a setup inside.
func (s *scene) attack(p enforcetest.Provider, under enforcetest.Setup) (map[string]enforcetest.Result, tether.Report) {
	s.t.Helper()
	session, err := tether.Open(context.Background(), s.options(p, under))
	if err != nil {
		s.t.Fatal(err)
	}
	defer session.Close()
	ctx, cancel := context.WithTimeout(context.Background(), slow(time.Minute))
	defer cancel()
	in := s.input()
	defer in.Close()
	res, err := session.Run(ctx, tether.Command{Args: enforcetest.Arguments(s.program, under, s.file), Stdin: in})
	if err != nil {
		s.t.Fatalf("%q: %v", under, err)
	}
	results, err := enforcetest.Read(res.Stdout)
	if _, done := results[enforcetest.TooMany]; err != nil && !done && slices.ContainsFunc(res.Denials, func(d tether.Denial) bool { return d.Code == fault.LimitProcesses }) {
		// It was the last, and the call was ended for it.
		results[enforcetest.TooMany] = enforcetest.Result{Error: "the call was ended"}
		return results, res.Report
	}
	if err != nil || res.Exit != 0 {
		s.t.Errorf("%q: %v, exit %d: %s", under, err, res.Exit, res.Stderr)
	}
	return results, res.Report
}

// refused fails when a provider builds a setup that it has to refuse.
func (s *scene) refused(p enforcetest.Provider, under enforcetest.Setup) {
	s.t.Helper()
	session, err := tether.Open(context.Background(), s.options(p, under))
	if err == nil {
		defer session.Close()
		_, err = session.Run(context.Background(), tether.Command{Args: []string{"true"}})
	}
	if fault.CodeOf(err) != fault.SandboxUnavailable {
		s.t.Errorf("%q: got %v, want %s", under, err, fault.SandboxUnavailable)
	}
}

// input is a file of the caller's, open for reading.
func (s *scene) input() *os.File {
	f, err := os.Open(s.Outside + "/input")
	if err != nil {
		s.t.Fatal(err)
	}
	return f
}

// control runs all attacks without a sandbox, and those on mounts in a mount
// namespace of their own.
func (s *scene) control() map[string]enforcetest.Result {
	s.t.Helper()
	all := map[string]enforcetest.Result{}
	for _, mode := range []string{"control", "masked"} {
		cmd := exec.Command(s.program, enforcetest.Word, mode, s.file)
		cmd.Dir = s.Workspace
		in := s.input()
		defer in.Close()
		cmd.Stdin = in
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if mode == "masked" {
			cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWNS
			if !s.Real {
				cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
				cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
				cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
			}
		}
		var out, said bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &said
		timer := time.AfterFunc(slow(time.Minute), func() { _ = cmd.Process.Kill() })
		err := cmd.Run()
		timer.Stop()
		results, bad := enforcetest.Read(out.String())
		if err != nil || bad != nil {
			s.t.Fatalf("%s: %v, %v: %s", mode, err, bad, said.String())
		}
		for name, r := range results {
			all[name] = r
		}
	}
	return all
}

// TestAttacks carries out every attack on every provider, each with the control
// that shows that the door opens without Tether.
func TestAttacks(t *testing.T) {
	attacks := enforcetest.Attacks()
	eachProvider(t, func(t *testing.T, p enforcetest.Provider) {
		begin := time.Now()
		s := newScene(t)
		free := s.control()
		s.own(p)
		got := map[enforcetest.Setup]map[string]enforcetest.Result{}
		grades := map[enforcetest.Setup]tether.Report{}
		for _, under := range enforcetest.Setups() {
			if slices.Contains(p.Refuses, under) {
				s.refused(p, under)
				continue
			}
			got[under], grades[under] = s.attack(p, under)
		}
		counts := map[string]int{}
		var missing []string
		for _, a := range attacks {
			if a.Try == nil {
				continue
			}
			claim := a.Verdict(p)
			if slices.Contains(p.Refuses, a.Under) {
				continue
			}
			r, done := got[a.Under][a.Name]
			if !done {
				t.Errorf("%s: %s: it was not tried", a.Guarantee, a.Name)
				continue
			}
			door := free[a.Name]
			switch {
			case door.Open():
			case a.Root && !s.Real:
			case a.Optional:
				missing = append(missing, fmt.Sprintf("%s (%s)", a.Name, oneLine(door.Error)))
			default:
				t.Errorf("%s: %s: the control must open the door: %s", a.Guarantee, a.Name, door.Error)
			}
			grade := gradeOf(grades[a.Under], a.Guarantee)
			switch {
			case claim == "-":
			case r.Open() && claim == "held" && (a.Grade == policy.None || grade > a.Grade):
				t.Errorf("%s: %s: SUCCEEDED, although %s is graded %s", a.Guarantee, a.Name, a.Guarantee, grade)
			case !r.Open() && claim == "limit" && !s.Real && grade != policy.Complete: // a machine may have what others lack
				t.Errorf("%s: %s: does not succeed any more (%s): it is no limit", a.Guarantee, a.Name, oneLine(r.Error))
			}
			result := "held"
			if r.Open() {
				result = "open"
			}
			counts[a.Guarantee+" "+result]++
			t.Logf("%-9s %-6s %s: %s", a.Guarantee, result, a.Name, oneLine(r.Error))
		}
		for _, row := range enforcetest.Rows() {
			t.Logf("%s | %s | %s | %d held, %d open", p.Name, row, gradeOf(grades[enforcetest.Offline], row), counts[row+" held"], counts[row+" open"])
		}
		t.Logf("no such door on this machine: %s", strings.Join(missing, "; "))
		if len(missing) > 16 {
			t.Errorf("%d doors are missing here: too many for the table to tell anything", len(missing))
		}
		t.Logf("%s: %d attacks in %s", p.Name, len(attacks), time.Since(begin).Round(time.Millisecond))
	})
}

func gradeOf(r tether.Report, guarantee string) policy.Grade {
	for _, g := range r.Grades {
		if g.Guarantee.String() == guarantee {
			return g.Grade
		}
	}
	return policy.None
}

func oneLine(s string) string {
	s = strings.ReplaceAll(s, "\n", "; ")
	return s[:min(len(s), 110)]
}
