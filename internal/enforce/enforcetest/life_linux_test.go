package enforcetest_test

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tether-sandbox/tether"
	"github.com/tether-sandbox/tether/internal/enforce/enforcetest"
	"github.com/tether-sandbox/tether/internal/enforce/landlock"
)

// slow is d, or longer where the machine is an emulated one and says how many
// times slower than others it is.
func slow(d time.Duration) time.Duration {
	if n, err := strconv.Atoi(os.Getenv("ENFORCETEST_SLOW")); err == nil {
		return d * time.Duration(n)
	}
	return d
}

// nap is an argument of sleep(1) by which a process is known on the host.
func nap() string { return fmt.Sprintf("3600.%08d", rand.IntN(1e8)) }

// running counts the processes of the host that have a word among their
// arguments, and kills them if told so.
func running(word string, kill bool) int {
	return alive(kill, func(words []string) bool { return slices.Contains(words, word) })
}

// alive counts, and kills, the processes whose words match.
func alive(kill bool, match func(words []string) bool) (n int) {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range all {
		raw, err := os.ReadFile(path)
		if err != nil || !match(strings.Split(string(raw), "\x00")) {
			continue
		}
		n++
		if kill {
			var pid int
			if _, err := fmt.Sscanf(path, "/proc/%d/", &pid); err == nil {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
	return n
}

// children lists the children of a process, at least one.
func children(t *testing.T, pid int) (out []int) {
	t.Helper()
	all, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, path := range all {
		raw, _ := os.ReadFile(path)
		for word := range strings.FieldsSeq(string(raw)) {
			kid, err := strconv.Atoi(word)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, kid)
		}
	}
	if len(out) == 0 {
		t.Fatalf("%d has no children", pid)
	}
	return out
}

// gone waits until nothing with the word runs.
func gone(t *testing.T, word string) {
	t.Helper()
	for end := time.Now().Add(slow(5 * time.Second)); running(word, false) > 0; time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Errorf("%d processes live on", running(word, true))
			return
		}
	}
}

