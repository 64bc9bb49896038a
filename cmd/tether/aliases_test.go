package main

import (
	"strings"
	"testing"

	"github.com/tether-sandbox/tether/internal/need"
)

// Other mounts that reach a hidden file are closed with it. All of them are
// made in a mount namespace of the test's own.
func TestAliases(t *testing.T) {
	need.Root(t)
	const private = "mount -t tmpfs t /opt; mkdir /opt/a; "
	for name, c := range map[string]struct {
		setup string
		read  string // shows the secret without Tether
		keep  string // still works inside
	}{
		"workspace":        {private + `mount --bind "$W" /opt/a`, "cat /opt/a/.env /opt/a/sub/deep/tls.key", "cat /opt/a/plain"},
		"folder":           {private + `mount --bind "$W/sub" /opt/a`, "cat /opt/a/deep/tls.key", "ls /opt/a/deep"},
		"file":             {private + `echo >/opt/a/f; mount --bind "$W/.env" /opt/a/f`, "cat /opt/a/f", "ls /opt/a"},
		"above":            {private + `mount --bind "$W/.." /opt/a`, "cat /opt/a/w/.env", "cat /opt/a/w/plain"},
		"twice":            {private + `mkdir /opt/b; mount --bind "$W" /opt/a; mount --bind /opt/a/sub /opt/b`, "cat /opt/b/deep/tls.key", "ls /opt/b/deep"},
		"odd name":         {private + `mkdir "/opt/a b	\\c"; mount --bind "$W" "/opt/a b	\\c"`, `cat "/opt/a b	\\c/.env"`, `cat "/opt/a b	\\c/plain"`},
		"inside, file":     {`echo >"$W/notes.txt"; mount --bind "$W/.env" "$W/notes.txt"`, "cat notes.txt", "cat plain"},
		"inside, folder":   {`mkdir -p "$W/copy"; mount --bind "$W/sub" "$W/copy"`, "cat copy/deep/tls.key", "ls copy/deep"},
		"another system":   {private + `mkdir -p "$W/vol"; mount -t tmpfs v "$W/vol"; echo "$SECRET" >"$W/vol/.env"; chmod 755 "$W/vol"; mount --bind "$W/vol" /opt/a`, "cat /opt/a/.env", "ls /opt/a"},
		"moved root":       {private + `mkdir -p "$W/vol"; mount -t tmpfs v "$W/vol"; mkdir -m 755 "$W/vol/d"; echo "$SECRET" >"$W/vol/d/.env"; mount --bind "$W/vol/d" /opt/a`, "cat /opt/a/.env", "ls /opt/a"},
		"home":             {private + `mkdir -p $OUT/h && mount --bind $OUT/h /home; mkdir -m 755 -p /home/u; echo "$SECRET" >/home/u/f; echo "u:x:4242:4242::/home/u:/bin/sh" >$OUT/p; cat /etc/passwd >>$OUT/p; mount --bind $OUT/p /etc/passwd; mount --bind /home/u /opt/a`, "cat /opt/a/f", "ls /opt/a"},
		"above home":       {private + `mkdir -p $OUT/h && mount --bind $OUT/h /home; mkdir -m 755 -p /home/u; echo "$SECRET" >/home/u/f; echo "u:x:4242:4242::/home/u:/bin/sh" >$OUT/p; cat /etc/passwd >>$OUT/p; mount --bind $OUT/p /etc/passwd; mount --bind /home /opt/a`, "cat /opt/a/u/f", "ls /opt"},
		"in home":          {private + `mkdir -p $OUT/h && mount --bind $OUT/h /home; mkdir -m 755 -p /home/u/d; echo "$SECRET" >/home/u/d/f; echo "u:x:4242:4242::/home/u:/bin/sh" >$OUT/p; cat /etc/passwd >>$OUT/p; mount --bind $OUT/p /etc/passwd; mount --bind /home/u/d /opt/a; echo >/opt/f; mount --bind /home/u/d/f /opt/f`, "cat /opt/a/f; cat /opt/f", "ls /opt"},
		"home in the tree": {`mkdir -p $OUT/h "$W/rootfs" && mount --bind $OUT/h /home; mkdir -m 755 -p /home/u; echo "$SECRET" >/home/u/f; echo "u:x:4242:4242::/home/u:/bin/sh" >$OUT/p; cat /etc/passwd >>$OUT/p; mount --bind $OUT/p /etc/passwd; mount --bind /home "$W/rootfs"`, "cat rootfs/u/f", "ls rootfs; cat plain"},
	} {
		t.Run(name, func(t *testing.T) {
			providers(t, func(t *testing.T, j *jail) {
				j.plant(".env", "sub/deep/tls.key")
				j.write("plain", "plain\n")
				j.own() // before: what is mounted shows the owner as it is
				if r := j.inMountsHost(c.setup, c.read); !strings.Contains(r.stdout, j.secret) {
					t.Fatalf("control: %s", r.all())
				}
				r := j.inMounts(c.setup, c.read+"; echo ---; "+c.keep+" && echo KEPT")
				j.noSecret(r)
				if !strings.Contains(r.stdout, "KEPT") {
					t.Errorf("%s does not work: %s", c.keep, r.all())
				}
			})
		})
	}
	t.Run("locked", func(t *testing.T) {
		providers(t, func(t *testing.T, j *jail) {
			j.mustHost("git init -q; mkdir hk; echo sample >.git/hooks/pre-commit")
			j.own()
			const setup = `mount --bind "$W/.git/hooks" "$W/hk"`
			const change = "echo x >hk/pre-commit && echo CHANGED"
			if r := j.inMountsHost(setup, change+"; echo sample >hk/pre-commit"); !strings.Contains(r.stdout, "CHANGED") {
				t.Fatalf("control: %s", r.all())
			}
			if r := j.inMounts(setup, change); strings.Contains(r.stdout, "CHANGED") {
				t.Errorf("a hook was changed by another mount: %s", r.all())
			}
			j.unchanged(".git/hooks/pre-commit", "sample\n")
		})
	})
}
