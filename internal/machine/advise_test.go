package machine

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden file")

// plain is a machine with nothing in the way.
func plain(edit func(*Facts)) Facts {
	f := Facts{OS: "linux", Release: "6.12.1", Distribution: "debian", Program: "/usr/local/bin/tether", MaxUserNS: "96000", LandlockABI: 6,
		LSM: "capability,landlock,yama", CgroupV2: true, Controllers: "cpu memory pids", Delegated: "cpuset cpu io memory pids", Manager: true, Systemd: true,
		Groups: Groups{Memory: true, Processes: true, Time: true, Means: "a scope of systemd's"}, Bwrap: "/usr/bin/bwrap", BareExplicit: true}
	edit(&f)
	return f
}

var machines = []struct {
	name  string
	facts Facts
	blame string // the start of what keeps native from working; empty: nothing
	hint  string
}{
	{"a machine with everything", plain(func(*Facts) {}), "", ""},
	{"Ubuntu 24.04, AppArmor's limit", plain(func(f *Facts) {
		f.Release, f.Distribution, f.AppArmorUserNS, f.UserNSClone, f.LandlockABI = "6.8.0-45-generic", "ubuntu", "1", "1", 4
		f.Program = "/home/u/my tools/tether{1}"
	}), "AppArmor", "tether doctor --fix"},
	{"the same as root", plain(func(f *Facts) { f.AppArmorUserNS, f.UserNSClone, f.Privileged = "1", "0", true }), "", ""},
	{"Debian, unprivileged_userns_clone=0", plain(func(f *Facts) { f.UserNSClone = "0" }), "ordinary users", "sudo sysctl -w kernel.unprivileged_userns_clone=1"},
	{"RHEL, max_user_namespaces=0", plain(func(f *Facts) {
		f.Release, f.Distribution, f.MaxUserNS, f.LandlockABI, f.LandlockOff, f.LSM = "5.14.0-503.el9", "rhel", "0", 0, true, "lockdown,capability,yama,selinux,bpf"
		f.Bwrap, f.BwrapWhy = "", "it is not installed"
	}), "user namespaces are off", "sudo sysctl -w user.max_user_namespaces=15000"},
	{"Docker's default filter", plain(func(f *Facts) {
		f.Filter, f.CoveredProc, f.Container, f.Delegated, f.Systemd, f.Groups = true, true, "docker", "", false, Groups{Why: "/sys/fs/cgroup is not the caller's"}
	}),
		"a system call filter", "docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined IMAGE"},
	{"Kubernetes, /proc covered alone", plain(func(f *Facts) { f.CoveredProc, f.Container = true, "kubernetes" }), "the kernel refuses a fresh /proc", "kubectl patch deployment NAME -p"},
	{"an unknown container", plain(func(f *Facts) { f.Filter = true }), "a system call filter", ""},
	{"Debian 11, Linux 5.10", plain(func(f *Facts) {
		f.Release, f.LandlockABI, f.UserNSClone, f.Delegated = "5.10.0-33-amd64", 0, "1", "pids"
		f.Groups = Groups{Why: "it is not delegated"}
	}), "Linux 5.10.0", ""},
	{"no landlock in lsm=", plain(func(f *Facts) { f.LandlockABI, f.LandlockOff, f.LSM = 0, true, "capability,yama,apparmor" }), "", ""},
	{"no user namespaces in the kernel", plain(func(f *Facts) { f.MaxUserNS = "" }), "this kernel is built", ""},
	{"WSL 1", plain(func(f *Facts) { f.Release, f.WSLName, f.MaxUserNS = "4.4.0-19041-Microsoft", "Ubuntu", "" }), "this is WSL 1", "wsl.exe --set-version Ubuntu 2"},
	{"WSL 2", plain(func(f *Facts) { f.Release, f.WSLName = "5.15.153.1-microsoft-standard-WSL2", "Ubuntu" }), "", ""},
	{"gVisor", plain(func(f *Facts) {
		f.Release, f.Version, f.LandlockABI, f.CgroupV2 = "4.4.0", "#1 SMP Sun Jan 10 15:06:54 PST 2016", 0, false
	}), "this is gVisor", ""},
	{"cgroup v1, git careless", plain(func(f *Facts) {
		f.CgroupV2, f.BareExplicit, f.Distribution, f.Controllers, f.Groups = false, false, "fedora", "", Groups{Why: "/sys/fs/cgroup/memory is not the caller's"}
	}), "", ""},
	{"cgroup v1, ours", plain(func(f *Facts) {
		f.CgroupV2, f.Controllers, f.Systemd, f.Groups = false, "", false, Groups{Memory: true, Time: true, Means: "control groups of version 1"}
	}), "", ""},
	{"nobody logged in", plain(func(f *Facts) {
		f.Delegated, f.Manager, f.Groups = "", false, Groups{Why: "no systemd of the user's runs"}
	}), "", ""},
	{"no bus of the user's", plain(func(f *Facts) { f.Groups = Groups{Why: "systemd cannot be asked"} }), "", ""},
	{"no bus of the system's", plain(func(f *Facts) { f.Privileged, f.Groups = true, Groups{Why: "systemd cannot be asked"} }), "", ""},
	{"no memory controller", plain(func(f *Facts) {
		f.Controllers, f.Groups = "cpu pids", Groups{Why: "there are no control groups with a memory controller"}
	}), "", ""},
	{"no systemd", plain(func(f *Facts) {
		f.Systemd, f.Manager, f.Delegated, f.Groups = false, false, "", Groups{Why: "/sys/fs/cgroup is not the caller's", Way: "sudo tether run --max-memory 2G -- CMD"}
	}), "", ""},
	{"macOS", Facts{OS: "darwin"}, "", ""},
	{"macOS without sandbox-exec", Facts{OS: "darwin", SandboxExecWhy: "no /usr/bin/sandbox-exec to be trusted", BareExplicit: true}, "", ""},
	{"Windows", Facts{OS: "windows"}, "there is no provider", "run tether on Linux"},
}

