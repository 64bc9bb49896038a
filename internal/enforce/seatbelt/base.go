package seatbelt

// The operations that a rule about files names. Reading is always spelled by its
// members, writing by its family; see the package's comment.
const (
	look     = "file-read-metadata"
	contents = "file-read-data file-read-xattr"
	write    = "file-write* file-link"
	start    = "process-exec* file-map-executable"
	// moving a file away, and removing it.
	unlink   = "file-write-unlink"
	terminal = "file-read-data file-read-metadata file-write-data file-ioctl"
)

// base is what every profile begins with. What is not named stays closed; left
// out on purpose are: Apple events, launching by Launch Services, preferences
// (those of other programs hold secrets), the keychain's services
// (SecurityServer, secd), the clipboard, and the processes of others, whose
// arguments and environment kern.procargs2 and kern.proc would tell.
const base = `(version 1)
(deny default)

; Children run under the same profile.
(allow process-fork)
; Signals, and questions about processes, within this sandbox only.
(allow signal (target same-sandbox))
(allow process-info* (target same-sandbox))

; The loader of newer systems opens the top folder before a program starts; that
; tells the names in it, and nothing of what they hold.
(allow file-read-data file-read-metadata (literal "/"))
; Devices that hold nothing.
(allow file-read-data file-read-metadata file-write-data file-ioctl (literal "/dev/null") (literal "/dev/zero"))
(allow file-read-data file-read-metadata (literal "/dev/random") (literal "/dev/urandom"))
; What is open already: pipes, or a terminal, of ours.
(allow file-read-data file-read-metadata file-write-data (subpath "/dev/fd") (literal "/dev/stdin") (literal "/dev/stdout") (literal "/dev/stderr"))
(allow file-read-data file-read-metadata file-write-data file-ioctl (literal "/dev/tty"))
; The loader tells tracing tools of each program that it starts.
(allow file-read-data file-read-metadata file-write-data file-ioctl (literal "/dev/dtracehelper"))
(allow file-read-metadata (literal "/dev"))
; Terminals that the command opens itself, and not those of others.
(allow pseudo-tty)
(allow file-read-data file-read-metadata file-write-data file-ioctl (literal "/dev/ptmx"))
(allow file-read-data file-read-metadata file-write-data file-ioctl (require-all (regex #"^/dev/ttys[0-9]+$") (extension "com.apple.sandbox.pty")))

; libc: accounts and groups (getpwuid).
(allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo"))
; libc: changes of the time zone (localtime), and the page that it shares for it.
(allow mach-lookup (global-name "com.apple.system.notification_center"))
(allow ipc-posix-shm-read-data (ipc-posix-name "apple.shm.notification_center"))
; Python: locks of multiprocessing, and of joblib.
(allow ipc-posix-sem (ipc-posix-name-regex #"^/mp-") (ipc-posix-name-regex #"^/loky-"))
; OpenMP: each copy of its library enters itself here, so as to find a second one.
(allow ipc-posix-shm-read-data ipc-posix-shm-write-create ipc-posix-shm-write-data ipc-posix-shm-write-unlink (ipc-posix-name-regex #"^/__KMP_REGISTERED_LIB_[0-9]+$"))

; Node, OpenMP, compilers: processors, caches and memory of the machine.
(allow sysctl-read (sysctl-name-prefix "hw.") (sysctl-name-prefix "machdep.cpu.") (sysctl-name "vm.loadavg") (sysctl-name "sysctl.proc_cputype"))
; uname, os.release, os.hostname, os.uptime.
(allow sysctl-read (sysctl-name "kern.ostype") (sysctl-name "kern.osrelease") (sysctl-name "kern.osversion") (sysctl-name "kern.osproductversion") (sysctl-name "kern.osvariant_status") (sysctl-name "kern.version") (sysctl-name "kern.hostname") (sysctl-name "kern.boottime"))
; sysconf, getrlimit, the stack of a thread, the loader.
(allow sysctl-read (sysctl-name "kern.argmax") (sysctl-name "kern.ngroups") (sysctl-name "kern.maxproc") (sysctl-name "kern.maxfilesperproc") (sysctl-name "kern.usrstack64") (sysctl-name "kern.secure_kernel") (sysctl-name "kern.tcsm_available") (sysctl-name "kern.tcsm_enable") (sysctl-name "kern.willshutdown"))
`

// trust is what TLS needs, where there is a network at all.
const trust = `
; Go and the system's own TLS ask this service whether a certificate is good; it
; opens no key.
(allow mach-lookup (global-name "com.apple.trustd.agent") (global-name "com.apple.trustd"))
`

// open is the host's network: every address, but not the sockets of the host's
// daemons in the file system.
const open = `
; The host's network, as it was asked for.
(allow network-outbound (remote ip "*:*"))
(allow network-inbound network-bind (local ip "*:*"))
; Names are resolved by the system's service; addresses of interfaces.
(allow network-outbound (remote unix-socket (path-literal "/private/var/run/mDNSResponder")))
(allow mach-lookup (global-name "com.apple.SystemConfiguration.configd") (global-name "com.apple.SystemConfiguration.DNSConfiguration"))
(allow sysctl-read (sysctl-name-prefix "net.routetable"))
`
