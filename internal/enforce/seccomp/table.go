package seccomp

import "slices"

// Ceiling is the highest system call number that this package has judged, the
// same on both architectures (rseq_slice_yield). What lies above answers
// ENOSYS until somebody has looked at it: a program that knows such a call
// also knows how to do without it.
const Ceiling = 471

// reserved returns the numbers below [Ceiling] that the architecture does not
// use, as first and last of each gap. They answer ENOSYS, also on a kernel that
// has come to use them.
func reserved(arch string) [][2]uint32 {
	if arch == "amd64" {
		return [][2]uint32{{337, 423}}
	}
	return [][2]uint32{{244, 259}, {295, 423}}
}

// Table returns all rules, for both architectures and before any option lifts
// one.
//
// Open on purpose, because the kernel holds them to the command's own
// processes or they only tell what the command can see anyway: ptrace, kcmp,
// process_madvise, pidfd_open and pidfd_send_signal (pid namespace, same
// user), statmount, listmount and name_to_handle_at (reading), adjtimex and
// clock_adjtime (setting needs a privilege that nobody inside has, reading is
// legitimate, and only memory tells them apart), seccomp and landlock (both
// only narrow), memfd_secret (hides memory from the kernel, not from us).
func Table() []Rule {
	return slices.Concat(mountRules(), namespaceRules(), kernelRules(), processRules(),
		machineRules(), privilegeRules(), deviceRules(), socketRules(),
		sharedRules())
}

// Rules returns the rules in force under o, in the table's order.
func (o Options) Rules() []Rule {
	have := o.granted()
	rules := slices.DeleteFunc(Table(), func(r Rule) bool {
		_, exists := r.Number(o.Arch)
		return !exists || r.Lift != 0 && have&r.Lift == r.Lift
	})
	for i := range rules {
		if rules[i].Errno == Told && !o.Tell {
			rules[i].Errno = EPERM
		}
	}
	return rules
}

const none = -1 // the architecture lacks the call

const allBits = ^uint32(0)

func in(arg uint8, values ...uint32) Cond { return Cond{Arg: arg, Mask: allBits, In: values} }
func notIn(arg uint8, values ...uint32) Cond {
	return Cond{Arg: arg, Mask: allBits, Not: true, In: values}
}
func anyOf(arg uint8, bits uint32) Cond {
	return Cond{Arg: arg, Mask: bits, Not: true, In: []uint32{0}}
}

func mountRules() []Rule {
	const m = LiftMounts
	return []Rule{
		{"mount", 165, 40, EPERM, m, nil, "could cover or reveal what the sandbox mounted"},
		{"umount2", 166, 39, EPERM, m, nil, "could take a mask off a hidden file"},
		{"pivot_root", 155, 41, EPERM, m, nil, "could swap the root that everything is hidden under"},
		{"open_tree", 428, 428, EPERM, m, nil, "could copy a mount without its masks"},
		{"move_mount", 429, 429, EPERM, m, nil, "mount by another name"},
		{"fsopen", 430, 430, EPERM, m, nil, "mount by another name, and file system parsers as attack surface"},
		{"fsconfig", 431, 431, EPERM, m, nil, "mount by another name, and file system parsers as attack surface"},
		{"fsmount", 432, 432, EPERM, m, nil, "mount by another name"},
		{"fspick", 433, 433, EPERM, m, nil, "could reconfigure a mount"},
		{"mount_setattr", 442, 442, EPERM, m, nil, "could make a read-only mount writable"},
		{"open_tree_attr", 467, 467, EPERM, m, nil, "open_tree and mount_setattr in one"},
	}
}

// Flags of clone and unshare.
const (
	cloneVM      = 0x100
	cloneFS      = 0x200
	cloneFiles   = 0x400
	cloneSighand = 0x800
	cloneThread  = 0x10000
	cloneNewNS   = 0x20000
	cloneSysvsem = 0x40000
	cloneNewTime = 0x80 // for unshare; clone reads a signal there

	cloneNewUser = 0x10000000

	// cloneNewOwned are the namespaces that a user namespace can own, but for
	// mounts and time.
	cloneNewOwned = 0x02000000 | 0x04000000 | 0x08000000 | cloneNewUser | 0x20000000 | 0x40000000

	// unsharePlain are unshare's flags that make no namespace.
	unsharePlain = cloneVM | cloneFS | cloneFiles | cloneSighand | cloneThread | cloneSysvsem
)

