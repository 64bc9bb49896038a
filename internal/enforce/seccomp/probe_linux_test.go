package seccomp_test

import (
	"encoding/json"
	"os"
	"runtime"
	"slices"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/enforce/seccomp"
)

// A probe makes a system call that fails without harm when it passes, and
// fails in another way when the filter refuses it.
type probe struct {
	name string
	nr   int // negative where the architecture lacks the call
	args [6]uint64
	// open says that the filter lets it pass.
	open bool
}

type result struct {
	Errno   int
	Success bool
}

func (p probe) try() result {
	a := p.args
	r, _, errno := unix.RawSyscall6(uintptr(p.nr), uintptr(a[0]), uintptr(a[1]), uintptr(a[2]), uintptr(a[3]), uintptr(a[4]), uintptr(a[5]))
	switch p.name {
	case "socket tcp", "socket tcp6", "socket unix", "socket route", "socket raw", "memfd_create":
		if errno == 0 {
			unix.Close(int(r))
		}
	case "personality READ_IMPLIES_EXEC", "personality of gdb":
		unix.RawSyscall(unix.SYS_PERSONALITY, 0, 0, 0)
	}
	return result{int(errno), errno == 0}
}

const (
	bad  = 1          // an address that nothing is mapped at
	lost = 0x7ffffffe // a process that there is not
	none = ^uint64(0) // a descriptor that is not open, flags that do not exist
)

// nr returns the number of a call in the table.
func nr(name string) int {
	for _, r := range table() {
		if n, ok := r.Number(runtime.GOARCH); ok && r.Call == name {
			return int(n)
		}
	}
	return -1
}

