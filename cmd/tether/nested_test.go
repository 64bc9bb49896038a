package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tether-sandbox/tether/internal/need"
)

// newNest is a jail whose command is no root inside: a workspace of somebody
// else's, where we are root.
func newNest(t *testing.T) *jail {
	t.Helper()
	j := newJail(t, "native")
	if r := j.host("unshare -Urm true"); r.exit != 0 {
		t.Skipf("no nested namespaces here at all: %s", r.all())
	}
	j.write("free.txt", "free\n")
	j.plant(".env", "deep/.env")
	j.repo()
	if os.Geteuid() == 0 {
		if err := exec.Command("chown", "-R", "54321:54321", j.w).Run(); err != nil {
			t.Fatal(err)
		}
	}
	j.flags = []string{"--nested", "--no-network"}
	return j
}

// TestNestedDoor: namespaces can be made with the flag, and not without.
func TestNestedDoor(t *testing.T) {
	j := newNest(t)
	const make = `unshare -Urmpf --mount-proc sh -c 'mount -t tmpfs none /tmp && echo made'`
	if r := j.run(make); r.exit != 0 || r.stdout != "made\n" {
		t.Errorf("with --nested: got %q", r.all())
	}
	j.flags = nil
	if r := j.run(make); r.exit == 0 || strings.Contains(r.stdout, "made") {
		t.Errorf("without: got %q, want it refused", r.all())
	}
}

// TestNestedHint: a command that wanted to build a sandbox, by whichever program
// and however often, is told once what would let it, and nobody else is.
func TestNestedHint(t *testing.T) {
	j := newNest(t)
	for _, c := range []struct {
		flags  []string
		script string
		want   string
	}{
		{nil, `exec unshare -Ur true`, "--nested"},
		{nil, `for n in 1 2 3; do bwrap --ro-bind / / true; unshare -U true; done; true`, "--nested"},
		{[]string{"--provider", "bwrap"}, `exec unshare -Ur true`, "--provider native --nested"},
		{nil, `unshare -m true; mount -t tmpfs none /tmp; (sh -c 'exit 3'); true`, ""},
		{[]string{"--nested"}, `exec unshare -Ur true`, ""},
	} {
		j.flags = append([]string{"--no-network"}, c.flags...)
		denials, _ := j.report(c.script)["denials"].([]any)
		got := []string{}
		for _, d := range denials {
			remedy, _ := d.(map[string]any)["remedy"].(string)
			got = append(got, remedy)
		}
		if c.want == "" && len(got) != 0 || c.want != "" && (len(got) != 1 || got[0] != c.want) {
			t.Errorf("%v %s: got the remedies %q, want %q", c.flags, c.script, got, c.want)
		}
	}
}

// TestNestedGrades: the switch costs what it says, and nothing else is needed.
func TestNestedGrades(t *testing.T) {
	j := newNest(t)
	grades := map[string]any{}
	for _, g := range j.report("true")["report"].(map[string]any)["grades"].([]any) {
		g := g.(map[string]any)
		grades[g["guarantee"].(string)] = g["grade"]
	}
	for g, want := range map[string]string{"read": "Complete", "write": "Partial", "secrets": "Partial", "process": "Complete", "network": "Complete"} {
		if grades[g] != want {
			t.Errorf("%s: got %v, want %s", g, grades[g], want)
		}
	}
	for _, flags := range [][]string{{"--provider", "bwrap"}, {"--provider", "landlock"}} {
		if r := finishCommand(t, j.command(append(flags, "--", "true")...)); r.exit != exitOurs || !strings.Contains(r.stderr, "SANDBOX_UNAVAILABLE") {
			t.Errorf("%v: got exit %d, %q, want it refused", flags, r.exit, r.stderr)
		}
	}
}

// TestNestedMasks: from a mount namespace of its own, with every privilege over
// it, a command still reads no secret and writes nothing outside: the mounts that
// it inherits are locked together.
func TestNestedMasks(t *testing.T) {
	j := newNest(t)
	j.write(filepath.Join(j.out, "outside"), j.secret)
	steps := []string{
		`umount .env`, `umount -l .env`, `umount -l deep/.env; cat deep/.env`,
		`mkdir m && mount --bind . m && cat m/.env`,
		`mkdir r && mount --rbind . r && umount -l r/.env; cat r/.env`,
		`mkdir r2 && mount --rbind deep r2 && cat r2/.env`,
		`mkdir o u k && mount -t overlay none -o lowerdir=.:deep,upperdir=u,workdir=k o; cat o/.env`,
		`mount --move . /dev/shm; cat /dev/shm/.env`,
		`mount -o remount,bind,rw /usr && touch /usr/x`,
		`mount -o remount,rw / && touch /x`,
		`umount -l /usr; touch /usr/x`,
		`umount -l .git/config && echo x >> .git/config`,
		`cat ` + filepath.Join(j.out, "outside"),
		`umount -l ` + filepath.Dir(j.w) + `; cat ` + filepath.Join(j.out, "outside"),
		`for n in 0 1 2 3; do cat /proc/1/root` + j.w + `/.env; done`,
		`mount -t proc none /proc && cat /proc/1/root` + j.w + `/.env`,
		`mknod d b 8 0`, `mount -t ext4 /dev/vda /dev/shm`, `chmod 4755 free.txt && test -u free.txt`,
		`setpriv --reuid 1 true`,
	}
	var nested []string
	for _, s := range steps {
		nested = append(nested, "unshare -Urmpf sh -c 'echo in 1>&2; mount -t tmpfs none /dev/shm || exit 0; "+s+"'")
	}
	for _, s := range j.steps(append(nested, "cat .env deep/.env; cat free.txt")...) {
		if strings.Contains(s.out, j.secret) {
			t.Errorf("%s: got the secret", s.script)
		}
		if !strings.Contains(s.out, "in\n") && !strings.Contains(s.out, "free") {
			t.Errorf("%s: got %q, want it tried in a namespace", s.script, s.out)
		}
		for _, refused := range []string{`umount .env'`, `umount -l .env'`, `mount --bind . m `, `remount`, `mknod`, `vda`, `test -u`, `setpriv`, `.git/config && echo`} {
			if strings.Contains(s.script, refused) && s.rc == 0 {
				t.Errorf("%s: got status 0 (%s), want it refused", s.script, s.out)
			}
		}
	}
	j.unchanged(filepath.Join(j.out, "outside"), j.secret)
	for _, f := range []string{".env", "deep/.env"} {
		j.unchanged(f, j.secret+"\n")
	}
}