func namespaceRules() []Rule {
	const u, m = LiftUserNS, LiftMounts
	const sandboxes = "every privilege over namespaces of its own; sandboxes begin so, hence whoever built one is told what it takes"
	upper := Cond{Arg: 0, High: true, Mask: allBits, Not: true, In: []uint32{0}}
	return []Rule{
		{"clone", 56, 220, Told, u, []Cond{anyOf(0, cloneNewUser)}, sandboxes},
		{"clone", 56, 220, EPERM, u, []Cond{anyOf(0, cloneNewOwned)},
			"privileges over a namespace open kernel code that is closed to ordinary users"},
		{"clone", 56, 220, EPERM, m, []Cond{anyOf(0, cloneNewNS)}, "a mount namespace of its own could detach masks"},
		{"clone3", 435, 435, ENOSYS, u | m, nil, "its flags lie in memory, out of sight; libraries fall back to clone"},
		{"unshare", 272, 97, Told, u, []Cond{anyOf(0, cloneNewUser)}, sandboxes},
		{"unshare", 272, 97, EPERM, u, []Cond{anyOf(0, cloneNewOwned|cloneNewTime)},
			"privileges over a namespace open kernel code that is closed to ordinary users"},
		// By what is known, since flags that imply a mount namespace were added.
		{"unshare", 272, 97, EPERM, m, []Cond{anyOf(0, ^uint32(unsharePlain|cloneNewOwned|cloneNewTime))},
			"a mount namespace of its own could detach masks"},
		{"unshare", 272, 97, EINVAL, m, []Cond{upper}, "flags from the future, refused as kernels do that lack them"},
		{"setns", 308, 268, EPERM, u, nil, "could join a namespace with more privileges"},
		{"chroot", 161, 51, EPERM, u, nil, "nobody inside has the privilege, save in a user namespace of their own"},
		{"sethostname", 170, 161, EPERM, u, nil, "the name belongs to the sandbox"},
		{"setdomainname", 171, 162, EPERM, u, nil, "the name belongs to the sandbox"},
		{"listns", 470, 470, ENOSYS, 0, nil, "lists namespaces outside; young, and nothing needs it"},
	}
}

// kernelRules close large or notorious parts of the kernel.
func kernelRules() []Rule {
	const (
		seccompSetFilter   = 1
		seccompNewListener = 8
	)
	return []Rule{
		{"io_uring_setup", 425, 425, ENOSYS, 0, nil, "does other calls' work past this filter; a rich source of kernel faults"},
		{"io_uring_enter", 426, 426, ENOSYS, 0, nil, "as io_uring_setup, for a ring from elsewhere"},
		{"io_uring_register", 427, 427, ENOSYS, 0, nil, "as io_uring_setup, for a ring from elsewhere"},
		{"bpf", 321, 280, EPERM, 0, nil, "programs inside the kernel"},
		{"perf_event_open", 298, 241, EACCES, 0, nil, "measures others, and a rich source of kernel faults; the answer of a guarded kernel"},
		{"userfaultfd", 323, 282, EPERM, 0, nil, "stops the kernel in mid-copy, the classic help for exploits"},
		{"add_key", 248, 217, ENOSYS, 0, nil, "keyrings know no namespace: a way to others' keys"},
		{"request_key", 249, 218, ENOSYS, 0, nil, "keyrings know no namespace, and it starts helpers on the host"},
		{"keyctl", 250, 219, ENOSYS, 0, nil, "keyrings know no namespace: a way to others' keys"},
		{"fanotify_init", 300, 262, EPERM, 0, nil, "watches whole mounts; the answer that ordinary users used to get"},
		{"open_by_handle_at", 304, 265, EPERM, 0, nil, "opens files by number, past every path"},
		{"seccomp", 317, 277, EINVAL, 0, []Cond{in(0, seccompSetFilter), anyOf(1, seccompNewListener)},
			"one listener per process tree, and it belongs to the sandbox; the answer of kernels without it"},
		{"lookup_dcookie", 212, 18, ENOSYS, 0, nil, "a profiler's call that kernels dropped; it told paths"},
		{"nfsservctl", 180, 42, ENOSYS, 0, nil, "dropped by kernels long ago"},
		{"uselib", 134, none, ENOSYS, 0, nil, "loads libraries of another age"},
		{"modify_ldt", 154, none, ENOSYS, 0, nil, "segments for 16-bit code; many kernels are built without it"},
	}
}

