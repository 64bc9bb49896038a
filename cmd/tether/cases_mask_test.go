package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tether-sandbox/tether/internal/need"
)

// EC-001: a secret at the workspace root, many readers.
func TestEC001(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.systemPath()
		j.plant(".env")
		readers := []string{"cat .env", "dd if=.env", `python3 -c 'print(open(".env").read())'`, "perl -pe1 .env",
			"tar cf - .env | tar xOf -", "cp .env /tmp/c && cat /tmp/c; rm -f /tmp/c"}
		for _, r := range readers {
			j.noSecret(j.closed(r, j.secret))
		}
		// The documented answer of a file that git does not track.
		if got := j.run("cat .env"); !strings.Contains(got.stderr, "Permission denied") || got.exit == 0 {
			t.Errorf("cat .env: exit %d, %q, want it to say that permission is denied", got.exit, got.stderr)
		}
		j.unchanged(".env", j.secret+"\n")
	})
}

// EC-002: secrets deep in the tree, also under ignored directories.
func TestEC002(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		names := []string{"a/b/c/d/e/f/g/h/i/j/.env", "node_modules/p/.env", "vendor/q/.env", "target/r/.env",
			".cache/x/.env", "build/.env.production", "dist/server.key"}
		j.plant(names...)
		j.write(".gitignore", "node_modules\nvendor\ntarget\nbuild\ndist\n.env\n")
		const all = `find . \( -name '.env*' -o -name '*.key' \) -type f -exec cat {} +`
		if got := strings.Count(j.host(all).stdout, j.secret); got != len(names) {
			t.Fatalf("control: %d of %d secrets seen without Tether", got, len(names))
		}
		r := j.run(all)
		j.noSecret(r)
		for _, n := range names {
			j.noSecret(j.run("cat " + n))
			j.unchanged(n, j.secret+"\n")
		}
		// Whoever looks without a file type in mind finds nothing either.
		j.noSecret(j.run("grep -ra S3NTINEL . ; tar cf - ."))
	})
}

// EC-004: case variants of protected names.
func TestEC004(t *testing.T) {
	names := []string{".ENV", ".Env.Local", "Server.PEM", "ID_RSA", "Id_Ed25519", "TLS.Key", ".SSH/config", "Authorized_Keys"}
	providers(t, func(t *testing.T, j *jail) {
		j.plant(names...)
		for _, n := range names {
			j.noSecret(j.closed("cat "+n, j.secret))
			j.unchanged(n, j.secret+"\n")
		}
	})
	t.Run("folding", func(t *testing.T) {
		j := newJail(t, "native")
		need.Root(t)
		// A tmpfs that folds case exists since Linux 6.13.
		const setup = `mount -t tmpfs -o casefold=utf8-12.1.0,mode=755 t "$W" && cd "$W" && mkdir d && chattr +F d && echo "$SECRET" >d/.ENV`
		if r := j.inMountsHost(setup, "cat d/.env"); !strings.Contains(r.stdout, j.secret) {
			need.Missing(t, "casefold", r.all())
		}
		for _, n := range []string{"d/.env", "d/.ENV", "D/../d/.Env"} {
			r := j.inMounts(setup, "cat "+n)
			j.noSecret(r)
		}
	})
}

// EC-005: a hard link alias made before the run.
func TestEC005(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.plant(".env", "deep/er/tls.key")
		j.mustHost("ln .env notes.txt; mkdir other; ln deep/er/tls.key other/readme.md; ln .env deep/again")
		for _, n := range []string{"notes.txt", "other/readme.md", "deep/again"} {
			j.noSecret(j.closed("cat "+n, j.secret))
			j.unchanged(n, j.secret+"\n")
		}
		// Writing through the alias would change the secret.
		if r := j.run("echo x >>notes.txt"); r.exit == 0 {
			t.Error("the alias of a secret could be written")
		}
		j.unchanged(".env", j.secret+"\n")
	})
}

