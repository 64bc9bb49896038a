package gate

import "golang.org/x/sys/unix"

// openFiles is how many files this process may have open.
func openFiles() uint64 {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil {
		return 0
	}
	return l.Cur
}