// processRules are about a process itself and its like.
func processRules() []Rule {
	const (
		perLinux32     = 0x8
		noRandomize    = 0x40000 // debuggers set it for the programs that they start
		personaQuery   = 0xffffffff
		prctlSetMM     = 35
		knownPersonas  = perLinux32 | noRandomize
		otherPersonas  = ^uint32(knownPersonas)
		personalityArg = 0

		coreLimit = 4 // RLIMIT_CORE
		core      = "of all limits only ours, 1, keeps the kernel from starting the host's core handler; whoever sets another wants no core files"
	)
	return []Rule{
		{"process_vm_readv", 310, 270, ENOSYS, 0, nil, "reads another's memory past its descriptors; debuggers fall back to ptrace"},
		{"process_vm_writev", 311, 271, ENOSYS, 0, nil, "writes another's memory; debuggers fall back to ptrace"},
		{"pidfd_getfd", 438, 438, EPERM, 0, nil, "takes open files out of another process"},
		{"personality", 135, 92, EPERM, 0, []Cond{anyOf(personalityArg, otherPersonas), notIn(personalityArg, personaQuery)},
			"old personalities weaken memory protection; plain, 32-bit naming and no randomization are left"},
		{"prctl", 157, 167, EPERM, 0, []Cond{in(0, prctlSetMM)}, "a process could change which program it says it is"},
		{"setrlimit", 160, 164, Pretended, 0, []Cond{in(0, coreLimit)}, core},
		{"prlimit64", 302, 261, Pretended, 0, []Cond{in(1, coreLimit), anyOf(2, allBits)}, core},
		{"prlimit64", 302, 261, Pretended, 0, []Cond{in(1, coreLimit), {Arg: 2, High: true, Mask: allBits, Not: true, In: []uint32{0}}}, core},
	}
}

// machineRules are about the machine as a whole. The kernel refuses them to
// processes without privileges; these lines hold if one is ever left.
func machineRules() []Rule {
	return []Rule{
		{"kexec_load", 246, 104, EPERM, 0, nil, "starts another kernel"},
		{"kexec_file_load", 320, 294, EPERM, 0, nil, "starts another kernel"},
		{"init_module", 175, 105, EPERM, 0, nil, "kernel modules"},
		{"finit_module", 313, 273, EPERM, 0, nil, "kernel modules"},
		{"delete_module", 176, 106, EPERM, 0, nil, "kernel modules"},
		{"quotactl", 179, 60, EPERM, 0, nil, "disk quotas of the host"},
		{"quotactl_fd", 443, 443, EPERM, 0, nil, "disk quotas of the host"},
		{"swapon", 167, 224, EPERM, 0, nil, "swap space of the host"},
		{"swapoff", 168, 225, EPERM, 0, nil, "swap space of the host"},
		{"reboot", 169, 142, EPERM, 0, nil, "stops the machine"},
		{"settimeofday", 164, 170, EPERM, 0, nil, "the host's clock"},
		{"clock_settime", 227, 112, EPERM, 0, nil, "the host's clock"},
		{"acct", 163, 89, EPERM, 0, nil, "process accounting of the host"},
		{"syslog", 103, 116, EPERM, 0, nil, "the kernel's log tells addresses and what others do"},
		{"iopl", 172, none, EPERM, 0, nil, "hardware ports"},
		{"ioperm", 173, none, EPERM, 0, nil, "hardware ports"},
		{"vhangup", 153, 58, EPERM, 0, nil, "hangs up the user's terminal"},
	}
}

// privilegeRules keep a command from leaving set-uid files behind. Inside, no
// mount honours them; on the host a file of the workspace's owner would lend
// that owner's rights, root's when root runs Tether, to whoever starts it.
func privilegeRules() []Rule {
	const (
		setUID, setGID = 0o4000, 0o2000
		creates        = 0o100 | 0o20000000 // O_CREAT, O_TMPFILE: only then is there a mode
		why            = "a set-uid file would lend its owner's rights to whoever starts it on the host"
		whyGroup       = "a set-gid file would lend root's group to whoever starts it on the host"
	)
	rules := []Rule{
		{"openat2", 437, 437, ENOSYS, LiftMounts, nil, "its mode lies in memory, out of sight; programs fall back to openat"},
	}
	for _, bit := range []struct {
		mask uint32
		lift Lift
		why  string
	}{{setUID, 0, why}, {setGID, LiftSetGID, whyGroup}} {
		rules = append(rules,
			Rule{"chmod", 90, none, EPERM, bit.lift, []Cond{anyOf(1, bit.mask)}, bit.why},
			Rule{"fchmod", 91, 52, EPERM, bit.lift, []Cond{anyOf(1, bit.mask)}, bit.why},
			Rule{"fchmodat", 268, 53, EPERM, bit.lift, []Cond{anyOf(2, bit.mask)}, bit.why},
			Rule{"fchmodat2", 452, 452, EPERM, bit.lift, []Cond{anyOf(2, bit.mask)}, bit.why},
			Rule{"open", 2, none, EPERM, bit.lift, []Cond{anyOf(1, creates), anyOf(2, bit.mask)}, bit.why},
			Rule{"openat", 257, 56, EPERM, bit.lift, []Cond{anyOf(2, creates), anyOf(3, bit.mask)}, bit.why},
			Rule{"creat", 85, none, EPERM, bit.lift, []Cond{anyOf(1, bit.mask)}, bit.why},
			Rule{"mknod", 133, none, EPERM, bit.lift, []Cond{anyOf(1, bit.mask)}, bit.why},
			Rule{"mknodat", 259, 33, EPERM, bit.lift, []Cond{anyOf(2, bit.mask)}, bit.why})
	}
	return rules
}