func probes() []probe {
	refused := func(name string, args ...uint64) probe {
		p := probe{name: name, nr: nr(name)}
		copy(p.args[:], args)
		return p
	}
	called := func(as string, p probe) probe { p.name += " " + as; return p }
	open := func(name string, nr int, args ...uint64) probe {
		p := probe{name: name, nr: nr, open: true}
		copy(p.args[:], args)
		return p
	}
	const (
		thread = 0x10000 // CLONE_THREAD without CLONE_SIGHAND is invalid
		noFlag = 1       // unshare knows no such flag
		noType = 15      // socket knows no such type
	)
	list := []probe{
		refused("mount", 0, bad), refused("umount2", bad, none), refused("pivot_root", bad, bad),
		refused("open_tree", none, bad, none), refused("move_mount", none, bad, none, bad, none),
		refused("fsopen", bad, none), refused("fsconfig", none, none), refused("fsmount", none, none),
		refused("fspick", none, bad, none), refused("mount_setattr", none, bad, none, bad, 1),
		refused("open_tree_attr", none, bad, none, bad, 1),

		called("newuser", refused("clone", 0x10000000|thread)), called("newpid", refused("clone", 0x20000000|thread)),
		called("newnet", refused("clone", 0x40000000|thread)), called("newipc", refused("clone", 0x08000000|thread)),
		called("newuts", refused("clone", 0x04000000|thread)), called("newcgroup", refused("clone", 0x02000000|thread)),
		called("newns", refused("clone", 0x20000|thread)),
		refused("clone3", 0, 0),
		called("newuser", refused("unshare", 0x10000000|noFlag)), called("newtime", refused("unshare", 0x80|noFlag)),
		called("newns", refused("unshare", 0x20000|noFlag)), called("future", refused("unshare", 1<<40)),
		refused("setns", none, 0), refused("chroot", bad), refused("sethostname", bad, none),
		refused("setdomainname", bad, none), refused("listns", bad),

		refused("io_uring_setup", 0, bad), refused("io_uring_enter", none, 0, 0, none), refused("io_uring_register", none, none),
		refused("bpf", none, bad, 0), refused("perf_event_open", bad, 0, none, none, none), refused("userfaultfd", none),
		refused("add_key", bad), refused("request_key", bad), refused("keyctl", none), refused("fanotify_init", none),
		refused("open_by_handle_at", none, bad), called("listener", refused("seccomp", 1, 8, 0)),
		refused("lookup_dcookie", 0, bad), refused("nfsservctl", none), refused("uselib", bad), refused("modify_ldt", 0, bad, 0),

		refused("process_vm_readv", 1, bad, 1, bad, 1, none), refused("process_vm_writev", 1, bad, 1, bad, 1, none),
		refused("pidfd_getfd", none, none, none), called("READ_IMPLIES_EXEC", refused("personality", 0x400000)),
		called("core", refused("setrlimit", 4, bad)), called("core", refused("prlimit64", 0, 4, bad)),
		called("core, high address", refused("prlimit64", 0, 4, 1<<32)),
		called("PR_SET_MM", refused("prctl", 35, none, none, none, none)),

		refused("kexec_load", 0, 0, 0, none), refused("kexec_file_load", none, none, 0, 0, none),
		refused("init_module", bad, 1, bad), refused("finit_module", none, 0, none), refused("delete_module", bad),
		refused("quotactl", none), refused("quotactl_fd", none, none), refused("swapon", bad, none), refused("swapoff", bad),
		refused("reboot", 0, 0, 0), refused("settimeofday", bad), refused("clock_settime", none, bad), refused("acct", bad),
		refused("syslog", 99), refused("iopl", 99), refused("ioperm", none, none, 1), refused("vhangup"),

		refused("openat2", none, bad, bad, 24),
		called("setuid", refused("chmod", bad, 0o4755)), called("setuid", refused("fchmod", none, 0o4755)),
		called("setuid", refused("fchmodat", none, bad, 0o4755)), called("setuid", refused("fchmodat2", none, bad, 0o4755, 0)),
		called("setuid", refused("open", bad, 0o100, 0o4755)), called("setuid", refused("openat", none, bad, 0o100, 0o4755)),
		called("setuid tmpfile", refused("openat", none, bad, 0o20200002, 0o4755)), called("setuid", refused("creat", bad, 0o4755)),
		called("setuid", refused("mknod", bad, 0o104755, 0)), called("setuid", refused("mknodat", none, bad, 0o104755, 0)),

		called("device", refused("mknod", bad, 0o20666, 0x103)), called("device", refused("mknodat", none, bad, 0o20666, 0x103)),
		called("disk", refused("mknodat", none, bad, 0o60666, 0x103)),
		called("TIOCSTI", refused("ioctl", none, 0x5412)), called("TIOCSTI high", refused("ioctl", none, 0x5412|1<<32)),
		called("TIOCLINUX", refused("ioctl", none, 0x541c)), called("TIOCSETD", refused("ioctl", none, 0x5423)),
		called("a snapshot", refused("ioctl", none, 0x50009417, bad)), called("a subvolume", refused("ioctl", none, 0x4020bc10, bad)),
		called("a link to content", refused("ioctl", none, 0x40186f04, bad)), open("ioctl FICLONE", unix.SYS_IOCTL, none, 0x40049409, none),

		called("vsock", refused("socket", 40, noType)), called("packet", refused("socket", 17, noType)),
		called("alg", refused("socket", 38, noType)), called("key", refused("socket", 15, noType)),
		called("bluetooth", refused("socket", 31, noType)), called("can", refused("socket", 29, noType)),
		called("xdp", refused("socket", 44, noType)), called("tipc", refused("socket", 30, noType)),
		called("audit", refused("socket", 16, noType, 9)), called("netfilter", refused("socket", 16, noType, 12)),
		called("raw", refused("socket", 2, 3, 1)), called("odd type", refused("socket", 2, noType)),
		called("odd protocol", refused("socket", 2, 1, 999)), called("pair", refused("socketpair", 2, noType)),

		open("getpid", unix.SYS_GETPID), open("ptrace", unix.SYS_PTRACE, 2, none), open("kcmp", unix.SYS_KCMP, none, none, 0),
		open("name_to_handle_at", unix.SYS_NAME_TO_HANDLE_AT, none, bad), open("statmount", unix.SYS_STATMOUNT, bad),
		open("listmount", unix.SYS_LISTMOUNT, bad), open("adjtimex", unix.SYS_ADJTIMEX, bad),
		open("seccomp probe", unix.SYS_SECCOMP, 2, 0, bad), open("seccomp filter", unix.SYS_SECCOMP, 1, 0, 0),
		open("landlock version", unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, 1), open("memfd_create", unix.SYS_MEMFD_CREATE, bad),
		open("unshare files", unix.SYS_UNSHARE, 0x400), open("personality query", unix.SYS_PERSONALITY, 0xffffffff),
		open("personality of gdb", unix.SYS_PERSONALITY, 0x40000), open("prctl", unix.SYS_PRCTL, 3),
		open("prlimit64 asks", unix.SYS_PRLIMIT64, 0, 4, 0, bad), open("setrlimit files", nr("setrlimit"), 7, bad), open("prlimit64 files", unix.SYS_PRLIMIT64, 0, 7, bad),
		open("mknodat pipe", unix.SYS_MKNODAT, none, bad, 0o10666), open("ioctl TCGETS", unix.SYS_IOCTL, none, 0x5401),
		open("ioctl TIOCSTI in the high half", unix.SYS_IOCTL, none, 0x5412<<32),
		open("clone thread", unix.SYS_CLONE, thread), open("futex", unix.SYS_FUTEX, bad, 1, 1),
		open("pidfd_open", unix.SYS_PIDFD_OPEN, none), open("cachestat", unix.SYS_CACHESTAT, none, bad, bad),
		open("mlock", unix.SYS_MLOCK, 0, 0), open("process_madvise", unix.SYS_PROCESS_MADVISE, none, bad, 1),

		open("chmod plain", unix.SYS_FCHMODAT, none, bad, 0o755), open("fchmod plain", unix.SYS_FCHMOD, none, 0o1777),
		open("openat without a mode", unix.SYS_OPENAT, none, bad, 0, 0o4755), open("openat plain", unix.SYS_OPENAT, none, bad, 0o100, 0o644),

		// The strictest options refuse these.
		open("chmod setgid", nr("chmod"), bad, 0o2775), open("fchmodat2 setgid", unix.SYS_FCHMODAT2, none, bad, 0o2775, 0),
		open("open setgid", nr("open"), bad, 0o100, 0o2755), open("openat setgid", unix.SYS_OPENAT, none, bad, 0o100, 0o2755),
		open("creat setgid", nr("creat"), bad, 0o2755), open("mknod setgid", nr("mknod"), bad, 0o102755, 0),
		open("mknodat setgid", unix.SYS_MKNODAT, none, bad, 0o102755, 0),
		open("fchmodat setgid", unix.SYS_FCHMODAT, none, bad, 0o2775), open("fchmod setgid", unix.SYS_FCHMOD, none, 0o2775),
		open("socket tcp", unix.SYS_SOCKET, 2, 1, 0), open("socket tcp6", unix.SYS_SOCKET, 10, 1, 6),
		open("socketpair dgram", unix.SYS_SOCKETPAIR, 1, 2, 999),
		open("socket udp", unix.SYS_SOCKET, 2, 2, 0), open("socket udp6", unix.SYS_SOCKET, 10, 2, 17),
		open("sendto fast", unix.SYS_SENDTO, none, bad, 1, 0x20000000), open("sendmsg fast", unix.SYS_SENDMSG, none, bad, 0x20004000),
		open("sendmmsg fast", unix.SYS_SENDMMSG, none, bad, 1, 0x20000000), open("setsockopt ulp", unix.SYS_SETSOCKOPT, none, 6, 31, bad, 3),
		open("listen", unix.SYS_LISTEN, none, 1), open("sendto", unix.SYS_SENDTO, none, bad, 1, 0x4000),
		open("setsockopt nodelay", unix.SYS_SETSOCKOPT, none, 6, 1, bad, 4),
		open("shmget", unix.SYS_SHMGET, 0x7e740001, 1, 0), open("shmat", unix.SYS_SHMAT, none, 0, 0), open("shmctl", unix.SYS_SHMCTL, none, 99),
		open("semget", unix.SYS_SEMGET, 0x7e740001, 1, 0), open("semop", unix.SYS_SEMOP, none, bad, 1),
		open("semctl", unix.SYS_SEMCTL, none, 0, 99), open("semtimedop", unix.SYS_SEMTIMEDOP, none, bad, 1, 0),
		open("msgget", unix.SYS_MSGGET, 0x7e740001, 0), open("msgsnd", unix.SYS_MSGSND, none, bad, 1, 0),
		open("msgrcv", unix.SYS_MSGRCV, none, bad, 1, 0, 0), open("msgctl", unix.SYS_MSGCTL, none, 99),
		open("mq_open", unix.SYS_MQ_OPEN, bad, 0), open("mq_unlink", unix.SYS_MQ_UNLINK, bad),
		open("prlimit64 of another", unix.SYS_PRLIMIT64, none, 0, 0, 0),
		open("setpriority of another", unix.SYS_SETPRIORITY, 0, lost, 0), open("setpriority of a user", unix.SYS_SETPRIORITY, 3, 0, 0),
		open("ioprio_set of another", unix.SYS_IOPRIO_SET, 1, lost, 0x4000), open("ioprio_set of a user", unix.SYS_IOPRIO_SET, 4, 0, 0x4000),
		open("sched_setparam of another", unix.SYS_SCHED_SETPARAM, lost, bad), open("sched_setscheduler of another", unix.SYS_SCHED_SETSCHEDULER, lost, 0, bad),
		open("sched_setattr of another", unix.SYS_SCHED_SETATTR, lost, bad, 0), open("sched_setaffinity of another", unix.SYS_SCHED_SETAFFINITY, lost, 0, bad),
		open("socket unix", unix.SYS_SOCKET, 1, 1, 0), open("socket route", unix.SYS_SOCKET, 16, 3, 0),
	}
	return slices.DeleteFunc(list, func(p probe) bool { return p.nr < 0 })
}