// TestNestedBwrap: bwrap builds its sandbox inside ours, and what ours hides
// stays hidden in it.
func TestNestedBwrap(t *testing.T) {
	need.Program(t, "bwrap")
	j := newNest(t)
	const in = `bwrap --ro-bind / / --bind "$PWD" "$PWD" --proc /proc --dev /dev --unshare-all --die-with-parent sh -c 'cat .env; echo wrapped >> free.txt; cat free.txt; ls -d /proc/[0-9]* | wc -l'`
	r := j.run(in)
	if r.exit != 0 || !strings.Contains(r.stdout, "free\nwrapped\n") {
		t.Errorf("got exit %d, %q, want bwrap to work", r.exit, r.all())
	}
	j.noSecret(r)
	j.flags = nil
	if r := j.run(in); r.exit == 0 {
		t.Errorf("without --nested: got %q, want it refused", r.all())
	}
}

// copyTether puts our program into the workspace, and gives the workspace, once
// more, to somebody else where we are root.
func (j *jail) copyTether(name string) {
	j.t.Helper()
	raw, err := os.ReadFile(binary)
	if err == nil {
		err = os.WriteFile(filepath.Join(j.w, name), raw, 0o755)
	}
	if err == nil && os.Geteuid() == 0 {
		err = exec.Command("chown", "-R", "54321:54321", j.w).Run()
	}
	if err != nil {
		j.t.Fatal(err)
	}
}

// TestNestedTether: Tether confines inside of Tether.
func TestNestedTether(t *testing.T) {
	j := newNest(t)
	j.write("sub/own.key", j.secret+"\n")
	j.copyTether("t")
	for _, flags := range [][]string{{"--nested", "--no-network"}, {"--nested"}} {
		j.flags = flags
		r := j.run(`cd sub; ../t run -- sh -c 'echo inner > new.txt; cat own.key; touch ../up; unshare -Ur true && echo nested; true'; echo "rc $?"; cat new.txt`)
		if r.exit != 0 || !strings.Contains(r.stdout, "rc 0\ninner\n") || strings.Contains(r.stdout, "nested") {
			t.Errorf("%v: got exit %d, %q, want Tether to work inside, and not a third one", flags, r.exit, r.all())
		}
		j.noSecret(r)
		j.absent("up")
	}
}

// TestNestedBrowser makes the namespaces that Chromium's sandbox does, in its
// way: user, process and network namespaces by clone, then a root that holds
// nothing.
func TestNestedBrowser(t *testing.T) {
	j := newNest(t)
	const sandbox = `PATH=$PATH:/usr/sbin:/sbin; unshare --user --map-current-user --pid --net --fork --keep-caps sh -c 'exec chroot /proc/self/fdinfo /bin/true' 2>&1 | grep -c "No such file"`
	if r := j.run(sandbox); r.stdout != "1\n" {
		t.Errorf("got %q, want an empty root in namespaces of its own", r.all())
	}
	j.flags = []string{"--no-network"}
	if r := j.run(sandbox); r.stdout == "1\n" {
		t.Errorf("without --nested: got %q, want it refused", r.all())
	}
}

// TestNestedCost is what the grade Partial means: from a namespace in which the
// workspace is no longer mounted, by a folder that it is still in, a command can
// remove a hidden file and replace git's configuration. It reads no secret all
// the same, and what it put there is found at the end.
func TestNestedCost(t *testing.T) {
	need.Program(t, "python3")
	j := newNest(t)
	const away = `PATH=$PATH:/usr/sbin:/sbin; unshare -Urm sh -c '
		mount -t tmpfs none /dev/shm; mkdir /dev/shm/old /dev/shm/usr; mount --rbind /usr /dev/shm/usr
		for l in bin lib lib64 sbin; do ln -s usr/$l /dev/shm/$l; done
		pivot_root /dev/shm /dev/shm/old
		python3 -c "import ctypes; ctypes.CDLL(None).umount2(b\"/old\", 2)"
		mv .env moved; cat moved deep/.env; ln deep/.env alias; cat alias; rm -f deep/.env
		printf "[core]\n\tfsmonitor = \"touch ` + "$PWN" + `; false\"\n" > c; mv -f c .git/config && echo replaced'`
	r := j.run(strings.ReplaceAll(away, "$PWN", j.pwn()))
	if !strings.Contains(r.stdout, "replaced") || !strings.Contains(r.stderr, ".git/config") {
		t.Errorf("got %q, want the configuration replaced, and found", r.all())
	}
	j.noSecret(r)
	j.calm(".")
}
