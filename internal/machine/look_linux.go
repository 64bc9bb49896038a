package machine

import (
	"bufio"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Look finds the facts of this machine. It starts nothing; what it cannot read
// stays zero. Bwrap and BareExplicit are left to the caller.
func Look() Facts {
	f := Facts{OS: "linux", WSLName: os.Getenv("WSL_DISTRO_NAME")}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		f.Release, f.Version = unix.ByteSliceToString(u.Release[:]), unix.ByteSliceToString(u.Version[:])
	}
	f.Program, _ = os.Executable()
	f.MaxUserNS = setting("/proc/sys/user/max_user_namespaces")
	f.UserNSClone = setting("/proc/sys/kernel/unprivileged_userns_clone")
	f.AppArmorUserNS = setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
	status := "\n" + setting("/proc/self/status")
	f.Filter = strings.Contains(status, "\nSeccomp:\t2")
	if _, caps, ok := strings.Cut(status, "\nCapEff:\t"); ok {
		caps, _, _ = strings.Cut(caps, "\n")
		n, _ := strconv.ParseUint(caps, 16, 64)
		f.Privileged = n>>unix.CAP_SYS_ADMIN&1 == 1
	}
	f.Distribution = distribution(setting("/etc/os-release"))
	f.Container, f.CoveredProc = container(), coveredProc()
	f.landlock()
	f.cgroups()
	return f
}

// Install is how this machine's distribution installs a package; empty: we do
// not know.
func Install(name string) string { return install(distribution(setting("/etc/os-release")), name) }

func container() string {
	for _, c := range [...]struct{ path, name string }{{"/.dockerenv", "docker"}, {"/run/.containerenv", "podman"}} {
		if _, err := os.Lstat(c.path); err == nil {
			return c.name
		}
	}
	if os.Getenv("KUBERNETES_SERVICE_HOST") != "" {
		return "kubernetes"
	}
	return os.Getenv("container") // of systemd-nspawn, lxc and others
}

// coveredProc says whether anything but what every machine has is mounted in
// /proc.
func coveredProc() bool {
	file, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return false
	}
	defer file.Close()
	for s := bufio.NewScanner(file); s.Scan(); {
		fields := strings.Fields(s.Text())
		if len(fields) > 4 && strings.HasPrefix(fields[4], "/proc/") && fields[4] != "/proc/sys/fs/binfmt_misc" {
			return true
		}
	}
	return false
}

// distribution reads os-release(5): what it is, or the first that it is like
// whose programs we know.
func distribution(text string) string {
	id, like := "", ""
	for line := range strings.Lines(text) {
		k, v, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch v = strings.Trim(v, `"'`); k {
		case "ID":
			id = v
		case "ID_LIKE":
			like = v
		}
	}
	for name := range strings.FieldsSeq(id + " " + like) {
		if install(name, "x") != "" {
			return name
		}
	}
	return id
}

func (f *Facts) landlock() {
	const version = 1 // LANDLOCK_CREATE_RULESET_VERSION
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, version)
	switch errno {
	case 0:
		f.LandlockABI = int(abi)
	case unix.EOPNOTSUPP:
		f.LandlockOff = true
	}
	f.LSM = setting("/sys/kernel/security/lsm")
}

func (f *Facts) cgroups() {
	var st unix.Statfs_t
	f.CgroupV2 = unix.Statfs("/sys/fs/cgroup", &st) == nil && st.Type == unix.CGROUP2_SUPER_MAGIC
	uid := strconv.Itoa(os.Getuid())
	f.Controllers = setting("/sys/fs/cgroup/cgroup.controllers")
	manager := "/sys/fs/cgroup/user.slice/user-" + uid + ".slice/user@" + uid + ".service"
	f.Delegated, f.Manager = setting(manager+"/cgroup.controllers"), there(manager)
	f.Systemd = there("/run/systemd/system") // sd_booted(3)
}

func there(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func setting(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
