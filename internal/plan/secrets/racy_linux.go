package secrets

import (
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// What a young index may hold before it is left as it is.
const (
	maxRacyFiles = 20_000
	maxRacyBytes = 256 << 20
)

// tick is how far the time that a file system writes lags behind the clock.
const tick = 20 * time.Millisecond

// TrustIndex makes git trust the times of the hidden files that a worktree's index
// tracks, and does nothing where it does so already. gitDir is the worktree's
// own git directory, hidden are paths relative to the worktree; both folders are
// canonical.
//
// A file that was written in the second of the index, as all are right after
// `git clone`, is read again by git at every look, and reading a hidden file
// fails. What `git status` on the host does then is done here without git: all
// such files, hidden or not, are compared with what the index says of them,
// and if none differs that git could not tell by size and time, the index gets
// a time after theirs. Its content is never written. That takes up to a second
// in the very second of the clone, and is done once.
//
// An error says why the index was left alone; git inside then shows the hidden
// files as modified. So it is where a filter (such as autocrlf) makes the bytes
// in the tree differ from those in the repository.
func TrustIndex(ctx context.Context, gitDir, worktree string, hidden []string) error {
	var s settling
	var err error
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS}
	if s.git, err = unix.Openat2(unix.AT_FDCWD, gitDir, &how); err != nil {
		return err
	}
	defer unix.Close(s.git)
	if s.tree, err = unix.Openat2(unix.AT_FDCWD, worktree, &how); err != nil {
		return err
	}
	defer unix.Close(s.tree)

	index, err := s.readIndex()
	if err != nil {
		return err
	}
	racy, err := racyEntries(index, s.index.Mtim.Sec)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(racy, func(e racyEntry) bool { return slices.Contains(hidden, e.name) }) {
		return nil
	}
	last, err := s.compare(racy, hidden)
	if err != nil {
		return err
	}
	// Within their second a file can still change under the same time.
	over := time.Unix(last+1, 0).Add(tick)
	if wait := time.Until(over); wait > 0 {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return s.touch(last + 1)
}

// settling is the state of one TrustIndex.
type settling struct {
	git, tree int
	index     unix.Stat_t
	seen      []seenFile
}

// seenFile is what a file was when it was compared.
type seenFile struct {
	name string
	stat unix.Stat_t // zero for one that is not there
}

func (s *settling) readIndex() ([]byte, error) {
	fd, err := unix.Openat(s.git, "index", unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	if err := unix.Fstat(fd, &s.index); err != nil {
		return nil, err
	}
	if s.index.Mode&unix.S_IFMT != unix.S_IFREG || s.index.Size > maxIndex {
		return nil, errIndex
	}
	b := make([]byte, s.index.Size)
	n, err := readFull(fd, b)
	return b[:n], err
}

// compare looks at every file whose second is over, or is now, and returns the
// last such second. Files from the future are not touched by what follows: the
// index stays younger than they are.
func (s *settling) compare(racy []racyEntry, hidden []string) (last int64, err error) {
	now := time.Now().Unix()
	total := int64(0)
	for i := range racy {
		e := &racy[i]
		if int64(e.sec) > now {
			if slices.Contains(hidden, e.name) {
				return 0, fmt.Errorf("the time of %s lies in the future", strconv.Quote(e.name))
			}
			continue
		}
		if total += int64(e.size); total > maxRacyBytes || len(s.seen) == maxRacyFiles {
			return 0, errors.New("too many files are as young as the index")
		}
		last = max(last, int64(e.sec))
		seen := seenFile{name: e.name, stat: s.stat(e.name)}
		s.seen = append(s.seen, seen)
		if uint32(seen.stat.Size) != e.size || uint32(seen.stat.Mtim.Sec) != e.sec || seen.stat.Mode&typeBits != e.mode&typeBits {
			continue // git sees by this alone that it was changed
		}
		sum, err := s.sum(e, &seen.stat)
		if err != nil {
			return 0, err
		}
		if !slices.Equal(sum, e.sum) {
			return 0, fmt.Errorf("%s differs from what is committed", strconv.Quote(e.name))
		}
	}
	return last, nil
}

// stat looks at a file of the worktree without following a link.
func (s *settling) stat(name string) (st unix.Stat_t) {
	fd, err := s.open(name, unix.O_PATH)
	if err != nil {
		return st
	}
	defer unix.Close(fd)
	if unix.Fstat(fd, &st) != nil {
		return unix.Stat_t{}
	}
	return st
}

func (s *settling) open(name string, flags uint64) (int, error) {
	return unix.Openat2(s.tree, name, &unix.OpenHow{Flags: flags | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS | noLinks(flags)})
}

// noLinks forbids links on the way. The last name may be one for O_PATH, which
// opens the link itself.
func noLinks(flags uint64) uint64 {
	if flags&unix.O_PATH != 0 {
		return 0
	}
	return unix.RESOLVE_NO_SYMLINKS
}

var errMeanwhile = errors.New("a file changed while it was looked at")

// sum is the name that git would give to the file as an object.
func (s *settling) sum(e *racyEntry, st *unix.Stat_t) ([]byte, error) {
	var h hash.Hash
	if h = sha1.New(); len(e.sum) == sha256.Size {
		h = sha256.New()
	}
	fmt.Fprintf(h, "blob %d\x00", st.Size)
	if e.mode&typeBits == symlink {
		fd, err := s.open(e.name, unix.O_PATH)
		if err != nil {
			return nil, err
		}
		defer unix.Close(fd)
		buf := make([]byte, unix.PathMax)
		n, err := unix.Readlinkat(fd, "", buf)
		if err != nil {
			return nil, err
		}
		h.Write(buf[:n])
		return h.Sum(nil), nil
	}
	fd, err := s.open(e.name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), e.name)
	defer f.Close()
	var now unix.Stat_t
	if err := unix.Fstat(fd, &now); err != nil {
		return nil, err
	}
	if !sameState(&now, st) {
		return nil, errMeanwhile
	}
	_, err = io.Copy(h, io.LimitReader(f, st.Size+1))
	return h.Sum(nil), err
}

func sameState(a, b *unix.Stat_t) bool {
	return a.Dev == b.Dev && a.Ino == b.Ino && a.Size == b.Size && a.Mode == b.Mode && a.Mtim == b.Mtim && a.Ctim == b.Ctim
}

// touch sets the index's time, under git's own lock and if nothing has changed.
func (s *settling) touch(sec int64) error {
	lock, err := unix.Openat(s.git, "index.lock", unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return fmt.Errorf("index.lock: %w", err)
	}
	unix.Close(lock)
	defer unix.Unlinkat(s.git, "index.lock", 0)
	var st unix.Stat_t
	if err := unix.Fstatat(s.git, "index", &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	if !sameState(&st, &s.index) {
		return errMeanwhile
	}
	for i := range s.seen {
		now := s.stat(s.seen[i].name)
		if !sameState(&now, &s.seen[i].stat) {
			return errMeanwhile
		}
	}
	return unix.UtimesNanoAt(s.git, "index", []unix.Timespec{{Nsec: unix.UTIME_OMIT}, {Sec: sec}}, unix.AT_SYMLINK_NOFOLLOW)
}
