//go:build linux || darwin

package plan

import "syscall"

// Here identifies files of this machine, for [Within].
func Here(path string) (dev, ino uint64, ok bool) {
	var st syscall.Stat_t
	if err := syscall.Lstat(path, &st); err != nil {
		return 0, 0, false
	}
	return uint64(st.Dev), st.Ino, true
}