func probed(t *testing.T, o *seccomp.Options) map[string]result {
	t.Helper()
	c := command(t, role{Options: o})
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("test child with %+v: %v", o, err)
	}
	var got map[string]result
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	return got
}

// Every line of the table is tried on the kernel, first without the filter.
func TestProbes(t *testing.T) {
	control := probed(t, nil)
	tried := map[int]bool{}
	for _, o := range []*seccomp.Options{usual(), {Arch: runtime.GOARCH}, {Arch: runtime.GOARCH, TCP: true}} {
		got := probed(t, o)
		for _, p := range probes() {
			want, line := naive(*o, call{audit(runtime.GOARCH), uint32(p.nr), p.args})
			free, have := control[p.name], got[p.name]
			if want == allow {
				if !p.open {
					t.Errorf("%s: the probe meets no rule under %+v", p.name, *o)
				}
				if have != free {
					t.Errorf("%s under %+v: got %v, want as without the filter: %v", p.name, *o, have, free)
				}
				continue
			}
			tried[line] = true
			if have.Errno != int(want) {
				t.Errorf("%s under %+v: got %v, want %v", p.name, *o, syscall.Errno(have.Errno), want)
			}
			if *o == *usual() && p.open {
				t.Errorf("%s: refused under %+v, want open", p.name, *o)
			}
			if free.Errno == int(want) && !alike(p.name, free.Errno) {
				t.Errorf("%s: the control fails with %v too; the probe tells nothing", p.name, syscall.Errno(free.Errno))
			}
		}
	}
	for i, r := range table() {
		if _, ok := r.Number(runtime.GOARCH); ok && !tried[i] {
			t.Errorf("no probe for line %d: %s", i, r)
		}
	}
}

