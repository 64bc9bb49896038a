//go:build linux || darwin

package gitmeta

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// at completes an item with what lies at name in the directory fd, if anything
// does.
func (s *survey) at(fd int, dir, name string, item Item, bound ...string) {
	path := filepath.Join(dir, name)
	if _, done := s.items[path]; done && item.Role != RoleConfig {
		return
	}
	var st unix.Stat_t
	err := unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	if err == unix.EACCES && s.open(fd) {
		err = unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	}
	if err != nil {
		return
	}
	item.Exec = st.Mode&0o111 != 0
	item.Sum = identity(&st)
	item.id = item.Sum
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		item.Type, item.Exec = 'd', false
		if item.Role == RoleLink {
			return
		}
	case unix.S_IFLNK:
		item.Type, item.Exec = 'l', false
		target := readlinkAt(fd, name)
		item.Sum = digest("link", target)
		if item.Role == RoleHook || item.Role == RoleTreeHook {
			item.Sum = digest("link", target, s.behind(path))
		}
	case unix.S_IFREG:
		item.Type = 'f'
		f, err := unix.Openat(fd, name, readFlags, 0)
		if err == unix.EACCES && s.after && s.before[path].Sum != item.Sum {
			f, err = openFile(fd, name) // the command closed it
		}
		if err == nil {
			var raw []byte
			if raw, err = readFD(f, path, MaxConfig); err == nil {
				item.Sum = digest("file", string(raw))
				s.content(&item, dir, name, raw, bound)
			}
		}
		if err != nil && item.Role == RoleConfig {
			item.Broken = err.Error()
		} else if err != nil && item.Role != RoleProgram {
			item.Bad = "it cannot be read: " + err.Error()
		}
	default:
		item.Type = 'o'
	}
	// These are compared after they went through a record, which is text.
	item.Bad, item.Key = strings.ToValidUTF8(item.Bad, "?"), strings.ToValidUTF8(item.Key, "?")
	s.items[path] = item
}

// behind digests the file that a hook's link leads to, if it may be touched.
func (s *survey) behind(link string) string {
	real, err := filepath.EvalSymlinks(link)
	if err != nil {
		return ""
	}
	fd, err := s.dir(filepath.Dir(real))
	if err != nil {
		return real
	}
	defer unix.Close(fd)
	f, err := unix.Openat(fd, filepath.Base(real), readFlags, 0)
	if err != nil {
		return real
	}
	raw, err := readFD(f, real, MaxConfig)
	if err != nil {
		return real
	}
	return digest(real, string(raw))
}

// content judges what a file says.
func (s *survey) content(item *Item, dir, name string, raw []byte, bound []string) {
	switch item.Role {
	case RoleConfig:
		entries, err := Parse(raw)
		if err != nil {
			item.Broken = err.Error()
			return
		}
		for _, e := range entries {
			if Executable(e) && !worktreeInside(e, dir, s.ws) {
				item.Keys = append(item.Keys, entryDigest(e))
			}
		}
	case RoleCommonDir:
		to := realOr(expand(strings.TrimRight(string(raw), "\r\n"), "/", dir))
		if filepath.Base(filepath.Dir(dir)) != "worktrees" || to != filepath.Dir(filepath.Dir(dir)) {
			item.Bad = "its common directory is not the repository that it lies in"
		}
	case RoleGitDir:
		to := expand(strings.TrimRight(string(raw), "\r\n"), "/", dir)
		if filepath.Base(filepath.Dir(dir)) == "worktrees" && !inside(s.ws, realOr(to)) {
			item.Bad = "a worktree outside the workspace is registered"
		}
	case RoleAttributes:
		if d := drivers(raw); d != "" {
			item.Bad = "files are bound to a driver: " + d
		}
	case RoleTodo:
		if line := execLine(raw); line != "" {
			item.Bad = "a rebase in progress runs a command when it goes on: " + strconv.Quote(line)
		}
	case RoleAlternates:
		for line := range strings.Lines(string(raw)) {
			line = strings.TrimRight(line, "\r\n")
			if line != "" && line[0] != '#' && !inside(s.ws, realOr(expand(line, "/", filepath.Dir(dir)))) {
				item.Bad = "objects come from outside the workspace"
			}
		}
	case RoleTree:
		if name == ".gitmodules" {
			item.Bad = modulesBad(raw)
		}
		for _, b := range bound {
			if slices.Contains(strings.Fields(string(raw)), b) {
				item.Bad = "files are bound to a program that the configuration names: " + b
			}
		}
	}
}

func identity(st *unix.Stat_t) string {
	return fmt.Sprintf("%d:%d:%d:%o:%d:%d", st.Dev, st.Ino, st.Size, st.Mode, st.Mtim.Nano(), st.Ctim.Nano())
}

// is says whether st is of the file that id names, changed or not. An empty one
// names any.
func is(id string, st *unix.Stat_t) bool {
	return id == "" || strings.HasPrefix(id, whichFile(st)+":")
}

func isLinkAt(fd int, name string) bool {
	var st unix.Stat_t
	return unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK
}

func there(fd int, name string) bool {
	var st unix.Stat_t
	return unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil
}

func readlinkAt(fd int, name string) string {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(fd, name, buf)
	if err != nil {
		return ""
	}
	return string(buf[:n])
}