// TestAdvise holds what is said of each machine to a file, and what is blamed
// for native to a word.
func TestAdvise(t *testing.T) {
	var b strings.Builder
	for _, m := range machines {
		fmt.Fprintf(&b, "# %s\n", m.name)
		for _, a := range Advise(m.facts) {
			mark := "ok "
			if !a.Good {
				mark = "low"
			}
			fmt.Fprintf(&b, "%s %s\n", mark, a.What)
			for _, line := range []struct{ name, text string }{{"fix", a.Fix}, {"then", a.Then}, {"blocks", strings.Join(a.Blocks, " ")},
				{"raises", strings.Trim(fmt.Sprint(a.Raises), "[]")}} {
				if line.text != "" {
					fmt.Fprintf(&b, "    %s: %s\n", line.name, strings.ReplaceAll(line.text, "\n", "\n      | "))
				}
			}
			if a.Good && (len(a.Blocks) > 0 || len(a.Raises) > 0 && a.Fix == "") {
				t.Errorf("%s: %q is good and stands in the way", m.name, a.What)
			}
		}
		b.WriteByte('\n')
		a, blamed := Blame(m.facts, "native")
		if blamed != (m.blame != "") || !strings.HasPrefix(a.What, m.blame) || !strings.HasPrefix(a.Hint(), m.hint) || m.hint == "" && a.Hint() != "" {
			t.Errorf("%s: blamed %v %q, hint %q; want %q, %q", m.name, blamed, a.What, a.Hint(), m.blame, m.hint)
		}
	}
	path := filepath.Join("testdata", "machines.golden")
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || b.String() != string(want) {
		t.Errorf("got\n%s\nwant\n%s(%v; go test ./internal/machine -update)", b.String(), want, err)
	}
}

// TestLook: what is found of this machine is about this machine.
func TestLook(t *testing.T) {
	f := Look()
	if f.OS == "linux" && (f.Release == "" || f.Version == "" || f.Program == "") {
		t.Errorf("got %+v, want a kernel and a program", f)
	}
	if len(Advise(f)) == 0 {
		t.Error("got no advice")
	}
}
