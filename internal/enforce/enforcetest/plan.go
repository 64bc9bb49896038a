// Package enforcetest holds what the tests of several providers share: a plan
// made by hand that has one of everything, and the table of attacks that every
// provider must hold against.
package enforcetest

import (
	"time"

	"github.com/tether-sandbox/tether/internal/plan"
	"github.com/tether-sandbox/tether/internal/plan/secrets"
	"github.com/tether-sandbox/tether/policy"
)

// Plan returns a plan with one of everything. It names files of no machine.
func Plan() *plan.Plan {
	root := func(path string, ino uint64) plan.Root {
		return plan.Root{Path: path, Dev: 8, Ino: ino, UID: 1000, GID: 1000}
	}
	pol := policy.Default("/home/u/w")
	pol.Network.Mode = policy.Offline
	return &plan.Plan{
		Policy:    pol,
		Workspace: root("/home/u/w", 10), Dir: "/home/u/w",
		Identity: plan.Identity{UID: 1000, GID: 1000, HostUID: 1000, HostGID: 1000},
		Views: []plan.View{
			{Root: root("/home/u/w", 10), Origin: plan.Workspace, Writable: true},
			{Root: root("/data/more", 11), Origin: plan.Added, Writable: true},
			{Root: root("/data/read", 12), Origin: plan.Added},
			{Root: root("/home/u/w/vendor", 13), Origin: plan.Added},
			{Root: root("/usr", 14), Origin: plan.System},
			{Root: root("/etc", 15), Origin: plan.System},
			{Root: root("/opt", 16), Origin: plan.System},
			{Root: root("/run/resolv.conf", 17), Origin: plan.System, File: true, NoExec: true},
			{Root: root("/home/u/.rustup", 18), Origin: plan.Toolchain},
			{Root: root("/home/u/main/.git", 19), Origin: plan.Git, Writable: true},
			{Root: root("/state/cache/k", 20), At: "/run/tether/cache", Origin: plan.Cache, Writable: true},
			{Root: root("/opt/home/u/tool", 21), Origin: plan.Toolchain},
		},
		Covers: []string{"/opt/private", "/opt/home", "/opt/home/u"},
		Links:  []plan.Link{{Path: "/bin", To: "usr/bin"}, {Path: "/lib64", To: "usr/lib64"}},
		Dirs:   []string{"/run/tether/user/config/", "/run/tether/user/empty"},
		Files:  []plan.File{{Path: "/run/tether/gitconfig", Content: []byte("[core]\n")}},
		Scratch: []plan.Scratch{
			{Path: "/tmp", Mode: 0o1777, Writable: true},
			{Path: "/run/tether", Mode: 0o755},
			{Path: "/run/tether/user", Mode: 0o700, Writable: true, Bytes: 256 << 20},
		},
		Locks: []plan.Lock{
			{Path: "/data/read/.git", Writable: true, Why: "pin"},
			{Path: "/home/u/main/.git", Writable: true, Why: "pin"},
			{Path: "/home/u/w/.git", Writable: true, Why: "pin"},
			{Path: "/home/u/w/.git/config", Content: []byte("[core]\n\tbare = false\n"), MTime: 1700000000000000000, Why: "filtered"},
			{Path: "/home/u/w/.git/hooks", Why: "locked"},
			{Path: "/home/u/w/.vscode", Why: "locked"},
			{Path: "/opt/private/.vscode", Why: "locked, in a cover"},
		},
		Masks: []secrets.Mask{
			{Path: "/home/u/w/.env", Dev: 8, Ino: 30, Size: 12, MTime: time.Unix(1700000001, 5), Mode: 0o600, Why: "name"},
			{Path: "/home/u/w/.ssh", Kind: secrets.MaskDir, Why: "name"},
			{Path: "/home/u/w/.ssh/id_rsa", Why: "in a hidden folder"},
			{Path: "/home/u/w/conf/tls.key", Kind: secrets.MaskStub, Size: 1704, MTime: time.Unix(1700000002, 6), Mode: 0o755, Why: "tracked"},
			{Path: "/home/u/w/.vscode/.env", Why: "in a locked folder"},
		},
		Sockets: []string{"/home/u/w/s.sock", "/opt/private/s.sock", "/data/read/s.sock"},
	}
}
