package seatbelt_test

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/enforce/seatbelt"
	"github.com/tether-sandbox/tether/internal/plan"
	"github.com/tether-sandbox/tether/policy"
)

// tree is a folder that looks like a Mac, and a workspace in it.
type tree struct{ top, home, ws string }

// grow makes one, with what the acceptance cases are about.
func grow(t *testing.T) tree {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	m := tree{top, top + "/Users/u", top + "/Users/u/w"}
	for path, text := range map[string]string{
		"/usr/bin/true": "x", "/usr/lib/dyld": "x", "/bin/sh": "x", "/sbin/mount": "x", "/System/Library/a": "x", "/System/Volumes/Data/Users/u/.ssh/id_rsa": "k",
		"/System/Volumes/Preboot/Cryptexes/OS/x": "x", "/Library/Keychains/System.keychain": "k", "/Library/Frameworks/f": "x",
		"/private/etc/hosts": "x", "/private/var/db/timezone/tz": "x", "/private/tmp/other": "k", "/private/var/run/docker.sock": "x",
		"/private/var/folders/zz/T/other": "k", "/opt/homebrew/bin/git": "x", "/opt/homebrew/var/postgres/data": "k", "/opt/homebrew/etc/my.cnf": "k",
		"/Users/u/.ssh/id_rsa": "k", "/Users/u/.aws/credentials": "k", "/Users/u/.zshrc": "x", "/Users/u/Library/Keychains/login.keychain-db": "k",
		"/Users/u/.rustup/toolchains/stable/bin/rustc": "x", "/Users/u/.rustup/settings.toml": "x", "/Users/v/private": "k",
		"/Users/u/w/a.txt": "x", "/Users/u/w/.env": "S=k", "/Users/u/w/deep/node_modules/x/.env.local": "S=k", "/Users/u/w/.ENV.prod": "S=k",
		"/Users/u/w/.env.example": "x", "/Users/u/w/sub dir/\"q\"/.env": "S=k", "/Users/u/w/tls/server.key": "k", "/Users/u/w/.vscode/tasks.json": "{}",
		"/Users/u/w/.tether/policy.toml": "", "/Users/u/w/.husky/pre-commit": "x", "/Users/u/w/src/main.go": "x",
	} {
		path = top + path
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for from, to := range map[string]string{"/tmp": "private/tmp", "/var": "private/var", "/etc": "private/etc", "/Users/u/w/out": "../../v/private"} {
		if err := os.Symlink(to, top+from); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(m.ws+"/.env", m.ws+"/innocent.txt"); err != nil {
		t.Fatal(err)
	}
	git := exec.Command("git", "-c", "init.defaultBranch=main", "init", "-q", m.ws)
	git.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + top, "GIT_CONFIG_NOSYSTEM=1"}
	if out, err := git.CombinedOutput(); err != nil {
		t.Fatalf("git init: %v\n%s", err, out)
	}
	return m
}

// plan is the plan of a command there.
func (m tree) plan(pol policy.Policy) (*plan.Plan, error) {
	return plan.Resolve(context.Background(), pol, plan.Host{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid()), Home: m.home,
		Homes: []string{m.home, m.top + "/Users/v"}, User: "u", StateDir: m.home + "/.local/state/tether", ConfigDir: m.home + "/.config/tether",
		Layout: plan.Mac().Below(m.top), Run: m.top + "/private/var/folders/zz/T/tether-1"}, "")
}

func (m tree) policy(profile policy.Profile, mode policy.NetworkMode) policy.Policy {
	pol := policy.Default(m.ws)
	pol.Profile, pol.Network.Mode = profile, mode
	return pol
}

// TestRealPlan makes a plan from a tree and asks profile and plan about every
// file of it: this is the same search, the same git and the same table as on a
// Mac.
func TestRealPlan(t *testing.T) {
	m := grow(t)
	for _, profile := range []policy.Profile{policy.ReadOnly, policy.WorkspaceWrite} {
		p, err := m.plan(m.policy(profile, policy.Offline))
		if err != nil {
			t.Fatal(err)
		}
		rules := evaluate(t, p, seatbelt.Options{})
		asked, shown := 0, 0
		err = filepath.WalkDir(m.top, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || path == m.top {
				return err
			}
			want := meant(p, path)
			if want.read {
				shown++
			}
			for op, want := range map[string]bool{"file-read-metadata": want.look, "file-read-data": want.read, "file-write-data": want.write,
				"file-write-unlink": want.move, "process-exec": want.start} {
				asked++
				if got, agree := rules.allows(query{op: op, name: path}); got != want || !agree {
					t.Errorf("%s %s: the profile says %v, the plan %v; readings agree: %v", op, path, got, want, agree)
				}
			}
			return nil
		})
		if err != nil || asked < 300 || shown < 20 {
			t.Errorf("%d questions, %d files shown (%v): too few", asked, shown, err)
		}
	}
}

// TestScoped lists roots: exactly these are read, and what a program needs to
// start at all; the folders above tell what they are and not what they hold.
func TestScoped(t *testing.T) {
	m := grow(t)
	pol := m.policy(policy.ReadOnly, policy.Offline)
	pol.Home = policy.HomePrivate
	pol.Reads = policy.Reads{Only: []string{m.home + "/.rustup/toolchains"}}
	p, err := m.plan(pol)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(p.Home, m.top+"/private/var/folders/zz/T/tether-1/") || !strings.HasPrefix(p.Tmp, m.top+"/private/var/folders/zz/T/tether-1/") {
		t.Errorf("home %s, temporary files %s: want private ones", p.Home, p.Tmp)
	}
	answer(t, evaluate(t, p, seatbelt.Options{}), []ask{
		reads(m.home+"/.rustup/toolchains/stable/bin/rustc", true), reads(m.home+"/.rustup/settings.toml", false), stats(m.home+"/.rustup", true),
		reads(m.home+"/.rustup", false), stats(m.home, true), reads(m.home, false), reads(m.ws+"/a.txt", true), reads(m.ws+"/.env", false),
		reads(m.top+"/usr/lib/dyld", true), reads(m.top+"/usr/bin/true", false), reads(m.top+"/private/etc/hosts", false), reads(m.top+"/opt/homebrew/bin/git", false),
	})
	pol.Reads.Only = append(pol.Reads.Only, m.home+"/missing")
	if _, err := m.plan(pol); fault.CodeOf(err) != fault.SandboxViolation {
		t.Errorf("a missing scope: got %v, want a refusal", err)
	}
	// A link inside that leads outside shows nothing of what is there.
	pol.Reads.Only = []string{m.ws + "/src"}
	if p, err = m.plan(pol); err != nil {
		t.Fatal(err)
	}
	answer(t, evaluate(t, p, seatbelt.Options{}), []ask{reads(m.top+"/Users/v/private", false), stats(m.top+"/Users/v", false)})
}