func deviceRules() []Rule {
	const (
		fileType = 0xf000
		charDev  = 0x2000
		blockDev = 0x6000

		tiocsti   = 0x5412
		tioclinux = 0x541c
		tiocsetd  = 0x5423

		// The type of a request is its second byte.
		requestType                    = 0xff00
		btrfs, bcachefs                = 0x9400, 0xbc00
		clone, cloneRange, dedupeRange = 0x40049409, 0x4020940d, 0xc0189436 // of all file systems
		label                          = 0x81009431
		ocfs2Reflink                   = 0x40186f04
		snapshots                      = "makes, copies and removes whole trees: a copy has no masks, and no other wall looks at it"
	)
	device := func(arg uint8) []Cond {
		return []Cond{{Arg: arg, Mask: fileType, In: []uint32{charDev, blockDev}}}
	}
	return []Rule{
		{"mknod", 133, none, EPERM, 0, device(1), "device files; pipes, sockets and plain files pass"},
		{"mknodat", 259, 33, EPERM, 0, device(2), "device files; pipes, sockets and plain files pass"},
		{"ioctl", 16, 29, EPERM, 0, []Cond{in(1, tiocsti)}, "types into the terminal as if the user did"},
		{"ioctl", 16, 29, EPERM, 0, []Cond{in(1, tioclinux)}, "pastes into the console as if the user did"},
		{"ioctl", 16, 29, EPERM, 0, []Cond{in(1, tiocsetd)}, "line disciplines: drivers of old modems, faulty and loaded on request"},
		{"ioctl", 16, 29, EPERM, 0, []Cond{{Arg: 1, Mask: requestType, In: []uint32{btrfs, bcachefs}}, notIn(1, clone, cloneRange, dedupeRange, label)}, snapshots},
		{"ioctl", 16, 29, EPERM, 0, []Cond{in(1, ocfs2Reflink)}, snapshots},
	}
}

func socketRules() []Rule {
	const (
		afUnix, afInet, afInet6, afNetlink = 1, 2, 10, 16

		typeMask                             = 0xf // the rest of the type is flags
		stream, dgram, raw, seqpacket, oldPk = 1, 2, 3, 5, 10

		route = 0

		auto, icmp, tcp, udp, icmpv6, rawIP = 0, 1, 6, 17, 58, 255 // the last is for raw sockets alone

		ulp      = 31 // TCP_ULP
		fastOpen = 0x20000000

		unseen = "connects past the walls, which look at connect alone"
		served = "there is nobody whom the walls let in, and it takes a port without a bind that they would see"
	)
	inet := in(0, afInet, afInet6)
	typ := func(not bool, values ...uint32) Cond { return Cond{Arg: 1, Mask: typeMask, Not: not, In: values} }
	return []Rule{
		{"socket", 41, 198, EAFNOSUPPORT, 0, []Cond{notIn(0, afUnix, afInet, afInet6, afNetlink)},
			"vsock reaches the hypervisor, packet, xdp, can, tipc, alg and the like are kernel code that no tool needs"},
		{"socket", 41, 198, EACCES, LiftTCP, []Cond{inet}, "no network"},
		{"socket", 41, 198, EACCES, LiftInet, []Cond{inet, typ(true, stream)}, "the walls know TCP alone"},
		{"socket", 41, 198, EACCES, LiftInet, []Cond{in(0, afNetlink)}, "tells of the host's network"},
		{"socket", 41, 198, EACCES, LiftUnix, []Cond{in(0, afUnix)}, "reaches services outside by path"},
		{"socket", 41, 198, EPROTONOSUPPORT, 0, []Cond{in(0, afNetlink), notIn(2, route)},
			"audit, netfilter and other talk with the kernel; routing is what listing interfaces needs"},
		{"socket", 41, 198, EPERM, LiftUserNS, []Cond{inet, typ(false, raw, oldPk)}, "forges and overhears packets; ping falls back"},
		{"socket", 41, 198, ESOCKTNOSUPPORT, 0, []Cond{inet, typ(true, stream, dgram, raw)}, "rare transports by their type"},
		{"socket", 41, 198, EPROTONOSUPPORT, 0, []Cond{inet, notIn(2, auto, icmp, tcp, udp, icmpv6, rawIP)},
			"sctp, dccp, smc and the like are seldom tried kernel code, and mptcp escapes rules made for tcp"},
		{"socketpair", 53, 199, EOPNOTSUPP, 0, []Cond{notIn(0, afUnix)}, "only Unix sockets come in pairs; others would be rare kernel code"},
		{"socketpair", 53, 199, ESOCKTNOSUPPORT, LiftUnix, []Cond{typ(true, stream, seqpacket)},
			"one of a pair of datagram sockets can be turned to a service outside, by path"},
		{"sendto", 44, 206, EOPNOTSUPP, LiftInet, []Cond{anyOf(3, fastOpen)}, unseen},
		{"sendmsg", 46, 211, EOPNOTSUPP, LiftInet, []Cond{anyOf(2, fastOpen)}, unseen},
		{"sendmmsg", 307, 269, EOPNOTSUPP, LiftInet, []Cond{anyOf(3, fastOpen)}, unseen},
		{"setsockopt", 54, 208, EOPNOTSUPP, LiftInet, []Cond{in(1, tcp), in(2, ulp)}, "could make another transport of a socket of TCP, which the walls do not know"},
		{"listen", 50, 201, EACCES, LiftInet, nil, served},
	}
}

