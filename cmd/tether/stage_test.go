//go:build linux

package main

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// firstFiles are files of a process in /proc that its own kind alone may open.
const firstFiles = "environ maps auxv fd/0 root/etc exe"

// TestStageIDs: whoever starts us, and whoever may read or execute our file, the
// command has the ids that it must have and no group or capability beyond, and
// process 1 stays closed to it.
func TestStageIDs(t *testing.T) {
	type ids struct{ uid, gid int }
	type row struct {
		name   string
		file   ids // our own program
		mode   os.FileMode
		caller ids
		groups []uint32 // the caller's others
		work   ids      // the workspace
		inside string   // uid, gid and all groups; closed when it must be refused
	}
	const group = foreignUID + 7
	root, user := ids{0, 0}, ids{foreignUID, foreignUID}
	other := ids{foreignUID + 1, foreignUID + 1}
	const closed = "chmod a+r,ug-s "
	asRoot, asUser, asUserToo := "0 0 0", "54321 54321 54321", "54321 54321 54321 65534"
	rows := []row{
		{"root", root, 0o755, root, nil, root, asRoot},
		{"root, owner only", root, 0o700, root, nil, root, asRoot},
		{"root for a user", root, 0o755, root, nil, user, asUser},
		{"root for a user, owner only", root, 0o700, root, nil, user, asUser},
		{"root with groups", root, 0o755, root, []uint32{0, group}, root, asRoot},
		{"root with groups for a user", root, 0o755, root, []uint32{0, group}, user, asUser},
		{"root for a user, the folder of the group of root", root, 0o755, root, nil, ids{user.uid, 0}, asUser},
		{"root of another group", root, 0o755, ids{0, group}, []uint32{group}, root, asRoot},
		{"root, another's program", other, 0o700, root, nil, root, asRoot},
		{"root, another's program for a user", user, 0o700, root, nil, user, asUser},
		{"root, closed to the group", ids{other.uid, 0}, 0o705, root, nil, user, asUser},
		{"root, open to the group", ids{other.uid, 0}, 0o750, root, nil, user, asUser},
		{"root, closed to the owner", root, 0o611, root, nil, user, asUser},
		{"root, set-group-id", ids{0, group}, 0o755 | os.ModeSetgid, root, nil, user, asUser},
		{"a user", root, 0o755, user, nil, user, asUser},
		{"a user's own", user, 0o500, user, nil, user, asUser},
		{"a user's own, unreadable", user, 0o100, user, nil, user, closed},
		{"a user, unreadable", root, 0o711, user, nil, user, closed},
		{"a user with groups", root, 0o755, user, []uint32{group}, user, asUserToo},
		{"a user by a group", ids{0, group}, 0o750, user, []uint32{group}, user, asUserToo},
		{"a user by a group, unreadable", ids{0, group}, 0o710, user, []uint32{group}, user, closed},
		{"a user, set-group-id", ids{0, group}, 0o755 | os.ModeSetgid, user, nil, user, closed},
		{"a user of another group", root, 0o755, ids{user.uid, group}, nil, user, fmt.Sprintf("54321 %d %[1]d", group)},
	}
	if os.Geteuid() != 0 {
		me := ids{os.Geteuid(), os.Getegid()}
		out, err := exec.Command("sh", "-c", "echo $(id -u) $(id -g)").Output()
		if err != nil {
			t.Fatal(err)
		}
		same := strings.TrimSpace(string(out))
		rows = []row{
			{"readable", me, 0o755, me, nil, me, same},
			{"owner only", me, 0o500, me, nil, me, same},
			{"unreadable", me, 0o100, me, nil, me, closed},
		}
	}
	j := newJail(t, "native")
	program := filepath.Join(filepath.Dir(j.w), "tether")
	content, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, content, 0o700); err != nil {
		t.Fatal(err)
	}
	script := func(pid string) string {
		return "echo $(id -u) $(id -g) $(id -G); touch made; for f in " + firstFiles + "; do head -c1 /proc/" + pid +
			"/$f >/dev/null 2>&1 || ls /proc/" + pid + "/$f/ >/dev/null 2>&1 && echo open $f; done; sed -n 's/^Cap...:.//p' /proc/self/status | sort -u"
	}
	if r := j.host(script("$$")); strings.Count(r.stdout, "open ") != len(strings.Fields(firstFiles)) {
		t.Fatalf("control: of oneself everything opens: %s", r.all())
	}
	j.mustHost("rm made")
	for _, c := range rows {
		t.Run(c.name, func(t *testing.T) {
			chown := func(path string, to ids) {
				if err := os.Chown(path, to.uid, to.gid); err != nil {
					t.Fatal(err)
				}
			}
			chown(program, c.file)
			if err := os.Chmod(program, c.mode); err != nil {
				t.Fatal(err)
			}
			chown(j.w, c.work)
			if err := os.RemoveAll(j.state); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(j.state, 0o700); err != nil {
				t.Fatal(err)
			}
			chown(j.state, c.caller)
			cmd := exec.Command(program, "run", "--provider", "native", "-C", j.w, "--", "sh", "-c", script("1"))
			cmd.Env, cmd.Dir = j.env, "/"
			if os.Geteuid() == 0 {
				cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(c.caller.uid),
					Gid: uint32(c.caller.gid), Groups: c.groups}}
			}
			r := finishCommand(t, cmd)
			if c.inside == closed {
				if r.exit != exitOurs || !strings.Contains(r.stderr, "hint: "+closed+program) {
					t.Errorf("exit %d: %s", r.exit, r.all())
				}
				return
			}
			inside, rest, _ := strings.Cut(r.stdout, "\n")
			if os.Geteuid() != 0 { // whose groups we do not know
				inside = strings.Join(strings.Fields(inside)[:min(2, len(strings.Fields(inside)))], " ")
			}
			if r.exit != 0 || inside != c.inside || rest != "0000000000000000\n" {
				t.Errorf("exit %d: got %q, want %q, no capability and nothing open of process 1: %s", r.exit, inside, c.inside, r.all())
			}
			made := filepath.Join(j.w, "made")
			var st syscall.Stat_t
			if err := syscall.Lstat(made, &st); err != nil || int(st.Uid) != c.work.uid || st.Gid != uint32(gidOf(c.inside)) {
				t.Errorf("the new file belongs to %d:%d (%v), want %d:%d", st.Uid, st.Gid, err, c.work.uid, gidOf(c.inside))
			}
			_ = os.Remove(made)
		})
	}
}

