package machine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tether-sandbox/tether/policy"
)

// onceOnly is said of a fix whose first line changes it now and whose other
// lines keep it.
const onceOnly = "the first line changes it now, the second keeps it over a restart"

// Advise says what facts mean, the most important first.
func Advise(f Facts) []Advice {
	if f.OS == "darwin" {
		return mac(f)
	}
	if f.OS != "linux" {
		return []Advice{{What: "there is no provider for " + f.OS + " in this build", Fix: "run tether on Linux", Blocks: everyone()}}
	}
	out := kernel(f)
	if slices.Contains(out[0].Blocks, "landlock") {
		return out // nothing else counts
	}
	for _, rule := range []func(Facts) []Advice{userNamespaces, surroundings, landlock, cgroups, programs} {
		out = append(out, rule(f)...)
	}
	return out
}

// namespaced are the providers that need user namespaces.
func namespaced() []string { return []string{"native", "bwrap"} }

func everyone() []string { return []string{"native", "bwrap", "landlock"} }

func kernel(f Facts) []Advice {
	switch {
	case strings.HasSuffix(f.Release, "-Microsoft"):
		name := f.WSLName
		if name == "" {
			name = "DISTRIBUTION"
		}
		return []Advice{{What: "this is WSL 1, which has no Linux kernel", Fix: "wsl.exe --set-version " + name + " 2",
			Then: "type it in Windows", Blocks: everyone()}}
	case strings.Contains(f.Version, "Sun Jan 10 15:06:54 PST 2016"):
		// What gVisor says of itself, whatever it runs on.
		return []Advice{{What: "this is gVisor, which has neither the mount calls of Linux 5.12 nor Landlock",
			Then: "start the container with another runtime, such as runc", Blocks: everyone()}}
	}
	var major, minor int
	_, _ = fmt.Sscanf(f.Release, "%d.%d", &major, &minor)
	a := Advice{What: "Linux " + f.Release + " (native needs 5.14)", Good: major > 5 || major == 5 && minor >= 14}
	if !a.Good {
		a.Blocks = []string{"native"}
		a.Then = "boot a newer kernel; bwrap works with this one"
	}
	return []Advice{a}
}

func userNamespaces(f Facts) []Advice {
	sysctl := func(setting string) (fix, then string) {
		return "sudo sysctl -w " + setting + "\necho " + setting + " | sudo tee -a /etc/sysctl.d/60-tether.conf", onceOnly
	}
	var out []Advice
	switch f.MaxUserNS {
	case "":
		out = append(out, Advice{What: "this kernel is built without user namespaces", Blocks: namespaced()})
	case "0":
		a := Advice{What: "user namespaces are off (user.max_user_namespaces is 0)", Blocks: namespaced()}
		a.Fix, a.Then = sysctl("user.max_user_namespaces=15000")
		out = append(out, a)
	default:
		out = append(out, Advice{What: "user namespaces are allowed", Good: true})
	}
	if f.UserNSClone == "0" && !f.Privileged {
		a := Advice{What: "ordinary users may not make user namespaces (kernel.unprivileged_userns_clone is 0)", Blocks: namespaced()}
		a.Fix, a.Then = sysctl("kernel.unprivileged_userns_clone=1")
		out = append(out, a)
	}
	if f.AppArmorUserNS == "1" && !f.Privileged {
		out = append(out, Advice{What: "AppArmor lets only named programs make user namespaces (kernel.apparmor_restrict_unprivileged_userns is 1)",
			Blocks: namespaced(), Fix: fmt.Sprintf(appArmorProfile, attachment(f.Program))})
	}
	return out
}

// appArmorProfile names this program where the distribution restricts user
// namespaces to named ones (Ubuntu 23.10 and newer).
const appArmorProfile = `sudo tee /etc/apparmor.d/tether <<'EOF'
abi <abi/4.0>,
include <tunables/global>
profile tether %s flags=(unconfined) {
  userns,
}
EOF
sudo apparmor_parser -r /etc/apparmor.d/tether`

