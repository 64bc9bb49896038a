package local

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ways are the user's own folders on the way to what is looked at while a command
// runs and afterwards. No rule of Landlock is about permissions: a command behind
// walls could close them, and with that hide what it left in the workspace until
// the user opens them again. They are held by descriptor, since a closed folder
// is in the way of those below. The zero value holds none.
type ways []way

type way struct {
	fd   int
	path string
	mode uint32 // the owner's rights
	// reopened says that some were taken away, and given back.
	reopened bool
}

const ownersRights = 0o700

// holdWays holds the folders around roots, and the state folder with those
// around it. What lies in a root is the command's work. Root passes everywhere.
func holdWays(roots [][]byte, state string) (w ways) {
	if os.Geteuid() == 0 || len(roots) == 0 {
		return nil
	}
	in := func(path string) bool {
		return slices.ContainsFunc(roots, func(r []byte) bool { return path == string(r) || strings.HasPrefix(path, string(r)+"/") })
	}
	seen := map[string]bool{"/": true}
	hold := func(path string) {
		for ; !seen[path]; path = filepath.Dir(path) {
			seen[path] = true
			fd, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
			if err != nil {
				continue
			}
			var st unix.Stat_t
			if in(path) || unix.Fstat(fd, &st) != nil || int(st.Uid) != os.Geteuid() {
				unix.Close(fd)
				continue
			}
			w = append(w, way{fd: fd, path: path, mode: st.Mode & ownersRights})
		}
	}
	for _, r := range roots {
		hold(filepath.Dir(string(r)))
	}
	hold(filepath.Join(state, "quarantine"))
	return w
}

// reopen gives the owner's rights back to those that lost some.
func (w ways) reopen() {
	for i := range w {
		var st unix.Stat_t
		if unix.Fstat(w[i].fd, &st) == nil && st.Mode&w[i].mode != w[i].mode &&
			unix.Chmod("/proc/self/fd/"+strconv.Itoa(w[i].fd), st.Mode&0o7777|w[i].mode) == nil {
			w[i].reopened = true
		}
	}
}

// notes tell of those that were reopened.
func (w ways) notes() (out []string) {
	for i := range w {
		if w[i].reopened {
			out = append(out, "the command closed "+w[i].path+" to its owner; it is open again")
		}
	}
	return out
}

func (w ways) close() {
	for i := range w {
		unix.Close(w[i].fd)
	}
}
