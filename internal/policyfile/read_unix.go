//go:build linux || darwin

package policyfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// openFlags never wait for the other end of a pipe and never make a terminal
// ours.
const openFlags = unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC

// readUser reads the user's file; nil if there is none.
func readUser(dir, path string) ([]byte, error) {
	fd, err := openat(unix.AT_FDCWD, path, openFlags|unix.O_NOFOLLOW)
	link := err == unix.ELOOP
	if link {
		fd, err = openat(unix.AT_FDCWD, path, openFlags)
	}
	switch {
	case err == unix.ENOENT && !link || err == unix.ENOTDIR:
		return nil, nil
	case err != nil:
		return nil, unreadable(path, err)
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, unreadable(path, err)
	}
	uid := uint32(os.Geteuid())
	others := st.Mode&0o022 != 0
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return nil, unfit(path, "it is not a regular file", "make it a plain file")
	case st.Uid != uid && st.Uid != 0:
		return nil, unfit(path, "it belongs to somebody else (user "+strconv.FormatUint(uint64(st.Uid), 10)+")", "make it yours, or remove it")
	case others:
		return nil, unfit(path, "others can write it", "chmod go-w "+path)
	case link && (uid == 0 || st.Uid == uid):
		return nil, unfit(path, "it is a link to a file that a command may be allowed to write", "put the file itself there")
	case st.Nlink != 1 && st.Uid == uid:
		return nil, unfit(path, "it has another name (a hard link), through which a command may be allowed to write it", "put a copy there")
	}
	if err := unix.Stat(dir, &st); err != nil {
		return nil, unreadable(path, err)
	}
	if (st.Uid != uid && st.Uid != 0) || st.Mode&0o022 != 0 {
		return nil, unfit(path, "others can replace it, because they can write its folder", "chmod go-w "+dir)
	}
	return readAll(f, path)
}

// readWorkspace reads the file of a workspace; nil if there is none. There are
// two names below the workspace, and each is opened by itself without
// following a link, which says the same as openat2 with RESOLVE_NO_SYMLINKS
// and RESOLVE_BENEATH, on every kernel.
func readWorkspace(workspace, path string) (*file, error) {
	top, err := openat(unix.AT_FDCWD, workspace, placeFlag|unix.O_DIRECTORY|unix.O_CLOEXEC)
	switch {
	case err == unix.ENOENT || err == unix.ENOTDIR:
		return nil, nil // a workspace that is none is told of by the plan
	case err != nil:
		return nil, unreadable(workspace, err)
	}
	defer unix.Close(top)
	dir, err := openat(top, workspaceFolder, placeFlag|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC)
	switch {
	case err == unix.ENOENT:
		return nil, nil
	case err == unix.ENOTDIR || err == unix.ELOOP:
		return nil, unfit(filepath.Dir(path), "it is not a folder", "make it a folder, not a link, or remove it")
	case err != nil:
		return nil, unreadable(path, err)
	}
	defer unix.Close(dir)
	fd, err := openat(dir, fileName, openFlags|unix.O_NOFOLLOW)
	switch {
	case err == unix.ENOENT:
		return nil, nil
	case err == unix.ELOOP:
		return nil, unfit(path, "it is a link", "put the file itself there")
	case err == unix.ENXIO || err == unix.ENODEV || err == unix.EOPNOTSUPP:
		return nil, unfit(path, "it is not a regular file", "make it a plain file")
	case err != nil:
		return nil, unreadable(path, err)
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	var st, root unix.Stat_t
	if err := errors.Join(unix.Fstat(fd, &st), unix.Fstat(top, &root)); err != nil {
		return nil, unreadable(path, err)
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return nil, unfit(path, "it is not a regular file", "make it a plain file")
	case st.Uid != uint32(os.Geteuid()) && st.Uid != root.Uid:
		return nil, unfit(path, "it belongs neither to you nor to the owner of the workspace", "make it yours, or remove it")
	case st.Nlink != 1:
		return nil, unfit(path, "it has another name (a hard link)", "put a copy there")
	}
	content, err := readAll(f, path)
	if err != nil {
		return nil, err
	}
	real, err := filepath.EvalSymlinks(workspace)
	if err != nil {
		return nil, unreadable(path, err)
	}
	return &file{content, identity{real, uint64(root.Dev), root.Ino}}, nil
}

// readAll reads one byte more than a policy file may have, so that Parse sees
// that it is too large.
func readAll(f *os.File, path string) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(f, maxFile+4))
	if err != nil {
		return nil, unreadable(path, err)
	}
	if content == nil {
		content = []byte{}
	}
	return content, nil
}

func openat(dir int, path string, flags int) (int, error) {
	for {
		fd, err := unix.Openat(dir, path, flags, 0)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

// identify returns the identity of a workspace.
func identify(workspace string) (identity, error) {
	real, err := filepath.EvalSymlinks(workspace)
	if err != nil {
		return identity{}, err
	}
	var st unix.Stat_t
	if err := unix.Stat(real, &st); err != nil {
		return identity{}, err
	}
	return identity{real, uint64(st.Dev), st.Ino}, nil
}

// readRecord reads a file of the store: it must be ours alone.
func readRecord(path string) ([]byte, error) {
	fd, err := openat(unix.AT_FDCWD, path, openFlags|unix.O_NOFOLLOW)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || st.Uid != uint32(os.Geteuid()) || st.Mode&0o077 != 0 {
		return nil, errForeign
	}
	return io.ReadAll(io.LimitReader(f, maxRecord+1))
}