// attachment quotes a path for a profile, in which some characters are patterns.
func attachment(path string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(path) {
		if strings.IndexByte(`"\*?[]{}^@`, path[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(path[i])
	}
	b.WriteByte('"')
	return b.String()
}

func surroundings(f Facts) []Advice {
	var out []Advice
	if f.Filter {
		a := inContainer(f)
		a.What = "a system call filter is around us, as in " + a.What
		out = append(out, a)
	}
	if f.CoveredProc {
		a := Covered(f)
		if f.Filter {
			a.Fix, a.Then = "", "as before"
		}
		out = append(out, a)
	}
	return out
}

// Covered is the advice where the kernel refuses a fresh /proc.
func Covered(f Facts) Advice {
	a := inContainer(f)
	a.What = "the kernel refuses a fresh /proc, since parts of the outer one are covered, as in " + a.What
	return a
}

// inContainer says how a container is started that leaves us enough. What is in
// what.
func inContainer(f Facts) Advice {
	a := Advice{What: f.Container, Blocks: namespaced(), Then: "type it where the container is started, or run tether outside of it"}
	switch f.Container {
	case "":
		a.What = "a container"
	case "docker":
		a.Fix = "docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined IMAGE"
	case "podman":
		a.Fix = "podman run --security-opt seccomp=unconfined --security-opt unmask=ALL IMAGE"
	case "kubernetes":
		a.Fix = `kubectl patch deployment NAME -p '{"spec":{"template":{"spec":{"hostUsers":false,"containers":[{"name":"NAME","securityContext":{"seccompProfile":{"type":"Unconfined"},"procMount":"Unmasked"}}]}}}}'`
	}
	return a
}

func landlock(f Facts) []Advice {
	const open = "abstract sockets of the host stay reachable unless the network is off"
	raises, blocks := []policy.Guarantee{policy.IPC}, []string{"landlock"}
	switch {
	case f.LandlockABI >= 6:
		return []Advice{{What: fmt.Sprintf("Landlock ABI %d", f.LandlockABI), Good: true}}
	case f.LandlockABI > 0:
		return []Advice{{What: fmt.Sprintf("Landlock ABI %d has no scopes (ABI 6, Linux 6.12): %s", f.LandlockABI, open),
			Then: "boot Linux 6.12 or newer", Raises: raises}}
	case f.LandlockOff:
		lsm := []string{"landlock"}
		for name := range strings.SplitSeq(f.LSM, ",") {
			if name != "" && name != "capability" && name != "landlock" {
				lsm = append(lsm, name)
			}
		}
		return []Advice{{What: "the kernel was started without Landlock: " + open, Then: "restart the machine", Raises: raises, Blocks: blocks,
			Fix: bootWith(f.Distribution, "lsm="+strings.Join(lsm, ","))}}
	}
	return []Advice{{What: "no Landlock (Linux 5.13): " + open, Then: "boot Linux 6.12 or newer", Raises: raises, Blocks: blocks}}
}

// bootWith adds a parameter to the kernel's command line.
func bootWith(distribution, param string) string {
	switch distribution {
	case "fedora", "rhel", "centos":
		return "sudo grubby --update-kernel=ALL --args=" + param
	}
	return `sudo sed -i 's/^GRUB_CMDLINE_LINUX="/&` + param + ` /' /etc/default/grub` + "\nsudo update-grub"
}

// cgroups says what can be limited for a whole tree, and how the rest comes to be.
func cgroups(f Facts) []Advice {
	raises, g := []policy.Guarantee{policy.LimitsGuarantee}, f.Groups
	if g.Memory {
		held := "memory"
		for _, more := range [...]struct {
			is   bool
			name string
		}{{g.Processes, "processes"}, {g.Time, "processor time"}} {
			if more.is {
				held += ", " + more.name
			}
		}
		return []Advice{{What: "held for a whole command by " + g.Means + ": " + held, Good: true, Raises: raises,
			Fix: "tether run --max-memory 2G -- CMD"}}
	}
	a := Advice{What: "memory cannot be limited: " + g.Why, Raises: raises, Then: "log in again"}
	has := func(list, name string) bool { return slices.Contains(strings.Fields(list), name) }
	switch {
	case f.CgroupV2 && f.Container == "" && !has(f.Controllers, "memory"):
		a.Fix, a.Then = bootWith(f.Distribution, "cgroup_enable=memory"), "restart the machine"
	case f.Container == "" && f.Systemd && !f.CgroupV2:
		a.Fix, a.Then = bootWith(f.Distribution, "systemd.unified_cgroup_hierarchy=1"), "restart the machine"
	case f.Systemd && f.CgroupV2 && !f.Privileged && !f.Manager:
		a.Fix = `sudo loginctl enable-linger "$(id -un)"`
	case f.Systemd && f.CgroupV2 && !f.Privileged && !(has(f.Delegated, "memory") && has(f.Delegated, "pids")):
		a.Fix = `sudo mkdir -p /etc/systemd/system/user@.service.d
printf '[Service]\nDelegate=cpu memory pids\n' | sudo tee /etc/systemd/system/user@.service.d/tether.conf
sudo systemctl daemon-reload`
	case f.Systemd && f.CgroupV2 && (f.Distribution == "debian" || f.Distribution == "ubuntu"):
		a.Fix = install(f.Distribution, "dbus-user-session")
		if f.Privileged {
			a.Fix = install(f.Distribution, "dbus")
		}
	case f.Container != "":
		a.Then = "limit the container's memory, or give it control groups of its own that it can write"
	case g.Way != "":
		a.Fix, a.Then = g.Way, ""
	default:
		a.Then = ""
	}
	return []Advice{a}
}

func programs(f Facts) []Advice {
	var out []Advice
	if f.Bwrap != "" {
		out = append(out, Advice{What: "bwrap at " + f.Bwrap, Good: true})
	} else {
		out = append(out, Advice{What: "no bwrap (needed only where native is not allowed): " + f.BwrapWhy, Good: true,
			Fix: install(f.Distribution, "bubblewrap")})
	}
	return append(out, repositories(f)...)
}

func repositories(f Facts) []Advice {
	if f.BareExplicit {
		return nil
	}
	return []Advice{{What: "git takes any folder that looks like a bare repository for one, and runs what its config says",
		Fix: "git config --global safe.bareRepository explicit"}}
}

// install is how a distribution installs a package; empty: we do not know.
func install(distribution, name string) string {
	switch distribution {
	case "fedora", "rhel", "centos":
		return "sudo dnf install " + name
	case "arch":
		return "sudo pacman -S " + name
	case "alpine":
		return "sudo apk add " + name
	case "suse", "opensuse":
		return "sudo zypper install " + name
	case "debian", "ubuntu":
		return "sudo apt-get install " + name
	}
	return ""
}
