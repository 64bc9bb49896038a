package toolchain

import (
	"path"
	"slices"
	"strconv"
	"strings"
)

// Homes returns the homes that stay closed, from an account database in the
// form of /etc/passwd: those of the caller, of sudoUser when it is not empty,
// and of every account with a uid of 1000 and above, whatever its shell. They
// come back cleaned, once each, in order, and unresolved: a home may be a link.
//
// Left out are homes that are none (relative, /, /nonexistent, /var/empty,
// /dev/null) and folders of the system, which accounts of services name as
// their home and which no program runs without.
func Homes(passwd string, callerUID int, sudoUser string) []string {
	var homes []string
	for line := range strings.Lines(passwd) {
		if home := homeOf(strings.TrimRight(line, "\r\n"), callerUID, sudoUser); home != "" {
			homes = append(homes, home)
		}
	}
	slices.Sort(homes)
	return slices.Compact(homes)
}

// Entry is what an account database says of an account.
type Entry struct {
	Name, Home string
	// GID is its primary group.
	GID uint32
}

// Account returns an account as the database has it, the first one of that uid.
// Package os/user does the same, and asks the C library where a program is
// linked with one.
func Account(passwd string, uid uint32) (Entry, bool) {
	for line := range strings.Lines(passwd) {
		f := strings.SplitN(strings.TrimRight(line, "\r\n"), ":", 7)
		if len(f) < 6 || f[0] == "" || strings.ContainsAny(f[0][:1], "#+-") {
			continue
		}
		n, err := strconv.ParseUint(f[2], 10, 32)
		if err != nil || uint32(n) != uid {
			continue
		}
		gid, err := strconv.ParseUint(f[3], 10, 32)
		if err == nil {
			return Entry{f[0], f[5], uint32(gid)}, true
		}
	}
	return Entry{}, false
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
