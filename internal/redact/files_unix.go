//go:build unix

package redact

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Files reads protected files and returns their secrets, and how many files
// were not read because they are too many or too much: at most 2048 files, the
// first 64 KiB of each, 8 MiB in all. In a folder it reads the regular files,
// not those of its folders. Files that we may not read, and what is not a
// regular file, hold nothing that we know; no link is followed.
func Files(sources []Source) (values []Value, left int) {
	r := reader{buf: make([]byte, maxFileBytes)}
	for _, s := range sources {
		r.source(s)
	}
	return r.values, r.left
}

type reader struct {
	buf          []byte
	files, bytes int
	values       []Value
	left         int
}

func (r *reader) source(s Source) {
	if r.files >= maxFiles || r.bytes >= maxBytes {
		r.left++
		return
	}
	fd, err := unix.Open(s.Path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || s.Ino != 0 && (uint64(st.Dev) != s.Dev || st.Ino != s.Ino) {
		return
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		if s.Ino == 0 {
			return // a folder within a folder
		}
		names := r.names(fd)
		slices.Sort(names)
		for _, name := range names {
			if !strings.HasSuffix(name, ".pub") && name != "known_hosts" {
				r.source(Source{Path: filepath.Join(s.Path, name)})
			}
		}
	case unix.S_IFREG:
		r.files++
		n := 0
		for n < len(r.buf) {
			k, err := unix.Read(fd, r.buf[n:])
			if err == unix.EINTR {
				continue
			}
			if err != nil || k <= 0 {
				break // what was read is looked at
			}
			if n += k; int64(n) >= st.Size {
				break
			}
		}
		r.bytes += n
		r.values = append(r.values, File(filepath.Base(s.Path), r.buf[:n])...)
	}
}

// names lists a folder, as far as its files could be read.
func (r *reader) names(fd int) []string {
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	f := os.NewFile(uintptr(own), "")
	defer f.Close()
	names, _ := f.Readdirnames(maxFiles)
	return names
}
