package secrets

import (
	"errors"
	"strings"

	"golang.org/x/sys/unix"
)

var errAutomount = errors.New("leads through an automount point")

// place is where a path leads.
type place struct {
	// fd is an O_PATH descriptor of the end, dir one of its directory.
	fd, dir int
	// path is canonical; name is its last name, empty for "/".
	path, name string
	stat       unix.Stat_t
}

func (p *place) close() {
	unix.Close(p.fd)
	unix.Close(p.dir)
}

// resolve follows an absolute path, links included, to what exists at its end.
// It goes name by name, so that it can stop before a link makes an automounter
// reach out for a host that somebody else named, and so that it knows the
// canonical path. Nothing is opened for reading.
func resolve(path string) (place, error) {
	const flags = unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Open("/", flags|unix.O_DIRECTORY, 0)
	if err != nil {
		return place{}, err
	}
	names, fds := []string(nil), []int{fd} // fds[i] is the directory above names[i]
	done := func() {
		for _, fd := range fds {
			unix.Close(fd)
		}
	}
	todo, links := path, 0
	for {
		todo = strings.TrimLeft(todo, "/")
		if todo == "" {
			break
		}
		name, rest, more := strings.Cut(todo, "/")
		todo = rest
		if name == "." {
			continue
		}
		if name == ".." {
			if len(names) > 0 {
				unix.Close(fds[len(fds)-1])
				names, fds = names[:len(names)-1], fds[:len(fds)-1]
			}
			continue
		}
		fd, err := unix.Openat(fds[len(fds)-1], name, flags, 0)
		if err != nil {
			done()
			return place{}, err
		}
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			unix.Close(fd)
			done()
			return place{}, err
		}
		if st.Mode&unix.S_IFMT == unix.S_IFLNK {
			target, err := readLink(fd)
			unix.Close(fd)
			if links++; err == nil && (links > 40 || len(target)+len(todo) > 1<<16) {
				err = unix.ELOOP
			}
			if err != nil {
				done()
				return place{}, err
			}
			if target[0] == '/' {
				for _, fd := range fds[1:] {
					unix.Close(fd)
				}
				names, fds = nil, fds[:1]
			}
			if more {
				target += "/" + todo
			}
			todo = target
			continue
		}
		names, fds = append(names, name), append(fds, fd)
		if st.Mode&unix.S_IFMT == unix.S_IFDIR {
			var fs unix.Statfs_t
			if err := unix.Fstatfs(fd, &fs); err == nil && fs.Type == unix.AUTOFS_SUPER_MAGIC {
				done()
				return place{}, errAutomount
			}
		} else if more {
			done()
			return place{}, unix.ENOTDIR
		}
		if len(fds) > 1024 {
			done()
			return place{}, unix.ENAMETOOLONG
		}
	}
	p := place{path: "/" + strings.Join(names, "/")}
	end := len(fds) - 1
	if p.fd = fds[end]; end > 0 {
		p.dir, p.name = fds[end-1], names[end-1]
		fds = fds[:end-1]
	} else {
		p.dir, err = unix.Dup(p.fd)
		fds = nil
	}
	done()
	if err == nil {
		err = unix.Fstat(p.fd, &p.stat)
	}
	if err != nil {
		p.close()
		return place{}, err
	}
	return p, nil
}

// readLink returns the target of the link that fd is. It is never empty.
func readLink(fd int) (string, error) {
	buf := make([]byte, 4096)
	n, err := unix.Readlinkat(fd, "", buf)
	if err == nil && n == 0 {
		err = unix.ENOENT
	}
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}
