package enforcetest_test

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tether-sandbox/tether"
	"github.com/tether-sandbox/tether/internal/enforce/enforcetest"
)

// soakRuns is how many runs of each provider are killed: a few, or as many as
// script/soak-kills asks for.
func soakRuns(t *testing.T) int {
	if n, err := strconv.Atoi(os.Getenv("ENFORCETEST_SOAK")); err == nil {
		return n
	}
	return 15
}

// TestKills: runs whose supervisor is killed at any moment, by signals that can
// be caught and by the one that cannot, leave no process, mount, descriptor,
// control group, interface or file, but for notes in our own folder that later
// runs remove.
func TestKills(t *testing.T) {
	n := soakRuns(t)
	eachProvider(t, func(t *testing.T, p enforcetest.Provider) {
		s := newScene(t)
		temporary := s.Outside + "/tmp"
		if err := os.Mkdir(temporary, 0o777); err != nil {
			t.Fatal(err)
		}
		t.Setenv("TMPDIR", temporary)
		s.own(p)
		word := nap()
		env := s.options(p, enforcetest.Offline).Environ
		commands := []string{
			"sleep " + word, "exec sleep " + word, s.program + " " + daemonWord + " sleep " + word + "; sleep " + word,
			"exec " + s.program + " " + stubbornWord + " " + word, "mkdir -p /tmp/a/b; echo x >/dev/shm/y; sleep " + word + " & sleep " + word,
			"yes " + word + " | head -c 3000000; sleep " + word, "true", "kill -9 $$",
		}
		var mu sync.Mutex
		groups := map[int]bool{}
		once := func() {
			modes := []string{"none", "gated"}
			cmd := exec.Command("/proc/self/exe", supervisorWord, p.Name, s.Workspace, modes[rand.N(2)], "sh", "-c", commands[rand.N(len(commands))])
			cmd.Env = env
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			if err := cmd.Start(); err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			groups[cmd.Process.Pid] = true // in which inner stages stay
			mu.Unlock()
			time.Sleep(rand.N(250 * time.Millisecond))
			_ = cmd.Process.Signal([]syscall.Signal{syscall.SIGKILL, syscall.SIGKILL, syscall.SIGTERM, syscall.SIGINT}[rand.N(4)])
			_ = cmd.Wait()
		}
		once() // makes what stays: our folders
		settle(t, p, word, groups)
		before, top := leftovers(t, s), tree(t, s)
		began := time.Now()
		var group sync.WaitGroup
		for range 3 {
			group.Go(func() {
				for range (n + 2) / 3 {
					once()
				}
			})
		}
		group.Wait()
		settle(t, p, word, groups)
		if after := leftovers(t, s); !slices.Equal(after, before) {
			// A dead namespace's mounts and interfaces may take a moment.
			until(t, fmt.Sprintf("of %q only %q is left", after, before), func() bool { return slices.Equal(leftovers(t, s), before) })
		}
		if got := tree(t, s); !slices.Equal(got, top) {
			t.Errorf("files: got %q, want %q", got, top)
		}
		notes := s.notes()
		for range 8 + len(notes)/4 { // each run removes some of what is old
			s.run(p, tether.Command{Shell: "true"})
			if len(s.notes()) == 0 {
				break
			}
		}
		if left := s.notes(); len(left) > 0 {
			t.Errorf("of %d notes there are still %q", len(notes), left)
		}
		t.Logf("%s: %d runs in %s, %d notes were left and removed", p.Name, n, time.Since(began).Round(time.Second), len(notes))
	})
}

// settle waits until nothing of the runs lives. What a provider without a
// process namespace says that it leaves, is ended here.
func settle(t *testing.T, p enforcetest.Provider, word string, groups map[int]bool) {
	t.Helper()
	if p.Name == "landlock" {
		until(t, "what was left is ended", func() bool { return running(word, true) == 0 })
	}
	gone(t, word)
	until(t, "no supervisor or inner stage lives", func() bool {
		all, _ := filepath.Glob("/proc/[0-9]*/stat")
		return !slices.ContainsFunc(all, func(path string) bool {
			raw, err := os.ReadFile(path)
			// The name may hold anything; after it come state, parent and group.
			f := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
			if err != nil || len(f) < 3 || f[0] == "Z" || f[0] == "X" {
				return false
			}
			group, _ := strconv.Atoi(f[2])
			return groups[group]
		})
	})
}

// leftovers counts what runs could leave on the host.
func leftovers(t *testing.T, s *scene) []string {
	t.Helper()
	all := traces(t)
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	links, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	all = append(all, fmt.Sprint(len(fds), " descriptors, ", len(links), " interfaces"))
	dirs := []string{"/dev/shm", s.Outside + "/tmp"}
	if os.Getenv("ENFORCETEST_SOAK") != "" { // when nobody else is at work
		dirs = append(dirs, "/run/tether-runs")
	}
	for _, dir := range dirs {
		entries, _ := os.ReadDir(dir)
		n := 0
		for _, e := range entries {
			if dir != "/dev/shm" || strings.Contains(e.Name(), "tether") || strings.Contains(e.Name(), s.Secret) {
				n++
			}
		}
		all = append(all, fmt.Sprint(n, " in ", dir))
	}
	return all
}

// tree lists what lies in the workspace, and around it.
func tree(t *testing.T, s *scene) (all []string) {
	t.Helper()
	for _, dir := range []string{s.Workspace, s.Outside, s.ReadOnly} {
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && filepath.Dir(path) != s.Outside+"/tmp" {
				all = append(all, path)
			}
			return nil
		})
	}
	return all
}

// notes are the files of runs in our folder, which are made to look old.
func (s *scene) notes() (all []string) {
	old := time.Now().Add(-time.Hour)
	for _, dir := range []string{"live", "pending", "tmp"} {
		_ = filepath.WalkDir(filepath.Join(s.State, dir), func(path string, d fs.DirEntry, err error) error {
			// A run that is over says so to the next, which removes that.
			if err == nil && !d.IsDir() && !strings.HasPrefix(d.Name(), "end-") {
				all = append(all, path)
				_ = os.Chtimes(path, old, old)
			}
			return nil
		})
	}
	return all
}
