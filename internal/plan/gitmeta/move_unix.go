//go:build linux || darwin

package gitmeta

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// Inert begins the names of what could be kept nowhere but where it lay. Nothing
// reads a file because of such a name.
const Inert = ".tether-quarantined-"

// maxKept bounds what one call copies into a quarantine on another file system.
const maxKept = 64 << 20

// ward is the folder in quarantine of one call.
type ward struct {
	path string
	fd   int
	left int64 // how much may still be copied
}

// record is one line of the manifest.
type record struct {
	Path string `json:"path"`
	Kind string `json:"kind"`
	// Bytes is the path where text cannot hold it.
	Bytes  []byte `json:"path_bytes,omitempty"`
	Action string `json:"action"`
	Reason string `json:"reason"`
	Mode   string `json:"mode"`
	File   string `json:"file"`
}

func newRecord(f Finding, mode, file string) record {
	r := record{Path: f.Path, Kind: f.Kind, Action: f.Action, Reason: f.What, Mode: mode, File: file}
	if !utf8.ValidString(f.Path) {
		r.Bytes = []byte(f.Path)
	}
	return r
}

func openWard(quarantine string, records []record) (*ward, error) {
	if err := os.MkdirAll(quarantine, 0o700); err != nil {
		return nil, err
	}
	path, err := os.MkdirTemp(quarantine, time.Now().UTC().Format("20060102T150405Z-"))
	if err != nil {
		return nil, err
	}
	manifest, err := json.MarshalIndent(records, "", "\t")
	if err != nil {
		return nil, err
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	if err := writeNew(fd, manifestName, bytes.NewReader(manifest), nil); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return &ward{path, fd, maxKept}, nil
}

const manifestName = "manifest.json"

// writeNew creates a file that was not there and makes it durable. It is
// private, or has the owner and mode of the one that it is to replace. On
// failure nothing is left of it.
func writeNew(fd int, name string, r io.Reader, like *unix.Stat_t) error {
	n, err := unix.Openat(fd, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return &fs.PathError{Op: "create", Path: name, Err: err}
	}
	f := os.NewFile(uintptr(n), name)
	_, err = io.Copy(f, r)
	if err == nil && like != nil {
		// An ordinary user's file stays that user's, whatever its group was.
		if err = f.Chown(int(like.Uid), int(like.Gid)); errors.Is(err, unix.EPERM) && os.Geteuid() != 0 {
			err = nil
		}
		err = errors.Join(err, f.Chmod(fs.FileMode(like.Mode&0o777)))
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		_ = unix.Unlinkat(fd, name, 0)
	}
	return err
}

// take removes whatever is at path from where it lies. It never follows or
// reads what it does not have to. In this order, until one works: it is moved
// into the ward; on another file system it is copied there and unlinked; it is
// given an inert name; it is unlinked; it loses its permissions or its content.
// What nothing works for is left, with an error.
func (s *survey) take(a action, q *ward, name string) (Finding, error) {
	f := a.finding
	dir, base := splitPath(f.Path)
	fd, err := s.dir(dir)
	if vanished(err) {
		return gone(f), nil
	}
	if err != nil {
		return left(f), err
	}
	defer unix.Close(fd)
	return s.takeAt(fd, dir, base, a, q, name)
}

// vanished says whether a name leads nowhere, or to something else, by now.
func vanished(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP)
}

func gone(f Finding) Finding {
	f.Action, f.What = Reported, f.What+"; it was gone again"
	return f
}

func left(f Finding) Finding {
	f.Action, f.What = Reported, f.What+"; it could not be moved and is still there"
	return f
}

func (s *survey) takeAt(fd int, dir, base string, a action, q *ward, name string) (Finding, error) {
	f := a.finding
	f.Action = Quarantined
	h, err := handleAt(fd, base)
	if vanished(err) {
		return gone(f), nil
	}
	if err != nil {
		return left(f), err
	}
	defer unix.Close(h)
	var st unix.Stat_t
	if err := unix.Fstat(h, &st); err != nil {
		return left(f), err
	}
	isDir := st.Mode&unix.S_IFMT == unix.S_IFDIR
	if s.early != nil && (f.Kind == KindLink && st.Mode&unix.S_IFMT != unix.S_IFLNK || !is(a.id, &st)) {
		return gone(f), nil // the command has put something else there
	}
	if isDir {
		_, _ = grant(h, 0o700) // a folder must be writable itself to be moved
	}
	flag := 0
	if isDir {
		flag = unix.AT_REMOVEDIR
	}
	unlink := func() error { return unix.Unlinkat(fd, base, flag) }
	if !s.early.room(&st) {
		q = nil
		if !isDir && forced(fd, unlink) == nil {
			f.Action, f.What = Removed, f.What+"; too much had been kept already to keep it"
			return f, nil
		}
	}
	if q != nil {
		err = forced(fd, func() error { return unix.Renameat(fd, base, q.fd, name) })
		switch {
		case err == nil:
			f.QuarantinedTo = filepath.Join(q.path, name)
			return f, nil
		case vanished(err):
			return gone(f), nil
		}
		kept, worth := q.keep(fd, base, h, &st, name)
		if (kept || !worth) && forced(fd, unlink) == nil {
			f.QuarantinedTo = filepath.Join(q.path, name)
			if !kept {
				f.Action, f.QuarantinedTo = Removed, filepath.Join(q.path, manifestName)
			}
			return f, nil
		}
	}
	inert := Inert + rand.Text()
	err = forced(fd, func() error { return unix.Renameat(fd, base, fd, inert) })
	if err == nil {
		if isDir || st.Mode&unix.S_IFMT == unix.S_IFREG && st.Nlink == 1 {
			_ = chmodFD(h, 0)
		}
		f.QuarantinedTo = filepath.Join(dir, inert)
		return f, nil
	}
	if vanished(err) {
		return gone(f), nil
	}
	if forced(fd, unlink) == nil {
		f.Action = Removed
		return f, nil
	}
	if disarm(h, &st) {
		f.Action = Disarmed
		return f, nil
	}
	return left(f), err
}

// keep copies a file or a link into the ward. Of anything else but folders
// nothing is worth keeping that the manifest does not say.
func (q *ward) keep(fd int, base string, h int, st *unix.Stat_t, name string) (kept, worth bool) {
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return false, true
	case unix.S_IFLNK:
		return unix.Symlinkat(readlinkAt(fd, base), q.fd, name) == nil, false
	case unix.S_IFREG:
		if st.Size > q.left {
			return false, true
		}
		n, err := openFile(fd, base)
		if err != nil {
			return false, false
		}
		f := os.NewFile(uintptr(n), base)
		defer f.Close()
		q.left -= st.Size
		return writeNew(q.fd, name, io.LimitReader(f, st.Size), nil) == nil, true
	}
	return false, false
}

// disarm takes the permissions of what cannot be moved, or its content: git
// runs no hook that is not executable and goes on with no configuration that it
// cannot read.
func disarm(h int, st *unix.Stat_t) bool {
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return chmodFD(h, 0) == nil
	case unix.S_IFREG:
		if chmodFD(h, 0) == nil {
			return true
		}
		return st.Nlink == 1 && truncateHandle(h) == nil
	}
	return false
}

// splitPath splits a clean absolute path.
func splitPath(path string) (dir, base string) {
	i := strings.LastIndexByte(path, '/')
	if i <= 0 {
		return "/", path[i+1:]
	}
	return path[:i], path[i+1:]
}