// until waits until cond holds.
func until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(slow(10 * time.Second)); !cond(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

// run runs words inside, and fails when that takes more than a few seconds.
func (s *scene) run(p enforcetest.Provider, c tether.Command) tether.Result {
	s.t.Helper()
	session, err := tether.Open(context.Background(), s.options(p, enforcetest.Offline))
	if err != nil {
		s.t.Fatal(err)
	}
	defer session.Close()
	ctx, cancel := context.WithTimeout(context.Background(), slow(20*time.Second))
	defer cancel()
	res, err := session.Run(ctx, c)
	if err != nil {
		s.t.Fatalf("%q: %v", c.Args, err)
	}
	return res
}

// TestLifecycle carries out the attacks that are more than one run.
func TestLifecycle(t *testing.T) {
	tests := map[string]func(t *testing.T, s *scene, p enforcetest.Provider){
		"a daemon that outlives its command": func(t *testing.T, s *scene, p enforcetest.Provider) {
			word := nap()
			// Without a sandbox it lives on.
			if out, err := exec.Command(s.program, daemonWord, "sleep", word).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			// Those that start it have its words among theirs.
			naps := func(words []string) bool { return words[0] == "sleep" && words[1] == word }
			until(t, "control: the daemon runs", func() bool { return alive(true, naps) > 0 })
			gone(t, word)
			word = nap()
			res := s.run(p, tether.Command{Shell: s.program + " " + daemonWord + " sleep " + word + "; sleep 0.05; ps ax 2>/dev/null | grep -c " + word})
			if res.Exit > 1 {
				t.Errorf("exit %d: %s", res.Exit, res.Stderr)
			}
			gone(t, word)
		},
		"a process that ignores every signal and the time limit": func(t *testing.T, s *scene, p enforcetest.Provider) {
			word := nap()
			begin := time.Now()
			res := s.run(p, tether.Command{Args: []string{s.program, stubbornWord, word}, Time: slow(400 * time.Millisecond)})
			if !res.TimedOut || time.Since(begin) > slow(10*time.Second) {
				t.Errorf("exit %d after %s, want the time limit", res.Exit, time.Since(begin))
			}
			gone(t, word)
		},
		"processes that make another and exit, faster than one can look": func(t *testing.T, s *scene, p enforcetest.Provider) {
			if abi, _ := landlock.ABI(); p.Name == "landlock" && abi < 6 {
				t.Skip("nothing kills them all at once on this kernel")
			}
			// They end by themselves, and tell, as soon as there is no file "go".
			file, lived := filepath.Join(s.Workspace, "go"), filepath.Join(s.Workspace, "lived")
			begin := func() (word string) {
				if err := os.WriteFile(file, nil, 0o666); err != nil {
					t.Fatal(err)
				}
				return nap()
			}
			live := func() bool {
				_ = os.Remove(file)
				for try := 0; try < 20; try++ {
					if _, err := os.Lstat(lived); err == nil {
						return true
					}
					time.Sleep(slow(20 * time.Millisecond))
				}
				return false
			}
			cmd := exec.Command(s.program, hopperWord, begin())
			cmd.Dir = s.Workspace
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(slow(200 * time.Millisecond))
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			if !live() {
				t.Fatal("control: nothing outlives its command")
			}
			time.Sleep(slow(300 * time.Millisecond)) // for the last of them
			if err := os.Remove(lived); err != nil {
				t.Fatal(err)
			}
			word := begin()
			// Should they go on, they do so for this long.
			stop := time.AfterFunc(slow(20*time.Second), func() { _ = os.Remove(file) })
			defer stop.Stop()
			started := time.Now()
			res := s.run(p, tether.Command{Args: []string{s.program, hopperWord, word}, Time: slow(500 * time.Millisecond)})
			if took := time.Since(started); !res.TimedOut || took > slow(15*time.Second) || live() {
				t.Errorf("exit %d after %s", res.Exit, took)
			}
			gone(t, word)
		},
		"a process that holds the output open": func(t *testing.T, s *scene, p enforcetest.Provider) {
			word := nap()
			begin := time.Now()
			res := s.run(p, tether.Command{Shell: "sleep " + word + " & sleep " + word + " 2>&1 >/dev/null & echo done"})
			if res.Stdout != "done\n" || time.Since(begin) > slow(10*time.Second) {
				t.Errorf("got %q after %s", res.Stdout, time.Since(begin))
			}
			gone(t, word)
		},
		"a process that outlives a call that was cancelled": func(t *testing.T, s *scene, p enforcetest.Provider) {
			word := nap()
			session, err := tether.Open(context.Background(), s.options(p, enforcetest.Offline))
			if err != nil {
				t.Fatal(err)
			}
			defer session.Close()
			ctx, cancel := context.WithCancel(context.Background())
			done := make(chan error, 1)
			go func() {
				_, err := session.Run(ctx, tether.Command{Shell: s.program + " " + daemonWord + " sleep " + word + "; exec " + s.program + " " + stubbornWord + " " + word})
				done <- err
			}()
			until(t, "the command runs", func() bool { return running(word, false) > 1 })
			cancel()
			if err := <-done; err == nil {
				t.Error("a cancelled call ended well")
			}
			if n := running(word, true); n > 0 {
				t.Errorf("%d processes live after Run returned", n)
			}
		},
		"a supervisor that is killed": func(t *testing.T, s *scene, p enforcetest.Provider) {
			abi, _ := landlock.ABI()
			for round := range 4 {
				inner := round == 3 // the inner one
				if inner && p.Name == "landlock" && abi < 6 {
					break // nobody is left then
				}
				word := nap()
				cmd := exec.Command("/proc/self/exe", supervisorWord, p.Name, s.Workspace, "none", "sh", "-c",
					s.program+" "+daemonWord+" sleep "+word+"; exec "+s.program+" "+stubbornWord+" "+word)
				cmd.Env = s.options(p, enforcetest.Offline).Environ
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				until(t, "the command runs", func() bool { return running(word, false) > 1 })
				if inner {
					for _, kid := range children(t, cmd.Process.Pid) {
						_ = syscall.Kill(kid, syscall.SIGKILL)
					}
				} else {
					_ = cmd.Process.Kill()
				}
				_ = cmd.Wait()
				gone(t, word)
			}
		},
		"process 1 stopped, killed and everybody with it": func(t *testing.T, s *scene, p enforcetest.Provider) {
			word := nap()
			// Only where process 1 is not the machine's.
			outside, err := os.Readlink("/proc/self/ns/pid")
			if err != nil {
				t.Fatal(err)
			}
			for _, signals := range []string{"kill -STOP 1; kill -KILL 1; kill -TERM 1", "kill -STOP 1; kill -STOP -1; kill -KILL -1"} {
				begin := time.Now()
				s.run(p, tether.Command{Shell: `[ "$(readlink /proc/self/ns/pid)" != "` + outside + `" ] || exit 9; sleep ` + word + " & " + signals, Time: slow(2 * time.Second)})
				if time.Since(begin) > slow(10*time.Second) {
					t.Errorf("%s: took %s", signals, time.Since(begin))
				}
				gone(t, word)
			}
		},
		"output without end": func(t *testing.T, s *scene, p enforcetest.Provider) {
			res := s.run(p, tether.Command{Shell: "yes | head -c 5000000; yes | head -c 2000000 >&2"})
			if !res.Truncated || len(res.Stdout) > 2<<20 || len(res.Stderr) > 2<<20 {
				t.Errorf("kept %d and %d bytes, truncated: %v", len(res.Stdout), len(res.Stderr), res.Truncated)
			}
		},
		"pipes, endless files and deep folders under names that Tether reads": func(t *testing.T, s *scene, p enforcetest.Provider) {
			const script = `for d in a b/.git c; do mkdir -p $d; done
mkfifo .env.local a/.git a/.env b/.git/config b/.git/HEAD c/x.pem c/id_rsa .mcp.json c/.gitmodules c/Makefile c/package.json c/.envrc .tether 2>/dev/null
mkdir -p e/.git/hooks e/.git/refs e/.git/objects f/.git/hooks; echo 'ref: refs/heads/x' >e/.git/HEAD
truncate -s 1T e/.git/config e/.env e/y.pem e/y.key e/package.json e/.envrc e/.mcp.json e/.git/index
ln -s /dev/zero f/.env; ln -s /dev/zero f/z.pem; ln -s /proc/self/fd/0 f/.git/config; ln -s f f/loop
d=deep; i=0; while [ $i -lt 200 ]; do d=$d/aaaaaaaaaaaaaaaa; i=$((i+1)); done; mkdir -p $d && mkfifo $d/.env`
			for range 2 { // the second starts among all of it
				begin := time.Now()
				res := s.run(p, tether.Command{Shell: script + "; true"})
				if res.Exit != 0 || time.Since(begin) > slow(8*time.Second) {
					t.Errorf("exit %d after %s: %s", res.Exit, time.Since(begin), res.Stderr)
				}
			}
		},
		"mounts, control groups and temporary files left behind": func(t *testing.T, s *scene, p enforcetest.Provider) {
			temporary := s.Outside + "/tmp"
			if err := os.Mkdir(temporary, 0o777); err != nil {
				t.Fatal(err)
			}
			t.Setenv("TMPDIR", temporary)
			before := traces(t)
			for _, shell := range []string{"true", "kill -9 $$", "sleep 60 & mkdir /tmp/x; echo >/dev/shm/y", "exit 3"} {
				s.run(p, tether.Command{Shell: shell})
			}
			if after := traces(t); !slices.Equal(after, before) {
				t.Errorf("got %q, want %q", after, before)
			}
			if left, _ := os.ReadDir(temporary); len(left) > 0 {
				t.Errorf("temporary files: %v", left)
			}
		},
	}
	for _, a := range enforcetest.Attacks() {
		if a.Try == nil && tests[a.Name] == nil {
			t.Errorf("%q is in the table and is not tried", a.Name)
		}
	}
	eachProvider(t, func(t *testing.T, p enforcetest.Provider) {
		for _, a := range enforcetest.Attacks() {
			if f := tests[a.Name]; a.Try == nil && f != nil && a.Verdict(p) == "held" {
				t.Run(a.Name, func(t *testing.T) {
					s := newScene(t)
					s.own(p)
					f(t, s, p)
				})
			}
		}
	})
}

// traces are the mounts and control groups that bear our name.
func traces(t *testing.T) (all []string) {
	t.Helper()
	raw, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	all = append(all, fmt.Sprint(strings.Count(string(raw), "\n"), " mounts"))
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return nil
		}
		st, err := os.Stat(path)
		if err != nil {
			return nil
		}
		// Another user's tests may go on beside.
		switch owner := int(st.Sys().(*syscall.Stat_t).Uid); {
		case owner == os.Geteuid() && strings.Contains(d.Name(), "tether"):
			all = append(all, path)
		case owner != os.Geteuid() && owner != 0:
			return fs.SkipDir
		}
		return nil
	})
	return all
}