// alike reports whether a probe may fail without the filter as it does with
// it: where the kernel has no such call, and for callers without privileges.
func alike(name string, errno int) bool {
	switch syscall.Errno(errno) {
	case syscall.ENOSYS:
		return slices.Contains([]string{"listns", "lookup_dcookie", "nfsservctl", "uselib", "open_tree_attr"}, name)
	case syscall.EINVAL:
		return name == "unshare future" // no kernel here knows such a flag
	case syscall.EPERM:
		return os.Geteuid() != 0
	}
	return false
}

func TestLoadNeedsNoNewPrivs(t *testing.T) {
	prog := compile(t, *usual())
	done := make(chan error)
	set := false
	go func() {
		runtime.LockOSThread() // never unlocked: the thread dies with us
		on, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
		if set = on != 0; err == nil {
			err = seccomp.Load(prog)
		}
		done <- err
	}()
	err := <-done
	if set {
		t.Skip("no_new_privs was set for the test itself")
	}
	if fault.CodeOf(err) != fault.Internal {
		t.Errorf("got %v, want %s: no_new_privs is not set", err, fault.Internal)
	}
}

func TestLoadRefusesNonsense(t *testing.T) {
	for name, prog := range map[string][]seccomp.Insn{
		"nothing":  nil,
		"too long": make([]seccomp.Insn, 4097),
		"no end":   {{Code: 0x20}},
		"not BPF":  {{Code: 0xffff}},
	} {
		done := make(chan error)
		go func() {
			runtime.LockOSThread()
			if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
				t.Error(err)
			}
			done <- seccomp.Load(prog)
		}()
		if <-done == nil {
			t.Errorf("%s: got no error", name)
		}
	}
}

// The filter is the thread's alone.
func TestLoadLeavesOtherThreadsAlone(t *testing.T) {
	mode := func() int {
		m, err := unix.PrctlRetInt(unix.PR_GET_SECCOMP, 0, 0, 0, 0)
		if err != nil {
			t.Error(err)
		}
		return m
	}
	before := mode()
	inside := make(chan int)
	go func() {
		runtime.LockOSThread()
		if err := confine(usual()); err != nil {
			t.Error(err)
		}
		inside <- mode()
	}()
	if got := <-inside; got != unix.SECCOMP_MODE_FILTER {
		t.Errorf("the thread's mode: got %d, want %d", got, unix.SECCOMP_MODE_FILTER)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if got := mode(); got != before {
		t.Errorf("another thread's mode: got %d, want %d", got, before)
	}
}