// gidOf is the second number of what id(1) printed.
func gidOf(inside string) (gid int) {
	_, _ = fmt.Sscan(inside, new(int), &gid)
	return gid
}

// TestStageFailsEarly: what goes wrong before the order comes is told as it is,
// and not by what it made fail afterwards.
func TestStageFailsEarly(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root passes mounts to the inner stage")
	}
	j := newJail(t, "native")
	if err := os.Chown(j.w, foreignUID, foreignUID); err != nil {
		t.Fatal(err)
	}
	for range 12 { // it was one in some
		cmd := exec.Command("unshare", "--mount", "sh", "-c", `mount -t tmpfs -o ro t /proc/irq && exec "$@"`, "sh",
			binary, "run", "--provider", "native", "-C", j.w, "--", "touch", "ran")
		cmd.Env, cmd.Dir = j.env, j.w
		if r := finishCommand(t, cmd); r.exit != exitOurs || !strings.Contains(r.stderr, "systempaths=unconfined") {
			t.Fatalf("exit %d: %s", r.exit, r.all())
		}
	}
	j.absent("ran")
}

// TestKilledEarly: killed at any of the first moments, we leave no process, no
// mount and no file, but for notes in our own folder that later runs remove.
func TestKilledEarly(t *testing.T) {
	const times, within = 100, 20 * time.Millisecond
	j := newJail(t, "native")
	temporary := filepath.Join(j.out, "tmp")
	if err := os.Mkdir(temporary, 0o777); err != nil {
		t.Fatal(err)
	}
	j.env = append(j.env, "TMPDIR="+temporary)
	j.write("kept", "")
	nap := fmt.Sprintf("3600.%08d", rand.IntN(1e8)) // by which the command is known
	naps := func() bool {
		return slices.ContainsFunc(processes(), func(p process) bool { return !p.zombie && p.name == "sleep" && strings.Contains(p.words, nap) })
	}
	start := func() *exec.Cmd {
		cmd := j.command("--", "sleep", nap)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the inner stage stays in it
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	kill := func(cmd *exec.Cmd) {
		t.Helper()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
			all := processes()
			if !slices.ContainsFunc(all, func(p process) bool { return !p.zombie && p.group == cmd.Process.Pid }) {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("the inner stage lives on: %v", all)
			}
		}
	}
	mounts := func() (ours []string) {
		raw, err := os.ReadFile("/proc/self/mountinfo")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(raw)) {
			if strings.Contains(line, "tether") {
				ours = append(ours, line)
			}
		}
		return ours
	}
	before := mounts()

	cmd := start()
	for end := time.Now().Add(10 * time.Second); !naps(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("control: the command does not run")
		}
	}
	kill(cmd)
	for range times {
		cmd := start()
		time.Sleep(rand.N(within))
		kill(cmd)
	}
	if naps() {
		t.Error("a command lives on")
	}
	if got := mounts(); !slices.Equal(got, before) {
		t.Errorf("mounts: %q, want %q", got, before)
	}
	if got := names(t, j.w); !slices.Equal(got, []string{"kept"}) {
		t.Errorf("the workspace holds %q", got)
	}
	if got := names(t, temporary); len(got) > 0 {
		t.Errorf("the folder of temporary files holds %q", got)
	}
	// As if it had been long ago.
	old := time.Now().Add(-time.Hour)
	notes := []string{filepath.Join(j.state, "tether", "live"), filepath.Join(j.state, "tether", "pending")}
	left := func() (files []string) {
		for _, dir := range notes {
			_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
				if err == nil && !d.IsDir() {
					files = append(files, path)
					_ = os.Chtimes(path, old, old)
				}
				return nil
			})
		}
		return files
	}
	many := len(left())
	if many == 0 {
		t.Fatal("control: the killed runs left no note: none came far")
	}
	for range many/8 + 2 { // each run removes some
		if r := j.run("true"); r.exit != 0 {
			t.Fatalf("exit %d: %s", r.exit, r.all())
		}
		left()
	}
	if files := left(); len(files) > 0 {
		t.Errorf("of %d notes there are still %q", many, files)
	}
}

func names(t testing.TB, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}
