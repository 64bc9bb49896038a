//go:build linux || darwin

package local

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/plan"
	"github.com/tether-sandbox/tether/internal/plan/gitmeta"
	"github.com/tether-sandbox/tether/internal/plan/toolchain"
)

// caller gathers what a plan needs to know of the caller. The home comes from
// the account database and never from $HOME, which says what it likes.
func caller(environ []string) (plan.Host, error) {
	uid, gid := os.Geteuid(), os.Getegid()
	h := plan.Host{UID: uint32(uid), GID: uint32(gid), Environ: environ}
	if uid == 0 {
		h.SudoUser = lookup(environ, "SUDO_USER")
	}
	raw, err := accounts()
	if err != nil {
		return h, fault.Wrap(fault.SandboxUnavailable, "cannot read the account database, so homes cannot be hidden", err)
	}
	account, _ := toolchain.Account(raw, uint32(uid))
	h.User, h.Home = account.Name, account.Home
	h.Homes = toolchain.Homes(raw, uid, h.SudoUser)
	if h.Home != "" {
		h.Homes = append(h.Homes, h.Home)
	}
	if exe, err := os.Executable(); err == nil {
		h.Executable = exe
	}
	if called, err := exec.LookPath(os.Args[0]); err == nil || errors.Is(err, exec.ErrDot) {
		if called, err = filepath.Abs(called); err == nil {
			h.Called = called
		}
	}
	h.StateDir, h.ConfigDir = Folders(h.Home, environ)
	if !filepath.IsAbs(h.StateDir) {
		// Relative to the current folder they would lie in the workspace.
		return h, fault.New(fault.SandboxUnavailable, "this account has no home, so there is no place for Tether's own files").
			WithHint("set XDG_STATE_HOME to a folder of yours outside of the workspace")
	}
	if !filepath.IsAbs(h.ConfigDir) {
		h.ConfigDir = ""
	}
	return h, nil
}

// Folders returns Tether's own folders for a user: state and configuration.
// The XDG variables are honoured where they are absolute, as their
// specification asks.
func Folders(home string, environ []string) (state, config string) {
	state, config = filepath.Join(home, ".local/state"), filepath.Join(home, ".config")
	if v := lookup(environ, "XDG_STATE_HOME"); filepath.IsAbs(v) {
		state = v
	}
	if v := lookup(environ, "XDG_CONFIG_HOME"); filepath.IsAbs(v) {
		config = v
	}
	return filepath.Join(state, "tether"), filepath.Join(config, "tether")
}

func lookup(environ []string, name string) string {
	for _, kv := range environ {
		if len(kv) > len(name) && kv[len(name)] == '=' && kv[:len(name)] == name {
			return kv[len(name)+1:]
		}
	}
	return ""
}

// OwnFolders returns Tether's own folders of the calling user. As everywhere,
// the home is that of the account and not $HOME. Without one they may come out
// relative: then there are none.
func OwnFolders(environ []string) (state, config string) {
	raw, _ := accounts()
	account, _ := toolchain.Account(raw, uint32(os.Geteuid()))
	return Folders(account.Home, environ)
}

func accountName(uid uint32) string {
	raw, err := accounts()
	if err != nil {
		return ""
	}
	account, _ := toolchain.Account(raw, uid)
	return account.Name
}

// bareExplicit says whether git takes bare repositories only where it is told to.
func bareExplicit(entries []gitmeta.Entry) bool {
	explicit := false
	for _, e := range entries {
		if e.Name == "safe.barerepository" {
			explicit = e.Value == "explicit"
		}
	}
	return explicit
}
