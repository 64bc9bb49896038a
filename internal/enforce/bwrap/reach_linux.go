package bwrap

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/tether-sandbox/tether/internal/enforce"
)

// reachable says which of the paths that steps can do without are there for a
// process with these ids and no other groups. The kernel is asked, as it would
// answer that process, by a thread that takes the ids and then ends.
//
// What is out of its reach is out of the command's, except behind a folder of
// its own: that it can open. Such a path counts as reachable, and bwrap, which
// has all rights over its own ids, mounts on it.
func reachable(steps []enforce.Step, uid, gid uint32) (map[string]bool, error) {
	found := make(map[string]bool, len(steps))
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		done <- become(uid, gid, func() {
			for i := range steps {
				switch s := &steps[i]; {
				case s.Do == enforce.Bind && s.Flags&enforce.Optional != 0:
					found[s.Src] = exists(s.Src)
				case s.Flags&enforce.Gone != 0:
					found[s.Dst] = exists(s.Dst) || own(s.Dst, uid)
				}
			}
		})
	}()
	if err := <-done; err != nil {
		return nil, err
	}
	for path, ok := range found {
		found[path] = ok && exists(path) // bwrap must never make a place on the host
	}
	return found, nil
}

// become runs f with the ids for file access of the calling thread changed for
// good. Raw calls, since the library's change every thread.
func become(uid, gid uint32, f func()) error {
	if _, _, err := syscall.RawSyscall(syscall.SYS_SETGROUPS, 0, 0, 0); err != 0 {
		return err
	}
	// These do not fail; asked again they say what holds.
	_, _, _ = syscall.RawSyscall(syscall.SYS_SETFSGID, uintptr(gid), 0, 0)
	_, _, _ = syscall.RawSyscall(syscall.SYS_SETFSUID, uintptr(uid), 0, 0)
	g, _, _ := syscall.RawSyscall(syscall.SYS_SETFSGID, ^uintptr(0), 0, 0)
	u, _, _ := syscall.RawSyscall(syscall.SYS_SETFSUID, ^uintptr(0), 0, 0)
	if uint32(g) != gid || uint32(u) != uid {
		return syscall.EPERM
	}
	f()
	return nil
}

// own says whether the first folder on the way to path that cannot be searched
// belongs to uid.
func own(path string, uid uint32) bool {
	for dir := filepath.Dir(path); dir != "/"; dir = filepath.Dir(dir) {
		info, err := os.Lstat(dir)
		if errors.Is(err, os.ErrPermission) {
			continue
		}
		if err != nil {
			return false
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		return ok && st.Uid == uid
	}
	return false
}
