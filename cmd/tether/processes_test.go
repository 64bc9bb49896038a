//go:build linux

package main

import (
	"bytes"
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

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/internal/need"
)

// process is one process as the host sees it.
type process struct {
	pid, parent, group int
	zombie             bool
	name, words        string
}

func (p process) String() string {
	return fmt.Sprintf("%d (of %d) %s: %s", p.pid, p.parent, p.name, p.words)
}

// ours says that it is a helper of Tether's, which has nothing to do any more
// when the command is gone, and may end a moment later.
func (p process) ours() bool {
	_, err := strconv.Atoi(p.name) // executed by descriptor
	return err == nil || p.name == "exe" || p.name == "tether" || p.name == "bwrap"
}

// processes lists the host's processes.
func processes() []process {
	var all []process
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		end := bytes.LastIndexByte(stat, ')')
		if err != nil || end < 0 {
			continue
		}
		p := process{pid: pid, name: string(stat[bytes.IndexByte(stat, '(')+1 : end])}
		fields := strings.Fields(string(stat[end+1:]))
		p.zombie = fields[0] == "Z" || fields[0] == "X"
		p.parent, _ = strconv.Atoi(fields[1])
		p.group, _ = strconv.Atoi(fields[2])
		line, _ := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		p.words = strings.TrimSpace(strings.ReplaceAll(string(line), "\x00", " "))
		all = append(all, p)
	}
	return all
}

// adopt makes orphans below this process its children, so that whatever a run
// leaves can be found, by whatever name it goes.
func adopt(t testing.TB) {
	t.Helper()
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
}

// offspring lists the living processes below this one, and reaps the dead ones
// that nobody waits for: call it while no command of the test runs.
func offspring() []process {
	below := map[int]bool{os.Getpid(): true}
	all := processes()
	for grown := true; grown; {
		grown = false
		for _, p := range all {
			if below[p.parent] && !below[p.pid] {
				below[p.pid], grown = true, true
			}
		}
	}
	var living []process
	for _, p := range all {
		switch {
		case p.pid == os.Getpid() || !below[p.pid]:
		case !p.zombie:
			living = append(living, p)
		case p.parent == os.Getpid():
			_, _ = unix.Wait4(p.pid, nil, unix.WNOHANG, nil)
		}
	}
	return living
}

// nothingLeft fails when a process of a run is alive after the given time.
// Helpers of Tether's own have a second, also when the command's have none.
// Needs adopt.
func nothingLeft(t testing.TB, within time.Duration) {
	t.Helper()
	var left []process
	for begin := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		left = offspring()
		took, helpers := time.Since(begin), true
		for _, p := range left {
			helpers = helpers && p.ours()
		}
		if len(left) == 0 {
			return
		}
		if took > within && (!helpers || took > max(within, time.Second)) {
			break
		}
	}
	for _, p := range left {
		t.Errorf("left behind: %s", p)
		_ = syscall.Kill(p.pid, syscall.SIGKILL)
	}
}

// seconds is a time to sleep, at least n seconds, that no other process has in
// its command line.
func seconds(n int) string { return fmt.Sprintf("%d.%07d", n, rand.IntN(1e7)) }

// living lists the processes of the host with a word in their command line.
func living(word string) []process {
	var found []process
	for _, p := range processes() {
		if strings.Contains(p.words, word) && !p.zombie && p.pid != os.Getpid() {
			found = append(found, p)
		}
	}
	return found
}

// soon waits until ok, and says whether that came in time.
func soon(within time.Duration, ok func() bool) bool {
	for end := time.Now().Add(within); ; time.Sleep(5 * time.Millisecond) {
		if ok() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}

// listing is everything that there is to see of a tree from outside: names,
// types, modes, owners, sizes, links, and the times of files and folders.
func listing(t testing.TB, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		st := info.Sys().(*syscall.Stat_t)
		link, _ := os.Readlink(path)
		fmt.Fprintf(&b, "%q %s %d:%d %d links=%d %d %q\n", rel, info.Mode(), st.Uid, st.Gid, info.Size(), st.Nlink, info.ModTime().UnixNano(), link)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// mounts counts the host's mounts.
func mounts(t testing.TB) int {
	t.Helper()
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Count(b, []byte("\n"))
}

// pending lists the records of runs that have not settled.
func (j *jail) pending() []string {
	names, _ := filepath.Glob(filepath.Join(j.state, "tether", "pending", "*", "run-*.json"))
	return names
}

// withMounts prepares a command under mounts of its own: setup is shell text
// that changes them, and nothing that it does reaches the machine. The command
// runs as this process's user and has no capabilities but what that user has.
// As an ordinary user everything of setup is in a user namespace, too.
func (j *jail) withMounts(setup string, words ...string) *exec.Cmd {
	j.t.Helper()
	if os.Geteuid() != 0 && j.provider == "bwrap" {
		j.t.Skip("in a user namespace of an ordinary user the system's bwrap does not look like root's; root's run covers it")
	}
	need.Program(j.t, "unshare")
	need.Program(j.t, "setpriv")
	j.own()
	// Not errexit alone: the last word must be the command's own.
	script := "set -e\n" + setup + "\nexec setpriv --ambient-caps=-all --inh-caps=-all \"$@\""
	args := []string{"--mount", "--propagation", "private"}
	if os.Geteuid() != 0 {
		args = append(args, "--user", "--map-current-user", "--keep-caps")
	}
	args = append(append(args, "sh", "-c", script, "sh"), words...)
	cmd := exec.Command("unshare", args...)
	cmd.Env, cmd.Dir = append([]string{"W=" + j.w, "OUT=" + j.out, "TETHER=" + binary, "STATE=" + j.state}, j.env...), j.w
	return cmd
}

// asOwner makes the words after withMounts' setup run as an ordinary user who
// owns the workspace, in root's tests.
func asOwner(words ...string) []string {
	if os.Geteuid() != 0 {
		return words
	}
	return append([]string{"setpriv", "--reuid", itoa(foreignUID), "--regid", itoa(foreignUID), "--clear-groups"}, words...)
}

// caged is withMounts in a user namespace that has no user namespaces: as on a
// machine that forbids them.
func (j *jail) caged(setup string, words ...string) *exec.Cmd {
	j.t.Helper()
	cmd := j.withMounts("echo 0 > /proc/sys/user/max_user_namespaces\n"+setup, words...)
	if os.Geteuid() == 0 {
		cmd.Args = append([]string{cmd.Args[0], "--user", "--map-root-user"}, cmd.Args[1:]...)
	}
	return cmd
}

func itoa(n int) string { return strconv.Itoa(n) }

// commandIn prepares a command of the host.
func commandIn(dir string, words ...string) *exec.Cmd {
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Dir = dir
	return cmd
}

// difference says in which lines two listings differ, or nothing.
func difference(before, after string) string {
	var b strings.Builder
	had, has := strings.SplitAfter(before, "\n"), strings.SplitAfter(after, "\n")
	for _, line := range had {
		if !slices.Contains(has, line) {
			b.WriteString("\n- " + strings.TrimSuffix(line, "\n"))
		}
	}
	for _, line := range has {
		if !slices.Contains(had, line) {
			b.WriteString("\n+ " + strings.TrimSuffix(line, "\n"))
		}
	}
	return b.String()
}
