package local

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/enforce/landlock"
	"github.com/tether-sandbox/tether/internal/need"
	"github.com/tether-sandbox/tether/internal/plan"
	"github.com/tether-sandbox/tether/internal/world"
	"github.com/tether-sandbox/tether/policy"
)

// TestPrivateOfAnotherUser: the folder of a run that root starts for somebody is
// that one's to pass and nobody else's, though what lies in it may be open to all.
func TestPrivateOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root starts runs for others")
	}
	const owner, other = 54321, 54322
	p := &plan.Plan{Identity: plan.Identity{Root: true, HostUID: owner, HostGID: owner}}
	dir, release, err := holdPrivate(p)
	if errors.Is(err, syscall.EINVAL) {
		t.Skip("there are no such users in this namespace")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[uint32]bool{owner: true, other: false} {
		cat := exec.Command("cat", file)
		cat.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: id, Gid: id}}
		if out, err := cat.CombinedOutput(); (err == nil) != want {
			t.Errorf("%d: opens it %v, want %v: %s", id, err == nil, want, out)
		}
	}
}

// TestWallsMoved: what moves between the search and the walls does not come open
// by that. Where nothing moves, the hidden file is closed and the others are open.
func TestWallsMoved(t *testing.T) {
	if abi, err := landlock.ABI(); err != nil || abi < 6 {
		need.Missing(t, "landlock", "it takes ABI 6")
	}
	const secret = "S3CRET0moved"
	rename := func(from, to string) func(w string) error {
		return func(w string) error { return os.Rename(filepath.Join(w, from), filepath.Join(w, to)) }
	}
	exchange := func(a, b string) func(w string) error {
		return func(w string) error {
			return unix.Renameat2(unix.AT_FDCWD, filepath.Join(w, a), unix.AT_FDCWD, filepath.Join(w, b), unix.RENAME_EXCHANGE)
		}
	}
	for name, move := range map[string]func(w string) error{
		"nothing":                     nil,
		"out of its folder":           rename("sub/.env", "open/env"),
		"to another name":             rename("sub/.env", "sub/plain"),
		"with another file":           exchange("sub/.env", "sub/plain"),
		"its folder":                  rename("sub", "moved"),
		"its folder into an open one": rename("sub", "open/sub"),
		"its folder with an open one": exchange("sub", "open"),
		"a link in its place": func(w string) error {
			return errors.Join(rename("sub/.env", "sub/plain")(w), os.Symlink("plain", filepath.Join(w, "sub/.env")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, environ := readOnlyWorkspace(t, secret)
			pol := policy.Default(w)
			pol.Profile, pol.Commands = policy.ReadOnly, policy.Any
			pol.Network = policy.Network{Mode: policy.Offline}
			pol.Accept = map[policy.Guarantee]policy.Grade{policy.Read: policy.Partial, policy.Write: policy.Partial, policy.Process: policy.Partial}
			p, err := World{}.Plan(t.Context(), pol, world.Options{Environ: environ, Provider: enforce.Landlock})
			if err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			_, err = World{}.Run(t.Context(), p, world.Command{Provider: enforce.Landlock, Args: []string{"sh", "-c", "find . -type f -exec cat {} +; true"}, Stdout: &out, Stderr: &out,
				Check: func(context.Context) error {
					if move == nil {
						return nil
					}
					return move(w)
				}})
			switch {
			case strings.Contains(out.String(), secret):
				t.Errorf("it came open: %v, %q", err, out.String())
			case move == nil && (err != nil || !strings.Contains(out.String(), "plain text")):
				t.Errorf("got %v, %q", err, out.String())
			case move != nil && !errors.Is(err, plan.ErrChanged):
				t.Errorf("got %v, want %v", err, plan.ErrChanged)
			}
		})
	}
}

// readOnlyWorkspace is a folder with a hidden file and some that are not, and an
// environment whose state lies beside it.
func readOnlyWorkspace(t *testing.T, secret string) (w string, environ []string) {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w = filepath.Join(top, "w")
	for name, text := range map[string]string{"sub/.env": secret, "sub/plain": "plain text\n", "open/plain": "plain text\n"} {
		path := filepath.Join(w, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return w, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "XDG_STATE_HOME=" + top, "XDG_CONFIG_HOME=" + top}
}
