package inner

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// deafen gives the first process of a sandbox the default action for every
// signal that neither it nor its runtime uses. From inside, the kernel then
// delivers none of them (pid_namespaces(7)), whoever may send them: the thread
// that started the command is in the command's own Landlock domain and can be
// signalled, and the runtime would take a fault that was sent for its own, print
// a trace and die. A fault that is one ends the process, as it should.
func deafen() {
	var action [4]uint64 // the kernel's struct sigaction: the default, no flags, no mask
	for s := unix.Signal(1); s <= 64; s++ {
		switch s {
		case unix.SIGINT, unix.SIGTERM, unix.SIGQUIT, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU, unix.SIGHUP, unix.SIGPIPE: // caught
		case unix.SIGKILL, unix.SIGSTOP, unix.SIGCHLD: // the kernel's
		case unix.SIGURG, 32, 33: // the runtime's, harmless from others
		default:
			_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(&action)), 0, 8, 0, 0)
		}
	}
}
