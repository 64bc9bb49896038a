//go:build linux || darwin

package local

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/world"
	"github.com/tether-sandbox/tether/policy"
)

// Place says where a session happens. It writes nothing.
func (World) Place(pol policy.Policy, environ []string) (world.Place, error) {
	host, err := caller(environ)
	if err != nil {
		return world.Place{}, err
	}
	if overlap([]string{host.StateDir}, searchRoots(pol)) {
		return world.Place{}, fault.New(fault.SandboxBadWorkspace, "Tether's own files lie in what commands can write").
			WithHint("set XDG_STATE_HOME to a folder outside of it")
	}
	path, err := World{}.Locate(pol.Workspace)
	if err != nil {
		return world.Place{}, fault.Wrap(fault.SandboxBadWorkspace, "cannot find the workspace", err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return world.Place{}, fault.Wrap(fault.SandboxBadWorkspace, "cannot look at the workspace", err)
	}
	p := world.Place{Workspace: path, State: host.StateDir}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		sum := sha256.Sum256(fmt.Appendf(nil, "%d:%d:%s", st.Dev, st.Ino, path))
		p.Key = hex.EncodeToString(sum[:8])
	}
	return p, nil
}

// Locate resolves every link of a path.
func (World) Locate(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	return filepath.Abs(real)
}

// State returns Tether's own folder for the caller.
func State(environ []string) (string, error) {
	host, err := caller(environ)
	return host.StateDir, err
}

// overlap says whether a folder of one list lies in one of the other.
func overlap(a, b []string) bool {
	for _, x := range a {
		for _, y := range b {
			if x == y || strings.HasPrefix(x, y+"/") || strings.HasPrefix(y, x+"/") {
				return true
			}
		}
	}
	return false
}

// searchRoots are the folders that a policy searches, as far as they can be
// named before a plan: canonical.
func searchRoots(pol policy.Policy) []string {
	var roots []string
	for _, path := range append([]string{pol.Workspace}, pol.Write...) {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			roots = append(roots, real)
		}
	}
	return roots
}
