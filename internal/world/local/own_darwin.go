package local

import (
	"crypto/rand"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/plan"
)

// ownJail is the provider of this system.
const ownJail = enforce.Seatbelt

// Jails are the providers of this system.
func Jails() []enforce.Kind { return []enforce.Kind{enforce.Seatbelt} }

// runFolder names a folder for what is private to one run, which is made when
// the run begins: in the user's own folder for temporary files, which no profile
// shows, so that paths of sockets in it stay short.
func runFolder() (string, error) {
	top, err := filepath.EvalSymlinks(os.TempDir())
	if err == nil {
		top, err = filepath.Abs(top)
	}
	if err != nil {
		return "", fault.Wrap(fault.SandboxUnavailable, "there is no folder for temporary files", err).
			WithHint("unset TMPDIR, or set it to a folder that is there")
	}
	return filepath.Join(top, "tether-"+strings.ToLower(rand.Text()[:12])), nil
}

// accounts is the account database in the form of passwd(5): the caller as the
// directory service knows it, and an account for each home that there is.
func accounts() (string, error) {
	uid := os.Geteuid()
	u, err := user.LookupId(strconv.Itoa(uid))
	if err != nil {
		return "", err
	}
	var b strings.Builder
	line := func(name, uid, gid, home string) {
		if !strings.ContainsAny(name+home, ":\n") {
			fmt.Fprintf(&b, "%s:*:%s:%s::%s:\n", name, uid, gid, home)
		}
	}
	line(u.Username, u.Uid, u.Gid, u.HomeDir)
	// Others keep their homes here; whose they are does not matter.
	homes, err := os.ReadDir("/Users")
	if err != nil {
		return "", err
	}
	for _, h := range homes {
		if name := h.Name(); name != "Shared" && !strings.HasPrefix(name, ".") {
			line(name, "60000", "60000", "/Users/"+name)
		}
	}
	return b.String(), nil
}

// showNames has nothing to do: the profile closes the resolver, and the gate
// resolves what the proxy is asked for.
func showNames(*plan.Plan) {}