// sharedRules close what a command without namespaces of its own shares with
// every process of the same user, and no other wall looks at.
func sharedRules() []Rule {
	const (
		why   = "System V IPC knows no folder and no wall: a way to others' memory"
		queue = "queues of the whole machine, by name"

		process   = 0 // PRIO_PROCESS
		ioProcess = 1
		pace      = "could take the processor from any process of the same user; one's own thread stays open"
	)
	return []Rule{
		{"shmget", 29, 194, ENOSYS, LiftNamespaced, nil, why},
		{"shmat", 30, 196, ENOSYS, LiftNamespaced, nil, why},
		{"shmctl", 31, 195, ENOSYS, LiftNamespaced, nil, why},
		{"semget", 64, 190, ENOSYS, LiftNamespaced, nil, why},
		{"semop", 65, 193, ENOSYS, LiftNamespaced, nil, why},
		{"semctl", 66, 191, ENOSYS, LiftNamespaced, nil, why},
		{"semtimedop", 220, 192, ENOSYS, LiftNamespaced, nil, why},
		{"msgget", 68, 186, ENOSYS, LiftNamespaced, nil, why},
		{"msgsnd", 69, 189, ENOSYS, LiftNamespaced, nil, why},
		{"msgrcv", 70, 188, ENOSYS, LiftNamespaced, nil, why},
		{"msgctl", 71, 187, ENOSYS, LiftNamespaced, nil, why},
		{"mq_open", 240, 180, ENOSYS, LiftNamespaced, nil, queue},
		{"mq_unlink", 241, 181, ENOSYS, LiftNamespaced, nil, queue},
		{"prlimit64", 302, 261, EPERM, LiftNamespaced, []Cond{notIn(0, 0)},
			"could end any process of the same user by its limits; one's own stay open"},
		{"setpriority", 141, 140, EPERM, LiftNamespaced, []Cond{notIn(0, process)}, pace},
		{"setpriority", 141, 140, EPERM, LiftNamespaced, []Cond{notIn(1, 0)}, pace},
		{"ioprio_set", 251, 30, EPERM, LiftNamespaced, []Cond{notIn(0, ioProcess)}, pace},
		{"ioprio_set", 251, 30, EPERM, LiftNamespaced, []Cond{notIn(1, 0)}, pace},
		{"sched_setparam", 142, 118, EPERM, LiftNamespaced, []Cond{notIn(0, 0)}, pace},
		{"sched_setscheduler", 144, 119, EPERM, LiftNamespaced, []Cond{notIn(0, 0)}, pace},
		{"sched_setattr", 314, 274, EPERM, LiftNamespaced, []Cond{notIn(0, 0)}, pace},
		// Libraries name their own threads by number, and some end without it.
		{"sched_setaffinity", 203, 122, Pretended, LiftNamespaced, []Cond{notIn(0, 0)}, pace},
	}
}