// EC-009: side files that editors leave of a protected file.
func TestEC009(t *testing.T) {
	names := []string{".env~", ".env.swp", ".env.swo", ".#.env", "'#.env#'", "tls.pem.bak", "id_rsa.old", ".id_rsa.swp",
		".env.bak", "server.key~", "server.key.orig", ".env.local~", ".env.~1~", "id_ed25519.save", ".env.tmp"}
	providers(t, func(t *testing.T, j *jail) {
		for _, n := range names {
			j.plant(strings.Trim(n, "'"))
		}
		j.opens("cat "+strings.Join(names, " "), j.secret)
		for _, n := range names {
			j.opens("cat "+n, j.secret)
		}
		r := j.run("for f in " + strings.Join(names, " ") + `; do cat "./$f" && echo "OPEN: $f"; done`)
		j.noSecret(r)
		if strings.Contains(r.stdout, "OPEN") {
			t.Errorf("opened: %s", r.stdout)
		}
	})
}

// EC-010: a secret that is created after the start. The running command may see
// it, which the report states; the next one does not. What is hidden while a
// command runs is TestLateSecrets' to show.
func TestEC010(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		go func() {
			time.Sleep(150 * time.Millisecond)
			_ = os.WriteFile(filepath.Join(j.w, ".env"), []byte(j.secret+"\n"), 0o644)
		}()
		out := j.report("for i in $(seq 40); do test -e .env && break; sleep 0.05; done; test -e .env && echo THERE")
		if !strings.Contains(fmt.Sprint(out["stdout"]), "THERE") {
			t.Fatalf("control: the file must appear during the run: %v", out)
		}
		reason := ""
		for _, g := range out["report"].(map[string]any)["grades"].([]any) {
			if g := g.(map[string]any); g["guarantee"] == "secrets" {
				reason, _ = g["reason"].(string)
			}
		}
		if !strings.Contains(reason, "created during the run") {
			t.Errorf("the report does not state the limit: %q", reason)
		}
		j.noSecret(j.closed("cat .env", j.secret))
		// In a session, which knows nothing of it from before, neither.
		if r := j.run("test ! -e late.pem", "--session", "long"); r.exit != 0 {
			t.Fatalf("control: %s", r.all())
		}
		j.plant("late.pem")
		j.noSecret(j.closed("cat late.pem", j.secret, "--session", "long"))
		j.noSecret(j.edit("", "view", "late.pem", "--session", "long"))
	})
}

// EC-011: a directory that the scanner cannot read and its owner can open.
func TestEC011(t *testing.T) {
	for _, mode := range []string{"000", "100", "400", "600"} {
		t.Run(mode, func(t *testing.T) {
			providers(t, func(t *testing.T, j *jail) {
				j.plant("d/.env", "d/sub/id_rsa")
				const open = "chmod 755 d; cat d/.env d/sub/id_rsa"
				j.opens(open, j.secret)
				j.mustHost("chmod " + mode + " d")
				j.noSecret(j.run(open + "; mv d e; chmod 755 e; cat e/.env; ls -l d"))
				if r := j.mustHost("chmod 755 [de]; cat [de]/.env"); r.stdout != j.secret+"\n" {
					t.Errorf("the secret reads %q afterwards", r.all())
				}
			})
		})
	}
}

// The same for root, whose scanner reads everything, in folders of odd groups
// and owners.
func TestUnsearchableFolders(t *testing.T) {
	need.Root(t)
	for name, chown := range map[string]string{"group": "chgrp 999 d", "owner": "chown 998:998 d", "own": "true"} {
		t.Run(name, func(t *testing.T) {
			providers(t, func(t *testing.T, j *jail) {
				j.mustHost("mkdir d")
				for _, uid := range []int{0, foreignUID} {
					if uid == 0 && j.provider == "bwrap" {
						continue
					}
					j.plant("d/.env", "d/sub/id_rsa")
					j.own()
					j.mustHost(fmt.Sprintf("chown -R %d:%[1]d . && %s && chmod 000 d", uid, chown))
					// Not by j.run, which would give all of it back.
					cmd := exec.Command(binary, "run", "--provider", j.provider, "-C", j.w, "--", "sh", "-c", "chmod 755 d; cat d/.env d/sub/id_rsa")
					cmd.Env, cmd.Dir = j.env, j.w
					r := finishCommand(t, cmd)
					j.noSecret(r)
					if r.exit == exitOurs && name != "group" {
						t.Errorf("owner %d: not built: %s", uid, r.stderr)
					}
					j.mustHost("chmod 755 d")
				}
			})
		})
	}
}

