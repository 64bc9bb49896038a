package toolchain

import (
	"bufio"
	"errors"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
)

// maxLine is the longest line of an account database that is read. A longer
// one is no account; those after it count.
const maxLine = 64 << 10

// Homes returns the homes that stay closed, from an account database in the
// form of /etc/passwd: those of the caller, of sudoUser when it is not empty,
// and of every account with a uid of 1000 and above, whatever its shell. They
// come back cleaned, once each, in order, and unresolved: a home may be a link.
//
// Left out are homes that are none (relative, /, /nonexistent, /var/empty,
// /dev/null) and folders of the system, which accounts of services name as
// their home and which no program runs without. An error means that the
// database could not be read to its end: the list is then too short to rely on.
func Homes(passwd io.Reader, callerUID int, sudoUser string) ([]string, error) {
	var homes []string
	r := bufio.NewReaderSize(passwd, maxLine)
	for {
		line, err := r.ReadSlice('\n')
		whole := err == nil || errors.Is(err, io.EOF)
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = r.ReadSlice('\n')
		}
		if whole {
			if home := homeOf(strings.TrimRight(string(line), "\r\n"), callerUID, sudoUser); home != "" {
				homes = append(homes, home)
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	slices.Sort(homes)
	return slices.Compact(homes), nil
}

// homeOf returns the home of one line when it stays closed.
func homeOf(line string, callerUID int, sudoUser string) string {
	f := strings.SplitN(strings.TrimLeft(line, " \t"), ":", 7)
	if len(f) < 6 || f[0] == "" || strings.ContainsAny(f[0][:1], "#+-") {
		return ""
	}
	uid, err := strconv.ParseUint(f[2], 10, 32)
	if err != nil {
		return ""
	}
	if int64(uid) != int64(callerUID) && uid < 1000 && (sudoUser == "" || f[0] != sudoUser) {
		return ""
	}
	home := f[5]
	if !strings.HasPrefix(home, "/") || strings.IndexByte(home, 0) >= 0 {
		return ""
	}
	if home = path.Clean(home); ofSystem(home) {
		return ""
	}
	return home
}

// ofSystem reports whether a home is no home but a folder of the system.
func ofSystem(dir string) bool {
	switch dir {
	case "/", "/nonexistent", "/var", "/var/empty", "/var/lib", "/var/cache", "/var/tmp", "/opt", "/srv", "/tmp",
		"/run", "/home", "/mnt", "/media":
		return true
	}
	top, _, _ := strings.Cut(dir[1:], "/")
	switch top {
	case "bin", "sbin", "boot", "dev", "etc", "lib", "lib32", "lib64", "libx32", "nix", "gnu", "proc", "sys", "usr":
		return true
	}
	return false
}
