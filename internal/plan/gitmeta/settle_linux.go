package gitmeta

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/fault"
)

// maxMoved bounds what is copied into a quarantine on another file system.
const maxMoved = 64 << 20

// Settle compares the workspace with its state before a command, whose tree
// must be dead, and takes the force out of what is new or changed: hooks,
// pointers, links and broken configuration are moved into a new folder below
// quarantine; a configuration is rewritten without its new executable keys,
// the original kept in quarantine. What is an ordinary file of the tree is
// only reported. after is what [Discover] found now.
//
// The folder is private (0700) and holds a manifest.json with each file's
// original path, mode and reason, written before anything is moved. Nothing
// is created when there is nothing to do. Settling again after a crash goes
// on where it stopped. quarantine must lie outside the workspace.
//
// What could not be moved is in the findings as Reported and in the error.
// Not watched: the configuration of the host itself, attributes in the tree
// below its top folder, and files that no configuration named before the
// command.
func Settle(before Snapshot, after []Repo, quarantine string) ([]Finding, error) {
	if inside(before.Workspace, realOr(filepath.Clean(quarantine))) {
		return nil, fault.New(fault.Internal, "the quarantine must not lie in the workspace")
	}
	s, err := openSurvey(before.Workspace, before.Commons)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, "cannot look for new git configuration", err)
	}
	defer s.close()
	s.after = true
	for path, item := range before.Items {
		if item.Role == RoleProgram {
			s.one(path, Item{Role: RoleProgram, Key: item.Key})
		}
	}
	s.all(after, before)
	todo := compare(before, s.items)
	if len(todo) == 0 {
		return nil, nil
	}
	return s.carryOut(todo, quarantine)
}

// record is one line of the manifest.
type record struct {
	Path   string `json:"path"`
	Action string `json:"action"`
	Reason string `json:"reason"`
	Mode   string `json:"mode"`
	File   string `json:"file"`
}

const stillThere = "; it could not be moved and is still there"

func (s *survey) carryOut(todo []action, quarantine string) ([]Finding, error) {
	var q *ward
	findings := make([]Finding, 0, len(todo))
	var records []record
	for i, a := range todo {
		if a.finding.Action != Reported {
			name := fmt.Sprintf("%04d-%s", i, filepath.Base(a.finding.Path))
			if len(name) > 200 {
				name = name[:200]
			}
			records = append(records, record{
				a.finding.Path, a.finding.Action, a.finding.What, s.mode(a.finding.Path), name,
			})
		}
	}
	if len(records) > 0 {
		var err error
		if q, err = openWard(quarantine, records); err != nil {
			for _, a := range todo {
				a.finding.Action, a.finding.What = Reported, a.finding.What+stillThere
				findings = append(findings, a.finding)
			}
			return findings, fault.Wrap(fault.Internal, "cannot make a quarantine", err)
		}
		defer unix.Close(q.fd)
	}
	var errs []error
	next := 0
	for _, a := range todo {
		f := a.finding
		if f.Action != Reported {
			file := records[next].File
			next++
			var err error
			if f.Action == Rewritten {
				err = s.rewrite(f.Path, a.keep, q, file)
			} else {
				err = s.move(f.Path, q, file)
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", f.Path, err))
				f.Action, f.What = Reported, f.What+stillThere
			} else {
				f.QuarantinedTo = filepath.Join(q.path, file)
			}
		}
		findings = append(findings, f)
	}
	if err := errors.Join(errs...); err != nil {
		return findings, fault.Wrap(fault.Internal, "some git files could not be put in quarantine", err)
	}
	return findings, nil
}

func (s *survey) mode(path string) string {
	fd, err := s.dir(filepath.Dir(path))
	if err != nil {
		return ""
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if unix.Fstatat(fd, filepath.Base(path), &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return ""
	}
	return fmt.Sprintf("%o", st.Mode)
}

// ward is the folder in quarantine of one call.
type ward struct {
	path string
	fd   int
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
	if err := writeNew(fd, "manifest.json", bytes.NewReader(manifest), nil); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return &ward{path, fd}, nil
}

// writeNew creates a file that was not there and makes it durable. It is
// private, or has the owner and mode of the one that it is to replace.
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
	return errors.Join(err, f.Sync(), f.Close())
}

// move puts whatever is at path into the ward, without opening it if both are
// on one file system. What is gone already is no error.
func (s *survey) move(path string, q *ward, name string) error {
	fd, err := s.dir(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	base := filepath.Base(path)
	err = unix.Renameat2(fd, base, q.fd, name, unix.RENAME_NOREPLACE)
	switch err {
	case unix.ENOENT:
		return nil
	case unix.EXDEV, unix.EINVAL, unix.ENOSYS:
		return moveAcross(fd, base, q, name)
	}
	return err
}

// moveAcross copies a file or link and then unlinks it. Of anything else
// nothing is worth keeping but its entry in the manifest.
func moveAcross(fd int, base string, q *ward, name string) error {
	var st unix.Stat_t
	if err := unix.Fstatat(fd, base, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return unix.EISDIR
	case unix.S_IFLNK:
		if err := unix.Symlinkat(readlinkAt(fd, base), q.fd, name); err != nil {
			return err
		}
	case unix.S_IFREG:
		n, err := unix.Openat(fd, base, readFlags, 0)
		if err != nil {
			return err
		}
		f := os.NewFile(uintptr(n), base)
		err = writeNew(q.fd, name, io.LimitReader(f, maxMoved), nil)
		f.Close()
		if err != nil {
			return err
		}
	}
	return unix.Unlinkat(fd, base, 0)
}

// rewrite replaces a configuration by itself without the executable entries
// that were not there before. The file is never missing in between. If it is
// not what it was when it was surveyed, it is moved away whole.
func (s *survey) rewrite(path string, keep []string, q *ward, name string) error {
	dir, base := filepath.Split(path)
	dir = filepath.Clean(dir)
	fd, err := s.dir(dir)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	n, err := unix.Openat(fd, base, readFlags, 0)
	if err == unix.ENOENT {
		return nil
	}
	if err != nil {
		return s.move(path, q, name)
	}
	var st unix.Stat_t
	if err := unix.Fstat(n, &st); err != nil {
		unix.Close(n)
		return err
	}
	raw, err := readFD(n, path, MaxConfig)
	if err != nil {
		return s.move(path, q, name)
	}
	entries, err := Parse(raw)
	if err != nil {
		return s.move(path, q, name)
	}
	clean, changed := without(raw, entries, keep, dir, s.ws)
	if !changed {
		return nil
	}
	if left, err := Parse(clean); err != nil || slices.ContainsFunc(left, func(e Entry) bool {
		return Executable(e) && !worktreeInside(e, dir, s.ws) && !slices.Contains(keep, entryDigest(e))
	}) {
		return s.move(path, q, name)
	}
	if err := writeNew(q.fd, name, bytes.NewReader(raw), nil); err != nil {
		return err
	}
	temp := base + ".tether-new" // a fixed name: a crash leaves at most one
	if err := unix.Unlinkat(fd, temp, 0); err != nil && err != unix.ENOENT {
		return err
	}
	err = writeNew(fd, temp, bytes.NewReader(clean), &st)
	if err == nil {
		err = unix.Renameat(fd, temp, fd, base)
	}
	if err != nil {
		unix.Unlinkat(fd, temp, 0)
	}
	return err
}