// EC-013: a protected file that git objects hold. The content stays readable
// there; what is promised is the warning.
func TestEC013(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.plant(".env")
		// Older than the index, or git asks for the content to be sure.
		j.mustHost("touch -d '1 hour ago' .env && git init -q && git add -f .env && git commit -qm x")
		j.opens("git show HEAD:.env", j.secret)
		out := j.report("cat .env; git status --porcelain")
		text := fmt.Sprint(out)
		if strings.Contains(text, j.secret) {
			t.Error("the file itself was read")
		}
		notes := fmt.Sprint(out["report"].(map[string]any)["notes"])
		if !strings.Contains(notes, "git tracks the hidden file") || !strings.Contains(notes, ".env") ||
			!strings.Contains(notes, "git rm --cached") {
			t.Errorf("no warning of the tracked secret: %s", notes)
		}
		if got := out["stdout"]; got != "" {
			t.Errorf("git status sees the mask as a change: %q", got)
		}
		j.unchanged(".env", j.secret+"\n")
		// Without git's file there is nothing to warn of.
		j.mustHost("git rm -q --cached .env && git commit -qm y")
		if notes := fmt.Sprint(j.report("true")["report"].(map[string]any)["notes"]); strings.Contains(notes, "git tracks") {
			t.Errorf("warned of a file that is not tracked: %s", notes)
		}
	})
}

// EC-014: renaming the parent of a masked file.
func TestEC014(t *testing.T) {
	const move = "mv sub sub9; cat sub9/deep/.env; mkdir -p sub/deep; cp sub9/deep/.env sub/deep/; cat sub/deep/.env"
	providers(t, func(t *testing.T, j *jail) {
		j.plant("sub/deep/.env")
		j.opens(move+"; rm -rf sub; mv sub9 sub", j.secret)
		j.noSecret(j.run(move))
		j.noSecret(j.run("mv sub/deep deeper; cat deeper/.env; ln -s deeper l; cat l/.env"))
		// Wherever it is now, it holds what it held.
		if r := j.mustHost("cat $(find . -name .env -size +0)"); r.stdout != j.secret+"\n" {
			t.Errorf("the secret reads %q afterwards", r.stdout)
		}
		// And the next run hides it in its new place.
		j.noSecret(j.run("find . -name .env -exec cat {} +"))
	})
}

// EC-015: moving, linking, truncating, changing or deleting a masked file.
func TestEC015(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.plant(".env", "sub/deep/.env")
		before := j.mustHost("stat -c '%i %a %s %h' .env sub/deep/.env").stdout
		for _, step := range []string{"mv .env x", "ln .env y", "truncate -s0 .env", "chmod 777 .env", "rm -f .env",
			"rm -rf sub", "mv x .env", ": >.env", "touch .env", "cp sub/../.gitignore .env", "mv -T sub/deep/.env z",
			"rmdir sub/deep", "setfattr -n user.x -v y .env", "ln -f .gitignore .env"} {
			// The control runs on a copy of the tree.
			j.mustHost("rm -rf $OUT/c && cp -a . $OUT/c && cd $OUT/c && echo >x && echo >.gitignore")
			j.write(".gitignore", "")
			if step != "rmdir sub/deep" && !strings.HasPrefix(step, "setfattr") {
				if r := j.host("cd $OUT/c && " + step); r.exit != 0 {
					t.Fatalf("control: %s fails without Tether: %s", step, r.all())
				}
			}
			if r := j.run(step); r.exit == 0 {
				t.Errorf("%s succeeded", step)
			}
			j.unchanged(".env", j.secret+"\n")
			j.unchanged("sub/deep/.env", j.secret+"\n")
		}
		j.noSecret(j.closed("ln -s .env z; cat z; rm z", j.secret))
		j.own() // the bwrap provider of root's tests changed the owner, not more
		if after := j.mustHost("stat -c '%i %a %s %h' .env sub/deep/.env").stdout; after != before {
			t.Errorf("stat says %q, want %q", after, before)
		}
	})
}

