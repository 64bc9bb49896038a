package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/internal/need"
)

// A file system that copies whole trees makes no copy in which what is hidden
// shows, and nothing in a folder that is read-only; cloning a file goes on.
func TestSnapshot(t *testing.T) {
	need.Root(t)
	need.Program(t, "mkfs.btrfs")
	for _, p := range []string{"native", "bwrap", "landlock"} {
		t.Run(p, func(t *testing.T) {
			if p == "bwrap" {
				need.Program(t, "bwrap")
			}
			j := newJail(t, p)
			disk := filepath.Join(j.out, "disk")
			j.mustHost("mkdir ../out/disk && truncate -s 120M ../out/img && mkfs.btrfs -q ../out/img")
			if r := j.host("mount -o loop ../out/img ../out/disk"); r.exit != 0 {
				need.Missing(t, "btrfs", r.all())
			}
			t.Cleanup(func() {
				if err := unix.Unmount(disk, unix.MNT_DETACH); err != nil {
					t.Error(err)
				}
			})
			j.w = disk
			j.mustHost("btrfs -q subvolume create w && btrfs -q subvolume create shown && chmod 755 .")
			j.w = filepath.Join(disk, "w")
			shown := filepath.Join(disk, "shown")
			j.plant(".env", filepath.Join(shown, ".env"))
			j.write("f", "f\n")
			const attack = "btrfs -q subvolume snapshot . s && cat s/.env; btrfs -q subvolume create ../shown/new && echo MADE"
			j.opens(attack, j.secret)
			j.opens("ls ../shown", "new")
			j.mustHost("btrfs -q subvolume delete s ../shown/new")
			for _, name := range []string{j.w, j.w + "/.env", j.w + "/f", shown, shown + "/.env"} {
				if err := os.Chown(name, foreignUID, foreignUID); err != nil {
					t.Fatal(err)
				}
			}
			r := j.run("cp --reflink=always f g && cat g; "+attack, "--no-network", "--allow-read", shown)
			j.noSecret(r)
			if r.stdout != "f\n" || strings.Count(r.stderr, "Operation not permitted") != 2 {
				t.Errorf("got %q, want one file cloned and two calls refused", r.all())
			}
			j.absent("s")
			j.absent(filepath.Join(shown, "new"))
		})
	}
}
