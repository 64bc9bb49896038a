package local

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/internal/enforce/bwrap"
	"github.com/tether-sandbox/tether/internal/enforce/landlock"
	"github.com/tether-sandbox/tether/internal/plan/gitmeta"
)

// Fact is one thing found of this machine.
type Fact struct {
	What string
	Good bool
	Fix  string
}

// appArmorProfile lets this program make user namespaces where the
// distribution restricts them to named programs (Ubuntu 23.10 and newer).
const appArmorProfile = `sudo tee /etc/apparmor.d/tether <<'EOF'
abi <abi/4.0>,
include <tunables/global>
profile tether %s flags=(unconfined) {
  userns,
}
EOF
sudo apparmor_parser -r /etc/apparmor.d/tether`

// Facts looks at the kernel and its settings, and says what each means.
func Facts() []Fact {
	var facts []Fact
	add := func(good bool, what, fix string) { facts = append(facts, Fact{what, good, fix}) }

	var u unix.Utsname
	if unix.Uname(&u) == nil {
		release := unix.ByteSliceToString(u.Release[:])
		var major, minor int
		_, _ = fmt.Sscanf(release, "%d.%d", &major, &minor)
		add(major > 5 || major == 5 && minor >= 14, "Linux "+release+" (native needs 5.14)", "")
	}
	switch v := setting("/proc/sys/user/max_user_namespaces"); v {
	case "", "0":
		add(false, "user namespaces are off (user.max_user_namespaces is 0)", "sudo sysctl user.max_user_namespaces=15000")
	default:
		add(true, "user namespaces are allowed", "")
	}
	if setting("/proc/sys/kernel/unprivileged_userns_clone") == "0" {
		add(false, "ordinary users may not make user namespaces", "sudo sysctl kernel.unprivileged_userns_clone=1")
	}
	if setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1" {
		exe, _ := os.Executable()
		add(false, "AppArmor lets only named programs make user namespaces", fmt.Sprintf(appArmorProfile, exe))
	}
	if strings.Contains("\n"+setting("/proc/self/status"), "\nSeccomp:\t2") {
		add(false, "a system call filter is around us, as in a container",
			"start the container with --security-opt seccomp=unconfined --security-opt systempaths=unconfined")
	}
	switch abi, err := landlock.ABI(); {
	case err != nil:
		add(false, "no Landlock: abstract sockets of the host stay reachable unless the network is off", "boot with lsm=landlock,... on a kernel 6.12 or newer")
	case abi < scopesABI:
		add(false, fmt.Sprintf("Landlock ABI %d has no scopes (ABI 6, Linux 6.12): abstract sockets of the host stay reachable unless the network is off", abi), "")
	default:
		add(true, fmt.Sprintf("Landlock ABI %d", abi), "")
	}
	if path, err := bwrap.Find(); err != nil {
		add(true, "no bwrap (needed only where native is not allowed): "+err.Error(), "")
	} else {
		add(true, "bwrap at "+path, "")
	}
	if host, err := caller(os.Environ()); err == nil && !bareExplicit(gitmeta.HostEntries(host.Home, filepath.Dir(host.ConfigDir))) {
		add(false, "git takes any folder that looks like a bare repository for one, and runs what its config says",
			"git config --global safe.bareRepository explicit")
	}
	return facts
}

func bareExplicit(entries []gitmeta.Entry) bool {
	explicit := false
	for _, e := range entries {
		if e.Name == "safe.barerepository" {
			explicit = e.Value == "explicit"
		}
	}
	return explicit
}

func setting(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