// EC-016: writing to a masked file must not report success.
func TestEC016(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.systemPath()
		j.plant(".env")
		j.opens("cp .env $OUT/x; echo NEW=1 >>$OUT/x && echo rc=0", "rc=0")
		for _, w := range []string{"echo NEW=1 >>.env", "echo NEW=1 >.env", "echo NEW=1 | tee -a .env", "sed -i s/S/T/ .env",
			`python3 -c 'import os; os.write(os.open(".env", os.O_RDWR), b"x")'`, "dd if=/dev/zero of=.env bs=1 count=1",
			"echo x >t && cp t .env", "echo x >t && mv -f t .env"} {
			if r := j.run(w); r.exit == 0 {
				t.Errorf("%s: exit 0", w)
			}
			j.unchanged(".env", j.secret+"\n")
		}
		// A tracked file is covered by a stand-in; that must not take writes either.
		j.mustHost("git init -q && git add -f .env && git commit -qm x")
		for _, w := range []string{"echo NEW=1 >>.env", "cat .env >/dev/null", "chmod 600 .env && echo x >.env"} {
			if r := j.run(w); r.exit == 0 {
				t.Errorf("tracked: %s: exit 0", w)
			}
		}
		j.unchanged(".env", j.secret+"\n")
	})
}

// EC-017: a nested user namespace tries to take the mask off.
func TestEC017(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.plant(".env")
		j.mustHost("mkdir m")
		const umount = "mount --bind /dev/null .env; umount .env; cat .env"
		j.opens("unshare -Urm sh -c '"+umount+"'", j.secret)
		j.opens("unshare -Urm sh -c 'mount --bind . m && cat m/.env'", j.secret)
		steps := []string{umount, "umount -l " + j.w + "; cat .env", "mount --bind . m && cat m/.env",
			"mount --rbind . m && umount -l m/.env; cat m/.env",
			"mount -t overlay o -o lowerdir=" + j.w + " m && cat m/.env",
			"mount -t tmpfs t m && mkdir m/x && mount --move . m/x; cat m/x/.env",
			"pivot_root . m; cat .env", "mount -t proc p m && cat m/1/root/.env"}
		for _, ns := range []string{"unshare -Urm", "unshare -Um --map-root-user", "unshare -m", ""} {
			script := ""
			for _, step := range steps {
				script += ns + " sh -c '" + step + "'\n"
			}
			j.noSecret(j.run(script))
		}
		for _, ns := range []string{"unshare -Urm true", "unshare -m true", "nsenter -t 1 -m true", "unshare -Ur true"} {
			if r := j.run(ns); r.exit == 0 {
				t.Errorf("%s succeeded", ns)
			}
		}
	})
}

// EC-019: real root starts Tether, and the command tries to unmount the mask.
func TestEC019(t *testing.T) {
	need.Root(t)
	providers(t, func(t *testing.T, j *jail) {
		j.plant(".env")
		if r := j.host("grep CapEff /proc/self/status"); strings.Contains(r.stdout, "\t0000000000000000") {
			t.Skip("need: root without capabilities proves nothing")
		}
		if r := j.inMountsHost("mount --bind /dev/null .env", "umount .env && cat .env"); !strings.Contains(r.stdout, j.secret) {
			t.Fatalf("control: root must be able to unmount a mask: %s", r.all())
		}
		r := j.run("grep Cap /proc/self/status; umount .env && cat .env; umount /home; ls /home; umount -a; cat .env; cat /etc/shadow")
		j.noSecret(r)
		for line := range strings.Lines(r.stdout) {
			if strings.HasPrefix(line, "Cap") && !strings.HasSuffix(line, "\t0000000000000000\n") {
				t.Errorf("kept a capability: %s", line)
			}
		}
		if got := strings.Count(r.stdout, "Cap"); got != 5 {
			t.Errorf("%d capability sets seen, want 5: %s", got, r.all())
		}
		if strings.Contains(r.stdout, "root:") {
			t.Error("a root-only file of the system was read")
		}
	})
}

// EC-021: names of protected files must not show in the launcher's arguments.
func TestEC021(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.plant("private/.env.hush", "hush.key")
		for _, n := range []string{"tr '\\0' ' ' </proc/1/cmdline", "cat /proc/*/cmdline", "cat /proc/1/environ", "cat /proc/*/environ",
			"cat /proc/1/comm", "env"} {
			r := j.run(n)
			if strings.Contains(r.all(), "hush") {
				t.Errorf("%s shows names of protected files: %q", n, r.all())
			}
		}
		// The control: they do show where somebody passes them as arguments.
		j.opens("sh -c 'tr \"\\0\" \" \" </proc/$$/cmdline' private/.env.hush", "hush")
		// What is documented as shown: the kernel lists the masks as mounts.
		j.works("cat /proc/self/mountinfo", "/w/private/.env.hush")
	})
}
